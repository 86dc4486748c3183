"""What a peer remembers does not grow with the subscriptions and publications that come and go."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType

import pytest

pytest.importorskip("msgspec")

from filtering_worlds import peers_of
from pathcast.dht import decisions, piece_cutting, piece_finder, piece_records
from pathcast.dht.filtering import FilteringSettings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.dht.recent import Recent
from pathcast_lab.sim.filtering_world import FilteringWorld

LIVE = 30
ROUND = 500
"""Subscriptions that come and go between two looks, one in so many seconds as follows."""
STEP_SECONDS = 4.0
NAMES = "abcdef"


def entries(root: object) -> int:
    """How much is in all containers that a peer leads to, those of its timers included."""
    count, seen, left = 0, set[int](), [root]
    while left:
        each = left.pop()
        if id(each) not in seen:
            seen.add(id(each))
            count += len(each) if isinstance(each, CONTAINERS) else 0
            left.extend(_parts(each))
    return count


CONTAINERS = (dict, list, tuple, set, frozenset, deque)


def _parts(each: object) -> Iterator[object]:
    match each:
        case dict():
            yield from each
            yield from each.values()
        case list() | tuple() | set() | frozenset() | deque():
            yield from each
        case partial():
            yield from (each.func, each.args, each.keywords)
        case MethodType():
            yield each.__self__
        case FunctionType():
            yield from (cell.cell_contents for cell in each.__closure__ or ())
        case _ if type(each).__module__.startswith(("pathcast.", "pathcast_lab.sim.static_ring")):
            slots = (name for of in type(each).__mro__ for name in getattr(of, "__slots__", ()))
            names = (*getattr(each, "__dict__", ()), *slots)
            yield from (getattr(each, name) for name in names if hasattr(each, name))


class Coming:
    """Subscribers that come and go, and publishers, at all peers of a world in turn.

    Args:
        are_new: Whether each subscription has a name at its first step that no other has.
    """

    def __init__(self, are_new: bool = False) -> None:
        self.are_new = are_new
        self.draw = random.Random("coming")
        pieces = PieceSettings(queries_max=20)
        self.world = FilteringWorld.on_static_ring(1, 5, FilteringSettings(pieces))
        self.count = 0
        self.live: list[str] = []

    def go_on(self) -> int:
        """A round; how much peers remember after it."""
        for _ in range(ROUND):
            self.count += 1
            name = f"s{self.count}"
            self.world.subscribe(self._peer(), name, self._query())
            self.live.append(name)
            if len(self.live) > LIVE:
                self.world.unsubscribe(self.live.pop(0))
            message = f"<n{self.count}><a/></n{self.count}>" if self.are_new else self._element(0)
            self.world.publish(self._peer(), message.encode())
            self.world.run(STEP_SECONDS)
        assert all(one.outcome and one.outcome.is_proved for one in self.world.publications)
        return sum(map(entries, peers_of(self.world)))

    def _peer(self) -> str:
        return self.draw.choice(self.world.names)

    def _query(self) -> str:
        if self.are_new:
            return f"/n{self.count}/{self.draw.choice(NAMES)}"
        path = "/".join(self.draw.choices(NAMES, k=self.draw.randint(1, 4)))
        # Every second one is decided on the whole message, and no other has its condition.
        return f"/{path}" + f"[@x != '{self.count}']" * (self.count % 2)

    def _element(self, depth: int) -> str:
        inside = self.draw.randint(0, 2) if depth < 4 else 0
        name = self.draw.choice(NAMES)
        return f"<{name} x='1'>{''.join(self._element(depth + 1) for _ in range(inside))}</{name}>"


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of a fixed number is full soon."""
    monkeypatch.setattr(piece_records, "_REMOVED_MAX", 20)
    monkeypatch.setattr(piece_finder, "_STALE_MIN", 10)
    monkeypatch.setattr(piece_cutting, "_STALE_MIN", 10)
    monkeypatch.setattr(decisions, "_FORGET_AFTER", 20)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("forgets", [True, False])
def test_memory_is_flat_while_subscriptions_come_and_go(
    forgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not forgets:
        monkeypatch.setattr(Recent, "put", _kept_for_ever)
    coming = Coming()
    first, _, third = (coming.go_on() for _ in range(3))
    assert coming.world.check() > ROUND
    assert (third < 1.1 * first) is forgets


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("labels_max", [8, 10**9])
def test_memory_is_flat_while_names_are_ever_new(
    labels_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each name parts from all others in the start state's piece."""
    monkeypatch.setattr(piece_cutting, "_LABELS_MAX", labels_max)
    coming = Coming(are_new=True)
    is_flat = labels_max == 8
    first, *_, last = (coming.go_on() for _ in range(3 if is_flat else 2))
    coming.world.check()
    assert (last < 1.1 * first) is is_flat


def _kept_for_ever(recent: Recent[object, object], key: object, value: object) -> None:
    recent._held[key] = 0.0, value


def test_a_condition_that_is_asked_for_no_more_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decisions, "_FORGET_AFTER", 5)
    index = decisions.CandidateIndex()
    body = b"<a x='1'/>"

    def holds(query: str) -> bool | str:
        return index.decide(body, [(query, ())])[query, ()]

    for number in range(40):
        assert holds(f"/a[@x = {number}]") is (number == 1)
        assert holds("/a[@x = '1']") is True
    assert len(index._ids) <= 2 * 5

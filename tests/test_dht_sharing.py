"""A busy piece is run by other peers beside its owner, and answers stay those of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

pytest.importorskip("msgspec")

from filtering_worlds import SHARED, busy, peers_of
from pathcast.dht import piece_sharing
from pathcast.dht.filtering import FilteringSettings
from pathcast.dht.messages import Done, Member, Reply, Shared, Value
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.dht.piece_leases import PieceLeases
from pathcast.dht.piece_messages import FetchPiece
from pathcast.dht.piece_records import PieceRecord, encoded_piece
from pathcast.dht.piece_sharing import KnownSharers
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.filtering_world import FilteringWorld, LostMatch

SETTINGS = FilteringSettings(SHARED)


@pytest.fixture(autouse=True)
def _short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece_sharing, "_WINDOW_SECONDS", 0.5)


def shared_part(world: FilteringWorld) -> float:
    peers = peers_of(world)
    return sum(peer.running.shared for peer in peers) / sum(peer.running.done for peer in peers)


@pytest.mark.parametrize("churns", [False, True])
@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(1000, 1200), marks=pytest.mark.nightly)]
)
def test_no_match_is_lost_where_pieces_are_shared(seeds: Sequence[int], churns: bool) -> None:
    matches = proved = publications = 0
    part = 0.0
    for seed in seeds:
        world = busy(seed, SETTINGS, churns=churns)
        matches += world.check()
        part += shared_part(world) / len(seeds)
        publications += len(world.publications)
        proved += sum(one.outcome.is_proved for one in world.publications if one.outcome)
    assert matches > 100 * len(seeds)
    assert proved > 0.95 * publications
    assert part > 0.25


@pytest.mark.parametrize("safeguard", ["waits_for_copies", "renews_copies"])
def test_a_safeguard_is_missed(safeguard: str) -> None:
    def is_missed(seed: int) -> bool:
        try:
            busy(seed, SETTINGS).check()
        except LostMatch:
            return True
        return False

    with without(safeguard):
        assert any(is_missed(seed) for seed in range(10))


def one_state(settings: PieceSettings) -> list[int]:
    """Questions of each peer, where all subscribe to the same path and publish what matches it."""
    world = FilteringWorld.on_static_ring(1, 12, FilteringSettings(settings))
    for number in range(48):
        world.subscribe(world.names[number % 12], f"s{number}", "/a/b")
    world.run(4.0)
    assert world.not_in_force() == []
    for number in range(240):
        world.publish(world.names[number % 12], b"<a><b/></a>")
        world.run(0.1)
    world.run(5.0)
    assert world.check() == 48 * 240
    return sorted(peer.courier.sent["Match"] for peer in peers_of(world))


def test_a_state_that_cannot_be_cut_is_shared() -> None:
    never = PieceSettings(copy_seconds=0.3, work_max=float("inf"))
    alone, shared = one_state(never), one_state(replace(never, work_max=50.0))
    assert alone[-2] == 0
    assert shared[-1] < alone[-1] / 4
    assert sum(each > 0 for each in shared) > 6


def test_sharers_go_when_a_piece_is_busy_no_more() -> None:
    world = FilteringWorld.on_static_ring(1, 8, SETTINGS)
    world.subscribe("p0", "s", "/a")

    def publish(seconds: float) -> int:
        for number in range(40):
            world.publish(world.names[number % 8], b"<a/>")
            world.run(seconds / 40)
        return sum(len(peer.sharing.sharers("start")) for peer in peers_of(world))

    world.run(3.0)
    assert publish(4.0) > 0
    assert publish(400.0) == 0
    assert world.check() == 80


class Owner:
    """A courier whose questions are answered by a test."""

    def __init__(self) -> None:
        self.asked: list[tuple[FetchPiece, Callable[[Reply | None], None]]] = []

    def to_owner(
        self,
        key: str,
        question: Callable[[int], FetchPiece],
        then: Callable[[Reply | None], None],
        tries: int | None,
    ) -> None:
        assert (key, tries) == ("start", None)
        self.asked.append((question(1), then))


def test_an_answer_that_was_long_on_its_way_is_not_used_for_what_came_since() -> None:
    owner, seconds = Owner(), [0.0]
    leases = PieceLeases(owner, 1.0, lambda: seconds[0])  # type: ignore[arg-type]
    had: dict[str, float] = {}

    def read(waiter: str) -> None:
        leases.read("start", waiter, lambda *_: had.update({waiter: seconds[0]}))

    read("early")
    seconds[0] = 5.0
    read("late")
    assert len(owner.asked) == 1
    owner.asked[0][1](Value(encoded_piece(PieceRecord()), 3))
    assert list(had) == ["early"]
    assert owner.asked[1][0] == FetchPiece("start", 3)
    seconds[0] = 5.5
    owner.asked[1][1](Value(None, 3))
    read("later")
    assert had == {"early": 5.0, "late": 5.5, "later": 5.5}


def test_a_peer_that_has_not_taken_a_publication_is_not_chosen_for_a_while() -> None:
    seconds = [0.0]
    known = KnownSharers(lambda: seconds[0])
    sharer = Member("p", 1)

    def chosen() -> set[Member | None]:
        return {known.choose("start/a", f"publication {number}") for number in range(40)}

    assert chosen() == {None}
    known.learn(["start/a", "start/b"], Shared({"start/a": (sharer,)}))
    assert chosen() == {None, sharer}
    assert known.choose("start/b", "publication 1") is None
    known.has_failed(sharer)
    assert chosen() == {None}
    seconds[0] = 61.0
    assert chosen() == {None, sharer}
    known.learn(["start/a"], Done())
    assert chosen() == {None}

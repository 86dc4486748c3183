"""What every order of a model is, and which states are the same."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

pytest.importorskip("msgspec")

from pathcast_lab.sim.broker_model import BrokerModel, Publish, Subscribe
from pathcast_lab.sim.interleavings import Explored, explore

LINE = (("a", "b"), ("b", "c"))


@dataclass
class Growing:
    """Takes numbers into a set, in any order."""

    numbers: tuple[int, ...]
    taken: set[int] = field(default_factory=set)

    def moves(self) -> Sequence[int]:
        return [each for each in self.numbers if each not in self.taken]

    def do(self, move: Hashable) -> None:
        assert isinstance(move, int)
        self.taken.add(move)

    def check_end(self) -> None:
        assert self.taken == set(self.numbers)


def test_equal_sets_are_one_state_however_they_came_about() -> None:
    # 0, 8 and 16 have one place in the table of a small set, which keeps who came first.
    assert [*{0, 8}] != [*{8, 0}]
    assert explore(Growing((0, 8, 16))) == Explored(states=8, ends=1)


class Remembered(BrokerModel):
    """Says what came of it, at each end."""

    outcomes: ClassVar[set[str]] = set()

    def check_end(self) -> None:
        super().check_end()
        seen = (self.due, self.delivered, self.in_force)
        self.outcomes.add(repr([sorted(each.items()) for each in seen]))


def test_orders_that_make_no_difference_are_followed_once() -> None:
    todo: list[Subscribe | Publish] = [
        Subscribe("a", "s1", "a1*"),
        Subscribe("c", "s2", "a12"),
        Publish("b", b"12 m1"),
    ]
    states, outcomes = {}, {}
    for is_reduced in (False, True):
        Remembered.outcomes.clear()
        model = Remembered(LINE, list(todo), trees="broadcast", is_reduced=is_reduced)
        states[is_reduced] = explore(model).states
        outcomes[is_reduced] = set(Remembered.outcomes)
    assert outcomes[True] == outcomes[False]
    assert len(outcomes[True]) > 3
    assert states[True] < 0.8 * states[False]

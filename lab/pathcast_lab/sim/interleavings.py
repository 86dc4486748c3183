"""All orders in which things can happen, each state once: model checking of small networks.

A *model* is an object that can be pickled; moves change it. Every order of moves is followed, but
no state twice, so that the number of states bounds the work and not the number of orders. What
breaks is reported with the moves that lead there, of which there are as few as can be.

Example:
    >>> from dataclasses import dataclass, field
    >>> @dataclass
    ... class Counters:
    ...     counts: list[int] = field(default_factory=lambda: [0, 0])
    ...     def moves(self):
    ...         return [n for n, count in enumerate(self.counts) if count < 3]
    ...     def do(self, move):
    ...         self.counts[move] += 1
    ...     def check_end(self):
    ...         assert self.counts == [3, 3]
    >>> import sys; sys.modules["__main__"].Counters = Counters; Counters.__module__ = "__main__"
    >>> explore(Counters())
    Explored(states=16, ends=1)
"""

from __future__ import annotations

import io
import pickle
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

__all__ = ["Explored", "Model", "WrongOrder", "explore"]


class Model(Protocol):
    """Something that moves change; it can be pickled."""

    def moves(self) -> Sequence[Hashable]:
        """What can happen next; nothing at an end."""
        ...

    def do(self, move: Hashable) -> None:
        """It happens. Raises AssertionError if that breaks something."""
        ...

    def check_end(self) -> None:
        """Raises AssertionError if an end is not as it must be. The model is not used again."""
        ...


@dataclass(frozen=True, slots=True)
class Explored:
    """How much was seen: distinct states, and those of them that are ends."""

    states: int
    ends: int


class WrongOrder(AssertionError):
    """Moves, in an order, that break something."""


def explore(start: Model, states_max: int = 10_000_000) -> Explored:
    """Follow all orders of moves from a state, breadth first.

    Raises:
        WrongOrder: One that breaks something, of the fewest moves.
        RuntimeError: There are more states than `states_max`; nothing is proved.
    """
    first = pickle.dumps(start)
    begin = _key(first)
    came: dict[bytes, tuple[bytes, Hashable] | None] = {begin: None}
    queue, ends, raws = deque([(begin, first)]), 0, set[bytes]()
    while queue:
        digest, state = queue.popleft()
        model: Model = pickle.loads(state)
        moves = model.moves()
        try:
            if not moves:
                ends += 1
                model.check_end()
        except AssertionError as error:
            raise WrongOrder(_told(came, digest, error)) from error
        for move in moves:
            model = pickle.loads(state)
            try:
                model.do(move)
            except AssertionError as error:
                raise WrongOrder(f"{_told(came, digest, error)}\n{move}") from error
            after = pickle.dumps(model)
            if (raw := _digest(after)) in raws:
                continue
            raws.add(raw)
            if (reached := _key(after)) not in came:
                if len(came) >= states_max:
                    raise RuntimeError(f"more than {states_max} states")
                came[reached] = (digest, move)
                queue.append((reached, after))
    return Explored(len(came), ends)


def _digest(state: bytes | memoryview) -> bytes:
    return blake2b(state, digest_size=16).digest()


def _key(state: bytes) -> bytes:
    """Of a state, the same for equal ones.

    It is read and written again: what is equal but was one object before it was read is alike then.
    """
    out = io.BytesIO()
    _InOrder(out).dump(pickle.loads(state))
    return _digest(out.getbuffer())


class _InOrder(pickle.Pickler):
    """Writes sets in an order that is not that of their table, which knows how they came about."""

    def __init__(self, out: io.BytesIO) -> None:
        super().__init__(out)
        self._met: dict[int, int] = {}

    def persistent_id(self, one: object) -> object:
        if type(one) not in (set, frozenset):
            return None
        if (met := self._met.get(id(one))) is not None:
            return met
        self._met[id(one)] = len(self._met)
        return type(one).__name__, sorted(one, key=repr)  # type: ignore[call-overload]


def _told(
    came: dict[bytes, tuple[bytes, Hashable] | None], digest: bytes, error: AssertionError
) -> str:
    moves: list[Hashable] = []
    while (step := came[digest]) is not None:
        digest, move = step
        moves.append(move)
    return "\n".join([str(error), *map(str, reversed(moves))])

"""The automaton's states as arrays, for arithmetic over hundreds of thousands of them.

States are numbered as they are made, so a parent comes before its children, and the automaton of
the first queries is a beginning of every array: `sizes` says of which length.

Example:
    >>> table = StateTable.of(["/a/b", "/a//c", "/a"])
    >>> [table.key(state) for state in range(len(table))]
    ['start', 'start/a', 'start/a/b', 'start/a/$', 'start/a/$/c']
    >>> table.sizes.tolist(), table.final.tolist()
    ([1, 3, 5, 5], [2, 4, 1])

Queries are linear paths of names, `*`, `/` and `//`, without predicates and prefixes: what
`pathcast.dht.gates.gates_of` gives for them, without compiling a million.

Source: 000, sections 3 and 4.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pathcast.dht.fragment import EPSILON, Symbol
from pathcast.dht.identifiers import identifier, state_key
from pathcast.errors import UnsupportedQueryError

__all__ = ["ANY", "LOOP", "NONE", "StateTable"]

LOOP: Final = 0
"""Number of the label epsilon, which leads to a state that loops on every element."""

ANY: Final = 1
"""Number of the label `*`."""

NONE: Final = -1
"""No state."""

_STEP: Final = re.compile(r"//?[^/]+")
_WIDTH: Final = 20
"""Bits of a label's number in a transition's."""


@dataclass(frozen=True, eq=False)
class StateTable:
    """The states of an automaton.

    Attributes:
        parent: Of each state; `NONE` for the start state, which is 0.
        label: Number of the label of the transition that leads to each; `NONE` for the start.
        labels: Label -> its number.
        sizes: How many states there are after so many queries, from none on.
        final: The state that accepts each query.
    """

    parent: NDArray[np.int32]
    label: NDArray[np.int32]
    labels: Mapping[Symbol, int]
    sizes: NDArray[np.int32]
    final: NDArray[np.int32]

    @classmethod
    def of(cls, queries: Iterable[str]) -> StateTable:
        """The automaton of these queries, in this order.

        Raises:
            UnsupportedQueryError: A query is no linear path of names, `*`, `/` and `//`.

        Cost: About 5 µs a query of ten steps; 100 bytes a state while it is made.
        """
        labels: dict[Symbol, int] = {EPSILON: LOOP, (None, None): ANY}
        steps: dict[str, tuple[int, ...]] = {}
        child: dict[int, int] = {}
        parents, by = array("i", [NONE]), array("i", [NONE])
        sizes, final = array("i", [1]), array("i")
        for query in queries:
            parts = _STEP.findall(query)
            if "".join(parts) != query or not parts:
                raise UnsupportedQueryError(
                    "algorithm.fragment",
                    algorithm="a state table",
                    fragment="linear paths of names and `*`",
                    construct=f"something else: {query!r}",
                )
            state = 0
            for part in parts:
                numbers = steps.get(part)
                if numbers is None:
                    numbers = steps[part] = _numbered(part, labels)
                for number in numbers:
                    key = state << _WIDTH | number
                    target = child.get(key)
                    if target is None:
                        target = child[key] = len(parents)
                        parents.append(state)
                        by.append(number)
                    state = target
            final.append(state)
            sizes.append(len(parents))
        return cls(_frozen(parents), _frozen(by), labels, _frozen(sizes), _frozen(final))

    def __len__(self) -> int:
        return len(self.parent)

    def child(self, label: int) -> NDArray[np.int32]:
        """For each state the one that a label leads to; `NONE` where it leads nowhere."""
        found = np.full(len(self), NONE, np.int32)
        leads = np.flatnonzero(self.label == label)
        found[self.parent[leads]] = leads
        return found

    def key(self, state: int) -> str:
        """The key of a state."""
        names = list(self.labels)
        path = []
        while state:
            path.append(names[self.label[state]])
            state = int(self.parent[state])
        return state_key(reversed(path))

    def key_lengths(self) -> NDArray[np.int64]:
        """Bytes of each state's key."""
        own = np.array([len(text.encode()) for text in self._written()], np.int64)
        total = np.full(len(self), len("start"), np.int64)
        for states in self.levels()[1:]:
            total[states] = total[self.parent[states]] + own[self.label[states]]
        return total

    def places(self, wanted: NDArray[np.intp]) -> NDArray[np.uint64]:
        """First 64 bits of the identifiers of states.

        Args:
            wanted: States.

        Cost: About 2 µs a state and for each of its ancestors that has not had its turn.
        """
        written = self._written()
        parent, label = self.parent.tolist(), self.label.tolist()
        texts: dict[int, str] = {0: "start"}

        def text(state: int) -> str:
            missing = []
            while state not in texts:
                missing.append(state)
                state = parent[state]
            known = texts[state]
            for each in reversed(missing):
                known = texts[each] = known + written[label[each]]
            return known

        return np.array([identifier(text(each)) >> 96 for each in wanted.tolist()], np.uint64)

    def levels(self) -> list[NDArray[np.intp]]:
        """The states by their distance from the start state, in transitions."""
        depth = np.zeros(len(self), np.int32)
        waiting = np.arange(1, len(self))
        # Parents come first, so a pass settles what is one transition further down.
        above = np.zeros(len(self), bool)
        above[0] = True
        found: list[NDArray[np.intp]] = [np.zeros(1, np.intp)]
        while len(waiting):
            is_next = above[self.parent[waiting]]
            now = waiting[is_next]
            depth[now] = len(found)
            above[now] = True
            found.append(now)
            waiting = waiting[~is_next]
        return found

    def subtree_sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each state the sum of a value over it and everything below it."""
        sums = values.astype(np.float64)
        for states in reversed(self.levels()[1:]):
            np.add.at(sums, self.parent[states], sums[states])
        return sums

    def _written(self) -> list[str]:
        return [state_key([label])[len("start") :] for label in self.labels]


def _numbered(part: str, labels: dict[Symbol, int]) -> tuple[int, ...]:
    text = part.lstrip("/")
    label: Symbol = (None, None) if text == "*" else ("", text)
    number = labels.setdefault(label, len(labels))
    assert not number >> _WIDTH, "more names than a transition's number has room for"
    return (LOOP, number) if part.startswith("//") else (number,)


def _frozen(values: array[int]) -> NDArray[np.int32]:
    found = np.array(values, np.int32)
    found.setflags(write=False)
    return found

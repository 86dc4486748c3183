"""One execution of the automaton: which visits are handed over, whatever the ring.

`pathcast_papers.dht.automaton` defines a visit; this is its `visits` for hundreds of thousands of
states and a thousand documents: each (source, state, element) is handed over once, and done where
(state, element) was not done before. It is kept for each label path once.

Example:
    >>> table = StateTable.of(["//a"])
    >>> documents = Documents.of([b"<a><a/></a>"], table.labels)
    >>> trace = Trace.of(table, documents)
    >>> [table.key(state) for state in trace.state]
    ['start', 'start/$/a', 'start/$', 'start/$/a', 'start/$']
    >>> trace.source.tolist(), trace.node.tolist()
    ([-1, 0, 0, 2, 2], [0, 1, 1, 2, 2])

Source: 000, section 5.2, Procedure 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pathcast_lab.bench.dht.documents import Documents
from pathcast_lab.bench.dht.state_table import ANY, LOOP, NONE, StateTable

__all__ = ["Trace"]


@dataclass(frozen=True, eq=False)
class Trace:
    """Visits that are handed over, sources before targets, level after level.

    Attributes:
        table: The automaton.
        documents: What it was run over.
        node: Label path of each visit.
        state: What is visited.
        source: The visit that it comes from; -1 for that of the start state.
        is_done: Whether it is the first of this state at this label path.
    """

    table: StateTable
    documents: Documents
    node: NDArray[np.int32]
    state: NDArray[np.int32]
    source: NDArray[np.int32]
    is_done: NDArray[np.bool_]

    @classmethod
    def of(cls, table: StateTable, documents: Documents, length: int = 0) -> Trace:
        """Runs the automaton, a level of all label paths at a time.

        Args:
            table: The automaton.
            documents: What it is run over.
            length: l; visits are handed over at every (l + 1)-th level.

        Cost: About 0.5 µs a visit and child of its label path; 50 bytes a visit.
        """
        step = _Step(table, documents)
        none = np.zeros(1, np.int32)
        levels = [(none, none, np.full(1, -1), np.ones(1, bool))]
        begins = 0
        while len(levels[-1][0]):
            node, state, _, is_done = levels[-1]
            source = np.flatnonzero(is_done)
            node, state = node[source], state[source]
            for level in range(length + 1):
                node, state, row = step(node, state)
                source = source[row]
                if level:
                    # A run comes to the same state in several ways, but hands it over once.
                    first = _first(source, node, state)
                    node, state, source = node[first], state[first], source[first]
            is_done = np.zeros(len(node), bool)
            is_done[_first(node, state)] = True
            source = source + begins
            begins += len(levels[-1][0])
            levels.append((node, state, source, is_done))
        nodes, states, sources, done = (np.concatenate(each) for each in zip(*levels, strict=True))
        return cls(table, documents, nodes, states, sources.astype(np.int32), done)

    def __len__(self) -> int:
        return len(self.node)

    def first_queries(self, count: int) -> Trace:
        """The visits there would be with the first queries only."""
        is_kept = self.state < self.table.sizes[count]
        source = (np.cumsum(is_kept) - 1)[self.source[is_kept]].astype(np.int32)
        source[0] = -1
        node, state, is_done = (each[is_kept] for each in (self.node, self.state, self.is_done))
        return Trace(self.table, self.documents, node, state, source, is_done)

    def done(self) -> NDArray[np.intp]:
        """For each visit the one that was done of the same state and label path."""
        key = self.node.astype(np.int64) * len(self.table) + self.state
        _, first, back = np.unique(key, return_index=True, return_inverse=True)
        done: NDArray[np.intp] = first[back]
        return done

    def levels(self) -> list[slice]:
        """The visits of each level that visits are handed over at, as slices."""
        level = self.documents.level[self.node]
        ends = [0, *(np.flatnonzero(np.diff(level)) + 1).tolist(), len(self)]
        return [slice(begin, end) for begin, end in pairwise(ends)]


def _first(*columns: NDArray[np.integer]) -> NDArray[np.intp]:
    """The first of all equal rows, in order."""
    if not len(columns[0]):
        return np.zeros(0, np.intp)
    key = columns[0].astype(np.int64)
    for column in columns[1:]:
        key = key * (int(column.max()) + 1) + column
    return np.sort(np.unique(key, return_index=True)[1])


class _Step:
    """From visits of label paths to those of the paths one name longer."""

    def __init__(self, table: StateTable, documents: Documents) -> None:
        self._loop, self._any = table.child(LOOP), table.child(ANY)
        self._is_loop = table.label == LOOP
        self._name = documents.name
        # Transitions by state and name, in order.
        named = np.flatnonzero(table.label > ANY)
        keys = table.parent[named].astype(np.int64) << 20 | table.label[named]
        order = np.argsort(keys)
        self._keys, self._targets = keys[order], named[order].astype(np.int32)
        self._has_names = np.zeros(len(table), bool)
        self._has_names[table.parent[named]] = True
        # Label paths by the one above them.
        self._below = np.argsort(documents.above[1:], kind="stable").astype(np.int32) + 1
        counts = np.bincount(documents.above[1:], minlength=len(documents.above))
        self._ends = np.cumsum(counts)
        self._counts = counts

    def __call__(
        self, node: NDArray[np.int32], state: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        loop = self._loop[state]
        leads = self._has_names[state] | (self._any[state] >= 0) | (loop >= 0)
        leads |= self._is_loop[state]
        rows = np.flatnonzero(leads & (self._counts[node] > 0))
        counts = self._counts[node[rows]]
        row = np.repeat(rows, counts)
        begins = np.repeat(np.cumsum(counts) - counts, counts)
        first = np.repeat(self._ends[node[rows]] - counts, counts)
        below = self._below[first + np.arange(len(row)) - begins]
        here, looping = state[row], loop[row]
        name = self._name[below]
        has_loop = looping >= 0
        behind = np.where(has_loop, looping, 0)
        found = [
            self._by_name(here, name),
            self._any[here],
            np.where(self._is_loop[here], here, NONE),
            np.where(has_loop, self._by_name(behind, name), NONE),
            np.where(has_loop, self._any[behind], NONE),
            looping,
        ]
        kept = [each >= 0 for each in found]
        return (
            np.concatenate([below[is_kept] for is_kept in kept]),
            np.concatenate([each[is_kept] for each, is_kept in zip(found, kept, strict=True)]),
            np.concatenate([row[is_kept] for is_kept in kept]),
        )

    def _by_name(self, state: NDArray[np.int32], name: NDArray[np.int32]) -> NDArray[np.int32]:
        found = np.full(len(state), NONE, np.int32)
        asked = np.flatnonzero(self._has_names[state])
        keys = state[asked].astype(np.int64) << 20 | name[asked]
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        is_there = self._keys[at] == keys
        found[asked[is_there]] = self._targets[at[is_there]]
        return found

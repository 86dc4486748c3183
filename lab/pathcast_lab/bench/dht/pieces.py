"""The automaton cut by what its parts cost, not by a length.

The states near the start, which every document visits, are the *top*: they are few, and kept
everywhere. What hangs below is cut into *pieces* of about the same cost, each kept by one peer and
run there as one automaton. So a publisher runs the top over its document, and a piece that is
entered gets one message: where it is entered in which states, and of the document what lies below.

The cost of a state is half its share of all states, half its share of the visits of a sample of
documents. The target of an epsilon goes with its source.

Example:
    >>> from pathcast_lab.bench.dht.state_table import StateTable
    >>> table = StateTable.of(["/a/b/c", "/a/b/d", "/a/e//f"])
    >>> pieces = cut(table, np.array([9.0, 9, 3, 1, 1, 5, 0, 0]), np.ones(8, np.int64), count=2)
    >>> [(table.key(state), int(pieces.number[state])) for state in range(len(table))]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('start', -1), ('start/a', -1), ('start/a/b', -1), ('start/a/b/c', 0), ('start/a/b/d', 1),
     ('start/a/e', -1), ('start/a/e/$', -1), ('start/a/e/$/f', 1)]

It is not the paper's: 000, section 3, cuts by length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pathcast.dht.piece_records import (
    NOTHING,
    START_PIECE,
    PieceLink,
    PieceRecord,
    encoded_piece,
)
from pathcast_lab.bench.dht.state_table import LOOP, StateTable

__all__ = ["TOP", "Pieces", "cut"]

TOP: Final = -1
"""The number of what is kept everywhere."""

_FINENESS: Final = 4.0
"""What costs more than this part of a piece is cut further: then pieces can be made even."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """A cut automaton.

    Attributes:
        table: Its states.
        number: The piece of each state; `TOP` for the top.
        root: A state of each piece, whose key says which peer keeps it.
    """

    table: StateTable
    number: NDArray[np.int32]
    root: NDArray[np.intp]

    def records(self) -> dict[str, bytes]:
        """What the peers of the pieces hold before there are queries, by key.

        What is read behind a link is not said: queries do as they pass.
        """
        table, number = self.table, self.number
        is_root = number != TOP
        is_root[1:] &= number[table.parent[1:]] == TOP
        keys = [table.key(int(root)) for root in self.root]
        roots: dict[str, list[str]] = {key: [] for key in keys}
        links = {}
        for state in np.flatnonzero(is_root):
            piece = keys[number[state]]
            roots[piece].append(table.key(int(state)))
            links[roots[piece][-1]] = PieceLink(piece, NOTHING)
        found = {piece: PieceRecord(tuple(its)) for piece, its in roots.items()}
        found[START_PIECE] = PieceRecord(links=links)
        return {piece: encoded_piece(record) for piece, record in found.items()}


def cut(table: StateTable, load: NDArray[np.float64], hit: NDArray[np.int64], count: int) -> Pieces:
    """Cut an automaton.

    Args:
        table: Its states.
        load: Visits of each, by a sample of documents.
        hit: Documents of the sample that visit each.
        count: About how many pieces.

    Returns:
        Pieces of about equal cost. What as many documents visit, by powers of two, is cut together,
        so that a document enters few; among these, neighbours stay together.

    Cost: O(states log states).
    """
    cost = load / max(load.sum(), 1.0) + 1 / len(table)
    below = table.subtree_sums(cost)
    is_top = below > below[0] / (_FINENESS * count)
    # What is reached without an element goes with its source.
    loops = np.flatnonzero(table.label == LOOP)
    is_top[loops] |= is_top[table.parent[loops]]
    is_top[0] = True
    roots = np.flatnonzero(~is_top & is_top[table.parent])
    band = np.frexp(hit[roots].astype(np.float64))[1]
    order = np.lexsort((_preorder(table)[roots], -band))
    roots = roots[order]
    ends = np.cumsum(below[roots])
    wanted = ends[-1] / count if len(roots) else 1.0
    piece = ((ends - below[roots] / 2) / wanted).astype(np.int32)
    _, first, numbers = np.unique(piece, return_index=True, return_inverse=True)
    number = np.full(len(table), TOP, np.int32)
    number[roots] = numbers
    for states in table.levels()[1:]:
        inner = states[~is_top[states] & ~is_top[table.parent[states]]]
        number[inner] = number[table.parent[inner]]
    return Pieces(table, number, roots[first])


def _preorder(table: StateTable) -> NDArray[np.float64]:
    """Numbers of states, a state before what is below it, neighbours beside one another."""
    sizes = table.subtree_sums(np.ones(len(table)))
    found = np.zeros(len(table))
    for states in table.levels()[1:]:
        states = states[np.argsort(table.parent[states], kind="stable")]
        before = np.cumsum(sizes[states]) - sizes[states]
        _, first, place = np.unique(table.parent[states], return_index=True, return_inverse=True)
        found[states] = found[table.parent[states]] + 1 + before - before[first][place]
    return found

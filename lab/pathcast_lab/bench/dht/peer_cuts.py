"""The automaton in the pieces that peers cut it into while its queries come, one after another.

A query goes to its piece by links, and a piece that has more queries than it may is cut, by
`pathcast.dht.piece_cutting.part_of` and `pathcast.dht.piece_records.moved`. Nothing is sent, so a
million queries take about a minute.

Example:
    >>> from pathcast_lab.bench.dht.state_table import StateTable
    >>> table = StateTable.of([f"/a/b{n}/c" for n in range(12)])
    >>> pieces = cut_by_peers(table, queries_max=6)
    >>> [table.key(root) for root in pieces.root], int((pieces.number == TOP).sum())
    (['start/a/b0', 'start/a/b0/c'], 10)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from pathcast.dht.identifiers import state_key
from pathcast.dht.piece_cutting import part_of
from pathcast.dht.piece_records import (
    START_PIECE,
    Entry,
    PieceRecord,
    covering,
    moved,
    with_link_to,
)
from pathcast_lab.bench.dht.pieces import TOP, Pieces
from pathcast_lab.bench.dht.state_table import StateTable

__all__ = ["cut_by_peers"]

_ENTRY: Final = Entry("", "", "", "", (), True)
_AGAIN: Final = 1.1
"""A piece that could not be cut is tried again when it has so many times the queries."""


def cut_by_peers(table: StateTable, queries_max: int) -> Pieces:
    """Return the pieces of an automaton whose queries came in their order.

    Args:
        table: Its states.
        queries_max: Queries of a piece before it is cut.

    Cost: 60 µs a query.
    """
    keys = _keys(table)
    records = {START_PIECE: PieceRecord()}
    vain: dict[str, float] = {}
    sizes = {START_PIECE: 0}
    for number, state in enumerate(table.final.tolist()):
        key = keys[state]
        piece = START_PIECE
        while (link := covering(key, records[piece].links)) is not None:
            piece = records[piece].links[link].piece
        records[piece].entries.setdefault(key, {})[str(number)] = _ENTRY
        sizes[piece] += 1
        waiting = [piece]
        while waiting:
            piece = waiting.pop()
            if sizes[piece] <= max(queries_max, vain.get(piece, 0)):
                continue
            roots = part_of(records[piece], piece, {})
            if not roots:
                vain[piece] = _AGAIN * sizes[piece]
                continue
            into = roots[0]
            assert into not in records, "no key is given to two pieces"
            _cut(records, piece, roots, into)
            for each in (piece, into):
                sizes[each] = sum(map(len, records[each].entries.values()))
                waiting.append(each)
    return _numbered(table, keys, records)


def _cut(records: dict[str, PieceRecord], piece: str, roots: list[str], into: str) -> None:
    after = moved(records[piece], roots, into)
    records[into] = after.leaving.pop(into)
    records[piece] = after
    start = records[START_PIECE]
    for root in roots:
        if piece != START_PIECE and root in start.links and start.links[root].piece == piece:
            start = with_link_to(start, root, into)
    records[START_PIECE] = start


def _numbered(table: StateTable, keys: list[str], records: dict[str, PieceRecord]) -> Pieces:
    names = [name for name in records if name != START_PIECE]
    numbers = {name: number for number, name in enumerate(names)}
    piece_of = [START_PIECE] * len(table)
    for state in range(1, len(table)):
        piece = piece_of[table.parent[state]]
        # A state may have gone on from the piece that it went to first.
        while (link := records[piece].links.get(keys[state])) is not None:
            piece = link.piece
        piece_of[state] = piece
    number = np.array([numbers.get(piece, TOP) for piece in piece_of], np.int32)
    state_of = {key: state for state, key in enumerate(keys)}
    return Pieces(table, number, np.array([state_of[name] for name in names], np.intp))


def _keys(table: StateTable) -> list[str]:
    """The keys of all states."""
    written = [state_key([label])[len(START_PIECE) :] for label in table.labels]
    keys = [START_PIECE]

    def rest() -> Iterator[str]:
        for state in range(1, len(table)):
            yield keys[table.parent[state]] + written[table.label[state]]

    for key in rest():
        keys.append(key)
    return keys

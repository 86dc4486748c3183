"""The tables of takers of sections as one, sorted, by ranges: none of them is held as a whole.

sections, each sorted -> ranges of subscribers -> one table on disk, a record batch a range
-> for each section, places of its rows in it
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.spark.generations import TAKERS, TAKERS_SCHEMA, Generation
from pathcast.spark.taking_up import read_ipc, write_ipc

if TYPE_CHECKING:
    from pathcast.spark.storage import Storage

RANKS: Final = "ranks.arrow"
RANK: Final = "rank"
RANKS_SCHEMA: Final = pa.schema([pa.field(RANK, pa.uint32(), nullable=False)])

RANGE_ROWS: Final = 500_000
"""Rows that are sorted at once, about."""

_SAMPLED: Final = 64
"""Rows that are looked at to find a border, for each range."""

_KEYS: Final = ("subscriber", "subscription_id")


def merge_takers(storage: Storage, generation: Generation) -> None:
    """Writes the table of takers of a generation in sections, and the ranks of each section.

    Args:
        storage: The output.
        generation: Its sections are there; its table is not.

    Cost: 2 µs a row; the memory of a range, and four bytes a row.
    """
    pieces = generation.pieces()
    with ExitStack() as stack:
        tables: list[pa.Table] = []
        for piece in pieces:
            [path] = stack.enter_context(piece.local(storage, [TAKERS]))
            tables.append(read_ipc(path).combine_chunks())
        ranks = [np.zeros(len(table), dtype=np.uint32) for table in tables]
        handle = stack.enter_context(storage.create(f"{generation.folder}/{TAKERS}"))
        writer = stack.enter_context(pa.ipc.new_file(handle, TAKERS_SCHEMA))
        base = 0
        for bounds in _ranges(tables):
            parts = [t.slice(a, b - a) for t, (a, b) in zip(tables, bounds, strict=True)]
            joined = pa.concat_tables(parts)
            order = pc.sort_indices(joined, [(name, "ascending") for name in _KEYS]).to_numpy()
            writer.write_table(joined.take(pa.array(order)).combine_chunks())
            places = np.empty(len(order), dtype=np.uint32)
            places[order] = np.arange(base, base + len(order), dtype=np.uint32)
            base += len(order)
            first = 0
            for of_section, (start, end) in zip(ranks, bounds, strict=True):
                of_section[start:end] = places[first : first + end - start]
                first += end - start
    for piece, of_section in zip(pieces, ranks, strict=True):
        table = pa.table([pa.array(of_section)], schema=RANKS_SCHEMA)
        write_ipc(storage, f"{piece.folder}/{RANKS}", table)


def _ranges(tables: Sequence[pa.Table]) -> Iterator[list[tuple[int, int]]]:
    """Where each range begins and ends in each table."""
    rows = sum(len(table) for table in tables)
    count = max(1, rows // RANGE_ROWS)
    step = max(1, rows // (count * _SAMPLED))
    sample = sorted(_key(table, at) for table in tables for at in range(0, len(table), step))
    starts = [0] * len(tables)
    for number in range(1, count):
        border = sample[len(sample) * number // count]
        ends = [_before(table, border) for table in tables]
        yield list(zip(starts, ends, strict=True))
        starts = ends
    yield [(start, len(table)) for start, table in zip(starts, tables, strict=True)]


def _before(table: pa.Table, border: tuple[str, ...]) -> int:
    """Rows of a sorted table that come before a border."""
    return bisect.bisect_left(range(len(table)), border, key=lambda at: _key(table, at))


def _key(table: pa.Table, at: int) -> tuple[str, ...]:
    return tuple(table.column(name)[at].as_py() for name in _KEYS)

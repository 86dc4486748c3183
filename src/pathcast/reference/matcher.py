"""The matcher of the reference engine: door, automaton, numbers, for every message of a batch.

It runs on the caller's thread whatever `MatcherOptions.threads` says, and compiles nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from pathcast.errors import MessageError, PathcastError
from pathcast.limits import Limits
from pathcast.message import MessageTree, parse_message
from pathcast.model import BatchAnswer, BatchStats, OverBudget


class TreeFilter(Protocol):
    """An index or a snapshot."""

    def match(self, trees: Sequence[MessageTree]) -> tuple[list[list[int]], Sequence[str]]:
        """Numbers of the satisfied queries of each message, and number -> id."""


class ReferenceMatcher:
    """Matches batches; may be called from several threads.

    Args:
        filter_: The queries.
        limits: What one message may cost.
    """

    def __init__(self, filter_: TreeFilter, limits: Limits) -> None:
        self._filter = filter_
        self._limits = limits

    def match(self, messages: pa.Array, *, encoding: str | None = None) -> BatchAnswer:
        """Matches every message; see `pathcast.engine.backend.MatcherBackend`."""
        started = time.perf_counter_ns()
        rows: list[list[int] | None] = [None] * len(messages)
        trees: list[MessageTree] = []
        positions: list[int] = []
        refusals: list[tuple[int, PathcastError]] = []
        size = 0
        for position, value in enumerate(messages):
            message: bytes | None = value.as_py()
            if message is None:
                continue
            size += len(message)
            rows[position] = []
            try:
                trees.append(parse_message(message, self._limits, encoding))
                positions.append(position)
            except MessageError as error:
                refusals.append((position, error))
        parsed = time.perf_counter_ns()
        numbers, query_ids = self._filter.match(trees)
        matched = time.perf_counter_ns()
        for position, row in zip(positions, numbers, strict=True):
            rows[position] = row
        matches = pa.array(rows, pa.list_(pa.uint32()))
        stats = BatchStats(
            messages=len(trees) + len(refusals),
            bytes=size,
            refused=len(refusals),
            matches=sum(len(row) for row in numbers),
            nodes=sum(len(tree) + len(tree.attribute_name) for tree in trees),
            nfa_messages=len(trees),
            parsing_ns=parsed - started,
            matching_ns=matched - parsed,
            collecting_ns=time.perf_counter_ns() - matched,
        )
        nothing = OverBudget(pa.array([], pa.int64()), pa.array([], pa.uint32()))
        return BatchAnswer(matches, refusals, nothing, stats, query_ids)

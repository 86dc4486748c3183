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
from pathcast.message import MessageTree
from pathcast.model import BatchStats, OverBudget, StoredAnswer
from pathcast_papers.filtering.query_table import Satisfied
from pathcast_papers.message import parse_message


class TreeFilter(Protocol):
    """An index or a snapshot."""

    def match(
        self, trees: Sequence[MessageTree], limits: Limits
    ) -> tuple[list[Satisfied], Sequence[str]]:
        """What each message satisfies, and number -> id."""


class ReferenceMatcher:
    """Matches batches; may be called from several threads.

    Args:
        filter_: The queries.
        limits: What one message may cost.
    """

    def __init__(self, filter_: TreeFilter, limits: Limits) -> None:
        self._filter = filter_
        self._limits = limits

    def match(
        self, messages: pa.Array | list[bytes | None], *, encoding: str | None = None
    ) -> StoredAnswer:
        """Matches every message."""
        started = time.perf_counter_ns()
        rows: list[list[int] | None] = [None] * len(messages)
        trees: list[MessageTree] = []
        positions: list[int] = []
        refusals: list[tuple[int, PathcastError]] = []
        size = 0
        bodies = messages if isinstance(messages, list) else messages.to_pylist()
        for position, message in enumerate(bodies):
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
        satisfied, query_ids = self._filter.match(trees, self._limits)
        matched = time.perf_counter_ns()
        pairs: list[tuple[int, int, bool]] = []
        for position, each in zip(positions, satisfied, strict=True):
            rows[position] = each.numbers
            found = [(number, False) for number in each.over_budget]
            found += [(number, True) for number in each.undecided]
            pairs += [(position, number, by_message) for number, by_message in sorted(found)]
        matches = pa.array(rows, pa.list_(pa.uint32()))
        stats = BatchStats(
            messages=len(trees) + len(refusals),
            bytes=size,
            refused=len(refusals),
            matches=sum(len(each.numbers) for each in satisfied),
            nodes=sum(len(tree) + len(tree.attribute_name) for tree in trees),
            nfa_messages=len(trees),
            evaluations=sum(each.evaluations for each in satisfied),
            steps=sum(each.steps for each in satisfied),
            verdicts=len(pairs),
            parsing_ns=parsed - started,
            matching_ns=matched - parsed,
            collecting_ns=time.perf_counter_ns() - matched,
        )
        over_budget = OverBudget(
            pa.array([row for row, _, _ in pairs], pa.int64()),
            pa.array([number for _, number, _ in pairs], pa.uint32()),
            pa.array([by_message for _, _, by_message in pairs], pa.bool_()),
        )
        undecided = over_budget if pairs else None
        return StoredAnswer(matches, refusals, undecided, stats, query_ids)

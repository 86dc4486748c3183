"""Queries in partitions, in one process: an index each, messages go where they can match.

A cluster has a partition a worker; this has an index a partition. It gives the answers of one
`Registry`, whatever the placement, while queries come and go.

Example:
    >>> from pathcast import Query
    >>> from pathcast_lab.bench.placement.hashed import HashPlacement
    >>> index = PartitionedIndex(HashPlacement(3), engine="reference")
    >>> report = index.add([Query("q1", "/a"), Query("q2", "//b"), Query("q3", "/a[")])
    >>> report.accepted, index.match([b"<a><b/></a>", b"<b/>"]).query_ids
    (2, [['q1', 'q2'], ['q2']])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from oracles.engines import made_by
from pathcast.engine.messages import Messages, joined, message_column
from pathcast.engine.rows import Row, one_or_many, report_on, usable_namespaces, usable_rows
from pathcast.errors import DuplicateQueryError, PathcastError
from pathcast.limits import Limits
from pathcast.model import BatchStats, RegisterReport
from pathcast.partition.placement import Touched
from pathcast.registry import Registry
from pathcast_lab.bench.placement.placing import Placement


@dataclass(frozen=True)
class PartitionedResult:
    """What a batch of messages satisfies.

    Attributes:
        query_ids: For each message the ids of the satisfied queries, sorted.
        errors: Place in the batch -> why the door refused the message.
        verdicts: Place in the batch -> query id -> why it could not be decided.
        touched: Where the messages were sent.
        stats: Counters of all partitions together: a message counts in each that it was sent to.
    """

    query_ids: list[list[str]]
    errors: Mapping[int, PathcastError]
    verdicts: Mapping[int, Mapping[str, PathcastError]]
    touched: Touched
    stats: BatchStats


class PartitionedIndex:
    """Standing queries in partitions.

    Args:
        placement: Says where queries go and messages are sent.
        engine: As for `Registry`.
        limits: What one message may cost in one partition.
        namespaces: As for `Registry`.
        threads: As for `Registry`.
    """

    def __init__(
        self,
        placement: Placement,
        *,
        engine: str | None = None,
        limits: Limits | None = None,
        namespaces: Mapping[str, str] | None = None,
        threads: int | None = None,
    ) -> None:
        self._namespaces = usable_namespaces(namespaces)
        self._limits = limits
        self._placement = placement
        self._new: Callable[[], Registry] = lambda: made_by(
            engine, Registry, limits, namespaces, threads=threads
        )
        self._indexes = [self._new() for _ in range(placement.partitions)]
        self._partition_of: dict[str, int] = {}

    def add(self, queries: Row | Iterable[Row]) -> RegisterReport:
        """Adds one query or many, each to its partition; see `Registry.add`.

        Cost: twice that of `Registry`, as it has to be known what they ask for first.
        """
        rows, is_one = one_or_many(queries)
        usable, errors = usable_rows(rows)
        # What queries ask for is told by the product, whatever answers.
        looked_at = Registry(limits=self._limits, namespaces=self._namespaces)
        report = looked_at.add(usable)
        taken = dict(report.errors)
        for place, query in enumerate(usable):
            if place not in taken and query.id in self._partition_of:
                # The index of one partition would not know.
                taken[place] = DuplicateQueryError("query.duplicate", id=query.id)
        looked_at.remove(usable[place].id for place in taken if place not in report.errors)
        population = looked_at.population()
        placed = self._placement.place(population).tolist()
        self._partition_of.update(zip(population.query_ids, placed, strict=True))
        into: dict[int, list[Row]] = {}
        for place, query in enumerate(usable):
            if place not in taken:
                into.setdefault(self._partition_of[query.id], []).append(query)
        for partition, members in into.items():
            self._indexes[partition].add(members)
        report = RegisterReport.of(usable, taken)
        return report_on(rows, errors, report, self._namespaces, is_one=is_one)

    def remove(self, ids: Iterable[str]) -> None:
        """Takes queries out, which are known."""
        for name in ids:
            self._indexes[self._partition_of.pop(name)].remove([name])

    def match(self, messages: Messages) -> PartitionedResult:
        """Matches every message, as for `Registry.match`, in the partitions it can match."""
        column = message_column(messages)
        whole = joined(column.arrays)
        touched = self._placement.touched(messages)
        count = len(whole)
        found: list[list[str]] = [[] for _ in range(count)]
        errors = {**touched.errors, **column.refusals}
        verdicts: dict[int, dict[str, PathcastError]] = {}
        stats = BatchStats()
        # What was text before is UTF-8 whatever it declares: the matcher is told by the type.
        text = whole if column.encoding is None else whole.cast(pa.large_binary())
        text = text if column.encoding is None else text.view(pa.large_string())
        for partition, matcher in enumerate(self._indexes):
            rows = touched.rows_of(partition)
            if not len(rows):
                continue
            batch = matcher.match(text.take(pa.array(rows)))
            stats += batch.stats
            for row, result in zip(rows.tolist(), batch, strict=True):
                if result.error is not None:
                    errors.setdefault(row, result.error)
                found[row] += result.query_ids
                if result.verdicts:
                    verdicts.setdefault(row, {}).update(result.verdicts)
        return PartitionedResult(
            [sorted(names) for names in found], errors, verdicts, touched, stats
        )

    def __len__(self) -> int:
        return len(self._partition_of)

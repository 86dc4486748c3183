"""What delivers in one process, without Spark and without files: the engine's time, and the truth.

Reading the messages is not part of these times; everything from an Arrow array of messages to
numbers of queries, or to rows of deliveries, is.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.model import Query
from pathcast.registry import Registry, Snapshot
from pathcast.workload.subscriptions import GeneratedSubscription as Row
from pathcast_lab.bench.checking import THREADS, counts
from pathcast_lab.bench.pipeline.inputs import as_subscriptions
from pathcast_lab.bench.timing import undisturbed

ROWS_A_BATCH = 1024
"""As the pipeline reads them."""


@dataclass(frozen=True)
class EnginePass:
    """One pass over all messages.

    Attributes:
        total_ns: Wall time of the calls.
        found: Matches, or deliveries.
        parts_ns: The engine's own account: part -> time. What it leaves of the total is making
            Arrow columns and, of a broker, rows.
    """

    total_ns: int
    found: int
    parts_ns: Mapping[str, int]


class FilterEngine:
    """The kernel on one thread: numbers of queries."""

    name = "kernel, 1 thread"

    def __init__(self, rows: Sequence[Row]) -> None:
        index = Registry(threads=THREADS)
        report = index.add([Query(row.query_id, row.query) for row in rows])
        for error in report.rejected.values():
            raise error
        self._snapshot: Snapshot = index.freeze()

    def timed(self, folder: Path) -> EnginePass:
        """A pass of a new matcher, as that of a new worker."""
        matcher = self._snapshot
        total_ns = found = 0
        parts: Counter[str] = Counter()
        for batch in _batches(folder):
            with undisturbed():
                started = time.perf_counter_ns()
                matched = matcher.match(batch.column("message"))
                assert len(matched.matches) == len(batch)
                total_ns += time.perf_counter_ns() - started
            found += sum(counts(matched))
            stats = matched.stats
            parts["parse"] += stats.parsing_ns
            parts["match"] += stats.matching_ns
            parts["collect"] += stats.collecting_ns
        return EnginePass(total_ns, found, dict(parts))


class ResultEngine:
    """A registry on so many threads: rows with results."""

    def __init__(self, rows: Sequence[Row], threads: int) -> None:
        self.name = f"rows, {threads} thread" + "s" * (threads > 1)
        self._registry = Registry(threads=threads)
        report = self._registry.add(as_subscriptions(rows))
        for error in report.rejected.values():
            raise error

    def timed(self, folder: Path) -> EnginePass:
        """A pass."""
        total_ns = found = 0
        parts: Counter[str] = Counter()
        for batch in _batches(folder):
            with undisturbed():
                started = time.perf_counter_ns()
                made = self._registry.deliver(batch.column("message"), batch.column("message_id"))
                found += made.rows.num_rows
                total_ns += time.perf_counter_ns() - started
            parts["parse"] += made.stats.parsing_ns
            parts["match"] += made.stats.matching_ns
            parts["build"] += made.stats.customising_ns
        return EnginePass(total_ns, found, dict(parts))


def _batches(folder: Path) -> Iterator[pa.RecordBatch]:
    for file in sorted(folder.glob("*.parquet")):
        yield from pq.ParquetFile(file).iter_batches(ROWS_A_BATCH)

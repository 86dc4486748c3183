"""What delivers in one process, without Spark and without files: the engine's time, and the truth.

Reading the messages is not part of these times; everything from an Arrow array of messages to
numbers of queries, or to rows of deliveries, is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast import Broker
from pathcast.bench.checking import THREADS, counts
from pathcast.bench.filtering import ENGINE
from pathcast.bench.pipeline.inputs import as_subscriptions
from pathcast.bench.timing import undisturbed
from pathcast.engine import QueryIndex, Snapshot
from pathcast.model import Query
from pathcast.workload.subscriptions import Subscription as Row

ROWS_A_BATCH = 1024
"""As the pipeline reads them."""


class FilterEngine:
    """The kernel on one thread; a pass gives its time in ns and its matches."""

    name = "kernel, 1 thread"

    def __init__(self, rows: Sequence[Row]) -> None:
        index = QueryIndex(engine=ENGINE)
        report = index.register([Query(row.query_id, row.query) for row in rows])
        for error in report.rejected.values():
            raise error
        self._snapshot: Snapshot = index.freeze()

    def timed(self, folder: Path) -> tuple[int, int]:
        """A pass of a new matcher, as that of a new worker."""
        matcher = self._snapshot.matcher(threads=THREADS)
        total_ns = matches = 0
        for batch in _batches(folder):
            with undisturbed():
                started = time.perf_counter_ns()
                found = matcher.match_arrow(batch.column("message"))
                total_ns += time.perf_counter_ns() - started
            matches += sum(counts(found))
        return total_ns, matches


class ResultEngine:
    """A broker that makes rows; a pass gives its time in ns and its deliveries."""

    def __init__(self, rows: Sequence[Row], threads: int) -> None:
        self.name = f"rows, {threads} thread" + "s" * (threads > 1)
        self._broker = Broker(engine=ENGINE, threads=threads)
        report = self._broker.subscribe(as_subscriptions(rows))
        for error in report.rejected.values():
            raise error

    def timed(self, folder: Path) -> tuple[int, int]:
        """A pass."""
        total_ns = deliveries = 0
        for batch in _batches(folder):
            with undisturbed():
                started = time.perf_counter_ns()
                found = self._broker.process_batch(batch.column("message"), batch.column("id")).rows
                total_ns += time.perf_counter_ns() - started
            deliveries += found.num_rows
        return total_ns, deliveries


def _batches(folder: Path) -> Iterator[pa.RecordBatch]:
    for file in sorted(folder.glob("*.parquet")):
        yield from pq.ParquetFile(file).iter_batches(ROWS_A_BATCH)

"""`disseminate`: the stage of customised delivery on local Spark, beside the broker on one thread.

Subscriptions are FLWRs to the sample domains, messages those of the domains in turn. Both give
delivery rows with ids and results; the stage adds Parquet, the JVM, the way to the Python workers
and back. What can be had at most is one thread's throughput times the number of workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from pathcast import Broker
from pathcast.bench.checking import THREADS
from pathcast.bench.customise import customise_messages, customise_texts
from pathcast.bench.customising import subscriptions_of
from pathcast.bench.definitions import SparkDefinition, SparkSet
from pathcast.bench.filtering import ENGINE
from pathcast.bench.pipeline import (
    ROWS_A_BATCH,
    SparkResult,
    bench_session,
    measure_stage,
    write_messages,
)
from pathcast.bench.timing import undisturbed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_disseminate(
    definition: SparkDefinition,
    chosen: SparkSet,
    say: Callable[[str], None],
    session: SparkSession | None = None,
) -> Iterator[SparkResult]:
    """The one case.

    Args:
        definition: What is measured.
        chosen: How much of it.
        say: Takes progress.
        session: A session to use, and to leave running; one of `definition.master` if not given.

    Raises:
        WrongCountError: The stage gave other deliveries than the broker.
        JavaMissingError: There is no Java that Spark can run on.
        MissingDependencyError: PySpark is not installed.
    """
    case = f"domains Q={chosen.queries:,}"
    say(f"{case}, {chosen.messages:,} messages")
    texts = customise_texts(chosen.queries, seed=definition.seed)
    with TemporaryDirectory(prefix="pathcast-bench-") as directory:
        snapshot = Path(directory) / "subscriptions.snapshot"
        broker = Broker(engine=ENGINE, threads=THREADS)
        report = broker.subscribe(subscriptions_of(texts))
        if report.rejected:
            raise next(iter(report.rejected.values()))
        broker.freeze().save(snapshot)
        distinct = customise_messages("domains", chosen.distinct, seed=definition.seed)
        parquet = Path(directory) / "messages.parquet"
        size = write_messages(parquet, distinct, chosen.messages)
        spark = session or bench_session(definition.master, "pathcast bench disseminate")
        try:
            stage = _Stage(spark, parquet, snapshot)
            yield measure_stage(
                "disseminate", case, chosen, size, lambda: publish_all(broker, parquet), stage
            )
        finally:
            if session is None:
                spark.stop()


def publish_all(broker: Broker, parquet: Path) -> tuple[int, int]:
    """Time of the calls that give delivery rows, and their number; reading the file is apart."""
    total_ns = deliveries = 0
    for batch in pq.ParquetFile(parquet).iter_batches(ROWS_A_BATCH):
        ids, messages = batch.columns
        with undisturbed():
            started = time.perf_counter_ns()
            rows = broker.process_batch(messages, ids).rows
            total_ns += time.perf_counter_ns() - started
        deliveries += rows.num_rows
    return total_ns, deliveries


class _Stage:
    """The stage of one session, written to nowhere.

    Args:
        spark: The session.
        parquet: The messages.
        snapshot: The subscriptions.
    """

    def __init__(self, spark: SparkSession, parquet: Path, snapshot: Path) -> None:
        from pathcast.spark.dissemination import disseminate

        frame = spark.read.parquet(str(parquet))
        self._found, self._nothing = (
            disseminate(rows, snapshot, "message", "message_id", engine=ENGINE)
            for rows in (frame, frame.where("message_id = 'none'"))
        )

    def run(self) -> None:
        """Every message through the stage."""
        self._found.deliveries.write.format("noop").mode("overwrite").save()

    def run_empty(self) -> None:
        """The same without a message."""
        self._nothing.deliveries.write.format("noop").mode("overwrite").save()

    def count(self) -> int:
        """Deliveries of all messages."""
        found: int = self._found.deliveries.count()
        return found

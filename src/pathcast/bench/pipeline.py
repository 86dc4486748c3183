"""`spark`: the matching stage on local Spark, beside the bare kernel on one thread.

Subscriptions and messages are the realistic ones of `mixed`. Both read the same messages and
enumerate query numbers; the stage adds Parquet, the JVM, the way to the Python workers and back.
What can be had at most is the kernel's throughput times the number of workers, so the figure is the
share of that which arrives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.bench.checking import THREADS, counts, wrong_count
from pathcast.bench.definitions import SparkDefinition, SparkSet
from pathcast.bench.filtering import ENGINE
from pathcast.bench.inputs import standing_queries
from pathcast.bench.measures import Measure
from pathcast.bench.mixed import mixed_messages, mixed_subscriptions
from pathcast.bench.timing import Spread, elapsed_ns, undisturbed
from pathcast.engine import Matcher, QueryIndex, Snapshot
from pathcast.errors import MissingDependencyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_A_BATCH = 1_000
"""Rows of a batch of the bare kernel, and of a row group: about 4 MB, as Spark sends them."""

CORES = 2
"""Of `local[2]`; the bound is as many times the kernel's throughput."""


@dataclass(frozen=True)
class SparkResult:
    """Wall times of the same messages; `kernel_ns[i]` and `stage_ns[i]` were taken in one round.

    `nothing_ns` are those of the stage over no messages: what a job costs before the first one.
    """

    benchmark: str
    case: str
    queries: int
    messages: int
    distinct_messages: int
    bytes: int
    matches: int
    cores: int
    kernel_ns: tuple[int, ...]
    stage_ns: tuple[int, ...]
    nothing_ns: tuple[int, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures."""

        def figure(name: str, unit: str, values: list[float]) -> Measure:
            value = Spread.of(values)
            case = (self.benchmark, self.case)
            return Measure(*case, name, unit, value, self.queries, self.messages)

        label, thread = (
            ("kernel, 1 thread", "kernel")
            if self.benchmark == "spark"
            else ("one thread", "one thread")
        )
        yield figure(label, "MB/s", [self.bytes / ns * 1e3 for ns in self.kernel_ns])
        yield figure("stage", "MB/s", [self.bytes / ns * 1e3 for ns in self.stage_ns])
        yield figure("stage of nothing", "s", [ns / 1e9 for ns in self.nothing_ns])
        yield figure("stage rows", "1/s", [self.messages / ns * 1e9 for ns in self.stage_ns])
        shares = [
            100 * kernel / stage / self.cores
            for kernel, stage in zip(self.kernel_ns, self.stage_ns, strict=True)
        ]
        yield figure(f"share of {thread}", f"% of {self.cores}x {thread}", shares)


def run_spark(
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
        WrongCountError: The stage found other matches than the kernel.
        JavaMissingError: There is no Java that Spark can run on.
        MissingDependencyError: PySpark is not installed.
    """
    case = f"mixed Q={chosen.queries:,}"
    say(f"{case}, {chosen.messages:,} messages")
    texts = mixed_subscriptions(chosen.queries, seed=definition.seed)
    with TemporaryDirectory(prefix="pathcast-bench-") as directory:
        snapshot = Path(directory) / "queries.snapshot"
        index = QueryIndex(engine=ENGINE)
        index.register(standing_queries(texts))
        index.freeze().save(snapshot)
        distinct = mixed_messages(chosen.distinct, seed=definition.seed)
        parquet = Path(directory) / "messages.parquet"
        size = write_messages(parquet, distinct, chosen.messages)
        spark = session or bench_session(definition.master)
        try:
            stage = _Stage(spark, parquet, snapshot)
            matcher = Snapshot.open(snapshot, engine=ENGINE).matcher(threads=THREADS)
            yield measure_stage(
                "spark", case, chosen, size, lambda: match_all(matcher, parquet), stage
            )
        finally:
            if session is None:
                spark.stop()


class Stage(Protocol):
    """A stage on Spark, over all messages of a case."""

    def run(self) -> None:
        """Every message through the stage."""
        ...

    def run_empty(self) -> None:
        """The same without a message."""
        ...

    def count(self) -> int:
        """What the stage gives for all messages, counted."""
        ...


def measure_stage(
    benchmark: str,
    case: str,
    chosen: SparkSet,
    size: int,
    one_thread: Callable[[], tuple[int, int]],
    stage: Stage,
) -> SparkResult:
    """Checks that both give as many, then measures them in turns.

    Args:
        benchmark: Name of the benchmark.
        case: Name of the case.
        chosen: How much is done.
        size: Bytes of all messages.
        one_thread: A pass on one thread: its time in ns, and what it gave, counted.
        stage: The stage.

    Raises:
        WrongCountError: The stage gave more or fewer.
    """
    matches = one_thread()[1]
    found = stage.count()
    if found != matches:
        raise wrong_count(case, found, matches, "one thread")
    # Workers have compiled what the count needed; both are warm now.
    stage.run()
    kernel_ns: list[int] = []
    stage_ns: list[int] = []
    for number in range(chosen.rounds):
        if number % 2:
            stage_ns.append(elapsed_ns(stage.run))
        time_ns, again = one_thread()
        if again != matches:
            raise wrong_count(case, again, matches, "the pass before")
        kernel_ns.append(time_ns)
        if not number % 2:
            stage_ns.append(elapsed_ns(stage.run))
    nothing_ns = [elapsed_ns(stage.run_empty) for _ in range(chosen.rounds)]
    return SparkResult(
        benchmark=benchmark,
        case=case,
        queries=chosen.queries,
        messages=chosen.messages,
        distinct_messages=min(chosen.distinct, chosen.messages),
        bytes=size,
        matches=matches,
        cores=CORES,
        kernel_ns=tuple(kernel_ns),
        stage_ns=tuple(stage_ns),
        nothing_ns=tuple(nothing_ns),
    )


def write_messages(path: Path, distinct: list[bytes], count: int) -> int:
    """Packs messages, repeated in turn, into Parquet without compression; their bytes.

    Uncompressed, because what is measured is the stage and not a decompressor.
    """
    schema = pa.schema([("message_id", pa.string()), ("message", pa.binary())])
    messages = islice(cycle(distinct), count)
    size = 0
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, count, ROWS_A_BATCH):
            rows = list(islice(messages, ROWS_A_BATCH))
            size += sum(map(len, rows))
            ids = [f"m{number}" for number in range(start, start + len(rows))]
            writer.write_batch(pa.record_batch([ids, rows], schema=schema))
    return size


def match_all(matcher: Matcher, parquet: Path) -> tuple[int, int]:
    """Time of the calls alone, and matches; reading the file is not the kernel's."""
    total_ns = matches = 0
    for batch in pq.ParquetFile(parquet).iter_batches(ROWS_A_BATCH, columns=["message"]):
        messages = batch.column(0)
        with undisturbed():
            started = time.perf_counter_ns()
            found = matcher.match_arrow(messages)
            total_ns += time.perf_counter_ns() - started
        matches += sum(counts(found))
    return total_ns, matches


class _Stage:
    """The matching stage of one session, written to nowhere.

    Args:
        spark: The session.
        parquet: The messages.
        snapshot: The queries.
    """

    def __init__(self, spark: SparkSession, parquet: Path, snapshot: Path) -> None:
        from pathcast.spark.stages import match_messages

        frame = spark.read.parquet(str(parquet))
        self._found, self._nothing = (
            match_messages(rows, snapshot, "message", "message_id", ids="numbers", engine=ENGINE)
            for rows in (frame, frame.where("message_id = 'none'"))
        )

    def run(self) -> None:
        """Every message through the stage."""
        self._found.verdicts.write.format("noop").mode("overwrite").save()

    def run_empty(self) -> None:
        """The same without a message."""
        self._nothing.verdicts.write.format("noop").mode("overwrite").save()

    def count(self) -> int:
        """Matches of all messages."""
        sizes = self._found.verdicts.selectExpr("sum(size(query_numbers)) AS matches")
        return int(sizes.collect()[0]["matches"])


def bench_session(master: str, purpose: str = "pathcast bench spark") -> SparkSession:
    """A local session.

    Raises:
        MissingDependencyError: PySpark is not installed.
        JavaMissingError: There is no Java that it can run on.
    """
    try:
        from pathcast.spark.session import local_session
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "dependency.missing",
            purpose=purpose,
            module=error.name or "pyspark",
            extra="spark",
        ) from error
    return local_session(master)

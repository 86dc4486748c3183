"""`pathcast run`: from a source of messages and a file of subscriptions to inboxes on disk.

    source -> match_messages -> matches        \
                             -> dead letters    > output directory, micro-batch by micro-batch
              deliveries     -> inboxes        /

or, for subscriptions that ask for results, `disseminate` to dead letters and inboxes (`contents`).

Both modes are one Structured Streaming query: "batch" ends when what was there at the start is done
(`availableNow`), "stream" does not. A micro-batch goes through four steps, and a kill between any
two of them loses nothing and repeats nothing:

1. Spark logs which messages belong to the batch (for a directory: `directory`'s journal).
2. The batch is pinned to a snapshot and a table of subscriptions.
3. All output is written aside, then moved into place.
4. The commit of the batch is written. From now on a replay of the batch does nothing.

Example:
    >>> summary = run(load_settings("pipeline.toml"))                       # doctest: +SKIP
    >>> print(summary.to_text())                                            # doctest: +SKIP
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
from pyspark.sql import functions as F

from pathcast.errors import ConfigError, PathcastError
from pathcast.spark.contents import content_of, layout_for
from pathcast.spark.directory import PATTERN, DirectoryOptions, XmlDirectory, list_files
from pathcast.spark.ledger import Ledger, Pin, sole_writer
from pathcast.spark.outputs import StagedBatch, claim, write_rejected
from pathcast.spark.progress import ProgressReport, progress_on
from pathcast.spark.session import local_session
from pathcast.spark.subscriptions import Generation
from pathcast.spark.summary import TOP_SUBSCRIBERS, Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from pathcast.spark.settings import PipelineSettings

POLL_SECONDS = 0.2
"""How often the main thread looks whether the query has ended or was told to."""


class StopRequestedError(Exception):
    """Ends the query before it begins another micro-batch; never leaves this module."""


def run(
    settings: PipelineSettings,
    *,
    progress: ProgressReport | None = None,
    spark: SparkSession | None = None,
    stop: threading.Event | None = None,
) -> Summary:
    """Run a pipeline to its end, or until it is stopped.

    Args:
        settings: See `settings.load_settings`.
        progress: Who is told how it goes; a bar or lines on standard error when not given.
        spark: A session to use, which is left running; one is started, and stopped, when not given.
        stop: Set it to stop after the current micro-batch, as SIGTERM and Ctrl-C do.

    Returns:
        What this run did.

    Raises:
        ConfigError: A setting cannot be used, the output belongs to another pipeline, or the
            subscriptions cannot be read.
        JavaMissingError: No session was given and there is no Java.

    Cost:
        4 to 8 s to start Spark, then per micro-batch about 0.5 s and the matching.
    """
    started = time.monotonic()
    report = progress or progress_on()
    stop = stop or threading.Event()
    with sole_writer(settings.output.path):
        _check_source(settings)
        pipeline = Pipeline(settings, report, stop)
        session = spark or local_session(settings.spark.master, conf=settings.spark.conf)
        try:
            with _stopped_by_signals(stop):
                pipeline.start_seconds = time.monotonic() - started
                return pipeline.run(session)
        finally:
            report.end()
            if spark is None:
                session.stop()


class Pipeline:
    """One run: what is shared between the thread of the query and the one that waits for it."""

    def __init__(
        self, settings: PipelineSettings, report: ProgressReport, stop: threading.Event
    ) -> None:
        self.start_seconds = 0.0
        self._settings = settings
        self._report = report
        self._stop = stop
        self._output = settings.output.path
        self._ledger = Ledger(self._output, settings.checkpoint)
        self._layout = layout_for(settings)
        self._content = content_of(settings, self._layout)
        claim(self._output, self._layout)
        if earlier := _stream_id(settings):
            self._ledger.check_stream(earlier)
        else:
            self._ledger.check_stream("a new checkpoint")
        self._book = self._content.book()
        self._generation = self._take_up(self._book.current())
        self._failure: BaseException | None = None
        self._summary = Summary(output=str(self._output))
        self._received: Counter[str] = Counter()
        # Held while a micro-batch runs, so that a stop can wait for its end.
        self._busy = threading.Lock()

    def run(self, spark: SparkSession) -> Summary:
        """Start the query and wait until it has ended."""
        earlier = sum(commit.messages for commit in self._ledger.commits())
        self._report.begin(self._describe(), _messages_ahead(self._settings, earlier))
        started = time.monotonic()
        query = self._start(spark)
        while query.isActive and not self._stop.is_set():
            # Not awaitTermination: it raises Spark's account of a failure rather than the failure.
            self._stop.wait(POLL_SECONDS)
        if self._stop.is_set():
            with self._busy:
                pass
            query.stop()
        self._raise_failure(query)
        self._report.end()
        rejected = Counter(rejected.code for rejected in self._generation.rejected)
        return replace(
            self._summary,
            queries=self._generation.queries,
            subscriptions=self._generation.subscriptions,
            rejected_queries=dict(sorted(rejected.items())),
            top_subscribers=_top(self._received),
            seconds=time.monotonic() - started,
            start_seconds=self.start_seconds,
            earlier_messages=earlier,
            was_stopped=self._stop.is_set(),
        )

    def _start(self, spark: SparkSession) -> StreamingQuery:
        mode = self._settings.mode
        writer = (
            messages_stream(spark, self._settings)
            .writeStream.foreachBatch(self._on_batch)
            .option("checkpointLocation", str(self._settings.checkpoint))
        )
        if mode.kind == "batch":
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{mode.seconds_between_batches} seconds").start()

    def _on_batch(self, frame: DataFrame, batch_id: int) -> None:
        with self._busy:
            try:
                if self._stop.is_set():
                    raise StopRequestedError
                self._process(frame, batch_id)
            except BaseException as error:
                # Spark hands on the text of an error only; the caller should get the error.
                self._failure = error
                raise

    def _process(self, frame: DataFrame, batch_id: int) -> None:
        """One micro-batch; the same rows however often it is called for the same batch."""
        if self._ledger.commit(batch_id) is not None:
            return
        started = time.monotonic()
        generation = self._pin(batch_id)
        staged = StagedBatch(self._output, self._layout, batch_id)
        counts = self._content.write(frame, generation, staged)
        received = staged.deliveries()
        staged.publish()
        commit = replace(
            counts,
            batch_id=batch_id,
            stream=_stream_id(self._settings) or "",
            snapshot_version=generation.snapshot_version,
            deliveries=received.total(),
            seconds=round(time.monotonic() - started, 3),
        )
        self._ledger.write_commit(commit)
        self._received += received
        self._summary = self._summary.with_commit(commit)
        self._report.batch(commit)

    def _pin(self, batch_id: int) -> Generation:
        """What the batch runs with: what it was begun with or, for a new one, the newest."""
        pin = self._ledger.pin(batch_id)
        if pin is not None:
            return self._book.pinned(pin.snapshot_version, pin.subscriptions)
        try:
            newest = self._book.current()
        except ConfigError as error:
            # Someone is at work on the file: messages go on with the last good state of it.
            self._report.note(f"subscriptions not taken up, the earlier ones stay: {error}")
            newest = self._generation
        if newest is not self._generation:
            self._generation = self._take_up(newest)
        self._ledger.write_pin(Pin(batch_id, newest.snapshot_version, newest.digest))
        return newest

    def _take_up(self, generation: Generation) -> Generation:
        rejected = tuple(generation.rejected)
        path = write_rejected(
            self._output, self._layout, rejected, generation.snapshot_version, generation.digest
        )
        if path is not None:
            self._report.note(f"{len(rejected):,} subscriptions were rejected: see {path}")
        return generation

    def _describe(self) -> str:
        source = self._settings.source
        return (
            f"{self._settings.mode.kind}: {source.kind} {source.path} against "
            f"{self._generation.queries:,} queries"
        )

    def _raise_failure(self, query: StreamingQuery) -> None:
        failure, told = self._failure, query.exception()
        if isinstance(failure, StopRequestedError):
            return
        if failure is not None:
            raise failure
        if told is not None and not self._stop.is_set():
            raise told


def messages_stream(spark: SparkSession, settings: PipelineSettings) -> DataFrame:
    """The source as a streaming frame with message_id and message (see `schemas.SOURCE`)."""
    source, mode = settings.source, settings.mode
    if source.kind == "directory":
        spark.dataSource.register(XmlDirectory)
        return (
            spark.readStream.format(XmlDirectory.name())
            .option("path", str(source.path))
            .option("pattern", source.pattern or PATTERN)
            .option("journal", str(settings.checkpoint / "journal"))
            .option("files_max", str(mode.files_per_batch_max))
            .option("bytes_max", str(mode.bytes_per_batch_max))
            .option("partitions", str(spark.sparkContext.defaultParallelism))
            .option("message_bytes_max", str(settings.engine.message_limits().message_bytes_max))
            .load()
        )
    schema = spark.read.option("recursiveFileLookup", "true").parquet(str(source.path)).schema
    for key, name in (("message_column", source.message_column), ("id_column", source.id_column)):
        if name not in schema.names:
            raise _invalid(f"source.{key}", f"no column {name!r} among {', '.join(schema.names)}")
    return (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", mode.files_per_batch_max)
        .option("pathGlobFilter", source.pattern or "*.parquet")
        .option("recursiveFileLookup", "true")
        .parquet(str(source.path))
        .select(
            F.col(source.id_column).cast("string").alias("message_id"),
            F.col(source.message_column).alias("message"),
        )
    )


def _top(received: Counter[str]) -> list[tuple[str, int]]:
    return sorted(received.items(), key=lambda item: (-item[1], item[0]))[:TOP_SUBSCRIBERS]


def _stream_id(settings: PipelineSettings) -> str | None:
    """Id that Spark gave the checkpoint; None before its first run."""
    try:
        found: dict[str, Any] = json.loads((settings.checkpoint / "metadata").read_bytes())
    except FileNotFoundError:
        return None
    return str(found["id"])


def _check_source(settings: PipelineSettings) -> None:
    source = settings.source
    if not source.path.is_dir():
        raise _invalid("source.path", f"{source.path} is not a directory")
    if source.path in (settings.output.path, *settings.output.path.parents):
        raise _invalid("output.path", "it lies inside source.path, and would be read as messages")


def _messages_ahead(settings: PipelineSettings, earlier: int) -> int | None:
    """Messages that a batch has before it; None for a stream, which has no end."""
    source = settings.source
    if settings.mode.kind == "stream":
        return None
    try:
        if source.kind == "parquet":
            rows: int = ds.dataset(source.path, format="parquet").count_rows()
            return max(0, rows - earlier)
        options = DirectoryOptions.from_spark(
            {"path": str(source.path), "pattern": source.pattern or PATTERN}
        )
        return max(0, len(list_files(options, frozenset())) - earlier)
    except (OSError, ValueError):
        return None  # the source will say what is wrong, in its own words


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """While inside, SIGTERM and the first Ctrl-C set `stop`; a second Ctrl-C interrupts."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals; whoever calls from another has `stop`
        return

    def request(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _invalid(key: str, reason: str) -> PathcastError:
    return ConfigError("config.invalid", key=key, reason=reason)

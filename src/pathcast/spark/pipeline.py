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
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pathcast.errors import ConfigError, PathcastError
from pathcast.spark.contents import content_of, layout_for
from pathcast.spark.directory import DirectoryOptions, MessageDirectory, list_files
from pathcast.spark.journal import JOURNAL, claim_journal
from pathcast.spark.ledger import COMMITS, Commit, Ledger, Pin, sole_writer
from pathcast.spark.outputs import StagedBatch, claim, write_rejected
from pathcast.spark.parquet_files import missing_columns, no_column, row_count
from pathcast.spark.progress import ProgressReport, progress_on
from pathcast.spark.session import local_session
from pathcast.spark.stopping import stopped_by_signals
from pathcast.spark.subscriptions import Generation, too_few
from pathcast.spark.summary import TOP_SUBSCRIBERS, Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from pathcast.spark.settings import PipelineSettings

UNREAD_CODES: dict[str, frozenset[str]] = {
    "directory": frozenset({"message.unreadable", "limit.message_bytes"}),
    "parquet": frozenset({"file.unreadable"}),
}
"""Kind of source -> codes of the dead letters that stand for a file which was not processed."""

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
    with sole_writer(settings.output.path), stopped_by_signals(stop) as signals:
        _check_source(settings)
        pipeline = Pipeline(settings, report, stop)
        session = spark or local_session(settings.spark.master, conf=settings.spark.conf)
        try:
            pipeline.start_seconds = time.monotonic() - started
            summary = pipeline.run(session)
            return replace(summary, stopped_by=signals[0].name if signals else "")
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
        self._journal = claim_journal(
            settings.checkpoint, settings.source.kind, settings.source.path
        )
        self._unlisted: dict[str, str] = {}
        self._book = self._content.book()
        self._kept = ""
        self._generation = self._first_generation()
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
        if not self._stop.is_set():
            self._wait_for(self._start(spark))
        self._report.end()
        rejected = Counter(rejected.code for rejected in self._generation.rejected)
        return replace(
            self._summary,
            queries=self._generation.queries,
            subscriptions=self._generation.subscriptions,
            rejected_queries=dict(sorted(rejected.items())),
            top_subscribers=_top(self._received),
            seconds=time.monotonic() - started,
            unlisted=self._unlisted,
            subscriptions_kept=self._kept,
            start_seconds=self.start_seconds,
            earlier_messages=earlier,
            was_stopped=self._stop.is_set(),
        )

    def _wait_for(self, query: StreamingQuery) -> None:
        """Until the query has ended, or is told to and has finished its micro-batch."""
        while query.isActive and not self._stop.is_set():
            # Not awaitTermination: it raises Spark's account of a failure rather than the failure.
            self._stop.wait(POLL_SECONDS)
            self._tell_unlisted()
        if self._stop.is_set():
            with self._busy:
                pass
            query.stop()
        self._tell_unlisted()
        self._raise_failure(query)

    def _tell_unlisted(self) -> None:
        """Say which folders of the source cannot be listed, and which can be again."""
        before, self._unlisted = self._unlisted, self._journal.unlisted()
        for folder, reason in self._unlisted.items():
            if before.get(folder) != reason:
                self._report.note(
                    f"{folder} cannot be listed: {reason}; what lies there waits until it can"
                )
        for folder in sorted(before.keys() - self._unlisted.keys()):
            self._report.note(f"{folder} can be listed again")

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
        unread = self._unread(counts, staged)
        staged.publish()
        commit = replace(
            counts,
            batch_id=batch_id,
            stream=_stream_id(self._settings) or "",
            snapshot_version=generation.snapshot_version,
            deliveries=received.total(),
            seconds=round(time.monotonic() - started, 3),
            unread=unread,
        )
        self._ledger.write_commit(commit)
        self._received += received
        self._summary = self._summary.with_commit(commit)
        self._report.batch(commit)

    def _unread(self, counts: Commit, staged: StagedBatch) -> tuple[str, ...]:
        """The files of the batch that could not be read; told of, since they wait for somebody."""
        codes = UNREAD_CODES[self._settings.source.kind]
        if not codes & counts.refused.keys():
            return ()
        unread = staged.refused(codes)
        self._report.note(
            f"{len(unread):,} files of the source could not be read, such as {unread[0]}: see "
            f"pathcast dlq {self._output}"
        )
        return unread

    def _pin(self, batch_id: int) -> Generation:
        """What the batch runs with: what it was begun with or, for a new one, the newest."""
        pin = self._ledger.pin(batch_id)
        if pin is not None:
            return self._book.pinned(pin.snapshot_version, pin.subscriptions)
        found = self._believed(self._generation.subscriptions)
        if found is not None and found is not self._generation:
            self._generation = self._take_up(found)
        newest = self._generation
        counts = newest.queries, newest.subscriptions
        self._ledger.write_pin(Pin(batch_id, newest.snapshot_version, newest.digest, *counts))
        return newest

    def _first_generation(self) -> Generation:
        """What the run begins with: the newest or, where that is not believed, the last run's."""
        pin = self._ledger.last_pin()
        if pin is None or not self._settings.subscriptions.path.exists():
            return self._take_up(self._book.current())
        found = self._believed(pin.subscription_count)
        if found is not None:
            return self._take_up(found)
        earlier = self._book.pinned(pin.snapshot_version, pin.subscriptions)
        return replace(earlier, queries=pin.query_count, subscriptions=pin.subscription_count)

    def _believed(self, earlier: int) -> Generation | None:
        """The subscriptions as they are now; None, and said so, where the earlier ones stay."""
        try:
            found = self._book.current()
        except ConfigError as error:
            # Someone is at work on the file: messages go on with the last good state of it.
            self._keep(str(error))
            return None
        share = self._settings.subscriptions.shrink_max
        if reason := too_few(earlier, found, share):
            self._keep(f"{self._settings.subscriptions.path}: {reason}")
            return None
        self._kept = ""
        return found

    def _keep(self, reason: str) -> None:
        """Say, once, that the earlier subscriptions stay."""
        if reason != self._kept:
            self._report.note(f"subscriptions not taken up, the earlier ones stay: {reason}")
        self._kept = reason

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
    """The source as a streaming frame of `schemas.SOURCE`."""
    spark.dataSource.register(MessageDirectory)
    reader = spark.readStream.format(MessageDirectory.name())
    options = _source_options(settings)
    options["partitions"] = str(spark.sparkContext.defaultParallelism)
    return reader.options(**options).load()


def _source_options(settings: PipelineSettings) -> dict[str, str]:
    """What `DirectoryOptions` is made of."""
    source, mode = settings.source, settings.mode
    is_parquet = source.kind == "parquet"
    return {
        "path": str(source.path),
        "pattern": source.pattern or ("*.parquet" if is_parquet else "*.xml"),
        "kind": source.kind,
        "message_column": source.message_column,
        "id_column": source.id_column,
        "journal": str(settings.checkpoint / JOURNAL),
        "commits": str(settings.output.path / COMMITS),
        "files_max": str(mode.files_per_batch_max),
        # Of a Parquet file the size says little about the messages in it.
        "bytes_max": "0" if is_parquet else str(mode.bytes_per_batch_max),
        "message_bytes_max": str(settings.engine.message_limits().message_bytes_max),
    }


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
    if source.kind == "parquet":
        options = DirectoryOptions.from_spark(_source_options(settings))
        files = list_files(options, lambda _: False).files
        if absent := missing_columns(files, source.path, options.columns):
            name, names = absent
            key = "message_column" if name == source.message_column else "id_column"
            raise _invalid(f"source.{key}", no_column(name, names))


def _messages_ahead(settings: PipelineSettings, earlier: int) -> int | None:
    """Messages that a batch has before it; None for a stream, which has no end."""
    source = settings.source
    if settings.mode.kind == "stream":
        return None
    options = DirectoryOptions.from_spark(_source_options(settings))
    files = list_files(options, lambda _: False).files
    count = row_count(files, source.path) if source.kind == "parquet" else len(files)
    return max(0, count - earlier)


def _invalid(key: str, reason: str) -> PathcastError:
    return ConfigError("config.invalid", key=key, reason=reason)

"""`pathcast run`: from a source of messages and subscriptions to inboxes.

    source -> journal -> shares of files -> Spark -> tasks -> files, named by a commit

Spark carries work to the cores and back-up attempts of it; messages and deliveries never pass
through its JVM. Both modes are one loop: "batch" ends when what was there at the start is done,
"stream" does not. A micro-batch goes through four steps, and a kill between any two of them loses
nothing and repeats nothing:

1. The journal says which files belong to it.
2. It is pinned to a generation of subscriptions.
3. Tasks write files that no reader knows of.
4. The commit names the files of the attempts that ended well. From now on they count.

Example:
    >>> summary = run(load_settings("pipeline.toml"))                       # doctest: +SKIP
    >>> print(summary.to_text())                                            # doctest: +SKIP
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from pathcast.errors import ConfigError, PathcastError
from pathcast.limits import Limits
from pathcast.spark import schemas
from pathcast.spark.book import SubscriptionBook
from pathcast.spark.compacting import BackgroundCompaction
from pathcast.spark.delta import DeltaTables
from pathcast.spark.files import FileReader, FoundFile, Unit, shown
from pathcast.spark.generations import Generation
from pathcast.spark.journal import Journal, first_of
from pathcast.spark.ledger import (
    BatchLedger,
    CheckpointSource,
    Commit,
    Unread,
    committed_batches,
    remove_strays,
    sole_writer,
)
from pathcast.spark.message_times import MessageTimes
from pathcast.spark.outputs import Layout, claim
from pathcast.spark.pinning import Pinning
from pathcast.spark.progress import ProgressReport, progress_on
from pathcast.spark.publishing import NetworkPublisher, PipelinePublication
from pathcast.spark.sources import (
    listing_of,
    passed_columns,
    reader_of,
    shares_of,
    units_of,
)
from pathcast.spark.stopping import stopped_by_signals
from pathcast.spark.storage import Storage
from pathcast.spark.subscription_places import place_of
from pathcast.spark.summary import TOP_SUBSCRIBERS, Summary
from pathcast.spark.tasks import DeliveryTask, TaskReport
from pathcast.spark.workers import Workers
from pathcast.spark.writing import LetterWriter, OutputTarget, WrittenFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pathcast.spark.settings import PipelineSettings

NAMES_SHOWN: Final = 10
"""Names of files in one note."""

INSIDE: Final = "it lies inside source.path, and would be read as messages"


def run(
    settings: PipelineSettings,
    *,
    progress: ProgressReport | None = None,
    spark: SparkSession | None = None,
    workers: Workers | None = None,
    stop: threading.Event | None = None,
) -> Summary:
    """Run a pipeline to its end, or until it is stopped.

    Args:
        settings: See `settings.load_settings`.
        progress: Who is told how it goes; a bar or lines on standard error when not given.
        spark: A session to use, which is left running; the one that runs in this process when not
            given. If there is none, one is started, and stopped in the end.
        workers: Who runs the tasks, in place of a session.
        stop: Set it to stop after the current micro-batch, as SIGTERM and Ctrl-C do.

    Returns:
        What this run did.

    Raises:
        ConfigError: A setting cannot be used, the output belongs to another pipeline, or the
            subscriptions cannot be read.
        JavaMissingError: No session was given and there is no Java.
        DiskError: The output, the checkpoint or a directory of Spark cannot be written.
        SparkLostError: The JVM of Spark has ended.

    Cost:
        Spark starts while the subscriptions are compiled: 5 s, or 60 µs a subscription that was
        never seen. Then per micro-batch about 0.1 s and what the engine needs.
    """
    started = time.monotonic()
    report = progress or progress_on()
    stop = stop or threading.Event()
    output = settings.output.storage
    with sole_writer(output), stopped_by_signals(stop) as received:
        _check_paths(settings)
        pipeline = Pipeline(settings, output, report, stop)
        with _workers_of(settings, spark, workers, report) as ready:
            try:
                pipeline.begin()
                found_workers = ready()
                start_seconds = time.monotonic() - started
                summary = pipeline.run(found_workers)
            finally:
                pipeline.close()
                report.end()
    stopped_by = received[0].name if received else ""
    return replace(summary, start_seconds=start_seconds, stopped_by=stopped_by)


class Pipeline:
    """One run."""

    def __init__(
        self,
        settings: PipelineSettings,
        output: Storage,
        report: ProgressReport,
        stop: threading.Event,
    ) -> None:
        self._settings = settings
        self._output = output
        self._report = report
        self._stop = stop
        checkpoint = settings.checkpoint
        self._ledger = BatchLedger(output, checkpoint)
        out = settings.output
        wanted = Layout(out.format, out.matches, out.inboxes, out.fragments)
        self._layout = claim(output, wanted)
        source = settings.source
        self._check_times()
        self._checkpoint = self._ledger.claim_checkpoint(
            CheckpointSource(source.kind, str(source.path))
        )
        if out.format != "delta":  # whose library looks after its files
            remove_strays(output)
        self._journal = Journal(checkpoint)
        self._history = self._ledger.history().still_unread(self._journal.last_entry)
        self._listing = listing_of(source, checkpoint, settings.network)
        self._extra = passed_columns(source, (), checkpoint, out.format)
        self._unpublished: list[Commit] = []
        asked = settings.subscriptions
        self._book = SubscriptionBook(
            place_of(asked),
            output,
            deliver=asked.deliver,
            namespaces=asked.namespaces,
            limits=settings.engine.limits,
        )
        self._delta = DeltaTables(output, self._layout) if out.format == "delta" else None
        self._publisher = self._publisher_of(settings)
        self._compaction = BackgroundCompaction(
            output,
            out.format,
            files=out.compact_files,
            keep_seconds=out.keep_replaced_seconds,
            # A table of its own: the library keeps it for one thread.
            delta=DeltaTables(output, self._layout) if self._delta else None,
            through=lambda: self._publisher.through if self._publisher else None,
        )
        self._pinning = Pinning(
            settings.subscriptions, self._book, self._ledger, output, self._layout, report.note
        )
        self._summary = Summary(output=str(output))
        # Generation -> deliveries by rank. Ranks become names once, at the end.
        self._received: dict[Generation, np.ndarray] = {}
        self._unlisted: dict[str, str] = {}
        self._said: set[str] = set()

    def _publisher_of(self, settings: PipelineSettings) -> NetworkPublisher | None:
        """Return the publisher into a network; None where no `[publish]` is set."""
        if settings.publish is None:
            return None
        assert settings.network is not None
        return NetworkPublisher(
            PipelinePublication(settings.network, settings.publish, self._checkpoint),
            self._output,
            self._layout,
            settings.checkpoint,
            self._history.through,
            self._report.note,
            self._stop,
        )

    def close(self) -> None:
        """Gives back what is open."""
        self._book.place.close()

    def begin(self) -> None:
        """Takes up the subscriptions, which takes as long as Spark does to start.

        Raises:
            ConfigError: They cannot be read, or too many of them are rejected.
        """
        self._pinning.begin()

    def run(self, workers: Workers) -> Summary:
        """Delivers until there is nothing more to do, or until it is told to stop."""
        earlier, undone = self._earlier()
        # What could not be read by an earlier run is tried again, once.
        self._journal.retry_all()
        is_batch = self._settings.mode.kind == "batch"
        due = self._due() if is_batch else []
        self._report.begin(self._describe(), self._ahead(undone, due) if is_batch else None)
        self._say_what_is_odd()
        started = time.monotonic()
        for batch_id in undone:
            if self._stop.is_set():
                break
            self._process(workers, batch_id)
        if is_batch:
            self._say_what_is_left_alone()
            self._drain(workers, due)
        else:
            self._watch(workers)
        if self._delta is not None and self._knows_columns:
            self._delta.create(self._extra)
        self._compaction.wait()
        if self._compaction.error is not None:
            self._report.note(f"small files stay as they are: {self._compaction.error}")
        self._report.end()
        refused = Counter(row.code for row in self._pinning.rejected)
        generation = self._pinning.generation
        return replace(
            self._summary,
            queries=generation.queries,
            subscriptions=generation.subscriptions,
            rejected_queries=dict(sorted(refused.items())),
            last_valid=sum(row.in_force is not None for row in self._pinning.rejected),
            top_subscribers=_top(self._by_subscriber()),
            seconds=time.monotonic() - started,
            unlisted=self._unlisted,
            subscriptions_kept=self._pinning.kept,
            earlier_messages=earlier,
            was_stopped=self._stop.is_set(),
            published=self._publisher.published if self._publisher else 0,
        )

    def _earlier(self) -> tuple[int, list[int]]:
        """Messages that earlier runs have done, and the micro-batches that they did not end."""
        history = self._history
        self._journal.reopen(entry.file for _, entry in history.unread.values())
        done = set(committed_batches(self._output))
        if done:
            # A kill may have come between the commit and what is done after it.
            self._tell_source(self._ledger.commit(max(done)))
        if self._publisher is not None:
            for commit in self._ledger.commits(after=self._publisher.through):
                if not self._publisher.publish(commit):
                    break
        if self._delta is not None and not self._stop.is_set():
            # A kill may have come between the commit and the tables.
            knows = self._knows_columns
            had = self._delta.through(self._checkpoint, self._extra) if knows else 0
            for commit in self._ledger.commits(after=had):
                self._publish(commit)
        undone = [number for number in range(1, self._journal.last + 1) if number not in done]
        return history.messages, undone

    def _ahead(self, undone: Sequence[int], due: Sequence[FoundFile]) -> int | None:
        """Messages before this run, where a file is one; None where nobody has counted them."""
        if self._settings.source.kind != "directory":
            return None
        return len(due) + sum(len(self._journal.entry(number)) for number in undone)

    def _say_what_is_odd(self) -> None:
        """Note settings that are probably a mistake."""
        if not self._pinning.generation.queries:
            self._report.note("no query is in force: every message will be read, none delivered")

    def _say_what_is_left_alone(self) -> None:
        """Note files that the source holds and skips, once each."""
        for about, text in self._listing.notes():
            if about not in self._said:
                self._said.add(about)
                self._report.note(text)

    def _due(self) -> list[FoundFile]:
        """The files to be handed on, oldest first; what cannot be listed waits until it can."""
        self._journal.read_requests()
        found: list[FoundFile] = []
        try:
            found, faults = self._listing.look(self._journal.done, self._journal.open_files)
        except OSError as error:
            faults = {"": error}
        root = str(self._listing.path)
        before, self._unlisted = (
            self._unlisted,
            {
                (f"{root}/{folder}" if folder else root): _reason(error)
                for folder, error in sorted(faults.items())
            },
        )
        for folder, reason in self._unlisted.items():
            if before.get(folder) != reason:
                self._report.note(
                    f"{folder} cannot be listed: {reason}; what lies there waits until it can"
                )
        for folder in sorted(before.keys() - self._unlisted.keys()):
            self._report.note(f"{folder} can be listed again")
        return [file for file in found if self._journal.is_due(file)]

    def _drain(self, workers: Workers, files: Sequence[FoundFile]) -> None:
        """Delivers files, micro-batch by micro-batch."""
        mode, rest = self._settings.mode, list(files)
        while rest and not self._stop.is_set():
            step = first_of(rest, mode.files_per_batch_max, mode.bytes_per_batch_max)
            rest = rest[len(step) :]
            self._process(workers, self._journal.append(step))

    def _watch(self, workers: Workers) -> None:
        """Delivers what comes, until told to stop."""
        while not self._stop.is_set():
            looked = time.monotonic()
            # Without a message nothing would ask for the workers, for days.
            workers.check()
            due = self._due()
            if not self._unlisted:
                self._say_what_is_left_alone()
            self._drain(workers, due)
            if not due and not self._stop.is_set():
                # Who has changed them is told at once, whether or not a message comes.
                self._pinning.look()
            wait = self._settings.mode.seconds_between_batches - (time.monotonic() - looked)
            self._stop.wait(max(0.0, wait))

    def _process(self, workers: Workers, batch_id: int) -> None:
        """One micro-batch; the same rows however often it is done before its commit."""
        started = time.monotonic()
        files = self._journal.entry(batch_id)
        generation = self._pinning.pin(batch_id)
        unread: dict[str, PathcastError] = {}
        reports = self._deliver(workers, batch_id, files, generation, unread)
        commit = self._commit(batch_id, files, generation, reports, unread)
        commit = replace(commit, seconds=round(time.monotonic() - started, 3))
        self._ledger.write_commit(commit)
        self._history = self._history.with_commit(commit).still_unread(self._journal.last_entry)
        self._ledger.sum_up(self._history)
        self._tell_source(commit)
        if self._publisher is None or self._publisher.publish(commit):
            self._publish(commit)
            self._compaction.wrote(commit.files)
        self._journal.reopen(entry.file for entry in commit.unread)
        if commit.unread:
            self._report.note(
                f"{len(commit.unread):,} files of the source could not be read (pathcast dlq "
                f"{self._output}), the first because {commit.unread[0].message}"
            )
        untimed = sum(report.untimed for report in reports)
        if untimed:
            self._report.note(
                f"{untimed:,} messages of micro-batch {batch_id} have no time at "
                f"{self._settings.source.time} (source.time): message_time is null"
            )
        self._count(generation, reports)
        self._summary = self._summary.with_commit(commit)
        self._report.batch(commit)

    def _tell_source(self, commit: Commit | None) -> None:
        """Tell the source that it need not keep the files of a micro-batch any more."""
        if commit is not None:
            unread = {entry.name for entry in commit.unread}
            files = self._journal.entry(commit.batch_id)
            self._listing.committed([file.name for file in files if file.name not in unread])

    def _publish(self, commit: Commit) -> None:
        """Adds a micro-batch to the Delta tables, and those before that are not in them.

        A table has its columns from the beginning: until the types of those that are passed through
        are known, micro-batches wait. They had no message then.
        """
        if self._delta is None:
            return
        self._unpublished.append(commit)
        if self._knows_columns:
            for each in self._unpublished:
                self._delta.publish(each, self._extra)
            self._unpublished = []

    @property
    def _knows_columns(self) -> bool:
        return len(self._extra) == len(self._settings.source.columns)

    def _deliver(
        self,
        workers: Workers,
        batch_id: int,
        files: Sequence[FoundFile],
        generation: Generation,
        unread: dict[str, PathcastError],
    ) -> list[TaskReport]:
        """Runs the tasks. `unread` gets the files that could not be read."""
        reader = self._reader_of(files, generation.message_limits())
        while True:
            units = units_of(reader, files, workers, unread)
            self._say_what_is_lacking(units)
            shares = shares_of(units, workers.count)
            if not shares:
                return []
            task = self._task(batch_id, generation, reader)
            reports = workers.run(task, shares)
            for report in reports:
                if report.error is not None:
                    raise report.error
            failed = {name: error for report in reports for name, error in report.unread.items()}
            unread |= failed
            if not failed or reader.is_whole:
                return reports
            # Some rows of such a file may be in what was written: all of it is done again without.
            self._output.delete(
                file.name for report in reports for files in report.files.values() for file in files
            )

    def _say_what_is_lacking(self, units: Sequence[Unit]) -> None:
        """Which files are without a column that is passed through; once a file."""
        lacking: dict[tuple[str, ...], list[str]] = {}
        for unit in units:
            about = f"columns of {unit.name}"
            if unit.lacks and about not in self._said:
                self._said.add(about)
                lacking.setdefault(unit.lacks, []).append(unit.name)
        for columns, names in lacking.items():
            shown = ", ".join(names[:NAMES_SHOWN])
            more = len(names) - NAMES_SHOWN
            others = f" and {more:,} more" if more > 0 else ""
            self._report.note(f"no column {', '.join(columns)} (null there): {shown}{others}")

    def _task(self, batch_id: int, generation: Generation, reader: FileReader) -> DeliveryTask:
        engine = self._settings.engine
        return DeliveryTask(
            storage=self._output,
            generation=generation,
            reader=reader,
            batch_id=batch_id,
            layout=self._layout,
            processed_us=self._begun_us(batch_id),
            times=self._times(),
            threads=engine.threads,
            cache_bytes_max=engine.cache_bytes_max,
        )

    def _begun_us(self, batch_id: int) -> int:
        """When a micro-batch was begun: its rows say the same however often it is done."""
        pin = self._ledger.pin(batch_id)
        return (pin and pin.begun_us) or time.time_ns() // 1000

    def _times(self) -> MessageTimes | None:
        """Return the finder of the times of messages; None where no path is set."""
        source, engine = self._settings.source, self._settings.engine
        if source.time is None:
            return None
        bound = tuple(sorted(source.time_namespaces.items()))
        limits = engine.message_limits()
        return MessageTimes(source.time, bound, limits)

    def _check_times(self) -> None:
        """Refuses a time of messages that cannot be found or written.

        Raises:
            ConfigError: It cannot.
        """
        times, output = self._times(), self._output
        if not self._layout.has_times:
            if times is not None:
                reason = (
                    f"{output} was begun by an earlier version, without times; choose a new one"
                )
                raise _invalid("source.time", reason)
            self._report.note(
                f"{output} was begun by an earlier version and goes on as it is: its rows have no "
                "times, and fragments are bytes; a new output has both"
            )
        if times is not None:
            times.check()

    def _commit(
        self,
        batch_id: int,
        files: Sequence[FoundFile],
        generation: Generation,
        reports: Sequence[TaskReport],
        unread: Mapping[str, PathcastError],
    ) -> Commit:
        """Commit a micro-batch, with the counters of the tasks' reports."""
        written: dict[schemas.OutputName, list[WrittenFile]] = {}
        refused: Counter[str] = Counter()
        stages: Counter[str] = Counter()
        for report in reports:
            refused.update(report.refused)
            stages.update(report.seconds)
            for name, found in report.files.items():
                written.setdefault(name, []).extend(found)
        if unread:
            letters = self._letters_of(batch_id, generation, unread)
            written.setdefault("dead_letters", []).extend(letters)
        by_name = {file.name: file for file in files}
        return Commit(
            batch_id=batch_id,
            checkpoint=self._checkpoint,
            snapshot_version=generation.version,
            messages=sum(report.messages for report in reports),
            bytes=sum(report.bytes for report in reports),
            matches=sum(report.matches for report in reports),
            deliveries=sum(file.rows for file in written.get("inboxes", ())),
            undecided=sum(report.undecided for report in reports),
            refused=dict(sorted(refused.items())),
            stages={name: round(seconds, 4) for name, seconds in stages.items()},
            files=written,
            unread=tuple(
                Unread(**asdict(by_name[name]), code=error.code, message=error.message)
                for name, error in sorted(unread.items())
            ),
        )

    def _letters_of(
        self, batch_id: int, generation: Generation, unread: Mapping[str, PathcastError]
    ) -> list[WrittenFile]:
        """A dead letter for each file that could not be read."""
        begun_us = self._begun_us(batch_id)
        target = OutputTarget(self._output, self._layout, batch_id, generation.version, begun_us)
        writer = LetterWriter(target)
        for name, error in sorted(unread.items()):
            told = {"code": error.code, "message": error.message, "bytes": 0}
            row = {field.name: [told.get(field.name)] for field in schemas.LETTERS}
            writer.add(pa.table(row, schema=schemas.LETTERS), shown(name))
        writer.finish()
        return writer.files

    def _reader_of(self, files: Sequence[FoundFile], limits: Limits) -> FileReader:
        """Return the reader of files."""
        source = self._settings.source
        if not self._knows_columns:
            self._extra = passed_columns(
                source, files, self._settings.checkpoint, self._layout.format
            )
        return reader_of(source, limits, self._extra)

    def _count(self, generation: Generation, reports: Sequence[TaskReport]) -> None:
        """Deliveries by subscription, for the summary."""
        counts = self._received.setdefault(
            generation, np.zeros(generation.subscriptions, dtype=np.int64)
        )
        for report in reports:
            if report.received is not None:
                ranks, found = report.received
                counts[ranks] += found

    def _by_subscriber(self) -> Counter[str]:
        """Deliveries of this run."""
        received: Counter[str] = Counter()
        for generation, counts in self._received.items():
            ranks = np.flatnonzero(counts)
            if len(ranks):
                with generation.files(self._output) as here:
                    names = here.table().rows(ranks).subscribers.dictionary_encode()
                totals = np.bincount(names.indices.to_numpy(), weights=counts[ranks])
                pairs = zip(names.dictionary.to_pylist(), totals.tolist(), strict=True)
                received.update({name: int(total) for name, total in pairs})
        return received

    def _describe(self) -> str:
        source = self._settings.source
        return (
            f"{self._settings.mode.kind}: {source.kind} {source.path} against "
            f"{self._pinning.generation.queries:,} queries"
        )


def _reason(error: OSError) -> str:
    return error.message if isinstance(error, PathcastError) else error.strerror or str(error)


def _top(received: Counter[str]) -> list[tuple[str, int]]:
    return sorted(received.items(), key=lambda item: (-item[1], item[0]))[:TOP_SUBSCRIBERS]


@contextmanager
def _workers_of(
    settings: PipelineSettings,
    spark: SparkSession | None,
    workers: Workers | None,
    report: ProgressReport,
) -> Iterator[Callable[[], Workers]]:
    """Gives those that were given, or those of a Spark that is started now and stopped in the end.

    Whoever asks for them waits until they are ready.
    """
    if workers is not None:
        yield lambda: workers
        return
    # Whoever brings workers needs no PySpark.
    from pathcast.spark.session import is_submitted, running_context
    from pathcast.spark.starting import spark_workers, workers_in

    chosen = settings.spark
    ignored = ", ".join(f"spark.{key}" for key in ("master", "conf") if key in chosen.given)
    if ignored and (spark is not None or running_context() is not None):
        report.note(f"the Spark session of this process is used as it is, without {ignored}")
    elif ignored and is_submitted():
        report.note(f"the settings that spark-submit was given go over {ignored}")
    if spark is not None:
        given = workers_in(spark.sparkContext, is_shipped=chosen.ship)
        yield lambda: given
    else:
        with spark_workers(chosen.master, chosen.conf, is_shipped=chosen.ship) as starting:
            yield starting.result


def _check_paths(settings: PipelineSettings) -> None:
    """Refuses what need not be opened to see that it cannot work."""
    _check_source(settings)
    path = settings.subscriptions.path
    if path is not None and not path.exists():
        raise _invalid("subscriptions.path", f"{path}: {os.strerror(errno.ENOENT)}")


def _check_source(settings: PipelineSettings) -> None:
    source, output = settings.source, settings.output.storage
    if not source.storage.is_local:
        if f"{output}/".startswith(f"{source.storage}/"):
            raise _invalid("output.path", INSIDE)
        return
    folder = source.storage.folder
    if source.kind == "broker":
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        raise _invalid("source.path", f"{folder} is not a directory")
    if output.is_local and folder in (output.folder, *output.folder.parents):
        raise _invalid("output.path", INSIDE)


def _invalid(key: str, reason: str) -> PathcastError:
    return ConfigError("config.invalid", key=key, reason=reason)

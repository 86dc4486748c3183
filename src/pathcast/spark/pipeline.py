"""`pathcast run`: from a source of messages and subscriptions to inboxes.

    source -> journal -> shares of files -> Spark -> tasks -> files, named by a commit

Spark carries work to the cores and back-up attempts of it; messages and deliveries never pass
through its JVM. Both modes are one loop: "batch" ends when what was there at the start is done,
"stream" does not. The journal says which files belong to a micro-batch before anything is done of
it; what follows is in `micro_batches`, and a kill anywhere loses nothing and repeats nothing.

Example:
    >>> summary = run(load_settings("pipeline.toml"))                       # doctest: +SKIP
    >>> print(summary.to_text())                                            # doctest: +SKIP
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pathcast.errors import PathcastError, invalid_setting
from pathcast.spark.files import FoundFile, SourceListing, Unit, some_of
from pathcast.spark.generations import Generation
from pathcast.spark.journal import Journal, first_of
from pathcast.spark.ledger import CheckpointSource, Commit, sole_writer
from pathcast.spark.metrics import metered
from pathcast.spark.micro_batches import MicroBatches
from pathcast.spark.progress import ProgressReport, progress_on
from pathcast.spark.sources import columns_there, listing_of, reader_of, shares_of, units_of
from pathcast.spark.stopping import stopped_by_signals
from pathcast.spark.summary import Summary
from pathcast.spark.tasks import TaskReport, raise_errors
from pathcast.spark.workers import Workers
from pathcast.spark.writing import OutputTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pathcast.spark.settings import PipelineSettings

INSIDE: Final = "it lies inside source.path, and would be read as messages"


def run(
    settings: PipelineSettings,
    *,
    progress: ProgressReport | None = None,
    spark: SparkSession | None = None,
    workers: Workers | None = None,
    stop: threading.Event | None = None,
    listing: SourceListing | None = None,
) -> Summary:
    """Run a pipeline to its end, or until it is stopped.

    Args:
        settings: See `settings.load_settings`.
        progress: Who is told how it goes; lines on standard error when not given.
        spark: A session to use, which is left running; the one that runs in this process when not
            given. If there is none, one is started, and stopped in the end.
        workers: Who runs the tasks, in place of a session.
        stop: Set it to stop after the current micro-batch, as SIGTERM and Ctrl-C do.
        listing: Lists the files of the source, in place of a look at it.

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
    with stopped_by_signals(stop) as received, metered(report, settings) as report:
        _check_paths(settings)
        if settings.source.kind == "spark":
            from pathcast.spark.query_run import run_query

            with workers_of(settings, spark, None, report) as ready:
                summary = run_query(settings, ready, report, stop)
        else:
            with sole_writer(settings.output.storage):
                pipeline = Pipeline(settings, report, stop, listing)
                with (
                    closing(pipeline.batches.book.place),
                    workers_of(settings, spark, workers, report) as ready,
                ):
                    # Which takes as long as Spark does to start.
                    pipeline.batches.pinning.begin()
                    summary = pipeline.run(ready())
    seconds = time.monotonic() - started - summary.seconds
    stopped_by = received[0].name if received else ""
    return replace(summary, start_seconds=seconds, stopped_by=stopped_by)


class Pipeline:
    """One run.

    Attributes:
        batches: Its micro-batches.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        report: ProgressReport,
        stop: threading.Event,
        listing: SourceListing | None = None,
    ) -> None:
        self._settings = settings
        self._report = report
        self._stop = stop
        self._journal = Journal(settings.checkpoint)
        source = settings.source
        self.batches = MicroBatches(
            settings,
            CheckpointSource(source.kind, str(source.path)),
            report,
            stop,
            self._journal.last_entry,
        )
        self._listing = listing or listing_of(source, settings.checkpoint, settings.network)
        self.batches.learn_columns(partial(columns_there, source, ()))
        self._unlisted: dict[str, str] = {}
        self._said: set[str] = set()

    def run(self, workers: Workers) -> Summary:
        """Delivers until there is nothing more to do, or until it is told to stop."""
        earlier, undone = self._earlier()
        # What could not be read by an earlier run is tried again, once.
        self._journal.retry_all()
        is_batch = self._settings.mode.kind == "batch"
        due = self._due() if is_batch else []
        self._report.begin(self._describe())
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
        return replace(
            self.batches.end(),
            seconds=time.monotonic() - started,
            unlisted=self._unlisted,
            earlier_messages=earlier,
        )

    def _earlier(self) -> tuple[int, list[int]]:
        """Messages that earlier runs have done, and the micro-batches that they did not end."""
        history = self.batches.history
        self._journal.reopen(entry.file for _, entry in history.unread.values())
        # A kill may have come between the commit and what is done after it.
        self._tell_source(self.batches.ledger.commit(history.through))
        self.batches.catch_up()
        # They are done in order; early commits may be gone (`retention`).
        return history.messages, list(range(history.through + 1, self._journal.last + 1))

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
            found, faults = self._listing.look(self._journal, self._journal.open_files)
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
                self.batches.pinning.look()
            wait = self._settings.mode.seconds_between_batches - (time.monotonic() - looked)
            self._stop.wait(max(0.0, wait))

    def _process(self, workers: Workers, batch_id: int) -> None:
        """One micro-batch; the same rows however often it is done before its commit."""
        files = self._journal.entry(batch_id)
        commit = self.batches.complete(batch_id, files, partial(self._answer, workers, files))
        self._tell_source(commit)
        self._journal.reopen(entry.file for entry in commit.unread)
        if commit.unread:
            self._report.note(
                f"{len(commit.unread):,} files of the source could not be read (pathcast dlq "
                f"{self.batches.output}), the first because {commit.unread[0].message}"
            )
        self.batches.publish(commit)

    def _tell_source(self, commit: Commit | None) -> None:
        """Tell the source that it need not keep the files of a micro-batch any more."""
        if commit is not None:
            unread = {entry.name for entry in commit.unread}
            files = self._journal.entry(commit.batch_id)
            self._listing.committed([file.name for file in files if file.name not in unread])

    def _answer(
        self,
        workers: Workers,
        files: Sequence[FoundFile],
        generation: Generation,
        target: OutputTarget,
    ) -> tuple[Sequence[TaskReport], Mapping[str, PathcastError]]:
        """Runs the tasks; gives their reports, and the files that could not be read."""
        self.batches.learn_columns(partial(columns_there, self._settings.source, files))
        limits = generation.message_limits()
        reader = reader_of(self._settings.source, limits, self.batches.extra)
        unread: dict[str, PathcastError] = {}
        while True:
            units = units_of(reader, files, unread, workers)
            self._say_what_is_lacking(units)
            shares = shares_of(units, workers.count)
            if not shares:
                return (), unread
            task = self.batches.task(generation, target, reader)
            reports = workers.run(task, shares)
            raise_errors(reports)
            failed = {name: error for report in reports for name, error in report.unread.items()}
            unread |= failed
            if not failed or reader.is_whole:
                return reports, unread
            # Some rows of such a file may be in what was written: all of it is done again without.
            self.batches.output.delete(
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
            self._report.note(f"no column {', '.join(columns)} (null there): {some_of(names)}")

    def _describe(self) -> str:
        source = self._settings.source
        return (
            f"{self._settings.mode.kind}: {source.kind} {source.path} against "
            f"{self.batches.pinning.generation.queries:,} queries"
        )


def _reason(error: OSError) -> str:
    return error.message if isinstance(error, PathcastError) else error.strerror or str(error)


@contextmanager
def workers_of(
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
    from pathcast.spark.session import is_submitted, running_context, spark_workers

    chosen = settings.spark
    ignored = ", ".join(f"spark.{key}" for key in ("master", "conf") if key in chosen.given)
    if ignored and (spark is not None or running_context() is not None):
        report.note(f"the Spark session of this process is used as it is, without {ignored}")
    elif ignored and is_submitted():
        report.note(f"the settings that spark-submit was given go over {ignored}")
    context = None if spark is None else spark.sparkContext
    with spark_workers(
        chosen.master, chosen.conf, is_shipped=chosen.ship, context=context
    ) as starting:
        yield starting.result


def _check_paths(settings: PipelineSettings) -> None:
    """Refuses what need not be opened to see that it cannot work."""
    _check_source(settings)
    path = settings.subscriptions.path
    if path is not None and not path.exists():
        raise invalid_setting("subscriptions.path", f"{path}: {os.strerror(errno.ENOENT)}")


def _check_source(settings: PipelineSettings) -> None:
    source, output = settings.source, settings.output.storage
    if source.kind == "spark":
        return
    if not source.storage.is_local:
        if f"{output}/".startswith(f"{source.storage}/"):
            raise invalid_setting("output.path", INSIDE)
        return
    folder = source.storage.folder
    if source.kind == "broker":
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        raise invalid_setting("source.path", f"{folder} is not a directory")
    if output.is_local and folder in (output.folder, *output.folder.parents):
        raise invalid_setting("output.path", INSIDE)

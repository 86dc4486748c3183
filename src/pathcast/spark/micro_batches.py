"""Micro-batches of one output, wherever their messages come from.

    number -> pin -> tasks -> commit -> network of brokers, topics, Delta tables, compaction

A micro-batch is pinned to a generation of subscriptions, tasks write files that no reader knows of,
and the commit names the files of the attempts that ended well. From then on they count; everything
else follows from the commit, and is made up for after a kill. A number that has a commit is not
answered again.

`pipeline` reads files by itself, `delivery` takes frames; both number micro-batches from 1.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from pathcast.errors import PathcastError
from pathcast.spark import schemas
from pathcast.spark.book import SubscriptionBook
from pathcast.spark.compacting import BackgroundCompaction
from pathcast.spark.connectors import offsets_between
from pathcast.spark.dearest import dearest_of
from pathcast.spark.delta import DeltaPublisher, DeltaTables
from pathcast.spark.files import NO_COLUMNS, BatchReader, FoundFile, shown
from pathcast.spark.generations import Generation
from pathcast.spark.ledger import (
    COUNTED,
    BatchLedger,
    CheckpointSource,
    Commit,
    CommitFollower,
    Unread,
    remove_strays,
)
from pathcast.spark.message_times import MessageTimes
from pathcast.spark.outputs import Layout, claim
from pathcast.spark.pinning import Pinning
from pathcast.spark.progress import ProgressReport
from pathcast.spark.publishing import NetworkPublisher, PublishedOutput
from pathcast.spark.retention import KeptBatches
from pathcast.spark.sources import passed_columns
from pathcast.spark.subscription_places import place_of
from pathcast.spark.summary import Summary
from pathcast.spark.tasks import DeliveryTask, TaskReport, UnitT
from pathcast.spark.topics import TopicPublisher
from pathcast.spark.writing import LetterWriter, OutputTarget, WrittenFile, day_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pathcast.spark.settings import PipelineSettings

LOOK_SECONDS: Final = 3600
"""How often it is seen which micro-batches are too old."""

Answered: TypeAlias = Callable[
    [Generation, OutputTarget], tuple[Sequence[TaskReport], Mapping[str, PathcastError]]
]
"""Runs the tasks of a micro-batch; gives their reports, and the files that could not be read."""


class MicroBatches:
    """The micro-batches of one run.

    Args:
        settings: Of the pipeline.
        source: What numbers the micro-batches of this output, and nothing else does.
        report: Who is told how it goes.
        stop: Set to end waiting for a network of brokers.
        last_entry: The last micro-batch that a file of the source was in.
        spark: The session that writes topics; that of this process when not given.

    Attributes:
        extra: Columns that are passed through, as far as their types are known.
        history: What all micro-batches came to.

    Raises:
        ConfigError: The output belongs to another pipeline, or a time cannot be found.
        DiskError: The output or the checkpoint cannot be written.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        source: CheckpointSource,
        report: ProgressReport,
        stop: threading.Event,
        last_entry: Callable[[str], int | None] = lambda _: None,
        spark: SparkSession | None = None,
    ) -> None:
        self._settings = settings
        self._report = report
        self._stop = stop
        self._last_entry = last_entry
        output = self.output = settings.output.storage
        self.ledger = BatchLedger(output, settings.checkpoint)
        out = settings.output
        self.layout = Layout(out.format, out.matches, out.inboxes, out.fragments, by_day=out.by_day)
        claim(output, self.layout)
        times = self._times()
        if times is not None:
            times.check()
        self._checkpoint = self.ledger.claim_checkpoint(source)
        if out.format != "delta":  # whose library looks after its files
            remove_strays(output)
        self.history = self.ledger.history().still_unread(last_entry)
        self.extra = NO_COLUMNS
        asked = settings.subscriptions
        self.book = SubscriptionBook(
            place_of(asked),
            output,
            deliver=asked.deliver,
            namespaces=asked.namespaces,
            limits=settings.engine.limits,
        )
        self._delta = DeltaTables(output, self.layout) if out.format == "delta" else None
        self._followers = list(self._followers_of(settings, spark))
        self._before = self.history.through
        self._compaction = BackgroundCompaction(
            output,
            out.format,
            files=out.compact_files,
            keep_seconds=out.keep_replaced_seconds,
            # A table of its own: the library keeps it for one thread.
            delta=DeltaTables(output, self.layout) if self._delta else None,
            through=self._had,
        )
        self._retention = None
        if out.keep_days is not None:
            self._retention = KeptBatches(
                output, settings.checkpoint, out.keep_days, self._had, by_day=out.by_day
            )
        self._looked_seconds = -math.inf
        self.pinning = Pinning(asked, self.book, self.ledger, output, self.layout, report.note)
        self._summary = Summary(output=str(output))

    def _followers_of(
        self, settings: PipelineSettings, spark: SparkSession | None
    ) -> Iterator[CommitFollower]:
        """Yield who publishes commits: `[publish]`, `[topics]`, Delta tables."""
        output = PublishedOutput(
            self.output,
            self.layout,
            settings.checkpoint,
            self.history.through,
            self._report.note,
            self._stop,
        )
        if settings.publish is not None:
            assert settings.network is not None
            yield NetworkPublisher(settings.network, settings.publish, self._checkpoint, output)
        if settings.topics is not None:
            yield TopicPublisher(settings.topics, output, spark)
        if self._delta is not None:
            yield DeltaPublisher(self._delta, self._checkpoint, self._known_columns)

    def complete(
        self, batch_id: int, files: Sequence[FoundFile], answered: Answered, offsets: str = ""
    ) -> Commit:
        """Answers a micro-batch and commits it; the same rows however often it is done before.

        Args:
            batch_id: Its number.
            files: Files of the source that belong to it.
            answered: Runs the tasks; gives their reports and the files that could not be read.
            offsets: Where in its source it ends, for the commit.
        """
        started = time.monotonic()
        generation, begun_us = self.pinning.pin(batch_id)
        target = OutputTarget(self.output, self.layout, batch_id, generation.version, begun_us)
        reports, unread = answered(generation, target)
        commit = self._commit(target, files, reports, unread)
        seconds = round(time.monotonic() - started, 3)
        skipped = self._skipped(commit, offsets)
        commit = replace(commit, seconds=seconds, offsets=offsets, skipped=skipped)
        self.ledger.write_commit(commit)
        self._before = self.history.through
        self.history = self.history.with_commit(commit).still_unread(self._last_entry)
        self.ledger.sum_up(self.history)
        untimed = sum(report.untimed for report in reports)
        if untimed:
            self._report.note(
                f"{untimed:,} messages of micro-batch {batch_id} have no time at "
                f"{self._settings.source.time} (source.time): message_time is null"
            )
        if skipped:
            self._report.note(
                f"{skipped:,} offsets of micro-batch {batch_id} gave no record: they were gone "
                "before they were read (failOnDataLoss = false), or are marks of transactions"
            )
        self._summary = self._summary.with_commit(commit)
        return commit

    def _skipped(self, commit: Commit, offsets: str) -> int:
        """Offsets of a micro-batch without a record, where nobody else would tell that."""
        if not self._settings.source.passes_over_lost:
            return 0
        before = self.ledger.commit(self.history.through)
        if before is None:
            return 0
        records = commit.messages + commit.tombstones
        return max(0, offsets_between(before.offsets, offsets) - records)

    def publish(self, commit: Commit) -> None:
        """Hands a new commit to all that follows commits."""
        if self._handed_on(commit):
            self._forget()
            self._compaction.wrote(commit.files)
        self._report.batch(commit)

    def _had(self) -> int | None:
        """The last micro-batch that all followers have had; None where there are none."""
        return min((each.through for each in self._followers), default=None)

    def _forget(self) -> None:
        """Looks, now and then, which micro-batches are too old (`output.keep_days`)."""
        now = time.monotonic()
        if self._retention is not None and now - self._looked_seconds >= LOOK_SECONDS:
            self._looked_seconds = now
            if self._compaction.forgot:
                self._retention.forget(self._compaction.forgot)
            first = self._retention.first_kept()
            if self.layout.by_day:
                self._compaction.first_day = day_of(self.ledger.begun_us(first))
            self._compaction.first_kept = first

    def catch_up(self) -> None:
        """Hands on the commits that a kill has left behind."""
        for follower in self._followers:
            follower.check()
        self._handed_on(None)

    def _handed_on(self, commit: Commit | None) -> bool:
        """Whether a commit was published, and those before it that were not; False if stopped."""
        for follower in self._followers:
            missing: Iterable[Commit] = self.ledger.commits(after=follower.through)
            if commit is not None and follower.through == self._before:
                missing = (commit,)
            if not all(map(follower.publish, missing)):
                return False
        return True

    def end(self) -> Summary:
        """Waits for what runs beside, and tells what this run did."""
        if self._delta is not None and self.knows_columns:
            self._delta.create(self.extra)
        self._compaction.wait()
        if self._retention is not None and self._compaction.forgot:
            self._retention.forget(self._compaction.forgot)
        if self._compaction.error is not None:
            self._report.note(f"small files stay as they are: {self._compaction.error}")
        rejected, generation = self.pinning.rejected, self.pinning.generation
        return replace(
            self._summary,
            queries=generation.queries,
            subscriptions=generation.subscriptions,
            rejected_queries=dict(sorted(Counter(row.code for row in rejected).items())),
            last_valid=sum(row.in_force is not None for row in rejected),
            subscriptions_kept=self.pinning.kept,
            was_stopped=self._stop.is_set(),
            published=sum(follower.published for follower in self._followers),
        )

    @property
    def knows_columns(self) -> bool:
        """Whether `extra` is complete."""
        return len(self.extra) == len(self._settings.source.columns)

    def _known_columns(self) -> pa.Schema | None:
        return self.extra if self.knows_columns else None

    def learn_columns(self, there: Callable[[], pa.Schema]) -> None:
        """Finds the types of columns that are passed through, as far as the source tells them."""
        if not self.knows_columns:
            self.extra = passed_columns(
                self._settings.source.columns,
                there,
                self._settings.checkpoint,
                self.layout.format,
            )

    def task(
        self, generation: Generation, target: OutputTarget, reader: BatchReader[UnitT]
    ) -> DeliveryTask[UnitT]:
        """The task of a micro-batch."""
        engine = self._settings.engine
        return DeliveryTask(
            target=target,
            generation=generation,
            reader=reader,
            times=self._times(),
            threads=engine.threads,
            cache_bytes_max=engine.cache_bytes_max,
        )

    def _times(self) -> MessageTimes | None:
        """Return the finder of the times of messages; None where no path is set."""
        source, engine = self._settings.source, self._settings.engine
        if source.time is None:
            return None
        bound = tuple(sorted(source.time_namespaces.items()))
        limits = engine.message_limits()
        return MessageTimes(source.time, bound, limits)

    def _commit(
        self,
        target: OutputTarget,
        files: Sequence[FoundFile],
        reports: Sequence[TaskReport],
        unread: Mapping[str, PathcastError],
    ) -> Commit:
        """The commit of a micro-batch, with the counters of the tasks' reports."""
        written: dict[schemas.OutputName, list[WrittenFile]] = {}
        refused: Counter[str] = Counter()
        stages: Counter[str] = Counter()
        for report in reports:
            refused.update(report.refused)
            stages.update(report.seconds)
            for name, found in report.files.items():
                written.setdefault(name, []).extend(found)
        if unread:
            written.setdefault("dead_letters", []).extend(_letters_of(target, unread))
        by_name = {file.name: file for file in files}
        return Commit(
            batch_id=target.batch_id,
            checkpoint=self._checkpoint,
            snapshot_version=target.version,
            **{name: sum(getattr(report, name) for report in reports) for name in COUNTED},
            deliveries=sum(file.rows for file in written.get("inboxes", ())),
            refused=dict(sorted(refused.items())),
            stages={name: round(seconds, 4) for name, seconds in stages.items()},
            files=written,
            dearest=tuple(dearest_of(row for report in reports for row in report.dearest)),
            unread=tuple(
                Unread(**asdict(by_name[name]), code=error.code, message=error.message)
                for name, error in sorted(unread.items())
            ),
        )


def _letters_of(target: OutputTarget, unread: Mapping[str, PathcastError]) -> list[WrittenFile]:
    """A dead letter for each file that could not be read."""
    writer = LetterWriter(target)
    for name, error in sorted(unread.items()):
        told = {"code": error.code, "message": error.message, "bytes": 0}
        row = {field.name: [told.get(field.name)] for field in schemas.LETTERS}
        writer.add(pa.table(row, schema=schemas.LETTERS), shown(name))
    writer.finish()
    return writer.files

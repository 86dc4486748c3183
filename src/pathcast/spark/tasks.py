"""A Spark task of delivery: a share of the source in, files and counts out.

A `DeliveryTask` travels to the workers as a handful of strings and numbers. The subscriptions do
not travel with it: each worker process opens a generation once and keeps its engines, with the
label paths that they have compiled, for all tasks that follow.

    units of work -> reader -> messages -> Answerer -> writers -> TaskReport

No message and no delivery passes through the JVM. This module does not import pyspark.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import pyarrow as pa

from pathcast.errors import PathcastError
from pathcast.spark import schemas
from pathcast.spark.answering import Answerer
from pathcast.spark.dearest import DearSubscription, add_steps
from pathcast.spark.generations import Generation
from pathcast.spark.schemas import OutputName
from pathcast.spark.writing import (
    InboxWriter,
    LetterWriter,
    MatchWriter,
    OutputTarget,
    WrittenFile,
)

if TYPE_CHECKING:
    from pathcast.spark.files import BatchReader
    from pathcast.spark.message_times import MessageTimes
    from pathcast.spark.storage import Storage

GENERATIONS_OPEN_MAX: Final = 2
"""Generations that a worker keeps open: that of this micro-batch, and the one before it."""

UnitT = TypeVar("UnitT")

STAGES: Final = ("open", "read", "answer", "write")


@dataclass(slots=True)
class TaskReport:
    """Files and counters that a task hands to the driver.

    Attributes:
        messages: Messages that arrived.
        bytes: Bytes of these.
        matches: Pairs of message and query.
        undecided: Pairs of message and subscription without an answer.
        tombstones: Rows that are no messages, of a source that has such.
        work: Steps that single queries took.
        dearest: The queries that took the most of these.
        refused: Error code -> number of messages.
        unread: File -> why it could not be read; nothing of it counts.
        files: What was written.
        untimed: Messages that were delivered and have no time where it is looked for.
        seconds: Stage -> time, see `STAGES`.
        error: Why the task did not end.
    """

    messages: int = 0
    bytes: int = 0
    matches: int = 0
    undecided: int = 0
    tombstones: int = 0
    work: int = 0
    dearest: list[DearSubscription] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    unread: dict[str, PathcastError] = field(default_factory=dict)
    files: dict[OutputName, list[WrittenFile]] = field(default_factory=dict)
    untimed: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    error: PathcastError | None = None


def raise_errors(reports: Iterable[TaskReport]) -> None:
    """Raises the first error of tasks that did not end."""
    for report in reports:
        if report.error is not None:
            raise report.error


@dataclass(frozen=True, slots=True)
class DeliveryTask(Generic[UnitT]):
    """A function from units of work to a report, small enough to be pickled.

    Attributes:
        target: Where rows are written, and what they say of their origin.
        generation: The subscriptions.
        reader: How units become messages.
        times: Finds the times of messages; None where nobody has said where they are.
        threads: Threads in one task. Spark gives a task one core, so one is right as a rule.
        cache_bytes_max: Memory for compiled label paths; None for the engine's default.
    """

    target: OutputTarget
    generation: Generation
    reader: BatchReader[UnitT]
    times: MessageTimes | None
    threads: int
    cache_bytes_max: int | None

    def __call__(self, units: Iterable[UnitT]) -> Iterator[TaskReport]:
        """The report of a share."""
        yield self.run(units)

    def run(self, units: Iterable[UnitT]) -> TaskReport:
        """Delivers the messages of some units."""
        report = TaskReport()
        try:
            _Run(self, report).run(units)
        except PathcastError as error:
            # Spark would hand on the text of it, inside hundreds of lines.
            report.error = error
        return report


class _Run(Generic[UnitT]):
    """One execution of a task."""

    def __init__(self, task: DeliveryTask[UnitT], report: TaskReport) -> None:
        self._task = task
        self._report = report
        self._clock = Clock(report.seconds)
        self._work: Counter[int] = Counter()
        self._answerer = _opened(
            task.target.storage,
            task.generation,
            task.threads,
            task.cache_bytes_max,
        )
        target = task.target
        self._layout = target.layout
        self._letters = LetterWriter(target)
        self._inboxes = InboxWriter(
            target,
            table=self._answerer.table,
            extra=task.reader.extra,
            times=task.times,
        )
        self._matches = MatchWriter(
            target,
            query_ids=self._answerer.query_ids,
            extra=task.reader.extra,
        )
        self._clock.lap("open")

    def run(self, units: Iterable[UnitT]) -> None:
        reader = self._task.reader
        for batch, file in reader.read(units, self._report.unread):
            self._clock.lap("read")
            self._batch(batch, file)
        self._clock.lap("read")
        writers = (self._inboxes, self._matches, self._letters)
        for writer in writers:
            writer.finish()
        self._clock.lap("write")
        report = self._report
        report.files = {writer.name: writer.files for writer in writers if writer.files}
        report.refused = self._letters.refused
        report.untimed = self._inboxes.untimed
        report.dearest = self._answerer.dearest(self._work)

    def _batch(self, batch: pa.RecordBatch, file: str | None) -> None:
        report, start = self._report, 0
        answers = self._answerer.answer(
            batch, with_matches=self._layout.writes("matches"), times=self._times(batch)
        )
        for answer in answers:
            self._clock.lap("answer")
            part = batch.slice(start, len(answer.message_ids))
            start += len(part)
            report.messages += len(part)
            report.bytes += int(answer.sizes.sum().as_py() or 0)
            report.matches += answer.satisfied
            report.undecided += answer.undecided
            report.work += answer.all_work
            add_steps(self._work, answer.work)
            if self._layout.inboxes:
                self._inboxes.add(answer, part)
            if self._layout.writes("matches"):
                self._matches.add(answer, part)
            for _, letters in answer.letters:
                self._letters.add(letters, file)
            self._clock.lap("write")

    def _times(self, batch: pa.RecordBatch) -> pa.Array | datetime:
        """When messages were: as their column says, else when the micro-batch was begun."""
        begun_us, times = self._task.target.processed_us, self._task.times
        if times is None or times.is_path:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=begun_us)
        return times.of(batch).fill_null(pa.scalar(begun_us, schemas.TIME))


class Clock:
    """Adds up the time of stages."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """The time since the last lap belongs to a stage."""
        now = time.perf_counter()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._last
        self._last = now


@lru_cache(maxsize=GENERATIONS_OPEN_MAX)
def _opened(
    storage: Storage,
    generation: Generation,
    threads: int,
    cache_bytes_max: int | None,
) -> Answerer:
    """The engines of a generation, opened once per worker process."""
    with generation.files(storage) as files:
        return Answerer(files, threads=threads, cache_bytes_max=cache_bytes_max)

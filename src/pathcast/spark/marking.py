"""The first stage of partitioned delivery: it marks each message with its partitions.

    units of work -> reader -> messages -> routing index -> files of routed messages -> MarkReport

The door is asked here, once: what it refuses is a dead letter and goes nowhere. This module does
not import pyspark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pathcast.errors import PathcastError
from pathcast.partition.routing import RoutingMarker
from pathcast.spark.answering import message_ids_of, refusals_of, refused_in, sizes_of
from pathcast.spark.partitions import PartitionedGeneration
from pathcast.spark.routed import RoutedFile, RoutedWriter
from pathcast.spark.tasks import GENERATIONS_OPEN_MAX, Clock, DeliveryTask, TaskReport
from pathcast.spark.writing import LetterWriter

if TYPE_CHECKING:
    from pathcast.spark.files import Unit
    from pathcast.spark.storage import Storage


@dataclass(slots=True)
class MarkReport(TaskReport):
    """Counters that a marking task adds to a `TaskReport`.

    Attributes:
        routed: The file of its messages; None where there is none.
        touched: Pairs of message and partition.
    """

    routed: RoutedFile | None = None
    touched: int = 0


@dataclass(frozen=True, slots=True)
class MarkingTask:
    """A function from units of work to a report, small enough to be pickled.

    Attributes:
        task: What is delivered, and how.
        placed: The partitions.
        keep_all: Whether messages that no partition needs are to be known later.
    """

    task: DeliveryTask
    placed: PartitionedGeneration
    keep_all: bool

    def __call__(self, units: Iterable[Unit]) -> Iterator[MarkReport]:
        """The report of a share."""
        report = MarkReport()
        try:
            self._run(units, report)
        except PathcastError as error:
            report.error = error
        yield report

    def _run(self, units: Iterable[Unit], report: MarkReport) -> None:
        task, clock = self.task, Clock(report.seconds)
        marker = _marker(task.storage, self.placed, task.threads)
        letters = LetterWriter(task.target)
        routed = RoutedWriter(
            task.storage, task.batch_id, task.reader.extra, keep_all=self.keep_all
        )
        clock.lap("open")
        for batch, file in task.reader.read(list(units), report.unread):
            clock.lap("read")
            marks = marker.mark(batch.column("message"))
            ids = message_ids_of(batch)
            is_refused, letter = refused_in(batch, ids, refusals_of(marks.errors))
            report.messages += len(batch)
            report.bytes += int(sizes_of(batch).sum().as_py() or 0)
            report.touched += len(marks.partitions.flatten())
            clock.lap("mark")
            letters.add(letter, file)
            routed.add(batch, ids, marks.partitions, is_refused, file)
            clock.lap("write")
        clock.lap("read")
        letters.finish()
        report.routed = routed.finish()
        report.files = {letters.name: letters.files} if letters.files else {}
        report.refused = letters.refused
        clock.lap("write")


@lru_cache(maxsize=GENERATIONS_OPEN_MAX)
def _marker(storage: Storage, placed: PartitionedGeneration, threads: int) -> RoutingMarker:
    """The routing index, opened once per worker process."""
    return placed.routing(storage).marker(threads=threads)

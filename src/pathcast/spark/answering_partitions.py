"""The second and third stages of partitioned delivery, as Spark tasks.

A worker opens the partitions that it serves and no other, answers the messages that were routed to
them, and writes their deliveries as it would those of a whole generation: a delivery is of one
query, and a query lies in one partition, so what partitions write is together what one worker would
have written. Only the row of matches, one a message, is made of what several have found, which is
the third stage.

    RoutedFile, partition -> Answerer of the partition -> inboxes, dead letters, Finds
    RoutedFile, its Finds -> rows of matches

This module does not import pyspark.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import PathcastError
from pathcast.spark.answering import Answerer, MicroBatchAnswer
from pathcast.spark.partitions import PartitionedGeneration
from pathcast.spark.routed import ROUTED, ROW, RoutedMessages, opened_ipc, routed_ids
from pathcast.spark.tasks import Clock, DeliveryTask, TaskReport
from pathcast.spark.writing import InboxWriter, LetterWriter, MatchWriter

if TYPE_CHECKING:
    from pathcast.spark.schemas import MatchesForm
    from pathcast.spark.storage import Storage

PARTITIONS_OPEN_MAX: Final = 4
"""Partitions that a worker keeps open where nothing is said: it serves a run of them, one after
another, and those that it served last are likely to come again."""


@dataclass(frozen=True, slots=True)
class PartitionUnit:
    """Messages that go to a partition.

    Attributes:
        partition: Its number.
        file: Name of the file that they lie in.
        cost: Bytes of these messages.
    """

    partition: int
    file: str
    cost: int


@dataclass(frozen=True, slots=True)
class Finds:
    """Which filter queries of a partition the messages of a file satisfy.

    Attributes:
        routed: Name of the file of messages.
        file: Name of the file that says so.
        batch: Number of the record batch there.
    """

    routed: str
    file: str
    batch: int


@dataclass(slots=True)
class PartitionReport(TaskReport):
    """Counters that a task of the second stage adds to a `TaskReport`.

    Attributes:
        finds: What is to be merged.
    """

    finds: list[Finds] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """Answers the messages of partitions; pickled.

    Attributes:
        task: What is delivered, and how.
        placed: The partitions.
        with_matches: Whether rows of matches are wanted.
        bytes_max: Memory for the partitions that a worker keeps open; None for a few of them.
    """

    task: DeliveryTask
    placed: PartitionedGeneration
    with_matches: bool
    bytes_max: int | None = None

    def __call__(self, units: Iterable[PartitionUnit]) -> Iterator[PartitionReport]:
        """The report of a share, whose units stand in the order of their partitions."""
        report = PartitionReport()
        try:
            _Run(self, report).run(list(units))
        except PathcastError as error:
            report.error = error
        yield report


class _Run:
    """One execution of a partition task."""

    def __init__(self, job: PartitionTask, report: PartitionReport) -> None:
        task = job.task
        self._job, self._task, self._report = job, task, report
        self._clock = Clock(report.seconds)
        target = task.target
        self._letters = LetterWriter(target)
        with task.generation.files(task.storage) as files:
            table = files.table()
        self._inboxes = InboxWriter(
            target,
            table=table,
            extra=task.reader.extra,
            times=task.times,
        )
        self._finds = _FindsWriter(task)
        self._messages: dict[str, RoutedMessages] = {}

    def run(self, units: Sequence[PartitionUnit]) -> None:
        task, report = self._task, self._report
        partitions = _partitions(
            task.storage,
            self._job.placed,
            task.threads,
            task.cache_bytes_max,
            task.matches != "numbers",
            self._job.bytes_max,
        )
        for number, of_partition in groupby(units, key=lambda unit: unit.partition):
            opened = partitions.open(number)
            self._clock.lap("open")
            for unit in of_partition:
                self._answer(opened, unit)
        for writer in (self._inboxes, self._letters):
            writer.finish()
        report.finds = self._finds.finish()
        self._clock.lap("write")
        writers = (self._inboxes, self._letters)
        report.files = {writer.name: writer.files for writer in writers if writer.files}
        report.received = self._inboxes.received()
        report.untimed = self._inboxes.untimed

    def _answer(self, opened: _Partition, unit: PartitionUnit) -> None:
        task, report = self._task, self._report
        if unit.file not in self._messages:
            self._messages[unit.file] = RoutedMessages(task.storage, unit.file)
        for batch, file in self._messages[unit.file].of(unit.partition):
            self._clock.lap("read")
            start = 0
            for answer in opened.answerer.answer(batch, with_matches=self._job.with_matches):
                self._clock.lap("answer")
                part = batch.slice(start, len(answer.message_ids))
                start += len(part)
                report.matches += answer.satisfied
                report.undecided += answer.undecided
                if task.inboxes:
                    self._inboxes.add(replace(answer, ranks=opened.ranks[answer.ranks]), part)
                if answer.matches is not None:
                    self._finds.add(part.column(ROW), answer.matches, opened.names)
                for letters in answer.letters:
                    self._letters.add(letters, file)
                self._clock.lap("write")
        self._finds.end(unit.file)


@dataclass(frozen=True, slots=True)
class _Partition:
    """A partition as a worker holds it.

    Attributes:
        answerer: Its engines.
        ranks: Places of its takers in the whole table.
        names: For its filter queries, what rows of matches call them.
    """

    answerer: Answerer
    ranks: np.ndarray
    names: pa.Array


class _Partitions:
    """The partitions that a worker keeps open; those that it served last stay."""

    def __init__(
        self,
        storage: Storage,
        placed: PartitionedGeneration,
        threads: int,
        cache_bytes_max: int | None,
        by_id: bool,
        bytes_max: int | None,
    ) -> None:
        self._storage = storage
        self._placed = placed
        self._threads = threads
        self._cache_bytes_max = cache_bytes_max
        self._by_id = by_id
        self._bytes_max = bytes_max
        self._open: dict[int, _Partition] = {}

    def open(self, number: int) -> _Partition:
        """A partition; others are closed first, those that were served longest ago, to make room.

        One that is larger than all the memory there is for them is open alone.
        """
        found = self._open.pop(number, None)
        if found is None:
            self._make_room(self._placed.open_bytes(number))
            found = self._opened(number)
        self._open[number] = found
        return found

    def _make_room(self, wanted: int) -> None:
        while self._open and self._is_full(wanted):
            del self._open[next(iter(self._open))]

    def _is_full(self, wanted: int) -> bool:
        if self._bytes_max is None:
            return len(self._open) >= PARTITIONS_OPEN_MAX
        return sum(map(self._placed.open_bytes, self._open)) + wanted > self._bytes_max

    def _opened(self, number: int) -> _Partition:
        part = self._placed.partition(number)
        with part.files(self._storage) as files:
            answerer = Answerer(
                files,
                threads=self._threads,
                cache_bytes_max=self._cache_bytes_max,
            )
        names = answerer.query_ids
        if part.has_notices and not self._by_id:
            names = pa.array(self._placed.numbers(self._storage, number))
        return _Partition(answerer, self._placed.ranks(self._storage, number), names)


@lru_cache(maxsize=1)
def _partitions(
    storage: Storage,
    placed: PartitionedGeneration,
    threads: int,
    cache_bytes_max: int | None,
    by_id: bool,
    bytes_max: int | None,
) -> _Partitions:
    """The partitions of a generation, those that are open kept by a worker process."""
    return _Partitions(storage, placed, threads, cache_bytes_max, by_id, bytes_max)


class _FindsWriter:
    """Which queries messages satisfy, on their way to those who merge it."""

    def __init__(self, task: DeliveryTask) -> None:
        self._storage = task.storage
        self._name = f"{ROUTED}/{task.batch_id:06d}-{uuid.uuid4().hex}.finds.arrow"
        self._schema = _finds_schema(task.matches)
        self._held: list[pa.RecordBatch] = []
        self._batches: list[pa.RecordBatch] = []
        self._finds: list[Finds] = []

    def add(self, rows: pa.Array, matches: pa.ListArray, names: pa.Array) -> None:
        """Takes the lists of some rows of a file."""
        found = rows.take(pc.list_parent_indices(matches).cast(pa.int64()))
        values = names.take(matches.flatten()).cast(self._schema.field(_VALUE).type)
        self._held.append(pa.record_batch([found, values], schema=self._schema))

    def end(self, routed: str) -> None:
        """All of a file and partition has come."""
        if any(len(batch) for batch in self._held):
            self._finds.append(Finds(routed, self._name, len(self._batches)))
            self._batches.append(pa.concat_batches(self._held))
        self._held = []

    def finish(self) -> list[Finds]:
        """Writes what has come."""
        if self._batches:
            with (
                self._storage.create(self._name) as handle,
                pa.ipc.new_file(handle, self._schema) as writer,
            ):
                for batch in self._batches:
                    writer.write_batch(batch)
        return self._finds


_VALUE: Final = "query"


@dataclass(frozen=True, slots=True)
class MergeUnit:
    """A file of messages, and what partitions have found in it.

    Attributes:
        routed: Its name.
        finds: By partition.
        cost: Rows to be written.
    """

    routed: str
    finds: tuple[Finds, ...]
    cost: int


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Writes rows of matches; pickled.

    Attributes:
        task: What is delivered, and how.
    """

    task: DeliveryTask

    def __call__(self, units: Iterable[MergeUnit]) -> Iterator[TaskReport]:
        """The report of a share."""
        report = TaskReport()
        clock = Clock(report.seconds)
        try:
            for unit in units:
                written = self._merge(unit).files
                report.files.setdefault("matches", []).extend(written)
        except PathcastError as error:
            report.error = error
        clock.lap("merge")
        yield report

    def _merge(self, unit: MergeUnit) -> MatchWriter:
        """The rows of one file."""
        task = self.task
        batch = routed_ids(task.storage, unit.routed, task.reader.extra)
        rows, values = _found(task.storage, unit.finds, _finds_schema(task.matches))
        names = pa.array([], pa.string())
        if task.matches == "ids":
            encoded = values.dictionary_encode()
            names, values = encoded.dictionary, encoded.indices
        # Ascending by message and number: one sort of 64-bit integers.
        keys = rows.astype(np.uint64) << np.uint64(32)
        keys |= values.to_numpy(zero_copy_only=False).astype(np.uint64)
        keys.sort()
        ends = np.searchsorted(keys >> np.uint64(32), np.arange(len(batch) + 1))
        numbers = pa.array((keys & np.uint64(0xFFFFFFFF)).astype(np.uint32))
        lists = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), numbers)
        writer = MatchWriter(
            task.target, form=task.matches, query_ids=names, extra=task.reader.extra
        )
        writer.add(_matched(batch, lists), batch)
        writer.finish()
        return writer


def _finds_schema(form: MatchesForm) -> pa.Schema:
    """Rows of a file, and the query of each: its id, or its number in the whole snapshot."""
    value = pa.string() if form == "ids" else pa.uint32()
    return pa.schema([(ROW, pa.uint32()), (_VALUE, value)])


def _found(
    storage: Storage, finds: Sequence[Finds], schema: pa.Schema
) -> tuple[np.ndarray, pa.Array]:
    """Rows of a file and the queries that each satisfies."""
    batches = []
    for name, of_file in groupby(finds, key=lambda each: each.file):
        with opened_ipc(storage, name) as reader:
            batches += [reader.get_batch(each.batch) for each in of_file]
    table = pa.Table.from_batches(batches, schema)
    return table.column(ROW).to_numpy(), table.column(_VALUE).combine_chunks()


def _matched(batch: pa.RecordBatch, lists: pa.ListArray) -> MicroBatchAnswer:
    """Lists as a worker would have found them alone."""
    nothing = np.zeros(0, dtype=np.int32)
    return MicroBatchAnswer(
        message_ids=batch.column("message_id"),
        sizes=pa.nulls(len(batch), pa.int64()),
        is_refused=np.zeros(len(batch), dtype=bool),
        rows=nothing,
        ranks=nothing,
        result_numbers=nothing,
        fragments=nothing,
        values=pa.array([], pa.binary()),
        matches=lists,
        letters=[],
        satisfied=len(lists.values),
    )

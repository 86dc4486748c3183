"""Deliveries leave where they are made: the files that one task writes.

A task sorts its deliveries by subscriber (integers, no text) and writes Parquet whose columns are
dictionaries, so that a name is written once a row group and not once a delivery. Row groups and
pages carry the least and the greatest subscriber: whoever reads one inbox skips the rest. What goes
back to the driver is names of files and counts. A file counts when a commit names it, not before.

    BatchAnswer, many a task -> InboxWriter, MatchWriter, LetterWriter -> WrittenFile

This module does not import pyspark.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.limits import MIB
from pathcast.spark import schemas
from pathcast.spark.answering import MicroBatchAnswer
from pathcast.spark.joined_answers import JoinedAnswers
from pathcast.spark.json_lines import JsonLinesSink, text_or_bytes

if TYPE_CHECKING:
    from pathcast.spark.generations import TakerTable
    from pathcast.spark.message_times import MessageTimes
    from pathcast.spark.outputs import Layout
    from pathcast.spark.schemas import OutputName
    from pathcast.spark.storage import Storage

FileFormat: TypeAlias = Literal["parquet", "jsonl", "delta"]
"""A Delta table is Parquet files and a log of which of them count."""

ROWS_A_GROUP: Final = 262_144
"""Deliveries of a row group: a dictionary of message ids pays, and a reader still skips most."""

DELIVERIES_A_FILE: Final = 4_000_000
FRAGMENT_BYTES_A_FILE: Final = 256 * MIB
"""A task holds no more before it writes a file: with 24 bytes a delivery, 350 MB at most."""

NUMBERS_A_GROUP: Final = 4_000_000
"""Query numbers of a row group of matches: 16 MB in memory, 4 MB in the file."""

_UNBOUNDED: Final = ("delivery_id", "fragment", "fragment_bytes")
"""Columns whose least and greatest values say nothing, and are not looked for."""

_TIMES: Final = ("message_time", "processed_at")

_TIME_FIELD: Final = schemas.INBOXES.field("message_time")
_MESSAGE_TIME: Final = _TIME_FIELD.name


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a task has written.

    Attributes:
        name: Inside the output.
        rows: How many.
        bytes: How large.
        first: Least subscriber, for inboxes.
        last: Greatest subscriber, for inboxes.
    """

    name: str
    rows: int
    bytes: int
    first: str | None = None
    last: str | None = None


class TableSink(Protocol):
    """A file of rows that is being written."""

    def write(self, table: pa.Table) -> None:
        """Adds rows."""

    def close(self) -> None:
        """Nothing more comes."""


class ParquetSink:
    """Rows as Parquet, each table a row group."""

    def __init__(self, handle: IO[bytes], schema: pa.Schema) -> None:
        leaves = _leaves(schema)
        numbers = "query_numbers.list.element"
        self._writer = pq.ParquetWriter(
            handle,
            schema,
            # Ids are random bytes: nothing makes them smaller, and their bounds say nothing.
            compression={name: "none" if name == "delivery_id" else "zstd" for name in leaves},
            use_dictionary=[name for name in leaves if name not in ("delivery_id", numbers)],
            # Ascending: what is written is the distance to the one before, in 5 to 6 bits.
            column_encoding={numbers: "DELTA_BINARY_PACKED"} if numbers in leaves else None,
            write_statistics=[name for name in leaves if name not in _UNBOUNDED],
            write_page_index=True,
            dictionary_pagesize_limit=8 * MIB,
            # What readers elsewhere see is text, whatever it was in memory.
            store_schema=False,
        )

    def write(self, table: pa.Table) -> None:
        """Write rows as row groups."""
        self._writer.write_table(table, row_group_size=max(1, len(table)))

    def close(self) -> None:
        """Write the rest and the file's footer."""
        try:
            self._writer.close()
        except BaseException:
            # Else it is closed again when it is taken apart, which complains on standard error.
            self._writer.is_open = False
            raise


def new_name(folder: str, batches: Sequence[int], format: FileFormat) -> str:
    """A name for a file that nothing else has.

    Args:
        folder: That of an output, or of a day of it.
        batches: The micro-batch of the rows, or the first and the last one.
        format: Of the file.

    Example:
        >>> batches_of_name(new_name("inboxes", (3, 7), "parquet"))
        (3, 7)
    """
    ending = "jsonl" if format == "jsonl" else "parquet"
    numbers = "-".join(f"{number:06d}" for number in batches)
    return f"{folder}/{numbers}-{uuid.uuid4().hex}.{ending}"


def day_of(at_us: int) -> str:
    """The day of a moment in UTC.

    Args:
        at_us: Microseconds since 1970.

    Example:
        >>> day_of(1_790_000_000_000_000)
        '2026-09-21'
    """
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)).date().isoformat()


def partition_of_name(name: str) -> dict[str, str]:
    """The day of a file that lies in the folder of one.

    Example:
        >>> partition_of_name("inboxes/day=2026-11-29/000003-a.parquet")
        {'day': '2026-11-29'}
    """
    folders = name.split("/")[1:-1]
    return dict(folder.split("=", 1) for folder in folders)


def batches_of_name(name: str) -> tuple[int, int]:
    """The first and the last micro-batch of which a file may have rows."""
    numbers = [int(part) for part in name.rpartition("/")[2].split("-")[:-1]]
    return numbers[0], numbers[-1]


@dataclass(frozen=True, slots=True)
class OutputTarget:
    """Where a task writes, in which form, and what all its rows say of their origin.

    Attributes:
        storage: The output.
        layout: Of the output.
        batch_id: Number of the micro-batch.
        version: Version of the generation.
        processed_us: When the micro-batch was begun, in microseconds since 1970, UTC.
    """

    storage: Storage
    layout: Layout
    batch_id: int
    version: str
    processed_us: int

    @property
    def format(self) -> FileFormat:
        """Format of the files."""
        return self.layout.format

    def folder(self, name: OutputName) -> str:
        """The folder that rows of an output go into.

        The day is that of the micro-batch, which is the same however often it is done, and whose
        rows stay together: a day is full when the next one has begun.
        """
        if not self.layout.by_day:
            return name
        return f"{name}/{schemas.DAY}={day_of(self.processed_us)}"

    def origin(self, count: int) -> list[pa.Array]:
        """The columns snapshot_version, batch_id and processed_at."""
        zeros = np.zeros(count, dtype=np.int8)
        return [
            pa.DictionaryArray.from_arrays(zeros, pa.array([self.version])),
            pa.array(np.full(count, self.batch_id, dtype=np.int32)),
            pa.repeat(pa.scalar(self.processed_us, schemas.TIME), count),
        ]

    def table(self, name: OutputName, columns: list[pa.Array], extra: pa.Schema) -> pa.Table:
        """Columns of an output as a table; of the types that they have in memory."""
        fields = [
            field.with_type(column.type)
            for field, column in zip([*self.layout.schema(name), *extra], columns, strict=True)
        ]
        return pa.table(columns, schema=pa.schema(fields))


class _Output:
    """The files of one output that one task writes."""

    name: OutputName

    def __init__(self, target: OutputTarget) -> None:
        self._target = target
        self._open: tuple[WrittenFile, IO[bytes], TableSink] | None = None
        self.files: list[WrittenFile] = []

    def _append(self, table: pa.Table) -> None:
        """Adds a row group to the file that is open, which is begun if there is none."""
        if self._open is None:
            # No two attempts of a task share a name: only what the driver hears of counts.
            target = self._target
            name = new_name(target.folder(self.name), (target.batch_id,), target.format)
            handle = target.storage.create(name)
            sink: TableSink
            if target.format == "jsonl":
                sink = JsonLinesSink(handle)
            else:
                sink = ParquetSink(handle, table.schema)
            self._open = WrittenFile(name, 0, 0), handle, sink
        file, handle, sink = self._open
        sink.write(table)
        self._open = replace(file, rows=file.rows + len(table)), handle, sink

    def _end(self, first: str | None = None, last: str | None = None) -> None:
        if self._open is None:
            return
        file, handle, sink = self._open
        sink.close()
        handle.flush()
        size = handle.tell()
        handle.close()
        self.files.append(replace(file, bytes=size, first=first, last=last))
        self._open = None


class InboxWriter(_Output):
    """Deliveries, sorted by subscriber.

    Attributes:
        untimed: Messages of deliveries that have no time where it is looked for.
    """

    name: OutputName = "inboxes"

    def __init__(
        self,
        target: OutputTarget,
        *,
        table: TakerTable,
        extra: pa.Schema,
        times: MessageTimes | None = None,
    ) -> None:
        super().__init__(target)
        self._table = table
        self._extra = extra
        self._times = times
        self.untimed = 0
        self._held: list[tuple[MicroBatchAnswer, pa.RecordBatch]] = []
        self._rows = self._bytes = 0

    def add(self, answer: MicroBatchAnswer, batch: pa.RecordBatch) -> None:
        """Takes the deliveries of an answer to a batch."""
        if not len(answer):
            return
        # Not the messages: those of many partitions would be held, each with a copy of its own.
        held = batch.select(self._extra.names).append_column(
            _MESSAGE_TIME, self._timed(answer, batch)
        )
        self._held.append((answer, held))
        self._rows += len(answer)
        self._bytes += answer.values.nbytes
        if self._rows >= DELIVERIES_A_FILE or self._bytes >= FRAGMENT_BYTES_A_FILE:
            self.finish()

    def _timed(self, answer: MicroBatchAnswer, batch: pa.RecordBatch) -> pa.Array:
        """The time of each message of a batch, of those that are delivered."""
        if self._times is None:
            return pa.nulls(len(batch), schemas.TIME)
        rows = np.unique(answer.rows)
        found = self._times.of(batch.take(pa.array(rows)))
        self.untimed += found.null_count
        places = np.zeros(len(batch), dtype=np.int64)
        places[rows] = np.arange(len(rows))
        return found.take(pa.array(places))

    def finish(self) -> None:
        """Writes what is held as one file."""
        if not self._rows:
            return
        batch = JoinedAnswers([answer for answer, _ in self._held])
        schema = self._extra.append(_TIME_FIELD)
        extra = pa.Table.from_batches([batch for _, batch in self._held], schema)
        order = batch.by_rank()
        for start in range(0, len(order), ROWS_A_GROUP):
            self._append(self._group(batch, order[start : start + ROWS_A_GROUP], extra))
        ends = self._table.rows(batch.ranks[order[[0, -1]]]).subscribers
        self._end(ends[0].as_py(), ends[1].as_py())
        self._held, self._rows, self._bytes = [], 0, 0

    def _group(self, batch: JoinedAnswers, order: np.ndarray, extra: pa.Table) -> pa.Table:
        """A row group, each column with a dictionary of its own."""
        *columns, fragments, ids = batch.deliveries(order, self._table)
        passed = extra.take(pa.array(batch.rows[order]))
        columns += [
            *self._fragments(fragments),
            ids,
            passed.column(_MESSAGE_TIME),
            *self._target.origin(len(order)),
            *passed.drop_columns([_MESSAGE_TIME]).columns,
        ]
        return self._target.table("inboxes", columns, self._extra)

    def _fragments(self, fragments: pa.DictionaryArray) -> list[pa.Array]:
        """The columns of results: bytes, or text and the bytes of what is none."""
        if self._target.layout.fragments == "binary":
            return [fragments]
        content, indices = fragments.dictionary, fragments.indices
        nothing = pa.DictionaryArray.from_arrays(
            pa.nulls(len(indices), pa.int32()), pa.array([], pa.binary())
        )
        try:
            # The cast looks at each byte, and copies none.
            return [pa.DictionaryArray.from_arrays(indices, content.cast(pa.string())), nothing]
        except pa.ArrowInvalid:
            pairs = [text_or_bytes(each) for each in content.to_pylist()]
        texts = pa.array([text for text, _ in pairs], pa.string())
        others = pa.array([rest for _, rest in pairs], pa.binary())
        # Nulls of a dictionary are no nulls for every reader: they are made such of the rows.
        return [each.take(indices).dictionary_encode() for each in (texts, others)]


class MatchWriter(_Output):
    """A row a message: the queries that it satisfies of those that are delivered as an id."""

    name: OutputName = "matches"

    def __init__(self, target: OutputTarget, *, query_ids: pa.Array, extra: pa.Schema) -> None:
        super().__init__(target)
        self._form = target.layout.matches
        self._schema = schemas.matches(self._form)
        self._extra = extra
        if self._form == "ids":
            order = pc.array_sort_indices(query_ids)
            self._sorted = query_ids.take(order)
            self._place = np.empty(len(query_ids), dtype=np.uint32)
            self._place[order.to_numpy()] = np.arange(len(query_ids), dtype=np.uint32)
        self._held: list[pa.Table] = []
        self._numbers = 0

    def add(self, answer: MicroBatchAnswer, batch: pa.RecordBatch) -> None:
        """Takes the lists of an answer to a batch."""
        if answer.matches is None:
            return
        rows = pa.array(np.flatnonzero(~answer.is_refused))
        lists = answer.matches.take(rows) if len(rows) < len(answer.is_refused) else answer.matches
        offsets = lists.offsets.to_numpy()
        numbers = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
        if self._form == "ids":
            values: pa.Array = self._ids(numbers.to_numpy(), np.diff(offsets))
        else:
            # The numbers are below 2^31: the same bits serve.
            values = numbers.view(pa.int32())
        element = self._schema.field(1).type.value_field.with_type(values.type)
        lists = pa.ListArray.from_arrays(
            pa.array(offsets - offsets[0]), values, type=pa.list_(element)
        )
        columns = [answer.message_ids.take(rows), lists, *self._target.origin(len(rows))]
        columns += [batch.column(name).take(rows) for name in self._extra.names]
        self._held.append(self._target.table("matches", columns, self._extra))
        self._numbers += len(numbers)
        if self._numbers >= NUMBERS_A_GROUP:
            self._flush()

    def _ids(self, numbers: np.ndarray, counts: np.ndarray) -> pa.Array:
        """Ids, sorted within each message: integers are sorted, text is not."""
        messages = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
        keys = messages * np.uint64(len(self._sorted)) + self._place[numbers]
        keys.sort()
        return self._sorted.take(pa.array(keys % np.uint64(max(1, len(self._sorted)))))

    def _flush(self) -> None:
        if self._held:
            self._append(pa.concat_tables(self._held, promote_options="permissive"))
            self._held, self._numbers = [], 0

    def finish(self) -> None:
        """Writes what is held, and ends the file."""
        self._flush()
        self._end()


class LetterWriter(_Output):
    """Writes dead letters: messages that were refused, and why."""

    name: OutputName = "dead_letters"

    def __init__(self, target: OutputTarget) -> None:
        super().__init__(target)
        self.refused: dict[str, int] = {}

    def add(self, letters: pa.Table, file: str | None = None) -> None:
        """Takes letters, `LETTERS`.

        Args:
            letters: Rows.
            file: The file of the source that they came from, where there is one.
        """
        if not len(letters):
            return
        is_message = pc.is_null(letters.column("subscription_id"))
        for row in pc.value_counts(letters.filter(is_message).column("code")).to_pylist():
            self.refused[row["values"]] = self.refused.get(row["values"], 0) + row["counts"]
        count = len(letters)
        columns = [*letters.columns, pa.array([file] * count, pa.string())]
        columns += self._target.origin(count)
        self._append(self._target.table("dead_letters", columns, pa.schema([])))

    def finish(self) -> None:
        """Ends the file."""
        self._end()


@lru_cache
def _leaves(schema: pa.Schema) -> list[str]:
    """Columns as Parquet names them, those that are nested included."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    parquet = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return [parquet.column(number).path for number in range(len(parquet))]

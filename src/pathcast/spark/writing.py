"""Deliveries leave where they are made: the files that one task writes.

A task sorts its deliveries by subscriber (integers, no text) and writes Parquet whose columns are
dictionaries, so that a name is written once a row group and not once a delivery. Row groups and
pages carry the least and the greatest subscriber: whoever reads one inbox skips the rest. What goes
back to the driver is names of files and counts. A file counts when a commit names it, not before.

    BatchAnswer, many a task -> InboxWriter, MatchWriter, LetterWriter -> WrittenFile

This module does not import pyspark.
"""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.kernel.delivery_ids import delivery_ids
from pathcast.limits import MIB
from pathcast.spark import schemas
from pathcast.spark.answering import NO_FRAGMENT, MicroBatchAnswer
from pathcast.spark.json_values import json_rows
from pathcast.spark.message_times import missing_in

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

_ANY_TEXT: Final = ("", "\U0010ffff" * 8)
"""Bounds of texts that are not looked at: what no text is less than, and hardly one greater."""

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
        bounds: Column -> least and greatest value as JSON has them, where the format wants them.
        nulls: Column -> rows without a value, where the format wants them.
    """

    name: str
    rows: int
    bytes: int
    first: str | None = None
    last: str | None = None
    bounds: Mapping[str, tuple[Any, Any]] | None = None
    nulls: Mapping[str, int] | None = None


Bounds: TypeAlias = dict[str, tuple[Any, Any]]
Nulls: TypeAlias = dict[str, int]


class TableSink(Protocol):
    """A file of rows that is being written."""

    def write(self, table: pa.Table) -> None:
        """Adds rows."""

    def close(self) -> None:
        """Nothing more comes."""

    def statistics(self) -> tuple[Bounds, Nulls]:
        """Least and greatest values, and rows without one, by column, after `close`."""


class ParquetSink:
    """Rows as Parquet, each table a row group."""

    def __init__(self, handle: IO[bytes], schema: pa.Schema) -> None:
        self._metadata: list[pq.FileMetaData] = []
        leaves = _leaves(schema)
        self._has_structures = any(pa.types.is_struct(field.type) for field in schema)
        self._rows = 0
        flat = [f for f in schema if not (pa.types.is_nested(f.type) or _is_bytes(f.type))]
        self._nulls: Nulls = dict.fromkeys([field.name for field in flat], 0)
        self._places = {
            field.name: leaves.index(field.name) for field in flat if field.name not in _UNBOUNDED
        }
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
            metadata_collector=self._metadata,
        )

    def write(self, table: pa.Table) -> None:
        """Write rows as row groups."""
        self._rows += len(table)
        for name in self._nulls:
            self._nulls[name] += table.column(name).null_count
        self._writer.write_table(table, row_group_size=max(1, len(table)))

    def close(self) -> None:
        """Write the rest and the file's footer."""
        try:
            self._writer.close()
        except BaseException:
            # Else it is closed again when it is taken apart, which complains on standard error.
            self._writer.is_open = False
            raise

    def statistics(self) -> tuple[Bounds, Nulls]:
        """Return bounds and nulls; where one column has values and no bounds, none has bounds.

        Readers of Delta tables take such a column, and each structure, beside others that have
        bounds for one that has no rows.
        """
        bounds: Bounds = {}
        is_bounded = not self._has_structures
        groups = [meta.row_group(n) for meta in self._metadata for n in range(meta.num_row_groups)]
        for name, nulls in self._nulls.items():
            if nulls == self._rows:
                continue
            found: tuple[Any, Any] | None = _ANY_TEXT
            if name in self._places:
                told = [group.column(self._places[name]).statistics for group in groups]
                found = _as_json_bounds([each for each in told if each.num_values])
            is_bounded = is_bounded and found is not None
            bounds[name] = found or (None, None)
        return (bounds if is_bounded else {}), self._nulls


def _as_json_bounds(told: Sequence[pq.Statistics]) -> tuple[Any, Any] | None:
    """The least and the greatest value of some row groups as JSON has them; None if unknown."""
    try:
        if not all(each.has_min_max for each in told):
            return None
        bounds = min(each.min for each in told), max(each.max for each in told)
        found = tuple(map(_as_json_bound, bounds))
    except (OverflowError, ValueError):
        return None  # a time that Python cannot say
    return None if None in found else found


def _as_json_bound(value: Any) -> Any:
    """A value as the log of a Delta table has it; None where that would be another one."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        number = float(value)
        return number if Decimal(repr(number)) == value else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _as_text(time: datetime) -> str:
    in_utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return in_utc.replace(tzinfo=None).isoformat() + "Z"


class JsonLinesSink:
    """Rows as JSON, a line each, every key in every line."""

    def __init__(self, handle: IO[bytes]) -> None:
        self._handle = handle

    def write(self, table: pa.Table) -> None:
        """Write a line a row."""
        for row in as_json_rows(table):
            self._handle.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Write nothing: every line is complete."""

    def statistics(self) -> tuple[Bounds, Nulls]:
        """None: lines have no place for them."""
        return {}, {}


def as_json_rows(table: pa.Table) -> Iterator[dict[str, object]]:
    """Rows as JSON can say them.

    JSON has no bytes: ids are hexadecimal; a fragment is text or, where a message that was asked
    for is no UTF-8, null, and then in `fragment_base64`. Times are text, in UTC. `json_values` says
    what becomes of columns that are passed through.
    """
    for batch in table.to_batches(max_chunksize=4096):
        for row in json_rows(batch, apart=(*_UNBOUNDED, *_TIMES)):
            if "delivery_id" in row:
                row["delivery_id"] = row["delivery_id"].hex()
            if "fragment" in row:
                fragment, rest = row["fragment"], row.pop("fragment_bytes", None)
                if isinstance(fragment, bytes):
                    fragment, rest = _text_or_bytes(fragment)
                row["fragment"] = fragment
                packed = None if rest is None else base64.b64encode(rest).decode()
                row[schemas.FRAGMENT_BASE64] = packed
            for name in _TIMES:
                if isinstance(row.get(name), datetime):
                    row[name] = _as_text(row[name])
            yield row


def _text_or_bytes(content: bytes) -> tuple[str | None, bytes | None]:
    """Bytes as text; what is no UTF-8 stays what it is."""
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return None, content


def of_json_rows(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """The rows of which `as_json_rows` made these; columns passed through are as JSON has them.

    Args:
        rows: As the lines have them; they are changed.
        schema: Columns of the output.
    """
    for row in rows:
        packed = row.pop(schemas.FRAGMENT_BASE64, None)
        if "delivery_id" in row:
            row["delivery_id"] = bytes.fromhex(row["delivery_id"])
        if "fragment_bytes" in schema.names:
            row["fragment_bytes"] = None if packed is None else base64.b64decode(packed)
        elif row.get("fragment") is not None:
            row["fragment"] = row["fragment"].encode()
        elif packed is not None:
            row["fragment"] = base64.b64decode(packed)
        for name in _TIMES:
            if name in schema.names and row.get(name) is not None:
                row[name] = datetime.fromisoformat(row[name])
    table = pa.Table.from_pylist(rows, schema=schema)
    for name in sorted({name for row in rows for name in row} - set(schema.names)):
        table = table.append_column(name, _inferred([row.get(name) for row in rows]))
    return table


def _inferred(values: Sequence[Any]) -> pa.Array:
    """Values of JSON as a column; numbers that Arrow has no integer for are of floating point."""
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())


def new_name(output: OutputName, batch_id: int, format: FileFormat) -> str:
    """A name for a file that nothing else has."""
    ending = "jsonl" if format == "jsonl" else "parquet"
    return f"{output}/{batch_id:06d}-{uuid.uuid4().hex}.{ending}"


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

    def origin(self, count: int) -> list[pa.Array]:
        """The columns snapshot_version, batch_id and processed_at."""
        zeros = np.zeros(count, dtype=np.int8)
        return [
            pa.DictionaryArray.from_arrays(zeros, pa.array([self.version])),
            pa.array(np.full(count, self.batch_id, dtype=np.int32)),
            pa.repeat(pa.scalar(self.processed_us, schemas.TIME), count),
        ]

    def table(self, name: OutputName, columns: list[pa.Array], extra: pa.Schema) -> pa.Table:
        """Columns of an output as a table; of the types that they have in memory.

        Args:
            name: The output.
            columns: In the order of its schema, those that are passed through last.
            extra: The latter.
        """
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
            name = new_name(self.name, target.batch_id, target.format)
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
        file = replace(file, bytes=size, first=first, last=last)
        if self._target.format == "delta":
            bounds, nulls = sink.statistics()
            file = replace(file, bounds=bounds, nulls=nulls)
        self.files.append(file)
        self._open = None


class InboxWriter(_Output):
    """Deliveries, sorted by subscriber.

    Args:
        target: Where to write.
        table: Who takes what.
        extra: Columns that are passed through.
        times: Finds the times of messages; None where nobody has said where they are.

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
        self._received: list[tuple[np.ndarray, np.ndarray]] = []

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
        self.untimed += missing_in(found)
        places = np.zeros(len(batch), dtype=np.int64)
        places[rows] = np.arange(len(rows))
        return found.take(pa.array(places))

    def finish(self) -> None:
        """Writes what is held as one file."""
        if not self._rows:
            return
        batch = _Joined([answer for answer, _ in self._held])
        schema = self._extra.append(_TIME_FIELD)
        extra = pa.Table.from_batches([batch for _, batch in self._held], schema)
        # Rank first, then the order of messages: one sort of 64-bit integers, no text.
        keys = batch.ranks.astype(np.uint64) << np.uint64(32)
        keys |= np.arange(len(keys), dtype=np.uint64)
        keys.sort()
        order = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
        ranks = batch.ranks[order]
        starts = np.flatnonzero(_is_first(ranks))
        self._received.append((ranks[starts], np.diff(starts, append=len(ranks))))
        for start in range(0, len(order), ROWS_A_GROUP):
            self._append(self._group(batch, order[start : start + ROWS_A_GROUP], extra))
        ends = self._table.rows(batch.ranks[order[[0, -1]]]).subscribers
        self._end(ends[0].as_py(), ends[1].as_py())
        self._held, self._rows, self._bytes = [], 0, 0

    def received(self) -> tuple[np.ndarray, np.ndarray]:
        """Ranks, ascending, and how many deliveries each got."""
        ranks = np.concatenate([np.zeros(0, np.uint32), *(found for found, _ in self._received)])
        counts = np.concatenate([np.zeros(0, np.int64), *(count for _, count in self._received)])
        distinct, at = np.unique(ranks, return_inverse=True)
        return distinct.astype(np.uint32), np.bincount(at, counts, len(distinct)).astype(np.int64)

    def _group(self, batch: _Joined, order: np.ndarray, extra: pa.Table) -> pa.Table:
        """A row group, each column with a dictionary of its own."""
        ranks = batch.ranks[order]
        is_new = _is_first(ranks)
        places = (np.cumsum(is_new) - 1).astype(np.int32)
        takers = self._table.rows(ranks[is_new])
        subscribers = takers.subscribers.dictionary_encode()
        rows, messages = _distinct(batch.rows[order], len(batch.message_ids))
        message_ids = batch.message_ids.take(pa.array(rows))
        numbers = batch.result_numbers[order]
        ids = delivery_ids(
            takers.versions,
            pa.array(places.astype(np.uint32)),
            message_ids.to_pylist(),
            pa.array(messages.astype(np.uint32)),
            pa.array(numbers.astype(np.uint32)),
        )
        passed = extra.take(pa.array(batch.rows[order]))
        columns = [
            pa.DictionaryArray.from_arrays(
                subscribers.indices.take(pa.array(places)), subscribers.dictionary
            ),
            pa.DictionaryArray.from_arrays(pa.array(places), takers.ids),
            pa.DictionaryArray.from_arrays(pa.array(messages), message_ids),
            pa.array(numbers.astype(np.int32)),
            *self._fragments(batch.fragments_of(order)),
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
            pairs = [_text_or_bytes(each) for each in content.to_pylist()]
        texts = pa.array([text for text, _ in pairs], pa.string())
        others = pa.array([rest for _, rest in pairs], pa.binary())
        # Nulls of a dictionary are no nulls for every reader: they are made such of the rows.
        return [each.take(indices).dictionary_encode() for each in (texts, others)]


def _is_first(ascending: np.ndarray) -> np.ndarray:
    """Where a value stands that is not the one before it."""
    return np.concatenate([[True], ascending[1:] != ascending[:-1]])


class _Joined:
    """The deliveries of several answers as one."""

    def __init__(self, answers: list[MicroBatchAnswer]) -> None:
        starts = np.cumsum([0, *(len(answer.message_ids) for answer in answers)])
        self.rows = np.concatenate(
            [
                answer.rows.astype(np.int64) + start
                for answer, start in zip(answers, starts[:-1], strict=True)
            ]
        )
        self.ranks = np.concatenate([answer.ranks for answer in answers])
        self.result_numbers = np.concatenate([answer.result_numbers for answer in answers])
        ids = [answer.message_ids for answer in answers]
        self.message_ids = pa.chunked_array(ids).combine_chunks()
        ends = np.cumsum([0, *(len(answer.values) for answer in answers)])
        self._fragments = np.concatenate(
            [
                np.where(answer.fragments == NO_FRAGMENT, NO_FRAGMENT, answer.fragments + end)
                for answer, end in zip(answers, ends[:-1], strict=True)
            ]
        )
        values = [answer.values.cast(pa.large_binary()) for answer in answers]
        self._values = pa.chunked_array(values)

    def fragments_of(self, order: np.ndarray) -> pa.Array:
        """The results of some deliveries; equal ones of a message are one value."""
        places = self._fragments[order]
        has_none = places == NO_FRAGMENT
        if has_none.all():
            nothing = pa.nulls(len(order), pa.int32())
            return pa.DictionaryArray.from_arrays(nothing, pa.array([], pa.binary()))
        distinct, numbers = np.unique(places, return_inverse=True)
        skipped = int(has_none.any())
        values = self._values.take(pa.array(distinct[skipped:])).combine_chunks()
        indices = pa.array((numbers - skipped).astype(np.int32), mask=has_none)
        return pa.DictionaryArray.from_arrays(indices, values.cast(pa.binary()))


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


def _distinct(numbers: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that occur, ascending, and for every row its place among them; no sort."""
    occurs = np.zeros(count, dtype=bool)
    occurs[numbers] = True
    places = (np.cumsum(occurs) - 1).astype(np.int32)
    return np.flatnonzero(occurs), places[numbers]


def _leaves(schema: pa.Schema) -> list[str]:
    """Columns as Parquet names them, those that are nested included."""
    return [leaf for field in schema for leaf in _leaves_of(field.name, field.type)]


def _is_bytes(kind: pa.DataType) -> bool:
    """Whether values are bytes, which have no bounds in the log of a Delta table."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _leaves_of(name: str, kind: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(kind):
        for part in kind:
            yield from _leaves_of(f"{name}.{part.name}", part.type)
    elif pa.types.is_map(kind):
        yield from _leaves_of(f"{name}.key_value.key", kind.key_type)
        yield from _leaves_of(f"{name}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves_of(f"{name}.list.element", kind.value_type)
    else:
        yield name

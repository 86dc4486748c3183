"""Messages that are a row each of Parquet files; the id is a column.

What reading takes is bounded by bytes, whatever a file's headers say (`bounded_memory`): rows that
do not fit are read again, fewer at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.errors import PathcastError, UnreadableMessageError, invalid_setting
from pathcast.limits import MIB
from pathcast.spark import schemas
from pathcast.spark.bounded_memory import bounded_memory
from pathcast.spark.files import (
    BATCH_BYTES_MAX,
    BATCH_ROWS_MAX,
    FILE,
    FileReader,
    FoundFile,
    Unit,
    as_unread,
    in_pieces,
    read_parts,
    shown,
    unreadable,
)
from pathcast.spark.storage import Storage

FOOTER_BYTES_MAX: Final = 8 * MIB
"""Bytes of a footer, of which the library makes many times as much: some 10,000 row groups."""

READ_BYTES: Final = 128 * MIB
"""Bytes that reading some rows of any file may take, beside those that were read before."""

EXPANSION: Final = 12
"""Writers put a thousand messages into a page, however long they are: reading a file may take so
many times its own bytes all the same."""

FEWER: Final = 32
"""So many times fewer rows are read at once where more do not fit."""


@dataclass(frozen=True)
class ParquetReader(FileReader):
    """Each row of a file is a message.

    Attributes:
        message_column: Column with the message, binary or text.
        id_column: Column with its id.
        read_bytes_max: Bytes that reading some rows may take; None: `READ_BYTES`, or `EXPANSION`
            times the bytes of the file if that is more.
        gone: Code of the error of a file that is not there.
    """

    message_column: str
    id_column: str
    read_bytes_max: int | None
    gone: str = FILE

    def units(self, file: FoundFile) -> list[Unit]:
        """The row groups."""
        with self._open(file.name) as (_, opened):
            metadata = opened.metadata
            there = set(opened.schema_arrow.names)
            sizes = [
                metadata.row_group(number).total_byte_size
                for number in range(metadata.num_row_groups)
            ]
        # What is decoded weighs more than what lies in the file.
        there |= {name for name, _ in file.values}
        lacks = tuple(name for name in self.extra.names if name not in there)
        return [
            Unit(file.name, max(0, size), (number,), lacks, file.values)
            for number, size in enumerate(sizes)
        ]

    def read(
        self, units: Iterable[Unit], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Read the rows of row groups; arguments as of `FileReader.read`."""
        return read_parts(units, unread, self._read)

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[int, pq.ParquetFile]]:
        try:
            with open_parquet(self.storage, name) as found:
                yield found
        except FileNotFoundError as error:
            raise unreadable(name, error, self.gone) from error

    def _read(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        with self._open(unit.name) as (size, opened):
            there = opened.schema_arrow
            wanted = [self.id_column, self.message_column]
            wanted += [name for name in self.extra.names if name in there.names]
            self._check(unit.name, there, wanted)
            allowed = self.read_bytes_max or max(READ_BYTES, EXPANSION * size)
            for group in unit.groups:
                try:
                    for batch in _rows_of(opened, group, wanted, allowed):
                        source = self._as_source(batch, dict(unit.values))
                        sizes = source.column("bytes").to_numpy()
                        for piece in in_pieces(sizes, BATCH_BYTES_MAX, BATCH_ROWS_MAX):
                            yield source.slice(piece.start, piece.stop - piece.start)
                except MemoryError as error:
                    reason = (
                        f"reading a row of it takes more than the {allowed:,} bytes that are "
                        "allowed; write it with smaller pages and dictionaries, or give "
                        "source.read_bytes_max"
                    )
                    raise _refused(unit.name, reason) from error

    def _check(self, name: str, there: pa.Schema, wanted: Sequence[str]) -> None:
        for key, column in (
            ("source.message_column", self.message_column),
            ("source.id_column", self.id_column),
        ):
            if column not in there.names:
                raise _refused(name, f"no column {column!r} ({key}) among {', '.join(there.names)}")
        for column in wanted:
            if there.names.count(column) > 1:
                raise _refused(name, f"it has more than one column {column!r}")
        kind = there.field(self.message_column).type
        if not any(is_kind(kind) for is_kind in _MESSAGE_KINDS):
            raise _refused(name, f"column {self.message_column!r} is {kind}, not binary or text")

    def _as_source(self, batch: pa.RecordBatch, values: Mapping[str, str | None]) -> pa.RecordBatch:
        messages = batch.column(self.message_column).cast(pa.binary())
        sizes = pc.cast(pc.coalesce(pc.binary_length(messages), 0), pa.int64())
        nothing = pa.nulls(len(batch), pa.string())
        ids = _cast(batch.column(self.id_column), pa.field(self.id_column, pa.string()))
        columns = [ids, messages, sizes, nothing, nothing]
        for field in self.extra:
            if field.name in batch.schema.names:
                columns.append(_cast(batch.column(field.name), field))
            elif field.name in values:
                columns.append(_constant(values[field.name], field, len(batch)))
            else:
                columns.append(pa.nulls(len(batch), field.type))
        return pa.record_batch(columns, schema=pa.schema([*schemas.SOURCE, *self.extra]))


def _rows_of(
    opened: pq.ParquetFile, group: int, columns: Sequence[str], bytes_max: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a row group, as many at a time as fit.

    Raises:
        MemoryError: A single one does not.
    """
    done, rows = 0, BATCH_ROWS_MAX
    while done < opened.metadata.row_group(group).num_rows:
        batches = opened.iter_batches(
            rows, row_groups=[group], columns=list(columns), use_threads=False
        )
        seen = 0
        try:
            while True:
                with bounded_memory(bytes_max):
                    batch = next(batches, None)
                if batch is None:
                    return
                seen += len(batch)
                if seen > done:
                    done, fresh = seen, seen - done
                    yield batch.slice(len(batch) - fresh)
        except MemoryError:
            if rows == 1:
                raise
            rows //= FEWER


def _refused(name: str, reason: str) -> UnreadableMessageError:
    return UnreadableMessageError(FILE, path=shown(name), reason=reason)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column in the type that it has in outputs, its text checked.

    Text that is not UTF-8 would be written as it is, and then nobody could read the output.
    """
    try:
        found = column.cast(field.type)
        found.validate(full=True)
    except pa.ArrowException as error:
        reason = f"column {field.name!r} is {column.type}, not {field.type} as in outputs"
        if column.type == field.type:
            reason = f"column {field.name!r}"
        raise type(error)(f"{reason}: {error}") from error
    return found


def _constant(text: str | None, field: pa.Field, count: int) -> pa.Array:
    """A column of one value, which the name of a partition says; the empty text says null."""
    if not text:
        return pa.nulls(count, field.type)
    value = pa.array([text], pa.string())
    if pa.types.is_timestamp(field.type) and not text.endswith("Z"):
        # Without a zone it is UTC.
        value = _cast(value, field.with_type(pa.timestamp(field.type.unit)))
    return pa.repeat(_cast(value, field)[0], count)


_MESSAGE_KINDS: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary_view,
    pa.types.is_string_view,
)


@contextmanager
def open_parquet(storage: Storage, name: str) -> Iterator[tuple[int, pq.ParquetFile]]:
    """A file of a source, and its bytes.

    It is read and not mapped: a mapped file that somebody cuts short ends the process.

    Raises:
        ValueError: Its footer is too large.
    """
    with storage.open(name) as handle:
        size = handle.seek(0, 2)
        handle.seek(max(0, size - 8))
        footer = int.from_bytes(handle.read(4), "little")
        if FOOTER_BYTES_MAX < footer < size:
            raise ValueError(
                f"its footer has {footer:,} bytes, more than {FOOTER_BYTES_MAX:,}; write it with "
                "fewer columns or larger row groups, or as several files"
            )
        # No more of it is read ahead than a buffer.
        with pq.ParquetFile(handle, buffer_size=MIB, pre_buffer=False) as opened:
            yield size, opened


def columns_of(storage: Storage, files: Sequence[FoundFile], names: Sequence[str]) -> pa.Schema:
    """The types of columns that are passed through, from the first file that has each.

    Raises:
        ConfigError: No file that can be read has one of them.
    """
    found: dict[str, pa.Field] = {}
    void: dict[str, pa.Field] = {}
    readable = 0
    for file in files:
        if len(found) == len(names):
            break
        unread: dict[str, PathcastError] = {}
        with as_unread(file.name, unread), open_parquet(storage, file.name) as (_, opened):
            there = opened.schema_arrow
            for name in names:
                if name in there.names:
                    # A column without any value says nothing of what is in other files.
                    kind = there.field(name).type
                    known = void if pa.types.is_null(kind) else found
                    known.setdefault(name, pa.field(name, kind))
        # The task that reads an unread file says what is wrong.
        readable += not unread
    found = void | found
    missing = [name for name in names if name not in found]
    if missing and readable:
        raise invalid_setting("source.columns", f"no file has a column {', '.join(missing)}")
    return pa.schema([found[name] for name in names if name in found])

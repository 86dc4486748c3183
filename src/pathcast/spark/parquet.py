"""Messages that are a row each of Parquet files; the id is a column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.errors import ConfigError, PathcastError, UnreadableMessageError
from pathcast.spark import schemas
from pathcast.spark.files import BATCH_ROWS_MAX, FILE, FoundFile, Unit, shown, unreadable
from pathcast.spark.storage import Storage


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """Each row of a file is a message.

    Attributes:
        storage: The source.
        message_column: Column with the message, binary or text.
        id_column: Column with its id.
        extra: Columns that are passed through, as they are written.
        gone: Code of the error of a file that is not there.
    """

    storage: Storage
    message_column: str
    id_column: str
    extra: pa.Schema
    gone: str = FILE
    is_whole: bool = False

    def units(self, file: FoundFile) -> list[Unit]:
        """The row groups."""
        try:
            with open_parquet(self.storage, file.name) as opened:
                metadata = opened.metadata
                there = set(opened.schema_arrow.names)
                sizes = [
                    metadata.row_group(number).total_byte_size
                    for number in range(metadata.num_row_groups)
                ]
        except (OSError, pa.ArrowException) as error:
            raise self._unreadable(file.name, error) from error
        # What is decoded weighs more than what lies in the file.
        there |= {name for name, _ in file.values}
        lacks = tuple(name for name in self.extra.names if name not in there)
        return [
            Unit(file.name, size, (number,), lacks, file.values)
            for number, size in enumerate(sizes)
        ]

    def read(
        self, units: Sequence[Unit], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """See `FileReader`."""
        for unit in units:
            if unit.name in unread:
                continue
            try:
                for batch in self._read(unit):
                    yield batch, unit.name
            except PathcastError as error:
                unread[unit.name] = error
            except (OSError, pa.ArrowException) as error:
                unread[unit.name] = self._unreadable(unit.name, error)

    def _unreadable(self, name: str, error: Exception) -> UnreadableMessageError:
        return unreadable(name, error, self.gone if isinstance(error, FileNotFoundError) else FILE)

    def _read(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        with open_parquet(self.storage, unit.name) as opened:
            there = opened.schema_arrow
            self._check(unit.name, there)
            wanted = [self.id_column, self.message_column]
            wanted += [name for name in self.extra.names if name in there.names]
            for batch in opened.iter_batches(
                batch_size=BATCH_ROWS_MAX, row_groups=list(unit.groups), columns=wanted
            ):
                yield self._as_source(batch, dict(unit.values))

    def _check(self, name: str, there: pa.Schema) -> None:
        for key, column in (
            ("source.message_column", self.message_column),
            ("source.id_column", self.id_column),
        ):
            if column not in there.names:
                raise UnreadableMessageError(
                    FILE,
                    path=shown(name),
                    reason=f"no column {column!r} ({key}) among {', '.join(there.names)}",
                )
        kind = there.field(self.message_column).type
        if not any(is_kind(kind) for is_kind in _MESSAGE_KINDS):
            raise UnreadableMessageError(
                FILE,
                path=shown(name),
                reason=f"column {self.message_column!r} is {kind}, not binary or text",
            )

    def _as_source(self, batch: pa.RecordBatch, values: Mapping[str, str | None]) -> pa.RecordBatch:
        messages = batch.column(self.message_column).cast(pa.binary())
        sizes = pc.cast(pc.coalesce(pc.binary_length(messages), 0), pa.int64())
        nothing = pa.nulls(len(batch), pa.string())
        ids = batch.column(self.id_column).cast(pa.string())
        columns = [ids, messages, sizes, nothing, nothing]
        for field in self.extra:
            if field.name in batch.schema.names:
                columns.append(_cast(batch.column(field.name), field))
            elif field.name in values:
                columns.append(_constant(values[field.name], field, len(batch)))
            else:
                columns.append(pa.nulls(len(batch), field.type))
        return pa.record_batch(columns, schema=pa.schema([*schemas.SOURCE, *self.extra]))


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column that is passed through in the type that it has elsewhere."""
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        reason = f"column {field.name!r} is {column.type}, not {field.type} as in other files"
        raise type(error)(f"{reason}: {error}") from error


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
def open_parquet(storage: Storage, name: str) -> Iterator[pq.ParquetFile]:
    """A file of a source; one of this machine is mapped into memory."""
    if storage.is_local:
        with pq.ParquetFile(storage.folder / name, memory_map=True) as opened:
            yield opened
    else:
        with storage.open(name) as handle, pq.ParquetFile(handle) as opened:
            yield opened


def columns_of(storage: Storage, files: Sequence[FoundFile], names: Sequence[str]) -> pa.Schema:
    """The types of columns that are passed through, from the first file that has each.

    Raises:
        ConfigError: No file that can be read has one of them.
    """
    found: dict[str, pa.Field] = {}
    readable = 0
    for file in files:
        if len(found) == len(names):
            break
        try:
            with open_parquet(storage, file.name) as opened:
                there = opened.schema_arrow
        except (OSError, pa.ArrowException):
            continue  # whoever reads it says what is wrong
        readable += 1
        for name in names:
            if name in there.names:
                found.setdefault(name, there.field(name).with_nullable(True).remove_metadata())
    missing = [name for name in names if name not in found]
    if missing and readable:
        raise ConfigError(
            "config.invalid",
            key="source.columns",
            reason=f"no file has a column {', '.join(missing)}",
        )
    return pa.schema([found[name] for name in names if name in found])

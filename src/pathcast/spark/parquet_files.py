"""Parquet files with a message in each row, read file by file: a file as a whole, or not at all.

A file that cannot be read to its end (it is damaged, cut short, no Parquet, lacks a column, may not
be opened, has gone) gives one row without a message: the name of the file as its id, code
`file.unreadable`, and the reason. Of its rows none is handed on, so that all of them can be when it
is mended.

It does not say which files there are; `directory` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.errors import UnreadableMessageError
from pathcast.limits import MIB
from pathcast.spark.journal import FoundFile, message_id_of
from pathcast.spark.source_rows import SOURCE_SCHEMA

HELD_BYTES_MAX = 128 * MIB
"""A file whose columns take no more than this is decoded once and held until its end was seen. A
larger one is decoded twice, the first time only to see that it can be."""

BATCH_BYTES_MAX = 4 * MIB
BATCH_ROWS_MAX = 4096
"""A batch of rows has about so many bytes, a single larger message excepted, and so many rows."""

FOOTERS_MAX = 20
"""Files that are looked at to see whether a source has the columns at all."""


class MessageColumns(NamedTuple):
    """Where the messages of a Parquet file are.

    Attributes:
        message: Name of the column with the messages, binary or string.
        id: Name of the column with their ids.
    """

    message: str
    id: str


def read_parquet_files(
    names: Sequence[str], directory: Path, columns: MessageColumns
) -> Iterator[pa.RecordBatch]:
    """Messages as Arrow batches of `SOURCE_SCHEMA`; one row for a file that cannot be read.

    Cost:
        Up to `HELD_BYTES_MAX` of memory, or two passes over the file.
    """
    for name in names:
        with ExitStack() as stack:
            try:
                handle = stack.enter_context((directory / name).open("rb"))
                batches: Iterable[pa.RecordBatch] = _all_or_nothing(handle, columns)
            # Whatever a damaged file makes the reader do: it must cost no other file anything.
            except Exception as error:
                batches = [_refusal(name, directory / name, error)]
            yield from batches


def missing_columns(
    files: Iterable[FoundFile], directory: Path, columns: MessageColumns
) -> tuple[str, Sequence[str]] | None:
    """A column that no file of a source has, and the columns that one of them has.

    One file that has both is enough: the others may be the mistake.
    """
    problem: tuple[str, Sequence[str]] | None = None
    for number, file in enumerate(files):
        if number == FOOTERS_MAX:
            break
        try:
            names = pq.read_schema(directory / file.name).names
        except (OSError, pa.ArrowException):
            continue  # it ends as a dead letter
        absent = [name for name in columns if name not in names]
        if not absent:
            return None
        problem = absent[0], names
    return problem


def row_count(files: Iterable[FoundFile], directory: Path) -> int:
    """Rows of the files that can be read, from their footers."""
    count = 0
    for file in files:
        try:
            count += pq.read_metadata(directory / file.name).num_rows
        except (OSError, pa.ArrowException):
            count += 1  # its dead letter
    return count


def no_column(name: str, names: Sequence[str]) -> str:
    """What is wrong with a file that lacks a column."""
    return f"no column {name!r} among {', '.join(names)}"


def _all_or_nothing(handle: BinaryIO, columns: MessageColumns) -> Iterable[pa.RecordBatch]:
    """The rows of a file, once it is known that all can be read.

    Raises:
        Exception: They cannot.
    """
    file = pq.ParquetFile(handle, page_checksum_verification=True)
    names = file.schema_arrow.names
    for name in columns:
        if name not in names:
            raise ValueError(no_column(name, names))
    kind = file.schema_arrow.field(columns.message).type
    if not _is_bytes(kind):
        raise ValueError(f"column {columns.message!r} is {kind}, not binary or string")
    size = _bytes_of(file.metadata, columns)
    if size <= HELD_BYTES_MAX:
        return list(_batches(file, columns, size))
    for _ in _batches(file, columns, size):
        pass
    # The handle is open: a file that is replaced meanwhile is still the one that was looked at.
    return _batches(file, columns, size)


def _batches(file: pq.ParquetFile, columns: MessageColumns, size: int) -> Iterator[pa.RecordBatch]:
    rows = max(1, file.metadata.num_rows)
    at_once = max(1, min(BATCH_ROWS_MAX, BATCH_BYTES_MAX * rows // max(1, size)))
    # One thread: Spark has a task for each core.
    for batch in file.iter_batches(at_once, columns=[*set(columns)], use_threads=False):
        yield from _cut(_as_source(batch, columns))


def _as_source(batch: pa.RecordBatch, columns: MessageColumns) -> pa.RecordBatch:
    messages = _decoded(batch.column(columns.message)).cast(pa.binary())
    length = pc.fill_null(pc.binary_length(messages), 0).cast(pa.int64())
    nothing = pa.nulls(len(batch), pa.string())
    ids = _as_text(_decoded(batch.column(columns.id)))
    return pa.record_batch([ids, messages, length, nothing, nothing], schema=SOURCE_SCHEMA)


def _as_text(ids: pa.Array) -> pa.Array:
    r"""Ids as text. Bytes that are not UTF-8 are kept as \xNN, as in the names of files."""
    if not _is_bytes(ids.type):
        return ids.cast(pa.string())
    raw = ids.cast(pa.binary())
    text = raw.view(pa.string())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        told = [
            None if i is None else i.decode("utf-8", "backslashreplace") for i in raw.to_pylist()
        ]
        return pa.array(told, pa.string())
    return text


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in parts of about `BATCH_BYTES_MAX`: messages may differ in size."""
    ends = np.cumsum(batch.column("bytes").to_numpy())
    start, before = 0, 0
    while start < len(batch):
        stop = int(np.searchsorted(ends, before + BATCH_BYTES_MAX, side="right"))
        stop = min(max(start + 1, stop), len(batch))
        yield batch.slice(start, stop - start)
        start, before = stop, int(ends[stop - 1])


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_bytes(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string)
    return any(test(kind) for test in (*tests, pa.types.is_large_string))


def _bytes_of(metadata: pq.FileMetaData, columns: MessageColumns) -> int:
    """What the columns take when they are decoded, as the footer says."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return sum(
        group.column(number).total_uncompressed_size
        for group in groups
        for number in range(group.num_columns)
        if group.column(number).path_in_schema in columns
    )


def _refusal(name: str, path: Path, error: Exception) -> pa.RecordBatch:
    """The row of a file that cannot be read."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    unread = UnreadableMessageError(
        "file.unreadable", path=message_id_of(name), reason=" ".join(reason.split())
    )
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    row = (message_id_of(name), None, size, unread.code, unread.message)
    columns = [
        pa.array([value], field.type) for value, field in zip(row, SOURCE_SCHEMA, strict=True)
    ]
    return pa.record_batch(columns, schema=SOURCE_SCHEMA)

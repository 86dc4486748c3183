"""The file of a snapshot: subscriptions as an Arrow table.

What a message and its results may cost decides who gets what, so the limits are in the file too.

Layout (little endian). A header of 64 bytes: magic `PATHCUST`, u32 format, u32 zero, u64 length of
the file, 16 bytes version (the digest of the subscriptions), u32 CRC-32 of all that follows the
header, u32 CRC-32 of the header's first 44 bytes, zeros. Then an Arrow IPC file with one table of
`TABLE_SCHEMA`, whose metadata have the limits as JSON under `limits`.

A file that is cut, foreign or has any bit changed gives `SnapshotFormatError`: the checksums cover
every byte, and the table is validated before it is read.

Example:
    >>> import tempfile
    >>> table = table_of([Subscription("s1", "ann", "//a")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "subscriptions.snapshot"
    ...     write_snapshot(path, SnapshotContent(table, 32 * "0", Limits()))
    ...     content = read_snapshot(path)
    >>> [subscription.query for subscription in subscriptions_of(content.table)]
    ['//a']

It does not parse queries.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import DELIVER_MODES, QUERY_LANGUAGES, Subscription
from pathcast.query.names import are_texts
from pathcast.registry.identity import namespaces_text

MAGIC: Final = b"PATHCUST"
FORMAT: Final = 5

_HEADER: Final = struct.Struct("<8sIIQ16sI")
_CHECKSUM: Final = struct.Struct("<I")
_HEADER_LENGTH: Final = 64
_LIMITS: Final = b"limits"

_PLAIN: Final = (
    pa.field("id", pa.large_string(), nullable=False),
    pa.field("subscriber", pa.dictionary(pa.int32(), pa.large_string()), nullable=False),
    pa.field("query", pa.large_string(), nullable=False),
    pa.field("deliver", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    pa.field("namespaces", pa.dictionary(pa.int32(), pa.large_string()), nullable=False),
)
_STEPS: Final = pa.field("steps", pa.large_list(pa.large_string()), nullable=False)
_GATE: Final = (
    pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
    pa.field("alternatives", pa.large_list(pa.large_string())),
    pa.field("expression", pa.large_string()),
)
"""Columns of older formats: the compiled form, which is not kept any more."""

_LANGUAGE: Final = pa.field("language", pa.dictionary(pa.int8(), pa.string()))

TABLE_SCHEMA: Final = pa.schema([*_PLAIN, _STEPS, _LANGUAGE])
"""One row a subscription. `namespaces` is JSON, empty for none; a language is null if none was
chosen."""

_SCHEMAS: Final = {
    2: pa.schema([*_PLAIN, *_GATE]),
    3: pa.schema([*_PLAIN, *_GATE, _STEPS]),
    4: pa.schema([*_PLAIN, _STEPS]),
    FORMAT: TABLE_SCHEMA,
}
"""Format -> its columns; without steps in format 2, and without a language before 5."""


@dataclass(frozen=True, slots=True)
class SnapshotContent:
    """The content of a snapshot file.

    Attributes:
        table: Rows of `TABLE_SCHEMA`, ascending by id.
        version: Digest of subscriptions and limits, 32 hexadecimal digits.
        limits: What one message may cost, and what its results may.
    """

    table: pa.Table
    version: str
    limits: Limits


def table_of(subscriptions: Sequence[Subscription]) -> pa.Table:
    """Subscriptions as a table. Cost: about 2 µs a subscription."""
    columns = {
        "id": [subscription.id for subscription in subscriptions],
        "subscriber": [subscription.subscriber for subscription in subscriptions],
        "query": [subscription.query for subscription in subscriptions],
        "deliver": [subscription.deliver for subscription in subscriptions],
        "namespaces": [namespaces_text(subscription.namespaces) for subscription in subscriptions],
        "steps": [list(subscription.steps) for subscription in subscriptions],
        "language": [subscription.language for subscription in subscriptions],
    }
    arrays = []
    for field in TABLE_SCHEMA:
        if pa.types.is_dictionary(field.type):
            encoded = pa.array(columns[field.name], field.type.value_type).dictionary_encode()
            arrays.append(encoded.cast(field.type))
        else:
            arrays.append(pa.array(columns[field.name], field.type))
    return pa.table(arrays, schema=TABLE_SCHEMA)


def subscriptions_of(table: pa.Table) -> Iterator[Subscription]:
    """The rows as subscriptions. Cost: about 3 µs a row."""
    bindings: dict[str, Mapping[str, str] | None] = {"": None}
    for batch in table.to_batches(max_chunksize=16_384):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            name, subscriber, query, deliver, namespaces, steps, language = row
            if namespaces not in bindings:
                bindings[namespaces] = json.loads(namespaces)
            own = bindings[namespaces]
            yield Subscription(name, subscriber, query, deliver, own, tuple(steps), language)


def write_snapshot(path: Path, content: SnapshotContent) -> None:
    """Writes a file, whole or not at all.

    The bytes go to a file beside it that then takes its name, so that a reader which has the old
    one mapped keeps it, and a crash leaves one of the two.

    Raises:
        OSError: The file cannot be written.
    """
    sink = pa.BufferOutputStream()
    schema = TABLE_SCHEMA.with_metadata({_LIMITS: content.limits.to_json()})
    with pa.ipc.new_file(sink, schema) as writer:
        # One chunk: dictionaries of several chunks would differ, and equal content be unequal.
        table = content.table.combine_chunks().unify_dictionaries()
        writer.write_table(table.replace_schema_metadata(schema.metadata))
    body = sink.getvalue()
    length = _HEADER_LENGTH + body.size
    head = _HEADER.pack(MAGIC, FORMAT, 0, length, bytes.fromhex(content.version), zlib.crc32(body))
    header = (head + _CHECKSUM.pack(zlib.crc32(head))).ljust(_HEADER_LENGTH, b"\0")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(header)
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_snapshot(path: Path) -> SnapshotContent:
    """Reads a file. The table lies in the file's own pages, shared between processes.

    Files of the formats 2 to 4 are read, too.

    Raises:
        SnapshotFormatError: The file is not a snapshot of subscriptions, of another format, or
            damaged.
        OSError: The file cannot be read.
    """
    if not path.stat().st_size:
        raise _foreign(path)
    with pa.memory_map(str(path)) as file:
        data = file.read_buffer()
    format_, version = _check(path, memoryview(data))
    body = data.slice(_HEADER_LENGTH)
    try:
        table = pa.ipc.open_file(pa.BufferReader(body)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, f"its table cannot be read ({error})") from error
    if table.schema != _SCHEMAS[format_]:
        raise _damaged(path, "its table has other columns than it should")
    text = (table.schema.metadata or {}).get(_LIMITS, b"").decode(errors="replace")
    limits = Limits.from_json(text, str(path))
    if _STEPS.name not in table.column_names:
        table = table.append_column(_STEPS, pa.repeat(pa.scalar([], _STEPS.type), len(table)))
    if _LANGUAGE.name not in table.column_names:
        table = table.append_column(_LANGUAGE, pa.nulls(len(table), _LANGUAGE.type))
    table = table.select(TABLE_SCHEMA.names)
    return SnapshotContent(_checked(path, table), version, limits)


def _check(path: Path, data: memoryview) -> tuple[int, str]:
    """Checks the header and both checksums; gives the format and the version."""
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise _foreign(path)
    if len(data) < _HEADER_LENGTH:
        raise _damaged(path, f"it ends after {len(data)} bytes, inside the header")
    _, format_, zero, length, version, body_sum = _HEADER.unpack_from(data)
    (head_sum,) = _CHECKSUM.unpack_from(data, _HEADER.size)
    if zlib.crc32(data[: _HEADER.size]) != head_sum:
        raise _damaged(path, "the checksum of the header is wrong")
    if format_ not in _SCHEMAS:
        raise SnapshotFormatError(
            "snapshot.version", path=str(path), found=format_, expected=FORMAT
        )
    if zero or any(data[_HEADER.size + _CHECKSUM.size : _HEADER_LENGTH]):
        raise _damaged(path, "reserved bytes of the header are not zero")
    if length != len(data):
        raise _damaged(path, f"it has {len(data)} bytes where its header says {length}")
    if zlib.crc32(data[_HEADER_LENGTH:]) != body_sum:
        raise _damaged(path, "the checksum is wrong")
    return format_, str(version.hex())


def _checked(path: Path, table: pa.Table) -> pa.Table:
    """The table, if its rows can be subscriptions: one made by hand could hold anything."""
    for name in ("id", "subscriber", "query", "deliver", "namespaces", "steps"):
        column = table.column(name)
        inside = pc.list_flatten(column).null_count if name == "steps" else 0
        if column.null_count or inside:
            raise _damaged(path, f"column {name} has missing values")
    names = table.column("id")
    if len(names.unique()) != len(names):
        raise _damaged(path, "an id occurs twice")
    for name, values in (("deliver", DELIVER_MODES), ("language", (None, *QUERY_LANGUAGES))):
        found = set(table.column(name).unique().to_pylist()) - set(values)
        if found:
            raise _damaged(path, f"{name} {found.pop()!r} does not exist")
    for text in table.column("namespaces").unique().to_pylist():
        if not _is_bindings(text):
            raise _damaged(path, "its namespaces are no bindings of prefixes")
    return table


def _is_bindings(text: str) -> bool:
    if not text:
        return True
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and are_texts([*value, *value.values()])


def _foreign(path: Path) -> SnapshotFormatError:
    return SnapshotFormatError(
        "snapshot.foreign",
        path=str(path),
        reason="it does not begin with PATHCUST, as a snapshot of subscriptions does",
    )


def _damaged(path: Path, reason: str) -> SnapshotFormatError:
    return SnapshotFormatError("snapshot.damaged", path=str(path), reason=reason)

"""Rows as JSON lines, and rows that are read from them.

    delivery ids            hexadecimal
    fragments               text; bytes that are not UTF-8 in base64, in `fragment_base64`
    message_time, processed_at    text in UTC: 2026-03-01T12:00:00Z
    of columns that are passed through:
      times, decimals       text, as Arrow writes it: 2026-03-01 12:00:00.000000Z
      binary                text in base64
      maps                  a list of objects with the keys "key" and "value"
      NaN and infinity      null: JSON has neither

All other values are what they are.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.types as kinds

from pathcast.spark import schemas
from pathcast.spark.passed_types import json_type

_Maker = Callable[[Any], Any]

_TIMES: Final = ("message_time", "processed_at")
_APART: Final = ("delivery_id", "fragment", "fragment_bytes", *_TIMES)


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


def as_json_rows(table: pa.Table) -> Iterator[dict[str, object]]:
    """Rows as JSON can say them."""
    for batch in table.to_batches(max_chunksize=4096):
        for row in _json_rows(batch):
            if "delivery_id" in row:
                row["delivery_id"] = row["delivery_id"].hex()
            if "fragment" in row:
                fragment, rest = row["fragment"], row.pop("fragment_bytes", None)
                if isinstance(fragment, bytes):
                    fragment, rest = text_or_bytes(fragment)
                row["fragment"] = fragment
                packed = None if rest is None else base64.b64encode(rest).decode()
                row[schemas.FRAGMENT_BASE64] = packed
            for name in _TIMES:
                if isinstance(row.get(name), datetime):
                    row[name] = _as_text(row[name])
            yield row


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


def text_or_bytes(content: bytes) -> tuple[str | None, bytes | None]:
    """Bytes as text; what is no UTF-8 stays what it is."""
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return None, content


def _as_text(time: datetime) -> str:
    in_utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return in_utc.replace(tzinfo=None).isoformat() + "Z"


def _json_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows of a batch; values of columns that are passed through as JSON can say them."""
    columns: list[list[Any]] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type if name in _APART else json_type(column.type)
        make = None if name in _APART else _maker(kind)
        values = column.cast(kind).to_pylist()
        columns.append(values if make is None else [_made(make, value) for value in values])
    for row in zip(*columns, strict=True):
        yield dict(zip(batch.schema.names, row, strict=True))


def _maker(kind: pa.DataType) -> _Maker | None:
    """Return what makes values of a type JSON's, None where they are; it gets no null."""
    if kinds.is_floating(kind):
        return lambda value: value if math.isfinite(value) else None
    if kinds.is_binary(kind) or kinds.is_fixed_size_binary(kind):
        return lambda value: base64.b64encode(value).decode()
    if kinds.is_struct(kind):
        parts = {part.name: _maker(part.type) for part in kind}
        return lambda value: {name: _made(make, value[name]) for name, make in parts.items()}
    if kinds.is_map(kind):
        key, item = _maker(kind.key_type), _maker(kind.item_type)
        return lambda value: [{"key": _made(key, k), "value": _made(item, v)} for k, v in value]
    if kinds.is_list(kind):
        element = _maker(kind.value_type)
        return lambda value: [_made(element, each) for each in value]
    return None


def _made(make: _Maker | None, value: Any) -> Any:
    return value if make is None or value is None else make(value)

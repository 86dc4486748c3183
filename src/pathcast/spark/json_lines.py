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
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.types as kinds

from pathcast.spark import schemas
from pathcast.spark.passed_types import json_type

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

    The given rows are changed.
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
        if name in _APART:
            columns.append(column.to_pylist())
        else:
            kind = json_type(column.type)
            values = column.cast(kind).to_pylist()
            is_plain = kinds.is_string(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)
            columns.append(values if is_plain else list(map(_as_json, values)))
    for row in zip(*columns, strict=True):
        yield dict(zip(batch.schema.names, row, strict=True))


def _as_json(value: Any) -> Any:
    """A value of Arrow as JSON can say it."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {name: _as_json(part) for name, part in value.items()}
        case list():
            return [_as_json(element) for element in value]
        case (key, item):  # of a map
            return {"key": _as_json(key), "value": _as_json(item)}
    return value

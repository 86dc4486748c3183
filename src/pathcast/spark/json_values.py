"""Values of columns that are passed through, as JSON can say them.

    times, decimals     text, as Arrow writes it: 2026-03-01 12:00:00.000000Z
    binary              text in base64
    maps                a list of objects with the keys "key" and "value"
    NaN and infinity    null: JSON has neither

All other values are what they are.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from pathcast.spark.passed_types import json_type

_Maker = Callable[[Any], Any]


def json_rows(batch: pa.RecordBatch, apart: Collection[str]) -> Iterator[dict[str, Any]]:
    """Rows of a batch, their values as JSON can say them.

    Args:
        batch: The rows.
        apart: Columns whose values stay what they are.
    """
    columns: list[list[Any]] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type if name in apart else json_type(column.type)
        make = None if name in apart else _maker(kind)
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

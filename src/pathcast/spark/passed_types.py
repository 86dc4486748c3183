"""Types of columns that are passed through: those of a source, as each format of outputs has them.

A type that a format lacks becomes one that holds the same values (text is text however it lies in
memory, an unsigned number a longer signed one); where there is none it is refused by name, before
anything is written. A value that does not fit after all, such as nanoseconds in a Delta table,
makes its file a dead letter.

Example:
    >>> passed_type(pa.dictionary(pa.int32(), pa.large_string()), "parquet")
    DataType(string)
    >>> passed_type(pa.list_(pa.uint32()), "delta")
    ListType(list<element: int64>)
    >>> passed_type(pa.time32("ms"), "delta")
    Traceback (most recent call last):
        ...
    ValueError: Delta tables have no type for time32[ms]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

if TYPE_CHECKING:
    from pathcast.spark.writing import FileFormat

_DECIMAL_DIGITS_MAX: Final = 38
"""Of `decimal128`, and of Delta."""

_Rule = tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]]


def passed_type(kind: pa.DataType, format: FileFormat) -> pa.DataType:
    """The type that a column has in outputs of a format.

    Raises:
        ValueError: There is none that holds its values.
    """
    return _mapped(kind, _DELTA if format == "delta" else ())


def json_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column of an output whose values JSON can say: times and decimals as text."""
    return _mapped(kind, _JSON)


def _mapped(kind: pa.DataType, rules: Sequence[_Rule]) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _mapped(kind.storage_type, rules)
    if kinds.is_dictionary(kind):
        return _mapped(kind.value_type, rules)
    if kinds.is_struct(kind):
        return pa.struct([(part.name, _mapped(part.type, rules)) for part in kind])
    if kinds.is_map(kind):
        return pa.map_(_mapped(kind.key_type, rules), _mapped(kind.item_type, rules))
    if any(is_list(kind) for is_list in _LISTS):
        return pa.list_(pa.field("element", _mapped(kind.value_type, rules)))
    for is_kind, as_kind in rules:
        if is_kind(kind):
            return as_kind(kind)
    return _in_parquet(kind)


_LISTS: Final = (
    kinds.is_list,
    kinds.is_large_list,
    kinds.is_fixed_size_list,
    kinds.is_list_view,
    kinds.is_large_list_view,
)


def _in_parquet(kind: pa.DataType) -> pa.DataType:
    """The type that a Parquet file gives back, if it does not say what was written."""
    if not kinds.is_duration(kind):  # which would be a mere number
        sink = pa.BufferOutputStream()
        with suppress(pa.ArrowNotImplementedError):
            with pq.ParquetWriter(sink, pa.schema([("column", kind)]), store_schema=False):
                pass
            return pq.read_schema(pa.BufferReader(sink.getvalue())).field(0).type
    raise ValueError(f"outputs have no type for {kind}")


def _always(kind: pa.DataType) -> Callable[[pa.DataType], pa.DataType]:
    return lambda _: kind


def _refused(kind: pa.DataType) -> pa.DataType:
    raise ValueError(f"Delta tables have no type for {kind}")


def _is_long_decimal(kind: pa.DataType) -> bool:
    return bool(kinds.is_decimal(kind)) and kind.precision > _DECIMAL_DIGITS_MAX


_DELTA: Final[Sequence[_Rule]] = (
    (kinds.is_uint8, _always(pa.int16())),
    (kinds.is_uint16, _always(pa.int32())),
    (kinds.is_uint32, _always(pa.int64())),
    (kinds.is_uint64, _always(pa.decimal128(20, 0))),
    (kinds.is_float16, _always(pa.float32())),
    (kinds.is_timestamp, lambda kind: pa.timestamp("us", kind.tz and "UTC")),
    (kinds.is_fixed_size_binary, _always(pa.binary())),
    (_is_long_decimal, _refused),
    (kinds.is_time, _refused),
    (kinds.is_null, _refused),
)
"""What a type becomes in Delta tables, where that is something else than in Parquet files."""

_JSON: Final[Sequence[_Rule]] = (
    (kinds.is_temporal, _always(pa.string())),
    (kinds.is_decimal, _always(pa.string())),
)
"""What a type becomes in JSON, where that is something else."""

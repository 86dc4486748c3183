r"""Convert messages as callers pass them to messages as the engine takes them.

Engines take one array of bytes, or a list of bytes and None. Callers have these, chunked arrays,
columns of other libraries, other objects and text; columns and bytes are passed on without a copy.

Example:
    >>> column = message_column([b"<a/>", None, 3.5])
    >>> column.chunks[0], column.encoding
    ([b'<a/>', None, b''], None)
    >>> print(column.refusals[2])
    a message is bytes or text, not float; for a missing one give None

It looks into no message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import PathcastError, UnreadableMessageError
from pathcast.model import MessageBytes


class ArrowStream(Protocol):
    """A column or a table of any library that speaks Arrow: a polars Series, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The C stream of the Arrow PyCapsule interface."""


Messages: TypeAlias = pa.Array | pa.ChunkedArray | ArrowStream | Iterable[MessageBytes | str | None]
"""Messages of one batch."""

_BYTES_OF_TEXT = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
"""Type of text -> the type of the same buffers as bytes."""

_BYTES_MAX = 2**31 - 1
"""Bytes that one `binary` array can hold."""


class MessageColumn(NamedTuple):
    """The messages of a batch as an engine takes them.

    Attributes:
        chunks: Arrays or lists of bytes. In the place of an object that is no message there are
            none; the engine refuses them, as it refuses every message without an element.
        encoding: Encoding of all messages where it is known.
        refusals: Place -> what has to be said instead, for these objects.
    """

    chunks: Sequence[pa.Array | list[bytes | None]]
    encoding: str | None
    refusals: Mapping[int, PathcastError]

    @property
    def arrays(self) -> list[pa.Array]:
        """The chunks as arrays."""
        return [_array(chunk) if isinstance(chunk, list) else chunk for chunk in self.chunks]

    @property
    def whole(self) -> pa.Array | list[bytes | None]:
        """All messages in one array or list."""
        return self.chunks[0] if len(self.chunks) == 1 else joined(self.arrays)


def message_column(messages: Messages) -> MessageColumn:
    """The messages as arrays of bytes, and their encoding where it is known.

    Text was decoded before, so its bytes are UTF-8 whatever its XML declaration says. A lone
    surrogate, which is no character, becomes bytes that are not UTF-8: the door says where.

    Args:
        messages: A column: an Arrow array, plain or chunked, of binary or string, of their large
            and view types or a dictionary of them, or what gives an Arrow stream of these or of a
            table with one column. Or an iterable of bytes-like objects, or of str, with None for a
            missing message. Whatever else the iterable gives is refused in its own place.

    Raises:
        TypeError: It is none of these, or mixes bytes and str, which cannot share an encoding.
    """
    column = _column(messages)
    if column is None:
        return _from_objects(cast("Iterable[object]", messages))
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    array_type = column.type
    if pa.types.is_dictionary(array_type):
        array_type = array_type.value_type
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    if array_type in _BYTES_OF_TEXT:
        bytes_type = _BYTES_OF_TEXT[array_type]
        return MessageColumn([chunk.view(bytes_type) for chunk in chunks], "UTF-8", {})
    if array_type in _BYTES_OF_TEXT.values():
        return MessageColumn(chunks, None, {})
    if pa.types.is_null(array_type) or pa.types.is_fixed_size_binary(array_type):
        return MessageColumn([chunk.cast(pa.binary()) for chunk in chunks], None, {})
    raise TypeError(f"messages must be binary or string, not {array_type}")


def _column(messages: Messages) -> pa.Array | pa.ChunkedArray | None:
    """The messages as Arrow has them; none if they are objects.

    Raises:
        TypeError: They are a table with several columns or none.
    """
    if isinstance(messages, pa.Array):
        return messages
    if not isinstance(messages, pa.ChunkedArray):
        if not hasattr(messages, "__arrow_c_stream__"):
            return None
        messages = pa.chunked_array(messages)
    if not pa.types.is_struct(messages.type):
        return messages
    if messages.type.num_fields != 1:
        names = ", ".join(field.name for field in messages.type)
        raise TypeError(
            f"messages must be one column, not a table of {names or 'none'}: give the column alone"
        )
    chunks = [pc.struct_field(chunk, [0]) for chunk in messages.chunks]
    return pa.chunked_array(chunks, messages.type.field(0).type)


def joined(chunks: Sequence[pa.Array]) -> pa.Array:
    """The chunks of a batch as one array; several as one whose offsets cannot overflow."""
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return pa.array([], pa.binary())
    return pa.concat_arrays([chunk.cast(pa.large_binary()) for chunk in chunks])


def without_messages(
    messages: pa.Array | list[bytes | None], places: Collection[int]
) -> pa.Array | list[bytes | None]:
    """The same messages with no bytes in some places; the same object where there are none."""
    if not places:
        return messages
    if isinstance(messages, list):
        return [b"" if at in places else message for at, message in enumerate(messages)]
    if messages.type == pa.binary_view():
        messages = messages.cast(pa.large_binary())
    mask = pa.array([place in places for place in range(len(messages))], pa.bool_())
    return pc.if_else(mask, pa.scalar(b"", messages.type), messages)


def refused_rows(
    refusals: Iterable[tuple[int, PathcastError]], errors: Mapping[int, PathcastError]
) -> list[tuple[int, PathcastError]]:
    """The refusals of an engine, saying of what is no message why it is none.

    Args:
        refusals: Place and error, ascending; every place of `errors` is among them.
        errors: Place -> error.
    """
    return [(place, errors.get(place, error)) for place, error in refusals]


def message_bytes(message: object) -> tuple[bytes, str | None]:
    """One message as bytes, and its encoding where it is known.

    Raises:
        UnreadableMessageError: It is neither bytes nor text.
    """
    if isinstance(message, bytes):
        return message, None
    if isinstance(message, str):
        return message.encode("utf-8", "surrogatepass"), "UTF-8"
    if isinstance(message, bytearray | memoryview):
        try:
            return bytes(message), None
        except ValueError as error:
            # A memoryview that was released.
            raise UnreadableMessageError(
                "message.unreadable", path="the message", reason=str(error)
            ) from None
    raise UnreadableMessageError("message.type", found=type(message).__name__)


def _from_objects(messages: Iterable[object]) -> MessageColumn:
    if isinstance(messages, bytes | bytearray | memoryview | str):
        raise TypeError("messages must be many: put a single message into a list")
    items = list(messages)
    if set(map(type, items)) <= {bytes, type(None)}:
        return MessageColumn([cast("list[bytes | None]", items)], None, {})
    raw: list[bytes | None] = []
    refusals: dict[int, PathcastError] = {}
    encodings: set[str | None] = set()
    for place, item in enumerate(items):
        if item is None:
            raw.append(None)
            continue
        try:
            content, encoding = message_bytes(item)
            encodings.add(encoding)
        except UnreadableMessageError as error:
            content, refusals[place] = b"", error
        raw.append(content)
    if len(encodings) > 1:
        raise TypeError("messages must be all bytes or all str, not a mixture")
    return MessageColumn([raw], encodings.pop() if encodings else None, refusals)


def _array(messages: list[bytes | None]) -> pa.Array:
    size = sum(len(message) for message in messages if message is not None)
    return pa.array(messages, pa.binary() if size <= _BYTES_MAX else pa.large_binary())

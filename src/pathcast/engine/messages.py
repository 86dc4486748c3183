"""What a caller may hand over as messages, turned into what an engine takes.

Engines take one `binary` or `large_binary` array. Callers have lists of bytes, arrays, chunked
arrays and text; arrays are passed on without a copy.

Example:
    >>> chunks, encoding = message_chunks([b"<a/>", None])
    >>> chunks[0].type, len(chunks[0]), encoding
    (DataType(binary), 2, None)

It looks into no message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pyarrow as pa

from pathcast.model import MessageBytes

Messages: TypeAlias = pa.Array | pa.ChunkedArray | Iterable[MessageBytes | str | None]
"""Messages of one batch."""

_BYTES_MAX = 2**31 - 1
"""Bytes that one `binary` array can hold."""


def message_chunks(messages: Messages) -> tuple[Sequence[pa.Array], str | None]:
    """The messages as arrays of bytes, and their encoding where it is known.

    Text was decoded before, so its bytes are UTF-8 whatever its XML declaration says.

    Args:
        messages: A `binary`, `large_binary`, `string` or `large_string` array, plain or chunked,
            or an iterable of bytes-like objects, or of str, with None for a missing message.

    Raises:
        TypeError: It is none of these, or mixes bytes and str.
    """
    if isinstance(messages, pa.ChunkedArray):
        array_type, chunks = messages.type, messages.chunks
    elif isinstance(messages, pa.Array):
        array_type, chunks = messages.type, [messages]
    else:
        return _from_objects(messages)
    if pa.types.is_binary(array_type) or pa.types.is_large_binary(array_type):
        return chunks, None
    if pa.types.is_string(array_type):
        return [chunk.view(pa.binary()) for chunk in chunks], "UTF-8"
    if pa.types.is_large_string(array_type):
        return [chunk.view(pa.large_binary()) for chunk in chunks], "UTF-8"
    if pa.types.is_null(array_type):
        return [chunk.cast(pa.binary()) for chunk in chunks], None
    raise TypeError(f"messages must be binary or string, not {array_type}")


def _from_objects(
    messages: Iterable[MessageBytes | str | None],
) -> tuple[Sequence[pa.Array], str | None]:
    if isinstance(messages, bytes | bytearray | memoryview | str):
        raise TypeError("messages must be many: put a single message into a list")
    items = list(messages)
    texts = sum(isinstance(item, str) for item in items)
    nulls = sum(item is None for item in items)
    if texts and texts + nulls < len(items):
        raise TypeError("messages must be all bytes or all str, not a mixture")
    raw: list[bytes | None] = []
    for item in items:
        if item is None or isinstance(item, bytes):
            raw.append(item)
        elif isinstance(item, str):
            raw.append(item.encode())
        elif isinstance(item, bytearray | memoryview):
            raw.append(bytes(item))
        else:
            raise TypeError(f"a message must be bytes, not {type(item).__name__}")
    size = sum(len(item) for item in raw if item is not None)
    array_type = pa.binary() if size <= _BYTES_MAX else pa.large_binary()
    return [pa.array(raw, type=array_type)], "UTF-8" if texts else None

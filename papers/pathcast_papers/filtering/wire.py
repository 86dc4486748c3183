"""Columns of element streams by the reference codec; see `pathcast_papers.onyx.element_stream`.

It takes them one after the other, for tests.
"""

from __future__ import annotations

import pyarrow as pa

from pathcast.errors import MessageError, PathcastError
from pathcast.limits import Limits
from pathcast.message.dictionaries import Dictionaries, Dictionary
from pathcast_papers.onyx.element_stream import encode_stream, original_message


def encode_streams(messages: pa.Array, dictionary: Dictionary | None = None) -> pa.Array:
    """The streams of messages."""
    streams = [
        None if message is None else encode_stream(message, dictionary) or message
        for message in messages.to_pylist()
    ]
    return pa.array(streams, pa.large_binary())


def decode_streams(
    streams: pa.Array, known: Dictionaries, limits: Limits
) -> tuple[pa.Array, list[tuple[int, PathcastError]]]:
    """The messages that streams stand for."""
    messages: list[bytes | None] = []
    refused: list[tuple[int, PathcastError]] = []
    for row, stream in enumerate(streams.to_pylist()):
        try:
            original = None if stream is None else original_message(stream, None, known, limits)[0]
        except MessageError as error:
            original = None
            refused.append((row, error))
        messages.append(original)
    return pa.array(messages, pa.large_binary()), refused

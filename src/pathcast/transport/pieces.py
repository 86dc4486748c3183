r"""What is longer than a frame may be, in pieces: of publishers, and for subscribers.

A piece is a byte that says whether it is the last one, and bytes. Brokers cut what they send each
other themselves (`pathcast.overlay.parts`).

Example:
    >>> [piece[:1] for piece in cut(bytes(PIECE_BYTES + 1))]
    [b'\x00', b'\x01']
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pathcast.errors import FrameError
from pathcast.transport.connection import ByteStream

PIECE_BYTES: Final = 1024 * 1024
WHOLE_BYTES_MAX: Final = 256 * 1024 * 1024
"""Bytes that one may have to hold of what comes in pieces: three of the longest messages."""

_MORE: Final = b"\x00"
_LAST: Final = b"\x01"


def cut(data: bytes) -> Iterator[bytes]:
    """The pieces of it."""
    for start in range(0, max(1, len(data)), PIECE_BYTES):
        is_last = start + PIECE_BYTES >= len(data)
        yield (_LAST if is_last else _MORE) + data[start : start + PIECE_BYTES]


async def send_in_pieces(stream: ByteStream, data: bytes) -> None:
    """Sends it.

    Raises:
        UnavailableError: The connection is lost.
    """
    for piece in cut(data):
        await stream.send(piece)


async def receive_pieces(stream: ByteStream, sender: str) -> bytes | None:
    """What was sent in pieces; None when the other end has closed.

    Raises:
        FrameError: A piece is none, or there are too many.
    """
    whole = bytearray()
    while (piece := await stream.receive()) is not None:
        if piece[:1] not in (_MORE, _LAST):
            raise FrameError("frame.unreadable", peer=sender, reason="it is no piece")
        whole += memoryview(piece)[1:]
        if len(whole) > WHOLE_BYTES_MAX:
            raise FrameError(
                "frame.too_large", peer=sender, given=len(whole), maximum=WHOLE_BYTES_MAX
            )
        if piece[:1] == _LAST:
            return bytes(whole)
    return None

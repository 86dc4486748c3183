r"""Messages longer than a frame, in pieces: from publishers, and to subscribers.

A piece is a byte that says whether it is the last one, and bytes. Brokers cut what they send each
other themselves (`pathcast.overlay.parts`).

Example:
    >>> [piece[:1] for piece in cut(bytes(PIECE_BYTES + 1))]
    [b'\x00', b'\x01']
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from pathcast.errors import FrameError, UnavailableError
from pathcast.transport.connection import ByteStream

PIECE_BYTES: Final = 1024 * 1024
WHOLE_BYTES_MAX: Final = 256 * 1024 * 1024
"""Bytes that one may have to hold of what comes in pieces: three of the longest messages."""

PIECE_SECONDS: Final = 30.0
"""How long the next piece of what has begun may take."""

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


class PieceBudget:
    """Bytes that unfinished calls hold: of one sender, and of all.

    What fits into one piece is free, so that those who hold a lot keep nobody from sending little.

    Args:
        bytes_max: Of all; half of them for one sender.

    Example:
        >>> budget = PieceBudget(8 * PIECE_BYTES)
        >>> with budget.holding("ann") as held:
        ...     held.take(3 * PIECE_BYTES)
        ...     with budget.holding("ann") as other:
        ...         other.take(PIECE_BYTES + 1)
        Traceback (most recent call last):
        ...
        pathcast.errors.UnavailableError: ...
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: Counter[str] = Counter()

    @contextlib.contextmanager
    def holding(self, sender: str) -> Iterator[HeldPieces]:
        """Give a call a share of the budget, which is returned at its end."""
        held = HeldPieces(self, sender)
        try:
            yield held
        finally:
            held.give_back()

    def take(self, sender: str, size: int) -> None:
        """So many bytes more are held.

        Raises:
            UnavailableError: They are too many, with what others hold; nothing was taken.
        """
        what, most = "bytes of unfinished calls", self._bytes_max
        given = self._held[sender] + size
        if given > most // 2:
            raise UnavailableError(
                "broker.busy", name=sender, what=what, given=given, maximum=most // 2
            )
        given = self._held.total() + size
        if given > most:
            raise UnavailableError(
                "broker.busy", name="everybody together", what=what, given=given, maximum=most
            )
        self._held[sender] += size

    def give_back(self, sender: str, size: int) -> None:
        """They are not held any more."""
        self._held[sender] -= size
        if not self._held[sender]:
            del self._held[sender]


class HeldPieces:
    """One call's share of a budget."""

    def __init__(self, budget: PieceBudget, sender: str) -> None:
        self._budget = budget
        self._sender = sender
        self._bytes = 0

    def take(self, size: int) -> None:
        """Take bytes of the budget."""
        self._budget.take(self._sender, size)
        self._bytes += size

    def give_back(self) -> None:
        """All that the call holds."""
        held, self._bytes = self._bytes, 0
        if held:
            self._budget.give_back(self._sender, held)


async def receive_pieces(
    stream: ByteStream, sender: str, held: HeldPieces | None = None
) -> bytes | None:
    """Receive a message sent in pieces; None when the other end has closed.

    Args:
        stream: Where it comes from.
        sender: Who sends it.
        held: Takes the bytes of what is more than one piece; they are given back by the caller.

    Raises:
        FrameError: A piece is none, or there are too many.
        UnavailableError: The sender, or all together, hold too much that is unfinished; or the
            next piece did not come in time.
    """
    whole = bytearray()
    piece = await stream.receive()
    while piece is not None:
        if piece[:1] not in (_MORE, _LAST):
            raise FrameError("frame.unreadable", peer=sender, reason="it is no piece")
        given = len(whole) + len(piece) - 1
        most = WHOLE_BYTES_MAX if len(piece) <= PIECE_BYTES + 1 else PIECE_BYTES
        if given > most:
            raise FrameError("frame.too_large", peer=sender, given=given, maximum=most)
        is_last = piece[:1] == _LAST
        if is_last and not whole:
            return piece[1:]
        if held is not None:
            held.take(len(piece) - 1)
        whole += memoryview(piece)[1:]
        if is_last:
            return bytes(whole)
        piece = await _next_piece(stream, sender)
    return None


async def _next_piece(stream: ByteStream, sender: str) -> bytes | None:
    try:
        async with asyncio.timeout(PIECE_SECONDS):
            return await stream.receive()
    except TimeoutError as error:
        raise UnavailableError("peer.silent", name=sender, seconds=PIECE_SECONDS) from error

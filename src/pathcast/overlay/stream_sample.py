"""A sample of the messages of a broker's stream, by which it widens the entries of its tables.

Example:
    >>> sample = StreamSample(2)
    >>> sample.add([b"<a/>", b"<b/>"])
    >>> sample.messages, sample.taken
    ((b'<a/>', b'<b/>'), 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

STREAM_MESSAGES: Final = 256
"""Messages of the sample of a stream."""

STREAM_MESSAGE_BYTES_MAX: Final = 64 << 10
"""Longer messages are left out of it: a sample has 16 MiB at most."""

STREAM_SHARE: Final = 16
"""One of so many messages takes a place in a full sample: its messages are 4,096 old on average."""


class StreamSample:
    """Messages of a stream, of which the newer ones are there with the greater chance.

    Args:
        size: Of the sample.
    """

    def __init__(self, size: int = STREAM_MESSAGES) -> None:
        self._size = size
        self._random = Random(size)
        self._messages: list[bytes] = []
        self.taken = 0
        """Messages that have ever taken a place."""

    def add(self, bodies: Sequence[bytes]) -> None:
        """These have come. Cost: a random number each."""
        for body in bodies:
            is_full = len(self._messages) == self._size
            if is_full and self._random.random() * STREAM_SHARE >= 1:
                continue
            if len(body) > STREAM_MESSAGE_BYTES_MAX:
                continue
            at = self._random.randrange(self._size) if is_full else len(self._messages)
            self._messages[at : at + 1] = [body]
            self.taken += 1

    @property
    def messages(self) -> tuple[bytes, ...]:
        """The sample."""
        return tuple(self._messages)

"""Samples of messages: of what sources publish at their root broker, and of a broker's stream.

Example:
    >>> samples = MessageSamples(2)
    >>> for number in range(5):
    ...     samples.add("shop", f"<order no='{number}'/>".encode())
    >>> [len(each.messages) for each in samples.taken(at_least=5)], samples.taken(at_least=1)
    ([2], [])

The registration service chooses by the former which patterns tell profiles apart (`placing`), a
broker by the latter how wide the entries of its tables are (`budgeted_table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from pathcast.errors import PathcastError
from pathcast.store import SAMPLE_BYTES_MAX, SampleRecord, check_record

SAMPLE_MESSAGES: Final = 32
"""Messages of a sample."""

STREAM_MESSAGES: Final = 256
"""Messages of the sample of a stream."""

STREAM_MESSAGE_BYTES_MAX: Final = 64 << 10
"""Longer messages are left out of it: a sample has 16 MiB at most."""

STREAM_SHARE: Final = 16
"""One of so many messages takes a place in a full sample: its messages are 4,096 old on average."""


class MessageSamples:
    """Messages of each source, of which all that came are there with the same chance.

    Args:
        size: Of a sample.
    """

    def __init__(self, size: int = SAMPLE_MESSAGES) -> None:
        self._size = size
        self._random = Random(size)
        self._messages: dict[str, list[str]] = {}
        self._seen: dict[str, int] = {}

    def add(self, source: str, body: bytes) -> None:
        """A message was published. One that is long, or not in UTF-8, is left out."""
        if len(body) > SAMPLE_BYTES_MAX:
            return
        seen = self._seen[source] = self._seen.get(source, 0) + 1
        messages = self._messages.setdefault(source, [])
        at = len(messages) if len(messages) < self._size else self._random.randrange(seen)
        if at >= self._size:
            return
        try:
            text = body.decode()
            check_record(SampleRecord(source, (text,)))
        except (UnicodeDecodeError, PathcastError):
            return
        messages[at : at + 1] = [text]

    def taken(self, at_least: int) -> list[SampleRecord]:
        """The samples of sources that have published so many messages; they begin anew."""
        sources = [source for source, seen in self._seen.items() if seen >= at_least]
        for source in sources:
            del self._seen[source]
        return [SampleRecord(source, tuple(self._messages.pop(source))) for source in sources]


class StreamSample:
    """Messages of a stream, of which the newer ones are there with the greater chance.

    Args:
        size: Of the sample.

    Example:
        >>> sample = StreamSample(2)
        >>> sample.add([b"<a/>", b"<b/>"])
        >>> sample.messages, sample.taken
        ((b'<a/>', b'<b/>'), 2)
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

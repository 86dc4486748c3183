"""Samples of the messages that sources publish at their root broker.

Example:
    >>> samples = MessageSamples(2)
    >>> for number in range(5):
    ...     samples.add("shop", f"<order no='{number}'/>".encode())
    >>> [len(each.messages) for each in samples.taken(at_least=5)], samples.taken(at_least=1)
    ([2], [])

The registration service chooses by them which patterns tell profiles apart (`placing`).
"""

from __future__ import annotations

from random import Random
from typing import Final

from pathcast.errors import PathcastError
from pathcast.store import SAMPLE_BYTES_MAX, SampleRecord, check_record

SAMPLE_MESSAGES: Final = 32
"""Messages of a sample."""


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

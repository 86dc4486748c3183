"""Samples of the messages that sources publish at their root broker.

Example:
    >>> samples = SourceSamples(2)
    >>> for number in range(5):
    ...     samples.add("shop", f"<order no='{number}'/>".encode())
    >>> [len(each.messages) for each in samples.taken(at_least=5)], samples.taken(at_least=1)
    ([2], [])

The registration service chooses by them which patterns tell profiles apart (`placing`).
"""

from __future__ import annotations

from typing import Final

from pathcast.errors import PathcastError
from pathcast.overlay.message_sample import MessageSample
from pathcast.store import SAMPLE_BYTES_MAX, SampleRecord, check_record

SAMPLE_MESSAGES: Final = 32
"""Messages of the sample of a source."""


class SourceSamples:
    """A sample of the messages of each source.

    Args:
        size: Of a sample.
    """

    def __init__(self, size: int = SAMPLE_MESSAGES) -> None:
        self._size = size
        self._samples: dict[str, MessageSample] = {}

    def add(self, source: str, body: bytes) -> None:
        """A message was published."""
        if source not in self._samples:
            self._samples[source] = MessageSample(self._size, SAMPLE_BYTES_MAX)
        self._samples[source].add(body)

    def taken(self, at_least: int) -> list[SampleRecord]:
        """The samples of sources that have published so many messages; they begin anew.

        A message that the profile database does not take, such as one not in UTF-8, is left out.
        """
        ready = [source for source, one in self._samples.items() if one.seen >= at_least]
        return [_record(source, self._samples.pop(source)) for source in ready]


def _record(source: str, sample: MessageSample) -> SampleRecord:
    texts: list[str] = []
    for body in sample.messages:
        try:
            text = body.decode()
            check_record(SampleRecord(source, (text,)))
        except (UnicodeDecodeError, PathcastError):
            continue
        texts.append(text)
    return SampleRecord(source, tuple(texts))

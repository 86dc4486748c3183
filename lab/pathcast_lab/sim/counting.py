"""Messages of a ring through bytes, counted on their way."""

from __future__ import annotations

from collections import Counter

from pathcast.dht.hosting import Hosted
from pathcast.dht.messages import Answer, Ask, decoded, encoded

__all__ = ["CountedMessages"]


class CountedMessages:
    """Encodes and decodes each message; for `Network(through=...)`.

    Attributes:
        messages: How many were sent by the type of what they say, repetitions included.
        bytes: The same in bytes.
    """

    def __init__(self) -> None:
        self.messages: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def __call__(self, message: object) -> object:
        """The message as it arrives."""
        hosted = message if isinstance(message, Hosted) else None
        said = hosted.what if hosted is not None else message
        assert isinstance(said, Ask | Answer)
        data, kind = encoded(said), type(said.what).__name__
        self.messages[kind] += 1
        self.bytes[kind] += len(data)
        arrived = decoded(data)
        return arrived if hosted is None else Hosted(hosted.to, hosted.sender, arrived)

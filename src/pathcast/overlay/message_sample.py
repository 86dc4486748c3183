"""Some of many messages, drawn at random as they come.

Example:
    >>> sample = MessageSample(2, 100)
    >>> for message in (b"<a/>", b"<b/>"):
    ...     sample.add(message)
    >>> sample.messages, sample.taken
    ((b'<a/>', b'<b/>'), 2)
"""

from __future__ import annotations

from random import Random


class MessageSample:
    """Some of the messages that came.

    Args:
        size: Of the sample.
        bytes_max: Longer messages are left out.
        share: One of so many messages takes a place in a full sample, so that newer ones are there
            with the greater chance; None: all that came are there with the same one.

    Attributes:
        seen: Messages that came, without those that are too long.
        taken: Messages that ever took a place.

    Source: Vitter, Random Sampling with a Reservoir, 1985 (algorithm R), where there is no share.
    """

    def __init__(self, size: int, bytes_max: int, share: int | None = None) -> None:
        self._size = size
        self._bytes_max = bytes_max
        self._share = share
        self._random = Random(size)
        self._messages: list[bytes] = []
        self.seen = 0
        self.taken = 0

    def add(self, body: bytes) -> None:
        """A message came. Cost: a random number."""
        if len(body) > self._bytes_max:
            return
        self.seen += 1
        at = len(self._messages)
        if at == self._size:
            at = self._random.randrange(self._size * self._share if self._share else self.seen)
        if at < self._size:
            self._messages[at : at + 1] = [body]
            self.taken += 1

    @property
    def messages(self) -> tuple[bytes, ...]:
        """The sample."""
        return tuple(self._messages)

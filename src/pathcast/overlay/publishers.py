"""Publishers who number what they publish, so that a root takes nothing of it twice.

A publisher that lost the receipt of a message (the root was killed, the connection broke, it was
killed itself) cannot know whether the message was taken. It publishes it again, with the number
that it had; a root remembers the last number of each publisher, and takes what follows it. So
publishing is exactly once for whoever can say again what it said, in the same order: a pipeline
from the files of a commit, a gateway from the positions of a log.

The number is kept in the record of the message itself, so that the two are on disk together; when
the record goes, because all members have had the message, the last number is kept by itself.

Example:
    >>> publishers = Publishers()
    >>> first = Numbered("loader", 1)
    >>> publishers.has_had(first)
    False
    >>> publishers.took(first)
    >>> publishers.has_had(first), publishers.has_had(Numbered("loader", 2))
    (True, False)

Source: 001 leaves publishing to "publish to the root" (section 3.1); docs/adr/0015 is about what
happens behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from pathcast.overlay.messages import NUMBER_MAX, Moment, StreamMessage
from pathcast.protocol import Effect, Forget, Save, records_under

PUBLISHERS_MAX = 1_000
"""Publishers that a root remembers: those that published last. One that is forgotten is taken at
its word."""

ROOM = "publisher"
"""Keys on the disk: "publisher/NAME"."""


class Numbered(msgspec.Struct, frozen=True):
    """Which of a publisher's messages this is.

    Attributes:
        publisher: Who numbers; another name for what is numbered anew.
        number: Grows with each message, not necessarily by one.
    """

    publisher: Annotated[str, Meta(min_length=1, max_length=512)]
    number: Annotated[int, Meta(ge=1, lt=NUMBER_MAX)]


class PublishRequest(msgspec.Struct, frozen=True, tag="Publish"):
    """A message of a source, as a client publishes it and its root takes it.

    Attributes:
        source: Which.
        message: Id of the message, of 1 to 128 characters.
        body: The message.
        numbered: Of a client that numbers what it publishes and may publish it again. The client
            names publishers as it likes; the root knows them by the client's name and theirs.
        trace: Brokers remember from whom they have it.
        time: When the message was, in microseconds since the beginning of 1970; None: when it
            arrives at its root.
    """

    source: str
    message: str
    body: bytes
    numbered: Numbered | None = None
    trace: bool = False
    time: Moment | None = None


class Logged(msgspec.Struct, frozen=True):
    """A message in the log of its root.

    Attributes:
        message: With its header.
        numbered: As its publisher numbered it, if it did.
        at: When it was taken, seconds of the root's clock; None: it is not known.
    """

    message: StreamMessage
    numbered: Numbered | None = None
    at: float | None = None


class Publishers:
    """The last number of each publisher, at one root."""

    def __init__(self) -> None:
        # The one that published last comes last.
        self._last: dict[str, int] = {}
        self._unsaved: set[str] = set()
        self._saved: set[str] = set()

    def restore(self, disk: Mapping[str, bytes], log: Iterable[Logged]) -> None:
        """Restore the state that a former life saved.

        Args:
            disk: What was saved.
            log: The messages that the root still has, in their order.
        """
        for key, value in records_under(disk, f"{ROOM}/"):
            name = key.removeprefix(f"{ROOM}/")
            self._last[name] = msgspec.msgpack.decode(value, type=int)
            self._saved.add(name)
        for logged in log:
            if logged.numbered is not None:
                self.took(logged.numbered)

    def has_had(self, numbered: Numbered | None) -> bool:
        """Whether this message, or a later one of its publisher, was taken."""
        return numbered is not None and numbered.number <= self._last.get(numbered.publisher, 0)

    def took(self, numbered: Numbered | None) -> None:
        """This message was taken."""
        if numbered is not None:
            last = self._last.pop(numbered.publisher, 0)
            self._last[numbered.publisher] = max(last, numbered.number)
            self._unsaved.add(numbered.publisher)

    def keep(self) -> list[Effect]:
        """Return the records that must be durable before messages leave the log."""
        effects: list[Effect] = []
        while len(self._last) > PUBLISHERS_MAX:
            name = next(iter(self._last))
            del self._last[name]
            self._unsaved.discard(name)
            if name in self._saved:
                self._saved.discard(name)
                effects.append(Forget(f"{ROOM}/{name}"))
        for name in sorted(self._unsaved):
            effects.append(Save(f"{ROOM}/{name}", msgspec.msgpack.encode(self._last[name])))
        self._saved |= self._unsaved
        self._unsaved.clear()
        return effects

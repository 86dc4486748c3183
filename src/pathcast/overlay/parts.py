"""Long messages on links, in parts: the one that comes, and those that go.

A broker between takes the parts of a message and, as soon as a follower is known to want it, sends
on what it has and then what comes: *cut-through*. Whoever is not known to want it by then is sent
it, or not, when all of it is here, as any other message. Nothing else knows of parts: a position is
had, and the message held and delivered, with the last part of it. A message whose rest does not
come is dropped, the followers that have parts of it are told so, and it is asked for again by
position.

Parts of one stream do not mix: a follower has one message of it at a time. On a link there are
those of `SENDING_MAX` streams at most; other payloads travel between them.

A follower that is known to want a message is so by the table of a moment between its first part and
its last. As if all of it had come in that moment: so what `InForce` promises holds as it does for
messages that come whole.

It is pure: parts in, decisions, parts out.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2 asks for routing as early as can be;
forwarding before the end of the message is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from pathcast.errors import PeerError
from pathcast.overlay.content import RoutingDecision
from pathcast.overlay.messages import (
    InParts,
    MessageBegin,
    MessageDropped,
    MessagePart,
    Payload,
    StreamMessage,
)

SENDING_MAX: Final = 2
"""Messages that a neighbour is sent in parts at the same time, of different streams."""

COMING_MAX: Final = 2 * SENDING_MAX
"""Messages that a neighbour may have begun and not ended: bounds what it can make one hold."""

PARTS_A_TURN: Final = 4
"""Parts that a follower is sent in one go: more than one, so that acknowledgements, each of which
gives a turn, fill the window of the link."""


@dataclass(slots=True)
class Arriving:
    """A message of which some parts are here.

    Attributes:
        message: Its header.
        total: Bytes of its body.
        body: Those that are here.
        decisions: Who wants it; None if that is looked at when all of it is here.
    """

    message: StreamMessage
    total: int
    body: bytearray
    decisions: RoutingDecision | None

    @property
    def position(self) -> int:
        """In its stream."""
        return self.message.position

    @property
    def is_whole(self) -> bool:
        """Whether all of it is here."""
        return len(self.body) == self.total

    def take(self, body: bytes) -> None:
        """The next bytes of it."""
        self.body += body
        if self.decisions is not None and self.decisions.decided is None:
            self.decisions.feed(body)

    def published(self) -> StreamMessage:
        """The message, when all of it is here."""
        return msgspec.structs.replace(self.message, body=bytes(self.body))


@dataclass(slots=True)
class Outgoing:
    """A message on its way to a follower.

    Attributes:
        message: It, or what is here of it.
        total: Bytes of its body.
        generation: Of the follower.
        after: Position up to which the follower knows everything.
        offset: Bytes that were sent; None before it has begun.
    """

    message: Arriving | StreamMessage
    total: int
    generation: int
    after: int
    offset: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether all of it was sent."""
        return self.offset == self.total


@dataclass(slots=True)
class Parts:
    """The messages of one stream at one broker that travel in parts.

    Args:
        root: Root broker of the stream.
        number: Of the stream.
        size: Bytes of a part; what is longer travels in parts.
        send: Gives a payload to a neighbour.
        may_begin: Whether a neighbour can be sent one more message in parts.
        decide: Makes decisions for a message of so many bytes.
        life_at: The life that numbered a position.

    Attributes:
        arriving: What comes from upstream.
        outgoing: What goes to followers, by name; one at a time to each.
        cut_through: How often a message was begun to be sent before all of it was here.
    """

    root: str
    number: int
    size: int
    send: Callable[[str, Payload], None]
    may_begin: Callable[[str], bool]
    decide: Callable[[int], RoutingDecision | None]
    life_at: Callable[[int], int]
    arriving: Arriving | None = None
    outgoing: dict[str, Outgoing] = field(default_factory=dict)
    cut_through: int = 0

    def is_long(self, message: StreamMessage) -> bool:
        """Whether it travels in parts."""
        return len(message.body) > self.size

    # What comes.

    def hear(self, peer: str, said: InParts, at: int) -> Arriving | None:
        """The upstream neighbour begins a message, goes on with it, or drops it.

        Args:
            peer: The neighbour.
            said: What it says.
            at: Position up to which everything has come.

        Returns:
            The message, with what is new; None if it was dropped.

        Raises:
            PeerError: It cannot be (`overlay.part`).
        """
        reason = self._wrong(said, at)
        if reason:
            raise PeerError("overlay.part", peer=peer, root=self.root, reason=reason)
        match said:
            case MessageBegin():
                header = msgspec.structs.replace(said.message, body=b"")
                self.arriving = Arriving(header, said.total, bytearray(), self.decide(said.total))
                self.arriving.take(said.message.body)
            case MessagePart() if self.arriving is not None:
                self.arriving.take(said.body)
            case MessageDropped():
                self.drop_arriving()
        return self.arriving

    def _wrong(self, said: InParts, at: int) -> str:
        """Why something cannot be said now."""
        known = self.arriving
        if isinstance(said, MessageBegin):
            if known is not None:
                return f"one begins at {said.message.position}, and {known.position} has not ended"
            if said.after != at:
                return f"it begins after {said.after}, and {at} was expected"
            if said.message.position <= at:
                return f"position {said.message.position} is not after {at}"
            come = 0
            more, total = len(said.message.body), said.total
        else:
            if known is None or said.position != known.position:
                begun = "none" if known is None else known.position
                return f"position {said.position} goes on, and {begun} has begun"
            if isinstance(said, MessageDropped):
                return ""
            come, total = len(known.body), known.total
            more = len(said.body)
            if said.offset != come:
                return f"bytes from {said.offset} on come, and {come} are here"
        if come + more > total:
            return f"{come + more} bytes come of {total}"
        return ""

    def ended(self) -> StreamMessage | None:
        """The message that has come, if all of it is here; whoever is sent it goes on with it."""
        arriving = self.arriving
        if arriving is None or not arriving.is_whole:
            return None
        self.arriving = None
        message = arriving.published()
        for one in self.outgoing.values():
            if one.message is arriving:
                one.message = message
        return message

    def drop_arriving(self) -> None:
        """The rest of the message will not come: it goes no further."""
        arriving = self.arriving
        self.arriving = None
        for name in [n for n, one in self.outgoing.items() if one.message is arriving]:
            self.stop(name)

    # What goes.

    def start(
        self, name: str, message: Arriving | StreamMessage, generation: int, after: int
    ) -> None:
        """Send a follower a message, as far as it is here."""
        total = message.total if isinstance(message, Arriving) else len(message.body)
        self.outgoing[name] = Outgoing(message, total, generation, after)

    def advance(self, name: str) -> bool:
        """Send a follower some parts, if there are any. Returns whether any was sent."""
        one = self.outgoing[name]
        if one.offset is None and not self.may_begin(name):
            return False
        before, body = one.offset, one.message.body
        self.cut_through += before is None and isinstance(one.message, Arriving)
        for _ in range(PARTS_A_TURN):
            start = one.offset or 0
            more = bytes(body[start : start + self.size])
            if not more:
                break
            self.send(name, self._part(one, more))
            one.offset = start + len(more)
        return one.offset != before

    def _part(self, one: Outgoing, more: bytes) -> InParts:
        header = one.message.message if isinstance(one.message, Arriving) else one.message
        position = header.position
        if one.offset is None:
            first = msgspec.structs.replace(header, body=more)
            life = self.life_at(position)
            return MessageBegin(
                self.root, self.number, one.generation, one.after, one.total, first, life
            )
        return MessagePart(self.root, self.number, one.generation, position, one.offset, more)

    def stop(self, name: str) -> None:
        """A follower is not sent the rest of what it was sent, and is told so."""
        one = self.outgoing.pop(name, None)
        if one is not None and one.offset is not None and not one.is_done:
            position = one.message.position
            said = MessageDropped(self.root, self.number, one.generation, position)
            self.send(name, said)

    def forget(self, name: str) -> None:
        """A neighbour follows no more, or anew: it has dropped what it was sent."""
        self.outgoing.pop(name, None)

    def is_sending(self, name: str) -> bool:
        """Whether a message to this neighbour has begun and not ended."""
        one = self.outgoing.get(name)
        return one is not None and one.offset is not None

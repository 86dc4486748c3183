"""Deliveries and notices that a host hands to its subscribers and its operator.

Source: 001, section 3.1 (message 9).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

OPERATOR = "operator"
"""To whom refusals are handed."""


class InboxDelivery(msgspec.Struct, frozen=True, tag="Delivery"):
    """One result of a subscription for one message.

    It may be handed over again after a crash. Positions of a stream only grow, so one number for
    each subscription and stream (the subscriber's cursor) is enough to take each once.

    Attributes:
        subscription: For which.
        version: Of its profile: another life of the subscription has another one.
        root: Root broker of the stream.
        stream: Its number.
        position: Of the message in the stream.
        message: Its id.
        results: As the profile asks: the results of its query, the message, or nothing.
    """

    subscription: str
    version: int
    root: str
    stream: int
    position: int
    message: str
    results: tuple[bytes, ...]


class Undecided(msgspec.Struct, frozen=True, tag=True):
    """A verdict: whether a message satisfies a subscription, or what it gives, is not known.

    The message took more than its limits allow, or the evaluation of the profile ended in an error.
    It is handed over as a `InboxDelivery` is, once for a message and a subscription, in place of
    one.

    Attributes:
        subscription: As of `InboxDelivery`, and so are version, root, stream, position and message.
        version: Of the subscription.
        root: Root broker of the stream.
        stream: Its number.
        position: Of the message in the stream.
        message: Its id.
        code: Of the error (`pathcast.errors`).
        reason: Its sentence.
    """

    subscription: str
    version: int
    root: str
    stream: int
    position: int
    message: str
    code: str
    reason: str


class InForce(msgspec.Struct, frozen=True, tag=True):
    """Every message published from now on, at any broker, reaches this subscription.

    Attributes:
        subscription: Which.
        version: Of its profile; a subscriber that uses an id again waits for the version that it
            was answered with.
        epoch: Grows with each acknowledgement of this life of the host.
    """

    subscription: str
    version: int
    epoch: int


class Lapsed(msgspec.Struct, frozen=True, tag=True):
    """Messages may be lost to this subscription, of those that were published before it is told.

    It is in force again with the next `InForce`. It may be told twice.

    Attributes:
        subscription: Which.
        version: Of its profile.
        root: Root broker that does not keep them any more: the host was away for longer than they
            are kept. Empty for any root: the host was expelled from the network or has an older
            disk; or a root has lost its disk, has an older one, or was two processes for a while.
        stream: Number of the root's stream.
        first: Position in it of the first message that does not come, if the subscription wanted
            it at all.
        last: ... and of the last one.
    """

    subscription: str
    version: int = 0
    root: str = ""
    stream: int = 0
    first: int = 0
    last: int = 0

    @property
    def reason(self) -> str:
        """Why, and which messages."""
        if not self.root:
            return (
                "its broker was expelled from the network, or the disk of a broker was lost or is "
                "an older one"
            )
        return (
            f"its broker was away for longer than {self.root} keeps messages, of which it missed "
            f"{self.last - self.first + 1:,}, from position {self.first:,} to {self.last:,}"
        )


class Dropped(msgspec.Struct, frozen=True, tag=True):
    """Deliveries that did not fit into the subscriber's inbox, in the place of them.

    They are lost to the subscriber: it did not take what waited. Notices may be among them.

    Attributes:
        first: Position of the first one in the inbox.
        last: ... and of the last one.
    """

    first: int
    last: int

    @property
    def count(self) -> int:
        """How many they are."""
        return self.last - self.first + 1


class Moved(msgspec.Struct, frozen=True, tag=True):
    """Another broker is the host of the subscription, and this is the last entry of it here.

    The other one has made deliveries for it since before; those that were made here as well have
    the same root, stream and position. It may be told twice.

    Attributes:
        subscription: Which.
        version: Of its profile.
        host: The broker that is the host now.
        ticket: Of the move: no other move of this subscription has it.
    """

    subscription: str
    version: int
    host: str
    ticket: int


class NeighbourRefused(msgspec.Struct, frozen=True, tag="Refused"):
    """For the operator: a neighbour said what is refused, and its session was ended.

    Or a subscription of a former life cannot be answered any more, and is gone.

    Attributes:
        peer: Who; id of the subscription.
        code: Of the error (`pathcast.errors`).
        reason: Its sentence.
    """

    peer: str
    code: str
    reason: str


Told: TypeAlias = InboxDelivery | Undecided | InForce | Lapsed | Dropped | Moved | NeighbourRefused
"""The entries of an inbox."""

"""What a host hands to its subscribers and its operator.

Source: 001, section 3.1 (message 9).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

__all__ = ["OPERATOR", "Delivery", "Dropped", "InForce", "Lapsed", "Refused", "Told", "Undecided"]

OPERATOR = "operator"
"""To whom refusals are handed."""


class Delivery(msgspec.Struct, frozen=True, tag=True):
    """What a message gives a subscription.

    It may be handed over again after a crash. Positions of a stream only grow, so one number for
    each subscription and stream (the subscriber's cursor) is enough to take each once.

    Attributes:
        subscription: For which.
        version: Of the subscription.
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
    It is handed over as a `Delivery` is, once for a message and a subscription, in place of one.

    Attributes:
        subscription: As of `Delivery`, and so are version, root, stream, position and message.
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
        version: Of its profile.
        epoch: Grows with each acknowledgement of this life of the host.
    """

    subscription: str
    version: int
    epoch: int


class Lapsed(msgspec.Struct, frozen=True, tag=True):
    """Messages may be lost to this subscription, of those that were published before it is told.

    Its host was taken out of the network meanwhile, or has an older disk; or a root has lost its
    disk, has an older one, or was two processes for a while. `InForce` follows.
    """

    subscription: str


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


class Refused(msgspec.Struct, frozen=True, tag=True):
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


Told: TypeAlias = Delivery | Undecided | InForce | Lapsed | Dropped | Refused
"""What an inbox holds."""

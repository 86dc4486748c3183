"""A filtering peer that serves clients: their requests, the answers and the notices.

| client says | peer does | answer |
|---|---|---|
| `Register` | indexes queries of the client | `PeerAccepted`; `Subscribed` in the inbox |
| `Withdraw` | takes queries out | `PeerAccepted`; `Unsubscribed` in the inbox |
| `PeerPublish` | runs the automaton on a message | the receipt, or `PeerAccepted` with the |
| | | refusal; `PublicationReport` in the inbox |
| `LeaveRing` | hands its pieces over and leaves the ring | `PeerAccepted`, also with why not; |
| | | `Left` in the inbox; the process stays |

Matches come as `Matched`, into the inbox of whoever registered the query: they name the
publication, whose `PublicationReport` says which message it was. Ids of subscriptions are the
client's own: on the ring the client's name stands before them. Inboxes are MessagePack of `Told`.

Publications are not kept: those of a peer that is killed have no outcome, and are published again,
by way of any peer. A peer with subscriptions does not leave: nobody would be there to be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from pathcast.dht.filtering import FilteringPeer
from pathcast.dht.hosting import Hosted
from pathcast.dht.messages import Answer, Ask, RingQuestion
from pathcast.dht.peer import RequestOutcome as RingOutcome
from pathcast.dht.peer import RingPeer
from pathcast.dht.publishing import PublicationOutcome
from pathcast.dht.subscriptions import Matched, NotAcknowledged, Subscribed, Unsubscribed
from pathcast.errors import ConfigError, PathcastError, UnavailableError
from pathcast.overlay.deliveries import Dropped
from pathcast.protocol import Deliver, Effect, Send
from pathcast.transport.frames import Codec, EntryDecoder, Flow
from pathcast.transport.ids import check_id, check_length, each_alone, shown
from pathcast.transport.security import own_id

UNDER_WAY_MAX: Final = 256
"""Publications of one peer that have no outcome yet, before publishers have to wait."""


class _Said(msgspec.Struct, frozen=True, tag=True, array_like=True):
    pass


ID_CHARACTERS_MAX: Final = 256
"""Of a client's id of a query or of a message."""

QUERY_BYTES_MAX: Final = 65_536
"""Of a query, and of its prefixes together."""


class StandingQuery(msgspec.Struct, frozen=True, array_like=True):
    """An XPath query with the client's id of it, and its prefixes."""

    id: str
    query: str
    namespaces: dict[str, str] = {}


class Register(_Said, frozen=True):
    """Queries of the client."""

    queries: Annotated[tuple[StandingQuery, ...], msgspec.Meta(max_length=10_000)]


class Withdraw(_Said, frozen=True):
    """Ids of queries that the client does not want any more."""

    ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=10_000)]


class PeerPublish(_Said, frozen=True, tag="Publish"):
    """A message, with the publisher's id of it."""

    message: str
    body: bytes


class LeaveRing(_Said, frozen=True, tag="Leave"):
    """The peer is to leave the ring."""


class PeerAccepted(_Said, frozen=True, tag="Accepted"):
    """All is begun, but what was refused: id, code and sentence of each."""

    refused: tuple[tuple[str, str, str], ...] = ()


class PublicationReport(msgspec.Struct, frozen=True, tag="Outcome"):
    """The outcome of a message that was published here.

    Attributes:
        message: The publisher's id of it.
        published: Name of the publication, and whether all have been told who had to be.
    """

    message: str
    published: PublicationOutcome


class Left(msgspec.Struct, frozen=True, tag=True):
    """The peer is not on the ring any more; what it held is with others."""

    peer: str


Told = Subscribed | Unsubscribed | NotAcknowledged | Matched | PublicationReport | Left | Dropped
"""The entries of an inbox."""

TOLD: Final[EntryDecoder[Told]] = EntryDecoder(msgspec.msgpack.Decoder(Told))


def _flow(message: object) -> Flow:
    """Choose the flow: maintenance of the ring goes before filtering."""
    if isinstance(message, Hosted):
        message = message.what
    if isinstance(message, Ask) and not isinstance(message.what, RingQuestion):
        return Flow.MESSAGE
    return Flow.CONTROL


CODEC: Final = Codec(
    (Ask, Answer, Hosted, Register, Withdraw, PeerPublish, LeaveRing, PeerAccepted), _flow
)


class ServedPeer:
    """A filtering peer whose publishers are told which message an outcome is of.

    Args:
        peer: The peer.
        ring: Its part of the ring.
    """

    def __init__(self, peer: FilteringPeer, ring: RingPeer) -> None:
        self.peer = peer
        self.ring = ring

    def start(self, now: float) -> Sequence[Effect]:
        """Implement `Node.start`."""
        return _told(self.peer.start(now))

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        """Implement `Node.receive`."""
        return _told(self.peer.receive(sender, message, now))

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        """Implement `Node.wake`."""
        return _told(self.peer.wake(timer, now))

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        """Implement `Node.neighbour`."""
        return _told(self.peer.neighbour(name, up, now))

    def ended(self, name: str, now: float) -> Sequence[Effect]:
        """The process of a peer has ended."""
        return _told(self.peer.ended(name, now))

    def request(self, client: str, messages: Sequence[object], now: float) -> list[Effect]:
        """Carry out a client's request; messages are published all or none.

        Raises:
            UnavailableError: Too many publications are under way; try again.
        """
        given = self.peer.under_way + sum(isinstance(each, PeerPublish) for each in messages)
        if given > UNDER_WAY_MAX:
            raise UnavailableError(
                "broker.full", name=self.ring.me.name, given=given, maximum=UNDER_WAY_MAX
            )
        return [effect for each in messages for effect in self._answer(client, each)]

    def _answer(self, client: str, message: object) -> list[Effect]:
        effects: list[Effect] = []

        def put(id: str, each: StandingQuery) -> None:
            check_id(id, "id of the query", ID_CHARACTERS_MAX)
            check_length(each.query, "query", QUERY_BYTES_MAX)
            bound = "".join((*each.namespaces, *each.namespaces.values()))
            check_length(bound, "namespaces", QUERY_BYTES_MAX)
            name = own_id(client, id)
            effects.extend(self.peer.subscribe(name, each.query, client, each.namespaces))

        def take_out(id: str, _: object) -> None:
            effects.extend(self.peer.unsubscribe(own_id(client, id)))

        match message:
            case Register(queries):
                refused = each_alone([(each.id, each) for each in queries], put)
                return [*effects, Send(client, PeerAccepted(refused))]
            case Withdraw(ids):
                refused = each_alone([(id, None) for id in ids], take_out)
                return [*effects, Send(client, PeerAccepted(refused))]
            case PeerPublish(id, body):
                try:
                    check_id(id, "id of the message", ID_CHARACTERS_MAX)
                    return _told(self.peer.publish(body, f"{client}\t{id}"))
                except PathcastError as error:
                    return [Send(client, PeerAccepted(((shown(id), error.code, error.message),)))]
            case LeaveRing():
                if why := self._stays():
                    return [Send(client, PeerAccepted(((self.ring.me.name, *why),)))]
                return [*self.leave(client), Send(client, PeerAccepted())]
        reason = f"{type(message).__name__} is none"
        raise ConfigError("config.invalid", key="request", reason=reason)

    def leave(self, to: str) -> list[Effect]:
        """Leave the ring; `Left` is delivered when that is done."""
        return _told(self.ring.leave(to))

    def _stays(self) -> tuple[str, str] | None:
        """Why it cannot leave: code and sentence."""
        if self.ring.is_base:
            return "config.invalid", "it is of the base, which has to stay"
        if count := self.peer.subscription_count:
            return "config.invalid", f"{count:,} subscriptions are at it; withdraw them first"
        return None


def _told(effects: Sequence[Effect]) -> list[Effect]:
    return [_of_message(each) if isinstance(each, Deliver) else each for each in effects]


def _of_message(given: Deliver) -> Deliver:
    if isinstance(given.what, RingOutcome):
        return Deliver(given.to, Left(given.what.key))
    if not isinstance(given.what, PublicationOutcome):
        return given
    client, _, message = given.to.partition("\t")
    return Deliver(client, PublicationReport(message, given.what))

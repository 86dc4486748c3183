"""Filtering peers as a kind of node: what clients ask of them, and what they are told.

| client says | peer does | answer |
|---|---|---|
| `Register` | indexes queries of the client on the ring | `Accepted`; `Subscribed` in the inbox |
| `Withdraw` | takes queries out | `Accepted`; `Unsubscribed` in the inbox |
| `Publish` | runs the automaton on a message | the receipt, or `Accepted` with the refusal; |
| | | `Outcome` in the inbox |
| `Leave` | hands its states over and leaves the ring; the process stays | `Accepted`, also with |
| | | why not; `Left` in the inbox |

Matches come as `Matched`, into the inbox of whoever registered the query: they name the
publication, whose `Outcome` says which message it was. Ids of subscriptions are the client's own:
on the ring the client's name stands before them. Inboxes are MessagePack of `Told`.

Publications are not kept: those of a peer that is killed have no outcome, and are published again,
by way of any peer. A peer with subscriptions does not leave: nobody would be there to be told.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, TypeVar

import msgspec

from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.identifiers import identifier
from pathcast.dht.messages import Answer, Ask, RingQuestion
from pathcast.dht.peer import Outcome as RingOutcome
from pathcast.dht.peer import Peer, Settings
from pathcast.dht.piece_records import decoded_piece
from pathcast.dht.publishing import Published
from pathcast.dht.states import decoded_state
from pathcast.dht.subscriptions import Matched, NotAcknowledged, Subscribed, Unsubscribed
from pathcast.dht.substrate import Asked
from pathcast.errors import ConfigError, PathcastError, UnavailableError
from pathcast.overlay.deliveries import Dropped
from pathcast.protocol import Deliver, Effect, Node, Send
from pathcast.transport.carrier import NodeKind
from pathcast.transport.frames import Codec, Flow, Name

__all__ = [
    "CODEC",
    "TOLD",
    "Accepted",
    "Leave",
    "Left",
    "Outcome",
    "Publish",
    "Register",
    "Withdraw",
    "peer_kind",
]

_Asked = TypeVar("_Asked")

UNDER_WAY_MAX: Final = 256
"""Publications of one peer that have no outcome yet, before publishers have to wait."""


class _Said(msgspec.Struct, frozen=True, tag=True, array_like=True):
    pass


Text = Annotated[str, msgspec.Meta(max_length=65_536)]


class StandingQuery(msgspec.Struct, frozen=True, array_like=True):
    """An XPath query with the client's id of it, and its prefixes."""

    id: Name
    query: Text
    namespaces: dict[Name, Text] = {}


class Register(_Said, frozen=True):
    """Queries of the client."""

    queries: Annotated[tuple[StandingQuery, ...], msgspec.Meta(max_length=10_000)]


class Withdraw(_Said, frozen=True):
    """Ids of queries that the client does not want any more."""

    ids: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10_000)]


class Publish(_Said, frozen=True):
    """A message, with the publisher's id of it."""

    message: Name
    body: bytes


class Leave(_Said, frozen=True):
    """The peer is to leave the ring."""


class Accepted(_Said, frozen=True):
    """All is begun, but what was refused: id, code and sentence of each."""

    refused: tuple[tuple[str, str, str], ...] = ()


class Outcome(msgspec.Struct, frozen=True, tag=True):
    """What became of a message that was published here.

    Attributes:
        message: The publisher's id of it.
        published: Name of the publication, and whether all have been told who had to be.
    """

    message: str
    published: Published


class Left(msgspec.Struct, frozen=True, tag=True):
    """The peer is not on the ring any more; what it held is with others."""

    peer: str


Told = Subscribed | Unsubscribed | NotAcknowledged | Matched | Outcome | Left | Dropped
"""What comes into an inbox."""

TOLD: Final[msgspec.msgpack.Decoder[Told]] = msgspec.msgpack.Decoder(Told)


def _flow(message: object) -> Flow:
    """What keeps the ring together goes before what is filtered."""
    if isinstance(message, Ask) and not isinstance(message.what, RingQuestion):
        return Flow.MESSAGE
    return Flow.CONTROL


CODEC: Final = Codec((Ask, Answer, Register, Withdraw, Publish, Leave, Accepted), _flow)


class ServedPeer:
    """A filtering peer whose publishers are told which message an outcome is of."""

    def __init__(self, peer: FilteringPeer, ring: Peer) -> None:
        self.peer = peer
        self.ring = ring

    def start(self, now: float) -> Sequence[Effect]:
        """As a node."""
        return _told(self.peer.start(now))

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        """As a node."""
        return _told(self.peer.receive(sender, message, now))

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        """As a node."""
        return _told(self.peer.wake(timer, now))

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        """As a node."""
        return _told(self.peer.neighbour(name, up, now))

    def request(self, client: str, messages: Sequence[object]) -> list[Effect]:
        """What a client asks for; of messages that it publishes, all are begun or none.

        Raises:
            UnavailableError: Too many publications are under way; try again.
        """
        given = self.peer.under_way + sum(isinstance(each, Publish) for each in messages)
        if given > UNDER_WAY_MAX:
            raise UnavailableError(
                "broker.full", name=self.ring.me.name, given=given, maximum=UNDER_WAY_MAX
            )
        return [effect for each in messages for effect in self._answer(client, each)]

    def _answer(self, client: str, message: object) -> list[Effect]:
        match message:
            case Register(queries):

                def put(each: StandingQuery) -> Sequence[Effect]:
                    name = f"{client}/{each.id}"
                    return self.peer.subscribe(name, each.query, client, each.namespaces)

                return _each(client, [(each.id, each) for each in queries], put)
            case Withdraw(ids):

                def take_out(id: str) -> Sequence[Effect]:
                    return self.peer.unsubscribe(f"{client}/{id}")

                return _each(client, [(id, id) for id in ids], take_out)
            case Publish(id, body):
                try:
                    return _told(self.peer.publish(body, f"{client}\t{id}"))
                except PathcastError as error:
                    return [Send(client, Accepted(((id, error.code, error.message),)))]
            case Leave():
                if why := self._stays():
                    return [Send(client, Accepted(((self.ring.me.name, *why),)))]
                return [*_told(self.ring.leave(client)), Send(client, Accepted())]
        reason = f"{type(message).__name__} is none"
        raise ConfigError("config.invalid", key="request", reason=reason)

    def _stays(self) -> tuple[str, str] | None:
        """Why it cannot leave: code and sentence."""
        if self.ring.is_base:
            return "config.invalid", "it is of the base, which has to stay"
        if count := self.peer.subscription_count:
            return "config.invalid", f"{count:,} subscriptions are at it; withdraw them first"
        return None


def peer_kind(
    name: str,
    base: Sequence[str],
    ring: Settings,
    filtering: FilteringSettings,
) -> NodeKind:
    """Peers of a ring.

    Args:
        name: Of the peer.
        base: Names of the stable base, the same for all.
        ring: What all agree on.
        filtering: Likewise.
    """

    def make(saved: Mapping[str, bytes], life: int) -> Node:
        made: list[Peer] = []

        def below(asked: Asked) -> Peer:
            made.append(Peer(name, life, base, ring, asked))
            return made[0]

        return ServedPeer(FilteringPeer(below, life, saved, filtering), made[0])

    return NodeKind(
        make,
        CODEC,
        delivery=_delivery,
        gap=lambda gap: msgspec.msgpack.encode(Dropped(*gap)),
        request=_request,
        roles={
            Register: "subscribe",
            Withdraw: "subscribe",
            Publish: "publish",
            Leave: "operate",
        },
        describe=_described,
    )


def _request(node: Node, client: str, messages: Sequence[object], now: float) -> Sequence[Effect]:
    assert isinstance(node, ServedPeer)
    return node.request(client, messages)


def _each(
    client: str, rows: Sequence[tuple[str, _Asked]], do: Callable[[_Asked], Sequence[Effect]]
) -> list[Effect]:
    effects: list[Effect] = []
    refused: list[tuple[str, str, str]] = []
    for id, asked in rows:
        try:
            effects += do(asked)
        except PathcastError as error:
            refused.append((id, error.code, error.message))
    return [*effects, Send(client, Accepted(tuple(refused)))]


def _told(effects: Sequence[Effect]) -> list[Effect]:
    return [_of_message(each) if isinstance(each, Deliver) else each for each in effects]


def _of_message(given: Deliver) -> Deliver:
    if isinstance(given.what, RingOutcome):
        return Deliver(given.to, Left(given.what.key))
    if not isinstance(given.what, Published):
        return given
    client, _, message = given.to.partition("\t")
    return Deliver(client, Outcome(message, given.what))


def _delivery(what: object) -> tuple[str, bytes]:
    body = msgspec.msgpack.encode(what)
    if isinstance(what, Matched):
        return f"{what.subscription}\t{what.publication}", body
    # A notice, which may be given twice: there is nothing that the second would do again.
    return f"notice\t{secrets.token_hex(12)}", body


def _described(node: Node) -> Mapping[str, object]:
    assert isinstance(node, ServedPeer)
    peer, ring = node.peer, node.ring.ring
    held = [
        _held_of(peer, record.key, record.value)
        for record in node.ring.records.held.values()
        if record.value is not None and ring.owns(identifier(record.key))
    ]
    return {
        "place": node.ring.me.identifier / 2**160,
        "is_member": ring.is_member,
        "predecessor": None if ring.predecessor is None else ring.predecessor.name,
        "successors": [each.name for each in ring.successors],
        "fingers": sorted({each.name for each in ring.fingers.values()}),
        "records": len(node.ring.records.held),
        "fragments": "states" if peer.pieces is None else "pieces",
        "states": len(held),
        "transitions": sum(held),
        "visits": peer.visiting.done if peer.pieces is None else peer.pieces.running.done,
        "under_way": peer.under_way,
        "subscriptions": peer.subscription_count,
        "repeated": peer.repeated,
        "sent": dict(peer.courier.sent),
    }


def _held_of(peer: FilteringPeer, key: str, value: bytes) -> int:
    """How much lies under a key: edges of a state, links and queries of a piece."""
    if peer.pieces is None:
        return len(decoded_state(value).edges)
    piece = decoded_piece(key, value)
    return len(piece.links) + sum(len(each) for each in piece.entries.values())

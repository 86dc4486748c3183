"""The overlay's broker as a kind of node: what clients ask of it, and what subscribers get.

| client says | broker does | answer |
|---|---|---|
| `Subscribe` | registers profiles of the client | `Accepted`; later `InForce`, in the inbox |
| `Unsubscribe` | takes profiles out | `Accepted` |
| `RegisterSource` | takes a data source | `Accepted` |
| `Publish` | takes a message of a source | none but the receipt: it is on disk |
| `Explain` | says where a message would go from here | `Explained` |

Ids of subscriptions are the client's own: at the broker the client's name stands before them.
Deliveries in an inbox are MessagePack of `pathcast.overlay.deliveries`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, TypeVar

import msgspec

from pathcast.errors import ConfigError, PathcastError
from pathcast.overlay.broker_node import BrokerNode, NodeSettings
from pathcast.overlay.content import Content, Profile
from pathcast.overlay.deliveries import Delivery, InForce, Lapsed, Refused
from pathcast.overlay.messages import (
    Follow,
    Forward,
    Frame,
    Hello,
    Interest,
    MessageBegin,
    MessageDropped,
    MessagePart,
    Passed,
    Settled,
    Source,
)
from pathcast.overlay.messages import Name as LinkName
from pathcast.overlay.publishers import Numbered
from pathcast.overlay.xml_content import XmlInterests, xml_content
from pathcast.protocol import Effect, Node, Send
from pathcast.transport.carrier import NodeKind
from pathcast.transport.frames import Codec, Flow, Name

DEFAULT: Final = NodeSettings()

Asked = TypeVar("Asked")


class Subscribe(msgspec.Struct, frozen=True, tag=True):
    """Profiles of the client, each with its id; a known id gets a new profile."""

    profiles: Annotated[tuple[tuple[Name, Profile], ...], msgspec.Meta(max_length=10_000)]


class Unsubscribe(msgspec.Struct, frozen=True, tag=True):
    """Ids of profiles that the client does not want any more."""

    ids: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10_000)]


class RegisterSource(msgspec.Struct, frozen=True, tag=True):
    """A data source of which this broker is the root."""

    source: LinkName
    entry: Source


class Publish(msgspec.Struct, frozen=True, tag=True):
    """A message of a source.

    Attributes:
        source: Which.
        message: Id of the message.
        body: The message.
        numbered: Of a client that numbers what it publishes and may publish it again; the names of
            publishers are the client's own.
    """

    source: LinkName
    message: LinkName
    body: bytes
    numbered: Numbered | None = None


class Explain(msgspec.Struct, frozen=True, tag=True):
    """Asks where a message would go from here, without sending it."""

    body: bytes


class Accepted(msgspec.Struct, frozen=True, tag=True):
    """All is on disk, but what was refused.

    Attributes:
        refused: Id, code and sentence of each.
    """

    refused: tuple[tuple[str, str, str], ...] = ()


class Explained(msgspec.Struct, frozen=True, tag=True):
    """Where a message would go.

    Attributes:
        neighbours: Neighbours in the tree who want it, or something like it.
        subscriptions: Subscriptions here that it satisfies.
    """

    neighbours: tuple[str, ...]
    subscriptions: tuple[str, ...]


KINDS: Final = (Hello, Frame)
REQUESTS: Final = (Subscribe, Unsubscribe, RegisterSource, Publish, Explain)
ANSWERS: Final = (Accepted, Explained)

_MESSAGES: Final = Follow | Forward | MessageBegin | MessagePart | MessageDropped | Passed
_QUERIES: Final = Interest | Settled


def _flow(message: object) -> Flow:
    if isinstance(message, Frame):
        payloads = message.payloads
        if any(isinstance(each, _MESSAGES) for each in payloads):
            return Flow.MESSAGE
        return Flow.QUERY if any(isinstance(each, _QUERIES) for each in payloads) else Flow.CONTROL
    return Flow.MESSAGE if isinstance(message, Publish) else Flow.CONTROL


CODEC: Final = Codec((*KINDS, *REQUESTS, *ANSWERS), _flow)
DELIVERIES: Final[msgspec.msgpack.Decoder[Delivery | InForce | Lapsed | Refused]] = (
    msgspec.msgpack.Decoder(Delivery | InForce | Lapsed | Refused)
)


def broker_kind(
    name: str,
    neighbours: Sequence[str],
    *,
    members: Sequence[str] = (),
    content: Content | None = None,
    settings: NodeSettings = DEFAULT,
) -> NodeKind:
    """Brokers of a network.

    Args:
        name: Of the broker.
        neighbours: Brokers that it may have links with.
        members: Other brokers of the network as it was founded.
        content: The language of profiles and messages; XML when not given.
        settings: Of the protocol.
    """
    language = content or xml_content()
    links = dict.fromkeys(neighbours, 1)

    def make(saved: Mapping[str, bytes], life: int) -> Node:
        return BrokerNode(name, links, language, saved, life, members=members, settings=settings)

    return NodeKind(
        make,
        CODEC,
        delivery=_delivery,
        backlog=lambda node: {},
        request=_request,
        roles={
            Subscribe: "subscribe",
            Unsubscribe: "subscribe",
            RegisterSource: "publish",
            Publish: "publish",
            Explain: "operate",
        },
        describe=_described,
    )


def _request(node: Node, client: str, message: object, now: float) -> Sequence[Effect]:
    assert isinstance(node, BrokerNode)
    match message:
        case Publish(source, message_id, body, numbered):
            if numbered is not None:
                numbered = Numbered(f"{client}/{numbered.publisher}", numbered.number)
            return node.publish(source, message_id, body, now, numbered)
        case RegisterSource(source, entry):
            effects = list(node.register_source(source, entry, now))
            return [*effects, Send(client, Accepted())]
        case Subscribe(profiles):

            def put(id: str, profile: Profile) -> Sequence[Effect]:
                return node.subscribe(f"{client}/{id}", client, profile, now)

            return _each(client, profiles, put)
        case Unsubscribe(ids):

            def take_out(id: str, _: None) -> Sequence[Effect]:
                return node.unsubscribe(f"{client}/{id}", now)

            return _each(client, [(id, None) for id in ids], take_out)
        case Explain(body):
            return [Send(client, _explained(node, body))]
    raise ConfigError("config.invalid", key="request", reason=f"{type(message).__name__} is none")


def _each(
    client: str, rows: Sequence[tuple[str, Asked]], do: Callable[[str, Asked], Sequence[Effect]]
) -> list[Effect]:
    effects: list[Effect] = []
    refused: list[tuple[str, str, str]] = []
    for id, asked in rows:
        try:
            effects += do(id, asked)
        except PathcastError as error:
            refused.append((id, error.code, error.message))
    return [*effects, Send(client, Accepted(tuple(refused)))]


def _explained(node: BrokerNode, body: bytes) -> Explained:
    neighbours: set[str] = set()
    for plane in node.broker.planes.values():
        neighbours |= plane.route([body])[0]
    (answers,) = node.broker.subscriptions.answers([body])
    return Explained(
        tuple(sorted(neighbours - {""})),
        tuple(sorted(subscription.name for subscription, _ in answers)),
    )


def _delivery(what: object) -> tuple[str, bytes]:
    body = msgspec.msgpack.encode(what)
    if isinstance(what, Delivery):
        place = (what.subscription, what.version, what.root, what.stream, what.position)
        return "\t".join(map(str, place)), body
    # A notice, which may be given twice: there is nothing that the second would do again.
    return f"notice\t{secrets.token_hex(12)}", body


def _described(node: Node) -> Mapping[str, object]:
    assert isinstance(node, BrokerNode)
    broker = node.broker
    tables = {
        tree: len(plane.interests)
        for tree, plane in broker.planes.items()
        if isinstance(plane.interests, XmlInterests)
    }
    links = broker.announcements.presences()
    return {
        "members": broker.announcements.members,
        "links": {name: [peer for peer, _ in each.links] for name, each in links.items()},
        "tree": {
            tree: sorted(peer for peer in dict(links[broker.name].links) if plane.is_active(peer))
            for tree, plane in broker.planes.items()
        },
        "tables": tables,
        "subscriptions": len(broker.subscriptions.names()),
        "streams": {root: stream.cursor for root, stream in broker.streams.items()},
        "sources": {key: owner for key, (owner, _) in broker.announcements.sources().items()},
    }

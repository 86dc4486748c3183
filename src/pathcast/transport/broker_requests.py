"""Messages between a broker and its clients; how their bytes are read.

| client says | broker does | answer |
|---|---|---|
| `Subscribe` | registers profiles of the client | `RequestAccepted`: versions; later `InForce` |
| `Unsubscribe` | takes profiles out | `RequestAccepted` |
| `ListSubscriptions` | says which profiles the client has here | `SubscriptionsListed` |
| `RegisterSourceRequest` | takes a data source, or withdraws it | `RequestAccepted` |
| `FindSource` | says which broker is the root of a source | `SourceFound` |
| `ListSources` | says which sources the network has | `SourcesListed` |
| `PublishRequest` | looks at a message, and takes it | the receipt: it is on disk; or `NotTaken` |
| `Explain` | says where a message would go from here, and why | `Explained` |
| `LeaveRequest` | goes for good, once others have had what it published | `RequestAccepted` |
| `ExpelRequest` | takes a broker out of the network for good | `RequestAccepted` |

Deliveries in an inbox are MessagePack of `pathcast.overlay.deliveries`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import Told
from pathcast.overlay.messages import (
    Announce,
    FollowStream,
    Forward,
    Interest,
    MessageBegin,
    MessageDropped,
    MessagePart,
    Payload,
    PositionPassed,
    SessionFrame,
    SessionHello,
    Settled,
    SourceEntry,
    Trimmed,
)
from pathcast.overlay.messages import Name as LinkName
from pathcast.overlay.publishers import PublishRequest as PublishRequest
from pathcast.transport.frames import Codec, EntryDecoder, Flow

SourceName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern="^[^!]")]
"""Ids that brokers take from each other; those that begin with `!` name other things."""


class Subscribe(msgspec.Struct, frozen=True, tag=True):
    """Profiles of the client, each with its id; a known id gets a new profile.

    Attributes:
        profiles: Id and `DeliveryProfile` of each; a profile that came over a connection is not
        looked at
            before its turn (`_profile_of`).
    """

    profiles: Annotated[tuple[tuple[str, Any], ...], msgspec.Meta(max_length=10_000)]


class Unsubscribe(msgspec.Struct, frozen=True, tag=True):
    """Ids of profiles that the client does not want any more."""

    ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=10_000)]


class RegisterSourceRequest(msgspec.Struct, frozen=True, tag="RegisterSource"):
    """A data source of which this broker is the root; only who registers it publishes for it."""

    source: SourceName
    entry: SourceEntry


class FindSource(msgspec.Struct, frozen=True, tag=True):
    """Asks which broker is the root of a source, and what is announced of it."""

    source: SourceName


class SourceFound(msgspec.Struct, frozen=True, tag=True):
    """Answers `FindSource`.

    Attributes:
        broker: The one that answers.
        root: The root broker of the source; None: the network has no such source.
        entry: As it is announced.
    """

    broker: str
    root: str | None = None
    entry: SourceEntry = SourceEntry()


class ListSources(msgspec.Struct, frozen=True, tag=True):
    """Asks for the sources of the network, in the order of their ids.

    Attributes:
        after: Id of the last one that is known already.
    """

    after: str = ""


class SourceRow(msgspec.Struct, frozen=True):
    """A source of the network.

    Attributes:
        source: Its id.
        root: Its root broker.
        schema_version: Number of its schema.
        schema_size: Characters of its schema.
        validated: Whether its root takes valid messages only.
    """

    source: str
    root: str
    schema_version: int = msgspec.field(name="dictionary_version")
    schema_size: int
    validated: bool = False


class SourcesListed(msgspec.Struct, frozen=True, tag=True):
    """Some sources, and the id of the last one if there are more behind it; else nothing."""

    rows: tuple[SourceRow, ...]
    more_after: str = ""


class ListSubscriptions(msgspec.Struct, frozen=True, tag=True):
    """Asks for the subscriptions of the client at this broker, in the order of their names.

    Attributes:
        after: Name of the last one that is known already.
    """

    after: str = ""


class SubscriptionRow(msgspec.Struct, frozen=True):
    """A subscription of a client, as deliveries name it."""

    subscription: str
    profile: DeliveryProfile
    version: int


class SubscriptionsListed(msgspec.Struct, frozen=True, tag=True):
    """Some subscriptions, and the name of the last if there are more behind it; else nothing."""

    rows: tuple[SubscriptionRow, ...]
    more_after: str = ""


class NotTaken(msgspec.Struct, frozen=True, tag=True):
    """A message that is not accepted; others of the same `publish` are.

    Attributes:
        message: Its id; of a long one the beginning.
        code: Of the catalogue of errors.
        reason: In words.
        line: Of the place in the message, from 1.
        column: Likewise.
        offset: In bytes, from 0.
    """

    message: str
    code: str
    reason: str
    line: int | None = None
    column: int | None = None
    offset: int | None = None


class Explain(msgspec.Struct, frozen=True, tag=True):
    """Asks where a message would go from here, without sending it."""

    body: bytes


class LeaveRequest(msgspec.Struct, frozen=True, tag="Leave"):
    """Asks a broker to go for good: its subscriptions end, nothing is kept for it any more.

    It has left when all others have had what it is the root of; until then it has to run.
    """


class ExpelRequest(msgspec.Struct, frozen=True, tag="Expel"):
    """Takes a broker out of the network that will not come back: nothing is kept for it.

    Attributes:
        broker: Which; if it comes back all the same, its subscribers are told what they missed.
    """

    broker: LinkName


class RequestAccepted(msgspec.Struct, frozen=True, tag="Accepted"):
    """All is on disk, but what was refused.

    Attributes:
        refused: Id, code and sentence of each.
        versions: Id -> version of each profile that was registered: `InForce` and deliveries for
            this life of the id name it, and for no other one.
    """

    refused: tuple[tuple[str, str, str], ...] = ()
    versions: dict[str, int] = {}


class Explained(msgspec.Struct, frozen=True, tag=True):
    """Where a message would go.

    Attributes:
        neighbours: Neighbours in the tree who want it, or something like it.
        subscriptions: Subscriptions here that it satisfies.
        reasons: Neighbour -> entries of its table that hold of the message, some of them; none for
            one that gets it because that cannot be told within the limits, or because it wanted it
            until a moment ago.
    """

    neighbours: tuple[str, ...]
    subscriptions: tuple[str, ...]
    reasons: dict[str, tuple[str, ...]] = {}


KINDS: Final = (SessionHello, SessionFrame)


REQUESTS: Final = (
    Subscribe,
    Unsubscribe,
    ListSubscriptions,
    RegisterSourceRequest,
    FindSource,
    ListSources,
    PublishRequest,
    Explain,
    LeaveRequest,
    ExpelRequest,
)


ANSWERS: Final = (
    RequestAccepted,
    Explained,
    NotTaken,
    SourceFound,
    SourcesListed,
    SubscriptionsListed,
)


_MESSAGES: Final = (
    FollowStream | Forward | MessageBegin | MessagePart | MessageDropped | Trimmed | PositionPassed
)


_QUERIES: Final = Interest | Settled


def _flow(message: object) -> Flow:
    if isinstance(message, SessionFrame):
        payloads = message.payloads
        if any(isinstance(each, _MESSAGES) for each in payloads):
            return Flow.MESSAGE
        if any(isinstance(each, _QUERIES) for each in payloads):
            return Flow.QUERY
        return Flow.CATALOG if any(map(_is_catalog, payloads)) else Flow.CONTROL
    return Flow.MESSAGE if isinstance(message, PublishRequest) else Flow.CONTROL


def _is_catalog(payload: Payload) -> bool:
    """Whether a payload tells of sources."""
    return isinstance(payload, Announce) and any(
        isinstance(said.body, SourceEntry) for said in payload.announcements
    )


CODEC: Final = Codec((*KINDS, *REQUESTS, *ANSWERS), _flow)


DELIVERIES: Final[EntryDecoder[Told]] = EntryDecoder(msgspec.msgpack.Decoder(Told))

"""The overlay's broker as a kind of node: what clients ask of it, and what subscribers get.

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

Ids of subscriptions are the client's own: at the broker the client's name stands before them
(`own_id`), and a client changes only what it registered itself.
Deliveries in an inbox are MessagePack of `pathcast.overlay.deliveries`.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from pathcast.errors import (
    ConfigError,
    MissingDependencyError,
    PathcastError,
    PeerRefusedError,
    PublicationError,
    SchemaError,
    SnapshotFormatError,
    UnusableRowError,
)
from pathcast.limits import Limits
from pathcast.overlay.broker import BrokerState
from pathcast.overlay.broker_node import BrokerNode, NodeSettings
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.budgeted_table import BudgetedTable, HeldEntries, TableReview
from pathcast.overlay.content import LOCAL, Content, DeliveryProfile
from pathcast.overlay.deliveries import (
    Dropped,
    InboxDelivery,
    Lapsed,
    Moved,
    NeighbourRefused,
    Told,
    Undecided,
)
from pathcast.overlay.link import LinkSettings
from pathcast.overlay.messages import (
    NAME_CHARACTERS_MAX,
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
from pathcast.overlay.publishers import Numbered, PublishedMessage
from pathcast.overlay.reasons import entries_that_hold
from pathcast.overlay.schemas import check_schema
from pathcast.overlay.subscription_snapshots import SnapshotReview
from pathcast.overlay.xml_content import XmlInterests, xml_content
from pathcast.protocol import Effect, Node, Send
from pathcast.registry import Registry
from pathcast.schema import validator_of
from pathcast.transport.broker_metrics import broker_metrics, missing_links
from pathcast.transport.carrier import Improvement, NodeAdapter
from pathcast.transport.events import RareEvents, log_event, reason_of
from pathcast.transport.frames import FRAME_BYTES, Codec, EntryDecoder, Flow
from pathcast.transport.ids import check_id, each_alone, shown
from pathcast.transport.security import own_id

DEFAULT: Final = NodeSettings(link=LinkSettings(resend_seconds=3.0, resend_seconds_max=10.0))
"""A connection loses nothing while it lives, and a new one is told of: what is not acknowledged was
dropped from a full queue, or waits for a busy broker, which the same once more makes no faster."""

ROWS_AT_ONCE: Final = 1_000
"""Rows of one answer to `ListSources` or `ListSubscriptions`."""

SUBSCRIPTION_CHARACTERS_MAX: Final = 256
"""Of a client's id of a subscription."""

REASONS_MAX: Final = 20
"""Entries that are told of a neighbour, of those that hold of a message."""


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


SourceName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern="^[^!]")]
"""Ids that brokers take from each other; those that begin with `!` name other things."""


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


class PublishRequest(msgspec.Struct, frozen=True, tag="Publish"):
    """A message of a source.

    Attributes:
        source: Which.
        message: Id of the message, of 1 to 128 characters.
        body: The message.
        numbered: Of a client that numbers what it publishes and may publish it again; the names of
            publishers are the client's own.
        trace: Brokers remember from whom they have it.
    """

    source: str
    message: str
    body: bytes
    numbered: Numbered | None = None
    trace: bool = False


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


def broker_kind(
    name: str,
    neighbours: Sequence[str],
    *,
    members: Sequence[str] = (),
    content: Content | None = None,
    settings: NodeSettings = DEFAULT,
    limits: Limits | None = None,
    costs: Mapping[str, int] | None = None,
) -> NodeAdapter:
    """Brokers of a network.

    Args:
        name: Of the broker.
        neighbours: Brokers that it may have links with.
        members: Other brokers of the network as it was founded.
        content: The language of profiles and messages; XML, within `limits`, when not given.
        settings: Of the protocol.
        limits: What a message may cost.
        costs: Neighbour -> what the link costs, 0 if that is measured; 1 when not given.
    """
    language = content or xml_content(limits=limits)
    door = Doorkeeper(limits or Limits())
    links = {**dict.fromkeys(neighbours, 1), **(costs or {})}

    def make(saved: Mapping[str, bytes], life: int) -> Node:
        node = BrokerNode(name, links, language, saved, life, members=members, settings=settings)
        door.sources = node.broker.own_sources
        return node

    return NodeAdapter(
        make,
        CODEC,
        delivery=partial(_delivery, RareEvents()),
        gap=lambda gap: msgspec.msgpack.encode(Dropped(*gap)),
        backlog=lambda node: {},
        request=_request,
        prepare={Subscribe: _find_entries, RegisterSourceRequest: _look_at_schema},
        roles={
            Subscribe: "subscribe",
            Unsubscribe: "subscribe",
            ListSubscriptions: "subscribe",
            RegisterSourceRequest: "publish",
            FindSource: "publish",
            ListSources: "publish",
            PublishRequest: "publish",
            Explain: "operate",
            LeaveRequest: "operate",
            ExpelRequest: "operate",
        },
        describe=_described,
        set_link=_set_link,
        refusals=door,
        looks_long=door.looks_long,
        fullness=partial(_log_fullness, settings.broker),
        metrics=broker_metrics,
        unready=missing_links,
        end=_end,
        improve=_improvement,
        reads_later=True,
    )


class Doorkeeper:
    """The message pre-processor of a root: what is no message is not accepted.

    Messages are read by the kernel, all of a call at once; inner brokers read them for their tables
    only, and ask no more whether they are any. A message of a source that asks for it is validated
    against the source's schema.

    Args:
        limits: What a message may cost.

    Attributes:
        sources: Those that this broker is the root of.

    Cost: the door's, about 10 µs for 4 KB; some times that for what is validated.

    Source: 001, section 5, Figure 10 (message pre-processor: the XML parser of a root broker).
    """

    def __init__(self, limits: Limits) -> None:
        self.sources: Mapping[str, SourceEntry] = {}
        self._registry = Registry(limits, threads=1)
        self._turn = threading.Lock()

    def __call__(self, messages: Sequence[object]) -> dict[int, object]:
        """Place -> `NotTaken`, of those that are not accepted."""
        refused: dict[int, object] = {}
        published: list[tuple[int, PublishRequest]] = []
        for place, each in enumerate(messages):
            if isinstance(each, PublishRequest):
                try:
                    check_id(each.message, "id of the message", NAME_CHARACTERS_MAX)
                    published.append((place, each))
                except UnusableRowError as error:
                    refused[place] = _not_taken(each.message, error)
        if published:
            with self._turn:
                found = self._registry.match([each.body for _, each in published])
            for row, refusal in found.refusals.items():
                place, each = published[row]
                refused[place] = _not_taken(each.message, refusal)
        for place, each in published:
            if place not in refused and (invalid := self._invalid(each)) is not None:
                refused[place] = _not_taken(each.message, invalid)
        return dict(sorted(refused.items()))

    def looks_long(self, messages: Sequence[object]) -> bool:
        """Whether some are validated, which is done beside the event loop."""
        return any(
            isinstance(each, PublishRequest) and self._validated(each.source) is not None
            for each in messages
        )

    def _validated(self, source: str) -> SourceEntry | None:
        """The entry of a source that asks for validation."""
        entry = self.sources.get(source)
        return entry if entry is not None and entry.validated and not entry.withdrawn else None

    def _invalid(self, asked: PublishRequest) -> PathcastError | None:
        entry = self._validated(asked.source)
        if entry is None:
            return None
        try:
            fault = validator_of(entry.schema).fault(asked.body)
        except (SchemaError, MissingDependencyError) as error:
            return error
        if fault is None:
            return None
        return PublicationError(
            "publication.invalid",
            source=asked.source,
            schema_version=entry.schema_version,
            reason=fault.reason,
            line=fault.line,
            retry="no",
        )


def _not_taken(message: str, error: PathcastError) -> NotTaken:
    line, column, offset = (_number(error, each) for each in ("line", "column", "offset"))
    return NotTaken(shown(message), error.code, error.message, line, column, offset)


def _number(error: PathcastError, name: str) -> int | None:
    given = error.params.get(name)
    return given if isinstance(given, int) else None


def _request(node: Node, client: str, messages: Sequence[object], now: float) -> Sequence[Effect]:
    """All of them are one event: kept, routed and told together."""
    assert isinstance(node, BrokerNode)
    published = [
        _publication(client, each) for each in messages if isinstance(each, PublishRequest)
    ]
    answers: list[object] = _published(node.broker, client, published) if published else []
    others = [each for each in messages if not isinstance(each, PublishRequest)]
    answers += [_answer(node, client, each) for each in others]
    return [*node.done(now), *(Send(client, each) for each in answers)]


def _published(
    broker: BrokerState, client: str, publications: Sequence[PublishedMessage]
) -> list[object]:
    """Takes messages, all or none but those of sources that are not the client's.

    Returns:
        `NotTaken` of these.

    Raises:
        PublicationError: None was taken: all are of such sources, or there is no room.
    """
    try:
        broker.publish_all(publications, client)
        return []
    except PublicationError as error:
        if error.code != "publication.source":
            raise
        errors: dict[str, PublicationError] = {}
        for source in dict.fromkeys(each.source for each in publications):
            try:
                broker.check_source(source, client)
            except PublicationError as refusal:
                errors[source] = refusal
        rest = [each for each in publications if each.source not in errors]
        if not rest:
            raise
    broker.publish_all(rest, client)
    gone = [each for each in publications if each.source in errors]
    return [_not_taken(each.message, errors[each.source]) for each in gone]


def _publication(client: str, message: PublishRequest) -> PublishedMessage:
    """Convert a client's message to a publication; publisher names are the client's own."""
    given = message.numbered
    numbered = None if given is None else Numbered(own_id(client, given.publisher), given.number)
    return PublishedMessage(
        message.source, message.message, message.body, trace=message.trace, numbered=numbered
    )


def _look_at_schema(node: Node, message: object) -> None:
    """Reads the schema of a source, which takes some milliseconds; `_check_entry` finds it read."""
    assert isinstance(message, RegisterSourceRequest)
    with contextlib.suppress(PathcastError):
        _check_entry(message.entry)


def _check_entry(entry: SourceEntry) -> None:
    """Refuses a source whose schema cannot be used.

    Raises:
        SchemaError: It cannot be read, or its messages cannot be validated as it asks.
        MissingDependencyError: What validates them is not installed.
    """
    if entry.withdrawn:
        return
    try:
        check_schema(entry.schema, validated=entry.validated)
    except MissingDependencyError:
        # Without it schemas are announced, and nothing here reads them.
        if entry.validated:
            raise


def _find_entries(node: Node, message: object) -> None:
    """Finds the entries of new profiles, which takes up to a millisecond each."""
    assert isinstance(node, BrokerNode)
    assert isinstance(message, Subscribe)
    for _, profile in message.profiles:
        with contextlib.suppress(PathcastError):
            node.broker.subscriptions.entries_of(_profile_of(profile))


def _profile_of(given: object) -> DeliveryProfile:
    """A profile as it came, or as it was made here.

    Raises:
        UnusableRowError: It is none.
    """
    if isinstance(given, DeliveryProfile):
        return given
    try:
        return msgspec.convert(given, DeliveryProfile)
    except msgspec.ValidationError as error:
        raise UnusableRowError(
            "row.field", field="profile", expected="one", found=str(error)
        ) from error


def _answer(node: BrokerNode, client: str, message: object) -> object:
    broker = node.broker
    match message:
        case RegisterSourceRequest(source, entry):
            _check_entry(entry)
            broker.register_source(source, entry, client)
            return RequestAccepted()
        case Subscribe(profiles):
            versions: dict[str, int] = {}

            def register(id: str, asked: object) -> None:
                check_id(id, "id of the subscription", SUBSCRIPTION_CHARACTERS_MAX)
                name = _name_of(broker, client, id)
                versions[id] = broker.subscribe(name, client, _profile_of(asked))

            return RequestAccepted(each_alone(profiles, register), versions)
        case Unsubscribe(ids):

            def take_out(id: str, _: object) -> None:
                broker.unsubscribe(_name_of(broker, client, id))

            return RequestAccepted(each_alone([(id, None) for id in ids], take_out))
        case ListSubscriptions(after):
            return _subscriptions(broker, client, after)
        case FindSource(source):
            root, entry = broker.announcements.sources().get(source, (None, SourceEntry()))
            return SourceFound(broker.name, root, entry)
        case ListSources(after):
            return _sources(broker, after)
        case Explain(body):
            return _explained(node, body)
        case LeaveRequest():
            broker.leave()
            return RequestAccepted()
        case ExpelRequest(name):
            _expel(node, name)
            return RequestAccepted()
    raise ConfigError("config.invalid", key="request", reason=f"{type(message).__name__} is none")


def _sources(broker: BrokerState, after: str) -> SourcesListed:
    found = broker.announcements.sources()
    behind = sorted(name for name in found if name > after)
    rows = []
    for name in behind[:ROWS_AT_ONCE]:
        root, entry = found[name]
        size = len(entry.schema)
        rows.append(SourceRow(name, root, entry.schema_version, size, entry.validated))
    return SourcesListed(tuple(rows), rows[-1].source if len(behind) > len(rows) else "")


def _subscriptions(broker: BrokerState, client: str, after: str) -> SubscriptionsListed:
    rows: list[SubscriptionRow] = []
    size = 0
    for name in broker.subscriptions.names():
        held = broker.subscriptions.get(name)
        if name <= after or held is None or held.subscriber != client:
            continue
        size += len(held.profile.query)
        if len(rows) == ROWS_AT_ONCE or (rows and size > FRAME_BYTES):
            return SubscriptionsListed(tuple(rows), rows[-1].subscription)
        rows.append(SubscriptionRow(name, held.profile, held.version))
    return SubscriptionsListed(tuple(rows))


def _name_of(broker: BrokerState, client: str, id: str) -> str:
    """The name of a client's subscription at the broker.

    An earlier version did not escape the client's name; what it registered is known by its owner.
    """
    name, earlier = own_id(client, id), f"{client}/{id}"
    held = broker.subscriptions.get(earlier)
    return earlier if held is not None and held.subscriber == client else name


def _explained(node: BrokerNode, body: bytes) -> Explained:
    reasons: dict[str, tuple[str, ...]] = {}
    for plane in node.broker.planes.values():
        for peer in plane.route([body])[0] - {LOCAL}:
            held = entries_that_hold(plane.interests.held(peer), body)
            reasons[peer] = tuple(sorted({*reasons.get(peer, ()), *held}))[:REASONS_MAX]
    (answers,) = node.broker.subscriptions.answers([body])
    return Explained(
        tuple(sorted(reasons)),
        tuple(sorted(subscription.name for subscription, _ in answers)),
        {peer: reasons[peer] for peer in sorted(reasons)},
    )


def _expel(node: BrokerNode, name: str) -> None:
    members = node.broker.announcements.members
    if name == node.broker.name or name not in members:
        others = ", ".join(each for each in members if each != node.broker.name) or "none"
        reason = f"{name} is no other member of the network; members: {others}"
        raise ConfigError("config.invalid", key="expel", reason=reason)
    node.broker.expel(name)


def _log_fullness(settings: ProtocolSettings, node: Node) -> float:
    assert isinstance(node, BrokerNode)
    own = node.broker.streams.get(node.broker.name)
    if own is None:
        return 0.0
    messages = len(own.held) / settings.log_messages_max
    return max(messages, own.held_bytes / settings.log_bytes_max)


def _set_link(node: Node, peer: str, cost: int, now: float) -> Sequence[Effect]:
    assert isinstance(node, BrokerNode)
    return node.set_link(peer, cost, now)


def _end(node: Node) -> PathcastError | None:
    """Of two processes of one name, the one that began earlier ends."""
    assert isinstance(node, BrokerNode)
    if not node.broker.is_elder:
        return None
    return PeerRefusedError("peer.twin", name=node.broker.name)


def moved_id(subscription: str, ticket: int) -> str:
    """The delivery id of a `Moved`."""
    return f"moved\t{ticket}\t{subscription}"


def _delivery(events: RareEvents, what: object) -> tuple[str, bytes]:
    if isinstance(what, Lapsed):
        name = what.subscription
        events.log("subscription.lapsed", (), subscription=name)
    if isinstance(what, NeighbourRefused):
        log_event("operator.told", subject=what.peer, code=what.code, reason=what.reason)
    body = msgspec.msgpack.encode(what)
    if isinstance(what, InboxDelivery | Undecided):
        # What is delivered together has ids that lie together.
        place = f"{what.root}\t{what.stream}\t{what.position:016x}"
        return f"{place}\t{what.version}\t{what.subscription}", body
    if isinstance(what, Moved):
        return moved_id(what.subscription, what.ticket), body
    # A notice, which may be given twice: there is nothing that the second would do again.
    return f"notice\t{secrets.token_hex(12)}", body


def _improvement(node: Node, is_last: bool) -> Improvement | None:
    """Makes tables with a budget anew, and the snapshot of profiles (`NodeAdapter.improve`)."""
    assert isinstance(node, BrokerNode)
    broker = node.broker
    snapshot = broker.snapshots.review(is_last=is_last)
    schemas = [entry.schema for _, entry in broker.announcements.sources().values()]
    tables = [
        (table, review)
        for table in (() if is_last else _budgeted(broker).values())
        if (review := table.review(filter(None, schemas))) is not None
    ]
    if not tables and snapshot is None:
        return None

    def work() -> Callable[[float], Sequence[Effect]]:
        made = [(table, _chosen(broker.name, review)) for table, review in tables]
        kept = None if snapshot is None else _kept(broker.name, snapshot)

        def adopt(now: float) -> Sequence[Effect]:
            for table, held in made:
                _adopt(broker.name, table, held)
            if kept is not None:
                broker.snapshots.adopt(kept.made, is_base_lost=kept.is_base_lost)
            return node.done(now)

        return adopt

    return work


class _KeptSnapshot(NamedTuple):
    """The outcome of a review of the snapshot, as `SubscriptionSnapshots.adopt` takes it."""

    made: tuple[str, bytes] | None
    is_base_lost: bool = False


def _kept(name: str, review: SnapshotReview) -> _KeptSnapshot:
    """Make a snapshot; what fails is logged, and changes go on to be counted."""
    began = time.monotonic()
    try:
        made = review.make()
    except Exception as error:
        log_event("profiles.unkept", name=name, **_reason_of(error))
        return _KeptSnapshot(None, isinstance(error, SnapshotFormatError | FileNotFoundError))
    seconds = round(time.monotonic() - began, 1)
    log_event("profiles.kept", name=name, changed=len(review.changed), seconds=seconds)
    return _KeptSnapshot(made)


def _reason_of(error: Exception) -> Mapping[str, Any]:
    """Code and words of any error, for the log."""
    if isinstance(error, PathcastError):
        return reason_of(error)
    return {"code": type(error).__name__, "reason": str(error)}


def _chosen(name: str, review: TableReview) -> HeldEntries | Exception | None:
    """The table to adopt, made without the schemas if these are what goes wrong."""
    without = [replace(review, schemas=())] if review.schemas else []
    for tried in (review, *without):
        try:
            return tried.choose()
        except Exception as error:
            failure = error
            log_event("table.kept", name=name, **_reason_of(error))
    return failure


def _adopt(name: str, table: BudgetedTable, made: HeldEntries | Exception | None) -> None:
    """End the review of a table; whatever goes wrong, the table stays whole."""
    if isinstance(made, Exception):
        table.fail()
        return
    try:
        table.adopt(made)
    except Exception as error:
        log_event("table.kept", name=name, **_reason_of(error))
        table.fail()
        return
    if made is not None:
        _log_table(name, table)


def _log_table(name: str, table: BudgetedTable) -> None:
    in_vain = table.in_vain
    log_event("table.made", name=name, told=table.told, held=len(table), in_vain=in_vain)


def _budgeted(broker: BrokerState) -> dict[str, BudgetedTable]:
    """Tree -> its table, of those with a budget."""
    return {
        tree: plane.interests.budgeted
        for tree, plane in broker.planes.items()
        if isinstance(plane.interests, XmlInterests) and plane.interests.budgeted is not None
    }


def _described_log(broker: BrokerState) -> Mapping[str, object]:
    """Describe a root's log: its size, its bounds, and the members that hold it."""
    own = broker.streams.get(broker.name)
    settings = broker.settings
    return {
        "messages": 0 if own is None else len(own.held),
        "messages_max": settings.log_messages_max,
        "bytes": 0 if own is None else own.held_bytes,
        "bytes_max": settings.log_bytes_max,
        "lags": [lag._asdict() for lag in broker.lags],
    }


def _described(node: Node) -> Mapping[str, object]:
    assert isinstance(node, BrokerNode)
    broker = node.broker
    tables = {
        tree: len(plane.interests)
        for tree, plane in broker.planes.items()
        if isinstance(plane.interests, XmlInterests)
    }
    saved: Counter[str] = Counter()
    for plane in broker.planes.values():
        if isinstance(plane.interests, XmlInterests):
            saved.update(plane.interests.saved)
    links = broker.announcements.presences()
    return {
        "sessions": {peer: counts[0] for peer, counts in node.link_counts().items()},
        "resent": {peer: counts[1] for peer, counts in node.link_counts().items()},
        "members": broker.announcements.members,
        "has_left": broker.announcements.has_left(broker.name),
        "links": {name: [peer for peer, _ in each.links] for name, each in links.items()},
        "costs": dict(links[broker.name].links),
        "tree": {
            tree: sorted(peer for peer in dict(links[broker.name].links) if plane.is_active(peer))
            for tree, plane in broker.planes.items()
        },
        "tables": tables,
        "budgeted_tables": {
            tree: {
                "told": table.told,
                "held": len(table),
                "in_vain": table.in_vain,
                "failures": table.failures,
            }
            for tree, table in _budgeted(broker).items()
        },
        "taken_bytes": broker.taken_bytes,
        "log": _described_log(broker),
        "cut_bytes": dict(saved),
        "cut_through": sum(stream.parts.cut_through for stream in broker.streams.values()),
        "formats": {
            peer: {
                "format": each.format,
                "text_bytes": each.text_bytes,
                "sent_bytes": each.sent_bytes,
            }
            for peer, each in node.compressions.items()
        },
        "arrivals": [each._asdict() for each in broker.arrivals],
        "subscriptions": len(broker.subscriptions.names()),
        "streams": {root: stream.cursor for root, stream in broker.streams.items()},
        "sources": {key: owner for key, (owner, _) in broker.announcements.sources().items()},
    }

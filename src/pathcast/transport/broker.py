"""The overlay's broker as a kind of node: what it makes of what clients ask.

`pathcast.transport.broker_requests` says what that is. Ids of subscriptions are the client's own:
at the broker the client's name stands before them (`own_id`), and a client changes only what it
registered itself.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from pathcast.errors import (
    ConfigError,
    PathcastError,
    PeerRefusedError,
    PublicationError,
    UnusableRowError,
)
from pathcast.limits import Limits
from pathcast.overlay.broker import BrokerState
from pathcast.overlay.broker_node import BrokerNode, NodeSettings
from pathcast.overlay.content import LOCAL, Content, DeliveryProfile
from pathcast.overlay.deliveries import (
    Dropped,
    InboxDelivery,
    Lapsed,
    Moved,
    NeighbourRefused,
    Undecided,
)
from pathcast.overlay.link import LinkSettings
from pathcast.overlay.messages import (
    SourceEntry,
)
from pathcast.overlay.reasons import entries_that_hold
from pathcast.overlay.xml_content import xml_content
from pathcast.transport.broker_metrics import broker_metrics, missing_links
from pathcast.transport.broker_requests import (
    CODEC,
    ExpelRequest,
    Explain,
    Explained,
    FindSource,
    LeaveRequest,
    ListSources,
    ListSubscriptions,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    SourceFound,
    SourceRow,
    SourcesListed,
    Subscribe,
    SubscriptionRow,
    SubscriptionsListed,
    Unsubscribe,
)
from pathcast.transport.broker_reviews import improvement
from pathcast.transport.broker_status import described, log_fullness
from pathcast.transport.calls import ClientCall, Outcomes
from pathcast.transport.carrier import NodeAdapter
from pathcast.transport.doorkeeper import Doorkeeper, check_entry, not_taken
from pathcast.transport.events import RareEvents, log_event
from pathcast.transport.frames import FRAME_BYTES
from pathcast.transport.ids import check_id, each_alone
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


def _now_us() -> int:
    """The system's time, which a broker's own clock does not follow where it jumps."""
    return time.time_ns() // 1000


def broker_kind(
    name: str,
    neighbours: Sequence[str],
    *,
    members: Sequence[str] = (),
    content: Content | None = None,
    settings: NodeSettings = DEFAULT,
    limits: Limits | None = None,
    costs: Mapping[str, int] | None = None,
    clock: Callable[[], int] = _now_us,
) -> NodeAdapter[BrokerNode]:
    """Brokers of a network.

    Args:
        name: Of the broker.
        neighbours: Brokers that it may have links with.
        members: Other brokers of the network as it was founded.
        content: The language of profiles and messages; XML, within `limits`, when not given.
        settings: Of the protocol.
        limits: What a message may cost.
        costs: Neighbour -> what the link costs, 0 if that is measured; 1 when not given.
        clock: Microseconds since the beginning of 1970: the time of messages that arrive without
            one.
    """
    language = content or xml_content(limits=limits)
    door = Doorkeeper(limits or Limits())
    links = {**dict.fromkeys(neighbours, 1), **(costs or {})}

    def make(saved: Mapping[str, bytes], life: int) -> BrokerNode:
        node = BrokerNode(name, links, language, saved, life, members=members, settings=settings)
        door.sources = node.broker.own_sources
        return node

    return NodeAdapter(
        make,
        CODEC,
        delivery=partial(_delivery, RareEvents()),
        gap=lambda gap: msgspec.msgpack.encode(Dropped(*gap)),
        backlog=lambda node: {},
        request=partial(_request, clock),
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
        describe=described,
        set_link=BrokerNode.set_link,
        refusals=door,
        looks_long=door.looks_long,
        fullness=partial(log_fullness, settings.broker),
        metrics=broker_metrics,
        unready=missing_links,
        end=_end,
        improve=improvement,
        reads_later=True,
    )


def _request(
    clock: Callable[[], int],
    node: BrokerNode,
    calls: Sequence[ClientCall],
    now: float,
) -> Outcomes:
    """All of them are one event: kept, routed and told together."""
    arrived = clock()
    outcomes: list[Sequence[object] | PathcastError] = []
    for client, messages in calls:
        try:
            outcomes.append(_answers(node, client, messages, arrived))
        except PathcastError as error:
            outcomes.append(error)
    return outcomes, node.done(now)


def _answers(
    node: BrokerNode, client: str, messages: Sequence[object], arrived: int
) -> list[object]:
    """The answers to a call; what it publishes comes first.

    Raises:
        PathcastError: It is refused: see `_published` and `_answer`.
    """
    published = [
        _publication(client, each, arrived) for each in messages if isinstance(each, PublishRequest)
    ]
    answers: list[object] = _published(node.broker, client, published) if published else []
    others = [each for each in messages if not isinstance(each, PublishRequest)]
    return [*answers, *(_answer(node, client, each) for each in others)]


def _published(
    broker: BrokerState, client: str, publications: Sequence[PublishRequest]
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
    return [not_taken(each.message, errors[each.source]) for each in gone]


def _publication(client: str, message: PublishRequest, arrived: int) -> PublishRequest:
    """The message at the broker: it has a time, and names of publishers are the client's own."""
    numbered = message.numbered
    if numbered is not None:
        numbered = msgspec.structs.replace(numbered, publisher=own_id(client, numbered.publisher))
    when = arrived if message.time is None else message.time
    return msgspec.structs.replace(message, numbered=numbered, time=when)


def _look_at_schema(node: BrokerNode, message: object) -> None:
    """Reads the schema of a source, which takes some milliseconds; `check_entry` finds it read."""
    assert isinstance(message, RegisterSourceRequest)
    with contextlib.suppress(PathcastError):
        check_entry(message.entry)


def _find_entries(node: BrokerNode, message: object) -> None:
    """Finds the entries of new profiles, which takes up to a millisecond each."""
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
            check_entry(entry)
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
        for peer in plane.interests.route([body])[0] - {LOCAL}:
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


def _end(node: BrokerNode) -> PathcastError | None:
    """Of two processes of one name, the one that began earlier ends."""
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

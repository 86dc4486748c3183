"""A broker's planes together: control, catalog, query and data (Figure 10), above reliable links.

It is told of sessions that begin and end, of payloads that came over them (in order, none twice)
and of time; it changes its state and leaves effects and payloads with whoever carries it. Frames,
sessions and resending are `pathcast.overlay.broker_node`'s; what profiles and messages say is
`pathcast.overlay.content`'s.

What it keeps on disk: the members it knows, its subscriptions, its cursors, and as a root its
sources and its log.

Source: 001, sections 3.2, 4.2.1 and 5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import msgspec

from pathcast.errors import PathcastError, PeerError, PublicationError
from pathcast.overlay.announcements import Announcements
from pathcast.overlay.content import Content, Decisions, Profile, Verdict
from pathcast.overlay.deliveries import OPERATOR, Delivery, InForce, Lapsed, Refused, Undecided
from pathcast.overlay.messages import (
    Announce,
    Announcement,
    Detach,
    Follow,
    Forward,
    InParts,
    Interest,
    MessageBegin,
    MessageDropped,
    MessagePart,
    Passed,
    Payload,
    Presence,
    Published,
    Settled,
    Source,
)
from pathcast.overlay.parts import COMING_MAX, SENDING_MAX, Parts
from pathcast.overlay.publishers import Logged, Numbered, Publishers
from pathcast.overlay.query_plane import QueryPlane
from pathcast.overlay.safeguards import ALL, Safeguards
from pathcast.overlay.streams import Stream
from pathcast.overlay.subscriptions import Subscription, Subscriptions
from pathcast.overlay.trees import Edge, Links, broadcast_tree, neighbours, spanning_tree, towards
from pathcast.protocol import Deliver, Effect, Forget, Save

__all__ = ["Broker", "BrokerSettings", "Trees"]

_T = TypeVar("_T")

Trees = Literal["spanning", "broadcast"]

SHARED = ""
"""The one spanning tree."""

LOCAL_MESSAGES = 64
"""Messages that local queries are run on at a time."""

LOCAL_WAITING_MAX = 4096
"""Messages that wait for local queries, before these are run ahead of what comes next."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What an operator decides.

    Attributes:
        trees: "spanning": one tree for all, a table per neighbour. "broadcast": a tree per root, a
            table per root and child, as in 001.
        log_messages_max: Messages a root holds for members that have not had them; with more it
            takes no new ones.
        log_bytes_max: Bytes of these messages.
        held_messages_max: Messages a broker holds for a neighbour that is slow.
        held_bytes_max: Bytes of these messages.
        message_bytes_max: Bytes of a message that a root takes; `MESSAGE_BYTES_MAX` at most.
        part_bytes: Bytes of a part; longer messages travel in parts.
        cut_through: Whether a message that comes in parts is sent on before all of it is here.
    """

    trees: Trees = "spanning"
    log_messages_max: int = 100_000
    log_bytes_max: int = 1 << 30
    held_messages_max: int = 4096
    held_bytes_max: int = 1 << 28
    message_bytes_max: int = 8 << 20
    part_bytes: int = 64 << 10
    cut_through: bool = True


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Messages of a stream that wait for local queries, and the position that they end."""

    stream: Stream
    messages: Sequence[Published]
    upto: int


class Broker:
    """The state of a broker, without input or output.

    Args:
        name: Of the broker, in the whole network.
        links: Neighbours it may have links with, and what a link costs.
        content: The language of profiles and messages.
        disk: What was saved by a former life.
        incarnation: A number no former life had.
        send: Gives a payload to a neighbour.
        has_room: Whether a neighbour can be sent to now.
        members: Other brokers of the network as it was founded; more are learned.
        settings: What an operator decides.
        safeguards: For tests.

    Attributes:
        effects: What is to be done before anything is sent.
        given: What is to be done after it: subscribers do not hold neighbours up.
    """

    def __init__(
        self,
        name: str,
        links: Mapping[str, int],
        content: Content,
        disk: Mapping[str, bytes],
        incarnation: int,
        send: Callable[[str, Payload], None],
        has_room: Callable[[str], bool],
        members: Iterable[str] = (),
        settings: BrokerSettings = BrokerSettings(),
        safeguards: Safeguards = ALL,
    ) -> None:
        self.name = name
        self.effects: list[Effect] = []
        self.given: list[Effect] = []
        self._links = dict(links)
        self._content = content
        self._send = send
        self._has_room = has_room
        self._settings = settings
        self._safeguards = safeguards
        self._incarnation = incarnation
        saved = _unpacked(disk, "members", list[str], [])
        self._joined = bool(saved)
        self.announcements = Announcements(name, incarnation, {*members, *links, *saved})
        self._saved_members = saved
        self._known_by: set[str] = {name}
        self._sessions: set[str] = set()
        self.planes: dict[str, QueryPlane] = {}
        self.streams: dict[str, Stream] = {}
        self._saved_cursors: dict[str, tuple[int, int]] = {}
        self._leads: dict[str, str | None] = {}
        self._sources: dict[str, Source] = {}
        self._owners: dict[str, str] = {}
        self.subscriptions = Subscriptions(content.profiles())
        self._local: deque[_Waiting] = deque()
        self._local_messages = 0
        self._tickets: dict[int, tuple[list[Subscription], set[str]]] = {}
        self._ticket = 0
        # What the present event has changed, until `finish`.
        self._awaited: list[Subscription] = []
        self._wanted: tuple[list[str], list[str]] = ([], [])
        self._taken: list[Logged] = []
        self._moving: set[str] = set()
        self._leaving = "leaving" in disk
        self._term = _unpacked(disk, "term", int, 0)
        self._is_stale = True
        self._stream_number = _unpacked(disk, "stream", int, 0)
        self._publishers = Publishers()
        self._log_start = 0
        self._log: deque[tuple[int, int]] = deque()
        self._has_lapsed = "lapsed" in disk
        self._load(disk)

    # Events.

    def start(self) -> None:
        """Begin, from what was saved."""
        if self._settings.trees == "spanning":
            self._add_plane(SHARED)
        self._review()
        if (own := self.streams.get(self.name)) is not None:
            own.fresh = list(own.held)
            own.take_own()
        if self._leaving:
            self.leave()
        elif self._has_lapsed:
            self._lapse()
        else:
            for subscription in self.subscriptions.lapse():
                self._await(subscription)

    def session_began(self, peer: str) -> None:
        """A link has a new session: whatever was said in another is void."""
        if peer in self._sessions:
            self.session_ended(peer)
        self._sessions.add(peer)
        self._joined = True
        self._send(peer, Announce(tuple(self.announcements.everything())))
        self._is_stale = True
        self._review()

    def session_ended(self, peer: str) -> None:
        """A link is given up."""
        self._sessions.discard(peer)
        for plane in self.planes.values():
            plane.session_ended(peer)
        for stream in self.streams.values():
            stream.forget(peer)
        self._leads = {root: at for root, at in self._leads.items() if at != peer}
        self._is_stale = True
        self._review()

    def hear(self, peer: str, payload: Payload) -> None:
        """A neighbour says something in the present session.

        Raises:
            PeerError: What it says cannot be.
        """
        match payload:
            case Announce():
                self._hear_announcements(peer, payload.announcements)
            case Interest() | Settled() | Detach():
                plane = self.planes.get(payload.tree)
                if plane is not None:
                    self._hear_query(peer, plane, payload)
            case (
                Follow() | Forward() | MessageBegin() | MessagePart() | MessageDropped() | Passed()
            ):
                stream = self.streams.get(payload.root)
                if stream is not None and stream.number == payload.stream:
                    self._hear_stream(peer, stream, payload)

    def tick(self) -> None:
        """Some time has passed."""
        for root, stream in sorted(self.streams.items()):
            stream.tick()
            if self._saved_cursors.get(root) != (stream.number, stream.cursor):
                self.effects.append(self._cursor(root, stream.number, stream.cursor))
            stream.note(self.name, stream.cursor)
            stream.report()
            if stream.is_root:
                self._trim(stream)

    def rewind(self) -> bool:
        """Go back upstream for those that follow anew. Returns whether any did."""
        due = [stream for _, stream in sorted(self.streams.items()) if stream.rewind_due]
        for stream in due:
            stream.rewind()
            self._moving.add(stream.root)
        return bool(due)

    @property
    def has_local_work(self) -> bool:
        """Whether messages wait for the broker's own subscribers."""
        return bool(self._local)

    @property
    def is_behind(self) -> bool:
        """Whether so many wait that they have to be seen to before anything else is taken."""
        return self._local_messages > LOCAL_WAITING_MAX

    def work_locally(self) -> None:
        """Run local queries on what has waited longest: as many messages as make a batch."""
        taken: list[_Waiting] = []
        count = 0
        while self._local and count < LOCAL_MESSAGES:
            taken.append(self._local.popleft())
            count += len(taken[-1].messages)
        self._work(taken)

    def finish(self) -> None:
        """What an event, or several together, changed is done at once: told, and sent.

        Streams that have nothing to send, for want of messages or of room, cost nothing. What came
        waits for local queries from then on (`work_locally`).
        """
        self._want_changes()
        self._keep_taken()
        for root in sorted(self._moving):
            stream = self.streams.get(root)
            if stream is not None:
                stream.advance()
            if stream is None or not stream.is_behind:
                self._moving.discard(root)

    # What a host is asked for.

    def subscribe(
        self, subscription: str, subscriber: str, profile: Profile, version: int | None = None
    ) -> None:
        """Register a profile, or put it in the place of one with the same id.

        `finish` tells others. `InForce` is delivered to the subscriber when every message that is
        published from then on, at any broker, will be delivered.

        Args:
            subscription: Its id.
            subscriber: Who gets its deliveries.
            profile: What it asks for.
            version: Of the profile, where something else than this broker counts them.

        Raises:
            PathcastError: It is no profile.
        """
        made, added, removed = self.subscriptions.put(
            subscription, subscriber, profile, self._ticket + 1, version
        )
        self._save(f"subscription/{subscription}", made)
        self._await(made)
        self._want(added, removed)

    def unsubscribe(self, subscription: str) -> None:
        """Take a profile out; nothing is delivered for it from now on.

        Raises:
            UnknownQueryError: There is none of this id.
        """
        added, removed = self.subscriptions.take_out(subscription)
        self.effects.append(Forget(f"subscription/{subscription}"))
        self._want(added, removed)

    # What a root is asked for.

    def register_source(self, source: str, entry: Source, owner: str = "") -> None:
        """Take a data source, or put a new schema and dictionary in the place of its old ones.

        Args:
            source: Its id.
            entry: Of the catalog; one that is withdrawn is no source any more.
            owner: Who alone publishes for it; anybody who may publish when empty.

        Raises:
            PublicationError: It is somebody else's.
        """
        self.check_owner(source, owner)
        self._sources[source] = entry
        self._save(f"source/{source}", entry)
        if owner and self._owners.get(source) != owner:
            self._owners[source] = owner
            self._save(f"owner/{source}", owner)
        self._have_stream()
        self._spread([self.announcements.say(source, entry)])
        self._is_stale = True
        self._review()

    def _have_stream(self) -> None:
        """Who is the root of something has a stream, whose number no other life gave one."""
        if not self._stream_number:
            self._stream_number = max(1, self._incarnation)
            self._save("stream", self._stream_number)

    def check_owner(self, source: str, sender: str) -> None:
        """The message pre-processor's check of the id that a message carries.

        Raises:
            PublicationError: It is somebody else's, which is not told apart from none.

        Source: 001, section 5 (Figure 10): the root validates the source id, nobody else does.
        """
        if sender and self._owners.get(source, sender) != sender:
            raise PublicationError("publication.source", source=source, retry="no")

    def publish(
        self,
        source: str,
        message: str,
        body: bytes,
        *,
        format: str = "",
        trace: bool = False,
        numbered: Numbered | None = None,
        sender: str = "",
    ) -> int:
        """Take a message of a source; `finish` sends it.

        Returns:
            Its position: it is on disk when what `finish` leaves is told. 0 for one that was taken
            before, by its publisher's number.

        Raises:
            PublicationError: As `check_publication`.
        """
        if self.has_had(numbered):
            self.check_publication(source, (), sender)
            return 0
        self.check_publication(source, (len(body),), sender)
        stream, entry = self.streams[self.name], self._sources[source]
        position = max(stream.at, self._log_start) + 1
        made = Published(position, source, message, entry.dictionary_version, format, trace, body)
        stream.publish(made)
        self._publishers.took(numbered)
        self._taken.append(Logged(made, numbered))
        self._moving.add(self.name)
        return position

    def has_had(self, numbered: Numbered | None) -> bool:
        """Whether a message was taken before, as far as its publisher numbers them."""
        return self._safeguards.numbers and self._publishers.has_had(numbered)

    def check_publication(self, source: str, sizes: Sequence[int], sender: str = "") -> None:
        """Refuses messages of a source that are not to be taken.

        Args:
            source: Of one of them at least.
            sizes: Bytes of each.
            sender: Who publishes; see `check_owner`.

        Raises:
            PublicationError: The source is not known here or is not the sender's, one is too
                long, or there is no room (`retry`).
        """
        self.check_owner(source, sender)
        stream = self.streams.get(self.name)
        entry = self._sources.get(source)
        if entry is None or entry.withdrawn or stream is None or self._leaving:
            raise PublicationError("publication.source", source=source, retry="no")
        if not self._joined and self.announcements.members != [self.name]:
            raise PublicationError("publication.joining", retry="yes")
        settings = self._settings
        longest = max(sizes, default=0)
        if longest > settings.message_bytes_max:
            raise PublicationError(
                "publication.too_long",
                given=longest,
                maximum=settings.message_bytes_max,
                retry="no",
            )
        is_long = stream.held_bytes + sum(sizes) > settings.log_bytes_max
        if sizes and (is_long or len(stream.held) + len(sizes) > settings.log_messages_max):
            members = self.announcements.members
            slowest = min(members, key=lambda name: (stream.positions.get(name, 0), name))
            raise PublicationError(
                "publication.log",
                held=len(stream.held),
                maximum=settings.log_messages_max,
                bytes=stream.held_bytes,
                bytes_maximum=settings.log_bytes_max,
                slowest=slowest,
                retry="yes",
            )

    # What an operator asks for.

    def leave(self) -> None:
        """Go for good, as soon as others have had what this broker is the root of."""
        self._leaving = True
        self._save("leaving", True)
        for subscription in self.subscriptions.names():
            self.unsubscribe(subscription)
        self._review()

    def expel(self, broker: str) -> None:
        """Take a broker out of the network that will not come back: nothing is kept for it."""
        self._spread([self.announcements.expel(broker)])
        self._is_stale = True
        self._review()

    def add_link(self, peer: str, cost: int) -> None:
        """There may be a link with a neighbour that was not known before."""
        self._links[peer] = cost

    # Within.

    def _hear_announcements(self, peer: str, said: Sequence[Announcement]) -> None:
        news = self.announcements.hear(peer, said)
        if not news:
            return
        self._spread(news, but=peer)
        own = [one for one in news if one.owner == self.name]
        if own:
            self._send(peer, Announce(tuple(own)))
        if self.announcements.term(self.name) > self._term:
            self._lapse()
        self._is_stale = True
        self._review()

    def _lapse(self) -> None:
        """Messages were not kept for this broker: its subscribers are told, and begin again."""
        self._known_by = {self.name}
        self._term = max(self._term, self.announcements.term(self.name))
        self._save("term", self._term)
        self._save("lapsed", True)
        for subscription in self.subscriptions.lapse():
            self.given.append(Deliver(subscription.subscriber, Lapsed(subscription.name)))
            self._await(subscription)
        self.given.append(Forget("lapsed"))

    def _spread(self, said: Iterable[Announcement | None], but: str = "") -> None:
        news = tuple(one for one in said if one is not None)
        if news:
            for peer in sorted(self._sessions):
                if peer != but:
                    self._send(peer, Announce(news))

    def _review(self) -> None:
        """Bring presence, trees, tables and streams up to what is known now."""
        members = self.announcements.members
        if members != self._saved_members:
            self._saved_members = members
            self._save("members", members)
        stream = self.streams.get(self.name)
        left = self._leaving and (stream is None or not stream.held)
        presence = Presence(
            tuple((peer, self._links.get(peer, 1)) for peer in sorted(self._sessions)),
            self._stream_number,
            self.announcements.roster(),
            self._term,
            left,
        )
        said = self.announcements.say("", presence)
        self._spread([said])
        if said is not None or self._is_stale:
            self._is_stale = False
            self._update_streams()
            self._update_trees()
        roster = self.announcements.roster()
        for name, one in self.announcements.presences().items():
            if one.roster == roster:
                self._known_by.add(name)
        self._acknowledge()

    def _update_streams(self) -> None:
        roots = {
            name: one.stream
            for name, one in self.announcements.presences().items()
            if one.stream and not one.left  # one that is expelled may come back with its stream
        }
        for root in [name for name, one in self.streams.items() if roots.get(name) != one.number]:
            self._retire(self.streams.pop(root))
            self._leads.pop(root, None)
        for root, number in roots.items():
            if root not in self.streams:
                self.streams[root] = self._stream(root, number)
        if self._settings.trees == "broadcast":
            for root in roots:  # the plane of one that is gone stays: it has no links
                if root not in self.planes:
                    self._add_plane(root)

    def _retire(self, stream: Stream) -> None:
        """A stream is gone, and may be back: its subscribers are given now what waits of it."""
        stream.take_own()
        waiting = [one for one in self._local if one.stream is stream]
        self._local = deque(one for one in self._local if one.stream is not stream)
        self._work(waiting)

    def _stream(self, root: str, number: int) -> Stream:
        tree = self._tree_of(root)
        saved, cursor = self._saved_cursors.get(root, (0, 0))
        parts = Parts(
            root,
            number,
            self._settings.part_bytes,
            self._send,
            self._may_begin,
            partial(self._decide, root),
            self._safeguards.drop,
        )
        return Stream(
            root,
            number,
            root == self.name,
            cursor if saved == number else 0,
            self._send,
            self._has_room,
            partial(self._is_active, tree),
            partial(self._route, tree),
            partial(self._cut, tree),
            partial(self._considered, tree),
            partial(self._is_cutting, tree),
            self._deliver,
            parts,
            self._settings.held_messages_max,
            self._settings.held_bytes_max,
            self._safeguards,
            at=self._log_start if root == self.name else 0,
        )

    def _add_plane(self, tree: str) -> None:
        plane = QueryPlane(
            tree,
            self._content.interests(),
            self._send,
            partial(self._settled, tree),
            partial(self._ask_again, tree),
            self._safeguards,
        )
        self._want_changes()  # of these it is told with all the rest
        self.planes[tree] = plane
        plane.want(self.subscriptions.entries(), (), self._ticket)

    def _is_active(self, tree: str, peer: str) -> bool:
        return tree in self.planes and self.planes[tree].is_active(peer)

    def _route(self, tree: str, bodies: Sequence[bytes]) -> Sequence[Set[str]]:
        return self.planes[tree].route(bodies)

    def _cut(
        self, tree: str, bodies: Sequence[bytes], wanted: Mapping[str, Sequence[int]]
    ) -> Mapping[str, Sequence[bytes | None]]:
        return self.planes[tree].cut(bodies, wanted)

    def _considered(self, tree: str, origin: str, upstream: str | None, number: int | None) -> int:
        return self.planes[tree].considered(origin, upstream, number)

    def _is_cutting(self, tree: str, peer: str) -> bool:
        return self.planes[tree].is_cutting(peer)

    def _ask_again(self, tree: str) -> None:
        for stream in self._streams_of(tree):
            if not stream.is_root:
                stream.rewind()

    def _decide(self, root: str, size: int) -> Decisions | None:
        """Decisions for a message of a root that is arriving, if they are of use to anybody."""
        if not (self._settings.cut_through and self.streams[root].followers):
            return None
        return self.planes[self._tree_of(root)].decisions(size)

    def _may_begin(self, peer: str) -> bool:
        under_way = [one for one in self.streams.values() if one.parts.is_sending(peer)]
        return len(under_way) < SENDING_MAX

    def _tree_of(self, root: str) -> str:
        return SHARED if self._settings.trees == "spanning" else root

    def _streams_of(self, tree: str) -> list[Stream]:
        return [one for root, one in sorted(self.streams.items()) if self._tree_of(root) == tree]

    def _update_trees(self) -> None:
        links = {
            name: dict(one.links)
            for name, one in self.announcements.presences().items()
            if not self.announcements.has_left(name)
        }
        for tree, plane in sorted(self.planes.items()):
            edges = self._edges(tree, links)
            way = towards(edges, self.name)
            linked = [peer for peer in neighbours(edges, self.name) if peer in self._sessions]
            told = {peer: not tree or way.get(tree) == peer for peer in linked}
            for peer in plane.attach(told):
                self._activate(tree, peer)
            for stream in self._streams_of(tree):
                lead = way.get(stream.root)
                lead = lead if lead in linked else None
                root = stream.root
                if not stream.is_root and (root not in self._leads or self._leads[root] != lead):
                    self._leads[root] = lead
                    stream.lead(lead)
                    self._moving.add(root)

    def _edges(self, tree: str, links: Links) -> list[Edge]:
        if tree == SHARED:
            return spanning_tree(links)
        return broadcast_tree(links, tree) if tree in self.streams else []

    def _activate(self, tree: str, peer: str) -> None:
        for stream in self._streams_of(tree):
            stream.activate(peer)
            self._moving.add(stream.root)

    def _hear_query(self, peer: str, plane: QueryPlane, said: Interest | Settled | Detach) -> None:
        match said:
            case Interest() if plane.hear_interest(peer, said):
                self._activate(said.tree, peer)
            case Settled():
                plane.hear_settled(peer, said)
            case Detach():
                plane.hear_detach(peer)
                for stream in self._streams_of(said.tree):
                    stream.forget(peer)

    def _hear_stream(
        self, peer: str, stream: Stream, said: Follow | Forward | InParts | Passed
    ) -> None:
        self._moving.add(stream.root)
        match said:
            case Follow():
                stream.hear_follow(peer, said)
            case Forward():
                self.planes[self._tree_of(stream.root)].check_considered(peer, said.messages)
                stream.hear_forward(peer, said)
            case MessageBegin() | MessagePart() | MessageDropped():
                if isinstance(said, MessageBegin):
                    plane = self.planes[self._tree_of(stream.root)]
                    plane.check_considered(peer, (said.message,))
                    self._check_parts(peer, stream)
                stream.hear_part(peer, said)
            case Passed():
                stream.hear_passed(peer, said)

    def _check_parts(self, peer: str, stream: Stream) -> None:
        """A neighbour begins no more messages than it may.

        Raises:
            PeerError: It does (`overlay.parts`).
        """
        others = [one for one in self.streams.values() if one is not stream]
        coming = sum(one.upstream == peer and one.parts.arriving is not None for one in others)
        if coming >= COMING_MAX:
            raise PeerError("overlay.parts", peer=peer, maximum=COMING_MAX)

    def _keep_taken(self) -> None:
        """What this root has taken since the last time is kept, together, before it is sent."""
        taken, self._taken = self._taken, []
        if taken and self._safeguards.save_first:
            first, last = taken[0].message.position, taken[-1].message.position
            self._save(f"log/{first:016x}", taken)
            self._log.append((first, last))

    def _trim(self, stream: Stream) -> None:
        """What all members have had leaves the log."""
        members = self.announcements.members
        if self._safeguards.retain:
            position = min(stream.positions.get(name, 0) for name in members)
        else:
            position = stream.at
        if position <= self._log_start:
            return
        self._log_start = position
        self.effects += self._publishers.keep()
        self._save("log", position)
        stream.drop_until(position)
        while self._log and self._log[0][1] <= position:
            self.effects.append(Forget(f"log/{self._log.popleft()[0]:016x}"))
        if self._leaving:
            self._review()

    def _deliver(self, stream: Stream, messages: Sequence[Published]) -> None:
        """Local queries have the lowest priority: what neighbours are to be sent comes first."""
        if not messages and stream.cursor == stream.taken:
            stream.passed(stream.at)  # nothing of it waits
            return
        self._local.append(_Waiting(stream, messages, stream.at))
        self._local_messages += len(messages)

    def _work(self, taken: Sequence[_Waiting]) -> None:
        """Run local queries on messages; what they give is left with the carrier, then cursors."""
        work = [(one.stream, message) for one in taken for message in one.messages]
        self._local_messages -= len(work)
        given = self._answer(work) if work else set()
        for one in taken:
            one.stream.passed(one.upto)
        for root, stream in {one.stream.root: one.stream for one in taken}.items():
            if root in given:  # with the deliveries: else they would be made again after a crash
                self.given.append(self._cursor(root, stream.number, stream.cursor))

    def _answer(self, work: Sequence[tuple[Stream, Published]]) -> set[str]:
        """Leaves what messages give with the carrier. Returns the roots of those that give any."""
        roots: set[str] = set()
        answered = self.subscriptions.answers([one.body for _, one in work])
        for (stream, one), answers in zip(work, answered, strict=True):
            for subscription, results in answers:
                if not self._is_regarded(subscription, one):
                    continue
                name, version = subscription.name, subscription.version
                at = (name, version, stream.root, stream.number, one.position, one.message)
                if isinstance(results, Verdict):
                    given: Delivery | Undecided = Undecided(*at, results.code, results.reason)
                else:
                    given = Delivery(*at, results)
                self.given.append(Deliver(subscription.subscriber, given))
                roots.add(stream.root)
        return roots

    def _is_regarded(self, subscription: Subscription, one: Published) -> bool:
        """Whether a message, if it was cut, was cut with regard to a subscription."""
        if one.considers is None or not self._safeguards.consider:
            return True
        return one.considers >= self.subscriptions.ticket(subscription.name)

    def _await(self, subscription: Subscription) -> None:
        self._awaited.append(subscription)

    def _want(self, added: Iterable[str], removed: Iterable[str]) -> None:
        self._wanted[0].extend(added)
        self._wanted[1].extend(removed)

    def _want_changes(self) -> None:
        """Tells what subscribers want by now; they are in force when that is settled."""
        awaited, (added, removed) = self._awaited, self._wanted
        if not (awaited or added or removed):
            return
        self._awaited, self._wanted = [], ([], [])
        ticket = 0
        if awaited:
            ticket = self._ticket = self._ticket + 1
            self._tickets[ticket] = (awaited, set(self.planes))
        for _, plane in sorted(self.planes.items()):
            plane.want(added, removed, ticket)
        self._acknowledge()

    def _settled(self, tree: str, ticket: int) -> None:
        if ticket in self._tickets:
            self._tickets[ticket][1].discard(tree)
            self._acknowledge()

    def _acknowledge(self) -> None:
        """Subscriptions are in force that everybody knows, once everybody knows this broker."""
        unknown = set(self.announcements.members) - self._known_by
        if unknown and self._safeguards.known:
            return
        for ticket, (awaited, planes) in list(self._tickets.items()):
            if planes & self.planes.keys():
                continue
            del self._tickets[ticket]
            for one in filter(self.subscriptions.acknowledge, awaited):
                told = InForce(one.name, one.version, ticket)
                self.given.append(Deliver(one.subscriber, told))

    def _cursor(self, root: str, number: int, position: int) -> Save:
        """Keeps how far this broker's own subscribers have had a stream."""
        self._saved_cursors[root] = (number, position)
        return Save(f"cursor/{root}", msgspec.msgpack.encode((number, position)))

    def _restore(self, saved: Subscription) -> None:
        """A subscription of a former life; one that cannot be answered any more ends alone."""
        try:
            self.subscriptions.restore(saved)
        except PathcastError as error:
            self.effects.append(Forget(f"subscription/{saved.name}"))
            told = Refused(saved.name, error.code, error.message)
            self.given.append(Deliver(OPERATOR, told))

    def _save(self, key: str, value: object) -> None:
        self.effects.append(Save(key, msgspec.msgpack.encode(value)))

    def _load(self, disk: Mapping[str, bytes]) -> None:
        self._log_start = _unpacked(disk, "log", int, 0)
        log: list[Logged] = []
        for key in sorted(disk):
            room, _, name = key.partition("/")
            if room == "subscription":
                self._restore(msgspec.msgpack.decode(disk[key], type=Subscription))
            elif room == "cursor":
                cursor = msgspec.msgpack.decode(disk[key], type=tuple[int, int])
                self._saved_cursors[name] = cursor
            elif room == "source":
                self._sources[name] = msgspec.msgpack.decode(disk[key], type=Source)
                self.announcements.say(name, self._sources[name])
            elif room == "owner":
                self._owners[name] = msgspec.msgpack.decode(disk[key], type=str)
            elif room == "log" and name:
                kept = msgspec.msgpack.decode(disk[key], type=list[Logged])
                self._log.append((kept[0].message.position, kept[-1].message.position))
                log += kept
        self._publishers.restore(disk, log)
        if self._sources:
            self._have_stream()
        if self._stream_number:
            stream = self.streams[self.name] = self._stream(self.name, self._stream_number)
            stream.hold([one.message for one in log if one.message.position > self._log_start])
            stream.at = stream.held[-1].position if stream.held else self._log_start


def _unpacked(disk: Mapping[str, bytes], key: str, kind: type[_T], default: _T) -> _T:
    return msgspec.msgpack.decode(disk[key], type=kind) if key in disk else default

"""A broker's planes together: control, catalog, query and data (Figure 10), above reliable links.

It is told of sessions that begin and end, of payloads that came over them (in order, none twice)
and of time; it changes its state and leaves effects and payloads with whoever carries it. Frames,
sessions and resending are `pathcast.overlay.broker_node`'s; what profiles and messages say is
`pathcast.overlay.content`'s.

This module is the control plane: who is there, which trees the links make, and which planes and
streams follow from that. What it takes of publishers as a root is `root`'s, subscriptions are
`host`'s, messages that wait for them `local_queries`', tables `query_plane`'s and streams
`data_plane`'s.

What it keeps on disk, beside what those keep: the members it knows, when its last life began, and
whether subscribers are still to be told of a loss. A copy of a disk says that it was restored.

Source: 001, sections 3.2, 4.2.1 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import msgspec

from pathcast.errors import PeerRefusedError, RegistrationError
from pathcast.overlay.announcements import Announcements
from pathcast.overlay.broker_settings import DEFAULT, ProtocolSettings
from pathcast.overlay.content import Content, DeliveryProfile
from pathcast.overlay.data_plane import SHARED, Arrival, DataPlane
from pathcast.overlay.deliveries import OPERATOR, NeighbourRefused
from pathcast.overlay.host import HostSubscriptions
from pathcast.overlay.lives import do_agree
from pathcast.overlay.local_queries import LocalQueries
from pathcast.overlay.messages import (
    Announce,
    Announcement,
    Detach,
    FollowStream,
    Forward,
    Interest,
    MessageBegin,
    MessageDropped,
    MessagePart,
    Payload,
    PositionPassed,
    Presence,
    Settled,
    SourceEntry,
    StreamMessage,
    Trimmed,
)
from pathcast.overlay.numbers_of_life import NumbersOfLife
from pathcast.overlay.outcome import EventEffects
from pathcast.overlay.publishers import Numbered, PublishRequest
from pathcast.overlay.query_plane import QueryPlane
from pathcast.overlay.retention import Lag
from pathcast.overlay.root import StreamRoot
from pathcast.overlay.streams import Stream
from pathcast.overlay.trees import Edge, Links, broadcast_tree, neighbours, spanning_tree, towards
from pathcast.protocol import Forget


class BrokerState:
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

    Attributes:
        outcome: What events leave with the carrier.
        settings: What an operator decides.
        announcements: Who is there, and what of.
        planes: The query plane of each tree.
        streams: Of each root.
        subscriptions: Of this broker's own subscribers.
        snapshots: The snapshot of their profiles.
        local: Their queries, and the messages that wait for these.
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
        settings: ProtocolSettings = DEFAULT,
    ) -> None:
        decode = msgspec.msgpack.decode
        self.name = name
        self._incarnation = incarnation
        self._links = dict(links)
        self._content = content
        self._send = send
        self.settings = settings
        self._saved_members = decode(disk["members"], type=list[str]) if "members" in disk else []
        self._joined = bool(self._saved_members)
        self._term = decode(disk["term"], type=int) if "term" in disk else 0
        self._is_copy = "restored" in disk
        self._has_lapsed = "lapsed" in disk or self._is_copy
        self._began = decode(disk["began"], type=int) if "began" in disk else 0
        self._sessions: set[str] = set()
        self._is_stale = True
        self.outcome = outcome = EventEffects()
        self.announcements = Announcements(
            name, incarnation, {*members, *links, *self._saved_members}
        )
        self.planes: dict[str, QueryPlane] = {}
        self._host = HostSubscriptions(
            name,
            NumbersOfLife(incarnation),
            content.profiles(),
            self.planes,
            self.announcements,
            disk,
            outcome,
        )
        self.subscriptions = self._host.subscriptions
        self.snapshots = self._host.snapshots
        self.local = LocalQueries(self.subscriptions, disk, outcome)
        self._data = DataPlane(name, self.planes, self.local, self._miss, send, has_room, settings)
        self.streams = self._data.streams
        self._root = StreamRoot(incarnation, disk, outcome, settings)
        for source, entry in self._root.sources.items():
            self.announcements.say(source, entry)

    # Events.

    def start(self, now: float) -> None:
        """Begin, from what was saved."""
        self.time_is(now)
        # Two lives that begin in one millisecond rarely give their streams the same number.
        clock = int(now * 1000) << 10 | self._incarnation & 1023
        self._began = max(clock, self._began + 1)
        self.outcome.save("began", self._began)
        self.snapshots.follow(self._began)
        log = self._root.start(self._began)
        if self._root.stream_number:
            self._note_other_stream(self.name, self._root.stream_number)
            self._open_own(log)
        if self.settings.trees == "spanning":
            self._add_plane(SHARED)
        self._review()
        if (own := self._data.own) is not None:
            own.take_own()
        if self._root.is_leaving:
            self.leave()
        elif self._has_lapsed:
            self._lapse()
        else:
            self._host.await_all()
        if self._is_copy:
            self.outcome.given.append(Forget("restored"))

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
        self._data.session_ended(peer)
        self._is_stale = True
        self._review()

    def hear(self, peer: str, payload: Payload) -> None:
        """A neighbour says something in the present session.

        Raises:
            PeerError: What it says cannot be.
        """
        if isinstance(payload, Announce):
            self._hear_announcements(peer, payload.announcements)
        if self.is_elder:
            return  # all else is between others and the process that began later
        match payload:
            case Interest() | Settled() | Detach():
                plane = self.planes.get(payload.tree)
                if plane is not None:
                    self._hear_query(peer, plane, payload)
            case (
                FollowStream()
                | Forward()
                | MessageBegin()
                | MessagePart()
                | MessageDropped()
                | Trimmed()
                | PositionPassed()
            ):
                self._data.hear(peer, payload)
                if self._data.own is not None and self._data.own.is_diverged:
                    self._begin_stream()

    @property
    def is_elder(self) -> bool:
        """Whether another process of this name began later: this one takes nothing any more."""
        return self.announcements.successor is not None

    def check_is_sole(self) -> None:
        """Refuses what is asked of the elder of two processes.

        Raises:
            PeerRefusedError: It is (`peer.twin`).
        """
        if self.is_elder:
            raise PeerRefusedError("peer.twin", name=self.name)

    def tick(self, now: float) -> None:
        """Some time has passed."""
        self.time_is(now)
        if self.is_elder:
            return
        for _, stream in sorted(self.streams.items()):
            stream.tick()
            self.local.keep_cursor(stream)
            stream.note(self.name, stream.cursor, stream.life_at(stream.cursor))
            stream.report()
            if stream.is_root:
                trimmed = self._root.trim(stream, self.announcements.members)
                if trimmed and self._root.is_leaving:
                    self._review()

    def time_is(self, now: float) -> None:
        """Set the time at which what is taken from now on arrives."""
        self._root.time_is(now)

    def follow_anew(self) -> dict[str, tuple[int, int]]:
        """Ask for all streams again: what comes is judged by the tables that brokers have now.

        Returns:
            Root broker -> number of its stream, and the position after which everything of it that
            a subscription wants which is in force now is delivered here.
        """
        for tree in self.planes:
            self._data.ask_again(tree)
        own = {root: (one.number, one.taken) for root, one in self.streams.items()}
        return {**self.local.positions(), **own}

    def has_had(self, positions: Mapping[str, tuple[int, int]]) -> bool:
        """Whether the subscribers here have had all up to these positions that still comes.

        Args:
            positions: As `follow_anew` of another broker returns them.
        """
        own = {root: (one.number, one.cursor) for root, one in self.streams.items()}
        had = {**self.local.positions(), **own}
        return all(
            had.get(root, (0, 0)) >= (number, position)
            for root, (number, position) in positions.items()
            if position and not self.announcements.has_left(root)
        )

    def rewind(self) -> bool:
        """Go back upstream for those that follow anew. Returns whether any did."""
        return self._data.rewind()

    def finish(self) -> None:
        """Tell and send the changes that one event, or several together, made.

        What came waits for local queries from then on (`local`).
        """
        self._host.tell()
        self._root.keep()
        self._data.advance()

    # What a host is asked for.

    def subscribe(
        self,
        subscription: str,
        subscriber: str,
        profile: DeliveryProfile,
        version: int | None = None,
    ) -> int:
        """Register a profile, or put it in the place of one with the same id.

        `finish` tells others. `InForce` is delivered to the subscriber when every message that is
        published from then on, at any broker, will be delivered.

        Args:
            subscription: Its id.
            subscriber: Who gets its deliveries.
            profile: What it asks for.
            version: Of the profile, where something else than this broker gives them.

        Returns:
            The version, which names this life of the id: `InForce` and deliveries say it.

        Raises:
            RegistrationError: There are as many as this broker takes (`registration.full`), or it
                leaves the network (`registration.left`): nothing would come.
            PeerRefusedError: Another process has this broker's name.
            PathcastError: It is no profile.
        """
        self.check_is_sole()
        self._check_stays("subscription")
        most = self.settings.subscriptions_max
        if len(self.subscriptions) >= most and self.subscriptions.get(subscription) is None:
            raise RegistrationError("registration.full", name=self.name, maximum=most)
        return self._host.subscribe(subscription, subscriber, profile, version)

    def unsubscribe(self, subscription: str) -> None:
        """Take a profile out; nothing is delivered for it from now on.

        Raises:
            UnknownQueryError: There is none of this id.
            PeerRefusedError: Another process has this broker's name.
        """
        self.check_is_sole()
        self._host.unsubscribe(subscription)

    # What a root is asked for.

    def register_source(self, source: str, entry: SourceEntry, owner: str = "") -> None:
        """Take a data source, or put a new schema and dictionary in the place of its old ones.

        Args:
            source: Its id.
            entry: Of the catalog; one that is withdrawn is no source any more.
            owner: Who alone publishes for it; anybody who may publish when empty.

        Raises:
            RegistrationError: This broker leaves the network (`registration.left`).
            PublicationError: It is somebody else's, or one more than others take.
            PeerRefusedError: Another process has this broker's name.
        """
        self.check_is_sole()
        self._check_stays("source")
        self.announcements.check_room(source, entry)
        self._root.register(source, entry, owner)
        self._spread([self.announcements.say(source, entry)])
        self._is_stale = True
        self._review()

    @property
    def own_sources(self) -> Mapping[str, SourceEntry]:
        """The sources that this broker is the root of; it changes with them."""
        return MappingProxyType(self._root.sources)

    def _check_stays(self, asked: str) -> None:
        if self._root.is_leaving:
            raise RegistrationError("registration.left", name=self.name, asked=asked)

    @property
    def arrivals(self) -> Sequence[Arrival]:
        """The latest messages with `trace` in their headers, as they came here."""
        return tuple(self._data.arrivals)

    def publish(
        self,
        source: str,
        message: str,
        body: bytes,
        *,
        trace: bool = False,
        numbered: Numbered | None = None,
        time: int | None = None,
        sender: str = "",
    ) -> int:
        """Take a message of a source; see `publish_all`. Returns its position, or 0.

        Raises:
            PublicationError: See there.
        """
        one = PublishRequest(source, message, body, numbered, trace, time)
        return self.publish_all([one], sender)[0]

    def publish_all(self, publications: Sequence[PublishRequest], sender: str = "") -> list[int]:
        """Take messages, all or none; `finish` sends them.

        Args:
            publications: The messages, in their order.
            sender: Who publishes; anybody when empty.

        Returns:
            Their positions: they are on disk when what `finish` leaves is told. 0 for one that was
            taken before, by its publisher's number.

        Raises:
            PublicationError: A source is not known here or is not the sender's, a message is too
                long, or there is no room for all (`retry`). None is taken.
            PeerRefusedError: Another process has this broker's name.
        """
        self.check_is_sole()
        has_joined = self._joined or self._members() == [self.name]
        positions = self._root.publish(
            self._data.own, self._members, has_joined, publications, sender
        )
        self._data.published()
        return positions

    def check_source(self, source: str, sender: str) -> None:
        """Refuses messages of a source that is not known here, or not the sender's.

        Raises:
            PublicationError: It is such a source.
        """
        self._root.check_source(self._data.own, source, sender)

    def _members(self) -> Sequence[str]:
        return self.announcements.members

    @property
    def lags(self) -> list[Lag]:
        """Members that have not had all of this broker's log, those furthest behind first."""
        own = self._data.own
        return [] if own is None else self._root.lags(own, self._members())

    @property
    def taken_bytes(self) -> int:
        """Bytes of the messages that were published here in this life."""
        return self._root.taken_bytes

    # What an operator asks for.

    def leave(self) -> None:
        """Go for good, as soon as others have had what this broker is the root of."""
        self._root.leave()
        for subscription in self.subscriptions.names():
            self.unsubscribe(subscription)
        self._review()

    def expel(self, broker: str) -> None:
        """Take a broker out of the network that will not come back: nothing is kept for it."""
        self._spread([self.announcements.expel(broker)])
        self._is_stale = True
        self._review()

    def set_link(self, peer: str, cost: int) -> None:
        """There may be a link with a neighbour, which costs so much."""
        if self._links.get(peer) != cost:
            self._links[peer] = cost
            self._review()

    # Within.

    def _hear_announcements(self, peer: str, said: Sequence[Announcement]) -> None:
        was_elder = self.is_elder
        if self._is_of_elder(peer, said):
            self.outcome.deliver(OPERATOR, NeighbourRefused(peer, *_twin(peer)))
        news = self.announcements.hear(peer, said)
        if news:
            self._spread(news, but=peer)
            own = [one for one in news if one.owner == self.name]
            if own:
                self._send(peer, Announce(tuple(own)))
        if self.is_elder:
            if not was_elder:
                self._give_way()
        elif news:
            if 0 < self._root.stream_number <= self.announcements.ended_streams(self.name):
                self._begin_stream()
            if self.announcements.term(self.name) > self._term:
                self._lapse()
            self._is_stale = True
            self._review()

    def _give_way(self) -> None:
        """Another process of this name began later: this one leaves the network to it.

        What only this one has is lost, so all who follow the other one are to be told.
        """
        theirs, own = self.announcements.successor, self._data.own
        assert theirs is not None, "it has just spoken"
        self.outcome.deliver(OPERATOR, NeighbourRefused(self.name, *_twin(self.name)))
        if own is not None and not do_agree(own.lives, theirs.lives, own.at):
            last = max(own.number, theirs.stream)
            self._spread([self.announcements.end_streams(self.name, last)])
        for root in list(self.streams):
            self._data.close(root)
        for plane in self.planes.values():
            for peer in sorted(self._sessions):
                plane.session_ended(peer)

    def _is_of_elder(self, peer: str, said: Sequence[Announcement]) -> bool:
        """Whether a neighbour speaks of itself, and another process of its name began later."""
        return any(one.owner == peer and self.announcements.is_of_elder(one) for one in said)

    def _lapse(self) -> None:
        """Messages were not kept for this broker."""
        self._term = max(self._term, self.announcements.term(self.name))
        self.outcome.save("term", self._term)
        self._host.forget_members()
        self._lose()

    def _lose(self) -> None:
        """Messages may be lost to subscribers here; they are told, also if it stops meanwhile."""
        self.outcome.save("lapsed", True)
        self._host.lapse()
        self.outcome.given.append(Forget("lapsed"))

    def _miss(self, stream: Stream, first: int, last: int, given_up: int) -> None:
        """A root does not keep these positions any more, which this broker has not had."""
        self._host.miss(stream.root, stream.number, first, last, given_up)

    # The stream of this broker.

    def _open_own(self, log: Sequence[StreamMessage]) -> None:
        root = self._root
        stream = self._data.open(self.name, root.stream_number, root.lives, root.log_start)
        stream.hold(log)
        stream.fresh = list(log)
        stream.drop_until(root.log_start, root.given_up)
        stream.at = log[-1].position if log else root.log_start

    def _begin_stream(self) -> None:
        """Followers have had what is not known here: all are told, by another stream."""
        own = self._data.own
        assert own is not None, "there is a stream"
        self._root.begin_stream(self.announcements.ended_streams(self.name))
        log = list(own.held)
        self._data.close(self.name)
        self._note_other_stream(self.name, self._root.stream_number)
        self._open_own(log)
        self._data.published()
        self._is_stale = True
        self._review()

    def _is_latest(self, root: str, number: int) -> bool:
        """Whether subscribers have followed no later stream of a root, which is told otherwise."""
        last = self.local.number(root) or 0
        if number < last:
            self._spread([self.announcements.end_streams(root, last)])
        return number >= last

    def _note_other_stream(self, root: str, number: int) -> None:
        """Subscribers are told if they have followed a stream of this root that is over.

        A root without a stream has lost all that it had; they are told again if another process of
        its name had taken messages since, and says that its stream is over too.
        """
        number = number or -self.announcements.ended_streams(root)
        followed = self.local.number(root)
        if followed is None or followed == number or (followed <= 0 < number):
            return
        self._lose()
        if number <= 0:
            self.local.begin(root, number, ())

    def _spread(self, said: Iterable[Announcement | None], but: str = "") -> None:
        news = tuple(one for one in said if one is not None)
        if news:
            for peer in sorted(self._sessions):
                if peer != but:
                    self._send(peer, Announce(news))

    def _review(self) -> None:
        """Bring presence, trees, tables and streams up to what is known now."""
        if self.is_elder:
            return
        members = self.announcements.members
        if members != self._saved_members:
            self._saved_members = members
            self.outcome.save("members", members)
        own = self._data.own
        presence = Presence(
            tuple((peer, self._links.get(peer, 1)) for peer in sorted(self._sessions)),
            self._root.stream_number,
            self.announcements.roster(),
            self._term,
            self._root.is_leaving and (own is None or not own.held),
            self._began,
            self._root.lives,
        )
        said = self.announcements.say("", presence)
        self._spread([said])
        if said is not None or self._is_stale:
            self._is_stale = False
            self._update_streams()
            self._update_trees()
        self._host.review()

    def _update_streams(self) -> None:
        roots = {
            name: one
            for name, one in self.announcements.presences().items()
            if one.stream and not one.left  # one that is expelled may come back with its stream
            if self._is_latest(name, one.stream)
        }
        for root, number in [(name, one.number) for name, one in self.streams.items()]:
            if root not in roots or roots[root].stream != number:
                self._data.close(root)
        for root, one in self.announcements.presences().items():
            if not one.left and (not one.stream or root in roots):
                self._note_other_stream(root, one.stream)
        for root, one in roots.items():
            if root not in self.streams:
                self._data.open(root, one.stream, one.lives)
            elif root != self.name:
                self.streams[root].adopt(one.lives)
        if self.settings.trees == "broadcast":
            for root in roots:  # the plane of one that is gone stays: it has no links
                if root not in self.planes:
                    self._add_plane(root)

    def _add_plane(self, tree: str) -> None:
        plane = QueryPlane(
            tree,
            self._content.interests(),
            self._send,
            partial(self._host.settled, tree),
            partial(self._data.ask_again, tree),
        )
        self._host.tell()  # of these it is told with all the rest
        self.planes[tree] = plane
        self._host.tell_all(plane)

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
                self._data.activate(tree, peer)
            for stream in self._data.of_tree(tree):
                lead = way.get(stream.root)
                self._data.lead(stream, lead if lead in linked else None)

    def _edges(self, tree: str, links: Links) -> list[Edge]:
        if tree == SHARED:
            return spanning_tree(links)
        return broadcast_tree(links, tree) if tree in self.streams else []

    def _hear_query(self, peer: str, plane: QueryPlane, said: Interest | Settled | Detach) -> None:
        match said:
            case Interest() if plane.hear_interest(peer, said):
                self._data.activate(said.tree, peer)
            case Settled():
                plane.hear_settled(peer, said)
            case Detach():
                plane.hear_detach(peer)
                self._data.detach(said.tree, peer)


def _twin(name: str) -> tuple[str, str]:
    error = PeerRefusedError("peer.twin", name=name)
    return error.code, error.message

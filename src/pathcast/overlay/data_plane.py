"""The data plane of a broker: the streams of all roots, over the trees that they take.

Streams that have nothing to send, for want of messages or of room, cost nothing: only those that
something has happened to, the ones that are *moving*, are looked at when an event ends.

Source: 001, section 4.2 and 5 (Figure 10, data plane).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Final, NamedTuple

from pathcast.errors import PeerError
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.content import RoutingDecision, Sent
from pathcast.overlay.lives import Lives
from pathcast.overlay.local_queries import LocalQueries
from pathcast.overlay.messages import (
    FollowStream,
    Forward,
    InParts,
    MessageBegin,
    MessageDropped,
    MessagePart,
    Payload,
    PositionPassed,
    StreamMessage,
    Trimmed,
)
from pathcast.overlay.parts import COMING_MAX, SENDING_MAX, Parts
from pathcast.overlay.query_plane import QueryPlane
from pathcast.overlay.streams import Stream

SHARED = ""
"""The one spanning tree."""


ARRIVALS_MAX: Final = 1_000


class Arrival(NamedTuple):
    """A message that was to be traced, as a broker has it.

    Attributes:
        message: Its id.
        sender: The neighbour that sent it; None: it was published here.
        size: Bytes.
        is_cut: Whether something was cut out of it on the way.
        steps: Restructuring steps that were done on the way.
    """

    message: str
    sender: str | None
    size: int
    is_cut: bool
    steps: int


class DataPlane:
    """All streams of one broker.

    Args:
        name: Of the broker.
        planes: The query plane of each tree: tables.
        local: Takes messages for the broker's own subscribers.
        miss: As of `Stream`.
        send: Gives a payload to a neighbour.
        has_room: Whether a neighbour can be sent to now.
        settings: What an operator decides.

    Attributes:
        streams: Of each root.
        arrivals: The latest messages that asked for it, as they came here.
    """

    def __init__(
        self,
        name: str,
        planes: Mapping[str, QueryPlane],
        local: LocalQueries,
        miss: Callable[[Stream, int, int, int], None],
        send: Callable[[str, Payload], None],
        has_room: Callable[[str], bool],
        settings: ProtocolSettings,
    ) -> None:
        self.streams: dict[str, Stream] = {}
        self._name = name
        self._planes = planes
        self._local = local
        self._miss = miss
        self._send = send
        self._has_room = has_room
        self._settings = settings
        self._leads: dict[str, str | None] = {}
        self._moving: set[str] = set()
        self.arrivals: deque[Arrival] = deque(maxlen=ARRIVALS_MAX)

    @property
    def own(self) -> Stream | None:
        """The stream that this broker is the root of."""
        return self.streams.get(self._name)

    def of_tree(self, tree: str) -> list[Stream]:
        """Streams that take a tree."""
        return [one for root, one in sorted(self.streams.items()) if self._tree_of(root) == tree]

    def open(self, root: str, number: int, lives: Lives, at: int = 0) -> Stream:
        """There is a stream.

        Args:
            root: Its root broker.
            number: Of the stream.
            lives: Its history, as the root announces it.
            at: Where the log begins, if this broker is the root.
        """
        tree = self._tree_of(root)
        kept = self._local.begin(root, number, lives)
        parts = Parts(
            root,
            number,
            self._settings.part_bytes,
            self._send,
            self._may_begin,
            partial(self._decide, root),
            partial(self._life_at, root),
        )
        made = self.streams[root] = Stream(
            root,
            number,
            root == self._name,
            kept.position,
            self._send,
            self._has_room,
            partial(self._is_active, tree),
            partial(self._route, tree),
            partial(self._cut, tree),
            partial(self._considered, tree),
            partial(self._is_cutting, tree),
            self._local.add,
            self._miss,
            parts,
            self._remember,
            self._settings.held_messages_max,
            self._settings.held_bytes_max,
            at=at,
            lives=lives if root == self._name else kept.lives,
        )
        if not made.is_root:
            made.adopt(lives)
        return made

    def close(self, root: str) -> None:
        """A stream is gone, and may be back."""
        stream = self.streams.pop(root)
        stream.take_own()
        self._local.retire(stream)
        self._local.keep_cursor(stream)
        self._leads.pop(root, None)

    def lead(self, stream: Stream, upstream: str | None) -> None:
        """The neighbour that leads to a root, which may be the one that it was."""
        root = stream.root
        if not stream.is_root and (root not in self._leads or self._leads[root] != upstream):
            self._leads[root] = upstream
            stream.lead(upstream)
            self._moving.add(root)

    def activate(self, tree: str, peer: str) -> None:
        """The table of a neighbour counts from now on in a tree."""
        for stream in self.of_tree(tree):
            stream.activate(peer)
            self._moving.add(stream.root)

    def detach(self, tree: str, peer: str) -> None:
        """A neighbour does not have the link in a tree any more."""
        for stream in self.of_tree(tree):
            stream.forget(peer)

    def session_ended(self, peer: str) -> None:
        """A link is given up."""
        for stream in self.streams.values():
            stream.forget(peer)
        self._leads = {root: at for root, at in self._leads.items() if at != peer}

    def hear(
        self, peer: str, said: FollowStream | Forward | InParts | Trimmed | PositionPassed
    ) -> None:
        """A neighbour says something of a stream.

        Raises:
            PeerError: What it says cannot be.
        """
        stream = self.streams.get(said.root)
        if stream is None or stream.number != said.stream:
            return
        plane = self._planes[self._tree_of(said.root)]
        self._moving.add(said.root)
        match said:
            case FollowStream():
                stream.hear_follow(peer, said)
            case Forward():
                plane.check_considered(peer, said.messages)
                stream.hear_forward(peer, said)
            case MessageBegin() | MessagePart() | MessageDropped():
                if isinstance(said, MessageBegin):
                    plane.check_considered(peer, (said.message,))
                    self._check_parts(peer, stream)
                stream.hear_part(peer, said)
            case Trimmed():
                stream.hear_trimmed(peer, said)
            case PositionPassed():
                stream.hear_passed(peer, said)

    def published(self) -> None:
        """This broker's own stream has a message."""
        self._moving.add(self._name)

    def rewind(self) -> bool:
        """Go back upstream for those that follow anew. Returns whether any did."""
        due = [stream for _, stream in sorted(self.streams.items()) if stream.rewind_due]
        for stream in due:
            stream.rewind()
            self._moving.add(stream.root)
        return bool(due)

    def ask_again(self, tree: str) -> None:
        """Ask again for the messages that are in flight in a tree."""
        for stream in self.of_tree(tree):
            if not stream.is_root:
                stream.rewind()

    def advance(self) -> None:
        """Send on what has come."""
        for root in sorted(self._moving):
            stream = self.streams.get(root)
            if stream is not None:
                stream.advance()
            if stream is None or not stream.is_behind:
                self._moving.discard(root)

    def _tree_of(self, root: str) -> str:
        return SHARED if self._settings.trees == "spanning" else root

    def _is_active(self, tree: str, peer: str) -> bool:
        return tree in self._planes and self._planes[tree].is_active(peer)

    def _route(self, tree: str, bodies: Sequence[bytes]) -> Sequence[Set[str]]:
        return self._planes[tree].interests.route(bodies)

    def _cut(
        self,
        tree: str,
        bodies: Sequence[bytes],
        wanted: Mapping[str, Sequence[int]],
        done: Sequence[int],
    ) -> Mapping[str, Sequence[Sent | None]]:
        return self._planes[tree].interests.cut(bodies, wanted, done)

    def _considered(self, tree: str, origin: str, upstream: str | None, number: int | None) -> int:
        return self._planes[tree].considered(origin, upstream, number)

    def _is_cutting(self, tree: str, peer: str) -> bool:
        return self._planes[tree].interests.is_cutting(peer)

    def _decide(self, root: str, size: int) -> RoutingDecision | None:
        """Decisions for a message of a root that is arriving, if they are of use to anybody."""
        if not (self._settings.cut_through and self.streams[root].followers):
            return None
        return self._planes[self._tree_of(root)].interests.decisions(size)

    def _life_at(self, root: str, position: int) -> int:
        return self.streams[root].life_at(position)

    def _remember(self, stream: Stream, one: StreamMessage) -> None:
        size, is_cut = len(one.body), one.considers is not None
        self.arrivals.append(Arrival(one.message, stream.upstream, size, is_cut, one.steps))

    def _may_begin(self, peer: str) -> bool:
        under_way = [one for one in self.streams.values() if one.parts.is_sending(peer)]
        return len(under_way) < SENDING_MAX

    def _check_parts(self, peer: str, stream: Stream) -> None:
        """A neighbour begins no more messages than it may.

        Raises:
            PeerError: It does (`overlay.parts`).
        """
        others = [one for one in self.streams.values() if one is not stream]
        coming = sum(one.upstream == peer and one.parts.arriving is not None for one in others)
        if coming >= COMING_MAX:
            raise PeerError("overlay.parts", peer=peer, maximum=COMING_MAX)

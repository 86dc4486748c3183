"""Streams: each root's messages, in the order of their positions, to all who want them.

A root keeps its messages on disk, numbered from 1, until every member of the network has had them.
A broker *follows* a root through the neighbour that leads to it: it says up to which position it
and all behind it have everything, and is sent what its side wants of what comes after, with the
range of positions that this is all of. So a host knows, of every position, that it has had the
message or that nobody on its side wanted it, and one number a root, its *cursor*, keeps it from
ever taking one twice. Brokers between hold nothing that cannot be asked for again.

Whenever a follower is new (a link joined the tree, a broker came back, a neighbour further away
did), its position goes up to the root, each broker asking its own upstream anew for the least
position behind it, *behind* what its side wants on the same links in order; so what a root has once
passed over because nobody was known to want it is judged again by those who came. That is why
neither a tree that changes while messages are under way nor a network in two parts loses a message
or delivers one twice.

A neighbour that is slower than others is sent what it has room for; what waits for it is bounded,
and is asked for again when it is not. What nobody wants is not sent; that it was not is said
with the next message or at the next tick.

What is sent is cut down to what is of use behind the link, as far as is known. A message that was
cut says up to which change of its receiver's table that is (`Published.considers`), and a broker
reckons from it which changes of its own neighbours and subscribers that includes. So who came
later is not given what was cut without regard to it, and nothing has to wait or be sent again.

Messages are routed, then cut where they were routed to, then sent, and only then given to the
broker's own subscribers, in their order and when there is time: `taken` is how far they are
handed over to that, `cursor` how far it is done.

Source: 001, section 4.2 and 5 (data plane) for routing by tables on the way from the root, 4.2.2
for what is cut, 4.3.1 for what comes first; the recovery by positions is that of Gryphon's
guaranteed delivery (docs/adr/0015), which 001 leaves open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import msgspec

from pathcast.errors import PeerError
from pathcast.overlay.content import LOCAL
from pathcast.overlay.messages import Follow, Forward, Passed, Payload, Published
from pathcast.overlay.safeguards import ALL, Safeguards

__all__ = ["Follower", "Stream"]

BATCH_MESSAGES = 256
BATCH_BYTES = 262_144


@dataclass(slots=True)
class Follower:
    """A neighbour that follows a stream through this broker.

    Attributes:
        generation: Of its `Follow`, comes back in each `Forward`.
        told: Position up to which it knows everything from this broker.
        position: Position up to which messages have been looked at for it.
        rewinds: It is not served before this broker's own upstream has gone back for it.
    """

    generation: int
    told: int
    position: int
    rewinds: bool = True

    def wait(self) -> None:
        """What it has not been told is not held for it any more, and comes again."""
        self.position, self.rewinds = self.told, True


@dataclass(slots=True)
class Stream:
    """One root's stream at one broker: at the root itself, or on the way from it.

    Args:
        root: Its root broker.
        number: Of the stream.
        is_root: This broker is the root; `held` is its log.
        cursor: Position up to which this broker's own subscribers have had everything.
        send: Gives a payload to a neighbour, in order and once within a session.
        has_room: Whether a neighbour can be sent to now.
        is_active: Whether a neighbour's table is here and counts.
        route: For each message the neighbours that may want it.
        cut: What neighbours are sent of messages that are routed to them (`Interests.cut`).
        considered: Up to which change of an origin a message considers that came from a neighbour,
            with which number (`QueryPlane.considered`).
        deliver: Takes messages for the broker's own subscribers, in order and once; says `passed`
            when they have had them.
        held_max: Messages held for slow followers, except at the root.
        safeguards: For tests.

    Attributes:
        at: Position up to which all that this side wants is here.
        taken: Position up to which it was handed over for the broker's own subscribers.
        held: Messages for those that follow.
        followers: By name.
        positions: Host behind this broker (or any, at the root) -> position it has had, safely.
        fresh: Messages that have come and that the broker's own subscribers have not had yet.
    """

    root: str
    number: int
    is_root: bool
    cursor: int
    send: Callable[[str, Payload], None]
    has_room: Callable[[str], bool]
    is_active: Callable[[str], bool]
    route: Callable[[Sequence[bytes]], Sequence[Set[str]]]
    cut: Callable[
        [Sequence[bytes], Mapping[str, Sequence[int]]], Mapping[str, Sequence[bytes | None]]
    ]
    considered: Callable[[str, str | None, int | None], int]
    deliver: Callable[[Stream, Sequence[Published]], None]
    held_max: int = 4096
    safeguards: Safeguards = ALL
    at: int = 0
    taken: int = field(init=False)
    held: list[Published] = field(default_factory=list)
    followers: dict[str, Follower] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    upstream: str | None = None
    generation: int = 0
    rewind_due: bool = False
    unreported: set[str] = field(default_factory=set)
    fresh: list[Published] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.taken = self.cursor

    # Where messages come from.

    def publish(self, message: Published) -> None:
        """The root has a message; `advance` sends it on, when it is on the disk."""
        self.held.append(message)
        self.fresh.append(message)
        self.at = message.position

    def advance(self) -> None:
        """Sends on what has come, and then gives it to the broker's own subscribers.

        Once an event: what came together is routed, and answered, together.
        """
        self.pump()
        self.take_own()

    def lead(self, upstream: str | None) -> None:
        """The neighbour that leads to the root is another one, or has a new session."""
        self.upstream = upstream
        self.unreported |= self.positions.keys()
        self.generation += 1  # what another one sent is not what this one will
        self.rewind_due = True
        self.held = []  # nor is what it considered known any more
        for follower in self.followers.values():
            follower.wait()

    def rewind(self) -> None:
        """Ask upstream for all that somebody on this side has not had."""
        self.take_own()
        self.rewind_due = False
        served = [
            follower
            for name, follower in sorted(self.followers.items())
            if self.is_active(name) and name != self.upstream
        ]
        for follower in served:
            follower.position, follower.rewinds = follower.told, False
        if self.is_root:
            self.pump()
            return
        positions = [follower.told for follower in served] if self.safeguards.rewind else []
        self.generation += 1
        self.held = []
        self.at = min([self.taken, *positions])
        if self.upstream is not None:
            self.send(self.upstream, Follow(self.root, self.number, self.generation, self.at))

    def hear_forward(self, peer: str, said: Forward) -> None:
        """The upstream neighbour sends what follows; `advance` does the rest.

        Raises:
            PeerError: Positions that do not follow each other (`overlay.stream`).
        """
        if peer != self.upstream:
            return
        if said.generation != self.generation and self.safeguards.generations:
            return  # asked for before somebody else came, whose interest it does not know
        positions = [said.after, *(message.position for message in said.messages)]
        reason = ""
        if said.after != self.at and self.safeguards.generations:
            reason = f"{self.at} was expected"
        elif positions != sorted(set(positions)) or positions[-1] > said.upto:
            reason = "they are out of order"
        if reason:
            raise PeerError(
                "overlay.stream",
                peer=peer,
                root=self.root,
                after=said.after,
                upto=said.upto,
                reason=reason,
            )
        self.at = max(self.at, said.upto)
        self.held.extend(said.messages)
        # What was considered is asked now, while it is known of this neighbour.
        self.fresh.extend(self._sent(LOCAL, one, one.body) for one in said.messages)

    def take_own(self) -> None:
        """For the broker's own subscribers, after others were sent theirs."""
        came, self.fresh = self.fresh, []
        own = [one for one in came if one.position > self.taken or not self.safeguards.cursor]
        if own or self.taken < self.at:
            self.deliver(self, own)
        self.taken = max(self.taken, self.at)

    def passed(self, position: int) -> None:
        """The broker's own subscribers have had everything up to a position."""
        self.cursor = max(self.cursor, position)

    # Where they go.

    def hear_follow(self, peer: str, said: Follow) -> None:
        """A neighbour follows through this broker, from a position of its own.

        Raises:
            PeerError: The root never got so far (`overlay.stream`).
        """
        if self.is_root and said.after > self.at:
            raise PeerError(
                "overlay.stream",
                peer=peer,
                root=self.root,
                after=said.after,
                upto=self.at,
                reason="the stream does not go so far",
            )
        self.followers[peer] = Follower(said.generation, said.after, said.after)
        self.activate(peer)

    def activate(self, peer: str) -> None:
        """The table of a follower counts from now on: its position goes up to the root."""
        follower = self.followers.get(peer)
        if follower is not None and self.is_active(peer) and peer != self.upstream:
            follower.rewinds = self.safeguards.rewind
            follower.position = follower.told
            self.rewind_due = True

    def forget(self, peer: str) -> None:
        """A neighbour follows no more."""
        self.followers.pop(peer, None)

    def pump(self) -> None:
        """Send followers what they have room for."""
        while ready := self._ready():
            start = min(follower.position for _, follower in ready)
            first = bisect_right(self.held, start, key=_position)
            batch = self.held[first : first + BATCH_MESSAGES]
            while len(batch) > 1 and sum(len(one.body) for one in batch) > BATCH_BYTES:
                batch = batch[: len(batch) // 2]
            is_last = first + len(batch) == len(self.held)
            upto = self.at if is_last else batch[-1].position
            targets = self.route([one.body for one in batch]) if batch else []
            wanted = {
                name: [
                    row
                    for row, names in enumerate(targets)
                    if batch[row].position > follower.position and name in names
                ]
                for name, follower in ready
            }
            bodies = self.cut([one.body for one in batch], wanted) if any(wanted.values()) else {}
            for name, follower in ready:
                follower.position = max(follower.position, upto)
                sent = tuple(
                    self._sent(name, batch[row], body)
                    for row, body in zip(wanted[name], bodies.get(name, ()), strict=True)
                    if body is not None
                )
                if sent:
                    self._forward(name, follower, sent)
        if not self.is_root:
            self._shed()

    @property
    def is_behind(self) -> bool:
        """Whether something has come that has not gone where it is to go."""
        return bool(self.fresh) or any(one.position < self.at for one in self.followers.values())

    def _sent(self, name: str, one: Published, body: bytes) -> Published:
        """A message as a neighbour is sent it, or, as it came, the broker's own subscribers."""
        if one.considers is None and body == one.body:
            return one
        number = self.considered(name, self.upstream, one.considers)
        return msgspec.structs.replace(one, body=body, considers=number)

    def _ready(self) -> list[tuple[str, Follower]]:
        return [
            (name, follower)
            for name, follower in sorted(self.followers.items())
            if follower.position < self.at and self._is_served(name, follower)
            if self.has_room(name)
        ]

    def _is_served(self, name: str, follower: Follower) -> bool:
        return not follower.rewinds and name != self.upstream and self.is_active(name)

    def _forward(self, name: str, follower: Follower, wanted: tuple[Published, ...]) -> None:
        said = Forward(
            self.root, self.number, follower.generation, follower.told, follower.position, wanted
        )
        follower.told = follower.position
        self.send(name, said)

    def _shed(self) -> None:
        """Hold no more than somebody waits for, and not for the slowest beyond the bound."""
        served = [
            follower for name, follower in self.followers.items() if self._is_served(name, follower)
        ]
        while served:
            behind = min(follower.position for follower in served)
            first = bisect_right(self.held, behind, key=_position)
            if len(self.held) - first <= self.held_max:
                del self.held[:first]
                return
            for follower in served:
                if follower.position == behind:
                    follower.wait()
            served = [follower for follower in served if not follower.rewinds]
        self.held.clear()

    # What is said at ticks.

    def tick(self) -> None:
        """Say what was not sent because nobody wanted it; serve those that were too slow."""
        for name, follower in sorted(self.followers.items()):
            if follower.rewinds and self.is_active(name) and self.has_room(name):
                self.rewind_due = self.rewind_due or name != self.upstream
        if self.rewind_due:
            self.rewind()
        self.pump()
        for name, follower in sorted(self.followers.items()):
            silent = follower.told < follower.position
            if silent and self._is_served(name, follower) and self.has_room(name):
                self._forward(name, follower, ())

    def note(self, host: str, position: int) -> None:
        """A host has had everything up to a position, safely."""
        if position > self.positions.get(host, 0):
            self.positions[host] = position
            self.unreported.add(host)

    def report(self) -> None:
        """Tell upstream what hosts have had since the last time."""
        if self.upstream is not None and self.unreported:
            said = tuple((host, self.positions[host]) for host in sorted(self.unreported))
            self.send(self.upstream, Passed(self.root, self.number, said))
            self.unreported.clear()

    def hear_passed(self, peer: str, said: Passed) -> None:
        """Hosts behind a neighbour have had so much.

        Raises:
            PeerError: More than there is (`overlay.stream`).
        """
        for host, position in said.positions:
            if self.is_root and position > self.at:
                raise PeerError(
                    "overlay.stream",
                    peer=peer,
                    root=self.root,
                    after=0,
                    upto=position,
                    reason=f"the stream ends at {self.at}",
                )
            self.note(host, position)

    def drop_until(self, position: int) -> None:
        """The root keeps these messages no longer."""
        del self.held[: bisect_right(self.held, position, key=_position)]


def _position(message: Published) -> int:
    return message.position

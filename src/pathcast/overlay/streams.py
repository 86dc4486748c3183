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
with the next message or at the next tick. What is long travels in parts (`parts`).

What is sent is cut down to what is of use behind the link, as far as is known, and steps that all
profiles behind it begin with are done before that. A message that was changed so says up to which
change of its receiver's table that is (`StreamMessage.considers`), and a broker reckons from it
which changes of its own neighbours and subscribers that includes. So a later one is not given a
message that was cut without regard to it, and nothing has to wait or be sent again.

A position means nothing without the life of the root that gave it (`lives`). A broker that has had
positions which the root, begun again with an older disk, does not know is *diverged*: it neither
follows nor forwards this stream any more, and says what it has had. The root then begins another
stream, whose positions go on from those that all agree on, and every host tells its subscribers
that messages may be lost (`Lapsed`). A follower from before the log is told which positions nobody
keeps (`Trimmed`).

Messages are routed, then cut where they were routed to, then sent, and only then given to the
broker's own subscribers, in their order and when there is time: `taken` is how far they are
handed over to that, `cursor` how far it is done.

Source: 001, section 4.2 and 5 (data plane) for routing by tables on the way from the root, 4.2.2
for what is cut, 4.3.1 for what comes first; the recovery by positions is that of Gryphon's
guaranteed delivery (docs/adr/0015), which 001 leaves open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import msgspec

from pathcast.errors import PeerError
from pathcast.overlay.content import LOCAL, Sent
from pathcast.overlay.lives import Lives, do_agree, has_numbered, life_at, with_former
from pathcast.overlay.messages import (
    FollowStream,
    Forward,
    InParts,
    MessageBegin,
    Payload,
    PositionPassed,
    StreamMessage,
    Trimmed,
)
from pathcast.overlay.parts import Arriving, Parts

BATCH_MESSAGES = 256
BATCH_BYTES = 262_144


@dataclass(slots=True)
class Follower:
    """A neighbour that follows a stream through this broker.

    Attributes:
        generation: Of its `FollowStream`, comes back in each `Forward`.
        told: Position up to which it knows everything from this broker.
        position: Position up to which messages have been looked at for it.
        rewinds: It is not served before this broker's own upstream has gone back for it.
    """

    generation: int
    told: int
    position: int
    rewinds: bool = True

    def wait(self) -> None:
        """Drop the messages held for this follower; it asks for them again."""
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
        is_cutting: Whether what a neighbour is sent may be cut (`Interests.is_cutting`).
        deliver: Takes messages for the broker's own subscribers, in order and once; says `passed`
            when they have had them.
        miss: Told of positions that do not come any more: the stream, first and last of them, and
            up to which the root gave them up (`Trimmed.given_up`).
        parts: Long messages that come and go.
        remember: Takes a message that has come, if its header says that it is traced.
        held_max: Messages held for slow followers, except at the root.
        held_bytes_max: Bytes of their bodies.

    Attributes:
        at: Position up to which all that this side wants is here.
        taken: Position up to which it was handed over for the broker's own subscribers.
        held: Messages for those that follow.
        held_bytes: Bytes of their bodies.
        followers: By name.
        trimmed: What nobody keeps any more of the positions up to `at`: ranges (after, upto], in
            their order, each with its `Trimmed.given_up`. At the root it is all before the log.
        positions: Host behind this broker (or any, at the root) -> position it has had, safely.
        position_lives: Host -> life that numbered this position.
        fresh: Messages that have come and that the broker's own subscribers have not had yet.
        lives: History of the positions that are here.
        known_after: Position after which the history of the root begins, as it announces it.
        is_diverged: What is here is not what the root has: see the module.
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
        [Sequence[bytes], Mapping[str, Sequence[int]], Sequence[int]],
        Mapping[str, Sequence[Sent | None]],
    ]
    considered: Callable[[str, str | None, int | None], int]
    is_cutting: Callable[[str], bool]
    deliver: Callable[[Stream, Sequence[StreamMessage]], None]
    miss: Callable[[Stream, int, int, int], None]
    parts: Parts
    remember: Callable[[Stream, StreamMessage], None]
    held_max: int = 4096
    held_bytes_max: int = 268_435_456
    at: int = 0
    taken: int = field(init=False)
    held: list[StreamMessage] = field(default_factory=list)
    held_bytes: int = 0
    followers: dict[str, Follower] = field(default_factory=dict)
    trimmed: list[tuple[int, int, int]] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    position_lives: dict[str, int] = field(default_factory=dict)
    upstream: str | None = None
    generation: int = 0
    rewind_due: bool = False
    unreported: set[str] = field(default_factory=set)
    fresh: list[StreamMessage] = field(default_factory=list)
    lives: Lives = ()
    known_after: int = 2**62
    is_diverged: bool = False

    def __post_init__(self) -> None:
        self.taken = self.cursor

    def life_at(self, position: int) -> int:
        """The life of the root that numbered a position."""
        return life_at(self.lives, position)

    def adopt(self, lives: Lives) -> None:
        """The root announces its history. Without what is here in it, the stream is diverged."""
        self.take_own()  # more than this broker has had it will not get
        agrees = do_agree(self.lives, lives, self.taken)
        if agrees:
            self.lives = with_former(self.lives, lives, self.taken)
            self.known_after = next((start for life, start in lives if life), self.known_after)
        if agrees == self.is_diverged:
            self.is_diverged = not agrees
            self.lead(self.upstream)

    # Where messages come from.

    def publish(self, messages: Sequence[StreamMessage]) -> None:
        """The root has messages, one at least; `advance` sends them on, when they are on disk."""
        self._have_come(messages, messages[-1].position)

    def hold(self, messages: Sequence[StreamMessage]) -> None:
        """Keep messages for those that follow."""
        self.held.extend(messages)
        self.held_bytes += sum(len(one.body) for one in messages)

    def _have_come(self, messages: Sequence[StreamMessage], upto: int) -> None:
        self.at = max(self.at, upto)
        self.hold(messages)
        for one in messages:
            if one.trace:
                self.remember(self, one)
        # What was considered is asked now, while it is known of this neighbour.
        self.fresh.extend(
            one if one.considers is None else self._sent(LOCAL, one, _as_it_is(one))
            for one in messages
        )

    def advance(self) -> None:
        """Sends on what has come, and then gives it to the broker's own subscribers.

        Once an event: what came together is routed, and answered, together.
        """
        self.pump()
        if self.parts.arriving is not None:  # after what came before it
            self._cut_through(self.parts.arriving)
            self._send_parts()
        self.take_own()

    def lead(self, upstream: str | None) -> None:
        """The neighbour that leads to the root is another one, or has a new session."""
        self.upstream = upstream
        if upstream is not None:
            self.parts.forget(upstream)
        self.parts.drop_arriving()
        self.unreported |= self.positions.keys()
        self.generation += 1  # what another one sent is not what this one will
        self.rewind_due = True
        self._hold_nothing()  # nor is what it considered known any more
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
        positions = [follower.told for follower in served]
        self.generation += 1
        self._hold_nothing()
        self.parts.drop_arriving()
        self.at = min([self.taken, *positions])
        if self.upstream is not None and not self.is_diverged:
            life = self.life_at(self.at)
            said = FollowStream(self.root, self.number, self.generation, self.at, life)
            self.send(self.upstream, said)

    def hear_forward(self, peer: str, said: Forward) -> None:
        """The upstream neighbour sends what follows; `advance` does the rest.

        Raises:
            PeerError: Positions that do not follow each other (`overlay.stream`).
        """
        if self._is_astray(peer, said.generation):
            return
        positions = [said.after, *(message.position for message in said.messages)]
        is_in_order = positions == sorted(set(positions)) and positions[-1] <= said.upto
        self._check_follows(peer, said, is_in_order)
        if self._is_foreign(said.upto, said.life):
            return
        self._have_come(said.messages, said.upto)

    def hear_trimmed(self, peer: str, said: Trimmed) -> None:
        """The upstream neighbour says what the root does not keep any more.

        Raises:
            PeerError: Positions that do not follow each other (`overlay.stream`).
        """
        if self._is_astray(peer, said.generation):
            return
        self._check_follows(peer, said, said.after < said.upto)
        if self._is_foreign(said.upto, said.life):
            return
        self.take_own()
        given_up = said.upto if said.given_up is None else min(said.given_up, said.upto)
        if self.taken < said.upto:
            # Nobody knows of positions from before the history whether they are the same there.
            is_known = self.taken > self.known_after
            self.miss(self, self.taken + 1 if is_known else 1, said.upto, given_up)
        self.at = said.upto
        self.trimmed.append((said.after, said.upto, given_up))

    def _check_follows(self, peer: str, said: Forward | Trimmed, is_in_order: bool) -> None:
        """Refuses positions that do not follow those that have come.

        Raises:
            PeerError: They do not (`overlay.stream`).
        """
        reason = ""
        if said.after != self.at:
            reason = f"{self.at} was expected"
        elif self.parts.arriving is not None:
            reason = f"{self.parts.arriving.position} has begun and not ended"
        elif not is_in_order:
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

    def _is_astray(self, peer: str, generation: int) -> bool:
        """Whether what a neighbour sends is not what was asked for last.

        That was asked for before somebody else came, whose interest it does not regard.
        """
        is_late = generation != self.generation
        return peer != self.upstream or self.is_diverged or is_late

    def _is_foreign(self, position: int, life: int) -> bool:
        """Whether a position is of a history that the root has not; it is asked for again."""
        if self.life_at(position) == life:
            return False
        self.generation += 1
        self.rewind_due = True
        return True

    def hear_part(self, peer: str, said: InParts) -> None:
        """The upstream neighbour sends a long message; `advance` sends on what is here of it.

        Raises:
            PeerError: It cannot be (`overlay.part`).
        """
        if self._is_astray(peer, said.generation):
            return
        arriving = self.parts.hear(peer, said, self.at)
        if isinstance(said, MessageBegin) and self._is_foreign(said.message.position, said.life):
            self.parts.drop_arriving()
            return
        if arriving is not None and arriving.is_whole:
            self._cut_through(arriving)
        message = self.parts.ended()
        if message is not None:
            self._have_come([message], message.position)

    def _cut_through(self, arriving: Arriving) -> None:
        """Begin to send a message to those that are known to want it; pass over the others."""
        if arriving.decisions is None or arriving.message.considers is not None:
            return  # what was cut is sent on with what each neighbour told, when it is here
        wanted = arriving.decisions.wanted
        decided = arriving.decisions.decided if arriving.is_whole else None
        for name, follower in self._ready(arriving.position):
            if follower.position < self.at or self.is_cutting(name):
                continue  # what comes before is still to be looked at; a message is cut whole
            if name in wanted:
                self.parts.start(name, arriving, follower.generation, follower.told)
            elif decided is not None and name not in decided:
                follower.position = arriving.position

    def take_own(self) -> None:
        """For the broker's own subscribers, after others were sent theirs."""
        came, self.fresh = self.fresh, []
        own = [one for one in came if one.position > self.taken]
        if own or self.taken < self.at:
            self.deliver(self, own)
        self.taken = max(self.taken, self.at)

    def passed(self, position: int) -> None:
        """The broker's own subscribers have had everything up to a position."""
        self.cursor = max(self.cursor, position)

    # Where they go.

    def hear_follow(self, peer: str, said: FollowStream) -> None:
        """A neighbour follows through this broker, from a position of its own.

        Raises:
            PeerError: The root never got so far (`overlay.stream`).
        """
        if self.is_root and not self._is_known(said.after, said.life):
            return
        if self.is_root and said.after > self.at:
            raise PeerError(
                "overlay.stream",
                peer=peer,
                root=self.root,
                after=said.after,
                upto=self.at,
                reason="the stream does not go so far",
            )
        self.parts.forget(peer)
        self.followers[peer] = Follower(said.generation, said.after, said.after)
        self.activate(peer)

    def _is_known(self, position: int, life: int) -> bool:
        """Whether the root has given a position in a life; one of this life it knows for sure."""
        if self.lives and life == self.lives[-1][0]:
            return True
        if position <= self.at and has_numbered(self.lives, life, position):
            return True
        self.is_diverged = True
        return False

    def activate(self, peer: str) -> None:
        """The table of a follower counts from now on: its position goes up to the root."""
        follower = self.followers.get(peer)
        if follower is not None and self.is_active(peer) and peer != self.upstream:
            self.parts.stop(peer)
            follower.rewinds = True
            follower.position = follower.told
            self.rewind_due = True

    def forget(self, peer: str) -> None:
        """A neighbour follows no more."""
        self.followers.pop(peer, None)
        self.parts.forget(peer)

    def pump(self) -> None:
        """Send followers what they have room for."""
        self._send_parts()
        while ready := self._ready(self.at):
            start = min(follower.position for _, follower in ready)
            nothing = (self.at, 0, 0)
            after, *trimmed = next((one for one in self.trimmed if one[1] > start), nothing)
            if after <= start:
                self._tell_trimmed(ready, *trimmed)
                continue
            first = bisect_right(self.held, start, key=_position)
            end = bisect_right(self.held, after, key=_position)
            batch = self._batch(first, end)
            upto = after if first + len(batch) == end else batch[-1].position
            targets = self.route([one.body for one in batch]) if batch else []
            wanted = {
                name: [
                    row
                    for row, names in enumerate(targets)
                    if batch[row].position > follower.position and name in names
                ]
                for name, follower in ready
            }
            done = [one.steps for one in batch]
            made: Mapping[str, Sequence[Sent | None]] = {}
            if any(wanted.values()):
                made = self.cut([one.body for one in batch], wanted, done)
            for name, follower in ready:
                sent = tuple(
                    self._sent(name, batch[row], one)
                    for row, one in zip(wanted[name], made.get(name, ()), strict=True)
                    if one is not None
                )
                if sent and self.parts.is_long(sent[0]):
                    self.parts.start(name, sent[0], follower.generation, follower.told)
                    continue
                follower.position = max(follower.position, upto)
                if sent:
                    self._forward(name, follower, sent)
            self._send_parts()
        if not self.is_root:
            self._shed()

    @property
    def is_behind(self) -> bool:
        """Whether something has come that has not gone where it is to go."""
        waits = any(one.position < self.at for one in self.followers.values())
        return waits or bool(self.fresh) or bool(self.parts.outgoing)

    def _sent(self, name: str, one: StreamMessage, made: Sent) -> StreamMessage:
        """A message as a neighbour is sent it, or, as it came, the broker's own subscribers."""
        if one.considers is None and made == _as_it_is(one):
            return one
        number = self.considered(name, self.upstream, one.considers)
        return msgspec.structs.replace(one, body=made.body, steps=made.steps, considers=number)

    def _tell_trimmed(
        self, ready: Sequence[tuple[str, Follower]], upto: int, given_up: int
    ) -> None:
        """Followers that are before a position are told that nobody keeps what leads to it."""
        for name, follower in ready:
            if follower.position >= upto:
                continue
            if follower.told < follower.position:
                self._forward(name, follower, ())
            at = self.root, self.number, follower.generation, follower.told, upto
            self.send(name, Trimmed(*at, self.life_at(upto), given_up))
            follower.told = upto
            follower.position = upto

    def _batch(self, first: int, end: int) -> list[StreamMessage]:
        """Messages that are looked at together, of some that are held; a long one by itself."""
        batch = self.held[first : min(end, first + BATCH_MESSAGES)]
        while len(batch) > 1 and sum(len(one.body) for one in batch) > BATCH_BYTES:
            batch = batch[: len(batch) // 2]
        long = next((n for n, one in enumerate(batch) if self.parts.is_long(one)), len(batch))
        return batch[: max(1, long)]

    def _ready(self, position: int) -> list[tuple[str, Follower]]:
        """Followers that can be sent to, and have not been up to a position."""
        return [
            (name, follower)
            for name, follower in sorted(self.followers.items())
            if follower.position < position and name not in self.parts.outgoing
            if self._is_served(name, follower) and self.has_room(name)
        ]

    def _send_parts(self) -> None:
        """Go on with what followers have begun to be sent."""
        for name, one in sorted(self.parts.outgoing.items()):
            follower = self.followers[name]
            while self._is_served(name, follower) and self.has_room(name):
                if not self.parts.advance(name):
                    break
                if one.is_done:
                    follower.position = follower.told = one.message.position
                    self.parts.forget(name)
                    break

    def _is_served(self, name: str, follower: Follower) -> bool:
        if follower.rewinds or self.is_diverged or name == self.upstream:
            return False
        return self.is_active(name)

    def _forward(self, name: str, follower: Follower, wanted: tuple[StreamMessage, ...]) -> None:
        upto = follower.position
        said = Forward(
            self.root,
            self.number,
            follower.generation,
            follower.told,
            upto,
            wanted,
            self.life_at(upto),
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
            self._let_go(first)
            self.trimmed = [one for one in self.trimmed if one[1] > behind]
            held = len(self.held) + len(self.trimmed)
            if held <= self.held_max and self.held_bytes <= self.held_bytes_max:
                return
            for follower in served:
                if follower.position == behind:
                    follower.wait()
            served = [follower for follower in served if not follower.rewinds]
        self._hold_nothing()

    def _hold_nothing(self) -> None:
        """Ask upstream again for the messages that followers lack."""
        self._let_go(len(self.held))
        self.trimmed.clear()

    def _let_go(self, count: int) -> None:
        """Hold the first so many messages no longer."""
        self.held_bytes -= sum(len(one.body) for one in self.held[:count])
        del self.held[:count]

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
            silent = follower.told < follower.position and name not in self.parts.outgoing
            if silent and self._is_served(name, follower) and self.has_room(name):
                self._forward(name, follower, ())

    def note(self, host: str, position: int, life: int) -> None:
        """A host has had everything up to a position of a life, safely."""
        if position > self.positions.get(host, 0):
            self.positions[host], self.position_lives[host] = position, life
            self.unreported.add(host)

    def report(self) -> None:
        """Tell upstream what hosts have had since the last time."""
        if self.upstream is not None and self.unreported:
            said = tuple(
                (host, self.positions[host], self.position_lives[host])
                for host in sorted(self.unreported)
            )
            self.send(self.upstream, PositionPassed(self.root, self.number, said))
            self.unreported.clear()

    def hear_passed(self, peer: str, said: PositionPassed) -> None:
        """Hosts behind a neighbour have had so much.

        Raises:
            PeerError: More than there is (`overlay.stream`).
        """
        for host, position, life in said.positions:
            if self.is_root and not self._is_known(position, life):
                continue
            if self.is_root and position > self.at:
                raise PeerError(
                    "overlay.stream",
                    peer=peer,
                    root=self.root,
                    after=0,
                    upto=position,
                    reason=f"the stream ends at {self.at}",
                )
            self.note(host, position, life)

    def positions_of(self, members: Iterable[str]) -> dict[str, int]:
        """Member -> position up to which it has had everything, safely."""
        return {name: self.positions.get(name, 0) for name in members}

    def drop_until(self, position: int, given_up: int) -> None:
        """The root keeps these messages no longer.

        Args:
            position: Of the last of them.
            given_up: As of `Trimmed`.
        """
        self._let_go(bisect_right(self.held, position, key=_position))
        self.trimmed = [(0, position, given_up)] if position else []


def _as_it_is(message: StreamMessage) -> Sent:
    return Sent(message.body, message.steps)


def _position(message: StreamMessage) -> int:
    return message.position

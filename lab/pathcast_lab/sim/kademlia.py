"""Kademlia, as a `pathcast.dht.substrate.Substrate`: to show that the automaton does not care.

A key belongs to the member whose identifier is nearest by exclusive or. A member knows up to
`BUCKET` others for each length of the prefix that it has in common with them. A look-up asks the
nearest members it has heard of for nearer ones, `PARALLEL` at a time, until the nearest `copies`
have all answered. Records have their copies at the members next to their owner, for each key
others, by the rule of `pathcast.dht.records`: the owner asks them all, so one that has just joined
needs no state of its own; and reads its records now and then, which puts copies where they belong.

The messages are those of the ring: `RouteRequest` for FIND_NODE, `Rectify` for "I am here".

Differs from the paper: a full bucket keeps whom it has and drops who does not answer, without a
ping in between; nothing expires, values are republished by their owner only. What is proved of the
ring (`pathcast.dht.ring`) is not proved of this.

Source: Maymounkov and Mazieres, Kademlia, IPTPS 2002; 000, section 2.3, for "any DHT".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from pathcast.dht.asking import Asking
from pathcast.dht.identifiers import identifier
from pathcast.dht.messages import (
    Answer,
    Ask,
    Done,
    Get,
    Later,
    Member,
    Put,
    Rectify,
    Reply,
    RingQuestion,
    RouteReply,
    RouteRequest,
    Stored,
    Value,
    from_wire,
    to_wire,
)
from pathcast.dht.piece_messages import PieceQuestion
from pathcast.dht.records import RecordStore
from pathcast.dht.substrate import Asked, Location
from pathcast.errors import PeerError
from pathcast.protocol import Effect, Send, Wake

__all__ = ["BUCKET", "PARALLEL", "KademliaPeer"]

BUCKET = 8
PARALLEL = 3
_COPIES = 3
_TICK = "tick"
_TICK_SECONDS = 0.5
_PATIENCE_SECONDS = 0.1
_ATTEMPTS = 3


class _Contacts:
    """Members that a member knows; `pathcast.dht.records.Neighbourhood`."""

    predecessor: Member | None = None
    successors: tuple[Member, ...] = ()

    def __init__(self, me: Member) -> None:
        self.me = me
        self.is_member = False
        self._buckets: dict[int, list[Member]] = {}

    def add(self, member: Member) -> None:
        """Know a member, if there is room among those as far away."""
        if member == self.me:
            return
        bucket = self._buckets.setdefault(self._bucket(member), [])
        if member not in bucket and len(bucket) < BUCKET:
            bucket.append(member)

    def drop(self, member: Member) -> None:
        """Forget a member that does not answer."""
        bucket = self._buckets.get(self._bucket(member), [])
        if member in bucket:
            bucket.remove(member)

    def nearest(self, place: int, count: int) -> list[Member]:
        """Members nearest to a place, this one among them if it has joined."""
        known = [member for bucket in self._buckets.values() for member in bucket]
        known += [self.me] if self.is_member else []
        return sorted(known, key=lambda member: member.identifier ^ place)[:count]

    def owns(self, place: int) -> bool:
        """Whether no member is known that is nearer."""
        return self.is_member and self.nearest(place, 1) == [self.me]

    def others_for(self, place: int) -> tuple[Member, ...]:
        """The nearest but this one."""
        return tuple(m for m in self.nearest(place, _COPIES + 1) if m != self.me)[:_COPIES]

    def _bucket(self, member: Member) -> int:
        return (member.identifier ^ self.me.identifier).bit_length()


@dataclass(slots=True)
class _Search:
    """A look-up: how many messages away each member is that was heard of, and who has answered."""

    place: int
    then: Callable[[list[Member], int], None]
    hops: dict[Member, int]
    answered: set[Member] = field(default_factory=set)
    asked: set[Member] = field(default_factory=set)
    open: int = 0
    is_over: bool = False


class KademliaPeer:
    """One life of a peer.

    Args:
        name: Of the peer.
        life: A number that no life of it had before.
        base: Names of peers that are there from the beginning, the same for all; their life is 0.
        asked: Gets questions about pieces.

    Attributes:
        contacts: Members it knows.
        records: What it holds.
    """

    settle_seconds = 0.0

    def __init__(self, name: str, life: int, base: Sequence[str], asked: Asked) -> None:
        self.me = Member(name, 0 if name in base else life)
        self.out: list[Effect] = []
        self.asking = Asking(
            self.out,
            _PATIENCE_SECONDS,
            _ATTEMPTS,
            lambda member: self.asking.bury(member),  # who is silent is dead
            (life & 0x7FFFFFFF) << 30,
        )
        self.contacts = _Contacts(self.me)
        self.records = RecordStore(self.contacts, self.asking, _COPIES)
        self._base = [Member(other, 0) for other in base]
        self._asked = asked
        self._writes = 0
        self._rounds = 0

    # As a node.

    def start(self, now: float) -> list[Effect]:
        """Know the base, and look for oneself."""
        for member in self._base:
            self.contacts.add(member)
        self.contacts.is_member = self.me in self._base
        self._round()
        return self.effects()

    def receive(self, sender: str, message: object, now: float) -> list[Effect]:
        """A question or an answer.

        Raises:
            PeerError: "dht.sender"; it speaks for somebody else, or is no message of the ring.
        """
        if isinstance(message, Answer):
            self.asking.answered(sender, message)
        elif isinstance(message, Ask):
            self._was_asked(sender, message)
        else:
            raise PeerError("dht.sender", peer=sender, given=type(message).__name__)
        return self.effects()

    def wake(self, timer: str, now: float) -> list[Effect]:
        """A round, or a question to be repeated."""
        if timer == _TICK:
            self._round()
        else:
            self.asking.wake(timer)
        return self.effects()

    def neighbour(self, name: str, up: bool, now: float) -> list[Effect]:
        """Nothing: everybody can reach everybody."""
        return self.effects()

    # As a substrate.

    def effects(self) -> list[Effect]:
        """As of the protocol."""
        self.records.send()
        effects = list(self.out)
        self.out.clear()
        return effects

    def find(self, key: str, then: Callable[[Location | None], None]) -> None:
        """As of the protocol."""

        def found(members: list[Member], hops: int) -> None:
            then(Location(members[0], hops) if members else None)

        self._search(identifier(key), found)

    def forget(self, owner: Member) -> None:
        """As of the protocol; nothing is remembered."""

    def owns(self, key: str) -> bool:
        """As of the protocol."""
        return self.contacts.owns(identifier(key))

    def read(self, key: str, then: Callable[[Value | None], None]) -> None:
        """As of the protocol; the other holders are asked each time."""
        self.records.answer(Get(key), lambda reply: then(_value(reply)))

    def is_whole(self, key: str) -> bool:
        """As of the protocol; which cannot be known here."""
        return True

    def own_keys(self) -> list[str]:
        """As of the protocol."""
        return [key for key in sorted(self.records.held) if self.owns(key)]

    @property
    def is_complete(self) -> bool:
        """As of the protocol."""
        return True

    def kept(self, key: str) -> Value | None:
        """As of the protocol."""
        return self.records.value(key) if self.owns(key) else None

    def write(self, key: str, value: bytes, based_on: int, then: Callable[[bool], None]) -> None:
        """As of the protocol."""
        self._writes += 1
        put = Put(key, value, based_on, f"{self.me.life} {self._writes} {self.me.name}")
        self.records.answer(put, lambda reply: then(isinstance(reply, Stored)))

    # Inside.

    def _round(self) -> None:
        """Look for oneself, say so to those who are near, and see to one's records."""
        self.out.append(Wake(_TICK, _TICK_SECONDS))
        self._rounds += 1

        def found(members: list[Member], hops: int) -> None:
            self.contacts.is_member = True
            for member in members:
                if member != self.me:
                    self.asking.ask(member, Rectify(self.me), lambda _: None)

        self._search(self.me.identifier, found)
        own = [key for key in sorted(self.records.held) if self.owns(key)]
        for key in own[self._rounds % 8 :: 8]:
            self.read(key, lambda _: None)

    def _was_asked(self, sender: str, ask: Ask) -> None:
        def answer(reply: Reply) -> None:
            self.out.append(Send(sender, Answer(ask.number, reply)))

        what: RingQuestion | PieceQuestion = ask.what
        match what:
            case Rectify(member):
                if member.name != sender:
                    raise PeerError("dht.sender", peer=sender, given=member.name)
                self.contacts.add(member)
                answer(Done())
            case RouteRequest(to):
                answer(RouteReply(tuple(self.contacts.nearest(from_wire(to), BUCKET)), True))
            case _ if isinstance(what, PieceQuestion):
                self._asked(sender, what, answer)
            case _ if not self.contacts.is_member:
                answer(Later())
            case _:
                self.records.answer(what, answer)

    def _search(self, place: int, then: Callable[[list[Member], int], None]) -> None:
        known = self.contacts.nearest(place, BUCKET)
        search = _Search(place, then, {m: int(m != self.me) for m in known})
        search.answered = {self.me} & set(known)
        self._go_on(search)

    def _go_on(self, search: _Search) -> None:
        """Ask the nearest that have not been asked; or it is over."""
        if search.is_over:
            return
        nearest = sorted(search.hops, key=lambda member: member.identifier ^ search.place)
        nearest = nearest[:_COPIES]
        if search.answered.issuperset(nearest):
            search.is_over = True
            search.then(nearest, search.hops[nearest[0]] if nearest else 0)
            return
        for member in nearest:
            if member not in search.asked | search.answered and search.open < PARALLEL:
                search.asked.add(member)
                search.open += 1
                step = RouteRequest(to_wire(search.place), ())
                self.asking.ask(member, step, partial(self._has_answered, search, member))

    def _has_answered(self, search: _Search, member: Member, reply: Reply | None) -> None:
        search.open -= 1
        if isinstance(reply, RouteReply):
            search.answered.add(member)
            self.contacts.add(member)
            self._hear_of(search, reply.members, search.hops[member] + 1)
        else:
            search.hops.pop(member, None)
            self.contacts.drop(member)
        self._go_on(search)

    def _hear_of(self, search: _Search, members: Iterable[Member], hops: int) -> None:
        for member in members:
            if member == self.me:
                continue
            if member not in search.asked or member in search.answered:
                search.hops.setdefault(member, hops)


def _value(reply: Reply) -> Value | None:
    return reply if isinstance(reply, Value) else None

"""A peer of the ring, as a `pathcast.protocol.Node`: pointers, records, and what is asked of it.

What is asked (`look_up`, `get`, `put`, `remove`, `leave`) is answered by a `Deliver` to whom it is
asked for, with an `RequestOutcome`.

Example:
    >>> from pathcast_lab.sim import Network
    >>> base = ("a", "b", "c", "d")
    >>> network = Network(seed=1)
    >>> for name in base:
    ...     network.add(name, lambda disk, life, name=name: RingPeer(name, life, base))
    >>> network.run(until=2.0)
    >>> _ = network.call("b", lambda peer, now: peer.put("start/dblp", b"1", 0, "me"))
    >>> network.run(until=3.0)
    >>> network.delivered
    [('b', Deliver(to='me', what=RequestOutcome(key='start/dblp', reply=Stored(version=1))))]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pathcast.dht.asking import Asking, LifeAsking
from pathcast.dht.custody import Custodian
from pathcast.dht.identifiers import identifier
from pathcast.dht.known_owners import KnownOwners
from pathcast.dht.membership import Membership
from pathcast.dht.messages import (
    Absent,
    Alive,
    Answer,
    Ask,
    Conflict,
    Custody,
    Done,
    ExpelMember,
    Get,
    Hold,
    Later,
    Leaving,
    Member,
    Missing,
    Put,
    Rectify,
    Renew,
    Reply,
    Stored,
    Value,
    to_wire,
)
from pathcast.dht.piece_messages import Lost, PieceQuestion
from pathcast.dht.records import RecordStore
from pathcast.dht.restoring import Restoring
from pathcast.dht.ring import Found, Ring
from pathcast.dht.substrate import CLOCK_RATES, Asked, Location
from pathcast.dht.surplus import Surplus
from pathcast.errors import PeerError
from pathcast.protocol import Deliver, Effect, Send, Wake

_TICK = "tick"
_RETRY = "retry "
_ATTEMPTS = 40
_CURRENT_MAX = 65_536
_FINDING_MAX = 8
_LIFE_MASK = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings on which all peers of a ring agree.

    Attributes:
        successors: Length of successor lists (r); the base has one peer more, or more than that.
        copies: Members that hold a record.
        tick_seconds: Between two rounds of stabilisation.
        patience_seconds: Before a question is put again; more than twice a message's way.
        attempts: After so many a member is silent, and is tried.
        lease_seconds: So long a member acts after one of the base has renewed its lease; so long
            after it was expelled others wait until it is dead.
        absent_seconds: So long the subscriptions of a peer that was expelled are waited for before
            what was lost counts as restored.
        current_seconds: So long what an owner has read from the other holders counts as current,
            and so long after it was stored a change is sure to be seen by every owner.
        known_seconds: So long a peer that was found is taken for the owner of its range without
            being looked up; 0: each key is looked up.
        surplus_seconds: Between two rounds in which a member asks which of its copies it may drop.
    """

    successors: int = 3
    copies: int = 3
    tick_seconds: float = 0.5
    patience_seconds: float = 0.1
    attempts: int = 3
    lease_seconds: float = 1.0
    absent_seconds: float = 0.0
    current_seconds: float = 1.0
    known_seconds: float = 0.0
    surplus_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The outcome of a request.

    Attributes:
        key: What it was about.
        reply: None if it could not be said in time whether it was done; to repeat it is safe.
    """

    key: str
    reply: Value | Stored | Conflict | Found | Done | None


class RingPeer:
    """One life of a peer.

    Args:
        name: Of the peer.
        life: A number that no life of it had before. Members of the base have one life, 0.
        base: Names of the stable base, the same for all; at least `settings.successors` + 1.
        settings: The same for all.
        asked: Gets questions about pieces: sender, question, and the taker of the answer.

    Attributes:
        me: This life; another one when the others have taken it for dead.
        membership: Its lease, and, of a member of the base, what it says of those of others.
        ring: Its pointers.
        records: What it holds.
        custody: Of which of it that is all.
        restoring: Counts what was lost.
        surplus: Copies that it does not hold.
        has_left: Whether it is to leave; it is no member any more when it has.
    """

    def __init__(
        self,
        name: str,
        life: int,
        base: Sequence[str],
        settings: Settings | None = None,
        asked: Asked | None = None,
    ) -> None:
        settings = settings or Settings()
        self.me = Member(name, 0 if name in base else life)
        self._base = [Member(other, 0) for other in base]
        self._settings = settings
        self.out: list[Effect] = []
        self.asking = Asking(
            self.out,
            settings.patience_seconds,
            settings.attempts,
            self._judge,
            (life & _LIFE_MASK) << 30,
            self._has_died,
            frozenset(self._base),
        )
        self._asked_of_pieces = asked
        self._now = 0.0
        self.membership = Membership(
            self.me,
            self.asking,
            self._base,
            settings.lease_seconds,
            settings.absent_seconds,
            lambda: self._now,
            self._after,
            self._begin_anew,
        )
        self._current: dict[str, float] = {}
        self._owners = KnownOwners(settings.known_seconds)
        self._to_find: list[tuple[str, Callable[[Location | None], None]]] = []
        self._finding: dict[str, list[Callable[[Location | None], None]]] = {}
        self._begin_life()
        self.has_left = False
        self._pointers: tuple[Member | None, tuple[Member, ...]] = (None, ())
        self._is_heard = True
        self._has_to_return = False
        self._requests = 0
        self._retries: dict[str, Callable[[], None]] = {}
        self._contact = self.me.identifier % len(base)

    def _begin_life(self) -> None:
        """Begin a life that knows nothing of the ring and holds nothing."""
        settings, self._life = self._settings, LifeAsking(self.asking)
        self.ring = Ring(self.me, self._life, settings.successors, self._mend, self._base)
        self.records = RecordStore(self.ring, self._life, settings.copies)
        self.custody = Custodian(
            self.ring, self._life, settings.copies, self.records, self.membership
        )
        self.records.keep_custody(self.custody)
        self.restoring = Restoring(
            self.ring,
            self._life,
            self.custody,
            self.records,
            self.membership,
            self._asked_of_pieces,
        )
        self.surplus = Surplus(
            self.ring,
            self._life,
            self.custody,
            self.records,
            settings.surplus_seconds,
            lambda: self._now,
        )

    def _begin_anew(self) -> None:
        """This life was expelled: it ends, and another one joins the ring as a newcomer does."""
        ring, life = self.ring, self._life
        self.me = Member(self.me.name, self.me.life + 1)
        self.membership.begin_anew(self.me)
        self._has_to_return = True
        self._current.clear()
        self._begin_life()
        ring.end()
        life.end()

    # As a node.

    def start(self, now: float) -> list[Effect]:
        """Be of the base, or begin to join."""
        self._now = now
        if self.me in self._base:
            self.ring.begin(self._base)
            self.custody.begin(self._base)
        # Not all at once.
        self.out.append(Wake(_TICK, self._settings.tick_seconds * (self.me.identifier % 97) / 97))
        return self.effects()

    def receive(self, sender: str, message: object, now: float) -> list[Effect]:
        """A question or an answer.

        Raises:
            PeerError: "dht.sender"; it speaks for somebody else, or is no message of the ring.
        """
        self._now = now
        self.asking.heard(sender)
        before = self.ring.predecessor
        self._is_heard |= before is not None and before.name == sender
        if isinstance(message, Answer):
            self.asking.answered(sender, message)
        elif isinstance(message, Ask):
            self._asked(sender, message)
        else:
            raise PeerError("dht.sender", peer=sender, given=type(message).__name__)
        return self.effects()

    def wake(self, timer: str, now: float) -> list[Effect]:
        """A round, a question or request to be repeated."""
        self._now = now
        if timer == _TICK:
            self._round()
        elif timer.startswith(_RETRY):
            self._retries.pop(timer)()
        else:
            self.asking.wake(timer)
        return self.effects()

    def neighbour(self, name: str, up: bool, now: float) -> list[Effect]:
        """Repeat requests that were made before there was a connection."""
        self._now = now
        if up:
            self.asking.reached(name)
        return self.effects()

    # As a `pathcast.dht.substrate.Substrate`.

    @property
    def settle_seconds(self) -> float:
        """After a change was stored, so long until every owner sees it."""
        return self._settings.current_seconds * CLOCK_RATES

    def find(self, key: str, then: Callable[[Location | None], None]) -> None:
        """As `Substrate.find`; to an owner that is known it is one message."""
        place = identifier(key)
        known = None if self.ring.owns(place) else self._owners.of(place, self._now)
        if known is not None and self.ring.is_member:
            then(Location(known, 1))
        elif not self._owners.remembers:
            self.ring.find(place, lambda where: then(_location(where)))
        elif key in self._finding:
            self._finding[key].append(then)
        elif len(self._finding) < _FINDING_MAX:
            self._finding[key] = [then]
            self.ring.find(place, lambda where: self._has_found(key, where))
        else:
            # What is being looked up may say where this is as well.
            self._to_find.append((key, then))

    def _has_found(self, key: str, where: Found | None) -> None:
        if where is not None and where.owner != self.me:
            self._owners.learn(where, self.me, self._now)
        for then in self._finding.pop(key):
            then(_location(where))
        waiting, self._to_find = self._to_find, []
        for its, then in waiting:
            self.find(its, then)

    def forget(self, owner: Member) -> None:
        """Implement `Substrate.forget`."""
        self._owners.forget(owner)

    def owns(self, key: str) -> bool:
        """Implement `Substrate.owns`."""
        return self.ring.is_member and self.membership.has_lease and self.ring.owns(identifier(key))

    def is_whole(self, key: str) -> bool:
        """Implement `Substrate.is_whole`."""
        return self.records.is_whole(key)

    def own_keys(self) -> list[str]:
        """Implement `Substrate.own_keys`."""
        return [key for key in sorted(self.records.held) if self.owns(key)]

    @property
    def is_complete(self) -> bool:
        """Implement `Substrate.is_complete`."""
        return self.custody.is_complete

    def read(self, key: str, then: Callable[[Value | None], None]) -> None:
        """As `Substrate.read`; the other holders are asked if that was too long ago."""
        began = self._now

        def replied(reply: Reply) -> None:
            if isinstance(reply, Value):
                self._is_current(key, began)
            then(reply if isinstance(reply, Value) else None)

        if not self.owns(key):
            then(None)
        elif began < self._current.get(key, began):
            then(self.records.value(key))
        else:
            self.records.serve(Get(key), replied)

    def kept(self, key: str) -> Value | None:
        """Implement `Substrate.kept`."""
        return self.records.value(key) if self.owns(key) else None

    def write(self, key: str, value: bytes, based_on: int, then: Callable[[bool], None]) -> None:
        """Implement `Substrate.write`."""
        began = self._now

        def replied(reply: Reply) -> None:
            if isinstance(reply, Stored):
                self._is_current(key, began)
            then(isinstance(reply, Stored))

        self.records.serve(Put(key, value, based_on, self._write_id()), replied)

    def _is_current(self, key: str, began: float) -> None:
        if len(self._current) >= _CURRENT_MAX:
            self._current.clear()
        self._current[key] = began + self._settings.current_seconds

    def effects(self) -> list[Effect]:
        """Return the effects since the last call."""
        self.records.send()
        effects = list(self.out)
        self.out.clear()
        return effects

    # What is asked of it.

    def look_up(self, key: str, to: str) -> list[Effect]:
        """Look up the owner of a key; the outcome has `Found`."""
        self.ring.find(identifier(key), lambda found: self._deliver(to, RequestOutcome(key, found)))
        return self.effects()

    def get(self, key: str, to: str) -> list[Effect]:
        """Read the value of a key; the outcome has `Value`."""
        self._request(Get(key), to, _ATTEMPTS)
        return self.effects()

    def put(self, key: str, value: bytes | None, based_on: int, to: str) -> list[Effect]:
        """Change what is under a key; the outcome has `Stored` or `Conflict`.

        Args:
            key: Any text.
            value: The new value; None removes it.
            based_on: The version that is changed; 0 if there was never anything.
            to: Whom the outcome is for.
        """
        self._request(Put(key, value, based_on, self._write_id()), to, _ATTEMPTS)
        return self.effects()

    def remove(self, key: str, based_on: int, to: str) -> list[Effect]:
        """`put` without a value."""
        return self.put(key, None, based_on, to)

    @property
    def is_base(self) -> bool:
        """Whether it is of the base, and stays."""
        return self.membership.is_base

    def leave(self, to: str) -> list[Effect]:
        """Hand over and go; the outcome has `Done`. Members of the base do not leave."""

        def left() -> None:
            self.ring.leave()
            self._deliver(to, RequestOutcome(self.me.name, Done()))

        if not self.is_base and not self.has_left:
            self.has_left = True
            if self.ring.is_member:
                self.records.hand_over(left)
            else:
                left()
        return self.effects()

    # Inside.

    def _write_id(self) -> str:
        self._requests += 1
        return f"{self.me.life} {self._requests} {self.me.name}"

    def _mend(self) -> None:
        self.records.repair()
        if self._has_to_return and self.ring.is_member:
            # What was lost meanwhile was restored without the subscriptions of this peer.
            self._has_to_return = False
            circle = to_wire(self.me.identifier)
            if self._asked_of_pieces is not None:
                lost = Lost(circle, circle, self.me.life)
                self._asked_of_pieces(self.me.name, lost, lambda _: None)

    def _look_for_predecessor(self) -> None:
        """A predecessor says in each round that it is one; if it does not, it is asked.

        Then it is known to be dead before the one before it has found a new successor.
        """
        before = self.ring.predecessor
        if before is not None and not self._is_heard and not self.asking.is_dead(before):

            def asked(reply: Reply | None) -> None:
                if reply is None:
                    self.membership.judge(before)

            self.asking.ask(before, Alive(), asked)
        self._is_heard = False

    def _judge(self, member: Member) -> None:
        self.membership.judge(member)

    def _has_died(self, member: Member) -> None:
        """A neighbour that is found dead is not waited for."""
        if member in self.ring.successors:
            self.ring.stabilise()
            self.records.repair()

    def _round(self) -> None:
        pointers = self.ring.predecessor, self.ring.successors
        # Where something has changed, more may.
        is_settled, self._pointers = pointers == self._pointers, pointers
        tick = self._settings.tick_seconds
        self.out.append(Wake(_TICK, tick if is_settled else tick / 4))
        self.membership.round()
        if not self.membership.has_lease:
            return
        if self.ring.is_member:
            self._look_for_predecessor()
            self.ring.stabilise()
            self.ring.fix_finger()
            self.records.repair()
            self.restoring.round()
            self.surplus.round()
        elif not self.has_left:
            self._contact = (self._contact + 1) % len(self._base)
            self.ring.join(self._base[self._contact])

    def _asked(self, sender: str, ask: Ask) -> None:
        def answer(reply: Reply) -> None:
            self.out.append(Send(sender, Answer(ask.number, reply)))

        if ask.life is not None:
            if ask.life != self.me.life or not self.ring.is_member:
                answer(Absent())
                return
            if not self.membership.has_lease:
                # It is put again; there will be a lease then, or another life.
                return
        if isinstance(ask.what, PieceQuestion):
            if self._asked_of_pieces is None:
                answer(Later())
            else:
                self._asked_of_pieces(sender, ask.what, answer)
            return
        match ask.what:
            case Rectify(member) | Leaving(member) | Renew(member) | Hold(Custody(owner=member)):
                if member.name != sender:
                    raise PeerError("dht.sender", peer=sender, given=member.name)
        match ask.what:
            case Alive():
                answer(Done())
                return
            case Renew() | ExpelMember() | Missing() as what:
                answer(self.membership.answer(what))
                return
        reply = self.ring.answer(ask.what)
        if reply is not None:
            answer(reply)
        else:
            self.records.answer(ask.what, answer)

    def _after(self, seconds: float, then: Callable[[], None]) -> None:
        self._requests += 1
        timer = f"{_RETRY}{self._requests}"
        self._retries[timer] = then
        self.out.append(Wake(timer, seconds))

    def _request(self, what: Get | Put, to: str, left: int) -> None:
        def found(where: Found | None) -> None:
            if where is None:
                replied(None)
            elif where.owner == self.me:
                self.records.answer(what, replied)
            else:
                self.asking.ask(where.owner, what, replied)

        def replied(reply: Reply | None) -> None:
            if isinstance(reply, Value | Stored | Conflict):
                self._deliver(to, RequestOutcome(what.key, reply))
            elif left:
                patience = self._settings.patience_seconds
                self._after(patience, lambda: self._request(what, to, left - 1))
            else:
                self._deliver(to, RequestOutcome(what.key, None))

        self.ring.find(identifier(what.key), found)

    def _deliver(self, to: str, outcome: RequestOutcome) -> None:
        self.out.append(Deliver(to, outcome))


def _location(where: Found | None) -> Location | None:
    return None if where is None else Location(where.owner, where.hops)

"""Chord: who stands where on the circle, kept right while members come, go and die.

A member knows a predecessor, up to `successors` successors and some fingers. Its *extended
successor list* is itself and its successors. The operations are the correct ones of Zave, with
r successors:

- A ring begins with a *stable base* of r + 1 members, which know each other and never go.
- *join*: the member p before the newcomer's place gives its successors, all of them at once; they
  become the newcomer's, and p its predecessor. Nobody else is told.
- *stabilise*: the first successor s is read; if it is dead, it is dropped and the next is read, at
  once. The list becomes s and the successors of s. If the predecessor of s lies between, it is
  read as well, and taken with its successors, but only if it is alive. Then the first successor is
  told.
- *rectify*: who says that this is its successor becomes the predecessor if it is nearer, or if the
  predecessor is dead, which is asked then. So a dead predecessor is never dropped without another.
- *fail*: a member stops. The operating assumption is that everybody keeps a live successor.

The invariant: every member has a live successor in its list, and at least r + 1 members
(*principals*) are skipped by nobody's extended successor list. The simulator checks it
after every event. From it follows that the best successors form one ring, in order, which
everybody reaches, and that there is nothing stabilisation cannot mend.

Differs from the paper: it reads other members atomically, here answers are on their way while
things go on, so a read may be of a moment ago. The base stays unskipped all the same: each list
that is ever made, held or sent consists of neighbours that were neighbours in a list before, or of
a narrower pair, or has lost a dead member; none of which can skip one that no list skips and that
does not die. A live successor is kept if the operating assumption is read with the answers that
are under way as lists that count. Silence is not death: a silent member is dead once all of the
base have expelled it and its lease has run out (`pathcast.dht.membership`), so a member that is
said to be dead does not act any more. A member all of whose successors are dead at once, as after a
split of the network, goes on with those of the base that follow it, which no list skips.
Lists are short instead of being filled up with places where nobody is. A life that is over never
comes back: a peer that is begun again stands elsewhere. Leaving is failing, said aloud.

Source: P. Zave, Reasoning about identifier spaces: how to make Chord correct, IEEE TSE 2017;
I. Stoica et al., Chord, SIGCOMM 2001, for fingers;
000, section 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pathcast.dht.asking import Questions
from pathcast.dht.identifiers import BITS, CIRCLE, is_between, is_in_range
from pathcast.dht.messages import (
    Absent,
    Done,
    Leaving,
    Member,
    Question,
    Read,
    Rectify,
    Reply,
    RouteReply,
    RouteRequest,
    State,
    from_wire,
    to_wire,
)

_HOPS_MAX = 4 * BITS
_TURNS_MAX = 8
"""Of one look-up: where the network is split, going back everywhere would find nothing."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where a place belongs.

    Attributes:
        owner: The first member at or after it, as the member before it knows.
        before: That member.
        successors: Its successors; `owner` is the first.
        hops: Messages to different members on the way there, the one to the owner included.
    """

    owner: Member
    before: Member
    successors: tuple[Member, ...]
    hops: int


@dataclass(slots=True)
class _Search:
    to: int
    then: Callable[[Found | None], None]
    way: list[Member]
    silent: list[Member] = field(default_factory=list)
    hops: int = 0
    turns: int = 0


class Ring:
    """The pointers of one member.

    Args:
        me: The member.
        asking: Its questions.
        successors: How many successors are kept (r).
        changed: Called after the predecessor or the successors have changed.
        base: The stable base.

    Attributes:
        predecessor: None as long as it is no member.
        successors: Nearest first; empty as long as it is no member.
        fingers: By the power of two whose place they follow.
    """

    def __init__(
        self,
        me: Member,
        asking: Questions,
        successors: int,
        changed: Callable[[], None],
        base: Sequence[Member],
    ) -> None:
        self.me = me
        self.predecessor: Member | None = None
        self.successors: tuple[Member, ...] = ()
        self.fingers: dict[int, Member] = {}
        self._asking = asking
        self._length = successors
        self._changed = changed
        self._base = tuple(base)
        self._stabilising = False
        self._joining = False
        self._has_left = False
        self._next_finger = 0

    @property
    def is_member(self) -> bool:
        """Whether it has joined, and not left."""
        return bool(self.successors)

    def owns(self, place: int) -> bool:
        """Whether a place lies between the predecessor and this member."""
        return self.predecessor is not None and is_in_range(
            self.predecessor.identifier, place, self.me.identifier
        )

    def others_for(self, place: int) -> tuple[Member, ...]:
        """Return possible holders of this member's records: its successors."""
        return self.successors

    # Operations.

    def begin(self, base: Sequence[Member]) -> None:
        """Be one of the stable base: r + 1 members or more, among them this one."""
        ring = sorted(base, key=lambda member: member.identifier)
        at = ring.index(self.me)
        ring = ring[at + 1 :] + ring[:at]
        self.predecessor, self.successors = ring[-1], tuple(ring[: self._length])

    def join(self, contact: Member) -> None:
        """Try to become a member, by way of one; to be repeated until `is_member`."""
        if self._joining or self.is_member:
            return

        def joined(found: Found | None) -> None:
            self._joining = False
            if found is None or self._has_left:
                return
            self.successors = found.successors
            self.predecessor = found.before
            self._changed()
            self.stabilise()

        self._joining = True
        self._walk(_Search(self.me.identifier, joined, []), contact)

    def end(self) -> None:
        """Be no member any more, and tell nobody."""
        self._has_left = True
        self.successors, self.predecessor = (), None

    def stabilise(self) -> None:
        """Read the successor, mend the list, tell the successor; nothing while that goes on."""
        if not self._stabilising and self.is_member:
            self._stabilising = True
            self._read_successor()

    def leave(self) -> None:
        """Be no member any more, and say so to those who point here."""
        self._has_left = True
        if not self.is_member:
            return
        neighbours = {self.successors[0], self.predecessor or self.successors[0]}
        for neighbour in sorted(neighbours):
            self._asking.ask(neighbour, Leaving(self.me), lambda _: None)
        self.end()

    def fix_finger(self) -> None:
        """Look up the next finger; each round of them takes O(log n) look-ups."""
        if not self.is_member:
            return
        me = self.me.identifier
        power = max(self._next_finger, self._power_after(self.successors[0]))
        if power >= BITS:
            self._next_finger = 0
            return

        def fixed(found: Found | None) -> None:
            if found is None or not self.is_member:
                return
            after = self._power_after(found.owner)
            for other in range(power, after):
                self.fingers[other] = found.owner
            self._next_finger = after

        self.find((me + (1 << power)) % CIRCLE, fixed)

    def find(self, place: int, then: Callable[[Found | None], None]) -> None:
        """Look up a place; `then` gets None if the way was lost, which a later try may find."""
        if not self.is_member:
            then(None)
        elif self.owns(place) and self.predecessor is not None:
            then(Found(self.me, self.predecessor, (self.me, *self.successors), 0))
        else:
            search = _Search(place, then, [])
            self._go_on(search, self.me, self._hop(place, ()))

    # What others ask.

    def answer(self, what: Question) -> Reply | None:
        """The answer to a question about pointers; None to any other."""
        if not self.is_member:
            return Absent()
        match what:
            case Read():
                return State(self.predecessor, self.successors)
            case RouteRequest(to, avoid):
                return self._hop(from_wire(to), avoid)
            case Rectify(member):
                self._rectify(member)
                return Done()
            case Leaving(member):
                self._left(member)
                return Done()
        return None

    # Stabilisation.

    def _read_successor(self) -> None:
        successor = self.successors[0]
        if self._asking.is_dead(successor) and len(self.successors) > 1:
            self._point_to(self.successors[1:])
            self._read_successor()
            return
        self._asking.ask(successor, Read(), lambda reply: self._has_read(successor, reply))

    def _has_read(self, successor: Member, reply: Reply | None) -> None:
        if not self.is_member:
            self._stabilising = False
            return
        if not isinstance(reply, State):
            self._point_to(self.successors[1:])
            self._read_successor()
            return
        self._point_to((successor, *reply.successors))
        nearer = reply.predecessor
        if nearer is None or not self._is_before(nearer, successor):
            self._tell()
        else:
            self._asking.ask(nearer, Read(), lambda reply: self._has_read_nearer(nearer, reply))

    def _has_read_nearer(self, nearer: Member, reply: Reply | None) -> None:
        if self.is_member and isinstance(reply, State):
            self._point_to((nearer, *reply.successors))
        self._tell()
        # Many may have come between at once: the next is not left to the next round.
        if isinstance(reply, State):
            self.stabilise()

    def _tell(self) -> None:
        self._stabilising = False
        if self.is_member:
            self._asking.ask(self.successors[0], Rectify(self.me), lambda _: None)

    def _point_to(self, successors: Sequence[Member]) -> None:
        # Who has lost all successors at once goes on with the base, which no list skips.
        new = tuple(successors[: self._length]) or self._of_base()
        before, self.successors = self.successors, new
        if before != self.successors:
            self._changed()

    def _of_base(self) -> tuple[Member, ...]:
        me = self.me.identifier
        others = (member for member in self._base if member != self.me)
        ahead = sorted(others, key=lambda member: (member.identifier - me) % CIRCLE)
        return tuple(ahead[: self._length])

    def _is_before(self, member: Member, other: Member) -> bool:
        return is_between(self.me.identifier, member.identifier, other.identifier)

    def _rectify(self, member: Member) -> None:
        known = self.predecessor
        if known == member:
            return
        if (
            known is None
            or is_between(known.identifier, member.identifier, self.me.identifier)
            or self._asking.is_dead(known)
        ):
            self._follow(member)
        else:
            self._asking.ask(known, Read(), lambda reply: self._has_asked(known, member, reply))

    def _has_asked(self, known: Member, member: Member, reply: Reply | None) -> None:
        if reply is None and self.predecessor == known and self.is_member:
            self._follow(member)

    def _follow(self, member: Member) -> None:
        self.predecessor = member
        self._changed()

    def _left(self, member: Member) -> None:
        """A first successor that has left is dropped as if it had been asked, if there are more."""
        if self.successors[0] == member and len(self.successors) > 1 and not self._stabilising:
            self._point_to(self.successors[1:])
            self.stabilise()

    # Look-up.

    def _power_after(self, member: Member) -> int:
        """The least i such that the place 2^i further lies beyond a member."""
        return ((member.identifier - self.me.identifier) % CIRCLE).bit_length()

    def _hop(self, place: int, avoid: Sequence[Member]) -> RouteReply:
        me = self.me.identifier
        if is_in_range(me, place, self.successors[0].identifier):
            return RouteReply(self.successors, True)
        near = [
            member
            for member in {*self.fingers.values(), *self.successors}
            if is_between(me, member.identifier, place) and member not in avoid
        ]
        if not near:
            return RouteReply((), False)
        return RouteReply((max(near, key=lambda member: (member.identifier - me) % CIRCLE),), False)

    def _go_on(self, search: _Search, asked: Member, hop: RouteReply) -> None:
        if hop.done:
            hops = search.hops + (hop.members[0] != self.me)
            search.then(Found(hop.members[0], asked, hop.members, hops))
        elif search.hops >= _HOPS_MAX:
            search.then(None)
        elif hop.members:
            search.way.append(asked)
            self._walk(search, hop.members[0])
        else:
            self._turn_back(search)

    def _walk(self, search: _Search, member: Member) -> None:
        step = RouteRequest(to_wire(search.to), tuple(search.silent[-64:]))
        search.hops += 1

        def answered(reply: Reply | None) -> None:
            if isinstance(reply, RouteReply) and (reply.members or not reply.done):
                self._go_on(search, member, reply)
            else:
                self._forget(member)
                search.silent.append(member)
                self._turn_back(search)

        self._asking.ask(member, step, answered)

    def _turn_back(self, search: _Search) -> None:
        search.turns += 1
        if not search.way or search.hops >= _HOPS_MAX or search.turns > _TURNS_MAX:
            search.then(None)
            return
        before = search.way.pop()
        if before == self.me:
            hop = self._hop(search.to, search.silent) if self.is_member else RouteReply((), False)
            if hop.members:
                self._go_on(search, before, hop)
            else:
                search.then(None)
        else:
            self._walk(search, before)

    def _forget(self, member: Member) -> None:
        """A dead finger is of no use; a dead successor is the business of stabilisation."""
        for power in [power for power, other in self.fingers.items() if other == member]:
            del self.fingers[power]

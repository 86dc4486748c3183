"""Custody: the right to say that an arc holds nothing, given only to members that hold all of it.

A peer that comes to own a range may hold all that was stored there, or nothing, because everybody
who held it has died. It cannot tell from what it holds. So each arc of the circle is in somebody's
*custody*: an owner and the *holders*, of whom each has every record of it that was acknowledged.
The rules that keep this true:

- An owner acknowledges a change of a record only when all holders have it.
- Custody changes hands, and holders change, with a greater number, and only when every holder
  before that is alive has agreed: the old ones first, who thereby learn of the new ones, then the
  new ones, who have been given all records by then. So a holder that is alive knows of every other
  that is; and an owner that has agreed to another acknowledges nothing there any more.
- A new owner needs one holder that is alive. It may be one itself, which is the rule when its
  predecessor has died; else it asks its successors, and reads all records from one that has agreed.
- A member that was never a holder of an arc, or has dropped copies of it since it was given them,
  does not agree to be one (`Custody.given_at`); it is given them again first.
- The stable base begins with the custody of the whole circle.

Members are asked who holds an arc by a walk round the ring (`pathcast.dht.walking`) that skips
nobody: a newcomer may not know its next successor, and that one may be the only holder who says so
while changes of custody are under way.

Where nobody is left who holds an arc, it is *in doubt*: what was there is lost, and nobody says
what is there, until it has been restored (`pathcast.dht.restoring`). An arc for which custody
cannot be shown is in doubt, not empty; so whatever goes wrong, nothing is missing silently.

A dead member was expelled by all of the base, and has no lease any more
(`pathcast.dht.membership`). An owner without a lease says and acknowledges nothing, since somebody
else may own its range by then.

Source: the shape is that of primary and backups with a numbered configuration (Lamport, Malkhi and
Zhou, Vertical Paxos and primary-backup replication, PODC 2009), the old configuration being its own
master; 000 has no copies. What a stable base is: Zave (`pathcast.dht.ring`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pathcast.dht.arcs import Arcs
from pathcast.dht.asking import Questions
from pathcast.dht.identifiers import CIRCLE
from pathcast.dht.membership import Membership
from pathcast.dht.messages import (
    Claimed,
    Claims,
    Custody,
    Done,
    Hold,
    Holders,
    Later,
    Member,
    Reply,
    from_wire,
    to_wire,
)
from pathcast.dht.ring import Ring
from pathcast.dht.walking import GoOn, walk

if TYPE_CHECKING:
    from pathcast.dht.records import RecordStore

Arc = tuple[int, int]


class Custodian:
    """One member's custody of its own range, and its knowledge of others'.

    Args:
        ring: Its pointers.
        asking: Its questions.
        copies: How many members are to hold a record.
        holdings: Its records.
        membership: Its lease.

    Attributes:
        doubtful: Arcs of its range that nobody holds who is alive.
        greatest: Number of a custody that it has heard of.
    """

    def __init__(
        self,
        ring: Ring,
        asking: Questions,
        copies: int,
        holdings: RecordStore,
        membership: Membership,
    ) -> None:
        self.doubtful: list[Arc] = []
        self._ring = ring
        self._asking = asking
        self._copies = copies
        self._holdings = holdings
        self._membership = membership
        self._known = Arcs[Custody]()
        self._mine = Arcs[Custody]()
        self._others = Arcs[tuple[int, frozenset[Member]]]()
        self.greatest = 0
        self._is_busy = False

    def begin(self, base: Sequence[Member]) -> None:
        """Be one of the stable base, which has all of the circle, and nothing in it."""
        ring = sorted(base, key=lambda member: member.identifier)
        for at, owner in enumerate(ring):
            holders = tuple((ring[at:] + ring[:at])[: self._copies])
            custody = Custody(
                to_wire(ring[at - 1].identifier),
                to_wire(owner.identifier),
                1,
                owner,
                holders,
                (),
                is_whole=True,
            )
            if self._ring.me in holders:
                self._know(custody)
            if self._ring.me == owner:
                self._mine.put(*_arc(custody), custody)

    # What the owner of a key has to know.

    def of(self, place: int) -> Custody | None:
        """The custody that this member has of a place, as its owner; None: it has none (now)."""
        return self._mine.at(place) if self._membership.has_lease else None

    def is_whole(self, place: int) -> bool:
        """Whether what is held of a place here is all that was ever acknowledged."""
        custody = self.of(place)
        return custody is not None and custody.is_whole

    @property
    def is_complete(self) -> bool:
        """Whether it has custody of all of its range."""
        arc = self.range
        return arc is not None and not any(self._mine.gaps(*arc))

    @property
    def in_doubt(self) -> list[Arc]:
        """Arcs of its range that it holds, but are not restored."""
        if (arc := self.range) is None:
            return []
        return [(low, high) for low, high, its in self._mine.within(*arc) if not its.is_whole]

    @property
    def range(self) -> Arc | None:
        """The arc that is this member's; None if it does not know."""
        before = self._ring.predecessor
        if before is None or not self._ring.is_member:
            return None
        return before.identifier, self._ring.me.identifier

    # What others ask.

    def answer(self, what: Claims | Hold | Holders) -> Claimed | Done | Later:
        """Answer with the known custody, or agree to a proposal."""
        if isinstance(what, Claims):
            return self._claimed(from_wire(what.low), from_wire(what.high))
        if isinstance(what, Holders):
            return self._agreed()
        asked = what.custody
        low, high = _arc(asked)
        me = self._ring.me
        for _, its_high, custody in self._known.within(low, high):
            is_repeated = (custody.number, custody.owner) == (asked.number, asked.owner)
            if custody.number > what.based_on and not is_repeated:
                return self._claimed(low, high)
            # A live owner gives way to a member between it and the arc, and to no other.
            if self._mine.at(its_high) is not None and _far(its_high, me) < _far(
                its_high, asked.owner
            ):
                return self._claimed(low, high)
        given_at = dict(asked.given_at).get(me)
        has_all = self._is_holder(low, high) or given_at == self._holdings.droppings
        is_refused = me in asked.holders and not has_all
        # Not to be a holder is agreed to all the same: the owner goes on without this member.
        others = tuple(member for member in asked.holders if member != me)
        self._know(replace(asked, holders=others) if is_refused else asked)
        if asked.owner != me:
            self._mine.remove(low, high)
        return Later() if is_refused else Done()

    # Of copies that nobody needs.

    def may_need(self, place: int) -> bool:
        """Whether this member holds a place, or is about to, as far as it knows itself."""
        known = self._known.at(place)
        is_its = known is not None and self._ring.me in (known.owner, *known.holders)
        return is_its or self._ring.owns(place)

    def released(self, agreed: Iterable[Custody]) -> list[Arc]:
        """Learn which custody was agreed to.

        Args:
            agreed: Custody that an owner has (`Holders`). A custody that was only proposed, to this
                member or others, releases nobody.

        Returns:
            Arcs that this member does not hold, by a custody as new as any that it has heard of.
        """
        me = self._ring.me
        found = []
        for custody in agreed:
            if me in (custody.owner, *custody.holders):
                continue
            arc = _arc(custody)
            its = list(self._known.gaps(*arc))
            for low, high, known in self._known.within(*arc):
                if known.number <= custody.number and me not in (known.owner, *known.holders):
                    its.append((low, high))
            for low, high in its:
                self._know(_cut(custody, low, high))
            found += its
        return found

    # What this member does.

    def round(self) -> None:
        """See to it that this member has custody of its range, and that its successors hold it."""
        arc = self.range
        if self._is_busy or arc is None:
            return
        self._is_busy = True
        gaps = list(self._mine.gaps(*arc))
        if gaps:
            self._find_claims(gaps)
        else:
            self.doubtful = []
            self._change_holders(arc)

    def may_adopt(self, low: int, high: int) -> bool:
        """Whether nobody was found to hold an arc, and no search or change is under way."""
        return (low, high) in self.doubtful and not self._is_busy

    def adopt(self, low: int, high: int) -> None:
        """Begin to hold an arc that nobody holds; it is in doubt. Only if `may_adopt` says so."""
        me = self._ring.me
        custody = self._new(low, high, me, (me,), (), is_whole=False)
        self._is_busy = True

        def proposed(agreed: set[Member] | None) -> None:
            if agreed is not None:
                self._use(custody)
            self._is_busy = False
            self.round()

        self._propose(custody, 0, (), proposed)

    def restored(self, low: int, high: int) -> None:
        """An arc in doubt is whole again, by its owner's word."""
        for start, end, custody in list(self._mine.within(low, high)):
            whole = replace(_cut(custody, start, end), is_whole=True)
            self._mine.put(start, end, whole)
        self.round()

    def _find_claims(self, gaps: Iterable[Arc]) -> None:
        """Take over what this member holds already; for the rest, ask who does."""
        claims: list[Custody] = []
        open_: list[Arc] = []
        for low, high in gaps:
            found = self._held(self._known, low, high, self._ring.me)
            claims += found
            open_ += _without((low, high), found)
        self._ask_for_claims(claims, open_)

    def _ask_for_claims(self, claims: list[Custody], open_: list[Arc]) -> None:
        """Ask one member after the other round the ring, until somebody holds it, or nobody."""

        def visit(member: Member, go_on: GoOn) -> None:
            waiting = list(open_)
            near: set[Member | None] = set()

            def answered(arc: Arc, reply: Reply | None) -> None:
                if isinstance(reply, Claimed):
                    near.update((reply.predecessor, *reply.successors))
                    found = self._claims_of(member, reply, arc)
                    claims.extend(found)
                    open_.remove(arc)
                    open_.extend(_without(arc, found))
                waiting.remove(arc)
                if not waiting and open_:
                    go_on(near)
                elif not waiting:
                    asked_all()

            for arc in list(open_):
                claim = Claims(*map(to_wire, arc))
                self._asking.ask(member, claim, partial(answered, arc))

        def asked_all() -> None:
            self.doubtful = open_
            self._take_over(claims)

        if open_:
            walk(self._ring, self._asking, visit, asked_all)
        else:
            asked_all()

    def _claims_of(self, member: Member, reply: Claimed, arc: Arc) -> list[Custody]:
        """Return the parts of an arc that a member claims to hold."""
        theirs = Arcs[Custody]()
        for custody in reply.custodies:
            self.greatest = max(self.greatest, custody.number)
            theirs.put(*_arc(custody), custody)
        return self._held(theirs, *arc, member)

    def _take_over(self, claims: list[Custody]) -> None:
        if not claims:
            self._is_busy = False
            return
        before = claims.pop()
        me = self._ring.me
        holders = tuple(self._live(before.holders))
        told = (before.owner, *before.leaving)
        leaving = tuple(sorted(set(self._live(told)).difference(holders, [me])))
        custody = self._new(*_arc(before), me, holders, leaving, is_whole=before.is_whole)
        custody = replace(custody, given_at=before.given_at)

        def proposed(agreed: set[Member] | None) -> None:
            live = [member for member in holders if agreed is not None and member in agreed]
            if agreed is None or not (live or me in holders):
                self._take_over(claims)
            elif me in holders:
                taken(live, True)
            else:
                self._holdings.fetch(live[0], *_arc(custody), partial(taken, live))

        def taken(live: Sequence[Member], are_here: bool) -> None:
            if are_here:
                both = (me, *(member for member in live if member != me))
                self._use(replace(custody, holders=both, leaving=()))
            self._take_over(claims)

        self._propose(custody, before.number, (), proposed)

    def _change_holders(self, arc: Arc) -> None:
        """Let the members hold the range that are to."""
        me = self._ring.me
        wanted = (me, *list(self._live(self._ring.successors))[: self._copies - 1])
        for is_whole, group in groupby(self._mine.within(*arc), lambda part: part[2].is_whole):
            parts = list(group)
            low, high = parts[0][0], parts[-1][1]
            holders = {member for *_, custody in parts for member in custody.holders}
            new = [m for m in wanted if any(m not in its.holders for *_, its in parts)]
            are_right = all(
                set(its.holders) == set(wanted) and self._said(at, its) is is_whole
                for _, at, its in parts
            )
            can = all(self._holdings.has_all(member, low, high) for member in wanted[1:])
            if can and not are_right:
                leaving = {member for *_, custody in parts for member in custody.leaving}
                before = replace(parts[0][2], holders=tuple(holders), leaving=tuple(leaving))
                self._change(low, high, before, wanted, new)
                return
        self._is_busy = False

    def _change(
        self, low: int, high: int, before: Custody, wanted: Sequence[Member], new: Sequence[Member]
    ) -> None:
        me = self._ring.me
        number = max(known.number for *_, known in self._known.within(low, high))
        told = {*before.holders, *before.leaving}
        for *_, (other, members) in self._others.within(low, high):
            # Somebody took itself for the owner, and some have agreed; this one has not.
            number = max(number, other)
            told |= members
        leaving = tuple(sorted(set(self._live(told)).difference(wanted)))
        custody = self._new(low, high, me, tuple(wanted), leaving, is_whole=before.is_whole)
        given_at = tuple((member, self._holdings.given_at(member)) for member in wanted[1:])
        custody = replace(custody, given_at=given_at)
        # From now on all of them have to have a change.
        both = tuple({*before.holders, *new})
        for start, end, its in list(self._mine.within(low, high)):
            self._mine.put(start, end, replace(_cut(its, start, end), holders=both))

        def proposed(agreed: set[Member] | None) -> None:
            if agreed is not None and agreed.issuperset(m for m in wanted if m != me):
                self._others.remove(low, high)
                self._use(replace(custody, leaving=()))
            self._is_busy = False
            if agreed is not None:
                self.round()

        self._propose(custody, number, new, proposed)

    def _propose(
        self,
        custody: Custody,
        based_on: int,
        new: Sequence[Member],
        then: Callable[[set[Member] | None], None],
    ) -> None:
        """Ask all whom it concerns to agree; `then` gets who has, or None if somebody has not.

        Who does not agree only because it has not all records is given them. This member does not
        agree itself if it has agreed meanwhile to hold some of the arc by a later custody than the
        one that the proposal is based on: it would forget that it is a holder.
        """
        me = self._ring.me
        agreed: set[Member] = set()
        claims = self._held(self._known, *_arc(custody), me)
        if any(its.number > based_on for its in claims):
            then(None)
            return
        self._know(custody)

        def ask(members: Sequence[Member], go_on: Callable[[], None]) -> None:
            waiting = set(members)
            is_refused = False

            def answered(member: Member, reply: Reply | None) -> None:
                nonlocal is_refused
                waiting.discard(member)
                if isinstance(reply, Done):
                    agreed.add(member)
                elif isinstance(reply, Later):
                    self._holdings.give_all(member)
                elif isinstance(reply, Claimed):
                    is_refused = True
                    for each in reply.custodies:
                        self._hear_of(each)
                if not waiting:
                    if is_refused:
                        then(None)
                    else:
                        go_on()

            if not waiting:
                go_on()
            for member in members:
                self._asking.ask(member, Hold(custody, based_on), partial(answered, member))

        old = [m for m in (*custody.holders, *custody.leaving) if m != me and m not in new]
        ask(list(self._live(old)), lambda: ask(new, lambda: then(agreed)))

    def _hear_of(self, custody: Custody) -> None:
        """Somebody has another custody than this member; it may have been proposed in vain."""
        self.greatest = max(self.greatest, custody.number)
        members = {custody.owner, *custody.holders, *custody.leaving}
        for low, high, known in list(self._known.within(*_arc(custody))):
            if custody.number > known.number or custody.owner != known.owner:
                _, others = self._others.at(high) or (0, frozenset())
                self._others.put(low, high, (custody.number, frozenset(members | others)))

    def _use(self, custody: Custody) -> None:
        """Put an agreed proposal in force, where nothing has replaced it meanwhile."""
        for low, high, known in list(self._known.within(*_arc(custody))):
            if known.owner == custody.owner and known.number == custody.number:
                its = _cut(custody, low, high)
                self._known.put(low, high, its)
                self._mine.put(low, high, its)

    def _new(
        self,
        low: int,
        high: int,
        owner: Member,
        holders: tuple[Member, ...],
        leaving: tuple[Member, ...],
        *,
        is_whole: bool,
    ) -> Custody:
        number = self.greatest + 1
        wire = to_wire(low), to_wire(high)
        return Custody(*wire, number, owner, holders, leaving, is_whole=is_whole)

    def _know(self, custody: Custody) -> None:
        self.greatest = max(self.greatest, custody.number)
        self._known.put(*_arc(custody), custody)

    def _said(self, place: int, mine: Custody) -> bool | None:
        """Whether those who hold a place were told that it is whole; None: not all have agreed."""
        custody = self._known.at(place)
        is_agreed = custody is not None and custody.number == mine.number
        return custody.is_whole if custody is not None and is_agreed else None

    def _live(self, members: Iterable[Member]) -> Iterable[Member]:
        return (member for member in members if not self._asking.is_dead(member))

    def _claimed(self, low: int, high: int) -> Claimed:
        found = tuple(_cut(its, a, b) for a, b, its in self._known.within(low, high))
        return Claimed(found, self._ring.predecessor, self._ring.successors)

    def _agreed(self) -> Claimed:
        """The custody that this member has as an owner."""
        found = (_cut(its, a, b) for a, b, its in self._mine.within(0, 0))
        return Claimed(tuple(found), self._ring.predecessor, self._ring.successors)

    def _is_holder(self, low: int, high: int) -> bool:
        """Whether this member has agreed to hold all of an arc."""
        me = self._ring.me
        is_all_known = not any(self._known.gaps(low, high))
        return is_all_known and all(
            me in known.holders for *_, known in self._known.within(low, high)
        )

    def _held(self, known: Arcs[Custody], low: int, high: int, holder: Member) -> list[Custody]:
        """Return the known holding of a member on an arc."""
        found = known.within(low, high)
        return [_cut(custody, a, b) for a, b, custody in found if holder in custody.holders]


def _arc(custody: Custody) -> Arc:
    return from_wire(custody.low), from_wire(custody.high)


def _cut(custody: Custody, low: int, high: int) -> Custody:
    return replace(custody, low=to_wire(low), high=to_wire(high))


def _far(place: int, member: Member) -> int:
    return (member.identifier - place) % CIRCLE


def _without(arc: Arc, claims: Iterable[Custody]) -> list[Arc]:
    left = Arcs[Custody]()
    for custody in claims:
        left.put(*_arc(custody), custody)
    return list(left.gaps(*arc))

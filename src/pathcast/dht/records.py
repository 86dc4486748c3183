"""Records under keys, each at the owner of its key and at the successors that follow it.

A record has a version; a change says which one it is based on, and is refused if there is another,
so that what comes late or twice does no harm and whoever reads, changes and writes loses nothing.
It is done by the owner:

1. All successors are asked what they hold under the key; the newest counts. So a member that has
   just become the owner needs no state of its own.
2. The first `copies - 1` of those that answered are given the new record. One that holds something
   newer, or another record of that version, refuses. Then the owner takes it itself, by the same
   rule. If all have it, it is acknowledged; if not, whoever asked looks up the owner and tries
   again, and step 1 finds what was begun.

A read gives what it found to as many first, if they do not have it, so what has been read does not
go away either.

Nothing is said of a key but by whoever has custody of it (`pathcast.dht.custody`), so what is lost
is not taken for empty. Nothing acknowledged is lost while, between two repairs, fewer than `copies`
of the members around a key fail. Two members that take themselves for the owner, as happens while a
newcomer is not yet known to all, have a holder in common, which takes the change of one of them. A
repair (after every change of neighbours, and now and then) gives each successor what it lacks of
the owner's range; a member whose range grows reads it from one that holds it.

Versions of a key never come again, not even after all of its records were lost: above a counter
stands the number of the custody in which the record was written.

A member drops copies of an arc that it does not hold (`pathcast.dht.surplus`), and counts how often
it did. An owner that has given it records since then, and lets it hold the arc, says how often that
was; so it never counts on copies that were dropped. Versions of what was removed stay at the
holders.

Source: 000, section 2.3 (only that a key has a peer); Stoica et al. 2001, section 7, for replicas
at successors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from pathcast.dht.asking import Questions
from pathcast.dht.batches import Batches, Taken, held_records, in_batches, record_size
from pathcast.dht.custody import Custodian
from pathcast.dht.identifiers import identifier, is_in_range
from pathcast.dht.messages import (
    Claims,
    Conflict,
    CopiesHeld,
    Copy,
    Fetch,
    Get,
    Hold,
    Holders,
    Later,
    Member,
    Put,
    Question,
    Range,
    RecordCopies,
    Reply,
    RingRecord,
    Stored,
    Value,
    from_wire,
    to_wire,
)

Answered = TypeVar("Answered")
_VERSIONS_BITS = 32
"""Versions of a key in one custody; above them stands the number of the custody."""


class Neighbourhood(Protocol):
    """A member's knowledge of the members around it; `pathcast.dht.ring.Ring` is one."""

    me: Member
    predecessor: Member | None
    """Whose range ends where this member's begins; None where ranges do not follow one another."""
    successors: tuple[Member, ...]
    """Who gets copies of its whole range; none where each key has others."""

    @property
    def is_member(self) -> bool:
        """Whether it has joined, and not left."""

    def owns(self, place: int) -> bool:
        """Whether a place is this member's."""

    def others_for(self, place: int) -> tuple[Member, ...]:
        """Return other possible holders of a place, the next owner first."""


class RecordStore:
    """The records that one member holds, and its duties for the keys it owns.

    Args:
        ring: Its pointers.
        asking: Its questions.
        copies: How many members hold a record, the owner included; at most r.

    Attributes:
        held: By key, removed ones included.
        droppings: How often copies were dropped.
    """

    def __init__(self, ring: Neighbourhood, asking: Questions, copies: int) -> None:
        self.held: dict[str, RingRecord] = {}
        self._ring = ring
        self._asking = asking
        self._batches = Batches(asking, self._has_copied)
        self._copies = copies
        self.droppings = 0
        self._busy: set[str] = set()
        self._owed: dict[Member, set[str]] = {}
        self._giving: set[Member] = set()
        self._given_at: dict[Member, int] = {}
        self._given_for: Member | None = None
        self._custody: Custodian | None = None

    def answer(self, what: Question, then: Callable[[Reply], None]) -> None:
        """Answer a question about records, now or when others have answered."""
        match what:
            case Fetch(known):
                then(held_records(known, self.held.get))
            case Range(low, high, after):
                then(self._in_range(from_wire(low), from_wire(high), after))
            case Copy(records):
                taken = [self._take(record) for record in records]
                refused = tuple(n for n, is_taken in enumerate(taken) if not is_taken)
                then(CopiesHeld(refused, self.droppings))
            case Claims() | Hold() | Holders() if self._custody is not None:
                then(self._custody.answer(what))
            case Get() | Put() if self.is_whole(what.key):
                self.serve(what, then)
            case _:
                then(Later())

    def keep_custody(self, custody: Custodian) -> None:
        """From now on nothing is said but of what is in this member's custody."""
        self._custody = custody

    def is_whole(self, key: str) -> bool:
        """Whether what is held under a key is all that was ever acknowledged."""
        return self._custody is None or self._custody.is_whole(identifier(key))

    def value(self, key: str) -> Value:
        """Return this member's value of a key."""
        record = self.held.get(key)
        return Value(record.value, record.version) if record else Value(None, 0)

    def send(self) -> None:
        """Send what was put together since the event began."""
        self._batches.send()

    def repair(self) -> None:
        """Give successors what they lack, and fetch what this member lacks of its range."""
        if not self._ring.is_member:
            return
        predecessor = self._ring.predecessor
        live = [m for m in self._ring.successors if not self._asking.is_dead(m)]
        targets = live[: self._copies - 1]
        known = self._owed if predecessor == self._given_for else {}
        self._given_for = predecessor
        self._owed = {m: known[m] if m in known else set(self.held) for m in targets}
        self._given_at = {m: n for m, n in self._given_at.items() if m in targets}
        for member in targets:
            self._give(member)
        if self._custody is not None:
            self._custody.round()

    # For the custodian.

    def has_all(self, member: Member, low: int, high: int) -> bool:
        """Whether a successor has been given all that is held of an arc."""
        owed = self._owed.get(member)
        if owed is None or member not in self._given_at:
            return False
        return not any(is_in_range(low, identifier(k), high) for k in owed)

    def given_at(self, member: Member) -> int:
        """How often a member had dropped copies when it was given what it has been given.

        Only of a member that has all of some arc.
        """
        return self._given_at[member]

    def give_all(self, member: Member) -> None:
        """A member may have dropped what it was given: it is given all anew."""
        self._given_at.pop(member, None)
        if member in self._owed:
            self._owed[member] = set(self.held)

    def fetch(self, member: Member, low: int, high: int, then: Callable[[bool], None]) -> None:
        """Take all records that a member holds of an arc; says whether they came."""
        self._fetch(member, low, high, None, then)

    def hand_over(self, then: Callable[[], None]) -> None:
        """Give what this member holds to one more successor than usual, before it leaves."""
        batches = list(in_batches(self._mine(self.held), record_size))

        def go_on(_: object = None) -> None:
            if batches:
                ask = partial(self._asking.ask, what=Copy(tuple(batches.pop())))
                self._ask_all(self._ring.successors[: self._copies], ask, go_on)
            else:
                then()

        go_on()

    def clear(self, low: int, high: int) -> None:
        """Put the removal of what is held of an arc in its place."""
        for key, record in list(self.held.items()):
            if record.value is not None and is_in_range(low, identifier(key), high):
                self._take(RingRecord(key, None, record.version + 1, record.write))

    def drop(self, low: int, high: int) -> None:
        """Drop the copies of an arc, which this member does not hold."""
        gone = [key for key in self.held if is_in_range(low, identifier(key), high)]
        for key in gone:
            del self.held[key]
            for owed in self._owed.values():
                owed.discard(key)
        self.droppings += bool(gone)

    # For keys of its own.

    def serve(self, what: Get | Put, then: Callable[[Reply], None]) -> None:
        """Answer a request (`answer`), also from an arc in doubt."""
        key = what.key
        place = identifier(key)
        if key in self._busy or not self._ring.owns(place) or not self._is_kept(place):
            then(Later())
            return
        asked = self._others_for(place)

        def has_read(found: list[tuple[Member, tuple[RingRecord, ...]]]) -> None:
            live = [member for member, _ in found]
            if len(live) < self._copies - 1 or not self._is_kept(place):
                served(Later())
                return
            record = self._newest(key, [records for _, records in found])
            if isinstance(what, Put) and (record is None or record.write != what.write):
                version = record.version if record else 0
                if version != what.based_on:
                    served(Conflict(version))
                    return
                newer = max(version + 1, self._version_floor(place))
                record = RingRecord(key, what.value, newer, what.write)
            elif isinstance(what, Get) and record and self._is_placed(record, found):
                served(Value(record.value, record.version))
                return
            self._place(record, live, set(asked) - set(live), what, served)

        def served(reply: Reply) -> None:
            self._busy.discard(key)
            then(reply)

        self._busy.add(key)
        ask = partial(self._batches.fetch, key=key, mine=self.held.get(key))
        self._ask_all(asked, ask, has_read)

    def _is_kept(self, place: int) -> bool:
        return self._custody is None or self._custody.of(place) is not None

    def _version_floor(self, place: int) -> int:
        """No version that is less is new: no two records of a key have one, whatever was lost."""
        custody = None if self._custody is None else self._custody.of(place)
        return 0 if custody is None else custody.number - 1 << _VERSIONS_BITS

    def _holders(self, place: int) -> set[Member]:
        """Return the members that must have a change before it is acknowledged."""
        custody = None if self._custody is None else self._custody.of(place)
        return set() if custody is None else {*custody.holders} - {self._ring.me}

    def _others_for(self, place: int) -> list[Member]:
        """Return possible holders of a place: the next owners, and present holders."""
        others = self._ring.others_for(place)
        holders = sorted(self._holders(place).difference(others))
        return [*others, *(member for member in holders if not self._asking.is_dead(member))]

    def _is_placed(
        self, record: RingRecord, found: Sequence[tuple[Member, tuple[RingRecord, ...]]]
    ) -> bool:
        """Whether a record that was read is where it would be placed, so that it need not be."""
        holders = found[: self._copies - 1]
        is_held = self.held.get(record.key) == record
        return is_held and all(records == (record,) for _, records in holders)

    def _place(
        self,
        record: RingRecord | None,
        live: Sequence[Member],
        dead: set[Member],
        what: Get | Put,
        then: Callable[[Reply], None],
    ) -> None:
        if record is None:
            then(Value(None, 0))
            return

        place = identifier(record.key)
        holders = self._holders(place)
        among = [m for n, m in enumerate(live) if n < self._copies - 1 or m in holders]

        def placed(replies: list[tuple[Member, Taken]]) -> None:
            have = {member for member, taken in replies if taken.is_held}
            # Who holds it may be others by now, or somebody else's to say.
            must = {m for m in self._holders(place) - dead if not self._asking.is_dead(m)}
            all_have = len(have) == len(among) and must <= have and self._is_kept(place)
            is_placed = all_have and self._take(record)
            for member, taken in replies:
                is_there = taken.is_held and taken.droppings == self._given_at.get(member)
                if is_there and is_placed and member in self._owed:
                    self._owed[member].discard(record.key)
            if not is_placed:
                then(Later())
            elif isinstance(what, Put):
                then(Stored(record.version))
            else:
                then(Value(record.value, record.version))

        ask = partial(self._batches.copy, record=record)
        self._ask_all(among, ask, placed)

    def _newest(self, key: str, held: Sequence[tuple[RingRecord, ...]]) -> RingRecord | None:
        """The newest record; of two of one version that which more hold, made newer than both."""
        found = Counter(record for records in held for record in records)
        if key in self.held:
            found[self.held[key]] += 1
        if not found:
            return None
        best = max(found, key=lambda record: (record.version, found[record], record.write))
        if any(other.version == best.version and other != best for other in found):
            return msgspec.structs.replace(best, version=best.version + 1)
        return best

    def _ask_all(
        self,
        members: Sequence[Member],
        ask: Callable[..., None],
        then: Callable[[list[tuple[Member, Answered]]], None],
    ) -> None:
        """Ask each; `then` gets the answers in the order of the members, without the dead."""
        replies: dict[Member, Answered | None] = {}

        def answered(reply: Answered | None, *, member: Member) -> None:
            replies[member] = reply
            if len(replies) == len(members):
                then([(m, r) for m in members if (r := replies[m]) is not None])

        if not members:
            then([])
        for member in members:
            ask(member, then=partial(answered, member=member))

    # Copies.

    def _take(self, record: RingRecord) -> bool:
        held = self.held.get(record.key)
        if held is None or record.version > held.version:
            self.held[record.key] = record
            for owed in self._owed.values():
                owed.add(record.key)
            return True
        return held == record

    def _mine(self, keys: Iterable[str]) -> list[RingRecord]:
        """Records of its own range, in the order of keys."""
        return [self.held[key] for key in sorted(keys) if self._ring.owns(identifier(key))]

    def _give(self, member: Member) -> None:
        """Give a successor what it is owed: what has changed, or all if neighbours have."""
        if member in self._giving:
            return
        owed = self._owed[member]
        # What is not of this range stays owed: the predecessor may be gone, and come back.
        batch = tuple(next(in_batches(self._mine(owed), record_size), ()))
        # Without copies it says how often it has dropped some.
        if not batch and member in self._given_at:
            if self._custody is not None:
                self._custody.round()
            return

        def has_given(reply: Reply | None) -> None:
            self._giving.discard(member)
            if isinstance(reply, CopiesHeld):
                self._has_copied(member, reply)
            if reply is not None and self._owed.get(member) is owed:
                # What was refused, it has already, or a reader will decide.
                given = (each for each in batch if self.held.get(each.key) == each)
                owed.difference_update(each.key for each in given)
                self._give(member)

        self._giving.add(member)
        self._asking.ask(member, Copy(batch), has_given)

    def _has_copied(self, member: Member, reply: CopiesHeld) -> None:
        """A successor that has dropped copies since it was given some is given all anew."""
        if member not in self._owed:
            return
        if self._given_at.get(member, reply.droppings) != reply.droppings:
            self.give_all(member)
        self._given_at[member] = reply.droppings

    def _fetch(
        self, member: Member, low: int, high: int, after: str | None, then: Callable[[bool], None]
    ) -> None:
        def fetched(reply: Reply | None) -> None:
            if not isinstance(reply, RecordCopies):
                then(False)
                return
            for record in reply.records:
                self._take(record)
            if reply.more and reply.records:
                self._fetch(member, low, high, reply.records[-1].key, then)
            else:
                then(True)

        self._asking.ask(member, Range(to_wire(low), to_wire(high), after), fetched)

    def _in_range(self, low: int, high: int, after: str | None) -> RecordCopies:
        found = [
            record
            for key, record in sorted(self.held.items())
            if (after is None or key > after) and is_in_range(low, identifier(key), high)
        ]
        batch = tuple(next(in_batches(found, record_size), ()))
        return RecordCopies(batch, more=len(found) > len(batch))

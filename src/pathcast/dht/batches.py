"""Requests about several records to one member, in one message.

A peer that changes many states at once asks the same successors about all of them. One message of
a kind is under way to a member; what it is asked meanwhile leaves when that is answered, together,
so that the busier it is, the more goes into one message, and the fewer there are.

Example:
    >>> [len(batch) for batch in in_batches([400_000, 400_000, 400_000, 1], lambda size: size)]
    [2, 2]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from pathcast.dht.asking import Questions
from pathcast.dht.messages import CopiesHeld, Copy, Fetch, Held, Known, Member, Reply, RingRecord
from pathcast.protocol import grouped

Item = TypeVar("Item")
_COUNT = 256
_BYTES = 1_000_000

Fetched = Callable[[tuple[RingRecord, ...] | None], None]
"""Gets the record that a member holds, if it does; None if it does not answer."""


class Taken(NamedTuple):
    """A member's answer about one record that it was given.

    Attributes:
        is_held: Whether it holds it.
        droppings: As `pathcast.dht.messages.CopiesHeld.droppings`.
    """

    is_held: bool
    droppings: int


Placed = Callable[[Taken | None], None]
"""Gets what a member says of a record that it was given; None if it does not answer."""


def in_batches(items: Sequence[Item], size: Callable[[Item], int]) -> Iterator[Sequence[Item]]:
    """Items in their order, few enough together to travel; one that is larger travels alone."""
    return grouped(items, size, _BYTES, _COUNT)


def record_size(record: RingRecord) -> int:
    """Bytes of a record on its way, about."""
    return len(record.value or b"") + len(record.key) + 100


def held_records(asked: Sequence[Known], get: Callable[[str], RingRecord | None]) -> Held:
    """The answer to `Fetch`: of as many of the keys as one message has room for."""
    rows = [(each, get(each.key)) for each in asked]
    sent: list[RingRecord | bool] = []
    for batch in in_batches(rows, lambda row: record_size(row[1]) if row[1] else 0):
        for known, record in batch:
            is_known = record is not None and known == Known.of(known.key, record)
            sent.append(is_known or (record or False))
        break
    records = tuple(each for each in sent if not isinstance(each, bool))
    same = tuple(place for place, each in enumerate(sent) if each is True)
    return Held(records, same, len(sent))


class _Fetch(NamedTuple):
    key: str
    mine: RingRecord | None
    then: Fetched


class _Copy(NamedTuple):
    record: RingRecord
    then: Placed


class Batches:
    """Questions about single records.

    Args:
        asking: Puts them.
        copied: Gets what a member says to copies, before those do who gave it one.
    """

    def __init__(self, asking: Questions, copied: Callable[[Member, CopiesHeld], None]) -> None:
        self._asking = asking
        self._copied = copied
        self._fetches: dict[Member, list[_Fetch]] = {}
        self._copies: dict[Member, list[_Copy]] = {}
        self._open: set[tuple[type[Fetch | Copy], Member]] = set()

    def fetch(self, member: Member, key: str, mine: RingRecord | None, then: Fetched) -> None:
        """Ask a member what it holds under a key; what is the same as mine does not travel."""
        self._fetches.setdefault(member, []).append(_Fetch(key, mine, then))

    def copy(self, member: Member, record: RingRecord, then: Placed) -> None:
        """Give a member a record."""
        self._copies.setdefault(member, []).append(_Copy(record, then))

    def send(self) -> None:
        """The event is over: send what has to wait for nothing."""
        for member in [each for each in self._fetches if (Fetch, each) not in self._open]:
            self._fetch(member)
        for member in [each for each in self._copies if (Copy, each) not in self._open]:
            self._copy(member)

    def _fetch(self, member: Member) -> None:
        waiting = self._fetches.pop(member)
        asked = next(in_batches(waiting, lambda one: len(one.key)))
        if left := waiting[len(asked) :]:
            self._fetches[member] = left

        def answered(reply: Reply | None) -> None:
            self._open.discard((Fetch, member))
            count = reply.count if isinstance(reply, Held) else 0
            if not count or not isinstance(reply, Held):
                # Who waits with them would wait as long, and in vain.
                for one in [*asked, *self._fetches.pop(member, [])]:
                    one.then(None)
                return
            found = {each.key: each for each in reply.records}
            found |= {one.key: one.mine for n in reply.same for one in asked[n : n + 1] if one.mine}
            if asked[count:]:
                self._fetches[member] = [*asked[count:], *self._fetches.get(member, [])]
            for one in asked[:count]:
                one.then((found[one.key],) if one.key in found else ())

        self._open.add((Fetch, member))
        what = Fetch(tuple(Known.of(one.key, one.mine) for one in asked))
        self._asking.ask(member, what, answered)

    def _copy(self, member: Member) -> None:
        waiting = self._copies.pop(member)
        given = next(in_batches(waiting, lambda one: record_size(one.record)))
        if left := waiting[len(given) :]:
            self._copies[member] = left

        def answered(reply: Reply | None) -> None:
            self._open.discard((Copy, member))
            if not isinstance(reply, CopiesHeld):
                for one in [*given, *self._copies.pop(member, [])]:
                    one.then(None)
                return
            self._copied(member, reply)
            for place, one in enumerate(given):
                one.then(Taken(place not in reply.refused, reply.droppings))

        self._open.add((Copy, member))
        self._asking.ask(member, Copy(tuple(one.record for one in given)), answered)

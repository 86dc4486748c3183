"""Owners that a member has found, and what lies between them and the member before.

A look-up says whose range a place lies in; for a while that holds for the whole range, and nothing
is asked. If it does not hold any more, the peer says so (`Later`) or does not answer, and it is
forgotten: an owner is believed because it takes what it is given, never because it was found.

Example:
    >>> a, b = Member("a", 0), Member("b", 0)
    >>> owners = KnownOwners(seconds=5.0)
    >>> owners.learn(Found(b, a, (b, a), hops=3), me=a, now=0.0)
    >>> owners.of(b.identifier, now=4.0), owners.of(a.identifier, now=4.0)
    (Member(name='b', life=0), None)
    >>> owners.of(b.identifier, now=5.0) is None
    True
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import pairwise

from pathcast.dht.identifiers import is_in_range
from pathcast.dht.messages import Member
from pathcast.dht.ring import Found

_OWNERS_MAX = 4096


class KnownOwners:
    """Ranges that were found.

    Args:
        seconds: How long one is believed; 0: nothing is remembered.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._places: list[int] = []
        self._ranges: dict[int, tuple[int, Member, float]] = {}

    @property
    def remembers(self) -> bool:
        """Whether anything is remembered."""
        return self._seconds > 0

    def learn(self, found: Found, me: Member, now: float) -> None:
        """Remember where a place belonged, and whose ranges follow.

        Args:
            found: The answer of a look-up.
            me: Who has looked it up. What it owns itself it knows better; nobody would tell it that
                it has lost what it remembered as its own.
            now: The time.
        """
        if self.remembers:
            for before, owner in pairwise((found.before, *found.successors)):
                if owner == me:
                    continue
                place = owner.identifier
                if len(self._places) >= _OWNERS_MAX:
                    self._forget_old(now)
                if place not in self._ranges:
                    insort(self._places, place)
                self._ranges[place] = before.identifier, owner, now + self._seconds

    def of(self, place: int, now: float) -> Member | None:
        """Whose range a place lies in; None if that is not known (any more)."""
        if not self._places:
            return None
        high = self._places[bisect_left(self._places, place) % len(self._places)]
        low, member, until = self._ranges[high]
        if now >= until:
            self.forget(member)
            return None
        return member if is_in_range(low, place, high) else None

    def _forget_old(self, now: float) -> None:
        """Forget those that are not believed any more; all, if all are."""
        self._ranges = {place: its for place, its in self._ranges.items() if now < its[2]}
        if len(self._ranges) >= _OWNERS_MAX:
            self._ranges.clear()
        self._places = sorted(self._ranges)

    def forget(self, member: Member) -> None:
        """A member is not what it was taken for."""
        if self._ranges.pop(member.identifier, None) is not None:
            self._places.remove(member.identifier)

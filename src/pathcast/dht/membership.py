"""Membership: a life has a lease until all of the stable base agree that it has ended.

Silence does not tell a member that is dead from one that cannot be reached. So nobody is dead for
being silent: a member that finds another silent asks all of the base. The rules:

- A member outside of the base acts as one (it answers questions to its life, and says what lies
  under its keys) only while it has a *lease* of `lease_seconds`. Any one of the base renews it.
- Whoever finds a member silent tries it: the member and all of the base are asked whether they are
  there. If all of the base answer, as they have for a while, and the member does not, all of the
  base are told to *expel* it. They renew its lease no more. When all have said so and its lease has
  run out, it is dead.
- A member of the base is never dead. While one of them is away, nobody is expelled.
- An expelled life learns it when its lease is to be renewed. Its peer begins another life, with
  another place, and nothing in it.

So who is said to be dead is dead, as the proofs of the ring and of custody ask, also where the
network was split or a process was stopped. Where the base is on both sides of a split, no pointer
and no custody changes because of it, and what cannot be reached waits until the split is healed.
Where all of it is on one side, that side goes on; the others do nothing until they reach the base.

A member that says itself that a life is over (`Absent`), and one whose process has ended, are dead
without a trial: nobody is left who could act.

Cost: of each member one question to the base in a third of the lease; of each trial two questions
to each of the base.

Source: leases are those of Gray and Cheriton, SOSP 1989; a stable base is Zave's
(`pathcast.dht.ring`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from pathcast.dht.asking import Asking
from pathcast.dht.messages import (
    Alive,
    Away,
    Done,
    ExpelMember,
    Member,
    Missing,
    Renew,
    Reply,
    RequestRefused,
)
from pathcast.dht.substrate import CLOCK_RATES

_EXPELLED_MAX = 65_536
_CALM_LEASES = 4
"""So many leases after one of the base was away nobody is expelled: when a split is healed, some
are reached later than others."""


@dataclass(slots=True)
class _Trial:
    waiting: set[Member]
    is_vain: bool = False
    told: set[Member] = field(default_factory=set)


class Membership:
    """The lease of one peer, its trials, and, of a member of the base, the leases of others.

    Args:
        asking: Its questions.
        base: The stable base.
        lease_seconds: How long a lease is, on any clock.
        absent_seconds: So long a peer of which a life was expelled is told to others (`Missing`).
        now: The time.
        after: Does something when so many seconds have passed.
        expelled: Called when this life was expelled.

    Attributes:
        me: This life.
    """

    def __init__(
        self,
        me: Member,
        asking: Asking,
        base: Sequence[Member],
        lease_seconds: float,
        absent_seconds: float,
        now: Callable[[], float],
        after: Callable[[float, Callable[[], None]], None],
        expelled: Callable[[], None],
    ) -> None:
        self.me = me
        self._asking = asking
        self._base = tuple(base)
        self._lease_seconds = lease_seconds
        self._absent_seconds = absent_seconds
        self._now = now
        self._after = after
        self._is_expelled = expelled
        self._until: float | None = None
        self._contact = me.identifier % len(base)
        self._renewing: Member | None = None
        self._trials: dict[Member, _Trial] = {}
        self._calm_from = 0.0
        self._expelled: dict[Member, float] = {}

    @property
    def is_base(self) -> bool:
        """Whether this member is of the base, which needs no lease."""
        return self.me in self._base

    @property
    def has_lease(self) -> bool:
        """Whether nobody can take this life for dead now."""
        return self.is_base or (self._until is not None and self._now() < self._until)

    def begin_anew(self, me: Member) -> None:
        """The peer begins another life."""
        self.me, self._until, self._renewing = me, None, None

    def round(self) -> None:
        """Have the lease renewed, if a third of it is over."""
        began, me = self._now(), self.me
        third = self._lease_seconds / 3
        if self.is_base or (self._until is not None and began < self._until - 2 * third):
            return
        if self._renewing is not None:
            # It has not answered since the last round.
            self._contact += 1
        contact = self._renewing = self._base[self._contact % len(self._base)]

        def answered(reply: Reply | None) -> None:
            if me != self.me:
                return
            if self._renewing == contact:
                self._renewing = None
            if isinstance(reply, Done):
                self._until = max(self._until or 0.0, began + self._lease_seconds)
            elif isinstance(reply, RequestRefused):
                self._is_expelled()

        self._asking.ask(contact, Renew(me), answered)

    def answer(self, what: Renew | ExpelMember | Missing) -> Reply:
        """Answer a question about other members."""
        match what:
            case Renew(member):
                return RequestRefused() if member in self._expelled else Done()
            case ExpelMember(member):
                self._expel(member)
                return Done()
        since = self._now() - self._absent_seconds
        return Away(tuple(sorted({m.name for m, time in self._expelled.items() if time > since})))

    def missing(self, then: Callable[[set[str]], None]) -> None:
        """Ask all of the base who was expelled of late; `then` gets names, once all have said."""
        names: set[str] = set()
        waiting = set(self._base)

        def answered(member: Member, reply: Reply | None) -> None:
            waiting.discard(member)
            if isinstance(reply, Away):
                names.update(reply.names)
            if not waiting:
                then({name for name in names if not self._asking.has_ended(name)})

        for member in self._base:
            if member == self.me:
                answered(member, self.answer(Missing()))
            else:
                self._asking.ask(member, Missing(), partial(answered, member))

    def judge(self, member: Member) -> None:
        """A member is silent: try it. Nothing if it is being tried, or this member has no lease."""
        if member in self._base or member in self._trials or not self.has_lease:
            return
        others = {each for each in self._base if each != self.me}
        trial = self._trials[member] = _Trial({member, *others})

        def answered(asked: Member, reply: Reply | None) -> None:
            trial.waiting.discard(asked)
            is_there = isinstance(reply, Done)
            trial.is_vain |= is_there == (asked == member)
            if asked != member and not is_there:
                self._calm_from = self._now() + _CALM_LEASES * self._lease_seconds
            if trial.waiting:
                return
            trial.is_vain |= self._now() < self._calm_from
            if trial.is_vain or self._asking.is_dead(member):
                del self._trials[member]
            else:
                self._condemn(member, trial)

        for each in sorted(trial.waiting):
            self._asking.ask(each, Alive(), partial(answered, each))

    def _condemn(self, member: Member, trial: _Trial) -> None:
        def told(asked: Member, reply: Reply | None) -> None:
            trial.told.add(asked)
            if len(trial.told) == len(self._base):
                self._after(self._lease_seconds * CLOCK_RATES, buried)

        def buried() -> None:
            del self._trials[member]
            self._asking.bury(member)

        for each in self._base:
            if each == self.me:
                self._expel(member)
                told(each, Done())
            else:
                self._asking.ask(each, ExpelMember(member), partial(told, each))

    def _expel(self, member: Member) -> None:
        if member in self._base:
            return
        if len(self._expelled) >= _EXPELLED_MAX:
            del self._expelled[next(iter(self._expelled))]
        self._expelled.setdefault(member, self._now())

"""The subscriptions of one host: profiles, their versions, and the entries that they come to.

Source: 001, section 3.1 (host broker) and 4.2.1 (Map).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from pathcast.errors import PathcastError, UnknownQueryError
from pathcast.overlay.content import DeliveryProfile, Profiles, Results, Verdict

Entries = tuple[str, ...]

RECORDS: Final = "subscription/"
"""Before the ids of subscriptions in the keys of their records."""


class HostedSubscription(msgspec.Struct, frozen=True):
    """A profile of a subscriber at its host.

    Attributes:
        name: Its id.
        subscriber: Who gets its deliveries.
        profile: What it asks for.
        version: Names the profile that this id has now: no other life of this subscription, with
            another profile or the same one, has it. Or what the registration service knows the
            profile by.
    """

    name: str
    subscriber: str
    profile: DeliveryProfile
    version: int


class KeptSubscription(HostedSubscription, frozen=True):
    """A subscription on the disk, with its entries: to find them takes longer than all the rest.

    Attributes:
        entries: What its profile comes to.
        entries_by: Who found them: see `Profiles.entries_by`. Others find them anew.
    """

    entries: tuple[str, ...] = ()
    entries_by: str = ""

    @property
    def hosted(self) -> HostedSubscription:
        """The subscription without its entries."""
        return HostedSubscription(self.name, self.subscriber, self.profile, self.version)


def record_key(name: str) -> str:
    """The key of the record of a subscription."""
    return f"{RECORDS}{name}"


class HostedSubscriptions:
    """The subscriptions of a host, with a count of each entry.

    Args:
        profiles: Answers them; empty.
        versions: Numbers that no other life of the host gives.
    """

    def __init__(self, profiles: Profiles, versions: Iterator[int]) -> None:
        self._profiles = profiles
        self._versions = versions
        # None: of a snapshot, with a record that was not read yet, and so are its entries.
        self._held: dict[str, HostedSubscription | None] = {}
        self._entries: dict[str, Entries] = {}
        self._records: Mapping[str, bytes] = {}
        self._in_force: set[str] = set()
        # Those that were in force once, in this life or maybe in one before; and these of before.
        self._owed: set[str] = set()
        self._restored: set[str] = set()
        self._count: Counter[str] = Counter()
        self._tickets: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._held)

    def names(self) -> list[str]:
        """Ids, sorted."""
        return sorted(self._held)

    def get(self, name: str) -> HostedSubscription | None:
        """A subscription, if it is there."""
        found = self._held.get(name)
        if found is None and name in self._held:
            kept = msgspec.msgpack.decode(self._records[record_key(name)], type=KeptSubscription)
            self._entries[name] = self._entries_in(kept)
            found = self._held[name] = kept.hosted
        return found

    def entries(self) -> Entries:
        """All entries, each once."""
        return tuple(self._count)

    def counts(self) -> dict[str, int]:
        """How many subscriptions ask for each entry."""
        return dict(self._count)

    def entries_by_name(self, name: str) -> Entries:
        """The entries of a subscription; none if it is not there."""
        return () if self.get(name) is None else self._entries[name]

    def ticket(self, name: str) -> int:
        """Number of the change that a subscription's profile came with; 0 if it was restored."""
        return self._tickets.get(name, 0)

    def entries_of(self, profile: DeliveryProfile) -> Entries:
        """Return the entries of a profile; callable from another thread, and remembered.

        Raises:
            PathcastError: It is no profile.
        """
        return self._profiles.entries(profile)

    def put(
        self,
        name: str,
        subscriber: str,
        profile: DeliveryProfile,
        ticket: int,
        version: int | None = None,
    ) -> tuple[HostedSubscription, Entries, Entries]:
        """A new subscription, or a new profile of one. Returns entries that come and go with it."""
        entries = self._profiles.entries(profile)
        if version is None:
            version = next(self._versions)
        made = HostedSubscription(name, subscriber, profile, version)
        known = self.get(name)
        if known is not None:
            self._profiles.remove(name)
        try:
            self._profiles.add(name, profile)
        except PathcastError:
            if known is not None:
                self._profiles.add(name, known.profile)
            raise
        self._held[name] = made
        before = self._entries.get(name, ())
        self._entries[name] = entries
        self._tickets[name] = ticket
        self._owe_nothing(name)
        # What comes is counted before what goes: what both ask for does neither.
        added = self._enter(entries)
        removed = self._leave(before)
        return made, added, removed

    def take_out(self, name: str) -> tuple[Entries, Entries]:
        """Without this subscription. Returns entries that come (none) and go.

        Raises:
            UnknownQueryError: There is none.
        """
        if self.get(name) is None:
            raise UnknownQueryError("query.unknown", id=name)
        del self._held[name]
        self._tickets.pop(name, None)
        self._profiles.remove(name)
        self._owe_nothing(name)
        return (), self._leave(self._entries.pop(name))

    def _entries_in(self, saved: KeptSubscription) -> Entries:
        is_known = saved.entries_by == self._profiles.entries_by
        return saved.entries if is_known else self._profiles.entries(saved.profile)

    def _subscription(self, name: str) -> HostedSubscription:
        found = self.get(name)
        assert found is not None
        return found

    def _owe_nothing(self, name: str) -> None:
        for names in (self._in_force, self._owed, self._restored):
            names.discard(name)

    def kept(self, name: str) -> KeptSubscription:
        """A subscription as it is saved."""
        held = self._subscription(name)
        return KeptSubscription(
            held.name,
            held.subscriber,
            held.profile,
            held.version,
            self._entries[name],
            self._profiles.entries_by,
        )

    def restore(self, saved: KeptSubscription, *, is_answered: bool = False) -> None:
        """One that was saved.

        Args:
            saved: The subscription.
            is_answered: Whether the local plan has its profile already.

        Raises:
            PathcastError: It is no profile (any more).

        Cost: that of the local plan for a profile; and of finding its entries, up to a millisecond,
            if they were found by another version of Pathcast or under other settings.
        """
        entries = self._entries_in(saved)
        if not is_answered:
            self._profiles.add(saved.name, saved.profile)
        self._held[saved.name] = saved.hosted
        self._entries[saved.name] = entries
        self._owed.add(saved.name)
        self._restored.add(saved.name)
        self._enter(entries)

    def restore_snapshot(
        self,
        names: Iterable[str],
        entries: Mapping[str, int],
        waiting: Collection[str],
        records: Mapping[str, bytes],
    ) -> None:
        """Take in those of a snapshot, which the local plan answers already; there are none yet.

        Args:
            names: Their ids.
            entries: How many of them ask for each entry.
            waiting: Ids of those that were not in force; the others are, and go on to be.
            records: Where they are kept; read when somebody asks for one.

        Cost: 0.5 µs each.
        """
        self._held = dict.fromkeys(names)
        self._count = Counter(entries)
        self._owed, self._restored = set(self._held), set(self._held)
        self._in_force = self._owed.difference(waiting)
        self._records = records

    def discount(self, entries: Entries) -> None:
        """Entries of a subscription that is not what it was when they were counted."""
        self._leave(entries)

    def waiting(self) -> list[str]:
        """Ids of those that are not in force, sorted."""
        return sorted(self._held.keys() - self._in_force)

    def doubt(self, name: str) -> None:
        """One that came in a life before is to be in force anew; nothing has lapsed."""
        self._in_force.discard(name)

    def acknowledge(self, name: str, ticket: int) -> HostedSubscription | None:
        """Mark the subscriptions told with a ticket as in force.

        Args:
            name: A subscription that waited for the ticket.
            ticket: Number of a change.

        Returns:
            The subscription, if that is news of it. None if it is gone or in force already, or if
            it came with a later change: its id was withdrawn meanwhile, or has a new profile.
        """
        if name not in self._held or self.ticket(name) > ticket or name in self._in_force:
            return None
        self._in_force.add(name)
        self._owed.add(name)
        return self._subscription(name)

    def is_restored(self, name: str) -> bool:
        """Whether a subscription is of a life before, and may have been in force then."""
        return name in self._restored

    def lapse(self, *, restored_only: bool = False) -> list[HostedSubscription]:
        """Mark subscriptions that were in force as lapsed, because messages may be lost to them.

        Args:
            restored_only: Only those of a life before.

        Returns:
            The subscriptions that are not in force any more, sorted by id.
        """
        lapsed = self._restored if restored_only else self._owed
        self._in_force -= lapsed
        return [self._subscription(name) for name in sorted(lapsed)]

    def answers(
        self, bodies: Sequence[bytes], done: Sequence[int] = (), times: Sequence[int] = ()
    ) -> list[list[tuple[HostedSubscription, Results | Verdict]]]:
        """For each message the subscriptions that it satisfies, and what it gives them.

        Args:
            bodies: A batch.
            done: As of `Profiles.answers`.
            times: As of `Profiles.answers`.
        """
        if not self._held:
            return [[] for _ in bodies]
        return [
            [(self._subscription(name), results) for name, results in given.items()]
            for given in self._profiles.answers(bodies, done, times)
        ]

    def _enter(self, entries: Entries) -> Entries:
        """Counts entries; those that nobody asked for before, each once."""
        added = tuple(entry for entry in dict.fromkeys(entries) if entry not in self._count)
        self._count.update(entries)
        return added

    def _leave(self, entries: Entries) -> Entries:
        """Counts entries out; those that nobody asks for any more, each once."""
        self._count.subtract(entries)
        gone = tuple(entry for entry in dict.fromkeys(entries) if not self._count[entry])
        for entry in gone:
            del self._count[entry]
        return gone

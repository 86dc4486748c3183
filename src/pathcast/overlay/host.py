"""A broker as the host of subscriptions: what it takes of clients, and when it is in force.

What subscribers come to want is told in all trees under one number, a *ticket*, at the end of an
event; a subscription is in force when its ticket is settled in every tree and all members of the
network know this host. An id that is withdrawn and used again begins another life: it has a version
that nothing had before, and waits for a ticket of its own.

What it keeps on disk: its subscriptions.

Source: 001, section 3.1 (host broker); docs/adr/0015 for when a subscription is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from pathcast.errors import PathcastError
from pathcast.overlay.announcements import Announcements
from pathcast.overlay.content import DeliveryProfile, Profiles
from pathcast.overlay.deliveries import OPERATOR, InForce, Lapsed, NeighbourRefused
from pathcast.overlay.outcome import EventEffects
from pathcast.overlay.query_plane import QueryPlane
from pathcast.overlay.subscription_snapshots import SNAPSHOT, SubscriptionSnapshots
from pathcast.overlay.subscriptions import (
    RECORDS,
    HostedSubscription,
    HostedSubscriptions,
    KeptSubscription,
)
from pathcast.protocol import records_under


class HostSubscriptions:
    """Subscriptions of one host, and those of them that wait to be in force.

    Args:
        name: Of the broker.
        versions: Of subscriptions: numbers that no other life of the broker gives.
        profiles: Answers them; empty.
        planes: The query plane of each tree.
        announcements: Say who the members are, and whom they know.
        disk: What was saved by a former life.
        outcome: Takes what is to be kept, and what subscribers are told.

    Attributes:
        subscriptions: All of them.
        snapshots: Their snapshot.
    """

    def __init__(
        self,
        name: str,
        versions: Iterator[int],
        profiles: Profiles,
        planes: Mapping[str, QueryPlane],
        announcements: Announcements,
        disk: Mapping[str, bytes],
        outcome: EventEffects,
    ) -> None:
        self.subscriptions = HostedSubscriptions(profiles, versions)
        self._name = name
        self._planes = planes
        self._announcements = announcements
        self._outcome = outcome
        self._known_by: set[str] = {name}
        self._tickets: dict[int, tuple[list[str], set[str]]] = {}
        self._ticket = 0
        # What the present event has changed, until `tell`.
        self._awaited: list[str] = []
        self._wanted: tuple[list[str], list[str]] = ([], [])
        self.snapshots = SubscriptionSnapshots(self.subscriptions, profiles, disk, outcome)
        for kept in self._kept(disk):
            self._restore(kept)

    def subscribe(
        self, subscription: str, subscriber: str, profile: DeliveryProfile, version: int | None
    ) -> int:
        """Register a profile; see `Broker.subscribe`. Returns its version.

        Raises:
            PathcastError: It is no profile.
        """
        before = self.subscriptions.entries_by_name(subscription)
        made, added, removed = self.subscriptions.put(
            subscription, subscriber, profile, self._ticket + 1, version
        )
        self.snapshots.note(subscription, before)
        self._outcome.save(f"subscription/{subscription}", self.subscriptions.kept(subscription))
        self._awaited.append(subscription)
        self._want(added, removed)
        return made.version

    def unsubscribe(self, subscription: str) -> None:
        """Take a profile out.

        Raises:
            UnknownQueryError: There is none of this id.
        """
        before = self.subscriptions.entries_by_name(subscription)
        added, removed = self.subscriptions.take_out(subscription)
        self.snapshots.note(subscription, before)
        self._outcome.forget(f"subscription/{subscription}")
        self._want(added, removed)

    def await_all(self) -> None:
        """All are to be in force anew, but those that a snapshot knows to have been."""
        self._awaited.extend(self.subscriptions.waiting())

    def lapse(self) -> None:
        """Any messages may be lost: subscribers are told, and wait to be in force anew."""
        for one in self.subscriptions.lapse():
            self._lapse(one, "", 0, 0, 0)

    def miss(self, root: str, stream: int, first: int, last: int, given_up: int) -> None:
        """Positions do not come that this host has not had; subscribers are told that they miss.

        Positions after `given_up` had been had by all members when they left the log, and a root
        knows a host as a member before a subscription there is in force. So if this host has not
        had them, they are from before this life of it, and nothing is owed to a subscription
        that came in this life. One that is restored may have been owed them: the disk may be older
        than what the root has seen.

        Args:
            root: Root broker of the positions.
            stream: Number of its stream.
            first: The first of them.
            last: ... and the last one.
            given_up: As of `Trimmed`.
        """
        for one in self.subscriptions.lapse(restored_only=given_up < first):
            is_all = self.subscriptions.is_restored(one.name)
            self._lapse(one, root, stream, first, last if is_all else given_up)

    def _lapse(
        self, one: HostedSubscription, root: str, stream: int, first: int, last: int
    ) -> None:
        said = Lapsed(one.name, one.version, root, stream, first, last)
        self._outcome.deliver(one.subscriber, said)
        self._awaited.append(one.name)

    def forget_members(self) -> None:
        """This broker was taken out of the network: nobody is sure to know it."""
        self._known_by = {self._name}

    def tell(self) -> None:
        """Tells what subscribers want by now; they are in force when that is settled."""
        awaited, (added, removed) = self._awaited, self._wanted
        if not (awaited or added or removed):
            return
        self._awaited, self._wanted = [], ([], [])
        ticket = 0
        if awaited:
            ticket = self._ticket = self._ticket + 1
            self._tickets[ticket] = (awaited, set(self._planes))
        for _, plane in sorted(self._planes.items()):
            plane.want(added, removed, ticket)
        self._acknowledge()

    def tell_all(self, plane: QueryPlane) -> None:
        """Tells a new tree everything."""
        plane.want(self.subscriptions.entries(), (), self._ticket)

    def settled(self, tree: str, ticket: int) -> None:
        """All that can be reached in a tree know what was told with a ticket."""
        if ticket in self._tickets:
            self._tickets[ticket][1].discard(tree)
            self._acknowledge()

    def review(self) -> None:
        """Check again which members know this host."""
        roster = self._announcements.roster()
        for name, one in self._announcements.presences().items():
            if one.roster == roster:
                self._known_by.add(name)
        self._acknowledge()

    def _acknowledge(self) -> None:
        """Subscriptions are in force that everybody knows, once everybody knows this broker."""
        unknown = set(self._announcements.members) - self._known_by
        if unknown:
            return
        for ticket, (awaited, planes) in list(self._tickets.items()):
            if planes & self._planes.keys():
                continue
            del self._tickets[ticket]
            for name in awaited:
                one = self.subscriptions.acknowledge(name, ticket)
                if one is not None:
                    self._outcome.deliver(one.subscriber, InForce(one.name, one.version, ticket))

    def _want(self, added: Iterable[str], removed: Iterable[str]) -> None:
        self._wanted[0].extend(added)
        self._wanted[1].extend(removed)

    def _kept(self, disk: Mapping[str, bytes]) -> Iterable[KeptSubscription]:
        """Subscriptions of a former life, but for those that a snapshot has restored."""
        if self.snapshots.is_kept:
            try:
                return self.snapshots.open()
            except (PathcastError, OSError) as error:
                code, reason = getattr(error, "code", "os"), str(error)
                self._outcome.deliver(OPERATOR, NeighbourRefused(SNAPSHOT, code, reason))
        self.snapshots.forget()
        rows = records_under(disk, RECORDS)
        return (msgspec.msgpack.decode(row, type=KeptSubscription) for _, row in rows)

    def _restore(self, saved: KeptSubscription) -> None:
        """A subscription of a former life; one that cannot be answered any more ends alone."""
        try:
            self.subscriptions.restore(saved)
        except PathcastError as error:
            self._outcome.forget(f"subscription/{saved.name}")
            self._outcome.deliver(OPERATOR, NeighbourRefused(saved.name, error.code, error.message))

"""Sources and profiles assigned by the registration service, applied to the broker's planes.

`Hosting` says what that is: all of it, then each change. Here it becomes subscriptions and sources
of the broker, which keeps them on its disk as it keeps those that its own clients ask for; what it
kept before and the service does not know any more, goes.

A profile *moves* while messages flow. Its new host serves it, and once it is in force there asks
for all streams anew: so it has every message after the positions that it has had then, and says
which (`Serving.handed`). The former host goes on until it has had all up to these, and then puts
`Moved` into the inbox as the last entry. Who reads that inbox up to there and the other one from
its beginning, and takes of a root's stream only what is behind what he had, has each delivery once.

Example:
    >>> from pathcast.store.records import ProfileRecord as Registered
    >>> ann = Registered("p-1", "ann", "//a", "ids", host="b")
    >>> kept = kept_for(Served((ann,)), {"members": b""})
    >>> sorted(kept)
    ['changed/p-1', 'subscription/p-1']
    >>> sorted(key for key, value in kept_for(Served(), kept).items() if value is None)
    ['snapshot', 'subscription/p-1']

Source: 001, 3.1 (root and host broker), section 5 (catalog manager, query pre-processor).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from pathcast.errors import PathcastError
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.content import DeliveryProfile, asked_query
from pathcast.overlay.deliveries import OPERATOR, InForce, Moved, NeighbourRefused
from pathcast.overlay.hosting import Served, subscriber_of, version_of
from pathcast.overlay.messages import TEXT_MAX, SourceEntry
from pathcast.overlay.subscription_snapshots import SNAPSHOT, changed_key
from pathcast.overlay.subscriptions import (
    RECORDS,
    HostedSubscription,
    KeptSubscription,
    record_key,
)
from pathcast.protocol import Deliver, Effect, records_under
from pathcast.store import CatalogRecord, ChangeRecord
from pathcast.store import ProfileRecord as RegisteredProfile
from pathcast.store import SourceRecord as RegisteredSource

_WITHDRAWN: Final = SourceEntry(withdrawn=True)
_encode: Final = msgspec.msgpack.Encoder().encode


def kept_for(served: Served, saved: Mapping[str, bytes]) -> dict[str, bytes | None]:
    """Return the records to save or delete before the broker serves these assignments.

    A broker that begins with its subscriptions is asked for nothing without them: no message passes
    it by because somebody who is registered was not known yet.

    Args:
        served: What the registration service has for it.
        saved: What is on its disk: its own from a former life, or nothing.
    """
    kept: dict[str, bytes | None] = {}
    before = {
        key.removeprefix(RECORDS): msgspec.msgpack.decode(row, type=KeptSubscription)
        for key, row in records_under(saved, RECORDS)
    }
    now = {each.id: _subscription(each) for each in served.profiles if each.state == "active"}
    for name in before.keys() | now.keys():
        was, made = before.get(name), now.get(name)
        if was is None or was.hosted != made:
            kept[record_key(name)] = None if made is None else _encode(made)
            if changed_key(name) not in saved:
                kept[changed_key(name)] = _encode(() if was is None else was.entries)
            if was is not None and not was.entries_by:
                # What it was counted with is not known: the snapshot is made anew.
                kept[SNAPSHOT] = None
    catalogs = {catalog.source: catalog for catalog in served.catalogs}
    for source in served.sources:
        kept[f"source/{source.id}"] = _encode(_entry(catalogs[source.id]))
        kept[f"owner/{source.id}"] = _encode(source.address)
    for key, _ in records_under(saved, "source/"):
        kept.setdefault(key, _encode(_WITHDRAWN))
    return kept


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A profile that came from another host is in force here.

    Attributes:
        profile: Its id.
        since: As `Planes.served_since`.
        positions: As `BrokerState.follow_anew`.
    """

    profile: str
    since: int
    positions: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class LeftProfile:
    """A profile that another broker hosts is served here no longer.

    Attributes:
        profile: Its id.
        subscriber: Whose inbox here has `Moved` as the last entry of the profile.
        ticket: As of `Moved`.
    """

    profile: str
    subscriber: str
    ticket: int


class Planes:
    """Gives a broker that runs what `Hosting` says.

    Args:
        node: The broker.
        served: With what it began: see `kept_for`.
    """

    def __init__(self, node: BrokerNode, served: Served) -> None:
        self._node = node
        self._name = node.broker.name
        self._catalogs = {catalog.source: catalog for catalog in served.catalogs}
        self._sources = {source.id for source in served.sources}
        # Profile -> version of the record with which it began to be served as it is.
        self._since = {profile.id: profile.version for profile in served.profiles}
        # Profiles that came from another host, and those in force that is not said of yet.
        self._coming: dict[str, RegisteredProfile] = {}
        self._in_force: dict[str, int] = {}
        # Profiles that go to another host.
        self._going: dict[str, RegisteredProfile] = {}
        for profile in served.profiles:
            self._note_move(profile.id, profile)
            if profile.pending and profile.host == self._name:
                # The service may not have been told that it is in force.
                node.broker.subscriptions.doubt(profile.id)

    def apply(self, told: Served | ChangeRecord, now: float) -> list[Effect]:
        """Apply changed assignments; a profile that cannot be compiled is refused alone."""
        if isinstance(told, ChangeRecord):
            return list(self._changed(told, now))
        self._catalogs = {catalog.source: catalog for catalog in told.catalogs}
        profiles = {profile.id: profile for profile in told.profiles}
        for name in [*self._coming, *self._going]:
            self._note_move(name, None)
        sources = {source.id: source for source in told.sources}
        effects: list[Effect] = []
        for name in [*self._node.broker.subscriptions.names(), *profiles]:
            effects += self._set_profile(name, profiles.get(name), now)
        for name in [*sorted(self._sources - sources.keys()), *sources]:
            effects += self._set_source(name, sources.get(name), now)
        return effects

    def served_since(self, said: InForce) -> int | None:
        """Version of the record with which the broker began to serve what is in force.

        Returns:
            None if the profile was changed or taken out since: what is in force is over.
        """
        if said.epoch < self._node.broker.subscriptions.ticket(said.subscription):
            return None
        return self._since.get(said.subscription)

    def is_root_of(self, source: str) -> bool:
        """Whether the service says that this broker is the root of a source."""
        return source in self._sources

    def awaits_move(self, profile: str, since: int) -> bool:
        """Whether what is in force here came from another host: `review` says the rest of it."""
        if profile not in self._coming:
            return False
        self._in_force[profile] = since
        return True

    def review(self, now: float) -> tuple[list[HandedOver | LeftProfile], list[Effect]]:
        """Go on with the moves of profiles, from other hosts and to them."""
        moved: list[HandedOver | LeftProfile] = []
        effects: list[Effect] = []
        if self._in_force:
            came, self._in_force = self._in_force, {}
            positions = self._node.broker.follow_anew()
            moved += [HandedOver(name, since, positions) for name, since in came.items()]
            effects += self._node.done(now)
        for name, profile in list(self._going.items()):
            if not self._node.broker.has_had(profile.handed):
                continue
            del self._going[name]
            effects += self._set_profile(name, None, now)
            subscriber = subscriber_of(profile)
            notice = Moved(name, version_of(profile), profile.host, profile.version)
            effects.append(Deliver(subscriber, notice))
            moved.append(LeftProfile(name, subscriber, profile.version))
        return moved, effects

    def _changed(self, told: ChangeRecord, now: float) -> Sequence[Effect]:
        record = told.record
        if isinstance(record, CatalogRecord):
            self._catalogs[record.source] = record
        elif told.kind == "profile":
            is_here = isinstance(record, RegisteredProfile) and self._name in (
                record.host,
                record.former,
            )
            return self._set_profile(told.id, record if is_here else None, now)
        elif told.kind == "source":
            is_here = isinstance(record, RegisteredSource) and record.root == self._name
            return self._set_source(told.id, record if is_here else None, now)
        return []

    def _set_profile(self, name: str, profile: object, now: float) -> Sequence[Effect]:
        self._note_move(name, profile)
        kept = self._node.broker.subscriptions.get(name)
        if not isinstance(profile, RegisteredProfile) or profile.state != "active":
            self._since.pop(name, None)
            return (
                [] if kept is None else self._node.asked(now, self._node.broker.unsubscribe, name)
            )
        made = _subscription(profile)
        if made == kept:
            return []
        self._since[name] = profile.version
        try:
            return self._node.asked(
                now, self._node.broker.subscribe, name, made.subscriber, made.profile, made.version
            )
        except PathcastError as error:
            # The others are served all the same. Nobody is told that this one is in force.
            return [Deliver(OPERATOR, NeighbourRefused(name, error.code, error.message))]

    def _note_move(self, name: str, profile: object) -> None:
        for moving in (self._coming, self._going):
            moving.pop(name, None)
        if not isinstance(profile, RegisteredProfile) or not profile.former:
            self._in_force.pop(name, None)
        elif profile.host == self._name:
            if profile.pending:
                self._coming[name] = profile
        elif not profile.pending:
            self._going[name] = profile

    def _set_source(self, name: str, source: object, now: float) -> Sequence[Effect]:
        if isinstance(source, RegisteredSource):
            self._sources.add(name)
            entry = _entry(self._catalogs[name])
            return self._node.asked(
                now, self._node.broker.register_source, name, entry, source.address
            )
        if name not in self._sources:
            return []
        self._sources.remove(name)
        return self._node.asked(now, self._node.broker.register_source, name, _WITHDRAWN)


def _subscription(profile: RegisteredProfile) -> HostedSubscription:
    bound = tuple(sorted(profile.namespaces.items()))
    query = asked_query(profile.query, profile.language)
    asked = DeliveryProfile(query, profile.deliver, bound, profile.steps)
    return HostedSubscription(profile.id, subscriber_of(profile), asked, version_of(profile))


def _entry(catalog: CatalogRecord) -> SourceEntry:
    """Return the catalog entry; a schema that is too long is named by its catalog version.

    The number of the catalog travels with each message.
    """
    schema = catalog.schema if len(catalog.schema) <= TEXT_MAX else f"catalog:{catalog.id}"
    return SourceEntry(schema, catalog.number, validated=catalog.validated)

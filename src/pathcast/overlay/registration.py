"""A node of the registration service: sources and profiles get ids and brokers.

Several nodes have the same database; the one that holds the lease `LEASE` leads, and the others
take over when it is gone. What a request makes is written under the name of the request before
anybody is told, first as *pending*: then the broker is told ((2), (6)) until it says that it knows;
that is written too; then whoever asked is answered ((3), (7)). A node that takes over finds what is
pending in the database and goes on telling. Whoever asks again is answered from the database.

A broker that is `gone` for good loses its sources and profiles to others in the same way: they are
pending with a new broker, which is told, and then their owners are told where they are (`Located`).

Where profiles are placed by content, the leader makes the placement of what is in the database,
measures it again when that has changed, and makes it anew when it has drifted (`placing`). Profiles
whose partition another broker has then move, a portion at a time: pending with the new host, while
the former one goes on; once the new one has said from which positions on it has everything, the
former one leaves, and says so itself (`serving`). So a profile is in force all the time.

It never speaks to the broker that it is waiting for more than `TOLD_AT_ONCE` times in a go.

Source: 001, 3.1, Figure 3: messages (1) to (3) and (5) to (7).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from pathcast.errors import PathcastError, RegistrationError, StoreError, UnusableRowError
from pathcast.overlay.completing import completion
from pathcast.overlay.host_choice import ByContent, Chosen, HostChoice, Nearest, root_for
from pathcast.overlay.leadership import Leadership
from pathcast.overlay.placing import (
    PLACEMENT,
    PROFILES_MAX,
    PROFILES_MIN,
    PlacementSettings,
    given_partitions,
    measured,
    placement_for,
    population_of_one,
    profiles_population,
    read_placement,
    schemas_of,
    written,
)
from pathcast.overlay.registration_messages import (
    Complete,
    Completed,
    HostKnows,
    InterestRegistered,
    Locate,
    Located,
    RegisterInterest,
    RegisterSource,
    RootKnows,
    SourceRegistered,
    TellHost,
    TellRoot,
    ToService,
)
from pathcast.overlay.registry_view import RegistryView
from pathcast.overlay.schemas import check_schema
from pathcast.protocol import Effect, Send, Wake
from pathcast.registry.steps import parse_steps
from pathcast.store import (
    BrokerRecord,
    CatalogRecord,
    PlacementRecord,
    ProfileRecord,
    Record,
    SampleRecord,
    SourceRecord,
    Store,
    check_record,
)

LEASE: Final = "registration"
TOLD_AT_ONCE: Final = 256
"""Pending sources and profiles that are told again in one go."""
AGAIN_SECONDS: Final = 1.0
"""After so many a broker that has not answered is told again."""
LOOKED_AT_ONCE: Final = 2_048
"""Profiles that are looked at in one go, whether they are where they are to be."""


class RegistrationNode:
    """A node of the registration service.

    Args:
        name: Of this node; unique among those of the service.
        records: The store.
        placing: How profiles are placed by content; None: by location alone.
        lease_seconds: The lease expires after so many without a renewal.
    """

    def __init__(
        self,
        name: str,
        records: Store,
        placing: PlacementSettings | None = None,
        *,
        lease_seconds: float = 10.0,
    ) -> None:
        self.name = name
        self.leadership = Leadership(records, LEASE, name, lease_seconds)
        self.view = RegistryView()
        self._records = records
        self._placing = placing
        self._choice: HostChoice = Nearest()
        # Version of the placement that `_choice` is of, and position of what it was measured on.
        self._placed_by = 0
        self._reviewed = -1
        # Id of the last profile that was looked at, whether it is where it is to be; None: all
        # were. And whether some have to be looked at again.
        self._looked_at: str | None = None
        self._is_left: bool = False
        # Who waits here for an answer. After a take-over the request comes again.
        self._waiting: dict[str, tuple[str, str]] = {}

    def start(self, now: float) -> Sequence[Effect]:
        """Tries to lead."""
        return self.wake("lead", now)

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        """Renews the lease, or tells brokers again that have not answered."""
        if timer == "lead":
            again = Wake("lead", self.leadership.seconds / 3)
            if not self.leadership.attempt(now):
                return [again]
            self._waiting.clear()
            self._reviewed, self._looked_at = -1, ""
            return [again, *self._tell_again(now), *self._review(now)]
        return self._review(now) if timer == "review" else self._tell_again(now)

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        """Connections do not matter: whoever does not answer is told again."""
        return []

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        """A request, or a broker that says that it knows; anything else is left alone."""
        if not isinstance(message, ToService):
            return []
        if isinstance(message, (RootKnows, HostKnows)):
            if not self.leadership.is_held(now):
                return []
            try:
                return self._known(sender, message)
            except PathcastError as error:
                if error.code == "store.deposed":
                    self.leadership.lease = None
                return []
        return self.leadership.answered(
            sender, message.request, lambda: self._asked(sender, message), now
        )

    def _asked(
        self, sender: str, message: RegisterSource | RegisterInterest | Locate | Complete
    ) -> Sequence[Effect]:
        self.view.follow(self._records)
        if isinstance(message, Locate):
            return [Send(sender, self._located(sender, message))]
        if isinstance(message, Complete):
            return [Send(sender, self._completed(message))]
        name = request_name(sender, message)
        made = self._records.done(name)
        if made is None:
            records: list[Record]
            if isinstance(message, RegisterSource):
                records = self._new_source(sender, name, message)
            else:
                records = self._new_profile(sender, name, message)
            self._records.write(records, check=True, lease=self.leadership.lease, request=name)
            made = self._records.done(name)
            self.view.follow(self._records)
        assert made is not None
        return self._answer(sender, message.request, *made)

    def _answer(self, sender: str, request: str, kind: str, id: str) -> Sequence[Effect]:
        """The answer, if the broker knows; else the broker is told, and the answer waits."""
        record = self._record(kind, id)
        if record is None:
            raise RegistrationError("registration.unknown", sender=sender, kind=kind, id=id)
        broker = self.view.brokers.get(_broker_of(record))
        if not record.pending and broker is not None:
            if isinstance(record, SourceRecord):
                return [Send(sender, SourceRegistered(request, id, broker.id, broker.address))]
            at = broker.id, broker.address, *self._former(record)
            return [Send(sender, InterestRegistered(request, id, *at))]
        self._waiting[id] = (sender, request)
        return [*self._told(record), Wake("again", AGAIN_SECONDS)]

    def _known(self, sender: str, message: RootKnows | HostKnows) -> Sequence[Effect]:
        """A broker knows: that is written, and then whoever asked is answered."""
        self.view.follow(self._records)
        is_source = isinstance(message, RootKnows)
        id = message.source if isinstance(message, RootKnows) else message.profile
        kind = "source" if is_source else "profile"
        record = self._record(kind, id)
        if record is None or not record.pending or record.version != message.version:
            return []
        broker = self.view.brokers.get(_broker_of(record))
        if broker is None or broker.address != sender:
            return []
        served: SourceRecord | ProfileRecord = msgspec.structs.replace(record, pending=False)
        if isinstance(message, HostKnows) and isinstance(record, ProfileRecord) and record.former:
            served = msgspec.structs.replace(record, pending=False, handed=message.handed)
        self._records.write([served], check=True, lease=self.leadership.lease)
        self.view.follow(self._records)
        waiting = self._waiting.pop(id, None)
        if waiting is None:
            # It was moved, or asked for before this node led.
            return [Send(record.address, Located("", id, broker.id, broker.address))]
        return self._answer(*waiting, kind, id)

    def _tell_again(self, now: float) -> Sequence[Effect]:
        if not self.leadership.is_held(now):
            return []
        try:
            self.view.follow(self._records)
            self._leave_the_gone()
            self._move_some()
            keys = list(self.view.pending)[:TOLD_AT_ONCE]
            found = [self._record(kind, id) for kind, id in keys]
        except StoreError as error:
            if error.code == "store.deposed":
                self.leadership.lease = None
                return []
            return [Wake("again", AGAIN_SECONDS)]
        told = [effect for record in found if record is not None for effect in self._told(record)]
        # Those that were told go to the end.
        for key in keys:
            del self.view.pending[key]
            self.view.pending[key] = None
        return [*told, Wake("again", AGAIN_SECONDS)]

    def _told(self, record: SourceRecord | ProfileRecord) -> Sequence[Effect]:
        broker = self.view.brokers.get(_broker_of(record))
        if broker is None or not record.pending:
            return []
        if isinstance(record, SourceRecord):
            return [Send(broker.address, TellRoot(record))]
        return [Send(broker.address, TellHost(record))]

    def _leave_the_gone(self) -> None:
        """Gives what a broker had that is gone to others, a portion at a time."""
        gone = [broker for broker in self.view.brokers.values() if broker.state == "gone"]
        if having := [broker for broker in gone if broker.partitions]:
            self._move(*(msgspec.structs.replace(broker, partitions=()) for broker in having))
        for name in [broker.id for broker in gone]:
            for source in [each for each in self.view.sources.values() if each.root == name]:
                volume = source.messages_a_second * source.message_bytes
                root = root_for(
                    self.view.brokers.values(), self.view.volumes, source.location, volume
                )
                if root is not None:
                    self._move(msgspec.structs.replace(source, root=root.id, pending=True))
            self._forget_former(name)
            if not self.view.hosted[name]:
                continue
            for profile in self._records.state(ProfileRecord, host=name)[1][:TOLD_AT_ONCE]:
                # Where its user is was not kept; the broker that it had was near.
                chosen = self._host(profile, self.view.brokers[name].location)
                if chosen is not None:
                    self._move(
                        msgspec.structs.replace(
                            profile,
                            host=chosen.broker.id,
                            pending=True,
                            former="" if profile.former == chosen.broker.id else profile.former,
                            handed={},
                        ),
                        *([chosen.broker] if chosen.is_changed else []),
                    )

    def _forget_former(self, name: str) -> None:
        """Nothing is to be read any more at a broker that is gone."""
        if name in self.view.formers.values():
            found = self._records.state(ProfileRecord, former=name)[1][:TOLD_AT_ONCE]
            self._move(*(msgspec.structs.replace(each, former="", handed={}) for each in found))

    def _move_some(self) -> None:
        """Move profiles to the brokers that have their partitions, while few are under way."""
        choice = self._current_choice()
        if not isinstance(choice, ByContent) or self._looked_at is None:
            return
        for _ in range(LOOKED_AT_ONCE // TOLD_AT_ONCE):
            if len(self.view.pending) >= TOLD_AT_ONCE:
                return
            page = self._records.page(ProfileRecord, self._looked_at, TOLD_AT_ONCE)
            if not page:
                self._looked_at = None
                return
            homes = choice.homes(
                profiles_population(each.subscription() for each in page),
                {each.id: each.host for each in page},
                self.view.brokers,
                self.view.hosted,
            )
            elsewhere = [each for each in page if each.id in homes]
            movable = [each for each in elsewhere if not each.former and not each.pending]
            # Whoever has not read what the former host had is moved again later.
            self._is_left = self._is_left or len(movable) < len(elsewhere)
            moved = [
                msgspec.structs.replace(
                    each, host=homes[each.id], former=each.host, pending=True, handed={}
                )
                for each in movable
            ]
            if moved:
                self._move(*moved)
            self._looked_at = page[-1].id

    def _current_choice(self) -> HostChoice:
        """By content where there is a placement; profiles are looked at when it is another one."""
        record = self.view.placement
        if self._placing is None or record is None or not record.content:
            return Nearest()
        if record.made_at != self._placed_by:
            placement = read_placement(record.content)
            self._choice = ByContent(placement, self._placing.region_levels)
            self._placed_by, self._looked_at = record.made_at, ""
        return self._choice

    def _review(self, now: float) -> Sequence[Effect]:
        """Measure the placement if something has changed, and make it anew if it has drifted."""
        if self._placing is None:
            return []
        again = Wake("review", self._placing.review_seconds)
        if not self.leadership.is_held(now):
            return [again]
        try:
            self.view.follow(self._records)
            if self._is_left:
                self._looked_at, self._is_left = "", False
            kept = self.view.placement or PlacementRecord(PLACEMENT)
            if kept.wanted or self.view.measured_by != self._reviewed:
                self._measure(kept, self._placing)
                self.view.follow(self._records)
                self._reviewed = self.view.measured_by
        except StoreError as error:
            if error.code == "store.deposed":
                self.leadership.lease = None
                return []
        return [again]

    def _measure(self, kept: PlacementRecord, placing: PlacementSettings) -> None:
        profiles = self._records.page(ProfileRecord, "", PROFILES_MAX)
        if len(profiles) < PROFILES_MIN:
            return
        population = profiles_population(each.subscription() for each in profiles)
        samples = self._records.state(SampleRecord)[1]
        sample = [text.encode() for each in samples for text in each.messages]
        current = {f"{each.id}@{each.catalog}" for each in self.view.sources.values()}
        catalogs = [each for each in self._records.state(CatalogRecord)[1] if each.id in current]
        schemas = schemas_of(each.schema for each in catalogs)
        fresh = placement_for(population, schemas, sample, placing.partitions)
        anew = measured(fresh, population, sample)
        at, made_at, placement, found = self.view.position, kept.made_at, fresh, anew
        if kept.content and not kept.wanted:
            placement = read_placement(kept.content)
            found = measured(placement, population, sample)
            if found.visited - anew.visited > placing.drift_max:
                placement, found = fresh, anew
        given: list[BrokerRecord] = []
        if placement is fresh or self._has_idle(placing):
            hosts, brokers = self.view.hosts, self.view.brokers.values()
            given = given_partitions(placement, population, hosts, brokers, placing)
            made_at = at if given or placement is fresh else made_at
        record = PlacementRecord(
            kept.id,
            written(placement),
            len(profiles),
            len(sample),
            found.unplaced,
            found.touched,
            found.visited,
            anew.visited,
            measured_at=at,
            made_at=made_at,
            version=kept.version,
        )
        self._records.write([record, *given], check=True, lease=self.leadership.lease)

    def _has_idle(self, placing: PlacementSettings) -> bool:
        """Whether a broker has no partition while another one of its region has several."""
        active = [each for each in self.view.brokers.values() if each.state == "active"]
        busy = {placing.region(each.location) for each in active if len(each.partitions) > 1}
        idle = {
            placing.region(each.location)
            for each in active
            if not each.partitions and each.profiles_max
        }
        return bool(idle & busy)

    def _move(self, *records: Record) -> None:
        self._records.write(records, check=True, lease=self.leadership.lease)
        self.view.follow(self._records)

    def _new_source(self, sender: str, name: str, message: RegisterSource) -> list[Record]:
        volume = message.messages_a_second * message.message_bytes
        root = root_for(self.view.brokers.values(), self.view.volumes, message.location, volume)
        if root is None:
            wanted = f"{volume:.0f} bytes a second"
            raise RegistrationError("registration.capacity", wanted=wanted)
        id = f"s-{name[:24]}"
        source = SourceRecord(
            id,
            sender,
            message.location,
            1,
            message.messages_a_second,
            message.message_bytes,
            root.id,
            pending=True,
        )
        catalog = CatalogRecord(f"{id}@1", id, 1, message.schema, message.validated)
        check_record(catalog)
        check_schema(catalog.schema, validated=catalog.validated)
        return [source, catalog]

    def _new_profile(self, sender: str, name: str, message: RegisterInterest) -> list[Record]:
        profile = ProfileRecord(
            f"p-{name[:24]}",
            message.owner,
            message.query,
            message.deliver,
            message.namespaces,
            message.labels,
            address=sender,
            pending=True,
            steps=message.steps,
            language=message.language,
        )
        parse_steps(profile.steps, profile.namespaces)
        chosen = self._host(profile, message.location)
        if chosen is None:
            raise RegistrationError("registration.capacity", wanted="another profile")
        made: list[Record] = [msgspec.structs.replace(profile, host=chosen.broker.id)]
        return [*made, chosen.broker] if chosen.is_changed else made

    def _host(self, profile: ProfileRecord, location: str) -> Chosen | None:
        population = population_of_one(profile.subscription())
        choice = self._current_choice()
        return choice.host(population, location, self.view.brokers, self.view.hosted)

    def _completed(self, message: Complete) -> Completed:
        """By the schemas that count now, and the samples that there are."""
        current = {f"{each.id}@{each.catalog}" for each in self.view.sources.values()}
        catalogs = self._records.state(CatalogRecord)[1]
        schemas = [each.schema for each in catalogs if each.id in current]
        samples = [
            each for each in self._records.state(SampleRecord)[1] if each.id in self.view.sources
        ]
        found = completion(message.text, schemas, samples, message.namespaces)
        return Completed(message.request, found.offset, found.proposals)

    def _located(self, sender: str, message: Locate) -> Located:
        kind = "source" if message.id.startswith("s-") else "profile"
        record = self._record(kind, message.id)
        brokers = self.view.brokers
        broker = brokers.get(message.broker if record is None else _broker_of(record))
        if record is None and broker is not None and broker.state == "gone":
            # What was done under the name of a request, every broker can say.
            active = [each for each in brokers.values() if each.state == "active"]
            broker = min(active, key=lambda each: each.id, default=None)
        if broker is None or (record is not None and record.address != sender):
            raise RegistrationError("registration.unknown", sender=sender, kind=kind, id=message.id)
        at = broker.id, broker.address, *self._former(record)
        return Located(message.request, message.id, *at)

    def _former(self, record: SourceRecord | ProfileRecord | None) -> tuple[str, str]:
        """Id and address of the former host of a profile; empty if it has none."""
        name = record.former if isinstance(record, ProfileRecord) else ""
        former = self.view.brokers.get(name)
        return ("", "") if former is None else (former.id, former.address)

    def _record(self, kind: str, id: str) -> SourceRecord | ProfileRecord | None:
        if kind == "source":
            return self._records.get(SourceRecord, id)
        return self._records.get(ProfileRecord, id)


def request_name(sender: str, message: msgspec.Struct) -> str:
    """The name that a request has in the store: the same for the same sender, name and content.

    Raises:
        UnusableRowError: It holds a lone surrogate.
    """
    try:
        content = msgspec.msgpack.encode((sender, message))
    except UnicodeEncodeError as error:
        character = f"U+{ord(error.object[error.start]):04X}"
        raise UnusableRowError(
            "row.surrogate", field="request", character=character, offset=error.start
        ) from None
    return blake2b(content, digest_size=16).hexdigest()


def _broker_of(record: SourceRecord | ProfileRecord) -> str:
    return record.root if isinstance(record, SourceRecord) else record.host

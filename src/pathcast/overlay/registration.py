"""A node of the registration service: sources and profiles get ids and brokers.

Several nodes have the same database; the one that holds the lease `LEASE` leads, and the others
take over when it is gone. What a request makes is written under the name of the request before
anybody is told, first as *pending*: then the broker is told ((2), (6)) until it says that it knows;
that is written too; then whoever asked is answered ((3), (7)). A node that takes over finds what is
pending in the database and goes on telling. Whoever asks again is answered from the database.

A broker that is `gone` for good loses its sources and profiles to others in the same way: they are
pending with a new broker, which is told, and then their owners are told where they are (`Located`).

It never speaks to the broker that it is waiting for more than `TOLD_AT_ONCE` times in a go.

Source: 001, 3.1, Figure 3: messages (1) to (3) and (5) to (7).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from pathcast.errors import PathcastError, RegistrationError, StoreError, UnusableRowError
from pathcast.overlay.host_choice import Chosen, HostChoice, population_of_one, root_for
from pathcast.overlay.leadership import Leadership, LeaseStore
from pathcast.overlay.registration_messages import (
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
from pathcast.store import CatalogRecord, ProfileRecord, Record, SourceRecord, check_record

LEASE: Final = "registration"
TOLD_AT_ONCE: Final = 256
"""Pending sources and profiles that are told again in one go."""
AGAIN_SECONDS: Final = 1.0
"""After so many a broker that has not answered is told again."""


class RegistrationNode:
    """A node of the registration service.

    Args:
        name: Of this node; unique among those of the service.
        records: The store.
        choice: Chooses hosts.
        lease_seconds: The lease expires after so many without a renewal.
    """

    def __init__(
        self,
        name: str,
        records: LeaseStore,
        choice: HostChoice,
        *,
        lease_seconds: float = 10.0,
    ) -> None:
        self.name = name
        self.leadership = Leadership(records, LEASE, name, lease_seconds)
        self.view = RegistryView()
        self._records = records
        self._choice = choice
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
            return [again, *self._tell_again(now)]
        return self._tell_again(now)

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
        self, sender: str, message: RegisterSource | RegisterInterest | Locate
    ) -> Sequence[Effect]:
        self.view.follow(self._records)
        if isinstance(message, Locate):
            return [Send(sender, self._located(sender, message))]
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
            return [Send(sender, InterestRegistered(request, id, broker.id, broker.address))]
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
        served = msgspec.structs.replace(record, pending=False)
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
        gone = [broker.id for broker in self.view.brokers.values() if broker.state == "gone"]
        for name in gone:
            for source in [each for each in self.view.sources.values() if each.root == name]:
                volume = source.messages_a_second * source.message_bytes
                root = root_for(
                    self.view.brokers.values(), self.view.volumes, source.location, volume
                )
                if root is not None:
                    self._move(msgspec.structs.replace(source, root=root.id, pending=True))
            if not self.view.hosted[name]:
                continue
            for profile in self._records.state(ProfileRecord, host=name)[1][:TOLD_AT_ONCE]:
                # Where its user is was not kept; the broker that it had was near.
                chosen = self._host(profile, self.view.brokers[name].location)
                if chosen is not None:
                    moved = msgspec.structs.replace(profile, host=chosen.broker.id, pending=True)
                    self._move(moved, *([chosen.broker] if chosen.is_changed else []))

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
        catalog = CatalogRecord(f"{id}@1", id, 1, message.schema)
        check_record(catalog)
        check_schema(catalog.schema)
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
        return self._choice.host(population, location, self.view.brokers, self.view.hosted)

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
        return Located(message.request, message.id, broker.id, broker.address)

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

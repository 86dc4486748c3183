"""The sources and profiles that the registration service assigned to this broker.

A broker is a part; the node that holds its lease plays it, and a backup node takes over by taking
the lease. Both have the database that the registration service has: whoever plays the part reads
its sources and profiles there, follows the log, and writes what sources and users change under its
lease, so that a former player changes nothing any more. It says in the database where it is.

What the service tells it, (2) and (6), is taken from the database, where it stands already; so a
forged one does nothing. What the planes get is `Deliver(PLANES, Served)`, all that this node serves
from now on, when it takes the part over or loses it, and `Deliver(PLANES, Change)`, of profiles,
sources and catalogs, in the order of the log, a source behind the catalog that it names.
`pathcast.overlay.serving` gives that to a broker, which takes messages of these sources (4) and
delivers to these profiles (9).

It routes nothing and evaluates nothing.

Source: 001, 3.1, messages (2), (6), (8), and section 5, "Query pre-processor".
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from pathcast.errors import RegistrationError, StoreError
from pathcast.overlay.leadership import Leadership
from pathcast.overlay.placing import population_of_one
from pathcast.overlay.registration import request_name
from pathcast.overlay.registration_messages import (
    ChangeInterest,
    DeleteInterest,
    HostKnows,
    InterestChanged,
    NotLeading,
    RootKnows,
    SourceUpdated,
    TellHost,
    TellRoot,
    ToBroker,
    UpdateSource,
)
from pathcast.overlay.schemas import check_schema
from pathcast.protocol import Deliver, Effect, Send, Wake
from pathcast.registry.steps import parse_steps
from pathcast.store import (
    BrokerRecord,
    CatalogRecord,
    ChangeRecord,
    ProfileRecord,
    Record,
    Removal,
    SampleRecord,
    SourceRecord,
    Store,
    check_record,
)

_Kind = TypeVar("_Kind", ProfileRecord, SourceRecord)

PLANES: Final = "planes"


class Served(msgspec.Struct, frozen=True):
    """All that a node serves from now on; what is not among it is served elsewhere, or gone.

    Attributes:
        profiles: By id.
        sources: By id.
        catalogs: The current one of each source.
        is_played: Whether this node plays the part; if not, it serves nothing.
    """

    profiles: tuple[ProfileRecord, ...] = ()
    sources: tuple[SourceRecord, ...] = ()
    catalogs: tuple[CatalogRecord, ...] = ()
    is_played: bool = True


def version_of(profile: ProfileRecord) -> int:
    """A number for what a profile asks for, and for whom: below 2**53.

    Deliveries carry it, so that whoever plays the part gives the same delivery the same id. The
    version of the record would not do: it changes with each label.
    """
    names = sorted(profile.namespaces.items())
    what: tuple[object, ...] = (profile.query, profile.deliver, names, subscriber_of(profile))
    what += (profile.steps,) if profile.steps else ()
    what += ("xquery",) if profile.language == "xquery" else ()
    digest = blake2b(msgspec.msgpack.encode(what), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 11


def subscriber_of(profile: ProfileRecord) -> str:
    """Whose inbox deliveries go to: of whoever registered the profile, else of its owner."""
    return profile.address or profile.owner


class Hosting:
    """A broker's part in registration: the root of some sources, the host of some profiles.

    Args:
        name: Address of this node.
        broker: The part; its address and token are set by whoever plays it.
        records: The store.
        lease_seconds: The lease expires after so many without a renewal.

    Attributes:
        profiles: Those that it hosts, by id, paused ones among them.
        sources: Those that it is the root of, by id.
    """

    def __init__(
        self,
        name: str,
        broker: BrokerRecord,
        records: Store,
        *,
        lease_seconds: float = 10.0,
    ) -> None:
        self.name = name
        self.id = broker.id
        self.leadership = Leadership(records, f"broker/{broker.id}", name, lease_seconds)
        self.profiles: dict[str, ProfileRecord] = {}
        self.sources: dict[str, SourceRecord] = {}
        self._described = broker
        self._records = records
        self._position = 0
        self._is_serving = False
        self._untold: list[Effect] = []
        # Profiles that are not in force yet -> version, and who wants to know; and what is.
        self._unsaid: dict[str, tuple[int, str]] = {}
        self._in_force: dict[str, int] = {}
        # Positions that were handed over of those that came from another host and are in force.
        self._handed: dict[str, dict[str, tuple[int, int]]] = {}
        # Version of the record with which the planes begin to serve what a profile asks for now.
        self._since: dict[str, int] = {}

    def start(self, now: float) -> Sequence[Effect]:
        """Tries to play the part."""
        return self.wake("lead", now)

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        """Renews the lease, or takes over; follows the log."""
        if timer != "lead":
            return []
        again = Wake("lead", self.leadership.seconds / 3)
        was_serving = self._is_serving
        was_taken = self.leadership.attempt(now)
        if self.leadership.is_held(now):
            try:
                if was_taken or not was_serving:
                    self._take_over()
                else:
                    self._follow()
            except StoreError:
                # Later, or by another node.
                pass
        elif was_serving:
            self._serve(Served(is_played=False))
            self._in_force = {}
            self._is_serving = False
        return [again, *self._news()]

    def lapsed(self, now: float) -> Sequence[Effect]:
        """Serve all records again, because the broker's lease had ended.

        The node may not have noticed: it waited for the database, which renewed the lease at last.
        """
        self._is_serving = False
        self._in_force = {}
        return []

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        """Connections do not matter here."""
        return []

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        """Handle a message of the service, a source or a user; ignore any other."""
        if not isinstance(message, ToBroker):
            return []
        is_held = self._is_serving and self.leadership.is_held(now)
        answers: Sequence[Effect] = []
        if isinstance(message, (TellRoot, TellHost)):
            answers = self._told(sender, message) if is_held else []
        elif not is_held or self._is_elsewhere(message):
            answers = [Send(sender, NotLeading(message.request))]
        else:
            answers = self.leadership.answered(
                sender, message.request, lambda: self._change(sender, message), now
            )
        return [*self._news(), *answers]

    def in_force(
        self,
        profile: str,
        since: int,
        now: float,
        positions: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    ) -> Sequence[Effect]:
        """The planes say that whatever is published from now on reaches the profile.

        Args:
            profile: Its id.
            since: Version of the record with which they began to serve it (`Planes.served_since`).
                If the profile has asked for something else since, or was paused, nothing comes of
                it, also if it asks for the same as before again.
            now: The time.
            positions: Of a profile that came from another host: see `serving.HandedOver`.
        """
        kept = self.profiles.get(profile)
        if kept is None or since < self._since[profile]:
            return []
        self._in_force[profile] = version_of(kept)
        self._handed[profile] = dict(positions)
        _, asker = self._unsaid.pop(profile, (0, ""))
        return [Send(asker, self._known(kept))] if asker else []

    def left(self, profile: str, ticket: int, now: float) -> Sequence[Effect]:
        """Say that a profile has gone to its host, and its subscriber has had everything here.

        Args:
            profile: Its id.
            ticket: As of `Moved`; a profile that has changed since is told again.
            now: The time.
        """
        kept = self.profiles.get(profile)
        if not self.leadership.is_held(now) or kept is None or kept.version != ticket:
            return []
        gone = msgspec.structs.replace(kept, former="", handed={})
        try:
            self._records.write([gone], check=True, lease=self.leadership.lease)
            self._follow()
        except StoreError:
            # Whoever plays the part is told again.
            return []
        return self._news()

    def sampled(self, samples: Sequence[SampleRecord], now: float) -> Sequence[Effect]:
        """Keep samples of the messages of its sources, in the place of those that are kept."""
        mine = [each for each in samples if each.id in self.sources]
        if mine and self.leadership.is_held(now):
            with contextlib.suppress(StoreError):
                self._records.write(mine, lease=self.leadership.lease)
        return []

    def _known(self, profile: ProfileRecord) -> HostKnows:
        handed = self._handed.get(profile.id, {}) if profile.former else {}
        return HostKnows(profile.id, profile.version, handed)

    def _told(self, sender: str, message: TellRoot | TellHost) -> Sequence[Effect]:
        try:
            self._follow()
        except StoreError:
            return []
        if isinstance(message, TellRoot):
            source = self.sources.get(message.source.id)
            return [] if source is None else [Send(sender, RootKnows(source.id, source.version))]
        profile = self.profiles.get(message.profile.id)
        if profile is None or profile.host != self.id:
            return []
        if profile.id in self._unsaid:
            self._unsaid[profile.id] = (profile.version, sender)
            return []
        return [Send(sender, self._known(profile))]

    def _is_elsewhere(self, message: ChangeInterest | DeleteInterest | UpdateSource) -> bool:
        if isinstance(message, UpdateSource):
            return False
        profile = self.profiles.get(message.profile)
        return profile is not None and profile.host != self.id

    def _change(
        self, sender: str, message: ChangeInterest | DeleteInterest | UpdateSource
    ) -> Sequence[Effect]:
        """(8), and updates of sources. What was done under the same name is only said again."""
        self._follow()
        name = request_name(sender, message)
        if self._records.done(name) is None:
            if isinstance(message, UpdateSource):
                changes = self._changes_of_source(sender, message)
            else:
                changes = [self._change_of_profile(sender, message)]
            self._records.write(changes, check=True, lease=self.leadership.lease, request=name)
            self._follow()
        if not isinstance(message, UpdateSource):
            return [Send(sender, InterestChanged(message.request, message.profile))]
        kept = _own(self.sources.get(message.source), sender, "source", message.source)
        return [Send(sender, SourceUpdated(message.request, kept.id, kept.catalog))]

    def _change_of_profile(
        self, sender: str, message: ChangeInterest | DeleteInterest
    ) -> Record | Removal:
        kept = _own(self.profiles.get(message.profile), sender, "profile", message.profile)
        if isinstance(message, DeleteInterest):
            return Removal("profile", kept.id)
        changed = msgspec.structs.replace(
            kept,
            query=message.query,
            deliver=message.deliver,
            namespaces=message.namespaces,
            labels=message.labels,
            state="paused" if message.paused else "active",
            steps=message.steps,
            language=message.language,
        )
        parse_steps(changed.steps, changed.namespaces)
        population_of_one(changed.subscription())
        return changed

    def _changes_of_source(self, sender: str, message: UpdateSource) -> list[Record | Removal]:
        kept = _own(self.sources.get(message.source), sender, "source", message.source)
        told = {
            "messages_a_second": message.messages_a_second,
            "message_bytes": message.message_bytes,
        }
        fields = {name: value for name, value in told.items() if value is not None}
        if message.schema is None and message.validated is None:
            return [msgspec.structs.replace(kept, **fields)]
        number, present = kept.catalog + 1, self._catalog(kept)
        schema = present.schema if message.schema is None else message.schema
        validated = present.validated if message.validated is None else message.validated
        catalog = CatalogRecord(f"{kept.id}@{number}", kept.id, number, schema, validated)
        check_record(catalog)
        check_schema(catalog.schema, validated=catalog.validated)
        # The catalog comes first in the log: a message never names one that is not there.
        return [catalog, msgspec.structs.replace(kept, catalog=number, **fields)]

    def _take_over(self) -> None:
        """Reads what the part has, and says in the database where it is played now."""
        lease = self.leadership.lease
        assert lease is not None
        # If the database fails on the way, it is done again.
        self._is_serving = False
        played = msgspec.structs.replace(self._described, address=self.name, token=lease.token)
        if (kept := self._records.get(BrokerRecord, self.id)) is not None:
            # What the service and operators have decided stays; the rest is as this node is told.
            stays = {"partitions": kept.partitions, "state": kept.state, "version": kept.version}
            played = msgspec.structs.replace(played, **stays)
        self._records.write([played], check=True, lease=lease)
        # What changes between the two is in the log after the first, and is taken in again.
        position, profiles = self._records.state(ProfileRecord, host=self.id)
        profiles += self._records.state(ProfileRecord, former=self.id)[1]
        sources = self._records.state(SourceRecord, root=self.id)[1]
        catalogs = [self._catalog(source) for source in sources]
        self._serve(Served(tuple(profiles), tuple(sources), tuple(catalogs)))
        self._position = position
        self._is_serving = True
        self._follow()

    def _serve(self, served: Served) -> None:
        self._since = {
            profile.id: self._since[profile.id]
            if _is_served_alike(self.profiles.get(profile.id), profile)
            else profile.version
            for profile in served.profiles
        }
        self.profiles = {profile.id: profile for profile in served.profiles}
        self.sources = {source.id: source for source in served.sources}
        waiting = [profile for profile in served.profiles if self._is_awaited(profile)]
        self._unsaid = {profile.id: (profile.version, "") for profile in waiting}
        self._untold.append(Deliver(PLANES, served))

    def _catalog(self, source: SourceRecord) -> CatalogRecord:
        """Return the schema of a source's messages; an empty one if there is none."""
        id = f"{source.id}@{source.catalog}"
        return self._records.get(CatalogRecord, id) or CatalogRecord(
            id, source.id, source.catalog, ""
        )

    def _is_awaited(self, profile: ProfileRecord) -> bool:
        """Whether it is said to be known only once it is in force, which it is not."""
        is_served = profile.pending and profile.state == "active" and profile.host == self.id
        known = self._in_force.get(profile.id)
        return is_served and known != version_of(profile)

    def _follow(self) -> None:
        """Takes in what has changed of its sources, their catalogs and its profiles."""
        try:
            while found := self._records.changes(self._position):
                for change in found:
                    self._position = change.position
                    if self._take_in(change):
                        self._untold.append(Deliver(PLANES, change))
        except StoreError as error:
            if error.code not in ("store.compacted", "store.ahead"):
                raise
            self._take_over()

    def _take_in(self, change: ChangeRecord) -> bool:
        """Whether a change concerns this broker."""
        record = change.record
        if isinstance(record, SourceRecord) and record.root == self.id:
            before = self.sources.get(record.id)
            self.sources[record.id] = record
            if before is None or before.catalog != record.catalog:
                catalog = self._catalog(record)
                told = ChangeRecord(change.position, "catalog", catalog.id, catalog)
                self._untold.append(Deliver(PLANES, told))
            return True
        if isinstance(record, ProfileRecord) and self.id in (record.host, record.former):
            kept = self.profiles.get(record.id)
            self.profiles[record.id] = record
            self._unsaid.pop(record.id, None)
            if not _is_served_alike(kept, record):
                # The planes begin anew with it, even if it is what it was once before.
                self._in_force.pop(record.id, None)
                self._handed.pop(record.id, None)
                self._since[record.id] = record.version
            if self._is_awaited(record):
                self._unsaid[record.id] = (record.version, "")
            return True
        if change.kind == "source":
            return self.sources.pop(change.id, None) is not None
        if change.kind == "profile":
            self._unsaid.pop(change.id, None)
            self._in_force.pop(change.id, None)
            self._handed.pop(change.id, None)
            self._since.pop(change.id, None)
            return self.profiles.pop(change.id, None) is not None
        return False

    def _news(self) -> Sequence[Effect]:
        """Return the changes that the planes have not been told."""
        untold, self._untold = self._untold, []
        return untold


def _is_served_alike(kept: ProfileRecord | None, profile: ProfileRecord) -> bool:
    """Whether a changed record makes no difference to the planes."""
    if kept is None:
        return False
    return (version_of(kept), kept.state) == (version_of(profile), profile.state)


def _own(record: _Kind | None, sender: str, kind: str, id: str) -> _Kind:
    """Return the record that somebody asks to change, if it is theirs.

    Raises:
        RegistrationError: It is not here, or somebody else's: the two are not told apart.
    """
    if record is None or record.address != sender:
        raise RegistrationError("registration.unknown", sender=sender, kind=kind, id=id)
    return record

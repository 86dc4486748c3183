"""The brokers, sources and profiles of the registration service, updated from its log.

Of a profile it keeps where it is hosted and whether the host knows, not its query.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pathcast.errors import StoreError
from pathcast.store import (
    BrokerRecord,
    ChangeRecord,
    PlacementRecord,
    ProfileRecord,
    SourceRecord,
    Store,
)


@dataclass
class RegistryView:
    """A view of the profile database that follows its log.

    Attributes:
        position: Up to which it knows the log.
        brokers: By id.
        sources: By id.
        hosts: Id of a profile -> id of its host.
        formers: Id of a profile that moves -> id of the host that it had before.
        hosted: Id of a broker -> profiles that it hosts.
        volumes: Id of a broker -> bytes a second expected of the sources it is the root of.
        placement: Of profiles, if there is one.
        measured_by: Position of the last change that a placement is measured by: of a profile's
            query, a sample, a schema, or a broker that came or went.
        pending: Profiles and sources whose broker has not said that it knows, as (kind, id).
    """

    position: int = 0
    brokers: dict[str, BrokerRecord] = field(default_factory=dict)
    sources: dict[str, SourceRecord] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    formers: dict[str, str] = field(default_factory=dict)
    hosted: Counter[str] = field(default_factory=Counter)
    volumes: Counter[str] = field(default_factory=Counter)
    placement: PlacementRecord | None = None
    measured_by: int = 0
    pending: dict[tuple[str, str], None] = field(default_factory=dict)

    def follow(self, records: Store) -> None:
        """Takes in what has changed; a log that was compacted is replaced by the state.

        Raises:
            StoreError: What the database says.
        """
        try:
            while found := records.changes(self.position):
                for change in found:
                    self._apply(change)
        except StoreError as error:
            if error.code not in ("store.compacted", "store.ahead"):
                raise
            self._read(records)

    def _read(self, records: Store) -> None:
        self.__init__()  # type: ignore[misc]
        # The first position is the least: changes after it that are in the later lists too are
        # applied again, which does nothing.
        self.position, brokers = records.state(BrokerRecord)
        for broker in brokers:
            self._apply(ChangeRecord(self.position, "broker", broker.id, broker))
        for source in records.state(SourceRecord)[1]:
            self._apply(ChangeRecord(self.position, "source", source.id, source))
        for profile in records.state(ProfileRecord)[1]:
            self._apply(ChangeRecord(self.position, "profile", profile.id, profile))
        for placement in records.state(PlacementRecord)[1]:
            self._apply(ChangeRecord(self.position, "placement", placement.id, placement))

    def _apply(self, change: ChangeRecord) -> None:
        self.position = change.position
        record = change.record
        if change.kind in ("catalog", "sample"):
            self.measured_by = change.position
        elif change.kind == "placement":
            self.placement = record if isinstance(record, PlacementRecord) else None
        elif change.kind == "broker":
            before = self.brokers.pop(change.id, None)
            state = record.state if isinstance(record, BrokerRecord) else None
            if before is None or before.state != state:
                self.measured_by = change.position
            if isinstance(record, BrokerRecord):
                self.brokers[change.id] = record
        elif change.kind == "source":
            known = self.sources.pop(change.id, None)
            if known is not None:
                self.volumes[known.root] -= _volume(known)
            if isinstance(record, SourceRecord):
                self.sources[change.id] = record
                self.volumes[record.root] += _volume(record)
        elif change.kind == "profile":
            host = self.hosts.pop(change.id, None)
            if not isinstance(record, ProfileRecord) or not record.former:
                self.measured_by = change.position
            if host is not None:
                self.hosted[host] -= 1
            self.formers.pop(change.id, None)
            if isinstance(record, ProfileRecord) and record.former:
                self.formers[change.id] = record.former
            if isinstance(record, ProfileRecord):
                self.hosts[change.id] = record.host
                self.hosted[record.host] += 1
        if isinstance(record, (ProfileRecord, SourceRecord)) and record.pending:
            self.pending[change.kind, change.id] = None
        else:
            self.pending.pop((change.kind, change.id), None)


def _volume(source: SourceRecord) -> int:
    """Bytes a second, whole, so that what is added and taken away comes to nothing."""
    return round(source.messages_a_second * source.message_bytes)

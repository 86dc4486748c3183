"""Stores of both kinds for tests, and what has to be true of any of them."""

from __future__ import annotations

from pathcast.store import (
    BrokerRecord,
    CatalogRecord,
    ChangeRecord,
    ProfileRecord,
    Record,
    SourceRecord,
    Store,
)
from pathcast.store.records import kind_of


def profile(name: str, query: str = "//a", **fields: object) -> ProfileRecord:
    """A profile of ann's."""
    return ProfileRecord(name, "ann", query, **fields)  # type: ignore[arg-type]


def replayed(changes: list[ChangeRecord]) -> dict[tuple[str, str], object]:
    """The records after all changes."""
    found: dict[tuple[str, str], object] = {}
    for change in changes:
        if change.record is None:
            del found[change.kind, change.id]
        else:
            assert change.record.version == change.position
            found[change.kind, change.id] = change.record
    return found


def check_whole(store: Store) -> list[ChangeRecord]:
    """The log has no gap and ends at the head, and the records are what it comes to."""
    changes = store.changes(0, 1_000_000)
    assert [change.position for change in changes] == list(range(1, store.position + 1))
    records: list[Record] = [*store.state(ProfileRecord)[1], *store.state(SourceRecord)[1]]
    records += [*store.state(CatalogRecord)[1], *store.state(BrokerRecord)[1]]
    assert replayed(changes) == {(kind_of(record), record.id): record for record in records}
    return changes

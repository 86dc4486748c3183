"""Stores of both kinds for tests, and what has to be true of any of them."""

from __future__ import annotations

from pathcast.store import Broker, Catalog, Change, Profile, Record, Source, Store
from pathcast.store.records import kind_of


def profile(name: str, query: str = "//a", **fields: object) -> Profile:
    """A profile of ann's."""
    return Profile(name, "ann", query, **fields)  # type: ignore[arg-type]


def replayed(changes: list[Change]) -> dict[tuple[str, str], object]:
    """The records after all changes."""
    found: dict[tuple[str, str], object] = {}
    for change in changes:
        if change.record is None:
            del found[change.kind, change.id]
        else:
            assert change.record.version == change.position
            found[change.kind, change.id] = change.record
    return found


def check_whole(store: Store) -> list[Change]:
    """The log has no gap and ends at the head, and the records are what it comes to."""
    changes = store.changes(0, 1_000_000)
    assert [change.position for change in changes] == list(range(1, store.position + 1))
    records: list[Record] = [*store.state(Profile)[1], *store.state(Source)[1]]
    records += [*store.state(Catalog)[1], *store.state(Broker)[1]]
    assert replayed(changes) == {(kind_of(record), record.id): record for record in records}
    return changes

"""The profile database: subscriptions, data sources and brokers, a log of their changes, leases.

A database is SQLite in a file, or PostgreSQL; both behave the same. What `write` has returned from
is on disk. Everything that changes has a *position*, without gaps and in the order of commits, so
that a reader that goes on from the last position it has seen misses nothing, however many write.

Example:
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store.open(Path(folder.name, "profiles.db"))
    >>> store.write([ProfileRecord("p1", "ann", "//a"), ProfileRecord("p2", "bob", "//b")])
    2
    >>> store.write([Removal("profile", "p1")])
    3
    >>> [(change.position, change.id, change.record is None) for change in store.changes(1)]
    [(2, 'p2', False), (3, 'p1', True)]
    >>> position, records = store.state(ProfileRecord)
    >>> position, [profile.id for profile in records]
    (3, ['p2'])
    >>> store.close()
    >>> folder.cleanup()

It evaluates nothing and starts nothing. docs/store.md says how to run it.

Source: 001, 5, "Query pre-processor" (profile database) and 3.1 (state of the registration
service).
"""

from pathcast.errors import extra

with extra("net", "the profile database"):
    import alembic  # noqa: F401
    import msgspec  # noqa: F401
    import sqlalchemy  # noqa: F401

from pathcast.store.database import shown_url
from pathcast.store.leases import Lease
from pathcast.store.records import (
    HANDED_MAX,
    ID_BYTES_MAX,
    KINDS,
    LABELS_MAX,
    QUERY_BYTES_MAX,
    SAMPLE_BYTES_MAX,
    SCHEMA_BYTES_MAX,
    STEP_BYTES_MAX,
    BrokerRecord,
    CatalogRecord,
    ChangeRecord,
    PlacementRecord,
    ProfileRecord,
    Record,
    Removal,
    SampleRecord,
    SourceRecord,
    check_record,
)
from pathcast.store.store import Store

__all__ = [
    "HANDED_MAX",
    "ID_BYTES_MAX",
    "KINDS",
    "LABELS_MAX",
    "QUERY_BYTES_MAX",
    "SAMPLE_BYTES_MAX",
    "SCHEMA_BYTES_MAX",
    "STEP_BYTES_MAX",
    "BrokerRecord",
    "CatalogRecord",
    "ChangeRecord",
    "Lease",
    "PlacementRecord",
    "ProfileRecord",
    "Record",
    "Removal",
    "SampleRecord",
    "SourceRecord",
    "Store",
    "check_record",
    "shown_url",
]

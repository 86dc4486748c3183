"""The tables of the store, as SQLAlchemy has them; `migrations` makes them.

    head        one row: the last position, and where the log begins
    log         a row a change, by position
    requests    a row a request that was done: what it made, and at which position
    leases      a row a lease: who holds it, under which token, until when
    profiles, sources, catalogs, brokers, placements, samples
                a row a record, as it is at the position of the head

All that changes a record or the log holds the row of `head` until it is committed: so positions are
given in the order of commits.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata: Final = MetaData()

head: Final = Table(
    "head",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("start", BigInteger, nullable=False),
)

log: Final = Table(
    "log",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("id", String, nullable=False, index=True),
    # The record as JSON; null where it was removed.
    Column("content", Text),
    # Microseconds since 1970 by the clock of the writer; 0: not known.
    Column("at", BigInteger, nullable=False),
)

requests: Final = Table(
    "requests",
    metadata,
    Column("request", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("id", String, nullable=False),
    Column("position", BigInteger, nullable=False),
)

leases: Final = Table(
    "leases",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("token", BigInteger, nullable=False),
    # Seconds since 1970 by the clock of the database.
    Column("expires", Float, nullable=False),
)

profiles: Final = Table(
    "profiles",
    metadata,
    Column("id", String, primary_key=True),
    Column("owner", String, nullable=False, index=True),
    Column("query", Text, nullable=False),
    Column("deliver", String, nullable=False),
    Column("namespaces", JSON, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("state", String, nullable=False),
    Column("host", String, nullable=False, index=True),
    Column("pending", Boolean, nullable=False),
    Column("address", String, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("steps", JSON, nullable=False),
    Column("language", String),
    Column("former", String, nullable=False),
    Column("handed", JSON, nullable=False),
)

sources: Final = Table(
    "sources",
    metadata,
    Column("id", String, primary_key=True),
    Column("address", String, nullable=False),
    Column("location", String, nullable=False),
    Column("catalog", BigInteger, nullable=False),
    Column("messages_a_second", Float, nullable=False),
    Column("message_bytes", Float, nullable=False),
    Column("root", String, nullable=False),
    Column("pending", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
)

catalogs: Final = Table(
    "catalogs",
    metadata,
    Column("id", String, primary_key=True),
    Column("source", String, nullable=False, index=True),
    Column("number", BigInteger, nullable=False),
    Column("schema", Text, nullable=False),
    Column("validated", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
)

brokers: Final = Table(
    "brokers",
    metadata,
    Column("id", String, primary_key=True),
    Column("address", String, nullable=False),
    Column("location", String, nullable=False),
    Column("bandwidth", Float, nullable=False),
    Column("profiles_max", BigInteger, nullable=False),
    Column("partitions", JSON, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("state", String, nullable=False),
    Column("version", BigInteger, nullable=False),
)

placements: Final = Table(
    "placements",
    metadata,
    Column("id", String, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("profiles", BigInteger, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("unplaced", Float, nullable=False),
    Column("touched", Float, nullable=False),
    Column("visited", Float, nullable=False),
    Column("anew", Float, nullable=False),
    Column("measured_at", BigInteger, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("wanted", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
)

samples: Final = Table(
    "samples",
    metadata,
    Column("id", String, primary_key=True),
    Column("messages", JSON, nullable=False),
    Column("version", BigInteger, nullable=False),
)

RECORDS: Final = {
    "profile": profiles,
    "source": sources,
    "catalog": catalogs,
    "broker": brokers,
    "placement": placements,
    "sample": samples,
}
"""Name of a kind of record -> its table, whose columns are the fields."""

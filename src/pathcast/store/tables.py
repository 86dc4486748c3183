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

from types import MappingProxyType
from typing import Any, Final

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

from pathcast.store.records import KINDS

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

_TYPES: Final = MappingProxyType(
    {"int": BigInteger, "float": Float, "bool": Boolean, "bytes": LargeBinary}
)


_LONG: Final = frozenset({"query", "schema"})
_INDEXED: Final = frozenset({("profile", "owner"), ("profile", "host"), ("catalog", "source")})


def _column(kind: str, name: str, declared: str) -> Column[Any]:
    """The column of a field."""
    is_json = declared.startswith(("dict", "tuple"))
    return Column(
        name,
        JSON if is_json else _TYPES.get(declared, Text if name in _LONG else String),
        primary_key=name == "id",
        nullable=declared.endswith("None"),
        index=(kind, name) in _INDEXED or None,
    )


RECORDS: Final = {
    kind: Table(
        f"{kind}s",
        metadata,
        *(_column(kind, name, declared) for name, declared in record.__annotations__.items()),
    )
    for kind, record in KINDS.items()
}
"""Name of a kind of record -> its table, whose columns are the fields."""

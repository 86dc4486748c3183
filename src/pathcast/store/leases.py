"""Leases: who of several processes does a thing, decided by the database.

A lease is a row: holder, *token*, and until when. It is taken by whoever finds it expired, under
the next token; its holder renews it. Clocks decide only how soon somebody takes over: that a former
holder writes nothing any more is decided by its token, which every write under a lease is compared
with in its own transaction.

In PostgreSQL a holder has an advisory lock as well, of its session and named by lease and token. It
is gone with the process or its machine, so that somebody else need not wait until the lease
expires.

It is no consensus: whoever can write to the database can lead, and nobody else.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b

from sqlalchemy import Connection, select, text, update
from sqlalchemy.exc import DBAPIError

from pathcast.errors import StoreError
from pathcast.store.database import Database
from pathcast.store.records import check_short
from pathcast.store.tables import leases


@dataclass(frozen=True, slots=True)
class Lease:
    """A right that is held.

    Attributes:
        name: Of what.
        holder: By whom.
        token: Grows with every taking; a write under an older one is refused.
    """

    name: str
    holder: str
    token: int


@dataclass(frozen=True, slots=True)
class _Row:
    """A lease as the database stores it."""

    token: int
    expires: float


class Leases:
    """The leases of one process. See the module.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session: Connection | None = None

    def take(self, name: str, holder: str, seconds: float, held: Lease | None) -> Lease | None:
        """Takes a lease, or renews the one that is held.

        Args:
            name: Of what.
            holder: Who takes it; shown to others.
            seconds: It expires after so many without a renewal.
            held: What an earlier call gave; None for a process that has none, even if a process of
                that name held the lease before.

        Returns:
            The lease; None if another holds it.

        Raises:
            StoreError: What the database says.
            UnusableRowError: A name that cannot be kept.
        """
        check_short(name, "name of the lease")
        check_short(holder, "holder of the lease")
        with self._database.translated():
            connection = self._connection()
            try:
                with connection.begin():
                    return self._take(connection, name, holder, seconds, held)
            except DBAPIError:
                # Whatever the session had locked is given back with it.
                self.close()
                raise

    def give_back(self, lease: Lease) -> None:
        """Lets others have a lease at once; nothing if it was taken over."""
        with self._database.writing() as connection:
            is_held = (leases.c.name == lease.name) & (leases.c.token == lease.token)
            connection.execute(update(leases).where(is_held).values(expires=0.0))

    def close(self) -> None:
        """Ends the session, and with it its advisory locks."""
        if self._session is not None:
            session, self._session = self._session, None
            session.invalidate()
            session.close()

    def _connection(self) -> Connection:
        if self._session is None or self._session.closed or self._session.invalidated:
            self._session = self._database.connect_to_write()
        return self._session

    def _take(
        self, connection: Connection, name: str, holder: str, seconds: float, held: Lease | None
    ) -> Lease | None:
        row = self._locked_row(connection, name)
        now = self._now(connection)
        if held is not None and row.token == held.token:
            token = held.token
            self._lock(connection, name, token)
        elif row.expires <= now or self._is_abandoned(connection, name, row.token):
            token = row.token + 1
            if not self._lock(connection, name, token):
                # Somebody lost the connection between the lock and the commit of its taking.
                return None
            if held is not None:
                self._unlock(connection, name, held.token)
        else:
            return None
        changed = {"holder": holder, "token": token, "expires": now + seconds}
        connection.execute(update(leases).where(leases.c.name == name).values(changed))
        return Lease(name, holder, token)

    def _locked_row(self, connection: Connection, name: str) -> _Row:
        wanted = select(leases.c.token, leases.c.expires).where(leases.c.name == name)
        found = connection.execute(wanted.with_for_update()).first()
        if found is None:
            free = {"name": name, "holder": "", "token": 0, "expires": 0.0}
            connection.execute(self._database.insert_or_leave(leases, ["name"]), [free])
            found = connection.execute(wanted.with_for_update()).one()
        return _Row(found.token, found.expires)

    def _now(self, connection: Connection) -> float:
        """Seconds since 1970, by a clock that all who use the database have in common."""
        if self._database.is_sqlite:
            return time.time()
        clock = text("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(connection.execute(clock).scalar_one())

    def _is_abandoned(self, connection: Connection, name: str, token: int) -> bool:
        """Whether the session of the holder is gone."""
        if self._database.is_sqlite or not token or self._has(connection, name, token):
            return False
        return self._try(connection, "pg_try_advisory_xact_lock", name, token)

    def _lock(self, connection: Connection, name: str, token: int) -> bool:
        """The lock of the session; True where there are none, or it is held."""
        if self._database.is_sqlite or self._has(connection, name, token):
            return True
        return self._try(connection, "pg_try_advisory_lock", name, token)

    def _unlock(self, connection: Connection, name: str, token: int) -> None:
        if not self._database.is_sqlite and self._has(connection, name, token):
            self._try(connection, "pg_advisory_unlock", name, token)

    def _has(self, connection: Connection, name: str, token: int) -> bool:
        asked = text(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND pid = pg_backend_pid() AND objsubid = 1 "
            "AND ((classid::bigint << 32) | objid::bigint) = :key"
        )
        return bool(connection.execute(asked, {"key": _key(name, token)}).scalar_one())

    @staticmethod
    def _try(connection: Connection, function: str, name: str, token: int) -> bool:
        asked = text(f"SELECT {function}(:key)")
        return bool(connection.execute(asked, {"key": _key(name, token)}).scalar_one())


def check_lease(connection: Connection, lease: Lease) -> None:
    """Makes sure, until the transaction ends, that a lease is held under its token.

    Raises:
        StoreError: "store.deposed".
    """
    wanted = select(leases.c.token).where(leases.c.name == lease.name)
    found = connection.execute(wanted.with_for_update(read=True)).scalar_one_or_none()
    if found != lease.token:
        raise StoreError("store.deposed", name=lease.name, found=found, token=lease.token)


def _key(name: str, token: int) -> int:
    """Of the lock of a lease under a token: 63 bits."""
    digest = blake2b(f"{token}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1

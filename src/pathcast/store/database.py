"""A database behind a URL: SQLite in a file, or PostgreSQL; what goes wrong, as our errors.

SQLite keeps a write-ahead log and syncs it with every commit; one connection writes at a time, and
says so when it begins. PostgreSQL commits synchronously, whatever the server's default is.

It knows no table.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from pathcast.errors import ConfigError, StoreError, extra

WAIT_SECONDS: Final = 5.0
"""How long a write waits for others before it is "store.locked"."""

_WRITES: Final = "pathcast_writes"

_SQLITE: Final = {
    "SQLITE_BUSY": "store.locked",
    "SQLITE_LOCKED": "store.locked",
    "SQLITE_FULL": "store.full",
    "SQLITE_CORRUPT": "store.damaged",
    "SQLITE_NOTADB": "store.damaged",
    "SQLITE_CANTOPEN": "store.away",
    "SQLITE_IOERR": "store.away",
}
"""Beginning of the name of an error of SQLite -> our code."""

_POSTGRESQL: Final = {
    "53100": "store.full",
    "55P03": "store.locked",
    "40": "store.locked",
    "08": "store.away",
    "53": "store.away",
    "57": "store.away",
    "XX": "store.damaged",
}
"""Beginning of an SQLSTATE -> our code; the longest counts."""


class Database:
    """One connection to the profile database, with retries and migrations.

    Args:
        url: "sqlite:///PATH" or "postgresql://USER@HOST/NAME", or the path of a SQLite file.
        wait_seconds: How long a write waits for others.

    Attributes:
        shown: The URL without a password.
        is_sqlite: Which of the two it is.

    Raises:
        ConfigError: The URL is none of these.
        MissingDependencyError: The driver of PostgreSQL is not installed.
    """

    def __init__(self, url: str | Path, *, wait_seconds: float = WAIT_SECONDS) -> None:
        parsed = _parsed(url)
        self.shown = shown_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.wait_seconds = wait_seconds
        self.engine = _sqlite(parsed, wait_seconds) if self.is_sqlite else self._postgresql(parsed)

    @property
    def is_missing(self) -> bool:
        """Whether the file of SQLite is not there; who connects would make it."""
        return self.is_sqlite and not Path(self.engine.url.database or "").exists()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One state of the database for all that is read inside.

        Raises:
            StoreError: What the database says.
        """
        with self.translated(), self.engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """All that is written inside, or nothing of it if it is left by an error.

        Raises:
            StoreError: What the database says. After "store.away" it may have been written.
        """
        with self.translated(), self.connect_to_write() as connection, connection.begin():
            yield connection

    def connect_to_write(self) -> Connection:
        """A connection of one's own, whose transactions write; to be closed by the caller."""
        return self.engine.connect().execution_options(**{_WRITES: True})

    def insert_or_leave(self, table: Table, key: Sequence[str]) -> Any:
        """An insertion that leaves a row alone that is there."""
        return self._insert(table).on_conflict_do_nothing(index_elements=key)

    def insert_or_replace(self, table: Table, key: Sequence[str]) -> Any:
        """An insertion that replaces a row that is there."""
        made = self._insert(table)
        changed = {each.name: made.excluded[each.name] for each in table.columns}
        return made.on_conflict_do_update(index_elements=key, set_=changed)

    def _insert(self, table: Table) -> Any:
        return (sqlite.insert if self.is_sqlite else postgresql.insert)(table)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Errors of the libraries as ours."""
        try:
            yield
        except PoolTimeoutError as error:
            raise StoreError("store.locked", url=self.shown, reason=str(error)) from error
        except DBAPIError as error:
            raise self._error(error) from error
        except SQLAlchemyError as error:
            raise StoreError("store.refused", url=self.shown, reason=str(error)) from error

    def close(self) -> None:
        """Gives back all connections."""
        self.engine.dispose()

    def _error(self, error: DBAPIError) -> StoreError:
        found = error.orig
        reason = str(found).strip().splitlines()[0] if str(found).strip() else type(found).__name__
        if isinstance(found, sqlite3.Error):
            name = getattr(found, "sqlite_errorname", "") or ""
            codes = [code for start, code in _SQLITE.items() if name.startswith(start)]
            return StoreError(codes[0] if codes else "store.refused", url=self.shown, reason=reason)
        state = getattr(found, "sqlstate", None)
        if state is None:
            # The server was not reached, or went away in the middle.
            return StoreError("store.away", url=self.shown, reason=reason)
        starts = [start for start in _POSTGRESQL if state.startswith(start)]
        code = _POSTGRESQL[max(starts, key=len)] if starts else "store.refused"
        return StoreError(code, url=self.shown, reason=reason)

    def _postgresql(self, url: URL) -> Engine:
        with extra("postgresql", self.shown):
            import psycopg  # noqa: F401
        wait = int(self.wait_seconds * 1000)
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            connect_args={
                "connect_timeout": max(2, int(self.wait_seconds)),
                # A host that is gone without a word is noticed within half a minute.
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 25_000,
                "options": f"-c lock_timeout={wait} -c synchronous_commit=on "
                "-c client_encoding=UTF8",
            },
        )


def shown_url(url: str | Path) -> str:
    """A URL without its password.

    Raises:
        ConfigError: It is none of a database.
    """
    return _parsed(url).render_as_string(hide_password=True)


def _parsed(url: str | Path) -> URL:
    if isinstance(url, Path):
        return URL.create("sqlite", database=str(url))
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, SQLAlchemyError, ValueError) as error:
        raise ConfigError("config.invalid", key="url", reason=str(error)) from error
    if backend not in ("sqlite", "postgresql"):
        reason = f"{backend} is neither sqlite:///PATH nor postgresql://USER@HOST/NAME"
        raise ConfigError("config.invalid", key="url", reason=reason)
    if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
        reason = "a database in memory is lost with its process: name a file"
        raise ConfigError("config.invalid", key="url", reason=reason)
    return parsed


def _sqlite(url: URL, wait_seconds: float) -> Engine:
    engine = create_engine(
        url.set(drivername="sqlite"),
        connect_args={"timeout": wait_seconds, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # Transactions are begun below: the driver would begin them late, and not around DDL.
        connection.isolation_level = None
        mode = _journal_mode(connection, wait_seconds)
        if mode != "wal":
            raise sqlite3.OperationalError(f"no write-ahead log here, but {mode}")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _journal_mode(connection: sqlite3.Connection, wait_seconds: float) -> str:
    """Turn a database to a write-ahead log; return the mode that it has then.

    Of several connections that turn a new file at once SQLite refuses some without waiting.

    Raises:
        sqlite3.OperationalError: It is still locked after `wait_seconds`.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return str(mode)

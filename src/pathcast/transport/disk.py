"""What a broker process keeps: what its node saved, and deliveries that wait for subscribers.

One SQLite file in WAL mode with full synchronisation: when `commit` has returned, what it was given
outlives the process and the machine's power, all of it together. An append-only file of our own
took a third of the time a value at 512 values a commit, and the same at up to 8, where waiting for
the disk is everything; SQLite's recovery from a torn write is tested by more people than ours.

Example:
    >>> disk = Disk(None)
    >>> disk.commit({"tree": b"1"}, [("ann", "d1", b"<hit/>"), ("ann", "d1", b"<hit/>")])
    ['ann']
    >>> disk.saved()
    {'tree': b'1'}
    >>> disk.waiting("ann", after=0, limit=10)
    [Waiting(position=1, delivery_id='d1', body=b'<hit/>')]
    >>> disk.close()
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

from pathcast.errors import DiskError

FORMAT: Final = 1

REMEMBERED: Final = 65_536
"""Acknowledged deliveries of one subscriber whose ids are kept, so that a late double is known."""

_TABLES: Final = """
create table saved(key text primary key, value blob not null);
create table deliveries(
    subscriber text not null, position integer not null, id text not null, body blob,
    primary key(subscriber, position)
);
create unique index delivery_ids on deliveries(subscriber, id);
create table dead_letters(
    subscriber text not null, position integer not null, id text not null, body blob not null,
    reason text not null, primary key(subscriber, position)
);
create table cursors(subscriber text primary key, position integer not null) without rowid;
"""

_DELIVER: Final = """
insert into deliveries(subscriber, position, id, body) values(?, ?, ?, ?)
on conflict(subscriber, id) do nothing
"""
_LAST: Final = "select coalesce(max(position), 0) from deliveries where subscriber = ?"


class Waiting(NamedTuple):
    """A delivery that was not acknowledged yet.

    Attributes:
        position: Its place in the subscriber's inbox, from 1; what a cursor counts.
        delivery_id: The same however often it was made.
        body: What is handed over.
    """

    position: int
    delivery_id: str
    body: bytes


class Disk:
    """The directory of one broker process.

    Calls may come from several threads, one after the other.

    Args:
        directory: Made if it is missing; None keeps everything in memory (for tests).

    Raises:
        DiskError: Another process has it, it is of another format, or it is damaged.
    """

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._turn = threading.Lock()
        # Subscriber -> last position in its inbox: to ask for it each time took twice as long.
        self._last: dict[str, int] = {}
        self._lock: int | None = None
        path = ":memory:"
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(directory)
            path = str(directory / "broker.sqlite")
        try:
            self._base = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._prepare()
        except (sqlite3.Error, DiskError) as error:
            if self._lock is not None:
                os.close(self._lock)
            if isinstance(error, DiskError):
                raise
            raise self._failed(error) from error

    def _prepare(self) -> None:
        base = self._base
        # Values of a KB and more in a page, and a checkpoint each 64 MB: a third of the time that
        # the defaults take.
        base.execute("pragma page_size = 16384")
        base.execute("pragma journal_mode = wal")
        base.execute("pragma synchronous = full")
        base.execute("pragma wal_autocheckpoint = 4096")
        (found,) = base.execute("pragma user_version").fetchone()
        if found == 0:
            base.executescript(f"begin; {_TABLES} pragma user_version = {FORMAT}; commit;")
        elif found != FORMAT:
            raise DiskError("disk.format", path=self._name, found=found, expected=FORMAT)

    @property
    def _name(self) -> str:
        return "memory" if self.directory is None else str(self.directory)

    def _failed(self, error: sqlite3.Error) -> DiskError:
        return DiskError("disk.failed", path=self._name, reason=str(error))

    def saved(self) -> dict[str, bytes]:
        """All that the node saved and did not forget."""
        return dict(self._rows("select key, value from saved order by key"))

    def commit(
        self,
        saved: Mapping[str, bytes | None],
        deliveries: Iterable[tuple[str, str, bytes]] = (),
    ) -> list[str]:
        """Keeps changes, all or none; on disk when it returns.

        Args:
            saved: Key -> value, or None to forget it.
            deliveries: Subscriber, delivery id, body. One whose id the subscriber's inbox had
                before is left out.

        Returns:
            Subscribers, each once, who were delivered something.

        Raises:
            DiskError: Nothing was kept.

        Cost: one wait for the disk (a few ms), and about 10 µs a change.
        """
        keep = [(key, value) for key, value in saved.items() if value is not None]
        drop = [(key,) for key, value in saved.items() if value is None]
        last: dict[str, int] = {}
        with self._transaction() as base:
            base.executemany("insert or replace into saved values(?, ?)", keep)
            base.executemany("delete from saved where key = ?", drop)
            cursor = base.cursor()
            for subscriber, delivery_id, body in deliveries:
                at = last.get(subscriber)
                if at is None:
                    at = self._last.get(subscriber)
                if at is None:
                    ((at,),) = base.execute(_LAST, (subscriber,))
                row = (subscriber, at + 1, delivery_id, body)
                last[subscriber] = at + max(0, cursor.execute(_DELIVER, row).rowcount)
        self._last |= last
        return list(last)

    def waiting(
        self, subscriber: str, after: int, limit: int, bytes_max: int = 1 << 62
    ) -> list[Waiting]:
        """The next deliveries of a subscriber that it did not acknowledge.

        Args:
            subscriber: Whose.
            after: Position of the last one that is not wanted.
            limit: How many at most.
            bytes_max: Bytes of their bodies; the first one comes whatever it has.
        """
        which = (
            "from deliveries where subscriber = ? and position > ? and body is not null "
            "order by position limit ?"
        )
        sizes = self._rows(f"select length(body) {which}", (subscriber, after, limit))
        ends = accumulate(size for (size,) in sizes)
        count = max(1, sum(end <= bytes_max for end in ends))
        rows = self._rows(f"select position, id, body {which}", (subscriber, after, count))
        return [Waiting(*row) for row in rows]

    def cursor(self, subscriber: str) -> int:
        """Position up to which a subscriber has acknowledged; 0 at the beginning."""
        rows = self._rows("select position from cursors where subscriber = ?", (subscriber,))
        return rows[0][0] if rows else 0

    def last(self, subscriber: str) -> int:
        """Position of the last delivery that a subscriber ever got; 0 for none."""
        return int(self._rows(_LAST, (subscriber,))[0][0])

    def acknowledge(self, subscriber: str, position: int) -> None:
        """A subscriber has everything up to `position`; that is not handed over again.

        Raises:
            DiskError: Nothing changed.
        """
        before = self.cursor(subscriber)
        now = min(position, self.last(subscriber))
        if now <= before:
            return
        with self._transaction() as base:
            base.execute("insert or replace into cursors values(?, ?)", (subscriber, now))
            base.execute(
                "update deliveries set body = null "
                "where subscriber = ? and position > ? and position <= ?",
                (subscriber, before, now),
            )
            base.execute(
                "delete from deliveries where subscriber = ? and position <= ?",
                (subscriber, now - REMEMBERED),
            )

    def set_aside(self, subscriber: str, delivery: Waiting, reason: str) -> None:
        """A delivery is a dead letter: kept, with the reason, and not handed over again.

        Raises:
            DiskError: Nothing changed, or it is a dead letter and still waits.
        """
        with self._transaction() as base:
            base.execute(
                "insert or replace into dead_letters values(?, ?, ?, ?, ?)",
                (subscriber, *delivery, reason),
            )
        self.acknowledge(subscriber, delivery.position)

    def dead_letters(self, subscriber: str) -> list[tuple[Waiting, str]]:
        """Dead letters of a subscriber, each with its reason."""
        rows = self._rows(
            "select position, id, body, reason from dead_letters where subscriber = ? "
            "order by position",
            (subscriber,),
        )
        return [(Waiting(*row[:3]), row[3]) for row in rows]

    def inboxes(self) -> dict[str, int]:
        """Subscriber -> deliveries that wait."""
        return dict(
            self._rows(
                "select subscriber, max(deliveries.position) - coalesce(cursors.position, 0) "
                "from deliveries left join cursors using (subscriber) group by subscriber"
            )
        )

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        with self._turn:
            try:
                return self._base.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise self._failed(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing of what is done inside; on disk at the end."""
        with self._turn:
            try:
                self._base.execute("begin")
                yield self._base
                self._base.execute("commit")
            except sqlite3.Error as error:
                raise self._failed(error) from error
            finally:
                if self._base.in_transaction:
                    self._base.execute("rollback")

    def close(self) -> None:
        """Gives the directory back; what was committed stays."""
        with self._turn:
            self._base.close()
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None


def _locked(directory: Path) -> int:
    """A lock on the directory, which ends with the process."""
    handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise DiskError("disk.taken", path=str(directory)) from error
    return handle

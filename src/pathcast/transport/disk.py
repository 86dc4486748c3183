"""The durable state of a broker process: its node's records, and subscribers' deliveries.

One SQLite file in WAL mode with full synchronisation: when `commit` has returned, what it was given
outlives the process and the machine's power, all of it together. An append-only file of our own
took a third of the time a value at 512 values a commit, and the same at up to 8, where waiting for
the disk is everything; SQLite's recovery from a torn write is tested by more people than ours.

SQLite is called with many rows at a time. Each call lets go of the interpreter and waits to have it
back, and a thread that computes keeps it for milliseconds: a call a row made the thread of the disk
wait for the event loop hundreds of times a transaction.

Example:
    >>> disk = Disk(None)
    >>> disk.commit({"tree": b"1"}, [("ann", "d1", b"<hit/>"), ("ann", "d1", b"<hit/>")])
    {'ann': [Waiting(position=1, delivery_id='d1', body=b'<hit/>')]}
    >>> disk.saved()
    {'tree': b'1'}
    >>> disk.waiting("ann", after=0, limit=10)
    [Waiting(position=1, delivery_id='d1', body=b'<hit/>')]
    >>> disk.close()
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from pathcast.errors import DiskError, SourceError
from pathcast.transport.database_file import DATABASE, disk_error, make_private, open_database
from pathcast.transport.dead_letters import (
    DeadLetter,
    has_room_for_letter,
    letters_after,
    put_letter,
    take_letters,
)
from pathcast.transport.events import log_event
from pathcast.transport.inbox_bounds import DEFAULT, Gap, InboxBounds, InboxState
from pathcast.transport.saved_on_disk import SavedOnDisk

REMEMBERED: Final = 65_536
"""Acknowledged deliveries of one subscriber whose ids are kept, so that a late double is known, and
as many of those that a full inbox did not take."""

CHECKPOINT_BYTES: Final = 8 * 1024 * 1024
"""Bytes committed since the last checkpoint, after which the next one begins."""

WAL_PAGES_MAX: Final = 16_384
"""Pages of the log of SQLite at which a commit ends the checkpoint that is under way."""

SPARE_PAGES: Final = 4096
"""Pages that are free before the file shrinks: a short backlog does not make it shrink and grow."""

SHRINK_PAGES: Final = 1024
"""Pages that are given back at a time, beside a commit that forgets something."""

SHRINK_COMMITS: Final = 32
"""Of these commits, one looks whether pages are free."""

INBOX_LIVES_MAX: Final = 256
"""Lives that are remembered of an inbox. A cursor of one of before is refused."""

ROWS: Final = (128, 32, 8, 1)
"""Deliveries that one statement inserts: few statements a group, and few to prepare."""

_LAST: Final = "select coalesce(max(position), 0) from deliveries where subscriber = ?"
_CURSOR: Final = "select coalesce(max(position), 0) from cursors where subscriber = ?"
_LIFE: Final = """
select life from inbox_lives where subscriber = ? and first <= ? order by first desc limit 1
"""
_HELD: Final = """
select count(*), coalesce(sum(length(body)), 0), coalesce(max(position), 0) from deliveries
where subscriber = ? and position > ? and position <= ? and body is not null
"""


_SUBSCRIBERS: Final = """
with recursive names(name) as (
    select min(subscriber) from deliveries
    union all
    select (select min(subscriber) from deliveries where subscriber > name) from names
    where name is not null
) select name from names where name is not null
"""
"""Each is found by the index: inboxes are many rows, and subscribers few."""


class InboxCursor(NamedTuple):
    """How far an inbox was read.

    Attributes:
        position: Of the last delivery.
        life: Of the process that put it there. A position means nothing in an inbox of another
            disk; with the life, that is found out.
    """

    position: int
    life: int


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
        bounds: Of each inbox.
        name: Of the process: see `open_database`.
        is_new: As of `open_database`.
        check: Called when something is on disk and before anybody is told; raises DiskError if it
            does not count (`pathcast.transport.fencing`).

    Attributes:
        life: Number of this life of the process, which no other has; 53 bits.

    Raises:
        DiskError: Another process has it; and as of `open_database`.
    """

    def __init__(
        self,
        directory: Path | None,
        bounds: InboxBounds = DEFAULT,
        *,
        name: str = "",
        is_new: bool | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.directory = directory
        self.life = 1 + secrets.randbits(53) % (2**53 - 1)
        self._check = check
        self.bounds = bounds
        self._turn = threading.Lock()
        # Subscriber -> its inbox: to ask for the last position each time took twice as long.
        self._states: dict[str, InboxState] = {}
        self._are_all_known = False
        # A checkpoint takes tens of milliseconds, in which a commit would hold messages up.
        self._checkpoint: threading.Thread | None = None
        self._bytes = 0
        self._lock: int | None = None
        self._readers: list[sqlite3.Connection] = []
        # Subscriber -> position of the first delivery of this life.
        self._firsts: dict[str, int] = {}
        self._forgot = 0
        if directory is not None:
            if is_new is False and not directory.exists():
                raise DiskError("disk.empty", path=str(directory))
            try:
                make_private(directory)
                self._lock = _locked(directory)
            except OSError as error:
                raise disk_error(str(directory), error) from error
        try:
            self._base = open_database(directory, name, is_new=is_new)
            try:
                self._base.execute(f"pragma wal_autocheckpoint = {WAL_PAGES_MAX}")
                # Also makes the log of SQLite, so that it is known which file that is.
                life = ("life", str(self.life))
                self._base.execute("insert or replace into about values(?, ?)", life)
            except sqlite3.Error as error:
                self._base.close()
                raise self._failed(error) from error
        except DiskError:
            if self._lock is not None:
                os.close(self._lock)
            raise
        self._files = self._found_files()

    def _found_files(self) -> tuple[tuple[int, int], ...]:
        """Which files the database is in; a file that is made anew is another one."""
        if self.directory is None:
            return ()
        try:
            found = [(self.directory / name).stat() for name in (DATABASE, f"{DATABASE}-wal")]
        except FileNotFoundError:
            return ()
        return tuple((each.st_dev, each.st_ino) for each in found)

    @property
    def _name(self) -> str:
        return "memory" if self.directory is None else str(self.directory)

    def _failed(self, error: sqlite3.Error) -> DiskError:
        return disk_error(self._name, error)

    @contextlib.contextmanager
    def decoding(self) -> Iterator[None]:
        """Errors of values that were saved, and that are read inside, as errors of this disk.

        Raises:
            DiskError: A value is none of this version ("disk.state").
        """
        try:
            yield
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DiskError("disk.state", path=self._name, reason=str(error)) from error

    def saved(self, *, read_later: bool = False) -> Mapping[str, bytes]:
        """All that the node saved and did not forget.

        Args:
            read_later: Whether each record is read when it is asked for, as it is then.
        """
        if read_later and self.directory is not None:
            base = sqlite3.connect(self.directory / DATABASE, check_same_thread=False)
            self._readers.append(base)
            return SavedOnDisk(base, self._failed)
        return dict(self._rows("select key, value from saved order by key"))

    def commit(
        self,
        saved: Mapping[str, bytes | None],
        deliveries: Iterable[tuple[str, str, bytes]] = (),
        acknowledged: Mapping[str, int] = MappingProxyType({}),
    ) -> dict[str, list[Waiting]]:
        """Keeps changes, all or none; on disk when it returns.

        Args:
            saved: Key -> value, or None to forget it.
            deliveries: Subscriber, delivery id, body. One whose id the subscriber's inbox had
                before is left out; of one that a full inbox does not take, position and id are
                kept.
            acknowledged: Subscriber -> position up to which it has everything; that is not handed
                over again.

        Returns:
            Subscriber -> what has come into the inbox, in order; nothing, where all was dropped.

        Raises:
            DiskError: Nothing was kept.

        Cost: one wait for the disk (a few ms), and about 10 µs a change. Ids that come in order
            cost least: they lie together.
        """
        keep = [(key, value) for key, value in saved.items() if value is not None]
        drop = [(key,) for key, value in saved.items() if value is None]
        with self._transaction() as base:
            if keep:
                base.executemany("insert or replace into saved values(?, ?)", keep)
            if drop:
                base.executemany("delete from saved where key = ?", drop)
            came, states = self._deliver(base, deliveries)
            for subscriber, position in acknowledged.items():
                state = states.get(subscriber) or self._state(base, subscriber)
                states[subscriber] = self._acknowledge(base, subscriber, position, state)
        self._keep_states(states)
        if drop or acknowledged:
            self._shrink()
        self._bytes += sum(len(value) for _, value in keep)
        self._bytes += sum(len(one.body) for waiting in came.values() for one in waiting)
        if self._bytes >= CHECKPOINT_BYTES:
            self._begin_checkpoint()
        return came

    def _shrink(self) -> None:
        """Gives pages back that a backlog has left."""
        self._forgot += 1
        if self._forgot % SHRINK_COMMITS:
            return
        with self._reading() as base:
            ((free,),) = base.execute("pragma freelist_count").fetchall()
            if free > SPARE_PAGES:
                # As a script: `execute` would take one step, which gives back one page.
                base.executescript(f"pragma incremental_vacuum({SHRINK_PAGES})")

    def _begin_checkpoint(self) -> None:
        if self.directory is None or (self._checkpoint and self._checkpoint.is_alive()):
            return
        self._bytes = 0
        path = self.directory / DATABASE
        self._checkpoint = threading.Thread(target=_copy_log, args=(path,), name="checkpoint")
        self._checkpoint.start()

    def _deliver(
        self, base: sqlite3.Connection, deliveries: Iterable[tuple[str, str, bytes]]
    ) -> tuple[dict[str, list[Waiting]], dict[str, InboxState]]:
        came: dict[str, dict[str, Waiting]] = {}
        for subscriber, delivery_id, body in deliveries:
            inbox = came.setdefault(subscriber, {})
            inbox.setdefault(delivery_id, Waiting(0, delivery_id, body))
        found: dict[str, list[Waiting]] = {}
        states: dict[str, InboxState] = {}
        for subscriber, inbox in came.items():
            before = self._state(base, subscriber)
            waiting = _placed(inbox.values(), before.last)
            taken, state = self._take_in(base, subscriber, waiting, before)
            if taken is None:
                known = _known(base, subscriber, waiting)
                waiting = _placed(
                    (one for one in waiting if one.delivery_id not in known), before.last
                )
                taken, state = self._take_in(base, subscriber, waiting, before)
            if waiting:
                found[subscriber] = waiting[:taken]
                states[subscriber] = state
        return found, states

    def _take_in(
        self,
        base: sqlite3.Connection,
        subscriber: str,
        waiting: Sequence[Waiting],
        state: InboxState,
    ) -> tuple[int | None, InboxState]:
        """How many are taken, None if the inbox has had one before; and the inbox then."""
        taken, after = state.with_deliveries([len(one.body) for one in waiting], self.bounds)
        rows: Sequence[tuple[int, str, bytes | None]] = waiting
        if taken < len(waiting):
            rows = [*waiting[:taken], *((one[0], one[1], None) for one in waiting[taken:])]
        if not _insert(base, subscriber, rows):
            return None, state
        if waiting:
            self._note_life(base, subscriber, waiting[0].position)
        if after.dropped > REMEMBERED:
            _forget_dropped(base, subscriber, state, after)
        return taken, after

    def _note_life(self, base: sqlite3.Connection, subscriber: str, first: int) -> None:
        """From a position on, an inbox is what this life has put there."""
        if subscriber in self._firsts:
            return
        base.execute(
            "insert or replace into inbox_lives values(?, ?, ?)", (subscriber, first, self.life)
        )
        base.execute(
            "delete from inbox_lives where subscriber = ? and first <= (select first from "
            "inbox_lives where subscriber = ? order by first desc limit 1 offset ?)",
            (subscriber, subscriber, INBOX_LIVES_MAX),
        )
        self._firsts[subscriber] = first

    def life_at(self, subscriber: str, position: int) -> int:
        """The life of the process that put a position into an inbox; 0 if that is not known."""
        if life := self.present_life_at(subscriber, position):
            return life
        rows = self._rows(_LIFE, (subscriber, position))
        return int(rows[0][0]) if rows else 0

    def present_life_at(self, subscriber: str, position: int) -> int:
        """This life if it put a position into an inbox; else 0. From memory."""
        first = self._firsts.get(subscriber)
        return self.life if first is not None and position >= first else 0

    def check_cursor(self, subscriber: str, cursor: InboxCursor) -> None:
        """Refuses a position that was read of another inbox of this name.

        Raises:
            SourceError: The inbox does not go so far ("inbox.ahead"), or the position was put there
                by a life that this disk does not know ("inbox.other").
        """
        at, last = cursor.position, self.last(subscriber)
        if at > last:
            raise SourceError("inbox.ahead", path=subscriber, after=at, last=last)
        if at and self.life_at(subscriber, at) != cursor.life:
            raise SourceError("inbox.other", path=subscriber, after=at)

    def _state(self, base: sqlite3.Connection, subscriber: str) -> InboxState:
        """An inbox in numbers; the first time, what waits is counted."""
        if (known := self._states.get(subscriber)) is not None:
            return known
        ((last,),) = base.execute(_LAST, (subscriber,)).fetchall()
        ((cursor,),) = base.execute(_CURSOR, (subscriber,)).fetchall()
        ((count, size, held),) = base.execute(_HELD, (subscriber, cursor, last)).fetchall()
        state = InboxState(last, cursor, count, size, is_full=max(held, cursor) < last)
        self._keep_states({subscriber: state})
        return state

    def _keep_states(self, states: Mapping[str, InboxState]) -> None:
        """Of inboxes that ever had something; what is full now and was not is said, and back."""
        for subscriber, state in states.items():
            if not state.last:
                continue
            was_full = self._states.get(subscriber, InboxState()).is_full
            self._states[subscriber] = state
            if state.is_full and not was_full:
                log_event(
                    "inbox.full",
                    subscriber=subscriber,
                    waiting=state.waiting,
                    bytes=state.bytes,
                )
            elif was_full and not state.is_full:
                log_event("inbox.freed", subscriber=subscriber)

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

    def read(
        self, subscriber: str, after: int, limit: int, bytes_max: int = 1 << 62
    ) -> list[Waiting | Gap]:
        """The deliveries of `waiting`, with a `Gap` in the place of those that were not taken."""
        with self._reading() as base:
            state = self._state(base, subscriber)
        at = max(after, state.cursor)
        found: list[Waiting | Gap] = []
        for one in self.waiting(subscriber, at, limit, bytes_max):
            if one.position > at + 1:
                found.append(Gap(at + 1, one.position - 1))
            found.append(one)
            at = one.position
        if not found and at < state.last:
            found.append(Gap(at + 1, state.last))
        return found

    def cursor(self, subscriber: str) -> int:
        """Position up to which a subscriber has acknowledged; 0 at the beginning."""
        return int(self._rows(_CURSOR, (subscriber,))[0][0])

    def has_acknowledged(self, subscriber: str, delivery_id: str) -> bool:
        """Whether a subscriber has acknowledged a delivery that is remembered, and all before."""
        wanted = "select position from deliveries where subscriber = ? and id = ?"
        rows = self._rows(wanted, (subscriber, delivery_id))
        return bool(rows) and int(rows[0][0]) <= self.cursor(subscriber)

    def last(self, subscriber: str) -> int:
        """Position of the last delivery that a subscriber ever got; 0 for none."""
        return int(self._rows(_LAST, (subscriber,))[0][0])

    def _acknowledge(
        self, base: sqlite3.Connection, subscriber: str, position: int, state: InboxState
    ) -> InboxState:
        now = min(position, state.last)
        if now <= state.cursor:
            return state
        base.execute("insert or replace into cursors values(?, ?)", (subscriber, now))
        count, size = state.waiting, state.bytes
        if now < state.last:
            which = (subscriber, state.cursor, now)
            ((count, size, _),) = base.execute(_HELD, which).fetchall()
        base.execute(
            "update deliveries set body = null "
            "where subscriber = ? and position > ? and position <= ?",
            (subscriber, state.cursor, now),
        )
        base.execute(
            "delete from deliveries where subscriber = ? and position <= ?",
            (subscriber, now - REMEMBERED),
        )
        return state.with_acknowledgement(now, count, size)

    def set_aside(self, subscriber: str, delivery: Waiting, reason: str) -> bool:
        """A delivery is a dead letter: kept, with the reason, and not handed over again.

        Returns:
            Whether there was room for one more; else nothing changed.

        Raises:
            DiskError: Nothing changed.
        """
        with self._transaction() as base:
            if not has_room_for_letter(base, subscriber, self.bounds):
                return False
            put_letter(base, DeadLetter(subscriber, *delivery, reason))
            state = self._state(base, subscriber)
            state = self._acknowledge(base, subscriber, delivery.position, state)
        self._keep_states({subscriber: state})
        return True

    def dead_letters(
        self, after: tuple[str, int] = ("", 0), limit: int = 1000, bytes_max: int = 1 << 62
    ) -> list[DeadLetter]:
        """Dead letters of all subscribers, those that follow one; see `waiting`."""
        with self._reading() as base:
            return letters_after(base, after, limit, bytes_max)

    def dead_letter_counts(self) -> dict[str, int]:
        """Subscriber -> its dead letters, of those who have some."""
        return dict(self._rows("select subscriber, count(*) from dead_letters group by subscriber"))

    def drop_letters(self, subscriber: str, positions: Sequence[int]) -> int:
        """Dead letters are not kept any more.

        Returns:
            How many there were of them.

        Raises:
            DiskError: Nothing changed.
        """
        with self._transaction() as base:
            return len(take_letters(base, subscriber, positions))

    def retry_letters(self, subscriber: str, positions: Sequence[int]) -> int:
        """Dead letters wait again, behind what waits, with the ids that they had.

        Returns:
            How many. What the inbox has no room for, and what follows, stays a dead letter.

        Raises:
            DiskError: Nothing changed.
        """
        with self._transaction() as base:
            letters = take_letters(base, subscriber, positions)
            before = self._state(base, subscriber)
            sizes = [len(each.body) for each in letters]
            count, _ = before.with_deliveries(sizes, self.bounds)
            _, state = before.with_deliveries(sizes[:count], self.bounds)
            for letter in letters[count:]:
                put_letter(base, letter)
            again = [Waiting(0, each.delivery_id, each.body) for each in letters[:count]]
            base.executemany(
                "delete from deliveries where subscriber = ? and id = ?",
                [(subscriber, each.delivery_id) for each in again],
            )
            _insert(base, subscriber, _placed(again, before.last))
            if again:
                self._note_life(base, subscriber, before.last + 1)
        if count:
            self._keep_states({subscriber: state})
        return count

    def inboxes(self) -> dict[str, InboxState]:
        """All inboxes that ever had something, in numbers.

        Cost: the first time a few µs an inbox, and what waits there is counted; then a dictionary
            is copied.
        """
        if not self._are_all_known:
            names = [name for (name,) in self._rows(_SUBSCRIBERS)]
            with self._reading() as base:
                for name in names:
                    self._state(base, name)
            self._are_all_known = True
        return dict(sorted(self._states.items()))

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        with self._reading() as base:
            return base.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._turn:
            try:
                yield self._base
            except sqlite3.Error as error:
                raise self._failed(error) from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing of what is done inside; on disk at the end."""
        with self._turn:
            try:
                self._base.execute("begin")
                yield self._base
                self._base.execute("commit")
                self._check()
                if self._found_files() != self._files:
                    raise DiskError("disk.gone", path=self._name)
            except sqlite3.Error as error:
                raise self._failed(error) from error
            finally:
                if self._base.in_transaction:
                    self._base.execute("rollback")

    def close(self) -> None:
        """Gives the directory back; what was committed stays."""
        if self._checkpoint is not None:
            self._checkpoint.join()
        with self._turn:
            for base in (*self._readers, self._base):
                base.close()
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


def is_taken(directory: Path) -> bool:
    """Whether a process has a directory."""
    try:
        os.close(_locked(directory))
    except DiskError:
        return True
    return False


def _copy_log(path: Path) -> None:
    """Copies what the log of SQLite holds to where it belongs; commits go on meanwhile.

    What it cannot copy now, a commit does, as soon as the log is long.
    """
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("pragma wal_checkpoint(passive)").fetchall()


def _placed(deliveries: Iterable[Waiting], start: int) -> list[Waiting]:
    """Deliveries with the positions that follow one."""
    return [Waiting(at, one[1], one[2]) for at, one in enumerate(deliveries, start + 1)]


def _insert(
    base: sqlite3.Connection, subscriber: str, waiting: Sequence[tuple[int, str, bytes | None]]
) -> bool:
    """Inserts all, or none if the inbox has had one of them before."""
    base.execute("savepoint inbox")
    start = 0
    try:
        for size in ROWS:
            statement = f"insert into deliveries values {', '.join(['(?, ?, ?, ?)'] * size)}"
            while len(waiting) - start >= size:
                group = waiting[start : start + size]
                values = [each for one in group for each in (subscriber, *one)]
                base.execute(statement, values)
                start += size
    except sqlite3.IntegrityError:
        base.execute("rollback to inbox")
        return False
    finally:
        base.execute("release inbox")
    return True


def _known(base: sqlite3.Connection, subscriber: str, waiting: Sequence[Waiting]) -> set[str]:
    """Ids that the inbox has had before."""
    query = "select 1 from deliveries where subscriber = ? and id = ?"
    ids = [one.delivery_id for one in waiting]
    return {each for each in ids if base.execute(query, (subscriber, each)).fetchone()}


def _forget_dropped(
    base: sqlite3.Connection, subscriber: str, before: InboxState, after: InboxState
) -> None:
    """Takes away ids of what was dropped before the last `REMEMBERED` deliveries.

    Of those that have come to be so just now, so that each row is looked at once.
    """
    base.execute(
        "delete from deliveries "
        "where subscriber = ? and position > ? and position <= ? and body is null",
        (subscriber, max(before.last - REMEMBERED, after.cursor), after.last - REMEMBERED),
    )

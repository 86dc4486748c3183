"""The database file of a process that keeps something: whose it is, whether it is whole, copies.

What is in it is `disk`'s. Here it is made, readable by its owner alone; opened only for the process
whose name it knows; checked, within a bound; and copied while its process runs. A copy is marked:
the process that begins with it tells others that it may know less than they have seen of it.

Example:
    >>> import tempfile
    >>> directory = Path(tempfile.mkdtemp())
    >>> base = open_database(directory, "bern", is_new=True)
    >>> base.execute("insert into saved values ('members', x'90')").rowcount
    1
    >>> base.close()
    >>> back_up(directory, directory / "copy.sqlite").name
    'bern'
    >>> restore(directory / "copy.sqlite", directory / "again").name
    'bern'
    >>> open_database(directory / "again", "basel")
    Traceback (most recent call last):
    ...
    pathcast.errors.DiskError: ...again is the directory of bern, and this is basel: ...
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pathcast.errors import DiskError
from pathcast.transport.dead_letters import LETTERS_TABLE
from pathcast.transport.events import log_event

DATABASE: Final = "broker.sqlite"

FORMAT: Final = 2

WITHOUT_NAMES: Final = 1
"""Format without names and lives of inboxes; `open_database` brings it up to date."""

RESTORED: Final = "restored"
"""Key of what a node saved, in copies: others may have seen more of it."""

PAGE_BYTES: Final = 4096
"""With pages of 16 KB, small groups wrote three times as much."""

CHECK_SECONDS: Final = 5.0
"""How long a database is checked at the start. What is not looked at by then is found when it is
read."""

_OWNER_FILE: Final = 0o600
_OWNER_DIRECTORY: Final = 0o700

_MADE_IN_2: Final = """
create table about(key text primary key, value text not null) without rowid;
create table inbox_lives(
    subscriber text not null, first integer not null, life integer not null,
    primary key(subscriber, first)
) without rowid;
"""

_TABLES: Final = f"""
create table saved(key text primary key, value blob not null);
create table deliveries(
    subscriber text not null, position integer not null, id text not null, body blob,
    primary key(subscriber, position)
);
create unique index delivery_ids on deliveries(subscriber, id);
{LETTERS_TABLE}
create table cursors(subscriber text primary key, position integer not null) without rowid;
{_MADE_IN_2}
"""


class DatabaseCopy(NamedTuple):
    """A database that was copied.

    Attributes:
        name: Of the process whose it is; empty if it does not say so.
        size: Bytes of the copy.
    """

    name: str
    size: int


def make_private(directory: Path) -> None:
    """Makes a directory, if it is missing, that only its owner can enter; mends one that is there.

    What lies in it is mended likewise: messages and tokens are nobody else's business.
    """
    directory.mkdir(mode=_OWNER_DIRECTORY, parents=True, exist_ok=True)
    _mend(directory, _OWNER_DIRECTORY)
    for path in directory.iterdir():
        if path.is_file() and not path.is_symlink():
            _mend(path, _OWNER_FILE)


def _mend(path: Path, most: int) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & ~most:
        try:
            path.chmod(mode & most)
        except PermissionError as error:
            log_event("file.readable", path=str(path), reason=str(error))


def open_database(
    directory: Path | None, name: str = "", *, is_new: bool | None = None
) -> sqlite3.Connection:
    """Opens the database of a directory, which is made if it may be.

    Args:
        directory: Where it is; None: in memory.
        name: Of the process, which has to be the one that it was made for; empty: anybody's.
        is_new: Whether there must be none yet (True), must be one (False), or either (None).

    Raises:
        DiskError: There is none ("disk.empty"), there is one ("disk.begun"), it is another's
            ("disk.name"), of another format, damaged, or cannot be read or written.

    Cost: reads the file once, for `CHECK_SECONDS` at most.
    """
    if directory is None:
        return _prepared(_connected(":memory:"), "memory", name)
    path = directory / DATABASE
    is_there = path.exists() and path.stat().st_size > 0
    if is_there and is_new:
        raise DiskError("disk.begun", path=str(directory))
    if not is_there and is_new is False:
        raise DiskError("disk.empty", path=str(directory))
    with _typed(directory):
        # SQLite gives its other files the mode of this one.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_FILE))
        base = _connected(path)
        try:
            if is_there:
                _check(base, directory)
            return _prepared(base, str(directory), name)
        except BaseException:
            base.close()
            raise


def _connected(path: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


def _prepared(base: sqlite3.Connection, place: str, name: str) -> sqlite3.Connection:
    base.execute(f"pragma page_size = {PAGE_BYTES}")
    base.execute("pragma auto_vacuum = incremental")
    base.execute("pragma journal_mode = wal")
    base.execute("pragma synchronous = full")
    (found,) = base.execute("pragma user_version").fetchone()
    if found == 0:
        base.executescript(f"begin; {_TABLES} pragma user_version = {FORMAT}; commit;")
    elif found == WITHOUT_NAMES:
        base.executescript(f"begin; {_MADE_IN_2} pragma user_version = {FORMAT}; commit;")
        base.execute("vacuum")  # from now on it can shrink
    else:
        _check_format(found, place)
    owner = _owner(base)
    if name and owner and owner != name:
        raise DiskError("disk.name", path=place, found=owner, name=name)
    if name and not owner:
        base.execute("insert into about values('name', ?)", (name,))
    return base


def _owner(base: sqlite3.Connection) -> str:
    found = base.execute("select value from about where key = 'name'").fetchone()
    return "" if found is None else str(found[0])


def _check(base: sqlite3.Connection, directory: Path) -> None:
    """Looks at the whole file, if that does not take too long.

    Raises:
        DiskError: It is damaged.
    """
    until = time.monotonic() + CHECK_SECONDS
    base.set_progress_handler(lambda: time.monotonic() > until, 100_000)
    try:
        (found,) = base.execute("pragma quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        log_event("disk.unchecked", path=str(directory), seconds=CHECK_SECONDS)
        return
    finally:
        base.set_progress_handler(None, 0)
    if found != "ok":
        raise DiskError("disk.damaged", path=str(directory), reason=found)


def disk_error(place: str, error: sqlite3.Error | OSError) -> DiskError:
    """Convert an error of SQLite to one of the catalogue."""
    # Others than these are about what is in the file, and not about reading it.
    is_damaged = type(error) is sqlite3.DatabaseError
    return DiskError("disk.damaged" if is_damaged else "disk.failed", path=place, reason=str(error))


@contextlib.contextmanager
def _typed(place: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise disk_error(str(place), error) from error


def back_up(directory: Path, copy: Path) -> DatabaseCopy:
    """Copies a database, whether its process runs or not: as it is at one moment.

    Args:
        directory: Of the process.
        copy: File that is written; only its owner can read it.

    Raises:
        DiskError: There is no database, the file is there already, or it cannot be written.
    """
    if not (directory / DATABASE).exists():
        raise DiskError("disk.empty", path=str(directory))
    with _typed(directory), contextlib.closing(sqlite3.connect(directory / DATABASE)) as base:
        return _copied(base, directory, copy)


def restore(copy: Path, directory: Path) -> DatabaseCopy:
    """Puts a copy into a directory that has no database.

    Args:
        copy: As `back_up` wrote it.
        directory: Of the process, which does not run; made if it is missing.

    Raises:
        DiskError: There is a database, or the copy is damaged or none.
    """
    if (directory / DATABASE).exists():
        raise DiskError("disk.begun", path=str(directory))
    make_private(directory)
    with (
        _typed(copy),
        contextlib.closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as base,
    ):
        _check(base, copy)
        return _copied(base, copy, directory / DATABASE)


def _copied(base: sqlite3.Connection, place: Path, file: Path) -> DatabaseCopy:
    """Copies a database, which is at a place, to a file; an older format stays what it is."""
    (found,) = base.execute("pragma user_version").fetchone()
    _check_format(found, str(place))
    name = _owner(base) if found > WITHOUT_NAMES else ""
    _write(base, file)
    return DatabaseCopy(name, file.stat().st_size)


def _check_format(found: int, place: str) -> None:
    """Refuses formats that cannot be brought up to date, and databases of other programs.

    Raises:
        DiskError: "disk.format", "disk.damaged".
    """
    if found < WITHOUT_NAMES:
        reason = "it has no tables of Pathcast"
        raise DiskError("disk.damaged", path=place, reason=reason)
    if found > FORMAT:
        raise DiskError("disk.format", path=place, found=found, expected=FORMAT)


def _write(base: sqlite3.Connection, path: Path) -> None:
    """Writes a database to a file, marked as a copy; all of it or nothing."""
    if path.exists():
        raise DiskError("disk.failed", path=str(path), reason="the file is there already")
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_FILE)
    try:
        with contextlib.closing(sqlite3.connect(part, isolation_level=None)) as made:
            base.backup(made)
            made.execute("pragma journal_mode = delete")
            made.execute("insert or replace into saved values(?, x'c3')", (RESTORED,))
        os.fsync(handle)
        part.rename(path)
        _sync_directory(path.parent)
    finally:
        os.close(handle)
        part.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

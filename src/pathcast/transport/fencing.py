"""A directory that several processes of one broker share, fenced by the token of their lease.

Whoever takes the directory over raises the *fence*: it writes its token into the directory, and
whoever has an older one counts no more. A process looks at the fence after each commit and before
it speaks of what it committed, so that it may stand still anywhere, for as long as it likes: what
it commits without having spoken of it, somebody else may have missed.

Usually a former player gives the directory back as soon as it finds the fence. One that stands
still (SIGSTOP, a machine that is suspended) does not. Then its database is copied as it was
committed last, into a folder of its own, and that is the directory from then on. Both would use one
database otherwise: SQLite's locks are with the process that stands still.

That is right because of the order. Who takes over raises the fence first and copies afterwards; who
commits looks at the fence afterwards. If it finds the fence as it was, the copy was begun later and
has what it committed.

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     former, present = Fence(Path(name), 1), Fence(Path(name), 2)
    ...     former.raise_up()
    ...     former.check()
    ...     present.raise_up()
    ...     try:
    ...         former.check()
    ...     except DiskError as error:
    ...         print(error.code, error.params["found"])
    disk.fenced 2
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from pathcast.errors import DiskError
from pathcast.transport.database_file import DATABASE
from pathcast.transport.disk import is_taken

_COPY: Final = "taken-"
"""Folders of copies begin with this; the token of who made it follows."""

TOKENS: Final = "tokens"
"""Folder of the fence: a file for each token; the highest counts. In it stands the folder of the
database, from the root directory on, once the player has it: a player that comes to an end of its
copy too late changes nothing, because its token is not the highest."""


class Fence:
    """A directory as one player of a broker sees it.

    Args:
        directory: Which all processes of the broker share.
        token: Of the player's lease.
    """

    def __init__(self, directory: Path, token: int) -> None:
        self._directory = directory
        self._tokens = directory / TOKENS
        self._token = token

    def raise_up(self) -> None:
        """Raise the fence: older tokens no longer count.

        Raises:
            DiskError: Somebody has a newer one ("disk.fenced"), or nothing can be written.
        """
        try:
            self._tokens.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._tokens / str(self._token)).touch(mode=0o600)
            _keep(self._tokens)
        except OSError as error:
            raise self._failed(error) from error
        self.check()

    def check(self) -> None:
        """Makes sure that nobody has a newer token.

        Raises:
            DiskError: Somebody has ("disk.fenced"); what was done does not count.

        Cost: one look into a folder, some 10 µs.
        """
        if (found := max(self._raised(), default=0)) > self._token:
            path = str(self._directory)
            raise DiskError("disk.fenced", path=path, found=found, token=self._token)

    @property
    def place(self) -> Path:
        """Where the database is: the directory, or the copy that was made last."""
        for token in sorted(self._raised(), reverse=True):
            with contextlib.suppress(FileNotFoundError):
                if name := (self._tokens / str(token)).read_text():
                    return self._directory / name
        return self._directory

    def use(self, place: Path) -> None:
        """The database is there from now on, and this player has it.

        Raises:
            DiskError: Somebody has a newer token ("disk.fenced"), or nothing can be written.
        """
        token = self._tokens / str(self._token)
        new = token.with_suffix(".new")
        try:
            new.write_text(str(place.relative_to(self._directory)))
            _keep(new)
            new.replace(token)
            _keep(self._tokens)
        except OSError as error:
            raise self._failed(error) from error
        self.check()
        for each in self._raised():
            if each < self._token:
                (self._tokens / str(each)).unlink(missing_ok=True)

    def copy(self) -> None:
        """Goes on with a copy, because who has the database does not give it back.

        Raises:
            DiskError: It cannot be copied now, or somebody has a newer token ("disk.fenced").

        Cost: that of reading and writing all of the database.
        """
        made = self._directory / f"{_COPY}{self._token}"
        try:
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(mode=0o700)
            with (
                contextlib.closing(sqlite3.connect(self.place / DATABASE)) as former,
                contextlib.closing(sqlite3.connect(made / DATABASE)) as copied,
            ):
                former.backup(copied)
            _keep(made)
            _keep(self._directory)
        except (sqlite3.Error, OSError) as error:
            self.check()
            raise self._failed(error) from error
        self.use(made)

    def clear(self) -> None:
        """Takes away what was copied from, unless somebody has it still."""
        present = self.place
        for place in (self._directory, *self._directory.glob(f"{_COPY}*")):
            if place == present or is_taken(place):
                continue
            for file in place.glob(f"{DATABASE}*"):
                file.unlink(missing_ok=True)
            if place != self._directory:
                shutil.rmtree(place, ignore_errors=True)

    def _raised(self) -> list[int]:
        try:
            names = os.listdir(self._tokens)  # noqa: PTH208  after each commit
        except FileNotFoundError:
            return []
        return [int(name) for name in names if name.isdecimal()]

    def _failed(self, error: Exception) -> DiskError:
        return DiskError("disk.failed", path=str(self._directory), reason=str(error))


def _keep(path: Path) -> None:
    """Flush a file or a folder to the device."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""A place that cannot be written: a full disk, a quota, a read-only file system, permissions.

Each becomes one `DiskError` that names the file, says why, and what to do; a file that was half
written is taken out, so that it takes no room. What was committed before stays as it is.

Example:
    >>> with writing("delivered/_commits/7.json"):
    ...     raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    Traceback (most recent call last):
    ...
    pathcast.errors.DiskError: delivered/_commits/7.json cannot be written: No space left on \
device; make room there. What was committed stays as it is, and the next run goes on from there

It retries nothing.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any, Final

from pathcast.errors import DiskError

_FIXES: Final = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "raise the quota, or make room within it",
    errno.EROFS: "mount it for writing, or choose another place",
    errno.EACCES: "let the user who runs this write there, or choose another place",
    errno.EPERM: "let the user who runs this write there, or choose another place",
    errno.EFBIG: "raise the limit of the size of files (ulimit -f)",
}
_OTHERWISE: Final = "mend the place, or choose another one"
_OF_SPARK: Final = "a directory of Spark (spark.local.dir, TMPDIR)"
_OF_DISKS: Final = re.compile("|".join(re.escape(os.strerror(number)) for number in _FIXES))


def unwritable(path: str, error: OSError) -> DiskError:
    """Returns the error of a place that cannot be written."""
    reason = error.strerror or str(error)
    fix = _FIXES.get(error.errno or 0, _OTHERWISE)
    return DiskError("disk.unwritable", path=path, reason=reason, fix=fix)


def unwritable_in(text: str, path: str = _OF_SPARK) -> DiskError | None:
    """Returns the error of a full disk or the like that a library or a process tells in words.

    Args:
        text: What it says, such as a Java exception with its causes. None where it says nothing
            of a disk.
        path: What names the place.
    """
    found = _OF_DISKS.search(text)
    if found is None:
        return None
    fix = next(fix for number, fix in _FIXES.items() if os.strerror(number) == found[0])
    return DiskError("disk.unwritable", path=path, reason=found[0], fix=fix)


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turns what the system says of writing into a `DiskError`.

    Raises:
        DiskError: It cannot be.
    """
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from error


class OutputFile:
    """A file that is being written, whose faults are `DiskError`s.

    After a fault all that comes goes nowhere: libraries that write an end to the file when they are
    taken apart find nothing to complain of.
    """

    def __init__(self, handle: IO[bytes], path: str, remove: Callable[[], None]) -> None:
        self._handle = handle
        self._path = path
        self._remove = remove

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._handle, name)
        return partial(self._guarded, found) if name in ("write", "flush", "close") else found

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _guarded(self, call: Callable[..., Any], *given: Any) -> Any:
        try:
            return call(*given)
        except OSError as error:
            self._give_up()
            raise unwritable(self._path, error) from error

    def _give_up(self) -> None:
        nowhere = open(os.devnull, "wb")  # noqa: PTH123, SIM115
        failed, self._handle = self._handle, nowhere
        with suppress(OSError, ValueError, AttributeError):
            # What it has buffered goes nowhere too, whenever it is closed.
            os.dup2(nowhere.fileno(), failed.fileno())
        with suppress(OSError, ValueError):
            failed.close()
        with suppress(OSError, DiskError):
            self._remove()

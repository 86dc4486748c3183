"""Copies, on this machine, of files that lie elsewhere and never change.

    TMP/pathcast-copy-KEY/*     the files of one key, and `.lock`

Every process of the machine uses the same ones. Whoever makes copies takes out those of other keys
that nobody uses, the `KEPT` used last excepted: what is there is bounded by these and by what is in
use. A lock on `.lock` says that a folder is in use; it belongs to a process and ends with it,
however that ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from pathcast.spark.unwritable import writing

if TYPE_CHECKING:
    from pathcast.spark.storage import Storage

PREFIX: Final = "pathcast-copy-"
LOCK: Final = ".lock"

KEPT: Final = 4
"""Folders of copies that stay although nobody uses them: a pipeline that changes its subscriptions
goes back to the one before, and several pipelines may share a machine."""


@contextmanager
def local_files(storage: Storage, names: Sequence[str], key: str) -> Iterator[list[Path]]:
    """Files as ones of this machine: themselves or, from elsewhere, copies that are made once.

    Args:
        storage: Where they lie.
        names: Which; the last parts of their names differ.
        key: Names their content as nothing else.

    Yields:
        Their paths, in order. Nobody takes them out inside; what was opened or mapped into memory
        stays readable afterwards.
    """
    if storage.is_local:
        yield [storage.folder / name for name in names]
        return
    folder = Path(tempfile.gettempdir()) / f"{PREFIX}{key}"
    with _shared_lock(folder):
        paths = [folder / name.rpartition("/")[2] for name in names]
        missing = [pair for pair in zip(names, paths, strict=True) if not pair[1].exists()]
        for name, path in missing:
            _copy(storage, name, path)
        os.utime(folder)
        if missing:
            _clear()
        yield paths


def _copy(storage: Storage, name: str, path: Path) -> None:
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    with writing(f"{path} (TMPDIR)"), storage.open(name) as source, temporary.open("wb") as target:
        shutil.copyfileobj(source, target)
    temporary.replace(path)


def _shared_lock(folder: Path) -> IO[str]:
    """The lock of a folder, which is made if it is not there; it is in use until this is closed."""
    while True:
        # Not `exist_ok`, which looks again, and may find that somebody has taken it out.
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            handle = (folder / LOCK).open("a")
            fcntl.flock(handle, fcntl.LOCK_SH)
            # The folder may have been taken out while we waited: then this locks nothing.
            if _is_at(handle, folder / LOCK):
                return handle
            handle.close()


def _is_at(handle: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _clear() -> None:
    """Takes out folders of copies that nobody uses, those used last excepted."""
    mine: list[tuple[int, Path]] = []
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_uid == os.getuid():
                        mine.append((status.st_mtime_ns, Path(entry.path)))
    for _, folder in sorted(mine, reverse=True)[KEPT:]:
        # Somebody uses it, or somebody else takes it out.
        with suppress(BlockingIOError, FileNotFoundError), (folder / LOCK).open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(handle, folder / LOCK):
                continue
            # Nobody may find a folder that is half taken out.
            gone = folder.with_name(f"{PREFIX}{uuid.uuid4().hex}")
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

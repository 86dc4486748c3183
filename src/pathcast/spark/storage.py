"""A place for files: a directory of this machine, or any place that fsspec knows.

What is written here is seen as a whole or not at all, and no file is ever changed or renamed, so
an object store without atomic rename serves as well as a disk: which files count is said by other
files (`pathcast.spark.ledger`).

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     storage = Storage(folder)
    ...     storage.write("_commits/1.json", b"{}")
    ...     storage.names("_commits"), storage.read("_commits/1.json")
    (['1.json'], b'{}')

It knows nothing of what the files hold. The package `fsspec`, and the one that it names for a
protocol (`s3fs`, `gcsfs`, `adlfs`), are needed for places that are no directory.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from pathcast.errors import DiskError, extra, invalid_setting
from pathcast.spark.unwritable import OutputFile, writing

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem
    from pydantic import TypeAdapter

T = TypeVar("T")


def is_url(place: str) -> bool:
    """Whether a place is named by a URL rather than by a path."""
    return "://" in place


def as_storage(place: str | os.PathLike[str] | Storage) -> Storage:
    """A place, whether it was given with options or without any."""
    return place if isinstance(place, Storage) else Storage(place)


class Storage:
    """Files below one root.

    Args:
        place: A path, or a URL that fsspec understands, such as `s3://bucket/delivered`.
        options: What fsspec needs to open it: credentials, endpoints.
        delta_options: What the library deltalake needs for Delta tables there, in its own words.

    Attributes:
        place: As given, without a slash at the end.
        delta_options: As given.
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        options: Mapping[str, Any] | None = None,
        delta_options: Mapping[str, str] | None = None,
    ) -> None:
        text = os.fspath(place)
        if text.startswith("file://"):
            text = text.removeprefix("file://")
        self.place = text.rstrip("/") or "/"
        self._options = dict(options or {})
        self.delta_options = dict(delta_options or {})

    @property
    def is_local(self) -> bool:
        """Whether it is a directory of this machine."""
        return not is_url(self.place)

    @property
    def folder(self) -> Path:
        """The directory; only where `is_local`."""
        assert self.is_local, self.place
        return Path(self.place)

    def below(self, name: str) -> Storage:
        """A folder of this place as a place of its own."""
        return Storage(f"{self.place}/{name}", self._options, self.delta_options)

    def url(self, name: str) -> str:
        """Return a name of a file that other programs understand: a path, or a URL."""
        return f"{self.place}/{name}"

    def write(self, name: str, content: bytes) -> None:
        """Writes a file that others see as a whole; it is on disk before this returns.

        Raises:
            DiskError: It cannot be written.
        """
        with writing(self.url(name)):
            if self.is_local:
                write_atomically(self.folder / name, content)
            else:
                # Every object appears at once when it is complete.
                self._fs.pipe_file(self._path(name), content)

    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: There is none.
        """
        if self.is_local:
            return (self.folder / name).read_bytes()
        content: bytes = self._fs.cat_file(self._path(name))
        return content

    def read_json(self, name: str, make: Callable[[Any], T]) -> T:
        """A value that a run before wrote as JSON.

        Raises:
            FileNotFoundError: There is none.
            DiskError: The file is damaged, or another version wrote it ("disk.state").

        Example:
            >>> import tempfile
            >>> storage = Storage(tempfile.mkdtemp())
            >>> storage.write("_pins/1.json", b'{"batch_id": 1}')
            >>> storage.read_json("_pins/1.json", lambda row: row["batch_id"])
            1
            >>> storage.read_json("_pins/1.json", lambda row: row["begun_us"])
            Traceback (most recent call last):
            ...
            pathcast.errors.DiskError: .../_pins/1.json holds state that cannot be read ...
        """
        content = self.read(name)
        try:
            return make(json.loads(content))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise DiskError("disk.state", path=self.url(name), reason=reason) from error

    def read_as(self, name: str, kind: type[T]) -> T:
        """A dataclass that a run before wrote as JSON; other keys are passed over.

        Raises:
            FileNotFoundError: There is none.
            DiskError: As `read_json`.
        """
        return cast("T", self.read_json(name, _adapter(cast("Any", kind)).validate_python))

    def find_as(self, name: str, kind: type[T]) -> T | None:
        """The value of a file that `write_json` wrote; None where there is none."""
        with suppress(FileNotFoundError):
            return self.read_as(name, kind)
        return None

    def write_json(self, name: str, value: Any) -> None:
        """Writes a value that `read_json` or, of a dataclass, `read_as` gives back; see `write`."""
        row = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        self.write(name, (json.dumps(row, sort_keys=True) + "\n").encode())

    def exists(self, name: str) -> bool:
        """Whether there is a file."""
        if self.is_local:
            return (self.folder / name).exists()
        return bool(self._fs.exists(self._path(name)))

    def names(self, folder: str) -> list[str]:
        """Names of the files directly inside a folder, sorted; none where there is no folder."""
        try:
            if self.is_local:
                found = [entry.name for entry in os.scandir(self.folder / folder)]
            else:
                self._fs.invalidate_cache()
                listed = self._fs.ls(self._path(folder), detail=False)
                found = [path.rstrip("/").rpartition("/")[2] for path in listed]
        except FileNotFoundError:
            return []
        # Half-written files have a dot before their names.
        return sorted(name for name in found if name and not name.startswith("."))

    def find(self) -> dict[str, dict[str, Any]]:
        """Names of all files at any depth, with what the place tells of each; not for a directory.

        Cost: one request a thousand files, whatever was asked before.
        """
        self._fs.invalidate_cache()
        found = self._fs.find(self._resolved[1], detail=True)
        start = len(self._resolved[1]) + 1
        return {path[start:]: about for path, about in found.items()}

    def info(self, name: str) -> dict[str, Any]:
        """Return the facts that the storage has of a file; not for a directory.

        Raises:
            FileNotFoundError: There is none.
        """
        self._fs.invalidate_cache()
        about: dict[str, Any] = self._fs.info(self._path(name))
        return about

    def create(self, name: str) -> IO[bytes]:
        """A new file to be written from its beginning to its end.

        It is not to be relied on before it is named by something that `write` has written.

        Raises:
            DiskError: It cannot be made; also of what is done with it.
        """
        with writing(self.url(name)):
            handle: IO[bytes]
            if self.is_local:
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                handle = path.open("wb")
            else:
                handle = self._fs.open(self._path(name), "wb")
        made: Any = OutputFile(handle, self.url(name), lambda: self.delete([name]))
        return cast("IO[bytes]", made)

    def open(self, name: str) -> IO[bytes]:
        """A file to be read at any place of it.

        Raises:
            FileNotFoundError: There is none.
        """
        if self.is_local:
            # A Path a file would be a tenth of what reading a small one costs.
            return open(self.url(name), "rb")  # noqa: PTH123
        handle: IO[bytes] = self._fs.open(self._path(name), "rb")
        return handle

    def delete(self, names: Iterable[str]) -> None:
        """Takes files out; one that is not there is none to take out."""
        for name in names:
            with writing(self.url(name)), suppress(FileNotFoundError):
                if self.is_local:
                    (self.folder / name).unlink()
                else:
                    self._fs.rm_file(self._path(name))

    def delete_folder(self, name: str) -> None:
        """Takes out a folder with all that is in it."""
        with writing(self.url(name)), suppress(FileNotFoundError):
            if self.is_local:
                shutil.rmtree(self.folder / name)
            else:
                self._fs.rm(self._path(name), recursive=True)

    @cached_property
    def _fs(self) -> AbstractFileSystem:
        return self._resolved[0]

    def _path(self, name: str) -> str:
        return f"{self._resolved[1]}/{name}"

    @cached_property
    def _resolved(self) -> tuple[AbstractFileSystem, str]:
        with extra("spark", self.place):
            from fsspec.core import url_to_fs
        try:
            fs, root = url_to_fs(self.place, **self._options)
        except (ImportError, ValueError) as error:
            raise invalid_setting("path", f"{self.place}: {error}") from error
        return fs, root.rstrip("/")

    def __getstate__(self) -> tuple[str, dict[str, Any], dict[str, str]]:
        # A file system is opened anew where it is used; connections do not travel.
        return self.place, self._options, self.delta_options

    def __setstate__(self, state: tuple[str, dict[str, Any], dict[str, str]]) -> None:
        self.place, self._options, self.delta_options = state

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash(self.place)

    def __str__(self) -> str:
        return self.place

    def __repr__(self) -> str:
        return f"Storage({self.place!r})"


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # Workers, which read no state, need not have it.
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that other processes see as a whole, on disk before this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError:
        # Half of it would take room that is missing.
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make renames and new names inside a directory survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

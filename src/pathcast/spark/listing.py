"""Which files a source has."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import filterfalse
from pathlib import Path
from typing import Any, Final

from pathcast.spark.files import FoundFile, SourceListing
from pathcast.spark.storage import Storage


class PatternListing(SourceListing):
    """Counts of files whose names match a pattern, or do not, at the last look.

    Attributes:
        path: Where they lie.
        patterns: Globs, one of which a file's name (not its folders) has to match, at any depth.
            Names that begin with a dot or an underscore never count.
        passed_over: Files that do not match.
        matching: Files that do, those that are known included.
    """

    def __init__(self, path: str | Path, patterns: Sequence[str]) -> None:
        self.path = str(path)
        self.patterns = tuple(patterns)
        self.passed_over = self.matching = 0

    def notes(self) -> list[tuple[str, str]]:
        """Return the oddities of the last look, as `SourceListing.notes` does."""
        matching, others = self.matching, self.passed_over
        if not matching and not others:
            holds_nothing = (
                f"{self.path} holds no file (names that begin with a dot or an underscore do not "
                "count)"
            )
            return [("empty", holds_nothing)]
        if not others:
            return []
        left_alone = (
            f"{matching:,} of {matching + others:,} files of the source match the pattern "
            f"{' or '.join(self.patterns)}, the others are left alone"
        )
        return [("pattern", left_alone)]


class Listing(PatternListing):
    """The files of a directory, looked at again and again.

    Cost:
        A look lists the folders that changed since the last one, and asks about the names that it
        has not seen: files that were handed on cost a look-up in a set, not a `stat`.
    """

    def __init__(self, path: Path, patterns: Sequence[str]) -> None:
        super().__init__(path, patterns)
        self._folder = path
        self._folders: set[str] = set()
        # Files that do not match. One that makes way for a folder of its name is not noticed before
        # a look without either.
        self._others: set[str] = set()

    def look(
        self, done: Container[str], again: Mapping[str, FoundFile] | None = None
    ) -> tuple[list[FoundFile], dict[str, OSError]]:
        """The files that are not done, oldest first, and the folders that could not be listed.

        Args:
            done: Names that are not asked for.
            again: Not needed: what is asked for again is found again.

        Raises:
            OSError: The directory itself cannot be listed.
        """
        found: list[FoundFile] = []
        others: set[str] = set()
        faults: dict[str, OSError] = {}
        self.passed_over = self.matching = 0
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                names = os.listdir(self._folder / folder)  # noqa: PTH208 - text, all at once
            except (FileNotFoundError, NotADirectoryError):
                if not folder:
                    raise
                # It was removed after it was listed, or something else has its name now.
                self._folders.discard(folder)
                continue
            except OSError as error:
                if not folder:
                    raise
                faults[folder] = error
                continue
            prefix = f"{folder}/" if folder else ""
            if prefix:
                rest = [name for name in names if prefix + name not in done]
            else:
                rest = list(filterfalse(done.__contains__, names))
            self.matching += len(names) - len(rest)
            for name in rest:
                path = prefix + name
                if name.startswith((".", "_")):
                    continue
                if path in self._folders:
                    pending.append(path)
                elif path in self._others:
                    others.add(path)
                else:
                    self._look_at(path, name, pending, found, others)
        self._others = others
        self.passed_over = len(others)
        found.sort(key=lambda file: (file.modified_ns, file.name))
        self.matching += len(found)
        return found, faults

    def _look_at(
        self, path: str, name: str, pending: list[str], found: list[FoundFile], others: set[str]
    ) -> None:
        """A name that was not seen before: a folder, a file, or neither."""
        full = self._folder / path
        if full.is_dir():
            if not full.is_symlink():
                self._folders.add(path)
                pending.append(path)
            return
        if not any(fnmatchcase(name, pattern) for pattern in self.patterns):
            others.add(path)
            return
        file = found_file(self._folder, path)
        if file is not None:
            found.append(file)


class ObjectListing(PatternListing):
    """The files of a place that is no directory, looked at again and again.

    Cost:
        Object stores have no folders that change: a look lists all names, those that were handed on
        included. Take these away from time to time.
    """

    def __init__(self, storage: Storage, patterns: Sequence[str]) -> None:
        super().__init__(str(storage), patterns)
        self._storage = storage

    def look(
        self, done: Container[str], again: Mapping[str, FoundFile] | None = None
    ) -> tuple[list[FoundFile], dict[str, OSError]]:
        """Return the files that are new; all of the place is listed, or nothing."""
        found: list[FoundFile] = []
        try:
            listed = self._storage.find()
        except FileNotFoundError:
            listed = {}  # a place without files is none
        self.passed_over = self.matching = 0
        for path, about in listed.items():
            *folders, name = path.split("/")
            if any(part.startswith((".", "_")) for part in (*folders, name)):
                continue
            if path not in done and not any(fnmatchcase(name, each) for each in self.patterns):
                self.passed_over += 1
                continue
            self.matching += 1
            if path not in done:
                found.append(_as_found(path, about))
        found.sort(key=lambda file: (file.modified_ns, file.name))
        return found, {}


FILES_ASKED_FOR: Final = 64
"""A place that is no directory is listed as a whole rather than asked for more files than these."""


def files_at(storage: Storage, names: Sequence[str]) -> dict[str, FoundFile]:
    """Files as they are now, by name; those that are not there are left out.

    Cost: a `stat` each; elsewhere a request each or, of many, one a thousand files of the place.
    """
    if not storage.is_local and len(names) > FILES_ASKED_FOR:
        listed = storage.find()
        return {name: _as_found(name, listed[name]) for name in names if name in listed}
    found = {name: file_at(storage, name) for name in names}
    return {name: file for name, file in found.items() if file is not None}


def file_at(storage: Storage, name: str) -> FoundFile | None:
    """A file as it is now; None where there is none."""
    if storage.is_local:
        return found_file(storage.folder, name)
    try:
        return _as_found(name, storage.info(name))
    except FileNotFoundError:
        return None


def _as_found(name: str, about: Mapping[str, Any]) -> FoundFile:
    """Return a file from the facts of its storage, each of which has its own words."""
    told = (about.get(key) for key in ("LastModified", "last_modified", "updated", "mtime"))
    when = next((each for each in told if each is not None), 0)
    if isinstance(when, str):
        when = datetime.fromisoformat(when)
    seconds = when.timestamp() if isinstance(when, datetime) else when
    # Where times have whole seconds only, the tag tells two contents apart.
    tag = zlib.crc32(str(about.get("ETag") or about.get("etag") or "").encode())
    return FoundFile(name, int(about.get("size") or 0), int(seconds * 1e9), tag)


def found_file(root: str | os.PathLike[str], name: str) -> FoundFile | None:
    """A file as it is now; None for what is none, as a pipe or a device, which would never end."""
    full = Path(root) / name
    try:
        status = full.stat()
    except FileNotFoundError:
        # A link that leads nowhere: reading it says so. Any other file was taken away again.
        return FoundFile(name, 0, 0) if full.is_symlink() else None
    except OSError:
        return FoundFile(name, 0, 0)
    if not stat.S_ISREG(status.st_mode):
        return None
    return FoundFile(name, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

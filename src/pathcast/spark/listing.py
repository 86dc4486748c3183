"""Which files a source has."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from pathcast.spark.files import FoundFile, SourceListing
from pathcast.spark.storage import Storage, as_storage

HIDDEN: Final = (".", "_")
"""Names of files and folders that begin so never count."""


class Listing(SourceListing):
    """The files of a place, looked at again and again.

    Args:
        place: A directory, or any other place.
        patterns: Globs, one of which a file's name (not its folders) has to match, at any depth.

    Attributes:
        passed_over: Files that did not match at the last look.
        matching: Files that did, those that are known included.

    Cost:
        A look lists all folders, and asks about the files that it has not seen: those that were
        handed on cost a look-up in a set, not a `stat`. Object stores tell both in one: take files
        that were handed on away from time to time.
    """

    def __init__(self, place: str | Path | Storage, patterns: Sequence[str]) -> None:
        self._storage = as_storage(place)
        super().__init__(str(self._storage))
        self._patterns = tuple(patterns)
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
            f"{' or '.join(self._patterns)}, the others are left alone"
        )
        return [("pattern", left_alone)]

    def look(
        self, done: Container[str], again: Mapping[str, FoundFile] | None = None
    ) -> tuple[list[FoundFile], dict[str, OSError]]:
        """Look as `SourceListing.look` says; oldest files first. What is asked for is found again.

        Raises:
            OSError: The place itself cannot be listed.
        """
        found: list[FoundFile] = []
        faults: dict[str, OSError] = {}
        self.passed_over = self.matching = 0
        is_local = self._storage.is_local
        for path, about in self._here(done, faults) if is_local else self._there(done):
            name = path.rpartition("/")[2]
            if not any(fnmatchcase(name, pattern) for pattern in self._patterns):
                self.passed_over += 1
                continue
            file = found_file(self._storage.folder, path) if is_local else _as_found(path, about)
            if file is not None:
                self.matching += 1
                found.append(file)
        found.sort(key=lambda file: (file.modified_ns, file.name))
        return found, faults

    def _here(
        self, done: Container[str], faults: dict[str, OSError]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield names of files below a directory; `faults` gets folders that cannot be listed."""
        root = str(self._storage.folder)
        waiting = [root]
        while waiting:
            folder = waiting.pop()
            prefix = "" if folder == root else f"{os.path.relpath(folder, root)}/"
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            # A link to a folder above would have no end.
                            if not entry.name.startswith(HIDDEN) and not entry.is_symlink():
                                waiting.append(entry.path)
                        elif prefix + entry.name in done:
                            self.matching += 1
                        elif not entry.name.startswith(HIDDEN):
                            yield prefix + entry.name, {}
            except OSError as error:
                if folder == root:
                    raise
                # Otherwise it was removed after it was listed.
                if not isinstance(error, FileNotFoundError | NotADirectoryError):
                    faults[prefix[:-1]] = error

    def _there(self, done: Container[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield names and facts of all files of a place that is no directory."""
        try:
            listed = self._storage.find()
        except FileNotFoundError:
            return  # a place without files is none
        for path, about in listed.items():
            if path in done:
                self.matching += 1
            elif not any(part.startswith(HIDDEN) for part in path.split("/")):
                yield path, about


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

"""Which files a source has."""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pathcast.spark.files import FoundFile


class Listing:
    """The files of a directory, looked at again and again.

    Args:
        path: The directory.
        patterns: Globs, one of which a file's name (not its folders) has to match, at any depth.
            Names that begin with a dot or an underscore never count.

    Cost:
        A look lists the folders that changed since the last one, and asks about the names that it
        has not seen: files that were handed on cost a look-up in a set, not a `stat`.
    """

    def __init__(self, path: Path, patterns: Sequence[str]) -> None:
        self.path = path
        self.patterns = tuple(patterns)
        self._folders: set[str] = set()
        # Files that do not match. One that makes way for a folder of its name is not noticed before
        # a look without either.
        self._others: set[str] = set()
        self.passed_over = 0
        """Files that do not match the pattern, at the last look."""
        self.matching = 0
        """Files that do, those that are known included."""

    def look(self, done: Container[str]) -> tuple[list[FoundFile], dict[str, OSError]]:
        """The files that are not done, oldest first, and the folders that could not be listed.

        Args:
            done: Names that are not asked for.

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
                names = os.listdir(self.path / folder)  # noqa: PTH208 - text, all at once
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
                rest = [name for name in names if name not in done]
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
        full = self.path / path
        if full.is_dir():
            if not full.is_symlink():
                self._folders.add(path)
                pending.append(path)
            return
        if not any(fnmatchcase(name, pattern) for pattern in self.patterns):
            others.add(path)
            return
        file = found_file(self.path, path)
        if file is not None:
            found.append(file)


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

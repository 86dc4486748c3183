"""What of a source was handed on: the files of each step, and those of them that could not be read.

A step of the source is an entry of the journal, numbered from 1; micro-batch N is entry N + 1. An
entry is written before Spark hears of it, so that a replay reads exactly its files.

That a file was handed on does not mean that it was read. The commit of a micro-batch names the
files that were not (`Commit.unread`), and those are handed on again as soon as they have changed:
mended, put back, or with other permissions. `pathcast dlq --retry` asks for files by name (a
*request*, one file in `retake`), changed or not. A request names the entry that it is about: a file
that has been handed on since is not handed on once more.

This module knows files, not Spark.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathcast.errors import ConfigError
from pathcast.spark.ledger import read_commit, write_atomically

JOURNAL = "journal"
SOURCE = "source.json"
RETAKE = "retake"
UNLISTED = "unlisted.json"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the directory.

    Attributes:
        name: Path inside the directory.
        size: Bytes, when it was found.
        modified_ns: When it was last written.
        changed_ns: When its content, its name or its permissions last changed.
    """

    name: str
    size: int
    modified_ns: int
    changed_ns: int = 0


def message_id_of(name: str) -> str:
    r"""The name of a file as the id of a message; one that is not UTF-8 keeps its bytes as \xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class Journal:
    """The journal of one checkpoint.

    Args:
        path: Its directory.
        commits: Directory of the commits of the output; None where nothing is read again.
    """

    def __init__(self, path: Path, commits: Path | None) -> None:
        self.path = path
        self._commits = commits
        self._handed_on: dict[str, int] = {}
        self._unread: dict[str, FoundFile] = {}
        self._requested: dict[str, int] = {}
        self._entries_known = 0
        self._commits_known = 0

    def has(self, entry: int) -> bool:
        """Whether there is such an entry."""
        return self._entry_path(entry).exists()

    def entry(self, entry: int) -> list[FoundFile]:
        """The files of an entry."""
        return [FoundFile(*row) for row in json.loads(self._entry_path(entry).read_bytes())]

    def write(self, entry: int, files: Sequence[FoundFile]) -> None:
        """Write an entry, on disk before this returns."""
        rows = [[file.name, file.size, file.modified_ns, file.changed_ns] for file in files]
        write_atomically(self._entry_path(entry), json.dumps(rows).encode())

    def refresh(self) -> None:
        """Take in what was written since the last time.

        Cost:
            The first time the whole journal and all commits are read; then what is new.
        """
        while self.has(self._entries_known + 1):
            self._entries_known += 1
            for file in self.entry(self._entries_known):
                self._handed_on[file.name] = self._entries_known
                self._unread.pop(file.name, None)
        while self._commits and (commit := read_commit(self._commits, self._commits_known)):
            self._commits_known += 1
            self._take_in(set(commit.unread), entry=self._commits_known)
        self._requested = self._read_requests()

    def _take_in(self, unread: set[str], entry: int) -> None:
        if not unread:
            return
        for file in self.entry(entry):
            # Handed on again since: what became of that is what counts.
            if message_id_of(file.name) in unread and self._handed_on[file.name] == entry:
                self._unread[file.name] = file

    def _read_requests(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for file in sorted(self.path.glob(f"{RETAKE}/*.json")):
            told: dict[str, int] = json.loads(file.read_bytes())
            open_ = {name: at for name, at in told.items() if self._handed_on.get(name) == at}
            found |= open_
            if not open_:
                file.unlink(missing_ok=True)
        return found

    def is_done(self, name: str) -> bool:
        """Whether a file need not even be looked at."""
        return name in self._handed_on and name not in self._unread and name not in self._requested

    def is_wanted(self, file: FoundFile) -> bool:
        """Whether a file is to be handed on: it is new, was asked for, or has changed unread."""
        if file.name not in self._handed_on or file.name in self._requested:
            return True
        return file.name in self._unread and self._unread[file.name] != file

    def last_entry(self, name: str) -> int | None:
        """The entry that a file was last handed on in."""
        return self._handed_on.get(name)

    def is_unread(self, name: str) -> bool:
        """Whether a file could not be read when it was last handed on."""
        return name in self._unread

    def is_requested(self, name: str) -> bool:
        """Whether a file was asked for and not handed on since."""
        return name in self._requested

    def request(self, names: Iterable[str]) -> None:
        """Ask for files again, whether they have changed or not; whoever runs next takes them."""
        told = {name: self._handed_on[name] for name in names}
        path = self.path / RETAKE / f"{uuid.uuid4().hex}.json"
        write_atomically(path, json.dumps(told).encode())

    def write_unlisted(self, folders: Mapping[str, str]) -> None:
        """Say which folders cannot be listed at present, and why."""
        write_atomically(self.path / UNLISTED, json.dumps(folders).encode())

    def unlisted(self) -> dict[str, str]:
        """Folder -> reason, as they were last told."""
        try:
            found: dict[str, str] = json.loads((self.path / UNLISTED).read_bytes())
        except FileNotFoundError:
            return {}
        return found

    def _entry_path(self, entry: int) -> Path:
        return self.path / f"{entry}.json"


def claim_journal(checkpoint: Path, kind: str, source: Path) -> Journal:
    """The journal of a checkpoint, made ready for a run.

    Raises:
        ConfigError: The checkpoint was written by another kind of source, whose offsets mean
            something else.
    """
    path = checkpoint / JOURNAL
    found = journal_kind(path)
    is_foreign = found is None and not path.exists() and (checkpoint / "offsets").exists()
    if is_foreign or found not in (None, kind):
        raise ConfigError(
            "config.invalid",
            key="mode.checkpoint",
            reason=f"{checkpoint} belongs to a source of kind {found or 'unknown'}, not {kind}; "
            "choose a new output directory",
        )
    write_atomically(path / SOURCE, json.dumps({"kind": kind, "path": str(source)}).encode())
    (path / UNLISTED).unlink(missing_ok=True)
    return Journal(path, None)


def journal_kind(path: Path) -> str | None:
    """The kind of source that a journal is of, where it says so."""
    try:
        kind: str = json.loads((path / SOURCE).read_bytes())["kind"]
    except FileNotFoundError:
        return None
    return kind

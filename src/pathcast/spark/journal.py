"""What was handed on: which files belong to which micro-batch, on disk before anything is read.

Micro-batch N is entry N of the journal: names, sizes and times of its files. One that is done again
after a kill takes exactly the files of its entry. A file that could not be read is not done: its
micro-batch says so in its commit (`pathcast.spark.ledger`), and it is taken up again when it has
changed, when a run begins, or when somebody asks for it.

    journal/N.json      the files of micro-batch N
    requests/*.json     files that somebody wants taken up again

It lists nothing and reads no message.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Final

from pathcast.spark.sources import FoundFile
from pathcast.spark.storage import Storage

JOURNAL: Final = "journal"
REQUESTS: Final = "requests"


class Journal:
    """The entries of a checkpoint, read once and then kept up to date.

    Args:
        checkpoint: Where they lie.

    Attributes:
        last: Number of the last entry; 0 for none.
    """

    def __init__(self, checkpoint: Storage) -> None:
        self._storage = checkpoint
        self._entries: dict[str, int] = {}
        self._open: dict[str, FoundFile] = {}
        self._requested: set[str] = set()
        self.last = 0
        for number in sorted(int(n.removesuffix(".json")) for n in checkpoint.names(JOURNAL)):
            self._entries.update((file.name, number) for file in self.entry(number))
            self.last = number

    def entry(self, number: int) -> list[FoundFile]:
        """The files of a micro-batch."""
        return [FoundFile(*row) for row in json.loads(self._storage.read(_name(number)))]

    def last_entry(self, name: str) -> int | None:
        """The last micro-batch that a file was in."""
        return self._entries.get(name)

    @property
    def done(self) -> Container[str]:
        """Names that need not be looked at: handed on, read, and not asked for."""
        return _Done(self._entries, self._open, self._requested)

    @property
    def open_files(self) -> Mapping[str, FoundFile]:
        """Files that were handed on and could not be read, as they were then."""
        return self._open

    def reopen(self, files: Iterable[FoundFile]) -> None:
        """These were not done: they may be handed on again."""
        self._open.update((file.name, file) for file in files)

    def is_due(self, file: FoundFile) -> bool:
        """Whether a file is to be handed on: it is new, was asked for, or has changed since."""
        if file.name in self._requested or file.name not in self._entries:
            return True
        return file.name in self._open and self._open[file.name] != file

    def retry_all(self) -> None:
        """Open files are due even if they have not changed."""
        self._open = {name: FoundFile(name, -1, -1) for name in self._open}

    def request(self, names: Collection[str]) -> None:
        """Asks for files to be taken up again, by this process or the one that is running.

        A request is about the entry that a file was last in: it is fulfilled by the next one.
        """
        rows = {name: self._entries[name] for name in names}
        self._storage.write(f"{REQUESTS}/{uuid.uuid4().hex}.json", json.dumps(rows).encode())
        self._requested.update(names)

    def read_requests(self) -> None:
        """Takes notice of what was asked for, and clears away what has been fulfilled."""
        self._requested = set()
        for file in self._storage.names(REQUESTS):
            path = f"{REQUESTS}/{file}"
            try:
                rows = json.loads(self._storage.read(path))
            except FileNotFoundError:
                continue
            left = {name for name, number in rows.items() if self._entries.get(name) == number}
            self._requested |= left
            if not left:
                self._storage.delete([path])

    def is_requested(self, name: str) -> bool:
        """Whether a file was asked for and has not been handed on since."""
        return name in self._requested

    def append(self, files: Sequence[FoundFile]) -> int:
        """Writes an entry; its number."""
        self.last += 1
        rows = [astuple(file) for file in files]
        self._storage.write(_name(self.last), json.dumps(rows).encode())
        for file in files:
            self._entries[file.name] = self.last
            self._open.pop(file.name, None)
            self._requested.discard(file.name)
        return self.last


class _Done(Container[str]):
    """Names of which nothing more is wanted."""

    def __init__(
        self, entries: Container[str], open: Container[str], requested: Container[str]
    ) -> None:
        self._entries = entries
        self._open = open
        self._requested = requested

    def __contains__(self, name: object) -> bool:
        return name in self._entries and name not in self._open and name not in self._requested


def first_of(files: Sequence[FoundFile], files_max: int, bytes_max: int) -> list[FoundFile]:
    """The files of one micro-batch: the first ones, at least one, within two bounds."""
    step: list[FoundFile] = []
    size = 0
    for file in files[:files_max]:
        if step and bytes_max and size + file.size > bytes_max:
            break
        step.append(file)
        size += file.size
    return step


def _name(number: int) -> str:
    return f"{JOURNAL}/{number}.json"

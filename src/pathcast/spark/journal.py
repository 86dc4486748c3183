"""The files of each micro-batch, on disk before anything is read.

Micro-batch N is entry N of the journal: names, sizes and times of its files. One that is done again
after a kill takes exactly the files of its entry. A file that could not be read is not done: its
micro-batch says so in its commit (`pathcast.spark.ledger`), and it is taken up again when it has
changed, when a run begins, or when somebody asks for it.

    journal/N.json          the files of micro-batch N
    journal_sums/A-B.json   the names in entries A to B, each with the last of these that it is in
    requests/*.json         files that somebody wants taken up again

A start reads sums and the entries that no sum has: a few hundred files, however many there are.
Sums are made of entries, and never change; they can be lost while all entries are there.

It lists nothing and reads no message.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pathcast.spark.files import FoundFile
from pathcast.spark.storage import Storage

JOURNAL: Final = "journal"
REQUESTS: Final = "requests"
SUMS: Final = "journal_sums"

SUM_ENTRIES: Final = 256
"""Entries that are summed up in one file."""

SUM_FACTOR: Final = 16
"""Sums that are summed up in one: a start reads 15 of each size, and a name is written as often as
there are sizes."""


class Journal:
    """The entries of a checkpoint, read once and then kept up to date.

    Attributes:
        last: Number of the last entry; 0 for none.
    """

    def __init__(self, checkpoint: Storage) -> None:
        self._storage = checkpoint
        self._open: dict[str, FoundFile] = {}
        self._requested: set[str] = set()
        numbers = (int(name.removesuffix(".json")) for name in checkpoint.names(JOURNAL))
        self.last = max(numbers, default=0)
        summed = self.last - self.last % SUM_ENTRIES
        # What the next sum will hold.
        self._recent = self._names_of(summed + 1, self.last)
        self._entries = self._names_of(1, summed) | self._recent

    def entry(self, number: int) -> list[FoundFile]:
        """The files of a micro-batch."""
        return entry_of(self._storage, number)

    def last_entry(self, name: str) -> int | None:
        """The last micro-batch that a file was in."""
        return self._entries.get(name)

    def __contains__(self, name: object) -> bool:
        """Whether a file need not be looked at: handed on, read, and not asked for."""
        return name in self._entries and name not in self._open and name not in self._requested

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
        self._open = {
            name: replace(file, size=-1, modified_ns=-1) for name, file in self._open.items()
        }

    def request(self, names: Collection[str]) -> None:
        """Asks for files to be taken up again, by this process or the one that is running.

        A request is about the entry that a file was last in: it is fulfilled by the next one.
        """
        rows = {name: self._entries[name] for name in names}
        self._storage.write_json(f"{REQUESTS}/{uuid.uuid4().hex}.json", rows)
        self._requested |= set(names)

    def read_requests(self) -> None:
        """Takes notice of what was asked for, and clears away what has been fulfilled."""
        requested: set[str] = set()
        for file in self._storage.names(REQUESTS):
            path = f"{REQUESTS}/{file}"
            try:
                rows: dict[str, int] = self._storage.read_json(path, dict)
            except FileNotFoundError:
                continue
            left = {name for name, number in rows.items() if self._entries.get(name) == number}
            requested |= left
            if not left:
                self._storage.delete([path])
        self._requested = requested

    def is_requested(self, name: str) -> bool:
        """Whether a file was asked for and has not been handed on since."""
        return name in self._requested

    def append(self, files: Sequence[FoundFile]) -> int:
        """Writes an entry; its number."""
        self.last += 1
        self._storage.write_json(_name(self.last), [file.to_row() for file in files])
        for file in files:
            self._entries[file.name] = self._recent[file.name] = self.last
            self._open.pop(file.name, None)
            self._requested.discard(file.name)
        if self.last % SUM_ENTRIES == 0:
            self._sum_up()
        return self.last

    def _names_of(self, first: int, last: int) -> dict[str, int]:
        """The names in some entries, each with the last of these that it is in."""
        longest: dict[int, int] = {}
        for name in self._storage.names(SUMS) if first <= last else ():
            start, end = (int(part) for part in name.removesuffix(".json").split("-"))
            if end <= last:
                longest[start] = max(end, longest.get(start, 0))
        found: dict[str, int] = {}
        while first <= last:
            end = longest.get(first, 0)
            if end:
                found |= self._storage.read_json(_sum_name(first, end), dict)
            else:
                end = first
                found |= dict.fromkeys((file.name for file in self.entry(first)), first)
            first = end + 1
        return found

    def _sum_up(self) -> None:
        """Writes the sums that end with the last entry."""
        size, names = SUM_ENTRIES, self._recent
        while True:
            self._storage.write_json(_sum_name(self.last - size + 1, self.last), names)
            size *= SUM_FACTOR
            if self.last % size:
                break
            names = self._names_of(self.last - size + 1, self.last)
        self._recent = {}


def entry_of(checkpoint: Storage, number: int) -> list[FoundFile]:
    """The files of a micro-batch.

    Raises:
        FileNotFoundError: It is not of files, or was never begun.
    """
    return checkpoint.read_json(
        _name(number), lambda rows: [FoundFile.from_row(row) for row in rows]
    )


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


def _sum_name(first: int, last: int) -> str:
    return f"{SUMS}/{first}-{last}.json"

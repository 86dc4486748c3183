"""What was handed on: which files belong to which micro-batch, on disk before anything is read.

Micro-batch N is entry N of the journal: names, sizes and times of its files. One that is done again
after a kill takes exactly the files of its entry. A file that could not be read is not done: its
micro-batch says so in its commit (`pathcast.spark.ledger`), and it is taken up again when it has
changed, or when a run begins.

It lists nothing and reads no message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pathcast.spark.sources import FoundFile
from pathcast.spark.storage import Storage

JOURNAL: Final = "journal"


class Journal:
    """The entries of a checkpoint, read once and then kept up to date.

    Args:
        checkpoint: Where they lie.
    """

    def __init__(self, checkpoint: Storage) -> None:
        self._storage = checkpoint
        self._known: set[str] = set()
        self._open: dict[str, FoundFile] = {}
        self.last = 0
        """Number of the last entry; 0 for none."""
        for name in sorted(int(n.removesuffix(".json")) for n in checkpoint.names(JOURNAL)):
            self._known.update(file.name for file in self.entry(name))
            self.last = name

    @property
    def known(self) -> set[str]:
        """Names that were handed on and are not open."""
        return self._known

    @property
    def open_files(self) -> Mapping[str, FoundFile]:
        """Files that were handed on and could not be read, as they were then."""
        return self._open

    def entry(self, number: int) -> list[FoundFile]:
        """The files of a micro-batch."""
        return [FoundFile(*row) for row in json.loads(self._storage.read(_name(number)))]

    def reopen(self, files: Iterable[FoundFile]) -> None:
        """These were not done: they may be handed on again."""
        for file in files:
            self._open[file.name] = file
            self._known.discard(file.name)

    def is_due(self, file: FoundFile) -> bool:
        """Whether a file that is not known is to be handed on: it is new, or it has changed."""
        return self._open.get(file.name) != file

    def retry_all(self) -> None:
        """Open files are due even if they have not changed."""
        self._open = {name: FoundFile(name, -1, -1) for name in self._open}

    def append(self, files: Sequence[FoundFile]) -> int:
        """Writes an entry; its number."""
        self.last += 1
        rows = [[file.name, file.size, file.modified_ns] for file in files]
        self._storage.write(_name(self.last), json.dumps(rows).encode())
        for file in files:
            self._known.add(file.name)
            self._open.pop(file.name, None)
        return self.last


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

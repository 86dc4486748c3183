"""Messages that are a file each; the id is the path inside the directory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from pathcast.errors import PathcastError
from pathcast.spark.files import (
    FILE_COST_BYTES,
    MESSAGE,
    FoundFile,
    MessageRows,
    Unit,
    as_unread,
    shown,
)
from pathcast.spark.storage import Storage


@dataclass(frozen=True, slots=True)
class DirectoryReader:
    """Each file is a message; a larger one than allowed is refused without being read."""

    storage: Storage
    message_bytes_max: int
    is_whole: bool = True

    @property
    def extra(self) -> pa.Schema:
        """Nothing: a file has no columns."""
        return pa.schema([])

    def units(self, file: FoundFile) -> list[Unit]:
        """The file."""
        return [Unit(file.name, file.size + FILE_COST_BYTES)]

    def read(
        self, units: Iterable[Unit], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Read one message a file; arguments as of `FileReader.read`."""
        rows = MessageRows(self.message_bytes_max)
        for unit in units:
            with as_unread(unit.name, unread, MESSAGE):
                rows.add(shown(unit.name), *self._content(unit.name))
            if rows.is_full:
                yield rows.take(), None
        if len(rows):
            yield rows.take(), None

    def _content(self, name: str) -> tuple[bytes | None, int]:
        """The bytes, None for too many, and how many there are."""
        with self.storage.open(name) as handle:
            length = handle.seek(0, os.SEEK_END)
            if length > self.message_bytes_max:
                return None, length
            handle.seek(0)
            # One byte more than allowed is enough to see that a growing file is too large.
            content = handle.read(self.message_bytes_max + 1)
            return (content if len(content) <= self.message_bytes_max else None), len(content)

"""The saved records of a node in a database, read when they are asked for.

A broker with 100,000 subscriptions that has a snapshot of them asks for few of their records.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from pathcast.errors import DiskError
from pathcast.protocol import SavedRecords


class SavedOnDisk(SavedRecords):
    """Records that are read when they are asked for: as they are then.

    Args:
        base: A connection of its own, so that no reading waits for a commit.
        failed: Makes a typed error of one of the database.
    """

    def __init__(
        self, base: sqlite3.Connection, failed: Callable[[sqlite3.Error], DiskError]
    ) -> None:
        self._base = base
        self._failed = failed

    def __getitem__(self, key: str) -> bytes:
        for (value,) in self._rows("select value from saved where key = ?", key):
            return bytes(value)
        raise KeyError(key)

    def under(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Implement `SavedRecords.under`."""
        # Behind all texts that begin so stands what ends with the next character.
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        query = "select key, value from saved where key >= ? and key < ? order by key"
        return iter(self._rows(query, prefix, end))

    def __iter__(self) -> Iterator[str]:
        return (key for (key,) in self._rows("select key from saved order by key"))

    def __len__(self) -> int:
        return int(self._rows("select count(*) from saved")[0][0])

    def _rows(self, query: str, *values: str) -> list[Any]:
        try:
            return self._base.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error

"""Files of a source, and what a reader of them promises.

A *unit* is what one task reads at a time; a file may be several. Readers of the kinds of files are
in `directory`, `parquet` and `archives`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from pathcast.errors import LimitExceededError, PathcastError, UnreadableMessageError
from pathcast.limits import MIB
from pathcast.spark import schemas

BATCH_BYTES_MAX: Final = 4 * MIB
BATCH_ROWS_MAX: Final = 1024
"""A batch of messages is handed on when it has reached one of the two."""

FILE_COST_BYTES: Final = 16_384
"""Opening a file costs about as much as so many bytes of it."""

FILE: Final = "file.unreadable"
"""Code of the error of a file that holds many messages: none of them was processed."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the source.

    Attributes:
        name: Path inside the source.
        size: Bytes, when it was found.
        modified_ns: When it was last written.
        changed_ns: When it, its name or its permissions last changed.
    """

    name: str
    size: int
    modified_ns: int
    changed_ns: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """What one task reads at a time: a file, or some row groups of it.

    Attributes:
        name: Path inside the source.
        cost: About how many bytes there are to read.
        groups: Row groups, for Parquet. For zip: the first member, the one after the last, and
            how many the archive has. The whole file where there are none.
        lacks: Columns that are to be passed through and that the file is without.
    """

    name: str
    cost: int
    groups: tuple[int, ...] = ()
    lacks: tuple[str, ...] = ()


class FileReader(Protocol):
    """How files of one kind become messages. It is pickled with the task."""

    @property
    def is_whole(self) -> bool:
        """Whether a file is one message: it is read as a whole or not at all."""

    @property
    def extra(self) -> pa.Schema:
        """Columns that are passed through."""

    def units(self, file: FoundFile) -> list[Unit]:
        """A file in pieces that different tasks may read.

        Raises:
            PathcastError: It cannot be read.
        """

    def read(
        self, units: Sequence[Unit], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """The messages of some units: schema `schemas.SOURCE` and the columns passed through.

        Args:
            units: What to read.
            unread: Gets the files that cannot be read, or not to their ends, and why.

        Yields:
            A batch, and the file that all of it comes from, where there is one.
        """


class MessageRows:
    """Messages that are read one by one, on their way into a batch."""

    def __init__(self, message_bytes_max: int) -> None:
        self._message_bytes_max = message_bytes_max
        self._rows: list[tuple[str, bytes | None, int, str | None, str | None]] = []
        self._size = 0

    def add(self, message_id: str, content: bytes | None, length: int) -> None:
        """Takes a message; without content, it is refused as one that is too long."""
        code = reason = None
        if content is None:
            refusal = LimitExceededError(
                "limit.message_bytes",
                limit="message_bytes_max",
                given=length,
                maximum=self._message_bytes_max,
            )
            code, reason = refusal.code, refusal.message
        self._rows.append((message_id, content, length, code, reason))
        self._size += len(content or b"")

    @property
    def is_full(self) -> bool:
        """Whether it is time to hand them on."""
        return self._size >= BATCH_BYTES_MAX or len(self._rows) >= BATCH_ROWS_MAX

    def __len__(self) -> int:
        return len(self._rows)

    def take(self) -> pa.RecordBatch:
        """The batch, schema `schemas.SOURCE`; the next one begins."""
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*self._rows, strict=True), schemas.SOURCE, strict=True)
        ]
        self._rows, self._size = [], 0
        return pa.RecordBatch.from_arrays(columns, schema=schemas.SOURCE)


def shown(name: str) -> str:
    r"""A path as text; one that is not UTF-8 keeps its bytes as \xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def unreadable(
    name: str, error: Exception, code: str = "message.unreadable"
) -> UnreadableMessageError:
    """The error of a file that cannot be read; its code is `FILE` for one of many messages."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return UnreadableMessageError(code, path=shown(name), reason=reason)

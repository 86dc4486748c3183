"""Files of a source, what a reader of them promises, and the reader of files that are a message.

A *unit* is what one task reads at a time; a file may be several. Readers of other kinds of files
are in `parquet`, `archives` and `records`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from pathcast.errors import LimitExceededError, PathcastError, UnreadableMessageError
from pathcast.limits import MIB
from pathcast.spark import schemas
from pathcast.spark.storage import Storage

BATCH_BYTES_MAX: Final = 4 * MIB
BATCH_ROWS_MAX: Final = 1024
"""A batch of messages is handed on when it has reached one of the two."""

FILE_COST_BYTES: Final = 16_384
"""Opening a file costs about as much as so many bytes of it."""

FILE: Final = "file.unreadable"
"""Code of the error of a file that holds many messages: none of them was processed."""

MESSAGE: Final = "message.unreadable"
"""Code of the error of a file that is one message."""


ColumnValues: TypeAlias = tuple[tuple[str, str | None], ...]
"""Columns that have one value in a whole file, and lie outside of it."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the source, as it was when it was found.

    Attributes:
        name: Path inside the source.
        changed_ns: When it, its name or its permissions last changed.
        values: Columns that are to be passed through and are said outside of the file.
    """

    name: str
    size: int
    modified_ns: int
    changed_ns: int = 0
    values: ColumnValues = ()

    def to_row(self) -> list[Any]:
        """For JSON."""
        values = [self.values] if self.values else []
        return [self.name, self.size, self.modified_ns, self.changed_ns, *values]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Self:
        """Return the file of a row of JSON."""
        name, size, modified_ns, changed_ns, *rest = row
        values = tuple((column, value) for column, value in (rest[0] if rest else ()))
        return cls(name, size, modified_ns, changed_ns, values)


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of the source that one task reads at a time: a file, or some row groups of it.

    Attributes:
        name: Path inside the source.
        cost: About how many bytes there are to read.
        groups: Row groups, for Parquet. For zip: the first member, the one after the last, and
            how many the archive has. For records: see `RecordReader`. The whole file where there
            are none.
        lacks: Columns that are to be passed through and that the file is without.
        values: See `FoundFile`.
    """

    name: str
    cost: int
    groups: tuple[int, ...] = ()
    lacks: tuple[str, ...] = ()
    values: ColumnValues = ()


class SourceListing:
    """Which files a source has, looked at again and again: here, none."""

    def __init__(self, path: str) -> None:
        self.path = path

    def look(
        self, done: Container[str], again: Mapping[str, FoundFile] | None = None
    ) -> tuple[list[FoundFile], dict[str, OSError]]:
        """The files that are not done, and the folders that could not be listed.

        Args:
            done: Names that are not asked for.
            again: Files that were handed on and are asked for again, as they were then. Whoever
                finds them anyway need not look at these.

        Raises:
            OSError: Nothing can be listed.
            SourceError: The source cannot be read on.
        """
        return [], {}

    def notes(self) -> list[tuple[str, str]]:
        """Return the oddities of the last look, a key and a sentence each, once a key."""
        return []

    def committed(self, names: Iterable[str]) -> None:
        """These files were read, and what came of them is in a commit."""


UnitT = TypeVar("UnitT", contravariant=True)


class BatchReader(Protocol[UnitT]):
    """How units of a source become batches of messages. It is pickled with the task."""

    @property
    def extra(self) -> pa.Schema:
        """Columns that are passed through."""

    def read(
        self, units: Iterable[UnitT], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """The messages of some units: schema `schemas.SOURCE` and the columns passed through.

        Args:
            units: What to read.
            unread: Gets the files that cannot be read, or not to their ends, and why.

        Yields:
            A batch, and the file that all of it comes from (`shown`), where there is one.
        """


NO_COLUMNS: Final = pa.schema([])


@dataclass(frozen=True)
class FileReader(ABC, BatchReader[Unit]):
    """How files of one kind become messages.

    Attributes:
        is_whole: Whether a file is one message: it is read as a whole or not at all.
    """

    storage: Storage
    extra: pa.Schema = field(default=NO_COLUMNS, kw_only=True)
    is_whole: ClassVar[bool] = False

    @abstractmethod
    def units(self, file: FoundFile) -> list[Unit]:
        """A file in pieces that different tasks may read.

        Raises:
            PathcastError: It cannot be read.
        """


FileMessage: TypeAlias = tuple[str, bytes | None, int]
"""Id, content (None for one that is too long) and length of a message."""


def in_batches(messages: Iterable[FileMessage], message_bytes_max: int) -> Iterator[pa.RecordBatch]:
    """Puts messages that are read one by one into batches, schema `schemas.SOURCE`."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for message_id, content, length in messages:
        code = reason = None
        if content is None:
            name = "message_bytes_max"
            refusal = LimitExceededError(
                "limit.message_bytes", limit=name, given=length, maximum=message_bytes_max
            )
            code, reason = refusal.code, refusal.message
        rows.append((message_id, content, length, code, reason))
        size += len(content or b"")
        if size >= BATCH_BYTES_MAX or len(rows) >= BATCH_ROWS_MAX:
            yield _batch_of(rows)
            rows, size = [], 0
    if rows:
        yield _batch_of(rows)


def _batch_of(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schemas.SOURCE, strict=True)
    arrays = [pa.array(column, field.type) for column, field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schemas.SOURCE)


def shown(name: str) -> str:
    r"""A path as text; one that is not UTF-8 keeps its bytes as \xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def some_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


def unreadable(name: str, error: Exception, code: str = FILE) -> UnreadableMessageError:
    """The error of a file that cannot be read; its code is `MESSAGE` for one that is a message."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, _UNTOLD):
        # Raised by a library that took damage for data: its text alone says nothing.
        reason = f"it is damaged ({type(error).__name__}: {reason})"
    # A library may quote what it found, of any length and in no encoding.
    reason = reason.encode("utf-8", "backslashreplace").decode()
    if len(reason) > REASON_CHARACTERS_MAX:
        reason = f"{reason[:REASON_CHARACTERS_MAX]}..."
    return UnreadableMessageError(code, path=shown(name), reason=reason)


@contextmanager
def as_unread(name: str, unread: dict[str, PathcastError], code: str = FILE) -> Iterator[None]:
    """Records any exception of the body as the reason why a file is unread.

    Libraries raise exceptions of every type on damaged files. One that escaped would end the task,
    at every later run as well, and with it all other files of the micro-batch. `code` is that of
    the error, unless the exception is a `PathcastError`.
    """
    try:
        yield
    except PathcastError as error:
        unread[name] = error
    except Exception as error:
        unread[name] = unreadable(name, error, code)


def read_each(
    units: Iterable[Unit],
    unread: dict[str, PathcastError],
    read: Callable[[str], FileMessage],
    code: str = FILE,
) -> Iterator[FileMessage]:
    """Reads files of one message each; `unread` gets those that cannot be, with an error."""
    for unit in units:
        with as_unread(unit.name, unread, code):
            yield read(unit.name)


def read_parts(
    units: Iterable[Unit],
    unread: dict[str, PathcastError],
    batches: Callable[[Unit], Iterator[pa.RecordBatch]],
) -> Iterator[tuple[pa.RecordBatch, str | None]]:
    """Reads units of files that hold many messages, of files that are unread nothing more."""
    for unit in units:
        if unit.name in unread:
            continue
        with as_unread(unit.name, unread):
            for batch in batches(unit):
                if len(batch):
                    yield batch, shown(unit.name)


def in_pieces(sizes: np.ndarray, bytes_max: int, rows_max: int) -> Iterator[slice]:
    """Yields the places of rows that are not too long together; a single longer one goes alone.

    Example:
        >>> list(in_pieces(np.array([3, 3, 9, 1, 1, 1]), 6, 2))
        [slice(0, 2, None), slice(2, 3, None), slice(3, 5, None), slice(5, 6, None)]
    """
    ends, start = np.cumsum(sizes, dtype=np.int64), 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + bytes_max, side="right"))
        stop = min(max(stop, start + 1), start + rows_max)
        yield slice(start, stop)
        start = stop


NAMES_SHOWN: Final = 10
"""Names of files in one sentence."""

REASON_CHARACTERS_MAX: Final = 1000
"""Longer reasons are cut: a dead letter is read by people."""

_UNTOLD: Final = (LookupError, TypeError, AttributeError, ArithmeticError, AssertionError)


@dataclass(frozen=True)
class DirectoryReader(FileReader):
    """Each file is a message; a larger one than allowed is refused without being read."""

    message_bytes_max: int
    is_whole = True

    def units(self, file: FoundFile) -> list[Unit]:
        """The file."""
        return [Unit(file.name, file.size + FILE_COST_BYTES)]

    def read(
        self, units: Iterable[Unit], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Read one message a file; arguments as of `FileReader.read`."""
        messages = read_each(units, unread, self._content, MESSAGE)
        for batch in in_batches(messages, self.message_bytes_max):
            yield batch, None

    def _content(self, name: str) -> FileMessage:
        with self.storage.open(name) as handle:
            length = handle.seek(0, os.SEEK_END)
            if length > self.message_bytes_max:
                return shown(name), None, length
            handle.seek(0)
            # One byte more than allowed is enough to see that a growing file is too large.
            content = handle.read(self.message_bytes_max + 1)
        is_large = len(content) > self.message_bytes_max
        return shown(name), None if is_large else content, len(content)

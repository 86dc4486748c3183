"""Where messages come from: files, and how each kind of them is read.

A source lists files; a `FileReader` reads them, in the tasks, with nothing between the file and the
engine. Which files belong to which micro-batch is the business of `journal`.

    kind          a file is                      id of a message
    directory     one message                    its path inside the directory
    parquet       many messages, a row each      a column
    archive       many messages, a member each   path of the archive "!" path of the member

It matches nothing and does not import pyspark.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.errors import (
    ConfigError,
    LimitExceededError,
    PathcastError,
    UnreadableMessageError,
)
from pathcast.limits import MIB, Limits
from pathcast.spark import schemas

if TYPE_CHECKING:
    from pathcast.spark.settings import SourceSettings

SourceKind: TypeAlias = Literal["directory", "parquet"]

BATCH_BYTES_MAX: Final = 4 * MIB
BATCH_ROWS_MAX: Final = 1024
"""A batch of messages is handed on when it has reached one of the two."""

PATTERNS: Final[Mapping[SourceKind, str]] = {"directory": "*.xml", "parquet": "*.parquet"}

FILE_COST_BYTES: Final = 16_384
"""Opening a file costs about as much as so many bytes of it."""


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
        groups: Row groups, for Parquet; all where there are none.
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


@dataclass(frozen=True, slots=True)
class DirectoryReader:
    """Each file is a message; a larger one than allowed is refused without being read."""

    path: Path
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
        self, units: Sequence[Unit], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """See `FileReader`."""
        rows: list[tuple[str, bytes | None, int, str | None, str | None]] = []
        size = 0
        for unit in units:
            message_id = shown(unit.name)
            try:
                content, length = self._content(unit.name)
            except OSError as error:
                unread[unit.name] = unreadable(unit.name, error)
                continue
            code = reason = None
            if content is None:
                refusal = LimitExceededError(
                    "limit.message_bytes",
                    limit="message_bytes_max",
                    given=length,
                    maximum=self.message_bytes_max,
                )
                code, reason = refusal.code, refusal.message
            rows.append((message_id, content, length, code, reason))
            size += len(content or b"")
            if size >= BATCH_BYTES_MAX or len(rows) >= BATCH_ROWS_MAX:
                yield _batch(rows), None
                rows, size = [], 0
        if rows:
            yield _batch(rows), None

    def _content(self, name: str) -> tuple[bytes | None, int]:
        """The bytes, None for too many, and how many there are."""
        with (self.path / name).open("rb") as handle:
            length = os.fstat(handle.fileno()).st_size
            if length > self.message_bytes_max:
                return None, length
            # One byte more than allowed is enough to see that a growing file is too large.
            content = handle.read(self.message_bytes_max + 1)
            return (content if len(content) <= self.message_bytes_max else None), len(content)


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """Each row of a file is a message.

    Attributes:
        path: The directory.
        message_column: Column with the message, binary or text.
        id_column: Column with its id.
        extra: Columns that are passed through, as they are written.
    """

    path: Path
    message_column: str
    id_column: str
    extra: pa.Schema
    is_whole: bool = False

    def units(self, file: FoundFile) -> list[Unit]:
        """The row groups."""
        try:
            with pq.ParquetFile(self.path / file.name) as opened:
                metadata = opened.metadata
                there = set(opened.schema_arrow.names)
                sizes = [
                    metadata.row_group(number).total_byte_size
                    for number in range(metadata.num_row_groups)
                ]
        except (OSError, pa.ArrowException) as error:
            raise unreadable(file.name, error, FILE) from error
        # What is decoded weighs more than what lies in the file.
        lacks = tuple(name for name in self.extra.names if name not in there)
        return [Unit(file.name, size, (number,), lacks) for number, size in enumerate(sizes)]

    def read(
        self, units: Sequence[Unit], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """See `FileReader`."""
        for unit in units:
            if unit.name in unread:
                continue
            try:
                for batch in self._read(unit):
                    yield batch, unit.name
            except PathcastError as error:
                unread[unit.name] = error
            except (OSError, pa.ArrowException) as error:
                unread[unit.name] = unreadable(unit.name, error, FILE)

    def _read(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(self.path / unit.name, memory_map=True) as opened:
            there = opened.schema_arrow
            self._check(unit.name, there)
            wanted = [self.id_column, self.message_column]
            wanted += [name for name in self.extra.names if name in there.names]
            for batch in opened.iter_batches(
                batch_size=BATCH_ROWS_MAX, row_groups=list(unit.groups), columns=wanted
            ):
                yield self._as_source(batch)

    def _check(self, name: str, there: pa.Schema) -> None:
        for key, column in (
            ("source.message_column", self.message_column),
            ("source.id_column", self.id_column),
        ):
            if column not in there.names:
                raise UnreadableMessageError(
                    FILE,
                    path=shown(name),
                    reason=f"no column {column!r} ({key}) among {', '.join(there.names)}",
                )
        kind = there.field(self.message_column).type
        if not any(is_kind(kind) for is_kind in _MESSAGE_KINDS):
            raise UnreadableMessageError(
                FILE,
                path=shown(name),
                reason=f"column {self.message_column!r} is {kind}, not binary or text",
            )

    def _as_source(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        messages = batch.column(self.message_column).cast(pa.binary())
        sizes = pc.cast(pc.coalesce(pc.binary_length(messages), 0), pa.int64())
        nothing = pa.nulls(len(batch), pa.string())
        ids = batch.column(self.id_column).cast(pa.string())
        columns = [ids, messages, sizes, nothing, nothing]
        for field in self.extra:
            if field.name in batch.schema.names:
                columns.append(_cast(batch.column(field.name), field))
            else:
                columns.append(pa.nulls(len(batch), field.type))
        return pa.record_batch(columns, schema=pa.schema([*schemas.SOURCE, *self.extra]))


FILE: Final = "file.unreadable"
"""Code of the error of a file that holds many messages: none of them was processed."""
def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column that is passed through in the type that it has elsewhere."""
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        reason = f"column {field.name!r} is {column.type}, not {field.type} as in other files"
        raise type(error)(f"{reason}: {error}") from error


_MESSAGE_KINDS: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_string,
    pa.types.is_large_string,
)


class Listing:
    """The files of a directory, looked at again and again.

    Args:
        path: The directory.
        pattern: Glob that a file's name (not its folders) has to match, at any depth. Names that
            begin with a dot or an underscore never count.

    Cost:
        A look lists the folders that changed since the last one, and asks about the names that it
        has not seen: files that were handed on cost a look-up in a set, not a `stat`.
    """

    def __init__(self, path: Path, pattern: str) -> None:
        self.path = path
        self.pattern = pattern
        self._folders: set[str] = set()
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
        faults: dict[str, OSError] = {}
        self.passed_over = self.matching = 0
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                names = os.listdir(self.path / folder)  # noqa: PTH208 - text, all at once
            except FileNotFoundError:
                if not folder:
                    raise
                continue  # a folder that was removed after it was listed
            except OSError as error:
                if not folder:
                    raise
                faults[folder] = error
                continue
            prefix = f"{folder}/" if folder else ""
            for name in names:
                path = prefix + name
                if path in done:
                    self.matching += 1
                    continue
                if name.startswith((".", "_")):
                    continue
                if path in self._folders:
                    pending.append(path)
                else:
                    self._look_at(path, name, pending, found)
        found.sort(key=lambda file: (file.modified_ns, file.name))
        self.matching += len(found)
        return found, faults

    def _look_at(self, path: str, name: str, pending: list[str], found: list[FoundFile]) -> None:
        """A name that was not seen before: a folder, a file, or neither."""
        full = self.path / path
        if full.is_dir():
            if not full.is_symlink():
                self._folders.add(path)
                pending.append(path)
            return
        if not fnmatchcase(name, self.pattern):
            self.passed_over += 1
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


def reader_of(source: SourceSettings, files: Sequence[FoundFile], limits: Limits) -> FileReader:
    """What reads the files of a source.

    Args:
        source: The settings of the source.
        files: Some of its files: the types of columns that are passed through come from them.
        limits: Bounds on a message.

    Raises:
        ConfigError: No file has a column that is to be passed through.
    """
    if source.kind == "directory":
        return DirectoryReader(source.path, limits.message_bytes_max)
    extra = columns_of(source.path, files, source.columns)
    return ParquetReader(source.path, source.message_column, source.id_column, extra)


def shares_of(units: Sequence[Unit], tasks: int) -> list[list[Unit]]:
    """Units in shares of about the same cost, in their order, each at least one unit."""
    aim = sum(unit.cost for unit in units) / max(1, tasks)
    shares: list[list[Unit]] = []
    cost = 0.0
    for unit in units:
        if not shares or (cost + unit.cost / 2 > aim and len(shares) < tasks):
            shares.append([])
            cost = 0.0
        shares[-1].append(unit)
        cost += unit.cost
    return shares


def columns_of(path: Path, files: Sequence[FoundFile], names: Sequence[str]) -> pa.Schema:
    """The types of columns that are passed through, from the first file that has each.

    Raises:
        ConfigError: No file has one of them.
    """
    found: dict[str, pa.Field] = {}
    for file in files:
        if len(found) == len(names):
            break
        try:
            there = pq.read_schema(path / file.name)
        except (OSError, pa.ArrowException):
            continue  # whoever reads it says what is wrong
        for name in names:
            if name in there.names:
                found.setdefault(name, there.field(name).with_nullable(True).remove_metadata())
    missing = [name for name in names if name not in found]
    if missing and files:
        raise ConfigError(
            "config.invalid",
            key="source.columns",
            reason=f"no file has a column {', '.join(missing)}",
        )
    return pa.schema([found[name] for name in names if name in found])


def shown(name: str) -> str:
    r"""A path as text; one that is not UTF-8 keeps its bytes as \xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def unreadable(
    name: str, error: Exception, code: str = "message.unreadable"
) -> UnreadableMessageError:
    """The error of a file that cannot be read; its code is `FILE` for one of many messages."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return UnreadableMessageError(code, path=shown(name), reason=reason)


def _batch(rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), schemas.SOURCE, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schemas.SOURCE)

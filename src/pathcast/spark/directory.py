"""A directory of files as a stream of messages, for Spark's Python data sources.

Each file is one message, whose id is the path inside the directory; or (format "parquet") each row
of a file is one (`parquet_files`). A file that cannot be read, or is larger than a message may be,
becomes a row with the reason instead of the bytes, so that it ends as a dead letter and fails
nothing.

Spark's own file source would need about a second a micro-batch to list files, and fails the query
when a file has gone, is damaged or may not be read. Here the files of each step are written to a
`journal` in the checkpoint before Spark hears of them: an offset is the number of a journal entry,
and a replay reads exactly the files of the entry.

Example:
    >>> spark.dataSource.register(MessageDirectory)                         # doctest: +SKIP
    >>> stream = (spark.readStream.format("message_directory")              # doctest: +SKIP
    ...     .option("path", "inbox").option("journal", "checkpoint/journal").load())

It reads no archives, follows no links to directories and notices no change of a file that it has
handed on and that was read: a new message needs a new name. Write a message elsewhere on the same
file system and rename it into the directory; names that begin with "." or "_" are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pathcast.errors import LimitExceededError, PathcastError, UnreadableMessageError
from pathcast.limits import MIB, Limits
from pathcast.spark import schemas
from pathcast.spark.journal import FoundFile, Journal, message_id_of
from pathcast.spark.parquet_files import MessageColumns, read_parquet_files
from pathcast.spark.source_rows import SOURCE_SCHEMA

BATCH_BYTES_MAX = 4 * MIB
BATCH_ROWS_MAX = 1024
"""A batch of rows is handed to Spark when it has reached one of the two."""

FILES_PER_TRIGGER_MAX = 10_000
PARTITIONS = 2
PATTERN = "*.xml"

FileKind = Literal["directory", "parquet"]
"""Whether a file is a message or holds many; `source.kind` of a pipeline."""


@dataclass(frozen=True, slots=True)
class DirectoryOptions:
    """Options of the source, as Spark hands them over: text.

    Attributes:
        path: The directory.
        pattern: Glob that a file's name (not its folders) has to match, at any depth.
        kind: Whether a file is a message, or a Parquet file with a message in each row.
        columns: Of Parquet files: where the messages and their ids are.
        journal: Directory of the journal; needed for streams.
        commits: Directory of the commits, which say what could not be read.
        files_max: Files in one micro-batch.
        bytes_max: Bytes in one micro-batch, a single larger file excepted; 0 for no bound.
        partitions: Tasks that share the files of a micro-batch.
        message_bytes_max: Files above this size are not read.
    """

    path: Path
    pattern: str
    kind: FileKind
    columns: MessageColumns
    journal: Path | None
    commits: Path | None
    files_max: int
    bytes_max: int
    partitions: int
    message_bytes_max: int

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> DirectoryOptions:
        """Options with their defaults."""
        journal, commits = options.get("journal"), options.get("commits")
        return cls(
            path=Path(options["path"]),
            pattern=options.get("pattern", PATTERN),
            kind="parquet" if options.get("kind") == "parquet" else "directory",
            columns=MessageColumns(
                options.get("message_column", "message"), options.get("id_column", "message_id")
            ),
            journal=Path(journal) if journal else None,
            commits=Path(commits) if commits else None,
            files_max=int(options.get("files_max", FILES_PER_TRIGGER_MAX)),
            bytes_max=int(options.get("bytes_max", 0)),
            partitions=int(options.get("partitions", PARTITIONS)),
            message_bytes_max=int(options.get("message_bytes_max", Limits().message_bytes_max)),
        )


class Listing(NamedTuple):
    """What a directory holds.

    Attributes:
        files: Its files, oldest first.
        unlisted: Folder -> why it cannot be listed. What lies there is not in `files`.
    """

    files: list[FoundFile]
    unlisted: dict[str, str]


@dataclass(frozen=True)
class FileShare(InputPartition):  # type: ignore[misc]
    """The files that one task reads."""

    names: tuple[str, ...]


class MessageDirectory(DataSource):  # type: ignore[misc]
    """The data source `message_directory`; rows of schema `schemas.SOURCE`."""

    @classmethod
    def name(cls) -> str:
        """What `format()` takes."""
        return "message_directory"

    def schema(self) -> StructType:
        """`schemas.SOURCE`."""
        return schemas.SOURCE

    def reader(self, schema: StructType) -> DirectoryReader:
        """All files that are there now."""
        return DirectoryReader(DirectoryOptions.from_spark(self.options))

    def streamReader(self, schema: StructType) -> DirectoryStream:
        """The files that are there and those that will be."""
        return DirectoryStream(DirectoryOptions.from_spark(self.options))


class DirectoryReader(DataSourceReader):  # type: ignore[misc]
    """Reads what a directory holds, once."""

    def __init__(self, options: DirectoryOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """The files, shared out.

        Raises:
            OSError: A folder cannot be listed. Going on would lose what lies there without a word.
        """
        found = list_files(self._options, lambda _: False)
        for folder, reason in found.unlisted.items():
            raise OSError(f"{folder} cannot be listed: {reason}")
        return share_out(found.files, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a share."""
        return read_messages(partition.names, self._options)


class DirectoryStream(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads a directory as it fills.

    Spark keeps one of these for the life of a query, and makes others to plan and to read.
    """

    def __init__(self, options: DirectoryOptions) -> None:
        self._options = options
        self._target: list[FoundFile] | None = None
        self._told: dict[str, str] | None = None
        self._opened: Journal | None = None

    def initialOffset(self) -> dict[str, int]:
        """Before the first entry of the journal."""
        return {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most `files_max` files."""
        return ReadMaxFiles(self._options.files_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is what this run reads."""
        self._journal.refresh()
        self._target = self._list()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The next step, its files written to the journal; `start` when there is nothing new."""
        entry = start["entry"] + 1
        if self._journal.has(entry):
            # Written before a kill, and Spark did not get to log it: the same step again.
            return {"entry": entry}
        self._journal.refresh()
        there = self._list() if self._target is None else self._target
        found = [file for file in there if self._journal.is_wanted(file)]
        files_max = limit.max_files if isinstance(limit, ReadMaxFiles) else len(found)
        step = _first_of(found, files_max, self._options.bytes_max)
        if not step:
            return start
        self._journal.write(entry, step)
        return {"entry": entry}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The files of the steps after `start` up to `end`, shared out."""
        found = [
            file
            for entry in range(start["entry"] + 1, end["entry"] + 1)
            for file in self._journal.entry(entry)
        ]
        return share_out(found, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a share."""
        return read_messages(partition.names, self._options)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: the journal is also the memory of what was handed on."""

    @property
    def _journal(self) -> Journal:
        if self._opened is None:
            assert self._options.journal is not None, "a stream needs the option journal"
            self._opened = Journal(self._options.journal, self._options.commits)
        return self._opened

    def _list(self) -> list[FoundFile]:
        """What is there. Folders that cannot be listed are told of, and looked at again."""
        found = list_files(self._options, self._journal.is_done)
        if found.unlisted != self._told:
            self._journal.write_unlisted(found.unlisted)
            self._told = found.unlisted
        return found.files


def list_files(options: DirectoryOptions, is_done: Callable[[str], bool]) -> Listing:
    """Files that match the pattern, oldest first, and the folders that cannot be listed.

    Args:
        options: Where to look.
        is_done: Whether a file, by its name, need not be looked at.

    Cost:
        One `stat` a file that is not done, one look-up a file that is.
    """
    found: list[FoundFile] = []
    unlisted: dict[str, str] = {}
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(options.path / folder) as entries:
                for entry in entries:
                    if entry.name.startswith((".", "_")):
                        continue
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(name)
                    elif fnmatchcase(entry.name, options.pattern) and not is_done(name):
                        found += _stat(options, entry, name)
        except OSError as error:
            if folder and isinstance(error, FileNotFoundError):
                continue  # a folder that was removed after it was listed
            unlisted[str(options.path / folder)] = error.strerror or type(error).__name__
    found.sort(key=lambda file: (file.modified_ns, file.name))
    return Listing(found, dict(sorted(unlisted.items())))


def _stat(options: DirectoryOptions, entry: os.DirEntry[str], name: str) -> list[FoundFile]:
    """The file, or nothing for what is no file: a pipe or a device would never end."""
    try:
        if entry.is_file():
            return [stat_file(options.path, name)]
        # A link that leads nowhere: reading it says so in a dead letter.
        return [FoundFile(name, 0, 0)] if entry.is_symlink() and not entry.is_dir() else []
    except FileNotFoundError:
        return []  # taken away again before it was handed on
    except OSError:
        return [FoundFile(name, 0, 0)]  # reading it says why in a dead letter


def stat_file(directory: Path, name: str) -> FoundFile:
    """A file as it is now.

    Raises:
        OSError: There is none, or it may not be looked at.
    """
    status = (directory / name).stat()
    return FoundFile(name, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _first_of(found: Sequence[FoundFile], files_max: int, bytes_max: int) -> list[FoundFile]:
    step: list[FoundFile] = []
    size = 0
    for file in found[:files_max]:
        if step and bytes_max and size + file.size > bytes_max:
            break
        step.append(file)
        size += file.size
    return step


def share_out(found: Sequence[FoundFile], partitions: int) -> list[FileShare]:
    """Files in shares of about the same number of bytes, each at least one file."""
    # A file costs its bytes and, opening it, about as much as 16 KB of them.
    costs = [file.size + 16_384 for file in found]
    aim = sum(costs) / max(1, partitions)
    shares: list[list[str]] = []
    cost = 0.0
    for file, own in zip(found, costs, strict=True):
        if not shares or (cost + own / 2 > aim and len(shares) < partitions):
            shares.append([])
            cost = 0.0
        shares[-1].append(file.name)
        cost += own
    return [FileShare(tuple(names)) for names in shares]


def read_messages(names: Sequence[str], options: DirectoryOptions) -> Iterator[pa.RecordBatch]:
    """Messages of files as Arrow batches of schema `schemas.SOURCE`."""
    if options.kind == "parquet":
        return read_parquet_files(names, options.path, options.columns)
    return read_files(names, options)


def read_files(names: Sequence[str], options: DirectoryOptions) -> Iterator[pa.RecordBatch]:
    """Messages as Arrow batches of schema `schemas.SOURCE`."""
    rows: list[tuple[str, bytes | None, int, str | None, str | None]] = []
    size = 0
    for name in names:
        message_id = message_id_of(name)
        content, length, refusal = _read_file(name, message_id, options)
        code, reason = (None, None) if refusal is None else (refusal.code, refusal.message)
        rows.append((message_id, content, length, code, reason))
        size += len(content or b"")
        if size >= BATCH_BYTES_MAX or len(rows) >= BATCH_ROWS_MAX:
            yield _to_arrow(rows)
            rows, size = [], 0
    if rows:
        yield _to_arrow(rows)


def _read_file(
    name: str, message_id: str, options: DirectoryOptions
) -> tuple[bytes | None, int, PathcastError | None]:
    """The bytes, or why not; and how many there are."""
    length = 0
    try:
        with (options.path / name).open("rb") as handle:
            length = os.fstat(handle.fileno()).st_size
            if length <= options.message_bytes_max:
                # One byte more than allowed is enough to see that a growing file is too large.
                content = handle.read(options.message_bytes_max + 1)
                length = len(content)
                if length <= options.message_bytes_max:
                    return content, length, None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return (
            None,
            length,
            UnreadableMessageError("message.unreadable", path=message_id, reason=reason),
        )
    return (
        None,
        length,
        LimitExceededError(
            "limit.message_bytes",
            limit="message_bytes_max",
            given=length,
            maximum=options.message_bytes_max,
        ),
    )


def _to_arrow(rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), SOURCE_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SOURCE_SCHEMA)

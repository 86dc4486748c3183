"""A directory of XML files as a stream of messages, for Spark's Python data sources.

Each file is one message; its id is the path inside the directory. A file that cannot be read, or is
larger than a message may be, becomes a row with the reason instead of the bytes, so that it
ends as a dead letter and fails nothing.

Spark's own file source would need about a second a micro-batch to list files, and fails the query
when a file has gone or may not be read. Here the files of each step are written to a *journal* in
the checkpoint before Spark hears of them: an offset is the number of a journal entry, and a
replay reads exactly the files of the entry.

Example:
    >>> spark.dataSource.register(XmlDirectory)                             # doctest: +SKIP
    >>> stream = (spark.readStream.format("xml_directory")                  # doctest: +SKIP
    ...     .option("path", "inbox").option("journal", "checkpoint/journal").load())

It reads no archives, follows no links to directories and notices no change of a file that it has
handed on already: a new message needs a new name. Write a message elsewhere on the same file system
and rename it into the directory; names that begin with "." or "_" are left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

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
from pathcast.spark.ledger import write_atomically

BATCH_BYTES_MAX = 4 * MIB
BATCH_ROWS_MAX = 1024
"""A batch of rows is handed to Spark when it has reached one of the two."""

FILES_PER_TRIGGER_MAX = 10_000
PARTITIONS = 2
PATTERN = "*.xml"

_ARROW_SCHEMA = pa.schema(
    [
        pa.field("message_id", pa.string(), nullable=False),
        ("message", pa.binary()),
        pa.field("bytes", pa.int64(), nullable=False),
        ("code", pa.string()),
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class DirectoryOptions:
    """Options of the source, as Spark hands them over: text.

    Attributes:
        path: The directory.
        pattern: Glob that a file's name (not its folders) has to match, at any depth.
        journal: Directory of the journal; needed for streams.
        files_max: Files in one micro-batch.
        bytes_max: Bytes in one micro-batch, a single larger file excepted; 0 for no bound.
        partitions: Tasks that share the files of a micro-batch.
        message_bytes_max: Files above this size are not read.
    """

    path: Path
    pattern: str
    journal: Path | None
    files_max: int
    bytes_max: int
    partitions: int
    message_bytes_max: int

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> DirectoryOptions:
        """Options with their defaults."""
        journal = options.get("journal")
        return cls(
            path=Path(options["path"]),
            pattern=options.get("pattern", PATTERN),
            journal=Path(journal) if journal else None,
            files_max=int(options.get("files_max", FILES_PER_TRIGGER_MAX)),
            bytes_max=int(options.get("bytes_max", 0)),
            partitions=int(options.get("partitions", PARTITIONS)),
            message_bytes_max=int(options.get("message_bytes_max", Limits().message_bytes_max)),
        )


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the directory.

    Attributes:
        name: Path inside the directory.
        size: Bytes, when it was found.
        modified_ns: When it was last written.
    """

    name: str
    size: int
    modified_ns: int


@dataclass(frozen=True)
class FileShare(InputPartition):  # type: ignore[misc]
    """The files that one task reads."""

    names: tuple[str, ...]


class XmlDirectory(DataSource):  # type: ignore[misc]
    """The data source `xml_directory`; rows of schema `schemas.SOURCE`."""

    @classmethod
    def name(cls) -> str:
        """What `format()` takes."""
        return "xml_directory"

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
        """The files, shared out."""
        found = list_files(self._options, seen=frozenset())
        return share_out(found, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a share."""
        return read_files(partition.names, self._options)


class DirectoryStream(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads a directory as it fills.

    Spark keeps one of these for the life of a query, and makes others to plan and to read.
    """

    def __init__(self, options: DirectoryOptions) -> None:
        self._options = options
        self._seen: set[str] | None = None
        self._target: list[FoundFile] | None = None

    def initialOffset(self) -> dict[str, int]:
        """Before the first entry of the journal."""
        return {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most `files_max` files."""
        return ReadMaxFiles(self._options.files_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is what this run reads."""
        self._target = list_files(self._options, self._all_seen())

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The next step, its files written to the journal; `start` when there is nothing new."""
        entry = start["entry"] + 1
        if self._entry_path(entry).exists():
            # Written before a kill, and Spark did not get to log it: the same step again.
            return {"entry": entry}
        seen = self._all_seen()
        if self._target is None:
            found = list_files(self._options, seen)
        else:
            found = [file for file in self._target if file.name not in seen]
        files_max = limit.max_files if isinstance(limit, ReadMaxFiles) else len(found)
        step = _first_of(found, files_max, self._options.bytes_max)
        if not step:
            return start
        content = json.dumps([[file.name, file.size, file.modified_ns] for file in step])
        write_atomically(self._entry_path(entry), content.encode())
        seen.update(file.name for file in step)
        return {"entry": entry}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The files of the steps after `start` up to `end`, shared out."""
        found = [
            file
            for entry in range(start["entry"] + 1, end["entry"] + 1)
            for file in self._entry(entry)
        ]
        return share_out(found, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a share."""
        return read_files(partition.names, self._options)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: the journal is also the memory of what was handed on."""

    def _entry_path(self, entry: int) -> Path:
        journal = self._options.journal
        assert journal is not None, "a stream needs the option journal"
        return journal / f"{entry}.json"

    def _entry(self, entry: int) -> list[FoundFile]:
        return [FoundFile(*row) for row in json.loads(self._entry_path(entry).read_bytes())]

    def _all_seen(self) -> set[str]:
        """Names in the journal; read once, then kept up to date."""
        if self._seen is None:
            self._seen = set()
            entry = 1
            while self._entry_path(entry).exists():
                self._seen.update(file.name for file in self._entry(entry))
                entry += 1
        return self._seen


def list_files(options: DirectoryOptions, seen: frozenset[str] | set[str]) -> list[FoundFile]:
    """Files that match the pattern and were not seen, oldest first.

    Raises:
        OSError: The directory or a folder in it cannot be listed. Going on would lose what lies
            there without a word.

    Cost:
        One `stat` a file that was not seen, one look-up a file that was.
    """
    found: list[FoundFile] = []
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = os.scandir(options.path / folder)
        except FileNotFoundError:
            if not folder:
                raise
            continue  # a folder that was removed after it was listed
        with entries:
            for entry in entries:
                if entry.name.startswith((".", "_")):
                    continue
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                elif fnmatchcase(entry.name, options.pattern) and name not in seen:
                    found += _stat(entry, name)
    found.sort(key=lambda file: (file.modified_ns, file.name))
    return found


def _stat(entry: os.DirEntry[str], name: str) -> list[FoundFile]:
    """The file, or nothing for what is no file: a pipe or a device would never end."""
    try:
        if entry.is_file():
            status = entry.stat()
            return [FoundFile(name, status.st_size, status.st_mtime_ns)]
        # A link that leads nowhere: reading it says so in a dead letter.
        return [FoundFile(name, 0, 0)] if entry.is_symlink() and not entry.is_dir() else []
    except FileNotFoundError:
        return []  # taken away again before it was handed on


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


def read_files(names: Sequence[str], options: DirectoryOptions) -> Iterator[pa.RecordBatch]:
    """Messages as Arrow batches of schema `schemas.SOURCE`."""
    rows: list[tuple[str, bytes | None, int, str | None, str | None]] = []
    size = 0
    for name in names:
        # Ids are text; a name that is not UTF-8 keeps its bytes as \xNN.
        message_id = os.fsencode(name).decode("utf-8", "backslashreplace")
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
        for column, field in zip(zip(*rows, strict=True), _ARROW_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA)

"""Where messages come from: files, and how each kind of them is read.

A source lists files; a `FileReader` reads them, in the tasks, with nothing between the file and the
engine. Which files belong to which micro-batch is the business of `journal`.

    kind          a file is                      id of a message
    directory     one message                    its path inside the directory
    parquet       many messages, a row each      a column
    delta         likewise, added to a table     a column
    archive       many messages, a member each   path of the archive "!" path of the member
    records       many messages, records of      path of the file "#" byte where the record begins
                  one root element
    broker        deliveries of an inbox         as it was published

It matches nothing and does not import pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pathcast.errors import PathcastError, invalid_setting
from pathcast.limits import Limits
from pathcast.records import Splitter, record_path
from pathcast.spark.archives import ArchiveReader
from pathcast.spark.arrivals import PATTERN as ARRIVALS
from pathcast.spark.arrivals import InboxListing
from pathcast.spark.delta_source import DeltaListing, columns_of_table
from pathcast.spark.files import (
    FILE,
    NO_COLUMNS,
    DirectoryReader,
    FileReader,
    FoundFile,
    SourceListing,
    Unit,
    as_unread,
)
from pathcast.spark.listing import Listing
from pathcast.spark.parquet import ParquetReader, columns_of
from pathcast.spark.passed_types import passed_type
from pathcast.spark.records import RecordReader
from pathcast.spark.workers import InProcess, Workers

if TYPE_CHECKING:
    from pathcast.spark.network import NetworkSettings
    from pathcast.spark.settings import SourceSettings
    from pathcast.spark.storage import Storage
    from pathcast.spark.writing import FileFormat

PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    "directory": ("*.xml",),
    "parquet": ("*.parquet",),
    "archive": ("*.zip", "*.tar", "*.tgz", "*.gz"),
    "records": ("*.xml", "*.xml.gz", "*.xml.zst"),
    "broker": (ARRIVALS,),
}
"""What a file's name has to match where nothing else is said."""


def listing_of(
    source: SourceSettings,
    checkpoint: Storage | None = None,
    network: NetworkSettings | None = None,
) -> SourceListing:
    """Return the listing of a source's files.

    A table or an inbox is listed as it is now without a checkpoint, which remembers how far it was
    read; nothing is fetched from an inbox without a network.
    """
    storage = source.storage
    if source.kind == "delta":
        return DeltaListing(
            storage,
            checkpoint,
            start=None if checkpoint is None else source.starting_version,
            changes=source.changes,
            columns=source.columns,
        )
    patterns = PATTERNS[source.kind] if source.pattern is None else (source.pattern,)
    files = Listing(storage, patterns)
    if source.kind != "broker" or checkpoint is None or network is None:
        return files
    wanted = None
    if source.profile is not None:
        wanted = {
            "query": source.profile,
            "deliver": source.profile_deliver,
            "namespaces": source.profile_namespaces,
        }
    return InboxListing(files, storage, checkpoint, network, wanted)


def reader_of(source: SourceSettings, limits: Limits, columns: pa.Schema) -> FileReader:
    """Return the reader of a source's files."""
    if source.kind == "directory":
        return DirectoryReader(source.storage, limits.message_bytes_max)
    if source.kind == "archive":
        return ArchiveReader(source.storage, limits.message_bytes_max)
    if source.kind == "records":
        path = record_path(source.record or "", source.record_namespaces)
        return RecordReader(source.storage, Splitter(path, limits), source.range_bytes)
    gone = "file.vacuumed" if source.kind == "delta" else FILE
    return ParquetReader(
        source.storage,
        source.message_column,
        source.id_column,
        source.read_bytes_max,
        gone,
        extra=columns,
    )


def units_of(
    reader: FileReader,
    files: Sequence[FoundFile],
    unread: dict[str, PathcastError],
    workers: Workers | None = None,
) -> list[Unit]:
    """Files in pieces that different tasks may read.

    Files of `unread` are left out, and it gets those that cannot be read. `workers`, or this
    process, look at files before where a reader asks for that.
    """
    units: list[Unit] = []
    for file in files:
        with as_unread(file.name, unread):
            units += [] if file.name in unread else reader.units(file)
    if not isinstance(reader, RecordReader):
        return units
    # What a range begins inside of is known from those before it, so the last one tells nobody.
    following = [*units[1:], None]
    ranges = [
        unit
        for unit, after in zip(units, following, strict=True)
        if unit.groups and after is not None and after.name == unit.name
    ]
    workers = workers or InProcess()
    surveys = workers.run(reader.survey, shares_of(ranges, workers.count)) if ranges else []
    return reader.placed(units, surveys, unread)


COLUMNS: Final = "_columns.arrow"


def passed_columns(
    columns: tuple[str, ...],
    there: Callable[[], pa.Schema],
    checkpoint: Storage | None,
    format: FileFormat,
) -> pa.Schema:
    """The columns that are passed through, with their types in outputs, as far as they are known.

    Once all are known they stay the same for the life of the checkpoint, whatever the source says
    later: rows of one output have one type.

    `there` finds them in the source (`columns_there`), as far as they can be found.

    Raises:
        ConfigError: The source has not one of them, or outputs have no type for its values.
    """
    if not columns:
        return NO_COLUMNS
    if checkpoint is not None:
        with suppress(FileNotFoundError):
            known = pa.ipc.read_schema(pa.BufferReader(checkpoint.read(COLUMNS)))
            if tuple(known.names) == columns:
                return known
    found = pa.schema([_passed(field, format) for field in there()])
    if checkpoint is not None and len(found) == len(columns):
        checkpoint.write(COLUMNS, found.serialize().to_pybytes())
    return found


def columns_there(source: SourceSettings, files: Sequence[FoundFile]) -> pa.Schema:
    """The columns of a table that are passed through, or those of the first file that has each."""
    if source.kind == "delta":
        return columns_of_table(source.storage, source.columns)
    return columns_of(source.storage, files, source.columns)


def _passed(field: pa.Field, format: FileFormat) -> pa.Field:
    try:
        return pa.field(field.name, passed_type(field.type, format))
    except ValueError as error:
        raise invalid_setting(
            "source.columns",
            f"column {field.name!r} cannot be passed through: {error}; leave it out, or "
            "store it as text or a number in the source",
        ) from error


def check_columns(source: SourceSettings, format: FileFormat) -> None:
    """Checks that columns can be passed through, as far as what is in the source now says it.

    Raises:
        ConfigError: No file has one of them, or outputs have no type for its values.
    """
    if source.columns and source.kind != "spark":
        with suppress(OSError):  # a run says so
            files = listing_of(source).look(set())[0]
            passed_columns(source.columns, lambda: columns_there(source, files), None, format)


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

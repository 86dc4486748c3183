"""Outputs as Delta tables: `inboxes`, `matches` and `dead_letters`, each a table of its own.

The tasks write the files, as always; the commit of a micro-batch says that they count; then they
are added to the tables, each in one transaction that carries the number of the micro-batch. What a
kill left out is added at the next start, and what a table has had is not added again. Log,
checkpoints, compaction and vacuum are those of the library `deltalake`.

Example:
    >>> tables = DeltaTables(Storage("delivered"), layout)                  # doctest: +SKIP
    >>> tables.publish(commit)                                              # doctest: +SKIP
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import extra, invalid_setting
from pathcast.spark.delta_log import LOG
from pathcast.spark.ledger import Commit, CommitFollower
from pathcast.spark.schemas import DAY, OUTPUTS, OutputName
from pathcast.spark.storage import Storage
from pathcast.spark.unwritable import unwritable_in, writing
from pathcast.spark.writing import WrittenFile, partition_of_name

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from pathcast.spark.outputs import Layout

CONFIGURATION: Final = {
    # Transactions after which the library sums up the log: a reader reads no more than these.
    "delta.checkpointInterval": "20",
    # Bounds of the first column, which is the subscriber in inboxes, and of no other: without this
    # `deltalake` takes a column without bounds for one without values.
    "delta.dataSkippingNumIndexedCols": "1",
}
"""Of the tables that are made here."""


class DeltaTables:
    """The tables of an output.

    Raises:
        MissingDependencyError: `deltalake` is not installed.
    """

    def __init__(self, output: Storage, layout: Layout) -> None:
        with extra("delta", "format = delta"):
            import deltalake
        self._library = deltalake
        self._output = output
        self._layout = layout
        self._names = [name for name in OUTPUTS if layout.writes(name)]
        self._options = output.delta_options or None
        self._tables: dict[OutputName, DeltaTable] = {}
        self._partition = [DAY] if layout.by_day else None

    def through(self, checkpoint: str, extra: pa.Schema) -> int:
        """The last micro-batch that all tables have; 0 for none."""
        return min(
            self._table(name, extra).transaction_version(checkpoint) or 0 for name in self._names
        )

    def create(self, extra: pa.Schema) -> None:
        """Makes the tables that are not there, so that an empty output has its columns."""
        for name in self._names:
            self._table(name, extra)

    def publish(self, commit: Commit, extra: pa.Schema | None = None) -> None:
        """Adds the files of a micro-batch to the tables that have not had them."""
        for name in self._names:
            table = self._table(name, extra or pa.schema([]))
            done = table.transaction_version(commit.checkpoint)
            if done is not None and done >= commit.batch_id:
                continue
            self._add(table, commit, commit.files.get(name, ()))

    def read(
        self,
        name: OutputName,
        *,
        subscriber: str | None = None,
        batches: Sequence[int] | None = None,
    ) -> pa.Table:
        """A table as its readers see it; files of other subscribers are skipped."""
        chosen = pc.scalar(True)
        if subscriber is not None:
            chosen = chosen & (pc.field("subscriber") == subscriber)
        if batches:
            chosen = chosen & (pc.field("batch_id") >= batches[0])
        table = self._opened(name)
        if table is None:
            return self._layout.schema(name).empty_table()
        found = table.to_pyarrow_dataset().to_table(filter=chosen)
        # Of where rows lie, which `processed_at` says of each, outputs have no column.
        return found.drop_columns([DAY]) if self._layout.by_day else found

    def file_urls(self, name: OutputName) -> list[str]:
        """The files that count."""
        table = self._opened(name)
        return [] if table is None else table.file_uris()

    def small_files(self, bytes_max: int) -> int:
        """Files below a size in all tables, but one of each or of each day: it stays alone."""
        count = 0
        for table in self._there():
            files = pa.table(table.get_add_actions(flatten=True))
            small = files.filter(pc.field("size_bytes") < bytes_max)
            # Files of one partition alone are merged.
            days = [None] * small.num_rows
            if self._partition:
                days = small.column(f"partition.{DAY}").to_pylist()
            count += small.num_rows - len(set(days))
        return count

    def compact(self, keep_hours: float) -> None:
        """Merges small files, and takes out those that were merged longer ago."""
        for table in self._there():
            table.optimize.compact()
            table.vacuum(math.ceil(keep_hours), dry_run=False, enforce_retention_duration=False)

    def forget(self, first: int, day: str | None = None) -> None:
        """Deletes the rows of micro-batches before one.

        Args:
            first: That one.
            day: The day on which it was begun, where all of that day stays: no file is read then.
        """
        is_gone = f"batch_id < {first}" if day is None else f"{DAY} < '{day}'"
        for table in self._there():
            table.delete(is_gone)

    def _add(self, table: DeltaTable, commit: Commit, files: Iterable[WrittenFile]) -> None:
        transaction = self._library.transaction
        now = int(time.time() * 1000)
        has_bounds = CONFIGURATION.items() <= table.metadata().configuration.items()
        actions = [
            transaction.AddAction(
                path=file.name.partition("/")[2],
                size=file.bytes,
                partition_values=dict(partition_of_name(file.name)),
                modification_time=now,
                data_change=True,
                stats=json.dumps(_stats(file, has_bounds)),
            )
            for file in files
        ]
        with writing(table.table_uri):
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                partition_by=self._partition,
                commit_properties=transaction.CommitProperties(
                    app_transactions=[
                        transaction.Transaction(commit.checkpoint, commit.batch_id, now)
                    ]
                ),
            )
        table.update_incremental()

    def _opened(self, name: OutputName) -> DeltaTable | None:
        """A table as it is now, None where it was not made yet: whoever reads makes none."""
        is_there = name in self._tables or self._output.names(f"{name}/{LOG}")
        return self._known(name, self._library.DeltaTable) if is_there else None

    def _there(self) -> Iterator[DeltaTable]:
        """Yield the tables that were made."""
        return (table for table in map(self._opened, self._names) if table is not None)

    def _table(self, name: OutputName, extra: pa.Schema) -> DeltaTable:
        """A table as it is now; made if it is not there."""
        more = () if name == "dead_letters" else extra
        columns = [_as_delta(field) for field in (*self._layout.schema(name), *more)]
        if self._partition:
            columns.append(pa.field(DAY, pa.date32(), nullable=False))
        make = partial(
            self._library.DeltaTable.create,
            schema=pa.schema(columns),
            mode="ignore",
            partition_by=self._partition,
            configuration=CONFIGURATION,
        )
        return self._known(name, make)

    def _known(self, name: OutputName, make: Callable[..., DeltaTable]) -> DeltaTable:
        if name not in self._tables:
            with self._told():
                self._tables[name] = make(self._output.url(name), storage_options=self._options)
        self._tables[name].update_incremental()
        return self._tables[name]

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Report why a table cannot be opened: a full disk, or a setting that is wrong."""
        try:
            yield
        except (self._library.exceptions.DeltaError, OSError, ValueError) as error:
            if full := unwritable_in(str(error), str(self._output)):
                raise full from error
            raise invalid_setting(
                "output.path",
                f"deltalake cannot open {self._output} (output.delta_options): {error}",
            ) from error


class DeltaPublisher(CommitFollower):
    """Adds micro-batches to the tables of an output, one after the other.

    A table has its columns from the beginning: until the types of those that are passed through are
    known, micro-batches wait. They had no message then.

    Args:
        checkpoint: Id of the checkpoint that numbers the micro-batches.
        columns: Gives the columns that are passed through; None while their types are not known.
    """

    def __init__(
        self, tables: DeltaTables, checkpoint: str, columns: Callable[[], pa.Schema | None]
    ) -> None:
        self._tables = tables
        self._checkpoint = checkpoint
        self._columns = columns

    def check(self) -> None:
        """Find out which micro-batches the tables have."""
        columns = self._columns()
        if columns is not None:
            self.through = self._tables.through(self._checkpoint, columns)

    def publish(self, commit: Commit) -> bool:
        """Add the files of a micro-batch."""
        columns = self._columns()
        if columns is not None:
            self._tables.publish(commit, columns)
            self.through = commit.batch_id
        return True


def _as_delta(field: pa.Field) -> pa.Field:
    """Delta has bytes of any length only."""
    is_fixed = pa.types.is_fixed_size_binary(field.type)
    return field.with_type(pa.binary()) if is_fixed else field


def _stats(file: WrittenFile, has_bounds: bool) -> dict[str, Any]:
    """Number of rows, and the least and the greatest subscriber, by which readers skip files."""
    stats: dict[str, Any] = {"numRecords": file.rows}
    if has_bounds and file.first is not None:
        stats["minValues"] = {"subscriber": file.first}
        stats["maxValues"] = {"subscriber": file.last}
        stats["nullCount"] = {"subscriber": 0}
    return stats

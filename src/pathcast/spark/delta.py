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
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import MissingDependencyError
from pathcast.spark.ledger import Commit
from pathcast.spark.schemas import OUTPUTS, OutputName
from pathcast.spark.storage import Storage
from pathcast.spark.writing import WrittenFile

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from pathcast.spark.outputs import Layout

CHECKPOINT_COMMITS: Final = 20
"""Transactions after which the library sums up the log: a reader reads no more than these."""


class DeltaTables:
    """The tables of an output.

    Args:
        output: The output; each table is a folder of it.
        layout: Which outputs are written.
        options: What the object store needs, as `deltalake` names it.

    Raises:
        MissingDependencyError: `deltalake` is not installed.
    """

    def __init__(
        self, output: Storage, layout: Layout, options: Mapping[str, str] | None = None
    ) -> None:
        try:
            import deltalake
        except ImportError as error:
            raise MissingDependencyError(
                "dependency.missing", purpose="format = delta", module="deltalake", extra="delta"
            ) from error
        self._library = deltalake
        self._output = output
        self._layout = layout
        self._options = dict(options or {}) or None
        self._tables: dict[OutputName, DeltaTable] = {}

    def create(self, extra: pa.Schema) -> None:
        """Makes the tables that are not there, so that an empty output has its columns.

        Args:
            extra: Columns that are passed through.
        """
        for name in OUTPUTS:
            if self._layout.writes(name):
                self._table(name, extra)

    def publish(self, commit: Commit, extra: pa.Schema | None = None) -> None:
        """Adds the files of a micro-batch to the tables that have not had them."""
        for name in OUTPUTS:
            if not self._layout.writes(name):
                continue
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
        """A table as its readers see it; files of other subscribers are skipped.

        Args:
            name: Which.
            subscriber: Only rows of this one.
            batches: Only rows of micro-batches from the first of these on.
        """
        chosen = pc.scalar(True)
        if subscriber is not None:
            chosen = chosen & (pc.field("subscriber") == subscriber)
        if batches:
            chosen = chosen & (pc.field("batch_id") >= batches[0])
        return self._table(name, pa.schema([])).to_pyarrow_dataset().to_table(filter=chosen)

    def file_urls(self, name: OutputName) -> list[str]:
        """The files that count."""
        found: list[str] = self._table(name, pa.schema([])).file_uris()
        return found

    def compact(self, keep_hours: float) -> None:
        """Merges small files, and takes out those that were merged longer ago."""
        for name in OUTPUTS:
            if self._layout.writes(name):
                table = self._table(name, pa.schema([]))
                table.optimize.compact()
                table.vacuum(math.ceil(keep_hours), dry_run=False, enforce_retention_duration=False)

    def _add(self, table: DeltaTable, commit: Commit, files: Iterable[WrittenFile]) -> None:
        transaction = self._library.transaction
        now = int(time.time() * 1000)
        actions = [
            transaction.AddAction(
                path=file.name.partition("/")[2],
                size=file.bytes,
                partition_values={},
                modification_time=now,
                data_change=True,
                stats=json.dumps(_stats(file)),
            )
            for file in files
        ]
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            commit_properties=transaction.CommitProperties(
                app_transactions=[transaction.Transaction(commit.checkpoint, commit.batch_id, now)]
            ),
        )
        table.update_incremental()

    def _table(self, name: OutputName, extra: pa.Schema) -> DeltaTable:
        """A table as it is now."""
        found = self._tables.get(name)
        if found is None:
            more = pa.schema([]) if name == "dead_letters" else extra
            found = self._library.DeltaTable.create(
                self._output.url(name),
                schema=pa.schema(
                    [_as_delta(field) for field in (*self._layout.schema(name), *more)]
                ),
                mode="ignore",
                configuration={"delta.checkpointInterval": str(CHECKPOINT_COMMITS)},
                storage_options=self._options,
            )
            self._tables[name] = found
        found.update_incremental()
        return found


def _as_delta(field: pa.Field) -> pa.Field:
    """Delta has bytes of any length only."""
    is_fixed = pa.types.is_fixed_size_binary(field.type)
    return field.with_type(pa.binary()) if is_fixed else field


def _stats(file: WrittenFile) -> dict[str, Any]:
    """Bounds by which readers skip files.

    Of all columns: `to_pyarrow_dataset` takes a column without bounds for one that has no rows.
    """
    bounds = file.bounds or {}
    return {
        "numRecords": file.rows,
        "minValues": {name: least for name, (least, _) in bounds.items()},
        "maxValues": {name: most for name, (_, most) in bounds.items()},
    }

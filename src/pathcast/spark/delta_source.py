"""Messages that are the rows of a Delta table, as it grows: which files have news.

A new pipeline takes the table as it is, and then every version in its order: the files that a
version adds are files of the source, and go through the journal as those of a directory do, so that
each is handed on once, whatever is killed. Files that only move rows (`optimize`) hold no news.

    _delta.json     the version that was read last, and the files found up to it that the journal
                    may not have

It is written before any of these files is handed on, so nothing depends on how long the table keeps
its log while they wait.

A version that changes or removes rows is no stream of messages any more. `source.changes` says what
becomes of it: "error"; "skip", which passes over all of it, added files included; or "deliver",
which delivers the files that it adds, rows included that were there before, whose deliveries have
the ids that they had.

It reads no message. The table's state at the start is read by the library `deltalake`.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa

from pathcast.errors import SourceError, extra, invalid_setting
from pathcast.spark.delta_log import (
    AddedFile,
    TableVersion,
    check_configuration,
    check_protocol,
    last_checkpoint,
    read_version,
    relative,
    versions_there,
)
from pathcast.spark.files import ColumnValues, FoundFile, SourceListing
from pathcast.spark.listing import files_at

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from pathcast.spark.storage import Storage

STATE: Final = "_delta.json"

StartingVersion: TypeAlias = int | Literal["latest"] | None
Changes: TypeAlias = Literal["error", "skip", "deliver"]


class DeltaListing(SourceListing):
    """The files of a table that hold news, looked at again and again.

    Args:
        storage: The table.
        checkpoint: What remembers how far it was read; without, each object begins anew.
        start: First version whose additions count; "latest" for those that come from now on; None
            for the table as it is, and what comes.
        changes: What becomes of versions that change or remove rows.
        columns: Columns that are passed through, some of which partitions may say.

    Cost:
        A look reads a small file for each version since the last one, and asks for two more; the
        first one loads the table.
    """

    def __init__(
        self,
        storage: Storage,
        checkpoint: Storage | None,
        *,
        start: StartingVersion = None,
        changes: Changes = "error",
        columns: tuple[str, ...] = (),
    ) -> None:
        super().__init__(str(storage))
        self._storage = storage
        self._checkpoint = checkpoint
        self._start = start
        self._changes = changes
        self._columns = columns
        self._table_id = ""
        self._through: int | None = None
        self._written: int | None = None
        self._latest = -1
        self._pending: dict[str, FoundFile] = {}
        self._changing: list[TableVersion] = []
        self._is_empty = True

    def look(
        self, done: Container[str], again: Mapping[str, FoundFile] | None = None
    ) -> tuple[list[FoundFile], dict[str, OSError]]:
        """Return the files that are new, in the order of their versions.

        Raises:
            SourceError: The log no longer has a version that was not read, a version cannot be
                understood, or changes rows and nobody has said what then.
        """
        again = again or {}
        through = self._begin() if self._through is None else self._through
        found: dict[str, AddedFile] = {}
        for version in self._versions_after(through):
            through = version.number
            for file in self._news_of(version):
                found.setdefault(file.name, file)
        # What the journal has is not ours to remember.
        pending = {n: f for n, f in self._pending.items() if n not in done and n not in again}
        new = [f for n, f in found.items() if not (n in done or n in again or n in pending)]
        self._pending = pending | self._as_found(new)
        self._is_empty = self._is_empty and not self._pending
        self._through = through
        if self._written != through:
            self._write_state(through)
        now = self._as_they_lie({name: file.values for name, file in again.items()})
        return [*now.values(), *self._pending.values()], {}

    def notes(self) -> list[tuple[str, str]]:
        """Return the oddities of the last look, as `SourceListing.notes` does."""
        become = "passed over" if self._changes == "skip" else "delivered as a whole"
        notes = []
        for version in self._changing:
            number, told = version.number, f" ({version.told})" if version.told else ""
            about = f"version {number} of {self.path} changes or removes rows{told}"
            files = f"its {len(version.added):,} new files are {become}"
            notes.append((f"version {number}", f"{about}: {files}"))
        self._changing = []
        if self._is_empty:
            notes.append(("empty", f"the table {self.path} has no file"))
        return notes

    def _begin(self) -> int:
        """The version that was read last, or that there is nothing to read before."""
        table = open_table(self._storage)
        self._table_id, self._latest = str(table.metadata().id), table.version()
        self._is_empty = not table.file_uris()
        state = self._read_state()
        if state is None:
            if self._start is None:
                self._pending = self._as_found(files_of_table(table))
            return self._before_start()
        table_id, through, pending = state
        if table_id != self._table_id:
            reason = f"its id is {self._table_id}, and was {table_id}"
            raise SourceError("delta.replaced", path=self.path, reason=reason)
        if through > self._latest:
            reason = f"it has {self._latest} versions, and was read up to version {through}"
            raise SourceError("delta.replaced", path=self.path, reason=reason)
        self._written = through
        self._pending = {file.name: file for file in pending}
        if isinstance(self._start, int):
            # Whoever says a later version gives up what lies between.
            return max(through, self._before_start())
        return through

    def _before_start(self) -> int:
        if not isinstance(self._start, int):
            return self._latest
        if self._start > self._latest + 1:
            raise invalid_setting(
                "source.starting_version", f"{self.path} has versions up to {self._latest}"
            )
        return self._start - 1

    def _versions_after(self, through: int) -> Iterator[TableVersion]:
        """The versions that were not read, in order."""
        while True:
            version = read_version(self._storage, through + 1)
            if version is None:
                if through < max(self._latest, last_checkpoint(self._storage)):
                    # It may have come between the two questions.
                    version = read_version(self._storage, through + 1)
                    if version is None:
                        raise self._expired(through + 1)
                else:
                    return
            if version.table_id not in (None, self._table_id):
                reason = f"version {version.number} gives it the id {version.table_id}"
                raise SourceError("delta.replaced", path=self.path, reason=reason)
            yield version
            through = version.number

    def _expired(self, version: int) -> SourceError:
        there = [number for number in versions_there(self._storage) if number > version]
        return SourceError(
            "delta.expired",
            path=self.path,
            version=version,
            first=there[0] if there else self._latest + 1,
        )

    def _news_of(self, version: TableVersion) -> tuple[AddedFile, ...]:
        """The files of a version that are to be delivered."""
        if version.takes_rows_away:
            if self._changes == "error":
                told = f" ({version.told})" if version.told else ""
                raise SourceError(
                    "delta.changed", path=self.path, version=version.number, told=told
                )
            self._changing.append(version)
            if self._changes == "skip":
                return ()
        return version.added

    def _as_found(self, files: Iterable[AddedFile]) -> dict[str, FoundFile]:
        """Files that the log adds."""
        values: dict[str, ColumnValues] = {}
        for file in files:
            if file.has_deletions:
                reason = f"rows of {file.name} are deleted by a vector beside it"
                raise SourceError("delta.unsupported", path=self.path, reason=reason)
            known = ((c, file.partition[c]) for c in self._columns if c in file.partition)
            values[file.name] = tuple(known)
        return self._as_they_lie(values)

    def _as_they_lie(self, values: Mapping[str, ColumnValues]) -> dict[str, FoundFile]:
        """Files as they are now; one that has gone is for whoever reads it to tell of."""
        there = files_at(self._storage, list(values))
        return {
            name: replace(there.get(name, FoundFile(name, 0, 0)), values=said)
            for name, said in values.items()
        }

    def _read_state(self) -> tuple[str, int, list[FoundFile]] | None:
        """The table, the version up to which it was read, and files that are to be handed on."""

        def state(row: Any) -> tuple[str, int, list[FoundFile]]:
            pending = [FoundFile.from_row(each) for each in row["pending"]]
            return str(row["table"]), int(row["through"]), pending

        with suppress(FileNotFoundError):
            return self._checkpoint.read_json(STATE, state) if self._checkpoint else None
        return None

    def _write_state(self, through: int) -> None:
        if self._checkpoint is not None:
            pending = [file.to_row() for file in self._pending.values()]
            state = {"table": self._table_id, "through": through, "pending": pending}
            self._checkpoint.write_json(STATE, state)
            self._written = through


def open_table(storage: Storage) -> DeltaTable:
    """A table as the library has it.

    Raises:
        ConfigError: There is none, or it cannot be opened.
        MissingDependencyError: `deltalake` is not installed.
        SourceError: It asks for what is not known here.
    """
    with extra("delta", "kind = delta"):
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    try:
        table = DeltaTable(str(storage), storage_options=storage.delta_options or None)
    except (DeltaError, OSError, ValueError) as error:
        raise invalid_setting(
            "source.path", f"{storage} cannot be opened as a Delta table: {error}"
        ) from error
    protocol = table.protocol()
    check_protocol(str(storage), protocol.min_reader_version, protocol.reader_features or ())
    check_configuration(str(storage), table.metadata().configuration)
    return table


def files_of_table(table: DeltaTable) -> list[AddedFile]:
    """The files of a table as it is, oldest first.

    Raises:
        SourceError: Some rows of them do not count.
    """
    place = table.table_uri
    if "deletionVectors" in (table.protocol().reader_features or ()):
        vectors = pa.table(table.deletion_vectors()).column("filepath")
        if len(vectors):
            reason = f"rows of {vectors[0].as_py()} are deleted by a vector beside it"
            raise SourceError("delta.unsupported", path=place, reason=reason)
    actions = pa.table(table.get_add_actions(flatten=True))
    columns = table.metadata().partition_columns
    values = [actions.column(f"partition.{name}").cast(pa.string()).to_pylist() for name in columns]
    partitions = zip(*values, strict=True) if values else itertools.repeat(())
    rows = zip(
        actions.column("modification_time").to_pylist(),
        (relative(path, place) for path in actions.column("path").to_pylist()),
        partitions,
        strict=False,
    )
    ordered = sorted(rows, key=lambda row: row[:2])
    return [AddedFile(name, dict(zip(columns, row, strict=True))) for _, name, row in ordered]


def columns_of_table(storage: Storage, names: tuple[str, ...]) -> pa.Schema:
    """The types of columns that are passed through; ConfigError where one is not there."""
    there = pa.schema(open_table(storage).schema().to_arrow())
    missing = [name for name in names if name not in there.names]
    if missing:
        raise invalid_setting("source.columns", f"{storage} has no column {', '.join(missing)}")
    return pa.schema([there.field(n).with_nullable(True).remove_metadata() for n in names])

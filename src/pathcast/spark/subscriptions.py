"""Subscriptions as a file, and the snapshots that are made of them.

A file has the columns subscriber, query_id and query. A query that several subscribers want is
registered once; the same id with another text is rejected, since a delivery names the query by its
id.

Each state of the file gives a *generation*: a snapshot of the queries, and beside it the table of
who wants which of them. Both lie in `_snapshots`, named after their content, and stay there as long
as output refers to them. A micro-batch is pinned to one generation.

It does not match and knows nothing of Spark.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.customize.delimited import read_text, records
from pathcast.engine import QueryIndex, Snapshot
from pathcast.errors import ConfigError, DuplicateQueryError, PathcastError
from pathcast.limits import Limits
from pathcast.model import EngineName, Query
from pathcast.spark.ledger import sync_directory, write_atomically

SNAPSHOTS = "_snapshots"
COLUMNS = ("subscriber", "query_id", "query")
DELIVER = "deliver"
"""The column that only subscriptions have which ask for results."""

TABLE_SCHEMA = pa.schema(
    [
        pa.field("subscriber", pa.string(), nullable=False),
        pa.field("query_id", pa.string(), nullable=False),
        pa.field("query_number", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class RejectedSubscription:
    """A line of the file that nothing is delivered for.

    Attributes:
        subscriber: As in the file.
        query_id: As in the file.
        query: As in the file.
        code: Code of the error.
        reason: What is wrong, and where.
    """

    subscriber: str
    query_id: str
    query: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Generation:
    """A state of the subscriptions that messages can be matched with.

    Attributes:
        snapshot_version: Version of the snapshot.
        digest: Digest of the table of subscriptions.
        snapshot: File of the snapshot.
        table: Parquet file of the subscriptions, schema `TABLE_SCHEMA`.
        limits: What a message and its results may cost; a replay has those of the first run.
        queries: Number of queries.
        subscriptions: Number of pairs of subscriber and query.
        rejected: What was not taken up.
    """

    snapshot_version: str
    digest: str
    snapshot: Path
    table: Path
    limits: Limits
    queries: int = 0
    subscriptions: int = 0
    rejected: Sequence[RejectedSubscription] = field(default=(), repr=False)


class SubscriptionBook:
    """The subscriptions of a pipeline, taken up anew when their file changes.

    Args:
        path: The file.
        store: Directory of snapshots.
        engine: Which engine compiles the queries.
        namespaces: Prefixes for all queries.
        limits: What a message may cost.
    """

    def __init__(
        self,
        path: Path,
        store: Path,
        *,
        engine: EngineName | None = None,
        namespaces: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._path = path
        self._store = store
        self._engine = engine
        self._namespaces = dict(namespaces or {})
        self._limits = limits or Limits()
        self._signature: tuple[int, int, int] | None = None
        self._current: Generation | None = None
        self._index: QueryIndex | None = None
        # Query id -> text, for what is registered in the index.
        self._registered: dict[str, str] = {}

    def current(self) -> Generation:
        """The generation of the file as it is now.

        Raises:
            ConfigError: The file cannot be read, or is no table of subscriptions.

        Cost:
            A `stat` when nothing changed; else the file is read, the queries that came or changed
            are registered, and the others merged with them.
        """
        signature = self._stat()
        if self._current is None or signature != self._signature:
            self._current = self._build()
            # Only now: a file that could not be read is looked at again, not taken for known.
            self._signature = signature
        return self._current

    def pinned(self, snapshot_version: str, digest: str) -> Generation:
        """An earlier generation, from its files."""
        current = self._current
        if current and (current.snapshot_version, current.digest) == (snapshot_version, digest):
            return current
        snapshot, table = self._files(snapshot_version, digest)
        # The engine may be another one now, and engines count versions each in its own way.
        opened = Snapshot.open(snapshot, engine=self._engine)
        return Generation(opened.version, digest, snapshot, table, opened.limits)

    def _stat(self) -> tuple[int, int, int]:
        try:
            status = self._path.stat()
        except OSError as error:
            raise unusable_subscriptions(self._path, error.strerror or str(error)) from error
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _files(self, version: str, digest: str) -> tuple[Path, Path]:
        return self._store / f"{version}.snapshot", self._store / f"{digest}.subscriptions.parquet"

    def _build(self) -> Generation:
        rows, rejected = read_subscriptions(self._path)
        texts: dict[str, str] = {}
        for _, query_id, text in rows:
            texts.setdefault(query_id, text)
        index, refused = self._index_of(texts)
        accepted: set[tuple[str, str]] = set()
        for subscriber, query_id, text in rows:
            error = refused.get(query_id)
            if error is None and texts[query_id] != text:
                error = DuplicateQueryError("query.duplicate", id=query_id)
            if error is None:
                accepted.add((subscriber, query_id))
            else:
                rejected.append(_rejected(subscriber, query_id, text, error))
        return self._save(index.freeze(), sorted(accepted), rejected)

    def _index_of(self, texts: Mapping[str, str]) -> tuple[QueryIndex, Mapping[str, PathcastError]]:
        """An index of exactly these queries, and those that it refuses.

        It is the one of the state before, with what has changed: a query that is split for the
        exact evaluator takes up to a millisecond to compile, and most do not change.
        """
        index, registered = self._index, self._registered
        if index is None:
            index = QueryIndex(
                engine=self._engine, limits=self._limits, namespaces=self._namespaces
            )
            registered = {}
        # Whoever is interrupted from here on leaves an index that nobody knows the state of.
        self._index = None
        gone = [query_id for query_id, text in registered.items() if texts.get(query_id) != text]
        if gone:
            index.remove(gone)
            index.compact()
        new = [Query(query_id, text) for query_id, text in texts.items() if query_id not in index]
        refused = index.register(new).rejected
        self._registered = {
            query_id: text for query_id, text in texts.items() if query_id not in refused
        }
        self._index = index
        return index, refused

    def _save(
        self,
        snapshot: Snapshot,
        accepted: Sequence[tuple[str, str]],
        rejected: Sequence[RejectedSubscription],
    ) -> Generation:
        snapshot_file = self._store / f"{snapshot.version}.snapshot"
        self._store.mkdir(parents=True, exist_ok=True)
        if snapshot_file.exists():
            # Never replaced: readers may have it mapped. Equal sets of queries have equal
            # versions and may be numbered differently; what counts is how the file numbers them.
            snapshot = Snapshot.open(snapshot_file, engine=self._engine)
        else:
            temporary = snapshot_file.with_name(f".{snapshot_file.name}.{os.getpid()}")
            snapshot.save(temporary)
            temporary.replace(snapshot_file)
            sync_directory(self._store)
        numbers = {query_id: number for number, query_id in enumerate(snapshot.query_ids)}
        table = pa.table(
            [
                [subscriber for subscriber, _ in accepted],
                [query_id for _, query_id in accepted],
                [numbers[query_id] for _, query_id in accepted],
            ],
            schema=TABLE_SCHEMA,
        )
        digest = _digest(accepted, snapshot.version)
        _, table_file = self._files(snapshot.version, digest)
        if not table_file.exists():
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd")
            write_atomically(table_file, sink.getvalue().to_pybytes())
        return Generation(
            snapshot_version=snapshot.version,
            digest=digest,
            snapshot=snapshot_file,
            table=table_file,
            limits=snapshot.limits,
            queries=len(snapshot),
            subscriptions=len(accepted),
            rejected=tuple(rejected),
        )


def too_few(earlier: int, found: Generation, shrink_max: float) -> str | None:
    """Why a state of the subscriptions is not believed: more of them have gone than may at once.

    Args:
        earlier: Number of subscriptions before.
        found: The state that was found.
        shrink_max: Share that may go.
    """
    if found.subscriptions >= earlier * (1 - shrink_max):
        return None
    rejected = f" and {len(found.rejected):,} that were rejected" if found.rejected else ""
    return (
        f"there are {found.subscriptions:,}{rejected}, and were {earlier:,}: more than "
        f"{shrink_max:.0%} have gone; if that is meant, run with subscriptions.shrink_max=1"
    )


def read_subscriptions(
    path: Path,
) -> tuple[list[tuple[str, str, str]], list[RejectedSubscription]]:
    """The rows of a file of subscriptions, and the lines that are none.

    Raises:
        ConfigError: The file cannot be read or lacks a column.
    """
    table = read_table(path)
    malformed = table.malformed
    rows: list[tuple[str, str, str]] = []
    for subscriber, query_id, text in zip(*(table.columns[name] for name in COLUMNS), strict=True):
        if subscriber and query_id and text:
            rows.append((subscriber, query_id, text))
        else:
            malformed.append(malformed_subscription(subscriber, query_id, text))
    return rows, malformed


class SubscriptionTable(NamedTuple):
    """A file of subscriptions as it was read.

    Attributes:
        columns: `COLUMNS` and, where the file has it, `DELIVER`; all of one length.
        malformed: The lines that are no rows.
    """

    columns: Mapping[str, Sequence[str | None]]
    malformed: list[RejectedSubscription]


def read_table(path: Path) -> SubscriptionTable:
    """A file of subscriptions.

    Raises:
        ConfigError: The file cannot be read or lacks a column.
    """
    try:
        return _read_parquet(path) if path.suffix == ".parquet" else _read_text(path)
    except ConfigError as error:
        raise unusable_subscriptions(path, str(error.params["reason"])) from error
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise unusable_subscriptions(path, reason) from error


def _read_parquet(path: Path) -> SubscriptionTable:
    # Opened here: pyarrow would take a directory for a data set of many files.
    with path.open("rb") as handle:
        file = pq.ParquetFile(handle)
        names = _columns_of(path, file.schema_arrow.names)
        table = file.read(names)
        # Converted here, where a text that is no UTF-8 is an error of the file.
        columns = {name: table.column(name).cast(pa.string()).to_pylist() for name in names}
    return SubscriptionTable(columns, [])


def _read_text(path: Path) -> SubscriptionTable:
    found = records(read_text(path), "," if path.suffix == ".csv" else "\t")
    header = next(found, None)
    if header is None:
        raise unusable_subscriptions(path, "it is empty; the first line names the columns")
    names = _columns_of(path, header.fields)
    places = [header.fields.index(name) for name in names]
    rows: list[list[str]] = []
    malformed: list[RejectedSubscription] = []
    for record in found:
        fault = record.fault
        if fault is None and len(record.fields) != len(header.fields):
            fault = f"{len(record.fields)} columns, {len(header.fields)} expected"
        if fault is None:
            rows.append([record.fields[place] for place in places])
        else:
            malformed.append(_malformed("", "", record.text, f"line {record.line}: {fault}"))
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return SubscriptionTable(dict(zip(names, columns, strict=True)), malformed)


def _columns_of(path: Path, found: Sequence[str]) -> list[str]:
    """The columns to be read, of those that a file has.

    Raises:
        ConfigError: One is missing, or there twice.
    """
    wanted = [*COLUMNS, *([DELIVER] if DELIVER in found else [])]
    problems = {
        "no column": [name for name in wanted if name not in found],
        "more than one column": [name for name in wanted if found.count(name) > 1],
    }
    for problem, names in problems.items():
        if names:
            raise unusable_subscriptions(
                path,
                f"{problem} {', '.join(names)}; it needs the columns {', '.join(COLUMNS)}, and has "
                f"{', '.join(found)}",
            )
    return wanted


def rejected_table(rejected: Sequence[RejectedSubscription], snapshot_version: str) -> pa.Table:
    """Rejected subscriptions as rows, with the version that they are missing from."""
    names = RejectedSubscription.__slots__
    columns = {name: pa.array([getattr(r, name) for r in rejected], pa.string()) for name in names}
    columns["snapshot_version"] = pa.array([snapshot_version] * len(rejected), pa.string())
    return pa.table(columns)


def _digest(accepted: Sequence[tuple[str, str]], version: str) -> str:
    digest = hashlib.sha256(version.encode())
    for subscriber, query_id in accepted:
        digest.update(f"{len(subscriber)}:{subscriber}{len(query_id)}:{query_id}".encode())
    return digest.hexdigest()[:32]


def _rejected(
    subscriber: str, query_id: str, text: str, error: PathcastError
) -> RejectedSubscription:
    return RejectedSubscription(subscriber, query_id, text, error.code, str(error))


def malformed_subscription(
    subscriber: str | None, query_id: str | None, text: str | None
) -> RejectedSubscription:
    """A row that lacks something."""
    return _malformed(subscriber, query_id, text, "subscriber, query_id or query is empty")


def _malformed(
    subscriber: str | None, query_id: str | None, text: str | None, reason: str
) -> RejectedSubscription:
    error = ConfigError("config.invalid", key="subscription", reason=reason)
    return _rejected(subscriber or "", query_id or "", text or "", error)


def unusable_subscriptions(path: Path, reason: str) -> ConfigError:
    """The error of subscriptions that cannot be read."""
    return ConfigError("config.invalid", key="subscriptions.path", reason=f"{path}: {reason}")

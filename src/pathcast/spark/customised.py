"""Subscriptions of a pipeline that delivers results: `.xq` files, folders of them, or a table.

A table has the columns of `subscriptions` (subscriber, query_id, query), and may have `deliver`.
Here a query id names one subscription: it belongs to one subscriber and occurs once.

Each state of the files gives a generation: one snapshot file in `_snapshots`, named by its version,
which stays there as long as output refers to it. A micro-batch is pinned to one generation.

It delivers nothing and knows nothing of Spark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pathcast.customize import Broker, SubscriptionSnapshot
from pathcast.customize.subscription_files import SUFFIX, files_of
from pathcast.customize.subscription_files import read_subscriptions as read_files
from pathcast.errors import DuplicateQueryError, PathcastError
from pathcast.limits import Limits
from pathcast.model import EngineName, Subscription
from pathcast.spark.ledger import sync_directory
from pathcast.spark.subscriptions import (
    COLUMNS,
    DELIVER,
    Generation,
    RejectedSubscription,
    malformed_subscription,
    read_table,
    unusable_subscriptions,
)

Signature = tuple[tuple[str, int, int, int], ...]
"""Name, time, size and inode of every file."""


def is_customised(path: Path) -> bool:
    """Whether subscriptions at a path ask for results: `.xq` files, or a table that says so.

    Raises:
        ConfigError: The file cannot be read.
    """
    if path.is_dir() or path.suffix == SUFFIX:
        return True
    return DELIVER in read_table(path).columns


class CustomisedBook:
    """The subscriptions of a pipeline, taken up anew when their files change.

    Args:
        path: A `.xq` file, a folder of them, or a table.
        store: Directory of snapshots.
        engine: Which engine compiles the queries.
        namespaces: Prefixes for all queries.
        limits: What a message and its results may cost.
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
        self._signature: Signature | None = None
        self._current: Generation | None = None
        self._broker: Broker | None = None
        # Subscription id -> subscription, for what the broker has.
        self._held: dict[str, Subscription] = {}

    def current(self) -> Generation:
        """The generation of the files as they are now.

        Raises:
            ConfigError: They cannot be read, or are no table of subscriptions.

        Cost:
            A `stat` a file when nothing changed; else the files are read, what came or changed is
            subscribed, and all of it written to a new snapshot.
        """
        signature = self._stat()
        if self._current is None or signature != self._signature:
            self._current = self._build()
            # Only now: a file that could not be read is looked at again, not taken for known.
            self._signature = signature
        return self._current

    def pinned(self, snapshot_version: str, digest: str) -> Generation:
        """An earlier generation, from its file."""
        current = self._current
        if current and current.snapshot_version == snapshot_version:
            return current
        file = self._file(snapshot_version)
        limits = SubscriptionSnapshot.open(file, engine=self._engine).limits
        return Generation(snapshot_version, digest, file, file, limits)

    def _stat(self) -> Signature:
        try:
            files = files_of(self._path) if self._path.is_dir() else iter((self._path,))
            found = []
            for file in files:
                status = file.stat()
                found.append((str(file), status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError as error:
            raise unusable_subscriptions(self._path, error.strerror or str(error)) from error
        return tuple(found)

    def _file(self, version: str) -> Path:
        return self._store / f"{version}.subscriptions"

    def _build(self) -> Generation:
        rows, rejected = read_customised(self._path)
        wanted: dict[str, Subscription] = {}
        for row in rows:
            if row.id in wanted:
                error = DuplicateQueryError("query.duplicate", id=row.id)
                rejected.append(_rejected(row, error))
            else:
                wanted[row.id] = row
        broker, refused = self._broker_of(wanted)
        rejected += [_rejected(wanted[name], error) for name, error in refused.items()]
        file = self._save(broker)
        return Generation(
            snapshot_version=broker.version,
            digest=broker.version,
            snapshot=file,
            table=file,
            limits=self._limits,
            queries=len({row.query for row in wanted.values() if row.id not in refused}),
            subscriptions=len(broker),
            rejected=tuple(rejected),
        )

    def _broker_of(
        self, wanted: Mapping[str, Subscription]
    ) -> tuple[Broker, Mapping[str, PathcastError]]:
        """A broker of exactly these subscriptions, and those that it refuses.

        It is the one of the state before, with what has changed.
        """
        broker, held = self._broker, self._held
        if broker is None:
            broker = Broker(self._engine, self._limits, self._namespaces, threads=1)
            held = {}
        # Whoever is interrupted from here on leaves a broker that nobody knows the state of.
        self._broker = None
        broker.unsubscribe([name for name, row in held.items() if wanted.get(name) != row])
        new = [row for name, row in wanted.items() if name not in broker]
        refused = broker.subscribe(new).rejected
        self._held = {name: row for name, row in wanted.items() if name not in refused}
        self._broker = broker
        return broker, refused

    def _save(self, broker: Broker) -> Path:
        file = self._file(broker.version)
        self._store.mkdir(parents=True, exist_ok=True)
        # Never replaced: equal versions are equal content, and workers may have it mapped.
        if not file.exists():
            temporary = file.with_name(f".{file.name}.{os.getpid()}")
            broker.freeze().save(temporary)
            temporary.replace(file)
            sync_directory(self._store)
        return file


def read_customised(path: Path) -> tuple[list[Subscription], list[RejectedSubscription]]:
    """The subscriptions at a path, and what is none.

    Raises:
        ConfigError: The file cannot be read or lacks a column, or a folder cannot be listed.
    """
    if not path.is_dir() and path.suffix != SUFFIX:
        return _of_table(path)
    try:
        files = read_files(path)
    except OSError as error:
        raise unusable_subscriptions(path, error.strerror or str(error)) from error
    rows: list[Subscription] = []
    rejected: list[RejectedSubscription] = []
    for file in files:
        if file.subscription is not None:
            rows.append(file.subscription)
        elif (fault := file.error) is not None:
            rejected.append(RejectedSubscription("", str(file.path), "", fault.code, str(fault)))
    return rows, rejected


def _of_table(path: Path) -> tuple[list[Subscription], list[RejectedSubscription]]:
    table = read_table(path)
    names = [*COLUMNS, *([DELIVER] if DELIVER in table.columns else [])]
    columns = [table.columns[name] for name in names]
    rejected = table.malformed
    rows: list[Subscription] = []
    for subscriber, query_id, query, *deliver in zip(*columns, strict=True):
        if subscriber and query_id and query:
            mode = (deliver[0] if deliver else None) or "fragment"
            # The broker refuses a mode that does not exist.
            rows.append(Subscription(query_id, subscriber, query, mode))  # type: ignore[arg-type]
        else:
            rejected.append(malformed_subscription(subscriber, query_id, query))
    return rows, rejected


def _rejected(row: Subscription, error: PathcastError) -> RejectedSubscription:
    return RejectedSubscription(row.subscriber, row.id, row.query, error.code, str(error))

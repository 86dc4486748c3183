"""Subscriptions that engines have taken up, as the files of a generation.

    SubscriptionEngines, rows -> takers.arrow, subscriptions.snapshot

It decides nothing.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.registry import Snapshot
from pathcast.registry.identity import SetVersion
from pathcast.registry.subscription_rows import SubscriptionKey
from pathcast.spark.generations import TAKERS, TAKERS_SCHEMA, GenerationFiles
from pathcast.spark.storage import Storage
from pathcast.spark.unwritable import writing


class TakerVersions:
    """The versions of subscriptions, and that of all of them together, while they come and go.

    Args:
        limits: What a message may cost.
        namespaces: Prefixes for all queries; those of a row go over them.
    """

    def __init__(self, limits: Limits, namespaces: Mapping[str, str] | None = None) -> None:
        self._all = SetVersion(limits)
        self._bound = dict(namespaces or {})
        self._known: dict[SubscriptionKey, tuple[Subscription, bytes]] = {}

    def become(self, rows: Mapping[SubscriptionKey, Subscription]) -> None:
        """Takes in what came, changed and has gone.

        Args:
            rows: Subscriber and id of the query -> the subscription; all that there are.

        Cost: 5 µs for each that is new or another; for the others, a look-up.
        """
        known = self._known
        for key in [key for key in known if key not in rows]:
            self._all.remove(self._bound_row(known.pop(key)[0]))
        for key, row in rows.items():
            before = known.get(key)
            if before is not None:
                if before[0] is row or before[0] == row:
                    continue
                self._all.remove(self._bound_row(before[0]))
            known[key] = row, self._all.add(self._bound_row(row))

    @property
    def text(self) -> str:
        """The version of all."""
        return self._all.text

    def table(self) -> pa.Table:
        """Return the takers of all queries, schema `TAKERS_SCHEMA`. Cost: a sort of them."""
        keys = sorted(self._known)
        columns = (
            [subscriber or None for subscriber, _ in keys],
            [name for _, name in keys],
            [self._known[key][1] for key in keys],
        )
        return pa.table(list(columns), schema=TAKERS_SCHEMA)

    def _bound_row(self, row: Subscription) -> Subscription:
        return row._replace(namespaces={**self._bound, **(row.namespaces or {})} or None)


def saved_files(path: Path, folder: Path) -> GenerationFiles:
    """The files of subscriptions that were saved without takers, by `Snapshot`.

    Args:
        path: The saved file.
        folder: Gets the takers: those that a subscription names, nobody for a filter query.

    Raises:
        SnapshotFormatError: It is no snapshot, or is damaged.

    Cost: 10 µs a query.
    """
    opened = Snapshot.open(path)
    rows = {(row.subscriber, row.id): row for row in opened.subscriptions}
    versions = TakerVersions(opened.limits)
    versions.become(rows)
    write_ipc(Storage(folder), TAKERS, versions.table())
    has_notices = any(row.deliver == "ids" for row in rows.values())
    return GenerationFiles(opened.version, folder / TAKERS, path, has_notices)


def save_into(storage: Storage, name: str, save: Callable[[Path], None]) -> None:
    """Lets something write a file, and takes it into the output."""
    with writing(f"{tempfile.gettempdir()} (TMPDIR)"), tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "written"
        save(path)
        storage.write(name, path.read_bytes())


def write_ipc(storage: Storage, name: str, table: pa.Table) -> None:
    """Writes a table as one record batch, which whoever maps it need not copy."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    storage.write(name, sink.getvalue().to_pybytes())


@contextmanager
def collector_paused() -> Iterator[None]:
    """Leaves the garbage collector out: millions of objects are made that stay, in no circle.

    To look through them again and again as they become more is a quarter of the time that it takes
    to make them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

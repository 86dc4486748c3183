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
from typing import TYPE_CHECKING

import pyarrow as pa

from pathcast.model import Subscription
from pathcast.registry import Snapshot
from pathcast.registry.identity import SetVersion
from pathcast.spark.generations import TAKERS, TAKERS_SCHEMA, GenerationFiles
from pathcast.spark.storage import Storage
from pathcast.spark.unwritable import writing

if TYPE_CHECKING:
    pass


def takers_table(
    rows: Mapping[tuple[str, str], Subscription],
    version: SetVersion,
    namespaces: Mapping[str, str] | None,
) -> pa.Table:
    """Return the takers of all queries, schema `TAKERS_SCHEMA`.

    Args:
        rows: Subscriber and id of the query -> the subscription.
        version: Takes each of them.
        namespaces: Prefixes for all queries, those of a row over them.
    """
    ordered = [rows[key] for key in sorted(rows)]
    bound = dict(namespaces or {})
    every = [{**bound, **(row.namespaces or {})} or None for row in ordered]
    versions = [
        version.add(row._replace(namespaces=own)) for row, own in zip(ordered, every, strict=True)
    ]
    return pa.table(
        [[row.subscriber or None for row in ordered], [row.id for row in ordered], versions],
        schema=TAKERS_SCHEMA,
    )


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
    write_ipc(Storage(folder), TAKERS, takers_table(rows, SetVersion(opened.limits), None))
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

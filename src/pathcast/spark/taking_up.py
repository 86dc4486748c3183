"""Subscriptions that engines have taken up, as files: a whole generation, or a section of one.

    SubscriptionEngines, rows -> takers.arrow, notices.snapshot, results.subscriptions,
                                 queries.arrow (where they are to be cut)

It compiles nothing and decides nothing.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pathcast.model import Subscription
from pathcast.registry.identity import SetVersion
from pathcast.registry.subscription_columns import (
    NAMESPACES,
    language_column,
    namespace_column,
    step_column,
)
from pathcast.registry.subscription_rows import LANGUAGE, STEP_LISTS, STEPS
from pathcast.spark.generations import (
    NOTICES,
    QUERIES,
    RESULTS,
    TAKERS_SCHEMA,
    PartFiles,
    ids_of,
)
from pathcast.spark.unwritable import writing

if TYPE_CHECKING:
    from pathcast.engine import Snapshot
    from pathcast.registry import Registry
    from pathcast.registry.subscription_engines import SubscriptionEngines
    from pathcast.spark.storage import Storage

QUERIES_SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("deliver", pa.string(), nullable=False),
        pa.field("number", pa.uint32()),
        pa.field("namespaces", NAMESPACES),
        pa.field(STEPS, STEP_LISTS),
        pa.field(LANGUAGE, pa.string()),
    ]
)
"""Distinct queries; the number in the snapshot, null for those whose results are delivered."""


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
        [[row.subscriber for row in ordered], [row.id for row in ordered], versions],
        schema=TAKERS_SCHEMA,
    )


def write_engines(storage: Storage, folder: str, engines: SubscriptionEngines) -> PartFiles:
    """Writes what engines hold."""
    index, registry = engines.index, engines.registry
    size = write_snapshots(
        storage,
        folder,
        index.freeze() if len(index) else None,
        registry if len(registry) else None,
    )
    return PartFiles(len(engines.queries), len(index) > 0, len(registry) > 0, size)


def write_snapshots(
    storage: Storage, folder: str, notices: Snapshot | None, results: Registry | None
) -> int:
    """Writes filter queries, and subscriptions whose results are delivered; the size of it."""
    size = 0
    if notices is not None:
        size += save_into(storage, folder, lambda at: notices.save(at / NOTICES), (NOTICES,))
    if results is not None:
        frozen = results.freeze()
        size += save_into(storage, folder, lambda at: frozen.save(at / RESULTS), (RESULTS,))
    return size


def write_queries(storage: Storage, folder: str, engines: SubscriptionEngines) -> None:
    """Writes the texts of what engines hold, filter queries by their numbers first."""
    rows = engines.queries
    notices: Sequence[str] = ids_of(engines.index.freeze()).to_pylist()
    results = [name for name in rows if name in engines.registry]
    ids = [*notices, *results]
    columns = [
        ids,
        [rows[name].query for name in ids],
        [rows[name].deliver for name in ids],
        [*range(len(notices)), *(None for _ in results)],
        namespace_column([rows[name] for name in ids]),
        step_column([rows[name] for name in ids]),
        language_column([rows[name] for name in ids]),
    ]
    write_ipc(storage, f"{folder}/{QUERIES}", pa.table(columns, schema=QUERIES_SCHEMA))


def read_queries(path: Path) -> pa.Table:
    """The texts of queries, mapped; none for steps and language in a generation from before."""
    table = read_ipc(path)
    for name in (STEPS, LANGUAGE):
        if name not in table.column_names:
            field = QUERIES_SCHEMA.field(name)
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table


def subscriptions_in(table: pa.Table) -> Iterator[Subscription]:
    """Queries of `QUERIES_SCHEMA` as subscriptions of nobody."""
    names = ("id", "query", "deliver", "namespaces", STEPS, LANGUAGE)
    columns = [table.column(name).to_pylist() for name in names]
    for name, text, mode, own, steps, language in zip(*columns, strict=True):
        namespaces = dict(own) if own else None
        yield Subscription(name, "", text, mode, namespaces, tuple(steps or ()), language)


def save_into(
    storage: Storage, folder: str, save: Callable[[Path], None], names: Sequence[str]
) -> int:
    """Lets something write files, and takes them into the output; their size."""
    size = 0
    with writing(f"{tempfile.gettempdir()} (TMPDIR)"), tempfile.TemporaryDirectory() as temporary:
        save(Path(temporary))
        for name in names:
            content = (Path(temporary) / name).read_bytes()
            storage.write(f"{folder}/{name}", content)
            size += len(content)
    return size


def write_ipc(storage: Storage, name: str, table: pa.Table) -> int:
    """Writes a table as one record batch, which whoever maps it need not copy; its size."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    content = sink.getvalue()
    storage.write(name, content.to_pybytes())
    return int(content.size)


def read_ipc(path: Path) -> pa.Table:
    """A table that was written so, mapped."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


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

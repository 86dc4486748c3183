"""The output of a pipeline, and how it is read.

    inboxes/*, matches/*, dead_letters/*   files of rows; those count that a commit names
    rejected_queries/*                     subscriptions that were not taken up, and why
    _snapshots/VERSION/*                   the subscriptions that rows with this version come from
    _commits/N.json                        micro-batch N: its files and counters
    _compactions/K.json                    which files stand for earlier ones

Example:
    >>> for batch in read_output("delivered", "inboxes", subscriber="ann"):  # doctest: +SKIP
    ...     print(batch.to_pylist())

An output at a URL that needs options is given as a `Storage`, which holds them.

Reading needs no Spark. With Spark: `spark.read.parquet(*files_of(output, "inboxes"))`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.errors import invalid_setting
from pathcast.spark import schemas
from pathcast.spark.delta import DeltaTables
from pathcast.spark.json_lines import of_json_rows
from pathcast.spark.ledger import (
    Commit,
    committed_batches,
    last_compaction,
    live_files,
)
from pathcast.spark.schemas import FragmentForm, MatchesForm, OutputName
from pathcast.spark.storage import Storage, as_storage
from pathcast.spark.writing import FileFormat, WrittenFile

if TYPE_CHECKING:
    from pathcast.registry.subscription_rows import RejectedSubscription

LAYOUT: Final = "_pathcast.json"
LAYOUT_VERSION: Final = 3

ROWS_AT_ONCE: Final = 1024
"""Of a file of an output, where its rows are published: fragments are of up to megabytes."""

KEPT: Final = "its row is not valid, the last valid version stays in force"
"""What is told of a subscription that is answered in place of a rejected row."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The properties of an output that stay the same while it grows.

    Attributes:
        format: Format of the files.
        matches: Whether, and how, matches are written.
        inboxes: Whether inboxes are written.
        fragments: How results are written.
        by_day: Whether rows lie in a folder, or a partition, for each day.
        version: Version of the layout itself.
    """

    format: FileFormat
    matches: MatchesForm
    inboxes: bool
    fragments: FragmentForm = "text"
    by_day: bool = False
    version: int = LAYOUT_VERSION

    def writes(self, name: OutputName) -> bool:
        """Whether an output is written."""
        if name == "matches":
            return self.matches != "none"
        return self.inboxes if name == "inboxes" else True

    def schema(self, name: OutputName) -> pa.Schema:
        """Columns of an output, those that are passed through aside."""
        if name == "inboxes":
            return schemas.inboxes(self.fragments)
        return schemas.matches(self.matches) if name == "matches" else schemas.DEAD_LETTERS


def claim(output: Storage, layout: Layout) -> None:
    """Make an output ready for a run.

    Raises:
        ConfigError: It holds output of another layout.
    """
    found = output.find_as(LAYOUT, Layout)
    if found is None:
        output.write_json(LAYOUT, layout)
    elif found != layout:
        raise invalid_setting(
            "output",
            f"{output} was written with {_told(found)}, not {_told(layout)}; choose "
            "a new directory",
        )


def layout_of(output: str | os.PathLike[str] | Storage) -> Layout:
    """The layout of an output.

    Raises:
        ConfigError: The place is not the output of a pipeline, or of an older one.
    """
    found = as_storage(output).find_as(LAYOUT, Layout)
    if found is None:
        reason = f"{output} is not the output of a pipeline"
        raise invalid_setting("output", reason)
    if found.version != LAYOUT_VERSION:
        reason = (
            f"{output} was written by another version of Pathcast, with {_told(found)}; read it "
            "with that version"
        )
        raise invalid_setting("output", reason)
    return found


def files_of(
    output: str | os.PathLike[str] | Storage, name: OutputName, *, subscriber: str | None = None
) -> list[str]:
    """Paths or URLs of the files of an output that count.

    Args:
        output: Output of a pipeline, which may be running.
        name: "inboxes", "matches" or "dead_letters".
        subscriber: Only files that may have rows of this subscriber.

    Raises:
        ConfigError: There is no such output.
    """
    storage = as_storage(output)
    layout = layout_of(storage)
    _check_written(layout, name)
    if layout.format == "delta":
        return DeltaTables(storage, layout).file_urls(name)
    return [storage.url(file.name) for file in _live(storage, name, subscriber)]


def read_output(
    output: str | os.PathLike[str] | Storage, name: OutputName, *, subscriber: str | None = None
) -> pa.Table:
    """An output as its readers should see it: the micro-batches that are complete, each once.

    Args:
        output: Output of a pipeline, which may be running.
        name: "inboxes", "matches" or "dead_letters".
        subscriber: Only the rows of this subscriber; for inboxes and dead letters.

    Raises:
        ConfigError: There is no such output.

    Cost:
        For one subscriber of inboxes in Parquet, the row groups that may hold rows of it: its name
        lies between their bounds.
    """
    storage = as_storage(output)
    layout = layout_of(storage)
    _check_written(layout, name)
    if layout.format == "delta":
        return DeltaTables(storage, layout).read(name, subscriber=subscriber)
    return _joined(storage, layout, name, _live(storage, name, subscriber), subscriber)


def rows_of(
    output: Storage, layout: Layout, commit: Commit, name: OutputName, subscriber: str
) -> pa.Table:
    """Rows of one micro-batch for one subscriber, in the order in which they were written.

    The files are those that the commit names: they are there until they have been compacted.
    """
    return _joined(output, layout, name, commit.files.get(name, ()), subscriber)


def batches_of(
    output: Storage, layout: Layout, name: OutputName, file: str
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of one file of an output, `ROWS_AT_ONCE` at most at a time."""
    with output.open(file) as handle:
        if layout.format != "jsonl":
            with pq.ParquetFile(handle) as opened:
                yield from opened.iter_batches(ROWS_AT_ONCE)
            return
        for lines in iter(lambda: list(islice(handle, ROWS_AT_ONCE)), []):
            rows = of_json_rows([json.loads(line) for line in lines], layout.schema(name))
            yield from rows.combine_chunks().to_batches()


def inbox(output: str | os.PathLike[str] | Storage, subscriber: str) -> pa.Table:
    """Return the deliveries to one subscriber; files and row groups of others are not read."""
    return read_output(output, "inboxes", subscriber=subscriber)


def follow(
    output: str | os.PathLike[str] | Storage,
    name: OutputName,
    *,
    subscriber: str | None = None,
    after: int | None = None,
    poll_seconds: float = 0.5,
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows that are there, then those that come, until the caller stops.

    Args:
        output: Output of a pipeline.
        name: As for `read_output`.
        subscriber: Likewise.
        after: Number of the last micro-batch that was seen; None for all there are.
        poll_seconds: How often to look.

    Yields:
        The number of a micro-batch, to be remembered, and its rows; nothing where it has none.
    """
    storage = as_storage(output)
    layout = layout_of(storage)
    seen = -1 if after is None else after
    while True:
        found, seen = _since(storage, layout, name, subscriber, seen)
        yield from found
        time.sleep(poll_seconds)


def since(
    output: str | os.PathLike[str] | Storage,
    name: OutputName,
    *,
    subscriber: str | None = None,
    after: int | None = None,
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows that are there, micro-batch by micro-batch."""
    storage = as_storage(output)
    seen = -1 if after is None else after
    yield from _since(storage, layout_of(storage), name, subscriber, seen)[0]


def _since(
    storage: Storage, layout: Layout, name: OutputName, subscriber: str | None, seen: int
) -> tuple[Iterator[tuple[int, pa.Table]], int]:
    """The micro-batches after one, and the last of them."""
    new = [batch_id for batch_id in committed_batches(storage) if batch_id > seen]
    return _batches(storage, layout, name, subscriber, new), new[-1] if new else seen


def _batches(
    storage: Storage,
    layout: Layout,
    name: OutputName,
    subscriber: str | None,
    batches: Sequence[int],
) -> Iterator[tuple[int, pa.Table]]:
    _check_written(layout, name)
    if layout.format == "delta":
        if batches:
            rows = DeltaTables(storage, layout).read(name, subscriber=subscriber, batches=batches)
            for batch_id in batches:
                yield from _of_batch(rows, batch_id)
        return
    compaction = last_compaction(storage) if batches else None
    through = -1 if compaction is None else compaction.through
    if compaction is not None and batches[0] <= through:
        # The files of these micro-batches are others now; their rows say where they belong.
        files = compaction.files.get(name, ())
        rows = _joined(storage, layout, name, files, subscriber)
        for batch_id in batches:
            if batch_id <= through:
                yield from _of_batch(rows, batch_id)
    for batch_id in batches:
        if batch_id > through:
            commit = Commit.read(storage, batch_id)
            files = commit.files.get(name, ())
            yield from _of_batch(_joined(storage, layout, name, files, subscriber), batch_id)


def _of_batch(rows: pa.Table, batch_id: int) -> Iterator[tuple[int, pa.Table]]:
    found = rows.filter(pc.equal(rows.column("batch_id"), batch_id))
    if len(found):
        yield batch_id, found


def write_rejected(
    output: Storage, layout: Layout, rejected: Sequence[RejectedSubscription], version: str
) -> str | None:
    """Write the subscriptions that were rejected; where, or None when there are none.

    The file of a version says what was rejected the last time that it was taken up.
    """
    name = _rejected_name(layout, version)
    if not rejected:
        output.delete([name])
        return None
    rows = [
        {
            "subscriber": each.row.subscriber,
            "query_id": each.row.id,
            "query": each.row.query,
            "code": each.code,
            "reason": each.reason,
            "place": str(each.place),
            "in_force": each.in_force and each.in_force.query,
            "snapshot_version": version,
        }
        for each in rejected
    ]
    if layout.format == "jsonl":
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        output.write(name, "".join(lines).encode())
    else:
        sink = pa.BufferOutputStream()
        schema = pa.schema([(column, pa.string()) for column in rows[0]])
        pq.write_table(pa.Table.from_pylist(rows, schema), sink, compression="zstd")
        output.write(name, sink.getvalue().to_pybytes())
    return output.url(name)


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row of `rejected_queries`.

    Attributes:
        query_id: Id of the query; empty where the row does not say it.
        query: Its text, or the row.
        reason: What is wrong.
        place: Where it stands.
        in_force: The text that is answered in its place, the last valid one; None for none.
    """

    query_id: str
    query: str
    reason: str
    place: str
    in_force: str | None

    @property
    def told(self) -> str:
        """Place and reason on one line."""
        return f"{self.place}: {self.reason.partition(chr(10))[0]}"


def rejected_of(
    output: Storage, layout: Layout, version: str, subscriber: str
) -> list[RejectedRow]:
    """Returns the rows of a subscriber that were rejected when a generation was taken up."""
    try:
        content = output.read(_rejected_name(layout, version))
    except FileNotFoundError:
        return []
    if layout.format == "jsonl":
        rows = [json.loads(line) for line in content.splitlines()]
    else:
        rows = pq.read_table(pa.BufferReader(content)).to_pylist()
    return [
        RejectedRow(row["query_id"], row["query"], row["reason"], row["place"], row.get("in_force"))
        for row in rows
        if row["subscriber"] == subscriber
    ]


def kept_of(output: str | os.PathLike[str] | Storage, subscriber: str) -> list[RejectedRow]:
    """Returns the rows of a subscriber whose last valid versions are in force in their place.

    They are those of the last micro-batch that is complete.
    """
    storage = as_storage(output)
    layout = layout_of(storage)
    batches = committed_batches(storage)
    if not batches:
        return []
    last = Commit.read(storage, batches[-1])
    rows = rejected_of(storage, layout, last.snapshot_version, subscriber)
    return [row for row in rows if row.in_force is not None]


def _rejected_name(layout: Layout, version: str) -> str:
    # Beside Delta tables, too, they are a file: nobody follows them.
    suffix = "jsonl" if layout.format == "jsonl" else "parquet"
    return f"rejected_queries/{version}.{suffix}"


def _live(storage: Storage, name: OutputName, subscriber: str | None) -> list[WrittenFile]:
    return [file for file in live_files(storage, name) if _may_hold(file, subscriber)]


def _check_written(layout: Layout, name: OutputName) -> None:
    if not layout.writes(name):
        reason = f"this pipeline writes no {name}"
        raise invalid_setting("output", reason)


def _may_hold(file: WrittenFile, subscriber: str | None) -> bool:
    if subscriber is None or file.first is None or file.last is None:
        return True
    return file.first <= subscriber <= file.last


def _joined(
    storage: Storage,
    layout: Layout,
    name: OutputName,
    files: Sequence[WrittenFile],
    subscriber: str | None,
) -> pa.Table:
    tables = [t for t in _tables(storage, layout, name, files, subscriber) if len(t)]
    if not tables:
        return layout.schema(name).empty_table()
    return pa.concat_tables(tables, promote_options="permissive")


def _tables(
    storage: Storage,
    layout: Layout,
    name: OutputName,
    files: Sequence[WrittenFile],
    subscriber: str | None,
) -> Iterator[pa.Table]:
    for file in files:
        if not _may_hold(file, subscriber):
            continue
        with storage.open(file.name) as handle:
            if layout.format == "jsonl":
                read = map(json.loads, handle)
                rows = [row for row in read if subscriber in (None, row.get("subscriber"))]
                if rows:
                    yield of_json_rows(rows, layout.schema(name))
            else:
                yield _parquet_rows(handle, subscriber)


def _parquet_rows(handle: Any, subscriber: str | None) -> pa.Table:
    if subscriber is None:
        return pq.read_table(handle)
    # A result that thousands share stands in a row group once: it is not to be held for each.
    rows = pq.read_table(
        handle, filters=pc.field("subscriber") == subscriber, read_dictionary=["fragment"]
    )
    names = rows.column_names
    if "fragment" not in names:
        return rows
    column = rows.column("fragment")
    return rows.set_column(names.index("fragment"), "fragment", column.cast(column.type.value_type))


def _told(layout: Layout) -> str:
    return ", ".join(f"{key} {value!r}" for key, value in asdict(layout).items())

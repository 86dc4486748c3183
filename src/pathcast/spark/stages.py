"""The stage for sessions, sources and sinks of your own: from DataFrame to DataFrames.

    messages -> deliver_messages -> deliveries, dead letters

Example:
    >>> found = deliver_messages(frame, "queries.snapshot", "body", "key")  # doctest: +SKIP
    >>> with found:                                   # computed once for both # doctest: +SKIP
    ...     found.deliveries.write.parquet("deliveries")
    ...     found.dead_letters.write.parquet("dead_letters")

A delivery becomes a row of the JVM here, which costs many times what it costs to make it; in a
pipeline the tasks write what they have made. The stage reads and writes nothing itself.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkFiles, StorageLevel
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BinaryType, StringType

from pathcast.errors import ConfigError, SnapshotFormatError
from pathcast.kernel.delivery_ids import delivery_ids
from pathcast.limits import MIB, Limits
from pathcast.spark import schemas
from pathcast.spark.answering import NO_FRAGMENT, Answerer, MicroBatchAnswer
from pathcast.spark.generations import open_saved
from pathcast.spark.shipping import follow_switch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pathcast.spark.generations import TakerTable

FRAGMENT_BYTES_MAX: Final = 16 * MIB
"""Bytes of results in one batch of output; a single larger one goes alone."""

ROWS_MAX: Final = 100_000
"""Deliveries in one batch of output."""

GENERATIONS_OPEN_MAX: Final = 2

_INBOXES: Final = schemas.inboxes("binary", has_times=False)

DELIVERIES: Final = _INBOXES.remove(_INBOXES.get_field_index("batch_id"))
"""One row a delivery, its fragment as bytes. `subscriber` is null for a filter query, `fragment`
for a notice."""

DEAD_LETTERS: Final = schemas.LETTERS.append(DELIVERIES.field("snapshot_version"))
"""One row a refused message, and one a pair of message and subscription without an answer."""

_STAGE: Final = pa.schema(
    [
        pa.field(name, pa.binary() if name == "delivery_id" else kind)
        for name, kind in {
            field.name: field.type for field in (*DELIVERIES, *schemas.LETTERS)
        }.items()
        if name != "snapshot_version"
    ]
)
"""What the stage gives: a delivery has a `delivery_id`, a dead letter has a `code`."""


@dataclass(frozen=True, slots=True)
class DeliveredMessages:
    """Deliveries, matches and dead letters of one frame.

    Attributes:
        rows: The stage itself.
        deliveries: What subscribers get, schema `DELIVERIES`.
        dead_letters: What was refused or not decided, schema `DEAD_LETTERS`.
        snapshot_version: The subscriptions that answered.

    Cost:
        `deliveries` and `dead_letters` are two views of one stage. Spark computes the stage for
        each action on either, so whoever needs both writes them inside `with found:`, which keeps
        the rows (not the messages) in memory and, where that is short, on disk.
    """

    rows: DataFrame
    deliveries: DataFrame
    dead_letters: DataFrame
    snapshot_version: str

    def __enter__(self) -> Self:
        self.rows.persist(StorageLevel.MEMORY_AND_DISK)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.rows.unpersist()


def deliver_messages(
    df: DataFrame,
    snapshot_path: str | os.PathLike[str],
    message_col: str = "message",
    id_col: str = "message_id",
    *,
    limits: Limits | None = None,
    threads: int = 1,
    cache_bytes_max: int | None = None,
    ship: bool = False,
) -> DeliveredMessages:
    """Deliver every message of a frame, in one Arrow stage.

    Args:
        df: Any frame, streaming ones included. If it has columns `code` and `reason`, they say why
            a message that is null could not be read (see `schemas.SOURCE`).
        snapshot_path: File that `Snapshot.save` wrote (filter queries: a delivery is a notice, and
            nobody's), or `SubscriptionSnapshot.save`. At a path that the workers see too.
        message_col: The messages as they arrived (binary), or as text (string).
        id_col: Their ids, of any type that Spark casts to string; null for a digest of the bytes.
        limits: Bounds on a message and its results; those of the file when not given.
        threads: Threads of one task.
        cache_bytes_max: Memory of one worker for compiled label paths.
        ship: Send the file to the workers with `addFile` rather than expect it at the path.

    Returns:
        Deliveries and dead letters, not computed yet. Ids of deliveries are the same however often
        they are computed, and wherever.

    Raises:
        ConfigError: A column is missing or is not binary or string.
        SnapshotFormatError: The file is foreign or damaged.

    Cost:
        About 10 µs a message of 4 KB for the way to the worker and back, 0.4 µs a delivery for the
        JVM, and the engine.
    """
    path = Path(snapshot_path).absolute()
    _check_columns(df, message_col, id_col)
    follow_switch(df.sparkSession.sparkContext)
    version = open_saved(path).version
    task = RowTask(
        snapshot=_shipped(df.sparkSession, path, version) if ship else str(path),
        version=version,
        is_shipped=ship,
        limits=limits,
        threads=threads,
        cache_bytes_max=cache_bytes_max,
    )
    inputs: list[Column] = [
        df[id_col].cast("string").alias("message_id"),
        df[message_col].alias("message"),
    ]
    inputs += [df[name] for name in ("code", "reason", "bytes") if _is_source_column(df, name)]
    rows = df.select(*inputs).mapInArrow(task, from_arrow_schema(_STAGE))
    # One value for all rows need not travel with each.
    told = rows.withColumn("snapshot_version", F.lit(version))
    return DeliveredMessages(
        rows=rows,
        deliveries=told.where(F.col("delivery_id").isNotNull()).select(*DELIVERIES.names),
        dead_letters=told.where(F.col("code").isNotNull()).select(*DEAD_LETTERS.names),
        snapshot_version=version,
    )


@dataclass(frozen=True, slots=True)
class RowTask:
    """A function from batches of messages to batches of rows, small enough to be pickled.

    Attributes:
        snapshot: Path of the file or, when shipped, its name among the files of the job.
        version: Version that it must have.
        is_shipped: Whether the file came with `SparkContext.addFile`.
        limits: Bounds on a message and its results.
        threads: Threads in one task. Spark gives a task one core, so one is right as a rule.
        cache_bytes_max: Memory for compiled label paths; None for the engine's default.
    """

    snapshot: str
    version: str
    is_shipped: bool
    limits: Limits | None
    threads: int
    cache_bytes_max: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of batches with columns message_id, message and, if there, code, reason, bytes."""
        answerer = open_task(self)
        for batch in batches:
            for answer in answerer.answer(batch, with_matches=False):
                yield from _delivery_rows(answer, answerer.table)
                for letters in answer.letters:
                    yield from _rows(letters)


@lru_cache(maxsize=GENERATIONS_OPEN_MAX)
def open_task(task: RowTask) -> Answerer:
    """The engine of a task, opened once per worker process.

    Raises:
        SnapshotFormatError: The file is not the version that the task was made for. Rows would
            otherwise carry the name of one snapshot and the answers of another.
    """
    path = Path(SparkFiles.get(task.snapshot) if task.is_shipped else task.snapshot)
    saved = open_saved(path)
    if saved.version != task.version:
        raise SnapshotFormatError(
            "snapshot.damaged",
            path=str(path),
            reason=f"it has version {saved.version}, the job was planned with {task.version}",
        )
    return Answerer(
        saved,
        limits=task.limits,
        threads=task.threads,
        cache_bytes_max=task.cache_bytes_max,
    )


def _delivery_rows(answer: MicroBatchAnswer, table: TakerTable) -> Iterator[pa.RecordBatch]:
    """One row a delivery, in batches whose results are not too long together."""
    lengths = pc.binary_length(answer.values).to_numpy(zero_copy_only=False)
    lengths = np.append(lengths, 0)  # the last one is that of no fragment
    ends = np.cumsum(lengths[answer.fragments], dtype=np.int64)
    start = 0
    while start < len(answer):
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + FRAGMENT_BYTES_MAX, side="right"))
        stop = min(max(stop, start + 1), start + ROWS_MAX)
        yield from _rows(_deliveries(answer, slice(start, stop), table))
        start = stop


def _deliveries(answer: MicroBatchAnswer, part: slice, table: TakerTable) -> pa.Table:
    ranks, places = np.unique(answer.ranks[part], return_inverse=True)
    rows = answer.rows[part]
    numbers = answer.result_numbers[part]
    fragments = answer.fragments[part]
    taken = pa.array(answer.ranks[part])
    chosen = pa.array(fragments, mask=fragments == NO_FRAGMENT)
    ids = delivery_ids(
        table.rows(ranks).versions.to_pylist(),
        pa.array(places.astype(np.uint32)),
        pc.fill_null(answer.message_ids, "").to_pylist(),
        pa.array(rows.astype(np.uint32)),
        pa.array(numbers.astype(np.uint32)),
    )
    return pa.table(
        {
            "subscriber": table.subscribers.take(taken),
            "subscription_id": table.ids.take(taken),
            "message_id": answer.message_ids.take(pa.array(rows)),
            "result_number": pa.array(numbers.astype(np.int32)),
            "fragment": answer.values.take(chosen).cast(pa.binary()),
            "delivery_id": ids.cast(pa.binary()),
        }
    )


def _rows(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows of the stage; columns that are not given are null."""
    names = table.column_names
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in names
        else pa.nulls(len(table), field.type)
        for field in _STAGE
    ]
    yield from pa.table(columns, schema=_STAGE).combine_chunks().to_batches()


def _shipped(spark: SparkSession, path: Path, version: str) -> str:
    """Send a file to all workers, present and future; its name among the files of the job.

    Spark looks at a file that was added for as long as the session lives, and every task fails
    when it has gone or another one of its name is added. So a copy is added that is named after its
    content and lies where Spark clears up at the end.
    """
    name = f"{version}.snapshot"
    copy = Path(SparkFiles.getRootDirectory()) / "pathcast" / name
    if not copy.exists():
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)
        spark.sparkContext.addFile(str(copy))
    return name


def _check_columns(df: DataFrame, message_col: str, id_col: str) -> None:
    for key, name in (("message_col", message_col), ("id_col", id_col)):
        if name not in df.columns:
            raise ConfigError(
                "config.invalid",
                key=key,
                reason=f"no column {name!r} among {', '.join(df.columns)}",
            )
    kind = df.schema[message_col].dataType
    if not isinstance(kind, (BinaryType, StringType)):
        raise ConfigError(
            "config.invalid",
            key="message_col",
            reason=f"column {message_col!r} is {kind.simpleString()}, not binary or string",
        )


def _is_source_column(df: DataFrame, name: str) -> bool:
    wanted = from_arrow_schema(schemas.SOURCE)[name].dataType
    return name in df.columns and df.schema[name].dataType == wanted

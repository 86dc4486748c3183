"""What one Python worker does to one Arrow batch of messages: the body of the delivery stage.

A `DeliveryTask` travels to the workers as a handful of strings and numbers. The snapshot does not
travel with it: each worker process opens the file once and keeps the engine that it has filled, for
all tasks that follow.

Arrow in, Arrow out. This module does not import pyspark, except to ask where a shipped file lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.customize import DeliveryBatch, DeliveryMatcher, SubscriptionSnapshot
from pathcast.errors import SnapshotFormatError, UnreadableMessageError
from pathcast.limits import MIB, Limits
from pathcast.model import EngineName
from pathcast.spark.matching import OPEN_SNAPSHOTS_MAX

DELIVERIES_AT_ONCE = 50_000
"""Deliveries that are made before they are sent on: what a call costs besides is then nothing, and
they are still few megabytes."""

FRAGMENT_BYTES_MAX = 16 * MIB
"""Bytes of results in one batch of output; a single larger one goes alone."""

STAGE_SCHEMA = pa.schema(
    [
        ("message_id", pa.string()),
        ("subscription_id", pa.string()),
        ("subscriber", pa.string()),
        ("delivery_id", pa.string()),
        ("result_number", pa.int32()),
        ("fragment", pa.binary()),
        ("bytes", pa.int64()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("line", pa.int32()),
        ("column", pa.int32()),
        ("offset", pa.int64()),
    ]
)
"""`schemas.DISSEMINATED` as Arrow has it."""


@dataclass(frozen=True, slots=True)
class DeliveryTask:
    """A function from batches of messages to batches of deliveries, small enough to be pickled.

    Attributes:
        snapshot: Path of the snapshot or, when shipped, its name among the files of the job.
        version: Version that the snapshot must have.
        shipped: Whether the file came with `SparkContext.addFile`.
        engine: Which engine answers.
        limits: Bounds on a message and its results.
        threads: Threads in one task. Spark gives a task one core, so one is right as a rule.
        cache_bytes_max: Memory for compiled label paths; None for the engine's default.
    """

    snapshot: str
    version: str
    shipped: bool
    engine: EngineName
    limits: Limits
    threads: int
    cache_bytes_max: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Deliveries of batches with columns message_id, message and, if there, code, reason."""
        matcher = open_matcher(self)
        rows = 64
        for batch in batches:
            start = 0
            while start < len(batch):
                part = batch.slice(start, rows)
                start += len(part)
                found = matcher.process_batch(part.column("message"), part.column("message_id"))
                yield _message_rows(part, found)
                yield from _delivery_rows(found)
                if len(found.verdicts):
                    yield _verdict_rows(found)
                # As many messages at a time as give about so many deliveries.
                wanted = len(part) * DELIVERIES_AT_ONCE // max(len(found), 1)
                rows = max(1, min(wanted, 4 * rows))


@lru_cache(maxsize=OPEN_SNAPSHOTS_MAX)
def open_matcher(task: DeliveryTask) -> DeliveryMatcher:
    """The engine of a task, filled once per worker process.

    Raises:
        SnapshotFormatError: The file is not the version that the task was made for. Rows would
            otherwise carry the name of one snapshot and the results of another.
    """
    path = Path(task.snapshot)
    if task.shipped:
        from pyspark import SparkFiles

        path = Path(SparkFiles.get(task.snapshot))
    snapshot = SubscriptionSnapshot.open(path, engine=task.engine)
    if snapshot.version != task.version:
        raise SnapshotFormatError(
            "snapshot.damaged",
            path=str(path),
            reason=f"it has version {snapshot.version}, the job was planned with {task.version}",
        )
    options = {} if task.cache_bytes_max is None else {"cache_bytes_max": task.cache_bytes_max}
    return snapshot.matcher(threads=task.threads, limits=task.limits, **options)


def _message_rows(batch: pa.RecordBatch, found: DeliveryBatch) -> pa.RecordBatch:
    """One row a message: its size and, where it was refused, why."""
    messages = batch.column("message")
    size = pc.cast(pc.coalesce(pc.binary_length(messages), pa.scalar(0, pa.int32())), pa.int64())
    columns: dict[str, pa.Array] = {"message_id": _message_ids(batch, found), "bytes": size}
    errors = found.errors
    if len(errors):
        rows = np.full(len(batch), -1)
        rows[errors.column("row").to_numpy()] = np.arange(len(errors))
        places = pa.array(rows, mask=rows < 0)
        for name in ("code", "message", "line", "column", "offset"):
            taken = errors.column(name).combine_chunks().take(places)
            columns[name] = taken.cast(STAGE_SCHEMA.field(name).type)
    if messages.null_count:
        columns |= _unread(batch, columns)
    return _stage_batch(columns, len(batch))


def _message_ids(batch: pa.RecordBatch, found: DeliveryBatch) -> pa.Array:
    """The ids as given; digests where one is missing."""
    ids = batch.column("message_id").cast(pa.string())
    if not ids.null_count:
        return ids
    messages = batch.column("message")
    # A row without an id and without a message has nothing that could name it.
    return pa.array(
        [
            None if not messages[row].is_valid and not ids[row].is_valid else found.message_ids[row]
            for row in range(len(batch))
        ],
        pa.string(),
    )


def _unread(batch: pa.RecordBatch, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Why messages are missing: the source says or, if it does not, the value was null."""
    missing = batch.column("message").is_null()
    names = batch.schema.names
    unread = UnreadableMessageError(
        "message.unreadable", path="the message", reason="its value is null"
    )
    found = {}
    for name, given, default in (
        ("code", "code", unread.code),
        ("message", "reason", unread.message),
    ):
        told = pa.scalar(default)
        if given in names:
            told = pc.coalesce(batch.column(given), told)
        found[name] = pc.if_else(
            missing, told, columns.get(name, pa.nulls(len(batch), pa.string()))
        )
    if "bytes" in names:
        found["bytes"] = pc.if_else(missing, batch.column("bytes"), columns["bytes"])
    return found


def _delivery_rows(found: DeliveryBatch) -> Iterator[pa.RecordBatch]:
    """One row a delivery, in batches whose results are not too long together."""
    if not len(found):
        return
    rows = found.rows
    fragments = rows.column("fragment")
    lengths = pc.binary_length(fragments.dictionary)
    sizes = pc.fill_null(lengths.take(fragments.indices), 0).to_numpy()
    for start, stop in _ranges(np.cumsum(sizes, dtype=np.int64)):
        part = rows.slice(start, stop - start)
        columns = {
            # A cast of a dictionary is the plain column.
            name: part.column(name).cast(STAGE_SCHEMA.field(name).type)
            for name in ("message_id", "subscription_id", "subscriber", "delivery_id")
        }
        columns["result_number"] = part.column("result_number")
        chosen = part.column("fragment")
        columns["fragment"] = chosen.dictionary.take(chosen.indices).cast(pa.binary())
        yield _stage_batch(columns, len(part))


def _verdict_rows(found: DeliveryBatch) -> pa.RecordBatch:
    """One row a pair of message and subscription without an answer."""
    verdicts = found.verdicts.combine_chunks()
    names = ("message_id", "subscription_id", "subscriber", "code", "message")
    columns = {name: verdicts.column(name).combine_chunks() for name in names}
    return _stage_batch(columns, len(verdicts))


def _stage_batch(columns: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    """Rows of the stage; columns that are not given are null."""
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
        for field in STAGE_SCHEMA
    ]
    return pa.record_batch(arrays, schema=STAGE_SCHEMA)


def _ranges(ends: np.ndarray) -> Iterator[tuple[int, int]]:
    """Cuts rows so that no part holds more bytes of results than one batch of output may."""
    start, rows, before = 0, len(ends), 0
    while start < rows:
        stop = int(np.searchsorted(ends, before + FRAGMENT_BYTES_MAX, side="right"))
        stop = min(max(start + 1, stop), rows)
        yield start, stop
        start, before = stop, int(ends[stop - 1])

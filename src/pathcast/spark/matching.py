"""What one Python worker does to one Arrow batch of messages: the body of the matching stage.

A `MatchTask` travels to the workers as a handful of strings and numbers. The snapshot does not
travel with it: each worker process maps the file once and keeps the matcher, with the label
paths it has compiled, for all tasks that follow.

Everything here is Arrow in, Arrow out; no Python object is made per message or per match. This
module does not import pyspark, except to ask where a shipped file lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.engine import Snapshot
from pathcast.errors import SnapshotFormatError, UnreadableMessageError
from pathcast.limits import Limits
from pathcast.model import EngineName

if TYPE_CHECKING:
    from pathcast.engine import Matcher
    from pathcast.spark.schemas import Ids

NUMBERS_PER_BATCH_MAX = 4_000_000
"""Query ids or numbers of one batch of output. With ids of 500 bytes such a batch still stays
below the 2 GB that an Arrow string array can address; 16 MB of numbers."""

SORTED_AT_ONCE = 16_384
"""Keys of 4 bytes that are sorted together: three times faster than a batch of millions."""

OPEN_SNAPSHOTS_MAX = 2
"""Snapshots that a worker keeps open: the one of this micro-batch, and the one before it."""


@dataclass(frozen=True, slots=True)
class MatchTask:
    """A function from batches of messages to batches of verdicts, small enough to be pickled.

    Attributes:
        snapshot: Path of the snapshot or, when shipped, its name among the files of the job.
        version: Version that the snapshot must have.
        shipped: Whether the file came with `SparkContext.addFile`.
        ids: Whether verdicts name queries by id or by number.
        engine: Which engine matches.
        limits: Bounds on a message.
        threads: Threads in one task. Spark gives a task one core, so one is right as a rule.
        cache_bytes_max: Memory for compiled label paths; None for the engine's default.
    """

    snapshot: str
    version: str
    shipped: bool
    ids: Ids
    engine: EngineName
    limits: Limits
    threads: int
    cache_bytes_max: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Verdicts of batches with the columns message_id, message and, if there, code, reason."""
        opened = open_snapshot(self)
        for batch in batches:
            yield from self._verdicts(batch, opened)

    def _verdicts(self, batch: pa.RecordBatch, opened: OpenSnapshot) -> Iterator[pa.RecordBatch]:
        messages = batch.column("message")
        found = opened.matcher.match_arrow(messages)
        reasons = _reasons(batch, found.errors)
        lists = found.matches
        undecided = _undecided(found.verdicts, found.query_ids, len(lists))
        # Where a message is both long in matches and in verdicts, the sum is what travels.
        weights = lists.offsets.to_numpy() + undecided.offsets.to_numpy()
        for start, stop in _row_ranges(weights):
            part = lists.slice(start, stop - start)
            offsets = part.offsets.to_numpy()
            numbers = part.values.slice(offsets[0], offsets[-1] - offsets[0])
            if self.ids == "ids":
                name, queries = "query_ids", opened.sorted_ids(numbers, np.diff(offsets))
            else:
                # Spark has no unsigned type. The numbers are below 2^31: the same bits serve.
                name, queries = "query_numbers", numbers.view(pa.int32())
            rows = stop - start
            yield pa.RecordBatch.from_pydict(
                {
                    "message_id": batch.column("message_id").slice(start, rows),
                    name: pa.ListArray.from_arrays(pa.array(offsets - offsets[0]), queries),
                    "undecided": undecided.slice(start, rows),
                    "snapshot_version": pa.repeat(pa.scalar(self.version), rows),
                    **{key: column.slice(start, rows) for key, column in reasons.items()},
                }
            )


class OpenSnapshot:
    """A snapshot as a worker holds it: the matcher, and the ids as an Arrow dictionary."""

    def __init__(self, snapshot: Snapshot, matcher: Matcher) -> None:
        self.matcher = matcher
        self._snapshot = snapshot
        self._ids: pa.Array | None = None
        self._ranks: np.ndarray | None = None

    def sorted_ids(self, numbers: pa.Array, counts: np.ndarray) -> pa.Array:
        """The ids of the numbers, sorted within each message.

        Args:
            numbers: Query numbers of consecutive messages.
            counts: How many of them belong to each message.

        Cost:
            One sort of integers (message, rank of the id) and one `take`: about a quarter of the
            time that the strings take to travel. The ids themselves are sorted once per worker.
        """
        if self._ids is None or self._ranks is None:
            self._ids, self._ranks = _dictionary(_ids_as_arrow(self._snapshot))
        # 32 bits where they are enough, which is nearly always: they sort twice as fast.
        kind = np.dtype(np.uint32 if len(counts) * len(self._ids) < 2**32 else np.uint64)
        message = np.repeat(np.arange(len(counts), dtype=kind), counts)
        message *= len(self._ids)
        keys = message + self._ranks[numbers.to_numpy()]
        # Whole messages at a time, as many as stay in the cache of a core.
        ends = np.cumsum(counts)
        bounds = np.arange(SORTED_AT_ONCE, len(keys), SORTED_AT_ONCE)
        for part in np.split(keys, np.unique(ends[np.searchsorted(ends, bounds)])):
            part.sort()
        # Sorting left every message where it was, so what was added can be taken away again.
        keys -= message
        return self._ids.take(pa.array(keys))


def _dictionary(ids: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """The ids in sorted order, and the place of each query number in that order."""
    order = pc.array_sort_indices(ids).to_numpy()
    ranks = np.empty(len(order), dtype=np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    return ids.take(pa.array(order)), ranks


def _ids_as_arrow(snapshot: Snapshot) -> pa.Array:
    """Ids by number. The kernel has them as an array; the reference engine as a list."""
    ids = snapshot.query_ids
    array = ids.to_arrow() if hasattr(ids, "to_arrow") else pa.array(ids, pa.string())
    # Spark's string type is the one with 32-bit offsets; a batch is cut to fit it.
    return array.cast(pa.string())


@lru_cache(maxsize=OPEN_SNAPSHOTS_MAX)
def open_snapshot(task: MatchTask) -> OpenSnapshot:
    """The snapshot of a task, opened once per worker process.

    Raises:
        SnapshotFormatError: The file is not the version that the task was made for. Rows would
            otherwise carry the name of one snapshot and the matches of another.
    """
    path = Path(task.snapshot)
    if task.shipped:
        from pyspark import SparkFiles

        path = Path(SparkFiles.get(task.snapshot))
    snapshot = Snapshot.open(path, engine=task.engine)
    if snapshot.version != task.version:
        raise SnapshotFormatError(
            "snapshot.damaged",
            path=str(path),
            reason=f"it has version {snapshot.version}, the job was planned with {task.version}",
        )
    options = {} if task.cache_bytes_max is None else {"cache_bytes_max": task.cache_bytes_max}
    return OpenSnapshot(
        snapshot, snapshot.matcher(threads=task.threads, limits=task.limits, **options)
    )


def _undecided(verdicts: pa.Table, ids: Sequence[str], rows: int) -> pa.ListArray:
    """Per message, the queries that could not be decided, and why; few as a rule."""
    places = verdicts.column("row").to_numpy()
    offsets = np.searchsorted(places, np.arange(rows + 1)).astype(np.int32)
    numbers = verdicts.column("query_number").to_pylist()
    # The kernel looks many up in one call; the reference engine has a list.
    found = ids.take(numbers) if hasattr(ids, "take") else [ids[number] for number in numbers]
    reasons = [pc.cast(verdicts.column(name), pa.string()) for name in ("code", "message")]
    queries = pa.StructArray.from_arrays(
        [pa.array(found, pa.string()), *(reason.combine_chunks() for reason in reasons)],
        ["query_id", "code", "message"],
    )
    return pa.ListArray.from_arrays(pa.array(offsets), queries)


def _reasons(batch: pa.RecordBatch, errors: pa.StructArray) -> dict[str, pa.Array]:
    """Size of each message and, where it was refused, code, message and place."""
    messages = batch.column("message")
    missing = messages.is_null()
    code, message, line, column, offset = (
        found.cast(kind)
        for found, kind in zip(
            _fields(errors, ("code", "message", "line", "column", "offset")),
            (pa.string(), pa.string(), pa.int32(), pa.int32(), pa.int64()),
            strict=True,
        )
    )
    size = pc.cast(pc.coalesce(pc.binary_length(messages), pa.scalar(0, pa.int32())), pa.int64())
    if missing.true_count:
        # The door never saw these: the source says why or, if it does not, the value was null.
        names = batch.schema.names
        unread = UnreadableMessageError(
            "message.unreadable", path="the message", reason="its value is null"
        )
        given = [batch.column(name) if name in names else None for name in ("code", "reason")]
        fallback = (pa.scalar(unread.code), pa.scalar(unread.message))
        told = [
            pc.coalesce(column, default) if column is not None else default
            for column, default in zip(given, fallback, strict=True)
        ]
        code = pc.if_else(missing, told[0], code)
        message = pc.if_else(missing, told[1], message)
        if "bytes" in names:
            size = pc.if_else(missing, batch.column("bytes"), size)
    return {
        "bytes": size,
        "code": code,
        "message": message,
        "line": line,
        "column": column,
        "offset": offset,
    }


def _fields(errors: pa.StructArray, names: tuple[str, ...]) -> list[pa.Array]:
    """Columns of a struct array; a row that is null is null in each."""
    columns = errors.flatten()
    return [columns[errors.type.get_field_index(name)] for name in names]


def _row_ranges(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Cuts rows so that no part holds more numbers than one batch of output may."""
    rows, start = len(offsets) - 1, 0
    while start < rows:
        bound = offsets[start] + NUMBERS_PER_BATCH_MAX
        stop = max(start + 1, int(np.searchsorted(offsets, bound, side="right")) - 1)
        yield start, min(stop, rows)
        start = min(stop, rows)

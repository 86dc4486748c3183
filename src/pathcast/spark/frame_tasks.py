"""Tasks over batches of a frame's rows: what workers run for `deliver` and for `Delivery`.

Engines stay open in a worker for all tasks that follow: this module is imported there, while what
is pickled with a task is made anew for each.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import PathcastError
from pathcast.kernel.delivery_ids import delivery_ids
from pathcast.limits import MIB, Limits
from pathcast.spark import schemas
from pathcast.spark.answering import NO_FRAGMENT, Answerer, MicroBatchAnswer
from pathcast.spark.generations import GenerationFiles
from pathcast.spark.tasks import GENERATIONS_OPEN_MAX, DeliveryTask

if TYPE_CHECKING:
    from pathcast.spark.generations import TakerTable

FRAGMENT_BYTES_MAX: Final = 16 * MIB
"""Bytes of results in one batch of output; a single larger one goes alone."""

ROWS_MAX: Final = 100_000
"""Deliveries in one batch of output."""

_NOT_DONE: Final = ("code", "message", "line", "column", "offset", "bytes")

DELIVERED: Final = pa.schema(
    [
        pa.field("subscriber", pa.string()),
        pa.field("subscription_id", pa.string()),
        pa.field("message_id", pa.string()),
        pa.field("result_number", pa.int32()),
        pa.field("fragment", pa.binary()),
        pa.field("delivery_id", pa.binary()),
        pa.field("error", pa.struct([schemas.LETTERS.field(name) for name in _NOT_DONE])),
    ]
)
"""Rows of `deliver`: a delivery, or, where `error` is not null, a message that was refused (no
subscription) or a pair of message and subscription without an answer."""


@dataclass(frozen=True, slots=True)
class FrameReader:
    """Hands on batches of a frame: columns message_id, message and those passed through."""

    extra: pa.Schema

    def read(
        self, units: Iterable[pa.RecordBatch], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Yield batches as they are; arguments as of `FileReader.read`."""
        for batch in units:
            # Columns of one output are of one type, whatever a frame says of time zones and nulls.
            yield _cast(batch, self.extra), None


def _cast(batch: pa.RecordBatch, extra: pa.Schema) -> pa.RecordBatch:
    """A batch, its last columns in the types of a schema."""
    rest = list(batch.schema)[: len(batch.schema) - len(extra)]
    return batch.cast(pa.schema([*rest, *extra]))


@dataclass(frozen=True, slots=True)
class FrameTask:
    """A task of delivery over a partition of a frame; its one row is its report, pickled.

    Attributes:
        task: What is done.
        has_tombstones: Whether a row whose message is null is none, unless a code says why it is.
    """

    task: DeliveryTask[pa.RecordBatch]
    has_tombstones: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the report."""
        tombstones = 0

        def messages() -> Iterator[pa.RecordBatch]:
            nonlocal tombstones
            for batch in batches:
                kept = batch.filter(_messages(batch)) if self.has_tombstones else batch
                tombstones += len(batch) - len(kept)
                yield kept

        report = self.task.run(messages())
        report.tombstones = tombstones
        yield pa.record_batch({"report": [pickle.dumps(report)]})


def _messages(batch: pa.RecordBatch) -> pa.Array:
    """Which rows have a message, or a code that says why it could not be read."""
    is_message = pc.is_valid(batch.column("message"))
    if "code" not in batch.schema.names:
        return is_message
    return pc.or_(is_message, pc.is_valid(batch.column("code")))


@dataclass(frozen=True, slots=True)
class SentQueries:
    """Files of subscriptions that were sent with the job (`SparkContext.addFile`).

    Attributes:
        version: Of the subscriptions.
        takers: Name of the file among those of the job.
        queries: Likewise.
        has_notices: Whether some are delivered as an id.
    """

    version: str
    takers: str
    queries: str
    has_notices: bool

    def files(self) -> GenerationFiles:
        """The files as they lie on this machine."""
        from pyspark import SparkFiles

        return GenerationFiles(
            self.version,
            Path(SparkFiles.get(self.takers)),
            Path(SparkFiles.get(self.queries)),
            self.has_notices,
        )


@dataclass(frozen=True, slots=True)
class RowTask:
    """A function from batches of messages to batches of rows, small enough to be pickled.

    Attributes:
        queries: The subscriptions.
        extra: Columns that are passed through.
        limits: Bounds on a message and its results; those of the subscriptions where None.
        threads: Threads in one task. Spark gives a task one core, so one is right as a rule.
        cache_bytes_max: Memory for compiled label paths; None for the engine's default.
    """

    queries: SentQueries
    extra: pa.Schema
    limits: Limits | None
    threads: int
    cache_bytes_max: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows, `DELIVERED` and the columns passed through."""
        answerer = _opened(self.queries, self.limits, self.threads, self.cache_bytes_max)
        for rows_in in batches:
            batch, start = _cast(rows_in, self.extra), 0
            for answer in answerer.answer(batch, with_matches=False):
                part = batch.slice(start, len(answer.message_ids))
                start += len(part)
                yield from self._deliveries(answer, part, answerer.table)
                for rows, letters in answer.letters:
                    columns = [letters.column(name).combine_chunks() for name in _NOT_DONE]
                    error = DELIVERED.field("error").type
                    found = {
                        name: letters.column(name)
                        for name in ("subscriber", "subscription_id", "message_id")
                    }
                    found["error"] = pa.StructArray.from_arrays(columns, fields=list(error))
                    yield from self._rows(found, rows, part)

    def _deliveries(
        self, answer: MicroBatchAnswer, batch: pa.RecordBatch, table: TakerTable
    ) -> Iterator[pa.RecordBatch]:
        """One row a delivery, in batches whose results are not too long together."""
        lengths = pc.binary_length(answer.values).to_numpy(zero_copy_only=False)
        lengths = np.append(lengths, 0)  # the last one is that of no fragment
        ends = np.cumsum(lengths[answer.fragments], dtype=np.int64)
        start = 0
        while start < len(answer):
            before = ends[start - 1] if start else 0
            stop = int(np.searchsorted(ends, before + FRAGMENT_BYTES_MAX, side="right"))
            stop = min(max(stop, start + 1), start + ROWS_MAX)
            part = slice(start, stop)
            yield from self._rows(_columns(answer, part, table), answer.rows[part], batch)
            start = stop

    def _rows(
        self, found: dict[str, pa.Array], rows: np.ndarray, batch: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        """Columns as batches; those that are not given are null."""
        columns = [
            found[field.name].cast(field.type)
            if field.name in found
            else pa.nulls(len(rows), field.type)
            for field in DELIVERED
        ]
        columns += [batch.column(name).take(pa.array(rows)) for name in self.extra.names]
        table = pa.table(columns, schema=pa.schema([*DELIVERED, *self.extra]))
        yield from table.combine_chunks().to_batches()


def _columns(answer: MicroBatchAnswer, part: slice, table: TakerTable) -> dict[str, pa.Array]:
    ranks, places = np.unique(answer.ranks[part], return_inverse=True)
    rows = answer.rows[part]
    numbers = answer.result_numbers[part]
    fragments = answer.fragments[part]
    taken = pa.array(answer.ranks[part])
    chosen = pa.array(fragments, mask=fragments == NO_FRAGMENT)
    ids = delivery_ids(
        table.rows(ranks).versions,
        pa.array(places.astype(np.uint32)),
        pc.fill_null(answer.message_ids, "").to_pylist(),
        pa.array(rows.astype(np.uint32)),
        pa.array(numbers.astype(np.uint32)),
    )
    return {
        "subscriber": table.subscribers.take(taken),
        "subscription_id": table.ids.take(taken),
        "message_id": answer.message_ids.take(pa.array(rows)),
        "result_number": pa.array(numbers.astype(np.int32)),
        "fragment": answer.values.take(chosen),
        "delivery_id": ids,
    }


@lru_cache(maxsize=GENERATIONS_OPEN_MAX)
def _opened(
    queries: SentQueries, limits: Limits | None, threads: int, cache_bytes_max: int | None
) -> Answerer:
    """The engines of subscriptions, opened once per worker process."""
    return Answerer(
        queries.files(), limits=limits, threads=threads, cache_bytes_max=cache_bytes_max
    )

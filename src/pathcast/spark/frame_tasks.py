"""Tasks over batches of a frame's rows: what workers run for `deliver` and for `Delivery`.

Engines stay open in a worker for all tasks that follow: this module is imported there, while what
is pickled with a task is made anew for each.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import PathcastError
from pathcast.limits import MIB, Limits
from pathcast.spark import schemas
from pathcast.spark.answering import Answerer, MicroBatchAnswer
from pathcast.spark.files import in_pieces
from pathcast.spark.generations import GenerationFiles
from pathcast.spark.joined_answers import JoinedAnswers
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
class RowTask:
    """A function from batches of messages to batches of rows, small enough to be pickled.

    Attributes:
        queries: The subscriptions; their files are known by name among those of the job.
        extra: Columns that are passed through.
        limits: Bounds on a message and its results; those of the subscriptions where None.
        threads: Threads in one task. Spark gives a task one core, so one is right as a rule.
        cache_bytes_max: Memory for compiled label paths; None for the engine's default.
    """

    queries: GenerationFiles
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
        if not len(answer):
            return
        joined = JoinedAnswers([answer])
        order = joined.by_rank()
        for piece in in_pieces(joined.fragment_bytes(order), FRAGMENT_BYTES_MAX, ROWS_MAX):
            columns = joined.deliveries(order[piece], table)
            found = dict(zip(DELIVERED.names[: len(columns)], columns, strict=True))
            yield from self._rows(found, joined.rows[order[piece]], batch)

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


@lru_cache(maxsize=GENERATIONS_OPEN_MAX)
def _opened(
    queries: GenerationFiles, limits: Limits | None, threads: int, cache_bytes_max: int | None
) -> Answerer:
    """The engines of subscriptions, opened once per worker process."""
    from pyspark import SparkFiles

    takers, saved = (Path(SparkFiles.get(path.name)) for path in (queries.takers, queries.queries))
    here = replace(queries, takers=takers, queries=saved)
    return Answerer(here, limits=limits, threads=threads, cache_bytes_max=cache_bytes_max)

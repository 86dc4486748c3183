"""Measures the cost of a message with all queries on each worker, and with a part on each.

Measured in the driver, on messages of the micro-batch at hand: what the whole generation takes for
a message, what the routing index takes, how many partitions a message touches, what one of them
takes. Broadcast parses a message once and answers it; partitioned parses it once to mark it, moves
its bytes, and parses it once more in each partition that it touches. So broadcast is cheaper as a
rule where the queries fit into a worker, and partitions are what is left where they do not
(docs/scaling.md, "Broadcast or partitioned").

Example:
    >>> costs = Costs(
    ...     queries_bytes=3_000_000_000, worker_bytes_max=2_000_000_000, message_bytes=4_000,
    ...     messages=256, answer_us=None, mark_us=15.0, part_us=14.0, touched=6.5, partitions=100,
    ... )
    >>> choose(costs)[0]
    'partitioned'
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import numpy as np
import pyarrow as pa

from pathcast.spark.answering import Answerer
from pathcast.spark.partitions import RESULTS_BYTES

if TYPE_CHECKING:
    from pathcast.partition.routing import Marks
    from pathcast.spark.files import FileReader, Unit
    from pathcast.spark.generations import Generation
    from pathcast.spark.partitions import PartitionedGeneration
    from pathcast.spark.storage import Storage

T = TypeVar("T")

SAMPLE_MESSAGES: Final = 256
"""Messages that costs are measured on: some milliseconds a pass."""

SAMPLE_PARTITIONS: Final = 4
"""Partitions that are opened to see what one takes."""

PASSES: Final = 3
"""Passes of which the quickest counts; the first fills the caches."""

QUERY_BYTES: Final = 140
"""Bytes of a filter query in a snapshot, about."""

MEMORY_SHARE: Final = 0.5
"""Share of the memory of this machine that queries may take where nothing is said."""

MOVED_BYTES_A_US: Final = 500
"""Bytes that are written, or read, in a microsecond on the way to partitions."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured costs of a message, broadcast and partitioned.

    Attributes:
        queries_bytes: Memory that all queries take on a worker, about.
        worker_bytes_max: Memory that they may take.
        message_bytes: Bytes of a message, on average.
        messages: Messages that it was measured on.
        answer_us: Microseconds a message with all queries; None where they do not fit.
        mark_us: Microseconds a message for the routing index.
        part_us: Microseconds for a message in one partition that it touches.
        touched: Partitions that a message touches, on average.
        partitions: How many there are.
    """

    queries_bytes: int
    worker_bytes_max: int
    message_bytes: float
    messages: int
    answer_us: float | None
    mark_us: float
    part_us: float
    touched: float
    partitions: int

    @property
    def moved_bytes(self) -> float:
        """Bytes that a message moves on its way to partitions: once written, read where needed."""
        return self.message_bytes * (min(1.0, self.touched) + self.touched)

    @property
    def partitioned_us(self) -> float:
        """Microseconds a message with partitions."""
        moved = self.moved_bytes / MOVED_BYTES_A_US
        return self.mark_us + moved + self.touched * self.part_us


def choose(costs: Costs) -> tuple[Literal["broadcast", "partitioned"], str]:
    """Choose the cheaper placement, and say why."""
    fits = f"{costs.queries_bytes / 1e6:,.0f} MB of queries, {costs.worker_bytes_max / 1e6:,.0f} MB"
    if costs.answer_us is None:
        return "partitioned", f"{fits} allowed on a worker"
    told = (
        f"{costs.answer_us:,.1f} µs a message with all queries; in partitions "
        f"{costs.partitioned_us:,.1f} µs ({costs.mark_us:,.1f} to mark it, "
        f"{costs.touched:,.1f} of {costs.partitions:,} touched, {costs.part_us:,.1f} in each, "
        f"{costs.moved_bytes / 1e3:,.1f} kB moved)"
    )
    if costs.partitioned_us < costs.answer_us:
        return "partitioned", told
    return "broadcast", told


def sample_of(reader: FileReader, units: Sequence[Unit]) -> pa.RecordBatch | None:
    """Some messages of a micro-batch; None if none can be read."""
    for batch, _ in reader.read(units, {}):
        return batch.slice(0, SAMPLE_MESSAGES)
    return None


def measure(
    placed: PartitionedGeneration,
    messages: pa.RecordBatch | None,
    *,
    storage: Storage,
    threads: int,
    worker_bytes_max: int | None,
) -> Costs:
    """Measure the cost of messages with all queries and with a part of them.

    Args:
        placed: The partitions.
        messages: `sample_of`; where there are none, memory decides alone.
        storage: Where the generation lies.
        threads: Threads of one call.
        worker_bytes_max: Memory that queries may take; None for a share of what there is.

    Cost: some passes over the sample, and opening some partitions and, if they fit, all queries.
    """
    held = queries_bytes(placed, storage)
    allowed = allowed_bytes(worker_bytes_max)
    count = 0 if messages is None else len(messages)
    if messages is None or not count:
        answer_us = None if held > allowed or placed.generation.sections else 0.0
        return Costs(held, allowed, 0.0, 0, answer_us, 0.0, 0.0, 0.0, len(placed.partitions))

    def answering(generation: Generation, batch: pa.RecordBatch) -> float:
        with generation.files(storage) as files:
            answerer = Answerer(files, threads=threads)
        return _timed(lambda: answerer.answer(batch, with_matches=True))[0]

    marker = placed.routing(storage).marker(threads=threads)
    column = messages.column("message")
    mark_us, marks = _timed(lambda: marker.mark(column))
    touched = len(marks.partitions.flatten())
    spent, pairs = 0.0, 0
    for number, rows in _some_partitions(marks):
        spent += answering(placed.partition(number), messages.take(pa.array(rows)))
        pairs += len(rows)
    fits = held <= allowed and not placed.generation.sections
    answer_us = answering(placed.generation, messages) / count if fits else None
    return Costs(
        queries_bytes=held,
        worker_bytes_max=allowed,
        message_bytes=column.nbytes / count,
        messages=count,
        answer_us=answer_us,
        mark_us=mark_us / count,
        part_us=spent / max(1, pairs),
        touched=touched / count,
        partitions=len(placed.partitions),
    )


def queries_bytes(placed: PartitionedGeneration, storage: Storage) -> int:
    """Memory that all queries of a generation take on a worker, about."""
    if placed.generation.sections:
        return QUERY_BYTES * placed.generation.queries
    with placed.generation.files(storage) as files:
        mapped = [path.stat().st_size for path in (files.takers, files.notices) if path is not None]
        made = 0 if files.results is None else files.results.stat().st_size
    return sum(mapped) + RESULTS_BYTES * made


def _some_partitions(marks: Marks) -> Iterator[tuple[int, np.ndarray]]:
    """Some of the partitions that messages touch, and the messages that go to each."""
    touched = np.unique(marks.partitions.flatten().to_numpy())
    step = max(1, len(touched) // SAMPLE_PARTITIONS)
    for number in touched[::step][:SAMPLE_PARTITIONS].tolist():
        yield number, marks.rows_of(number)


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    """Microseconds of the quickest of some calls, and what the last gave."""
    least = float("inf")
    for _ in range(PASSES):
        started = time.perf_counter_ns()
        found = call()
        least = min(least, (time.perf_counter_ns() - started) / 1e3)
    return least, found


def allowed_bytes(worker_bytes_max: int | None) -> int:
    """Memory that queries may take on a worker: as told, or a share of that of this machine."""
    if worker_bytes_max is not None:
        return worker_bytes_max
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)

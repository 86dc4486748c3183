"""Where a micro-batch is answered: by workers that hold all queries, or by those that hold a part.

    broadcast     shares of files -> tasks, each with the whole generation
    partitioned   shares of files -> marks -> shares of partitions -> deliveries -> rows of matches

Both give the same rows: a delivery is of one query, a query lies in one partition, ids and numbers
are those of the whole generation. The files of the stages between belong to the attempt and go when
it ends; what counts is said by the one commit at its end, as for broadcast.

What is cheaper is measured (`costs`) on messages of the first micro-batch of a generation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pathcast.errors import ConfigError
from pathcast.spark.answering_partitions import (
    MergeTask,
    MergeUnit,
    PartitionReport,
    PartitionTask,
    PartitionUnit,
)
from pathcast.spark.book import SubscriptionBook
from pathcast.spark.costs import (
    QUERY_BYTES,
    SAMPLE_MESSAGES,
    allowed_bytes,
    choose,
    measure,
    sample_of,
)
from pathcast.spark.marking import MarkingTask, MarkReport
from pathcast.spark.routed import remove_routed
from pathcast.spark.sources import NO_COLUMNS, listing_of, reader_of, shares_of, units_of
from pathcast.spark.subscription_places import place_of
from pathcast.spark.workers import InProcess

if TYPE_CHECKING:
    from pathcast.spark.files import Unit
    from pathcast.spark.partitions import PartitionedGeneration
    from pathcast.spark.settings import PipelineSettings, PlacementSettings
    from pathcast.spark.storage import Storage
    from pathcast.spark.tasks import DeliveryTask, TaskReport
    from pathcast.spark.workers import Workers


class Placer:
    """Decides for each generation, and says why.

    Args:
        placement: What is wanted.
        book: Who cuts generations.
        note: Who is told.
    """

    def __init__(
        self, placement: PlacementSettings, book: SubscriptionBook, note: Callable[[str], None]
    ) -> None:
        self._placement = placement
        self._book = book
        self._note = note
        self._version = ""
        self._placed: PartitionedGeneration | None = None

    def run(
        self, workers: Workers, task: DeliveryTask, shares: Sequence[Sequence[Unit]]
    ) -> list[TaskReport]:
        """Delivers the messages of a micro-batch."""
        placed = self._placed_for(workers, task, shares)
        if placed is None:
            return workers.run(task, shares)
        try:
            bytes_max = self._placement.worker_bytes_max
            return _deliver(workers, placed, task, shares, bytes_max)
        finally:
            remove_routed(task.storage)

    def _placed_for(
        self, workers: Workers, task: DeliveryTask, shares: Sequence[Sequence[Unit]]
    ) -> PartitionedGeneration | None:
        """The partitions of a generation; None for broadcast."""
        generation = task.generation
        if not generation.queries:
            return None
        if self._placement.kind == "broadcast" and not generation.sections:
            return None
        if generation.version != self._version:
            self._placed = self._decide(workers, task, shares)
            self._version = generation.version
        return self._placed

    def _decide(
        self, workers: Workers, task: DeliveryTask, shares: Sequence[Sequence[Unit]]
    ) -> PartitionedGeneration | None:
        messages = sample_of(task.reader, [unit for share in shares for unit in share])
        sample = None if messages is None else messages.column("message")
        placed = self._book.partitioned(task.generation, self._placement, workers, sample)
        if placed is None:
            self._note(
                "broadcast: this generation of subscriptions is an earlier one, and was not cut "
                "into partitions"
            )
            return None
        if self._placement.kind != "auto":
            self._note(f"partitioned: {described(placed)}")
            return placed
        costs = measure(
            placed,
            messages,
            storage=task.storage,
            threads=task.threads,
            worker_bytes_max=self._placement.worker_bytes_max,
        )
        kind, why = choose(costs)
        self._note(f"{kind}: {why}; {described(placed)}")
        return placed if kind == "partitioned" else None


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a pipeline would match its queries.

    Attributes:
        kind: What a run would do.
        why: Why, with what it costs.
        placed: The partitions; None where they were not made because every worker holds all.
    """

    kind: Literal["broadcast", "partitioned"]
    why: str
    placed: PartitionedGeneration | None = None

    def __str__(self) -> str:
        told = f"{self.kind}: {self.why}"
        return told if self.placed is None else f"{told}; {described(self.placed)}"


def choice_of(settings: PipelineSettings, storage: Storage) -> Choice:
    """Where a pipeline would match its queries, as a run would decide.

    Args:
        settings: The pipeline.
        storage: A place for partitions, in the place of its output.

    Raises:
        ConfigError: The subscriptions cannot be read.

    Cost: that of taking them up, of cutting them, and of `measure`.
    """
    placement, source = settings.placement, settings.source
    if placement.kind == "broadcast":
        return Choice("broadcast", "as placement.kind says")
    workers = InProcess()
    book = book_of(settings, storage, lambda: workers, is_whole=fits_whole(settings))
    with closing(book.place):
        generation = book.current().generation
    if not generation.queries:
        return Choice("broadcast", "no query is in force")
    files, _ = listing_of(source).look(())
    reader = reader_of(source, settings.engine.message_limits(), NO_COLUMNS)
    # Nothing comes of a file that cannot be read.
    units = units_of(reader, files[:SAMPLE_MESSAGES], workers, {})
    messages = sample_of(reader, units)
    sample = None if messages is None else messages.column("message")
    placed = book.partitioned(generation, placement, workers, sample)
    assert placed is not None, "a current generation can be cut"
    costs = measure(
        placed,
        messages,
        storage=storage,
        threads=settings.engine.threads,
        worker_bytes_max=placement.worker_bytes_max,
    )
    kind, why = choose(costs)
    if placement.kind == "partitioned":
        why = f"as placement.kind says ({kind} would be chosen: {why})"
        kind = placement.kind
    return Choice(kind, why, placed)


def book_of(
    settings: PipelineSettings,
    output: Storage,
    workers: Callable[[], Workers],
    *,
    is_whole: bool,
) -> SubscriptionBook:
    """The subscriptions of a pipeline.

    Args:
        settings: The pipeline.
        output: Where generations are kept.
        workers: Who takes them up in sections.
        is_whole: Whether this process takes them up, all at once.
    """
    wanted = settings.subscriptions
    return SubscriptionBook(
        place_of(wanted),
        output,
        deliver=wanted.deliver,
        namespaces=wanted.namespaces,
        limits=settings.engine.limits,
        sections=None if is_whole else workers,
    )


def is_held_whole(settings: PipelineSettings) -> bool:
    """Whether all queries are to be in one process, and one snapshot.

    Broadcast needs that, and so do numbers in that snapshot (`output.matches = "numbers"`); to
    choose what costs less, both are tried where memory allows it. Where the subscriptions cannot be
    looked at, whoever reads them says so.
    """
    match settings.placement.kind:
        case "broadcast":
            return True
        case "partitioned":
            return settings.output.matches == "numbers"
        case "auto":
            with suppress(ConfigError):
                return settings.output.matches == "numbers" or fits_whole(settings)
            return True


def fits_whole(settings: PipelineSettings) -> bool:
    """Whether all queries would fit into a worker, by their number.

    Raises:
        ConfigError: The subscriptions cannot be looked at.
    """
    with closing(place_of(settings.subscriptions)) as place:
        count = place.about()
    return QUERY_BYTES * count <= allowed_bytes(settings.placement.worker_bytes_max)


def described(placed: PartitionedGeneration) -> str:
    """A cut in words."""
    filled = [part.queries for part in placed.partitions if part.queries]
    return (
        f"{placed.generation.queries:,} queries in {len(filled):,} partitions of up to "
        f"{max(filled, default=0):,}, routed by {placed.routes:,} paths "
        f"({placed.routing_bytes:,} bytes)"
    )


def _deliver(
    workers: Workers,
    placed: PartitionedGeneration,
    task: DeliveryTask,
    shares: Sequence[Sequence[Unit]],
    bytes_max: int | None,
) -> list[TaskReport]:
    """The three stages; where files could not be read to their ends, the first alone."""
    with_matches = task.matches != "none" and placed.generation.has_notices
    marks: list[MarkReport] = workers.run(MarkingTask(task, placed, with_matches), shares)
    _check(marks)
    if not task.reader.is_whole and any(report.unread for report in marks):
        return [*marks]
    routed = [report.routed for report in marks if report.routed is not None]
    units = [
        PartitionUnit(number, file.name, size)
        for file in routed
        for number, size in file.needed.items()
    ]
    units.sort(key=lambda unit: unit.partition)
    answering = PartitionTask(task, placed, with_matches, bytes_max)
    answered: list[PartitionReport] = (
        workers.run(answering, shares_of(units, workers.count)) if units else []
    )
    _check(answered)
    merged: list[TaskReport] = []
    if with_matches and routed:
        finds = [each for report in answered for each in report.finds]
        rows = [
            MergeUnit(
                file.name, tuple(each for each in finds if each.routed == file.name), file.rows
            )
            for file in routed
        ]
        merged = workers.run(MergeTask(task), shares_of(rows, workers.count))
        _check(merged)
    return [*marks, *answered, *merged]


def _check(reports: Sequence[TaskReport]) -> None:
    for report in reports:
        if report.error is not None:
            raise report.error

"""What a pipeline delivers: matches, or results. One class each, of one shape.

A content knows where its subscriptions come from and which stage makes its outputs; `pipeline`
knows when, and that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import Row
from pyspark.sql import functions as F

from pathcast.errors import ConfigError
from pathcast.spark import schemas
from pathcast.spark.customised import CustomisedBook, is_customised
from pathcast.spark.dissemination import disseminate, result_inboxes
from pathcast.spark.ledger import Commit
from pathcast.spark.outputs import ContentName, Layout, StagedBatch, find_layout
from pathcast.spark.stages import deliveries, match_messages
from pathcast.spark.subscriptions import SNAPSHOTS, Generation, SubscriptionBook

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pathcast.spark.settings import PipelineSettings


class Book(Protocol):
    """Subscriptions that are taken up anew when they change."""

    def current(self) -> Generation:
        """The generation of the files as they are now."""

    def pinned(self, snapshot_version: str, digest: str) -> Generation:
        """An earlier generation."""


class Content(Protocol):
    """What is delivered."""

    name: ContentName

    def book(self) -> Book:
        """Where subscriptions come from."""

    def write(self, frame: DataFrame, generation: Generation, staged: StagedBatch) -> Commit:
        """Computes a micro-batch and stages its outputs.

        Returns:
            Its counters; the batch itself is filled in later.
        """


class MatchContent:
    """Who is told of which message, because of which query."""

    name: ContentName = "matches"

    def __init__(self, settings: PipelineSettings, layout: Layout) -> None:
        self._settings = settings
        self._layout = layout

    def book(self) -> SubscriptionBook:
        """Queries by subscriber; a query that several want is registered once."""
        return SubscriptionBook(
            self._settings.subscriptions.path,
            self._settings.output.path / SNAPSHOTS,
            engine=self._settings.engine.engine,
            namespaces=self._settings.subscriptions.namespaces,
            limits=self._settings.engine.message_limits(),
        )

    def write(self, frame: DataFrame, generation: Generation, staged: StagedBatch) -> Commit:
        """Matches, dead letters, inboxes."""
        engine = self._settings.engine
        found = match_messages(
            frame,
            generation.snapshot,
            ids=self._layout.ids,
            limits=generation.limits,
            engine=engine.engine,
            threads=engine.threads,
            cache_bytes_max=engine.cache_bytes_max,
            snapshot_version=generation.snapshot_version,
        )
        with found:
            counts = self._count(found.verdicts)
            staged.write(found.matches, "matches")
            if counts.refused or counts.undecided:
                staged.write(found.dead_letters, "dead_letters")
            if counts.matches:
                reader = frame.sparkSession.read.schema(schemas.SUBSCRIPTIONS)
                table = reader.parquet(str(generation.table))
                rows = deliveries(found.matches, table, buckets=self._layout.inbox_buckets)
                staged.write(rows, "inboxes")
        return counts

    def _count(self, verdicts: DataFrame) -> Commit:
        queries = F.col("query_ids" if self._layout.ids == "ids" else "query_numbers")
        rows = (
            verdicts.groupBy("code")
            .agg(
                F.count(F.lit(1)).alias("messages"),
                F.sum("bytes").alias("bytes"),
                F.sum(F.when(F.col("code").isNull(), F.size(queries))).alias("matches"),
                F.sum(F.size("undecided")).alias("undecided"),
            )
            .collect()
        )
        return _counts(rows, sum(row.matches or 0 for row in rows), sum(r.undecided for r in rows))


class ResultContent:
    """What subscribers get of which message."""

    name: ContentName = "results"

    def __init__(self, settings: PipelineSettings, layout: Layout) -> None:
        self._settings = settings
        self._layout = layout

    def book(self) -> CustomisedBook:
        """Subscriptions, each of one subscriber."""
        return CustomisedBook(
            self._settings.subscriptions.path,
            self._settings.output.path / SNAPSHOTS,
            engine=self._settings.engine.engine,
            namespaces=self._settings.subscriptions.namespaces,
            limits=self._settings.engine.message_limits(),
        )

    def write(self, frame: DataFrame, generation: Generation, staged: StagedBatch) -> Commit:
        """Dead letters, inboxes."""
        engine = self._settings.engine
        found = disseminate(
            frame,
            generation.snapshot,
            limits=generation.limits,
            engine=engine.engine,
            threads=engine.threads,
            cache_bytes_max=engine.cache_bytes_max,
            snapshot_version=generation.snapshot_version,
        )
        with found:
            counts = self._count(found.rows)
            if counts.refused or counts.undecided:
                staged.write(found.dead_letters, "dead_letters")
            if counts.matches:
                inboxes = result_inboxes(found.deliveries, buckets=self._layout.inbox_buckets)
                staged.write(inboxes, "inboxes")
        return counts

    def _count(self, stage: DataFrame) -> Commit:
        rows = (
            stage.groupBy(F.col("subscription_id").isNull().alias("is_message"), "code")
            .agg(
                F.count(F.lit(1)).alias("messages"),
                F.sum("bytes").alias("bytes"),
                # Whoever gets anything of a message gets a first result.
                F.count_if(F.col("result_number") == 0).alias("matches"),
            )
            .collect()
        )
        of_pairs = [row for row in rows if not row.is_message]
        return _counts(
            [row for row in rows if row.is_message],
            sum(row.matches for row in of_pairs),
            sum(row.messages for row in of_pairs if row.code is not None),
        )


def content_of(settings: PipelineSettings, layout: Layout) -> Content:
    """The content that a layout names."""
    kind = MatchContent if layout.content == "matches" else ResultContent
    return kind(settings, layout)


def layout_for(settings: PipelineSettings) -> Layout:
    """The layout that settings ask for.

    Raises:
        ConfigError: The content is not said, neither by the settings nor by an earlier run, and the
            subscriptions cannot be read to find out.
    """
    output, path = settings.output, settings.subscriptions.path
    content = output.content
    if content is None:
        try:
            content = "results" if is_customised(path) else "matches"
        except ConfigError:
            earlier = find_layout(output.path)
            if earlier is None or not path.exists():
                raise
            content = earlier.content
    return Layout(output.format, output.ids, output.inbox_buckets, content)


def _counts(rows: Iterable[Row], matches: int, undecided: int) -> Commit:
    """Counters of a micro-batch from rows of code, messages and bytes."""
    rows = list(rows)
    return Commit(
        batch_id=-1,
        stream="",
        snapshot_version="",
        messages=sum(row.messages for row in rows),
        bytes=sum(row.bytes for row in rows),
        matches=matches,
        deliveries=0,
        undecided=undecided,
        refused={row.code: row.messages for row in sorted(rows, key=str) if row.code is not None},
    )

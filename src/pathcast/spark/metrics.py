"""Metrics of a run in the format of Prometheus: `mode.metrics`.

Counters begin with the run and grow with each commit. Gauges say what the last commit says, that of
an earlier run as well; they are not a number where nothing is known.

Example:
    >>> with metered(progress, settings) as told:                           # doctest: +SKIP
    ...     run(settings, progress=told)
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pathcast.errors import extra, invalid_setting
from pathcast.spark.dearest import DEAREST_MAX, SUMMED_MAX, DearSubscription, dearest_of
from pathcast.spark.ledger import Commit, committed_batches
from pathcast.spark.status import committed_at, generation_of, lag_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from pathcast.spark.progress import ProgressReport
    from pathcast.spark.settings import PipelineSettings

SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the buckets of the times of micro-batches."""


class MeteredProgress:
    """Counts commits, and hands on what it is told.

    Args:
        report: Who is told as well.
        settings: Of the pipeline.
        registry: Gets the metrics.
    """

    def __init__(
        self, report: ProgressReport, settings: PipelineSettings, registry: CollectorRegistry
    ) -> None:
        from prometheus_client import Counter, Gauge, Histogram, Info

        self._report = report
        self._output = settings.output.storage
        self._checkpoint = settings.checkpoint
        self._version = ""

        def counter(name: str, told: str, *labels: str) -> Counter:
            return Counter(f"pathcast_{name}", told, labels, registry=registry)

        def gauge(name: str, told: str) -> Gauge:
            made = Gauge(f"pathcast_{name}", told, registry=registry)
            made.set(math.nan)
            return made

        self._counted = {
            "messages": counter("messages_received", "Messages that arrived."),
            "bytes": counter("messages_received_bytes", "Bytes of these messages."),
            "matches": counter("matches", "Pairs of message and query."),
            "deliveries": counter("deliveries", "Rows of inboxes, notices included."),
            "undecided": counter("undecided", "Pairs of message and subscription not decided."),
            "skipped": counter("skipped_offsets", "Offsets of Kafka that gave no record."),
            "tombstones": counter("tombstones", "Rows of the source that are no messages."),
            "work": counter("work_steps", "Steps that single queries took."),
        }
        self._unread = counter("unread_files", "Files of the source that could not be read.")
        self._refused = counter("refusals", "Messages that were refused.", "code")
        self._stages = counter("stage_seconds", "Time of all tasks by stage.", "stage")
        self._dearest: list[DearSubscription] = []
        self._shown: set[tuple[str, str]] = set()
        self._steps = Gauge(
            "pathcast_dearest_steps",
            "Steps of the dearest subscriptions of the run.",
            ("subscriber", "subscription_id"),
            registry=registry,
        )
        self._notes = counter("notes", "Lines that a run says of what somebody should know.")
        self._seconds = Histogram(
            "pathcast_micro_batch_seconds",
            "Time of micro-batches, from their pin to their commit.",
            buckets=SECONDS,
            registry=registry,
        )
        self._batch = gauge("micro_batch", "Number of the last complete micro-batch.")
        self._committed = gauge("last_commit_timestamp_seconds", "When it was complete.")
        self._lag = gauge("lag_seconds", "From its oldest file to its commit; of files only.")
        self._behind = gauge("offsets_behind", "Offsets of the source that were not read.")
        self._snapshot = Info("pathcast_snapshot", "Subscriptions of it.", registry=registry)
        self._taken_up = gauge("snapshot_timestamp_seconds", "When these were taken up first.")
        self._subscriptions = gauge("subscriptions", "Pairs of subscriber and query in these.")
        self._queries = gauge("queries", "Distinct queries in these.")
        done = committed_batches(self._output)
        if done:
            at = committed_at(self._output, self._checkpoint, done[-1])
            self._show(Commit.read(self._output, done[-1]), at)

    def begin(self, text: str) -> None:
        """Hand on what runs."""
        self._report.begin(text)

    def batch(self, commit: Commit) -> None:
        """Count a micro-batch."""
        for name, each in self._counted.items():
            each.inc(getattr(commit, name))
        self._unread.inc(len(commit.unread))
        for code, count in commit.refused.items():
            self._refused.labels(code).inc(count)
        for stage, seconds in commit.stages.items():
            self._stages.labels(stage).inc(seconds)
        self._seconds.observe(commit.seconds)
        self._dearest = dearest_of([*self._dearest, *commit.dearest], SUMMED_MAX)
        dearest = self._dearest[:DEAREST_MAX]
        told = {(row.subscriber or "", row.subscription_id): row.steps for row in dearest}
        for labels, steps in told.items():
            self._steps.labels(*labels).set(steps)
        # Afterwards, so that whoever looks meanwhile sees a hundred at least.
        for labels in self._shown.difference(told):
            self._steps.remove(*labels)
        self._shown = set(told)
        self._show(commit, time.time())
        self._report.batch(commit)

    def lag(self, offsets: int) -> None:
        """Show it."""
        self._behind.set(offsets)
        self._report.lag(offsets)

    def note(self, text: str) -> None:
        """Count a note."""
        self._notes.inc()
        self._report.note(text)

    def _show(self, commit: Commit, at: float) -> None:
        """Shows a commit as the last one."""
        self._batch.set(commit.batch_id)
        self._committed.set(at)
        lag = lag_of(self._checkpoint, commit, at)
        if lag is not None:
            self._lag.set(lag)
        if commit.snapshot_version == self._version:
            return
        self._version = commit.snapshot_version
        self._snapshot.info({"version": self._version})
        generation, taken_up_at = generation_of(self._output, commit)
        if taken_up_at is not None:
            self._taken_up.set(taken_up_at)
        if generation is not None:
            self._subscriptions.set(generation.subscriptions)
            self._queries.set(generation.queries)


@contextmanager
def metered(report: ProgressReport, settings: PipelineSettings) -> Iterator[ProgressReport]:
    """Shows the metrics of a run at `mode.metrics` meanwhile, if that is set.

    Args:
        report: Who is told how the run goes.
        settings: Of the pipeline.

    Yields:
        Who is to be told instead.

    Raises:
        ConfigError: Nothing can listen there.
        MissingDependencyError: The extra `net` is not installed.
    """
    address = settings.mode.metrics
    if address is None:
        yield report
        return
    with extra("net", "mode.metrics"):
        from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    host, _, port = address.rpartition(":")
    try:
        server, serving = start_http_server(int(port), host.strip("[]"), registry)
    except OSError as error:
        reason = f"nothing can listen at {address}: {error.strerror or error}"
        raise invalid_setting("mode.metrics", reason) from error
    try:
        yield MeteredProgress(report, settings, registry)
    finally:
        server.shutdown()
        server.server_close()
        serving.join()

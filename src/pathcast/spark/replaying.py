"""Micro-batches that are done, again: answered into an output of its own, or published again.

    backfill      journal or offsets of some micro-batches -> today's subscriptions -> a new output
    redelivery    commits of some micro-batches -> topics

A backfill is a pipeline whose source is the journal of another one: its own journal is written
whole before anything is answered, and then `pipeline` does what it does after a kill. Of Kafka, the
frames between the offsets of commits go through `Delivery`. Deliveries have the ids that they had,
or would have had: an id is made of subscription, message and result alone.

    _replay.json    in the checkpoint of the new output: which micro-batches of which output

What is gone, or is another file now, is refused by name before anything is done. A redelivery runs
no task that answers, and leaves the state of the pipeline as it is.

Example:
    >>> settings = load_settings("pipeline.toml")                           # doctest: +SKIP
    >>> chosen = batches_between(settings, "2026-03-01", "2026-03-02")      # doctest: +SKIP
    >>> backfill(settings, chosen, "again", only=["cheap"])                 # doctest: +SKIP
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pathcast.errors import SourceError, invalid_setting
from pathcast.moments import moment_us
from pathcast.spark.connectors import KAFKA, fault_of, lost_offsets
from pathcast.spark.files import FoundFile, SourceListing, shown, some_of
from pathcast.spark.journal import Journal
from pathcast.spark.ledger import (
    BatchLedger,
    Commit,
    committed_batches,
    last_compaction,
    not_its_own,
    sole_writer,
    source_of,
)
from pathcast.spark.listing import files_at
from pathcast.spark.outputs import LAYOUT, layout_of
from pathcast.spark.pipeline import run, workers_of
from pathcast.spark.progress import LoggedProgress
from pathcast.spark.publishing import PublishedOutput
from pathcast.spark.settings import ModeSettings
from pathcast.spark.sources import COLUMNS
from pathcast.spark.stopping import stopped_by_signals
from pathcast.spark.storage import Storage
from pathcast.spark.subscription_places import place_of
from pathcast.spark.topics import TopicPublisher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pathcast.spark.progress import ProgressReport
    from pathcast.spark.settings import PipelineSettings
    from pathcast.spark.summary import Summary
    from pathcast.spark.workers import Workers

PLAN: Final = "_replay.json"

EARLIEST: Final = -2
"""Offset of a partition that was not there before, as the connector writes it."""

_BOUNDS: Final = ("startingoffsets", "endingoffsets", "startingtimestamp", "failondataloss")
"""Options of the connector, in lower case, that a range takes the place of."""


def batches_between(
    settings: PipelineSettings, first: str | None = None, last: str | None = None
) -> list[int]:
    """The complete micro-batches of a range.

    Args:
        settings: Of the pipeline.
        first: Number of the first, or a time (ISO 8601, UTC unless it says otherwise): those begun
            from then on. None for all from the beginning.
        last: Likewise of the last one, included. None for all to the end.

    Raises:
        ConfigError: A bound is neither, the place is no output, or no micro-batch is in the range.
    """
    output = settings.output.storage
    layout_of(output)
    numbers = committed_batches(output)

    def place(option: str, text: str, bisect: Callable[..., int]) -> int:
        if text.isascii() and text.isdigit():
            return bisect(numbers, int(text))
        try:
            moment = moment_us(text)
        except ValueError as error:
            reason = f"{text!r} is no number of a micro-batch and no time such as 2026-03-01T12:00"
            raise invalid_setting(option, reason) from error
        # Micro-batches follow each other, so the times at which they were begun ascend.
        return bisect(numbers, moment, key=BatchLedger(output, settings.checkpoint).begun_us)

    start = 0 if first is None else place("--from", first, bisect_left)
    end = len(numbers) if last is None else place("--to", last, bisect_right)
    if start >= end:
        there = f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
        reason = f"no complete micro-batch of {output} is between them; complete are {there}"
        raise invalid_setting("--from, --to", reason)
    return numbers[start:end]


def backfill(
    settings: PipelineSettings,
    batches: Sequence[int],
    output: str,
    *,
    only: Sequence[str] = (),
    skip_missing: bool = False,
    progress: ProgressReport | None = None,
    spark: SparkSession | None = None,
    workers: Workers | None = None,
    stop: threading.Event | None = None,
) -> Summary:
    """Answers the messages of micro-batches with the subscriptions of today, into another output.

    Killed or stopped, the same call goes on where it was, also with a range that has become longer.

    Args:
        settings: Of the pipeline.
        batches: Numbers of micro-batches (`batches_between`).
        output: Directory or URL of the new output, opened as that of the pipeline.
        only: Ids of subscriptions; empty for all.
        skip_missing: Whether files that are gone or have changed are left out.
        progress: Who is told how it goes.
        spark: As for `pipeline.run`.
        workers: Likewise.
        stop: Likewise.

    Raises:
        ConfigError: The output is another one, a subscription is not there, or the source is of a
            format that cannot be read by offsets.
        SourceError: Messages are gone that the micro-batches had.
    """
    report = progress or LoggedProgress()
    target = _target(settings, output, only)
    _check_ids(target)
    plan = {
        "output": str(settings.output.storage),
        "batches": list(batches),
        "only": sorted(only),
        "skip_missing": skip_missing,
    }
    known = _plan(target.output.storage, target.checkpoint)
    if known is not None and known != {**plan, "batches": list(batches[: len(known["batches"])])}:
        raise not_its_own(f"{output} is of another replay, {json.dumps(known)}")
    if settings.source.kind == "spark":
        frames = _FramesAgain(settings, batches)
        frames.check()
        target.checkpoint.write_json(PLAN, plan)
        return frames.deliver(target, spark, report, stop or threading.Event())
    last = Journal(target.checkpoint).last
    entries = _entries(settings, batches[last:], skip_missing, report)
    with sole_writer(target.output.storage):
        journal = Journal(target.checkpoint)
        if journal.last != last:
            raise not_its_own(f"another replay has written to {output} meanwhile")
        if known is None and settings.checkpoint.exists(COLUMNS):
            # Columns that are passed through have the types that they had.
            target.checkpoint.write(COLUMNS, settings.checkpoint.read(COLUMNS))
        target.checkpoint.write_json(PLAN, plan)
        for files in entries:
            journal.append(files)
    # No file but those of the journal.
    nothing_new = SourceListing(settings.source.path)
    return run(
        target, progress=report, spark=spark, workers=workers, stop=stop, listing=nothing_new
    )


def redeliver(
    settings: PipelineSettings,
    batches: Sequence[int],
    *,
    only: Sequence[str] = (),
    progress: ProgressReport | None = None,
    spark: SparkSession | None = None,
) -> int:
    """Writes what micro-batches have delivered to the topics again, as their commits say.

    Args:
        settings: Of the pipeline, which may be running.
        batches: Numbers of micro-batches (`batches_between`).
        only: Ids of subscriptions; empty for all.
        progress: Who is told how it goes.
        spark: As for `pipeline.run`.

    Returns:
        How many of these were written; fewer if it was told to stop.

    Raises:
        ConfigError: The pipeline has no topics.
        SourceError: Files of a micro-batch are gone.
        UnavailableError: The brokers were away for minutes.
    """
    if settings.topics is None:
        reason = (
            "a redelivery writes to them, and there are none; the root of a network takes no "
            "message twice, and readers of an output read its rows again: pathcast inbox --after"
        )
        raise invalid_setting("topics", reason)
    report, stop = progress or LoggedProgress(), threading.Event()
    storage = settings.output.storage
    commits = [_readable(storage, Commit.read(storage, number)) for number in batches]
    with (
        tempfile.TemporaryDirectory(prefix="pathcast-replay-") as scratch,
        stopped_by_signals(stop),
        workers_of(settings, spark, None, report) as ready,
    ):
        ready()
        # What the pipeline itself has published stays noted in its own checkpoint.
        place = PublishedOutput(storage, layout_of(storage), Storage(scratch), 0, report.note, stop)
        publisher = TopicPublisher(settings.topics, place, spark, only=only)
        publisher.check()
        for done, commit in enumerate(commits):
            if stop.is_set() or not publisher.publish(commit):
                return done
        return len(commits)


def _target(settings: PipelineSettings, output: str, only: Sequence[str]) -> PipelineSettings:
    """The pipeline that answers again."""
    place = output if "://" in output else str(Path(output).absolute())
    if Storage(place) == Storage(settings.output.storage.place):
        reason = f"{place} is the output of the pipeline itself; name a new one"
        raise invalid_setting("--output", reason)
    chosen = {"only": tuple(only)} if only else {}
    return settings.model_copy(
        update={
            "output": settings.output.model_copy(update={"path": place}),
            "subscriptions": settings.subscriptions.model_copy(update=chosen),
            "mode": ModeSettings(kind="batch"),
            "publish": None,
            "topics": None,
        }
    )


def _check_ids(settings: PipelineSettings) -> None:
    """Refuses ids that no subscription has."""
    wanted = settings.subscriptions
    if not wanted.only:
        return
    with closing(place_of(wanted)) as place:
        missing = sorted({*wanted.only} - {row.id for row in place.rows(wanted.deliver).rows})
        if missing:
            reason = f"no subscription of {place.name} has the id {', '.join(missing)}"
            raise invalid_setting("--subscription", reason)


def _plan(output: Storage, checkpoint: Storage) -> dict[str, Any] | None:
    """The plan of the replay that an output holds; None for a new one.

    Raises:
        ConfigError: It is the output of something else.
    """
    found = checkpoint.find_as(PLAN, dict)
    if found is None and output.exists(LAYOUT):
        reason = f"{output} is the output of a pipeline; name a new one"
        raise invalid_setting("--output", reason)
    return found


def _entries(
    settings: PipelineSettings,
    numbers: Sequence[int],
    skip_missing: bool,
    report: ProgressReport,
) -> list[list[FoundFile]]:
    """The files of micro-batches, without those of which nothing was processed.

    Raises:
        SourceError: Some are gone, or other files now, and are not to be left out.

    Cost: a `stat` a file; elsewhere than in a directory one listing of the place.
    """
    storage, journal = settings.source.storage, Journal(settings.checkpoint)
    source = source_of(settings.checkpoint)
    if source.kind != settings.source.kind:
        raise not_its_own(f"it is that of a source of kind {source.kind}")
    entries, later = dict[int, list[FoundFile]](), list[str]()
    for number in numbers:
        unread = {entry.name for entry in Commit.read(settings.output.storage, number).unread}
        found = entries[number] = []
        for file in journal.entry(number):
            if journal.last_entry(file.name) != number:
                later.append(f"{shown(file.name)} (micro-batch {number})")
            elif file.name not in unread:
                found.append(file)
    there = files_at(storage, [file.name for found in entries.values() for file in found])
    gone = []
    for number, found in entries.items():
        kept = [file for file in found if _is_same(file, there.get(file.name))]
        lost = {file.name for file in found} - {file.name for file in kept}
        gone += [f"{shown(name)} (micro-batch {number})" for name in sorted(lost)]
        entries[number] = kept
    if gone:
        if not skip_missing:
            raise SourceError("replay.gone", what=f"{len(gone):,} files", names=some_of(gone))
        report.note(f"left out, since they are gone or have changed: {some_of(gone)}")
    if later:
        report.note(f"left to the later micro-batch that took them up again: {some_of(later)}")
    return list(entries.values())


def _is_same(file: FoundFile, there: FoundFile | None) -> bool:
    """Whether a file is what it was when it was handed on."""
    return there is not None and (there.size, there.modified_ns) == (file.size, file.modified_ns)


def _readable(output: Storage, commit: Commit) -> Commit:
    """A commit whose files are there: its own, or those into which they were merged.

    Raises:
        SourceError: They are gone.
    """
    files = [file.name for found in commit.files.values() for file in found]
    lost = [name for name in files if not output.exists(name)]
    if not lost:
        return commit
    compaction = last_compaction(output)
    if compaction is None or compaction.through < commit.batch_id:
        what = f"{len(lost):,} files of the output that micro-batch {commit.batch_id} has written"
        raise SourceError("replay.gone", what=what, names=some_of(lost))
    return replace(commit, files=compaction.files)


class _FramesAgain:
    """Messages of Kafka between the offsets that commits tell.

    Raises:
        ConfigError: The format has no offsets that can be read again.
    """

    def __init__(self, settings: PipelineSettings, batches: Sequence[int]) -> None:
        self._source = settings.source
        self._output = settings.output.storage
        self._spark_checkpoint = settings.checkpoint.below("spark")
        self._batches = batches
        if self._source.format != KAFKA:
            reason = f"{self._source.format} cannot be read by offsets again; {KAFKA} can"
            raise invalid_setting("source.format", reason)

    def check(self) -> None:
        """Refuses micro-batches whose offsets nobody knows.

        Raises:
            SourceError: There are such.
        """
        unknown = [str(n) for n in self._batches if not Commit.read(self._output, n).offsets]
        if unknown or not self._begin(self._batches[0]):
            names = some_of(unknown or [f"where {self._batches[0]} begins"])
            raise SourceError("replay.gone", what="offsets of micro-batches", names=names)

    def deliver(
        self,
        target: PipelineSettings,
        spark: SparkSession | None,
        report: ProgressReport,
        stop: threading.Event,
    ) -> Summary:
        """Delivers micro-batch after micro-batch, until told to stop."""
        from pathcast.spark.delivery import Delivery
        from pathcast.spark.workers import SparkWorkers

        with stopped_by_signals(stop), workers_of(target, spark, None, report) as ready:
            workers = ready()
            assert isinstance(workers, SparkWorkers), "frames need a session"
            from pyspark.sql import SparkSession as Session

            session = Session(workers.context)
            report.begin(f"replay: {self._source.format}")
            started = time.monotonic()
            with Delivery.of(target, report, stop) as delivery:
                for place, number in enumerate(self._batches):
                    if stop.is_set():
                        break
                    self._deliver(delivery.batch, session, number, place)
                summary = delivery.end()
            return replace(summary, seconds=time.monotonic() - started)

    def _deliver(self, batch: Any, session: SparkSession, number: int, place: int) -> None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            batch(self._frame(session, number), place)
        except (PySparkException, Py4JJavaError) as error:
            told = lost_offsets(error) or fault_of(error, KAFKA)
            what = f"offsets of micro-batch {number}"
            raise SourceError("replay.gone", what=what, names=told) from error

    def _frame(self, session: SparkSession, number: int) -> DataFrame:
        ending = json.loads(Commit.read(self._output, number).offsets)
        before = json.loads(self._begin(number))
        starting = {
            topic: {part: before.get(topic, {}).get(part, EARLIEST) for part in parts}
            for topic, parts in ending.items()
        }
        options = {
            name: value
            for name, value in self._source.options.items()
            if not name.lower().startswith(_BOUNDS)
        }
        options |= {
            "startingOffsets": json.dumps(starting),
            "endingOffsets": json.dumps(ending),
            "failOnDataLoss": "true",
        }
        reader = session.read.format(KAFKA).options(**options)
        return reader.load().selectExpr(*self._source.select)

    def _begin(self, number: int) -> str:
        """Where a micro-batch begins: where the one before ends; empty where nobody knows."""
        before = [each for each in committed_batches(self._output) if each < number]
        if before:
            return Commit.read(self._output, before[-1]).offsets
        try:
            found = self._spark_checkpoint.read("sources/0/0").decode() if number == 1 else ""
        except FileNotFoundError:
            return ""
        # Before it stand a byte and a version of Spark's own.
        return found[found.find("{") :] if "{" in found else ""

"""Deliveries of any frame that Spark reads: `Delivery`.

    frame -> mapInArrow -> files, named by a commit -> Delta tables, network of brokers

It stands between a frame and an output as `pathcast run` stands between files and one: the same
tasks write the same files, and the commit is the log. A message passes the JVM once, on its way to
a Python worker; no delivery does.

Example:
    >>> with Delivery("subscriptions.tsv", "delivered") as delivery:        # doctest: +SKIP
    ...     delivery.batch(spark.read.table("orders"), batch_id=0)
    >>> with Delivery("subscriptions.tsv", "streamed") as delivery:         # doctest: +SKIP
    ...     delivery.stream(kafka, checkpoint="checkpoint").awaitTermination()

It reads no source itself.
"""

from __future__ import annotations

import json
import pickle
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from pathcast.errors import PathcastError, invalid_setting
from pathcast.settings import checked_settings
from pathcast.spark.frame_tasks import FrameReader, FrameTask
from pathcast.spark.frames import (
    check_columns_of,
    classic_context,
    extra_of,
    message_inputs,
    prepare_workers,
)
from pathcast.spark.generations import Generation
from pathcast.spark.ledger import CheckpointSource, Commit, not_its_own, sole_writer
from pathcast.spark.micro_batches import MicroBatches
from pathcast.spark.progress import LoggedProgress
from pathcast.spark.settings import PipelineSettings
from pathcast.spark.storage import is_url
from pathcast.spark.summary import Summary
from pathcast.spark.tasks import TaskReport, raise_errors
from pathcast.spark.writing import OutputTarget

if TYPE_CHECKING:
    import os

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from pathcast.spark.progress import ProgressReport

KIND: Final = "spark"
"""`source.kind` of frames."""

BATCHES: Final = "batches"
"""Stands for the id of a query where the caller numbers the batches of an output."""

BATCH_ID_MAX: Final = 2**31 - 2
"""Of a micro-batch, as Spark counts them; one more is written to its rows."""

QUERY_ID: Final = "sql.streaming.queryId"
"""Local property that Spark sets while it calls the function of `foreachBatch`."""

Section: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
"""A path, or the keys of a section of a pipeline's file."""


class Delivery:
    """Delivers the messages of frames into one output, each micro-batch exactly once.

    An output belongs to one streaming query, or to batches that the caller numbers; batches of
    another one are refused. The rows of micro-batch N have `batch_id` N + 1. Numbers ascend,
    with or without gaps: one below the last that is not done itself is refused. Batches of several
    threads wait for each other.

    Args:
        subscriptions: Who wants what: a file or folder, or the keys of `[subscriptions]`. Looked
            at before each micro-batch.
        output: Directory or URL, or the keys of `[output]`.
        message: Column with the message, binary or string.
        id: Column with its id, not binary; a digest of its bytes when not given. Columns `code`,
            `reason` and `bytes` of a frame are read as `deliver` does.
        columns: Columns that are passed through.
        time: Where a message says when it was made, as `source.time`.
        tombstones: Whether a row whose message is null is none, as `source.tombstones`.
        progress: Who is told how it goes; the logger "pathcast.spark" when not given.
        sections: Keys of further sections: `engine`, `network`, `publish`.

    Attributes:
        error: What a micro-batch of `stream` was ended by last; Spark hands on the text of it.
        done: Micro-batches that it has answered.

    Raises:
        ConfigError: A setting cannot be used.
    """

    def __init__(
        self,
        subscriptions: Section,
        output: Section,
        *,
        message: str = "message",
        id: str | None = None,
        columns: Sequence[str] = (),
        time: str | None = None,
        tombstones: bool = False,
        progress: ProgressReport | None = None,
        **sections: Mapping[str, Any],
    ) -> None:
        source = {
            "kind": KIND,
            "message_column": message,
            "columns": tuple(columns),
            "time": time,
            "tombstones": tombstones,
            **({} if id is None else {"id_column": id}),
        }
        values = {
            "source": source,
            "subscriptions": _keys(subscriptions),
            "output": _keys(output),
            **sections,
        }
        self._set(checked_settings(PipelineSettings, values), progress, threading.Event())

    @classmethod
    def of(
        cls, settings: PipelineSettings, progress: ProgressReport, stop: threading.Event
    ) -> Self:
        """The delivery of a pipeline's file whose source is a frame."""
        delivery = cls.__new__(cls)
        delivery._set(settings, progress, stop)
        return delivery

    def _set(
        self,
        settings: PipelineSettings,
        progress: ProgressReport | None,
        stop: threading.Event,
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._stop = stop
        self.error: Exception | None = None
        self.done = 0
        self._lock = threading.RLock()
        self._open: tuple[str, MicroBatches] | None = None
        self._closing = ExitStack()
        self._is_closed = False

    def batch(self, df: DataFrame, batch_id: int = 0) -> Commit:
        """Delivers a frame as a batch of a number, or does nothing if that number is done.

        Args:
            df: Messages.
            batch_id: Names the batch as nothing else: after a kill the call is made again. Numbers
                ascend, from 0 up to `BATCH_ID_MAX`.

        Returns:
            What came of it, now or before.

        Raises:
            ConfigError: A column is missing, the subscriptions cannot be read, the output belongs
                to something else, or a batch of a higher number is done and this one is not.
        """
        return self._micro_batch(df, batch_id, BATCHES)

    def stream(
        self,
        df: DataFrame,
        checkpoint: str | os.PathLike[str],
        trigger: Mapping[str, Any] | None = None,
    ) -> StreamingQuery:
        """Starts a query that delivers what comes.

        Args:
            df: Messages of a streaming source.
            checkpoint: Of Spark; it belongs to the output: delete both or neither.
            trigger: Arguments of `DataStreamWriter.trigger`.

        Raises:
            ConfigError: A column is missing.
        """
        self._check(df)
        path = str(checkpoint)
        each = partial(self._streamed, _directory_of(path))
        writer = df.writeStream.foreachBatch(each).option("checkpointLocation", path)
        return (writer.trigger(**trigger) if trigger else writer).start()

    def _streamed(self, checkpoint: Path | None, df: DataFrame, batch_id: int) -> None:
        if self._stop.is_set():
            raise InterruptedError("the run is told to stop")
        try:
            offsets = _offsets_of(checkpoint, batch_id)
            self._micro_batch(df, batch_id, _id_in(checkpoint), offsets)
        except Exception as error:
            self.error = error
            raise

    def micro_batch(self, df: DataFrame, batch_id: int, query: str | None = None) -> Commit:
        """Delivers a micro-batch, for a function of one's own in `foreachBatch`.

        Args:
            df: Its messages.
            batch_id: As Spark gives it.
            query: Id of the streaming query; that of the one which calls when not given.

        Returns:
            What came of it. A batch that is done is not answered again: what follows its commit is
            made up for.

        Raises:
            ConfigError: As `batch`; also where no query calls and none is named.
        """
        return self._micro_batch(df, batch_id, query)

    def _micro_batch(
        self, df: DataFrame, batch_id: int, query: str | None, offsets: str = ""
    ) -> Commit:
        self._check(df)
        if not 0 <= batch_id <= BATCH_ID_MAX:
            raise invalid_setting("batch_id", f"{batch_id} is not between 0 and {BATCH_ID_MAX}")
        with self._lock:
            batches = self.open(df, query or _query_of(df.sparkSession))
            number, output, through = batch_id + 1, batches.output, batches.history.through
            commit = batches.ledger.commit(number)
            if commit is not None:
                if offsets and commit.offsets and commit.offsets != offsets:
                    raise not_its_own(
                        f"micro-batch {batch_id} of {output} holds {commit.offsets}, not "
                        f"{offsets}: the checkpoint is an older one"
                    )
                batches.catch_up()
                return commit
            if number <= through:
                # Compactions and Delta tables stand for all numbers up to one: rows would be lost.
                done = f"{batch_id} is not done, and {through - 1} of {output} is"
                raise invalid_setting("batch_id", f"{done}: numbers ascend; give a higher one")
            commit = batches.complete(number, (), partial(self._answered, batches, df), offsets)
            batches.publish(commit)
            self.done += 1
            return commit

    def _answered(
        self, batches: MicroBatches, df: DataFrame, generation: Generation, target: OutputTarget
    ) -> tuple[Sequence[TaskReport], Mapping[str, PathcastError]]:
        """Runs the tasks of a micro-batch, one a partition of its frame."""
        source, extra = self._settings.source, batches.extra
        inputs = message_inputs(df, source.message_column, self._id_of(df))
        inputs += [F.col(field.name).cast(from_arrow_type(field.type)) for field in extra]
        prepare_workers(df.sparkSession, is_shipped=self._settings.spark.ship)
        task = FrameTask(
            batches.task(generation, target, FrameReader(extra)), source.has_tombstones
        )
        rows = df.select(*inputs).mapInArrow(task, "report binary").collect()
        reports = [pickle.loads(row.report) for row in rows]
        raise_errors(reports)
        return reports, {}

    def end(self) -> Summary:
        """Waits for what runs beside; tells what was delivered since the first batch."""
        if self._open is None:
            return Summary(output=str(self._settings.output.storage))
        return self._open[1].end()

    def close(self) -> None:
        """Gives the output back, for others to write to; it delivers nothing afterwards.

        A micro-batch that another thread is at is ended first.
        """
        with self._lock:
            self._is_closed = True
            self._open = None
            self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> tuple[PipelineSettings, ProgressReport | None]:
        # Its state is in files: wherever Spark calls it, it opens them.
        return self._settings, self._progress

    def __setstate__(self, state: tuple[PipelineSettings, ProgressReport | None]) -> None:
        self._set(*state, threading.Event())

    def open(self, df: DataFrame, query: str) -> MicroBatches:
        """Opens the output for a query; makes up, once, for what a kill has left behind.

        Raises:
            ConfigError: The output belongs to something else, or this was closed.
        """
        settings, output = self._settings, self._settings.output.storage
        with self._lock, ExitStack() as opening:
            if self._is_closed:
                reason = f"the delivery into {output} is closed; make a new one"
                raise invalid_setting("output.path", reason)
            if self._open is not None:
                known, batches = self._open
                if known != query:
                    raise not_its_own(f"{output} is written by {known}, not by {query}")
                return batches
            opening.enter_context(sole_writer(output))
            report = self._progress or LoggedProgress()
            source = CheckpointSource(KIND, query)
            batches = MicroBatches(settings, source, report, self._stop, spark=df.sparkSession)
            opening.callback(batches.book.place.close)
            batches.learn_columns(partial(extra_of, df, settings.source.columns))
            batches.pinning.begin()
            batches.catch_up()
            self._closing, self._open = opening.pop_all(), (query, batches)
            return batches

    def _id_of(self, df: DataFrame) -> str | None:
        source = self._settings.source
        is_named = "id_column" in source.model_fields_set or source.id_column in df.columns
        return source.id_column if is_named else None

    def _check(self, df: DataFrame) -> None:
        source = self._settings.source
        check_columns_of(df, source.message_column, self._id_of(df), source.columns)


def _keys(section: Section) -> Mapping[str, Any]:
    return section if isinstance(section, Mapping) else {"path": section}


def _query_of(spark: SparkSession) -> str:
    """The id of the streaming query that calls.

    Raises:
        ConfigError: None does, or Spark runs elsewhere (Connect) and does not tell.
    """
    context = classic_context(spark)
    found = context.getLocalProperty(QUERY_ID) if context is not None else None
    if found is None:
        reason = "no streaming query calls in this thread; say which one it is"
        raise invalid_setting("query", reason)
    return str(found)


def _directory_of(checkpoint: str) -> Path | None:
    """The directory of this machine that a checkpoint is; None where it lies elsewhere."""
    # Hadoop decodes no percent signs.
    named = re.fullmatch(r"file:(?://[^/]*)?(/.*)", checkpoint)
    if named is not None:
        return Path(named[1])
    return None if is_url(checkpoint) else Path(checkpoint)


def _id_in(checkpoint: Path | None) -> str | None:
    """The id of the query that a checkpoint of Spark is of; None where it cannot be read here."""
    if checkpoint is None or not checkpoint.is_dir():
        return None
    return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])


def _offsets_of(checkpoint: Path | None, batch_id: int) -> str:
    """The offsets of a micro-batch in Spark's checkpoint; empty where it cannot be read here."""
    if checkpoint is None or not checkpoint.is_dir():
        return ""
    # The format's version, what Spark says of the batch, then a line a source.
    lines = (checkpoint / "offsets" / str(batch_id)).read_text(encoding="utf-8").splitlines()
    return " ".join(lines[2:])

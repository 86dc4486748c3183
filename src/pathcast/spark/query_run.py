"""`pathcast run` of a source that Spark itself reads: `source.format`, such as Kafka.

    readStream.format(...) -> select -> `Delivery` -> output

One streaming query; its checkpoint lies beside that of the output. In mode "batch" it ends when
what was there at the start is done. A query that Spark has ended, as for a broker that was away, is
started again, and that is said; one that ends `RESTARTS_MAX` times without a micro-batch between
stays ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pathcast.errors import PathcastError, SourceError, SparkLostError, invalid_setting
from pathcast.spark.connectors import KAFKA, fault_of, lost_offsets, offsets_between
from pathcast.spark.delivery import Delivery
from pathcast.spark.workers import SparkWorkers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from pathcast.spark.progress import ProgressReport
    from pathcast.spark.settings import PipelineSettings
    from pathcast.spark.summary import Summary
    from pathcast.spark.workers import Workers

RESTARTS_MAX: Final = 5
"""Starts of a query that ended before it had done anything, one after the other."""

PAUSE_SECONDS: Final = 1.0
"""Before a query is started again; it doubles each time."""

LOOK_SECONDS: Final = 0.2
"""How often it is seen whether a query has ended, or is to stop."""


def run_query(
    settings: PipelineSettings,
    ready: Callable[[], Workers],
    report: ProgressReport,
    stop: threading.Event,
) -> Summary:
    """Runs a pipeline whose source Spark reads, to its end or until it is stopped.

    Args:
        settings: Its kind of source is "spark".
        ready: Gives the workers of the context that is used, once it is there.
        report: Who is told how it goes.
        stop: Set it to stop after the current micro-batch.

    Raises:
        ConfigError: Spark does not know the format or refuses an option, a column is missing, or
            the output belongs to another query.
        SourceError: Offsets are gone that were not read.
        SparkLostError: The JVM has ended, or the query ends again and again.
    """
    workers = ready()
    assert isinstance(workers, SparkWorkers), "a query needs a session"
    spark = SparkSession(workers.context)
    df = _frame(spark, settings)
    format = settings.source.format or ""
    started = time.monotonic()
    report.begin(f"{settings.mode.kind}: {settings.source.format}")
    failures = 0
    with Delivery.of(settings, report, stop) as delivery:
        while not stop.is_set():
            done = delivery.done
            query = _query(delivery, df, settings)
            fault = _ended(query, delivery, workers, stop, format, report)
            if fault is None:
                break
            failures = 1 if delivery.done > done else failures + 1
            reason = f"the query has ended: {fault}"
            if failures > RESTARTS_MAX:
                raise SparkLostError("spark.lost", reason=reason)
            report.note(f"{reason}; it is started again ({failures} of {RESTARTS_MAX})")
            stop.wait(PAUSE_SECONDS * 2 ** (failures - 1))
        return replace(delivery.end(), seconds=time.monotonic() - started)


def _frame(spark: SparkSession, settings: PipelineSettings) -> DataFrame:
    source = settings.source
    try:
        reader = spark.readStream.format(source.format or "").options(**source.options)
        if source.row_schema is not None:
            reader = reader.schema(source.row_schema)
        return reader.load(source.path or None).selectExpr(*source.select)
    except (PySparkException, Py4JJavaError) as error:
        reason = fault_of(error, source.format or "")
        raise invalid_setting("source.format", reason) from error


def _query(delivery: Delivery, df: DataFrame, settings: PipelineSettings) -> StreamingQuery:
    """Starts the query. Its output is opened at once, whether or not a message comes."""
    mode = settings.mode
    every = {"processingTime": f"{max(0.0, mode.seconds_between_batches)} seconds"}
    trigger = {"availableNow": True} if mode.kind == "batch" else every
    query = delivery.stream(df, settings.checkpoint.url("spark"), trigger)
    try:
        delivery.open(df, query.id)
    except BaseException:
        query.stop()
        raise
    return query


def _ended(
    query: StreamingQuery,
    delivery: Delivery,
    workers: SparkWorkers,
    stop: threading.Event,
    format: str,
    report: ProgressReport,
) -> str | None:
    """Waits for the end of a query; why it ended, None if it was to."""
    delivery.error = None
    try:
        while query.isActive:
            behind = _offsets_behind(query) if format == KAFKA else None
            if behind is not None:
                report.lag(behind)
            # A micro-batch that has begun is ended; the next one does nothing (`Delivery`).
            if not stop.wait(LOOK_SECONDS):
                continue
            if query.status["isTriggerActive"]:
                time.sleep(LOOK_SECONDS)
            else:
                query.stop()
        fault = delivery.error or query.exception()
        if isinstance(fault, PathcastError):
            raise fault
        if fault is None or stop.is_set():
            return None
        lost = lost_offsets(fault)
        if lost is not None:
            raise SourceError("offsets.lost", reason=lost) from fault
        return fault_of(fault, format)
    except PathcastError:
        raise
    except Exception:
        workers.check()
        raise


def _offsets_behind(query: StreamingQuery) -> int | None:
    """Offsets of Kafka that were there and not read at the last trigger; None where none told."""
    progress = query.lastProgress
    told = [] if progress is None else [(s.endOffset, s.latestOffset) for s in progress.sources]
    if not told or any(latest in (None, "", "null") for _, latest in told):
        return None
    return sum(offsets_between(end, latest) for end, latest in told)

"""The floor: the job of a pipeline, with tasks that read the messages and do nothing else.

Workers that were started in the same way, the same files in the same shares; what a pipeline takes
above it is what delivering costs. It also asks what a task costs the driver.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pathcast.spark.files import NO_COLUMNS, FileReader, Unit
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.spark.sources import listing_of, reader_of, shares_of

if TYPE_CHECKING:
    from pyspark import SparkContext

    from pathcast.errors import PathcastError
    from pathcast.spark.workers import Workers

DISPATCH_TASKS = (2, 50, 200)
"""Numbers of tasks of jobs that do nothing."""


@dataclass(frozen=True)
class FloorTimes:
    """What was measured.

    Attributes:
        first_seconds: The first job in workers that have just been started, as in a run.
        again_seconds: The same once more.
        messages: Messages that the tasks have seen.
        dispatch: Number of tasks, and seconds of a job of so many that do nothing.
    """

    first_seconds: float
    again_seconds: float
    messages: int
    dispatch: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class ReadingTask:
    """Counts the messages of its share."""

    reader: FileReader

    def __call__(self, units: Iterable[Unit]) -> Iterator[int]:
        """How many messages there are."""
        unread: dict[str, PathcastError] = {}
        yield sum(len(batch) for batch, _ in self.reader.read(list(units), unread))
        for error in unread.values():
            raise error


def measure_floor(
    settings: PipelineSettings, workers: Workers, job: Callable[[int], object]
) -> FloorTimes:
    """The floor of a pipeline.

    Args:
        settings: The pipeline.
        workers: Who runs its tasks.
        job: Runs so many tasks that do nothing.
    """
    (first, messages), (again, _) = _job_seconds(settings, workers), _job_seconds(settings, workers)
    return FloorTimes(first, again, messages, dispatch_seconds(job, DISPATCH_TASKS))


def _job_seconds(settings: PipelineSettings, workers: Workers) -> tuple[float, int]:
    """Seconds of a job that reads everything, from the listing on, and the messages it saw."""
    started = time.perf_counter()
    source = settings.source
    files, _ = listing_of(source).look(set())
    reader = reader_of(source, settings.engine.message_limits(), NO_COLUMNS)
    units = [unit for file in files for unit in reader.units(file)]
    messages = sum(workers.run(ReadingTask(reader), shares_of(units, workers.count)))
    return time.perf_counter() - started, messages


def dispatch_seconds(
    job: Callable[[int], object], tasks: Sequence[int]
) -> tuple[tuple[int, float], ...]:
    """Numbers of tasks, and seconds of a job of so many that do nothing; one before is not timed.

    Example:
        >>> [number for number, seconds in dispatch_seconds(lambda tasks: None, (1, 3))]
        [1, 3]
    """
    job(tasks[0])
    found = []
    for number in tasks:
        started = time.perf_counter()
        job(number)
        found.append((number, time.perf_counter() - started))
    return tuple(found)


def jvm_job(context: SparkContext) -> Callable[[int], object]:
    """A job whose tasks no Python worker sees: what they take is the driver's.

    The few cores of a local session would have to run hundreds of Python tasks one after the other,
    and that is no cost of a driver whose workers are many.
    """
    return lambda tasks: context._jsc.parallelize(list(range(tasks)), tasks).count()


def main() -> None:
    """The floor of the pipeline file that the command line names, as JSON."""
    from pathcast.spark.session import spark_workers

    settings = load_settings(sys.argv[1])
    with spark_workers(settings.spark.master, settings.spark.conf) as starting:
        workers = starting.result()
        found = measure_floor(settings, workers, jvm_job(workers.context))
    print(json.dumps(asdict(found)))

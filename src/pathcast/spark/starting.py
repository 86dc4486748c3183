"""Spark, started beside other work: the JVM, its context, and workers that know the engine.

It takes 4 to 6 s, most of it in other processes; meanwhile the subscriptions are read and compiled.
A context that this process has already is used as it is, and runs on afterwards.

Example:
    >>> pipeline = Pipeline(settings)                                       # doctest: +SKIP
    >>> with spark_workers("local[2]") as starting:                         # doctest: +SKIP
    ...     pipeline.begin()
    ...     pipeline.run(starting.result())
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from pyspark import SparkContext

from pathcast.spark.session import end_context, local_context, running_context
from pathcast.spark.shipping import ship
from pathcast.spark.workers import SparkWorkers


@contextmanager
def spark_workers(
    master: str,
    conf: Mapping[str, str] | None = None,
    *,
    is_shipped: bool = True,
    context: SparkContext | None = None,
) -> Iterator[Future[SparkWorkers]]:
    """Workers of a context that is there, or of one of their own, which is stopped in the end.

    Args:
        master: Spark's master URL.
        conf: Settings that go over those of `session.SETTINGS`.
        is_shipped: Whether workers of a cluster are sent Pathcast's own files.
        context: Is used and left running; that of this process when not given.

    Yields:
        The workers, once they are there; `result()` raises what kept them from starting.
    """
    running = context or running_context()
    if running is not None:
        if is_shipped:
            ship(running)
        ready: Future[SparkWorkers] = Future()
        ready.set_result(SparkWorkers(running))
        yield ready
        return
    contexts: list[SparkContext] = []

    def start() -> SparkWorkers:
        started = local_context(master, conf=conf, is_shipped=is_shipped)
        contexts.append(started)
        workers = SparkWorkers(started)
        workers.run(_ready, [[0]] * workers.count)
        return workers

    with ThreadPoolExecutor(1, "spark") as thread:
        starting = thread.submit(start)
        # Whoever gives up early waits until there is something to stop.
        try:
            yield starting
        finally:
            starting.exception()
            for started in contexts:
                end_context(started)


def _ready(units: Iterable[int]) -> Iterator[int]:
    """A task that leaves a worker with the engine and the readers in its memory."""
    import pathcast.spark.sources
    import pathcast.spark.tasks  # noqa: F401

    return iter([sum(units)])

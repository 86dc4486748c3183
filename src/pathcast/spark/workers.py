"""Workers that run tasks: the executors of a Spark session, or this process.

Example:
    >>> InProcess().run(lambda units: iter([sum(units)]), [[1, 2], [3]])
    [3, 3]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from pathcast.errors import SparkLostError
from pathcast.spark.shipping import prepare_environment
from pathcast.spark.unwritable import unwritable_in

if TYPE_CHECKING:
    from pyspark import SparkContext

UnitT = TypeVar("UnitT")
ReportT = TypeVar("ReportT")


class Workers(ABC):
    """Something that runs tasks side by side."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many tasks run at the same time."""

    @abstractmethod
    def run(
        self,
        task: Callable[[Iterable[UnitT]], Iterator[ReportT]],
        shares: Sequence[Sequence[UnitT]],
    ) -> list[ReportT]:
        """Runs a task on every share; what they gave, of one attempt each, in the order of shares.

        A share may be attempted several times, and attempts may overlap; what counts is what is
        returned here.
        """

    def check(self) -> None:
        """Returns if tasks can be run.

        Raises:
            SparkLostError: Whoever runs them is gone.
        """
        return


class SparkWorkers(Workers):
    """The executors of a context. Tasks are pickled; what they return is a few hundred bytes."""

    def __init__(self, context: SparkContext) -> None:
        self.context = context
        prepare_environment(context)

    @property
    def count(self) -> int:
        """Cores of the context.

        Raises:
            SparkLostError: The JVM has ended, or somebody has stopped the context.
        """
        with self._checked():
            return int(self.context.defaultParallelism)

    def run(
        self,
        task: Callable[[Iterable[UnitT]], Iterator[ReportT]],
        shares: Sequence[Sequence[UnitT]],
    ) -> list[ReportT]:
        """Run a task on every share, in one job with a partition a share.

        Raises:
            SparkLostError: The JVM has ended, or somebody has stopped the context.
            DiskError: A directory of Spark cannot be written.
        """
        with self._checked():
            partitions = self.context.parallelize(shares, len(shares)).flatMap(_units)
            reports: list[ReportT] = partitions.mapPartitions(task).collect()
        return reports

    def check(self) -> None:
        """Ask the JVM whether the context runs. Cost: less than a millisecond."""
        reason = _fault_of(self.context)
        if reason is not None:
            raise SparkLostError("spark.lost", reason=reason)

    @contextmanager
    def _checked(self) -> Iterator[None]:
        """Replaces an exception of Spark with the error that says what is wrong with it."""
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Exception as error:
            self.check()
            told = unwritable_in(str(error)) if isinstance(error, Py4JJavaError | OSError) else None
            if told is not None:
                raise told from error
            raise


class InProcess(Workers):
    """One task after another, here: for tests, and for a look without Spark."""

    count = 2

    def run(
        self,
        task: Callable[[Iterable[UnitT]], Iterator[ReportT]],
        shares: Sequence[Sequence[UnitT]],
    ) -> list[ReportT]:
        """Run a task on every share, one after another."""
        return [report for share in shares for report in task(share)]


def _fault_of(context: SparkContext) -> str | None:
    """Why a context runs no jobs any more; None if it does."""
    from py4j.protocol import Py4JError

    jvm = context._jsc
    if jvm is None:
        return "its context was stopped"
    try:
        return "its context was stopped" if jvm.sc().isStopped() else None
    except (Py4JError, OSError) as error:
        process = getattr(type(context)._gateway, "proc", None)
        code = None if process is None else process.poll()
        ended = "" if code is None else f", with exit code {code}"
        return f"the JVM does not answer ({type(error).__name__}){ended}"


def _units(share: Sequence[UnitT]) -> Sequence[UnitT]:
    return share

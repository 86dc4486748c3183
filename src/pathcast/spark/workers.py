"""Who runs tasks: the executors of a Spark session, or this process.

Example:
    >>> InProcess().run(lambda units: iter([sum(units)]), [[1, 2], [3]])
    [3, 3]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext

UnitT = TypeVar("UnitT")
ReportT = TypeVar("ReportT")


class Workers(Protocol):
    """Something that runs tasks side by side."""

    @property
    def count(self) -> int:
        """How many tasks run at the same time."""

    def run(
        self,
        task: Callable[[Iterable[UnitT]], Iterator[ReportT]],
        shares: Sequence[Sequence[UnitT]],
    ) -> list[ReportT]:
        """Runs a task on every share; what they gave, of one attempt each, in the order of shares.

        A share may be attempted several times, and attempts may overlap; what counts is what is
        returned here.
        """


class SparkWorkers:
    """The executors of a context. Tasks are pickled; what they return is a few hundred bytes."""

    def __init__(self, context: SparkContext) -> None:
        self.context = context

    @property
    def count(self) -> int:
        """Cores of the context."""
        return int(self.context.defaultParallelism)

    def run(
        self,
        task: Callable[[Iterable[UnitT]], Iterator[ReportT]],
        shares: Sequence[Sequence[UnitT]],
    ) -> list[ReportT]:
        """See `Workers`. One job, one partition a share."""
        partitions = self.context.parallelize(shares, len(shares)).flatMap(_units)
        reports: list[ReportT] = partitions.mapPartitions(task).collect()
        return reports


class InProcess:
    """One task after another, here: for tests, and for a look without Spark."""

    count = 2

    def run(
        self,
        task: Callable[[Iterable[UnitT]], Iterator[ReportT]],
        shares: Sequence[Sequence[UnitT]],
    ) -> list[ReportT]:
        """See `Workers`."""
        return [report for share in shares for report in task(share)]


def _units(share: Sequence[UnitT]) -> Sequence[UnitT]:
    return share

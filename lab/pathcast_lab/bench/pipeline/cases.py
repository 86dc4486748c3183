"""What was measured of each case, raw, and its figures.

Example:
    >>> batch = BatchTimes(
    ...     seconds=2.0, tasks=2, files=1, messages=100, bytes=900_000, matches=400,
    ...     deliveries=400, stages={"open": 0.2, "read": 0.4, "answer": 1.0, "write": 0.8},
    ...     written_files=4, written_bytes=50_000,
    ... )
    >>> run = RunTimes(2, 6.0, 2.1, (batch,))
    >>> case = DeliveryCase(
    ...     case="matches, 2 cores", queries=10, cores=2, messages=100, counted="deliveries",
    ...     found=400, engines={"kernel, 1 thread": (EnginePass(10**9, 400, {}),)}, bound=None,
    ...     floors=(FloorTimes(0.5, 0.4, 100, ()),), runs=(run,),
    ... )
    >>> {figure.name: figure.spread.median for figure in case.measures()}["batch by floor"]
    4.0

A figure of one run is kept for each round: the median is of figures, not a figure of medians.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pathcast.spark.tasks import STAGES
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.pipeline.engines import EnginePass
from pathcast_lab.bench.pipeline.floor import FloorTimes
from pathcast_lab.bench.pipeline.runner import BatchTimes, RunTimes
from pathcast_lab.bench.timing import Spread

__all__ = [
    "BatchTimes",
    "DeliveryCase",
    "EnginePass",
    "FilesCase",
    "FloorTimes",
    "RunTimes",
    "figures_of",
]

BENCHMARK = "pipeline"


def figures_of(
    case: str, queries: int, messages: int
) -> Callable[[str, str, Sequence[float]], Measure]:
    """What makes the figures of a case."""

    def figure(name: str, unit: str, values: Sequence[float]) -> Measure:
        return Measure(BENCHMARK, case, name, unit, Spread.of(values), queries, messages)

    return figure


@dataclass(frozen=True, kw_only=True)
class DeliveryCase:
    """A run, beside the engine without Spark and the job that only reads.

    Attributes:
        case: Its name.
        queries: Subscriptions.
        cores: Of the session.
        messages: Messages of a run.
        counted: What has to be right, "deliveries" (rows of the inboxes) or "matches".
        found: How many of these a run has to give, and gave.
        engines: Name -> passes, by round, of the engine in one process.
        bound: Which of them, with the floor, the batch is held against; None for none.
        floors: By round.
        runs: By round.
    """

    case: str
    queries: int
    cores: int
    messages: int
    counted: str
    found: int
    engines: Mapping[str, tuple[EnginePass, ...]]
    bound: str | None
    floors: tuple[FloorTimes, ...]
    runs: tuple[RunTimes, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures."""
        figure = figures_of(self.case, self.queries, self.messages)
        for name, passes in self.engines.items():
            yield figure(name, "s", [one.total_ns / 1e9 for one in passes])
            for part in passes[0].parts_ns:
                each = [one.parts_ns[part] / self.messages / 1e3 for one in passes]
                yield figure(f"{name}: {part}", "us/message", each)
        floors = [floor.first_seconds for floor in self.floors]
        batches = [run.batch_seconds for run in self.runs]
        yield figure("floor", "s", floors)
        yield figure("floor, again", "s", [one.again_seconds for one in self.floors])
        yield figure("batch", "s", batches)
        yield figure("whole command", "s", [run.whole_seconds for run in self.runs])
        yield figure(
            "command over batch", "s", [r.whole_seconds - r.batch_seconds for r in self.runs]
        )
        yield figure("batch by floor", "x floor", _ratios(batches, floors))
        if self.bound is not None:
            bounds = [
                floor + one.total_ns / 1e9
                for floor, one in zip(floors, self.engines[self.bound], strict=True)
            ]
            yield figure("batch by bound", f"x ({self.bound} + floor)", _ratios(batches, bounds))
        yield figure("messages", "1/s", [self.messages / seconds for seconds in batches])
        yield figure(self.counted, "1/s", [self.found / seconds for seconds in batches])
        yield figure(f"{self.counted} a message", "", [self.found / self.messages])
        yield from self._stages(figure)
        written = [run.total("written_bytes") for run in self.runs]
        yield figure("written", "B/message", [size / self.messages for size in written])
        yield figure(
            "written in a batch", "MB/s", _ratios([size / 1e6 for size in written], batches)
        )

    def _stages(self, figure: Callable[[str, str, Sequence[float]], Measure]) -> Iterator[Measure]:
        """Where the time goes: in a task, and in none."""
        for stage in STAGES:
            if stage == "open":
                yield figure(
                    stage, "s/task", [run.stage(stage) / run.total("tasks") for run in self.runs]
                )
            else:
                each = [run.stage(stage) / self.messages * 1e6 for run in self.runs]
                yield figure(stage, "us/message of a core", each)
        outside = [run.outside_tasks for run in self.runs]
        yield figure("driver, commit", "s", outside)


@dataclass(frozen=True, kw_only=True)
class FilesCase:
    """The same messages as single files and in Parquet, in turns."""

    case: str
    queries: int
    messages: int
    files: tuple[RunTimes, ...]
    parquet: tuple[RunTimes, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures; listing the files is part of them."""
        figure = figures_of(self.case, self.queries, self.messages)
        files = [run.seconds for run in self.files]
        parquet = [run.seconds for run in self.parquet]
        yield figure("in Parquet", "s", parquet)
        yield figure("as files", "s", files)
        yield figure("files by Parquet", "x Parquet", _ratios(files, parquet))
        each = [run.stage("read") / self.messages * 1e6 for run in self.files]
        yield figure("read, as files", "us/message of a core", each)


def _ratios(values: Sequence[float], floors: Sequence[float]) -> list[float]:
    return [value / floor for value, floor in zip(values, floors, strict=True)]

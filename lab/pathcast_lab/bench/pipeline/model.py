"""What more workers would do: a model of a micro-batch, fitted to measured ones.

    seconds of a micro-batch = driver + max(work / workers, bytes / storage)
    driver = batch + file x files + (task + report) x workers
    work   = message x messages + task_file x files

The driver's part is what no worker takes off it: the journal, one task to send to each worker and
one report of it to take in, the commit. Everything in it is measured on this machine, beginning
with the second micro-batch of a run (in the first, workers also open the subscriptions).
What the storage gives cannot be measured here; it is an assumption of the definition.

Example:
    >>> model = Model(
    ...     start=4.0, first=1.0, open=0.1, batch=0.05, file=0.0, task=0.005, report=0.005,
    ...     message=0.0001, task_file=0.0, message_bytes=10_000.0,
    ... )
    >>> ask = ModelQuestion(
    ...     workers=(10, 100), messages=100_000, files=1, storage_bytes_a_second=1e10
    ... )
    >>> forecast(model, ask, 10).bound, round(forecast(model, ask, 10).seconds, 2)
    ('cores', 1.15)
    >>> forecast(model, ask, 100).bound
    'tasks of the driver'

It runs nothing: `fit` takes what a record holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Self

import numpy as np

from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.pipeline.cases import BENCHMARK, figures_of
from pathcast_lab.bench.pipeline.definition import ModelQuestion
from pathcast_lab.bench.pipeline.runner import BatchTimes, RunTimes
from pathcast_lab.bench.timing import Spread

WORK = ("read", "answer", "write")
"""Stages that grow with the messages."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Costs in seconds; see the formula above.

    Attributes:
        start: Before the first micro-batch and after the last: Java, the session, the summary.
        first: What the driver takes more for the first micro-batch: its code is cold.
        open: Until a worker has opened the subscriptions; all do so at the same time.
        batch: Of each micro-batch.
        file: The driver's, for each file of the source: listing, journal, share.
        task: The driver's, to send a task and to hear of its end.
        report: The driver's, to take in what a task reports.
        message: A worker's, for each message.
        task_file: A worker's, for each file.
        message_bytes: Bytes that are read and written for each message.
    """

    start: float
    first: float
    open: float
    batch: float
    file: float
    task: float
    report: float
    message: float
    task_file: float
    message_bytes: float

    def parts(self, question: ModelQuestion, workers: int) -> dict[str, float]:
        """Seconds of a micro-batch by what they are spent on; the last two go side by side."""
        return {
            "micro-batch of the driver": self.batch,
            "files of the driver": self.file * question.files,
            "tasks of the driver": (self.task + self.report) * workers,
            "cores": (self.message * question.messages + self.task_file * question.files) / workers,
            "shared storage": self.message_bytes
            * question.messages
            / question.storage_bytes_a_second,
        }


@dataclass(frozen=True)
class Forecast:
    """A micro-batch on so many workers.

    Attributes:
        workers: How many.
        seconds: How long it takes.
        bound: What takes the largest part of that.
        efficiency: Throughput as a share of `workers` times that of one.
    """

    workers: int
    seconds: float
    bound: str
    efficiency: float


@dataclass(frozen=True, kw_only=True)
class ModelCase:
    """The model and what it was fitted to; `fit` gives the same again.

    Attributes:
        case: Its name.
        queries: Subscriptions of the runs.
        question: What it is asked.
        model: The fitted one.
        runs: What it was fitted to.
        dispatch: Tasks and seconds of jobs that do nothing.
    """

    case: str
    queries: int
    question: ModelQuestion
    model: Model
    runs: tuple[RunTimes, ...]
    dispatch: tuple[tuple[int, float], ...]

    @classmethod
    def of(
        cls,
        queries: int,
        question: ModelQuestion,
        runs: Sequence[RunTimes],
        dispatch: Sequence[tuple[int, float]],
    ) -> Self:
        """The case of a fitted model."""
        return cls(
            case="model",
            queries=queries,
            question=question,
            model=fit(runs, dispatch),
            runs=tuple(runs),
            dispatch=tuple(dispatch),
        )

    @classmethod
    def of_record(cls, result: Mapping[str, Any], question: ModelQuestion | None = None) -> Self:
        """Fitted again to what a record holds.

        Args:
            result: The result `model` of the benchmark, as its record has it.
            question: What to ask; what was asked then, if not given.
        """
        runs = [
            RunTimes(**{**run, "batches": tuple(BatchTimes(**batch) for batch in run["batches"])})
            for run in result["runs"]
        ]
        asked = question or ModelQuestion(**result["question"])
        return cls.of(result["queries"], asked, runs, [tuple(one) for one in result["dispatch"]])

    def measures(self) -> Iterator[Measure]:
        """What was fitted, how well it fits, and what follows."""
        figure = figures_of(self.case, self.queries, self.question.messages)
        for name, value in asdict(self.model).items():
            if name == "message_bytes":
                yield figure(name, "B", [value])
            else:
                yield figure(name, "ms", [value * 1e3])
        yield figure("measured by model", "x", fits(self.model, self.runs))
        for workers in self.question.workers:
            found = forecast(self.model, self.question, workers)
            rate = self.question.messages / found.seconds
            unit = f"messages/s, bound by {found.bound}"
            yield Measure(
                BENCHMARK,
                self.case,
                f"{workers} workers",
                unit,
                Spread(rate, rate, rate),
                self.queries,
                self.question.messages,
            )
            yield figure(f"{workers} workers by 1", "% of linear", [100 * found.efficiency])
        half, bound = halfway(self.model, self.question)
        yield figure("half as efficient", f"workers, stopped by {bound}", [half])


def forecast(model: Model, question: ModelQuestion, workers: int) -> Forecast:
    """What a micro-batch takes on so many workers."""
    seconds = _seconds(model, question, workers)
    parts = model.parts(question, workers)
    bound = max(parts, key=lambda name: parts[name])
    efficiency = _seconds(model, question, 1) / seconds / workers
    return Forecast(workers, seconds, bound, efficiency)


def halfway(model: Model, question: ModelQuestion) -> tuple[int, str]:
    """The number of workers at which half of their work is lost, and what it is lost to."""
    workers = 1
    while forecast(model, question, workers).efficiency > 0.5 and workers < 1_000_000:
        workers += max(1, workers // 50)
    parts = model.parts(question, workers)
    del parts["cores"]
    return workers, max(parts, key=lambda name: parts[name])


def _seconds(model: Model, question: ModelQuestion, workers: int) -> float:
    parts = model.parts(question, workers)
    work, storage = parts.pop("cores"), parts.pop("shared storage")
    return sum(parts.values()) + max(work, storage)


def fit(runs: Sequence[RunTimes], dispatch: Sequence[tuple[int, float]]) -> Model:
    """The model that comes nearest, no cost below nothing.

    Args:
        runs: Among them some of several micro-batches, of few and of many files, on different
            numbers of cores: what does not vary cannot be told apart.
        dispatch: Tasks and seconds of jobs that do nothing.
    """
    batches = [(run, place, batch) for run in runs for place, batch in enumerate(run.batches)]
    work = solved(
        [[batch.messages, batch.files] for _, _, batch in batches],
        [_work(batch) for _, _, batch in batches],
    )
    _, task = solved([[1, tasks] for tasks, _ in dispatch], [seconds for _, seconds in dispatch])
    driver = solved(
        [[1, batch.files, place == 0] for _, place, batch in batches],
        [_driver(batch) - task * batch.tasks for _, _, batch in batches],
    )
    # What comes besides the commits: once a run, for each report, for each file that is listed.
    once, report, listing = solved(
        [[1, run.total("tasks"), run.total("files")] for run in runs],
        [run.seconds - run.batch_seconds for run in runs],
    )
    return Model(
        start=median(run.whole_seconds - run.seconds for run in runs) + once,
        first=driver[2],
        open=median(run.batches[0].stages.get("open", 0.0) / run.batches[0].tasks for run in runs),
        batch=driver[0],
        file=driver[1] + listing,
        task=task,
        report=report,
        message=work[0],
        task_file=work[1],
        message_bytes=median(
            (run.total("bytes") + run.total("written_bytes")) / run.total("messages")
            for run in runs
        ),
    )


def fits(model: Model, runs: Sequence[RunTimes]) -> list[float]:
    """Measured seconds of each run as a multiple of what the model says."""
    found = []
    for run in runs:
        messages, files, count = run.total("messages"), run.total("files"), len(run.batches)
        said = model.start + model.first + model.open
        said += count * model.batch + run.total("tasks") * (model.task + model.report)
        said += files * model.file
        said += (messages * model.message + files * model.task_file) / run.cores
        found.append(run.whole_seconds / said)
    return found


def solved(rows: Sequence[Sequence[Any]], values: Sequence[float]) -> list[float]:
    """Least squares of relative errors, none of the unknowns below nothing.

    Example:
        >>> [round(value, 6) for value in solved([[1, 1], [1, 2], [1, 4]], [3.0, 5.0, 9.0])]
        [1.0, 2.0]
        >>> [round(value, 6) for value in solved([[1, 1], [1, 2]], [2.0, 5.0])][0]
        0.0
    """
    table, wanted = np.array(rows, dtype=float), np.array(values, dtype=float)
    weights = 1 / np.maximum(np.abs(wanted), 1e-3)
    table, wanted = table * weights[:, None], wanted * weights
    left = list(range(table.shape[1]))
    unknowns = np.zeros(table.shape[1])
    while left:
        found = np.linalg.lstsq(table[:, left], wanted, rcond=None)[0]
        if found.min() >= 0:
            unknowns[left] = found
            break
        del left[int(found.argmin())]
    return [float(value) for value in unknowns]


def _work(batch: BatchTimes) -> float:
    return sum(batch.stages.get(stage, 0.0) for stage in WORK)


def _driver(batch: BatchTimes) -> float:
    """What no task was busy with, if all were busy alike."""
    return batch.seconds - sum(batch.stages.values()) / batch.tasks

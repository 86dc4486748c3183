"""`pathcast-lab bench pipeline`: right counts or none; the model finds what it was made from."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from oracles.engines import missing_reason

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
if KERNEL_MISSING := missing_reason("kernel"):
    pytest.skip(KERNEL_MISSING, allow_module_level=True)

from pathcast.spark import run
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.spark.workers import InProcess, SparkWorkers
from pathcast_lab.bench.definitions import read_definition
from pathcast_lab.bench.measures import with_aims
from pathcast_lab.bench.pipeline.cases import DeliveryCase, FilesCase
from pathcast_lab.bench.pipeline.definition import ModelQuestion, PipelineDefinition, PipelineSet
from pathcast_lab.bench.pipeline.engines import EnginePass, FilterEngine
from pathcast_lab.bench.pipeline.floor import FloorTimes, jvm_job, measure_floor
from pathcast_lab.bench.pipeline.inputs import (
    payments,
    selective,
    selective_queries,
    write_parts,
)
from pathcast_lab.bench.pipeline.model import Model, ModelCase, fit, fits, forecast, halfway
from pathcast_lab.bench.pipeline.run import PipelineResult, run_pipeline
from pathcast_lab.bench.pipeline.runner import (
    BatchTimes,
    Runner,
    RunTimes,
    cores_of,
    times_of,
    written_settings,
)
from pathcast_lab.bench.pipeline.stream import StreamCase, percentile
from pathcast_lab.bench.wrong_count import WrongCountError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFINITIONS = Path(__file__).resolve().parent.parent / "lab" / "benchmarks"

TINY = PipelineSet(
    messages=40,
    queries=150,
    results=40,
    deliveries=6,
    sample=20,
    dense_queries=100,
    files=8,
    parts=3,
    rate=40,
    seconds=0.5,
    rounds=2,
)


def settings_of(**sections: dict[str, Any]) -> PipelineSettings:
    """Settings as a file says them."""
    return PipelineSettings(**sections)  # type: ignore[arg-type]


class Here:
    """Runs pipelines in this process, without Spark.

    Attributes:
        streamed: Files that were there when the last stream ended.
    """

    streamed = 0

    def run(self, settings: PipelineSettings) -> RunTimes:
        started = time.perf_counter()
        summary = run(settings, workers=InProcess())
        return times_of(settings, time.perf_counter() - started, summary.to_dict())

    def floor(self, settings: PipelineSettings) -> FloorTimes:
        return measure_floor(settings, InProcess(), lambda tasks: [[0]] * tasks)

    @contextmanager
    def streaming(self, settings: PipelineSettings) -> Iterator[None]:
        stop = threading.Event()
        options = {"workers": InProcess(), "stop": stop}
        thread = threading.Thread(target=run, args=(settings,), kwargs=options)
        thread.start()
        try:
            yield
            self.streamed = len(list(Path(settings.source.path).glob("*.xml")))
        finally:
            stop.set()
            thread.join()


@pytest.fixture(scope="module")
def definition() -> PipelineDefinition:
    return read_definition(DEFINITIONS, "pipeline", PipelineDefinition)


@pytest.fixture(scope="module")
def runner() -> Here:
    return Here()


@pytest.fixture(scope="module")
def results(definition: PipelineDefinition, runner: Here) -> list[PipelineResult]:
    return list(run_pipeline(definition, TINY, lambda _: None, runner))


def test_every_case_is_there_and_every_aim_speaks_of_one(
    definition: PipelineDefinition, results: list[PipelineResult]
) -> None:
    names = ["matches, 1 core", "matches, 2 cores", "results, 2 cores", "numbers, 2 cores"]
    names += ["8 files, 2 cores", "stream, 40 a second", "model"]
    assert [result.case for result in results] == names
    measures = [measure for result in results for measure in result.measures()]
    assert all(np.isfinite(measure.spread.median) for measure in measures)
    aims = [aim.model_copy(update={"messages": None}) for aim in definition.aims]
    for aim in aims:
        assert [m for m in with_aims(measures, [aim]) if m.is_met is not None], aim.measure


def test_figures_are_of_runs_that_delivered(
    definition: PipelineDefinition, results: list[PipelineResult], runner: Here
) -> None:
    for result in results[:4]:
        assert isinstance(result, DeliveryCase)
        assert result.found > 0
        assert {int(run.total(result.counted)) for run in result.runs} == {result.found}
        assert len(result.runs) == len(result.floors) == TINY.rounds
        assert all(run.total("written_bytes") > 0 for run in result.runs)
    _, _, _, dense, files, stream, model = results
    assert isinstance(dense, DeliveryCase)
    assert all(run.total("deliveries") == 0 < run.total("matches") for run in dense.runs)
    assert isinstance(files, FilesCase)
    assert all(run.total("files") == 8 and len(run.batches) == 1 for run in files.files)
    assert isinstance(stream, StreamCase)
    # How many were written is the clock's affair; the first are for Java, and not measured.
    first = 2 * definition.cores[-1]
    assert len(stream.latencies) == runner.streamed - first > 0
    assert all(seconds >= 0 for seconds in stream.latencies)
    assert isinstance(model, ModelCase)
    assert [len(run.batches) for run in model.runs[-2:]] == [TINY.parts] * 2


def test_record_gives_the_model_again(results: list[PipelineResult]) -> None:
    record = json.loads(json.dumps([asdict(result) for result in results]))
    again = ModelCase.of_record(record[-1])
    assert again == results[-1]
    question = replace(again.question, workers=(7,))
    names = [one.name for one in ModelCase.of_record(record[-1], question).measures()]
    assert "7 workers" in names


def test_wrong_count_voids_the_benchmark(
    definition: PipelineDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = FilterEngine.timed

    def one_more(self: FilterEngine, folder: Path) -> EnginePass:
        done = timed(self, folder)
        return replace(done, found=done.found + 1)

    monkeypatch.setattr(FilterEngine, "timed", one_more)
    with pytest.raises(WrongCountError, match=r"matches, 1 core.*by one process"):
        next(run_pipeline(definition, TINY, lambda _: None, Here()))


def test_settings_are_the_same_in_a_process_of_its_own(tmp_path: Path) -> None:
    settings = settings_of(
        source={"kind": "parquet", "path": tmp_path / "in"},
        subscriptions={"path": tmp_path / "s.tsv", "deliver": "fragment"},
        mode={"kind": "stream", "seconds_between_batches": 0.1, "bytes_per_batch_max": 2**40},
        output={"path": tmp_path / "out", "inboxes": False},
        spark={"master": "local[2]"},
    )
    assert load_settings(written_settings(settings)) == settings
    assert cores_of(settings) == 2


def test_failing_pipeline_says_why(tmp_path: Path) -> None:
    settings = settings_of(
        source={"path": tmp_path / "absent"},
        subscriptions={"path": tmp_path / "s.tsv"},
        output={"path": tmp_path / "out"},
        spark={"master": "local[1]"},
    )
    with pytest.raises(CalledProcessError) as failure:
        Runner().run(settings)
    assert any("absent" in note for note in failure.value.__notes__)


@pytest.mark.spark
def test_floor_on_spark_sees_every_message(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_parts(payments(12, seed=1), 12, tmp_path / "messages", parts=3)
    settings = settings_of(
        source={"kind": "parquet", "path": folder},
        subscriptions={"path": tmp_path / "s.tsv"},
        output={"path": tmp_path / "out"},
    )
    found = measure_floor(settings, SparkWorkers(spark.sparkContext), jvm_job(spark.sparkContext))
    assert found.messages == 12
    assert [tasks for tasks, _ in found.dispatch] == [2, 50, 200]


def test_selective_queries_match_as_often_as_asked(tmp_path: Path) -> None:
    sample = list(payments(30, seed=1))
    folder = write_parts(sample, 30, tmp_path / "messages", parts=4)
    assert len(list(folder.glob("*.parquet"))) == 4
    for deliveries in (3, 20):
        rows = selective_queries(400, deliveries, sample, seed=1)
        assert len({row.query_id for row in rows}) == 400
        matches = FilterEngine(rows).timed(folder).found
        assert matches == pytest.approx(30 * deliveries, rel=0.3)


def test_selective_keeps_as_many_as_are_wanted() -> None:
    hits = np.array([5, 1, 0, 3])
    assert selective(hits, wanted=2, total=4).tolist() == [1, 3]
    assert selective(hits, wanted=2, total=0).tolist() == [1, 2], "the least, if none is low enough"
    assert selective(hits, wanted=9, total=4).tolist() == [0, 1, 2, 3]
    assert selective(hits, wanted=2, total=100).tolist() == [0, 3]


@pytest.mark.parametrize(("share", "value"), [(1, 1.0), (50, 50.0), (99, 99.0), (100, 100.0)])
def test_percentile(share: float, value: float) -> None:
    assert percentile([float(n) for n in range(100, 0, -1)], share) == value


TRUTH = Model(
    start=5.0,
    first=1.5,
    open=0.2,
    batch=0.08,
    file=0.0002,
    task=0.004,
    report=0.01,
    message=0.0001,
    task_file=0.00005,
    message_bytes=10_000.0,
)
"""What synthetic figures are made from."""


def synthetic_run(cores: int, shapes: list[tuple[int, int]]) -> RunTimes:
    """A run whose micro-batches have so many messages and files, as `TRUTH` would take for it."""
    listing = TRUTH.file / 2
    batches = []
    for place, (messages, files) in enumerate(shapes):
        work = TRUTH.message * messages + TRUTH.task_file * files
        opening = TRUTH.open * cores if place == 0 else 0.0
        driver = TRUTH.batch + TRUTH.file / 2 * files + TRUTH.task * cores
        driver += TRUTH.first if place == 0 else 0.0
        batches.append(
            BatchTimes(
                seconds=driver + (work + opening) / cores,
                tasks=cores,
                files=files,
                messages=messages,
                bytes=9_000 * messages,
                matches=0,
                deliveries=0,
                stages={
                    "open": opening,
                    "read": work * 0.2,
                    "answer": work * 0.3,
                    "write": work * 0.5,
                },
                written_files=2 * cores,
                written_bytes=1_000 * messages,
            )
        )
    seconds = sum(batch.seconds for batch in batches) + TRUTH.report * cores * len(batches)
    seconds += listing * sum(files for _, files in shapes)
    return RunTimes(cores, TRUTH.start + seconds, seconds, tuple(batches))


SHAPES = [
    [(5_000, 1)],
    [(1_000, 1)] * 5,
    [(2_000, 2_000)],
    [(10_000, 50), (3_000, 700)],
]
RUNS = [synthetic_run(cores, shapes) for cores in (1, 2) for shapes in SHAPES]
DISPATCH = [(tasks, 0.05 + TRUTH.task * tasks) for tasks in (2, 50, 200)]


def test_fit_finds_what_the_figures_were_made_from() -> None:
    found = fit(RUNS, DISPATCH)
    for name in vars(TRUTH):
        assert getattr(found, name) == pytest.approx(getattr(TRUTH, name), rel=1e-3), name
    assert fits(found, RUNS) == pytest.approx([1.0] * len(RUNS), rel=1e-3)


def test_fit_of_noisy_figures_has_no_cost_below_nothing() -> None:
    random = np.random.default_rng(7)
    noisy = [
        replace(
            one,
            batches=tuple(
                replace(batch, seconds=batch.seconds * random.uniform(0.8, 1.3))
                for batch in one.batches
            ),
        )
        for one in RUNS
    ]
    found = vars(fit(noisy, DISPATCH))
    assert all(value >= 0 for value in found.values()), found
    assert found["message"] == pytest.approx(TRUTH.message, rel=0.01), "stages were not disturbed"


QUESTION = ModelQuestion(
    workers=(1, 10, 100), messages=1_000_000, files=100, storage_bytes_a_second=1e12
)


@pytest.mark.parametrize(
    ("model", "storage", "workers", "bound"),
    [
        (TRUTH, 1e12, 1, "cores"),
        (TRUTH, 1e12, 10, "cores"),
        (TRUTH, 1e12, 1_000, "tasks of the driver"),
        (TRUTH, 1e9, 100, "shared storage"),
        (replace(TRUTH, file=0.1), 1e12, 100, "files of the driver"),
        (replace(TRUTH, batch=60.0), 1e12, 10, "micro-batch of the driver"),
    ],
)
def test_forecast_names_what_stops_it(
    model: Model, storage: float, workers: int, bound: str
) -> None:
    asked = replace(QUESTION, storage_bytes_a_second=storage)
    found = forecast(model, asked, workers)
    assert found.bound == bound
    assert found.efficiency <= 1.0
    assert found.seconds == pytest.approx(
        forecast(model, asked, 1).seconds / workers / found.efficiency
    )


def test_half_of_the_work_is_lost_where_the_driver_takes_as_long() -> None:
    workers, bound = halfway(TRUTH, QUESTION)
    assert bound == "tasks of the driver"
    assert forecast(TRUTH, QUESTION, workers).efficiency == pytest.approx(0.5, abs=0.02)
    slow = replace(QUESTION, storage_bytes_a_second=1e9)
    assert halfway(TRUTH, slow)[1] == "shared storage"


def test_model_case_prints_a_row_for_each_number_of_workers() -> None:
    measures = {m.name: m for m in ModelCase.of(10, QUESTION, RUNS, DISPATCH).measures()}
    assert measures["1 workers by 1"].spread.median == pytest.approx(100)
    assert measures["10 workers"].unit == "messages/s, bound by cores"
    rates = [measures[f"{workers} workers"].spread.median for workers in QUESTION.workers]
    assert rates == sorted(rates)

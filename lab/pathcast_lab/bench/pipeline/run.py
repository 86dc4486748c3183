"""The cases of `pipeline`, one after the other, each checked before a time of it is kept.

A run has to give as many matches and deliveries as the engine gives in one process, and its files
have to hold as many rows; if they do not, there is no result.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeAlias

from pathcast.spark.settings import PipelineSettings
from pathcast.workload.documents import GeneratedMessage
from pathcast.workload.packing import write_message_files, write_subscriptions
from pathcast.workload.subscriptions import GeneratedSubscription as Row
from pathcast_lab.bench.checking import wrong_count
from pathcast_lab.bench.pipeline.cases import DeliveryCase, FilesCase
from pathcast_lab.bench.pipeline.definition import PipelineDefinition, PipelineSet
from pathcast_lab.bench.pipeline.engines import EnginePass, FilterEngine, ResultEngine
from pathcast_lab.bench.pipeline.floor import FloorTimes
from pathcast_lab.bench.pipeline.inputs import (
    payments,
    plain_queries,
    repeated,
    selective_queries,
    selective_results,
    write_parts,
)
from pathcast_lab.bench.pipeline.model import ModelCase
from pathcast_lab.bench.pipeline.runner import Runner, RunTimes, rows_written
from pathcast_lab.bench.pipeline.stream import (
    StreamCase,
    latencies_of,
    wait_for,
    write_file,
    write_stream,
)

PipelineResult: TypeAlias = DeliveryCase | FilesCase | StreamCase | ModelCase

SECONDS_BETWEEN_LOOKS = 0.1
"""How often the stream looks at its source."""


class Runs(Protocol):
    """Who runs pipelines, see `Runner`."""

    def run(self, settings: PipelineSettings) -> RunTimes:
        """From its start to its end."""
        ...

    def floor(self, settings: PipelineSettings) -> FloorTimes:
        """The same job with tasks that do nothing but read."""
        ...

    def streaming(self, settings: PipelineSettings) -> AbstractContextManager[None]:
        """A stream that runs while inside."""
        ...


def run_pipeline(
    definition: PipelineDefinition,
    chosen: PipelineSet,
    say: Callable[[str], None],
    runner: Runs | None = None,
) -> Iterator[PipelineResult]:
    """All cases.

    Args:
        definition: What is measured.
        chosen: How much of it.
        say: Takes progress.
        runner: Who runs pipelines; processes of their own if not given.

    Raises:
        WrongCountError: A pipeline delivered more or less than the engine.
        JavaMissingError: There is no Java that Spark can run on.
        MissingDependencyError: PySpark, or lxml, is not installed.
    """
    runner = runner or Runner()
    with TemporaryDirectory(prefix="pathcast-bench-") as directory:
        yield from _Cases(definition, chosen, say, runner, Path(directory)).run()


class _Cases:
    """The cases of one set, in a directory that is theirs."""

    def __init__(
        self,
        definition: PipelineDefinition,
        chosen: PipelineSet,
        say: Callable[[str], None],
        runner: Runs,
        folder: Path,
    ) -> None:
        self._definition, self._chosen, self._say = definition, chosen, say
        self._runner, self._folder = runner, folder
        self._seed = definition.seed
        self._runs: list[RunTimes] = []
        self._floors: list[FloorTimes] = []
        self._number = 0

    def run(self) -> Iterator[PipelineResult]:
        chosen, cores = self._chosen, self._definition.cores
        self._say(f"{chosen.messages:,} messages, {chosen.queries:,} selective subscriptions")
        sample = list(payments(min(chosen.sample, chosen.messages), seed=self._seed))
        generated = payments(chosen.messages, seed=self._seed)
        messages = write_parts(generated, chosen.messages, self._folder / "messages")
        rows = selective_queries(chosen.queries, chosen.deliveries, sample, seed=self._seed)
        filters = self._written(rows, "filters")
        for number in cores:
            yield self._deliveries("matches", rows, filters, messages, number)
        yield self._results(sample, messages)
        yield self._dense(messages)
        yield self._files(sample, filters, len(rows))
        yield self._stream(sample, filters, len(rows))
        yield self._model(sample, filters, len(rows))

    def _deliveries(
        self, name: str, rows: Sequence[Row], subscriptions: Path, messages: Path, cores: int
    ) -> DeliveryCase:
        """Matches and inboxes of selective filter queries."""
        settings = self._settings(messages, subscriptions, cores)
        engines = [FilterEngine(rows)]
        case = self._case(f"{name}, {_cores(cores)}", engines, None, settings, messages, len(rows))
        self._runs += case.runs
        self._floors += case.floors
        return case

    def _results(self, sample: Sequence[GeneratedMessage], messages: Path) -> DeliveryCase:
        """Results of FLWR subscriptions."""
        chosen, cores = self._chosen, self._definition.cores[-1]
        rows = selective_results(chosen.results, chosen.deliveries, sample, seed=self._seed)
        subscriptions = self._written(rows, "results")
        settings = self._settings(
            messages, subscriptions, cores, subscriptions={"deliver": "fragment"}
        )
        engines = [ResultEngine(rows, threads) for threads in sorted({1, cores})]
        name = f"results, {_cores(cores)}"
        return self._case(name, engines, engines[-1].name, settings, messages, len(rows))

    def _dense(self, messages: Path) -> DeliveryCase:
        """Lists of query numbers, thousands a message, and no row a delivery."""
        chosen, cores = self._chosen, self._definition.cores[-1]
        rows = plain_queries(chosen.dense_queries, seed=self._seed)
        subscriptions = self._written(rows, "dense")
        output = {"matches": "numbers", "inboxes": False}
        settings = self._settings(messages, subscriptions, cores, output=output)
        engines = [FilterEngine(rows)]
        name = f"numbers, {_cores(cores)}"
        return self._case(name, engines, None, settings, messages, len(rows))

    def _case(
        self,
        name: str,
        engines: Sequence[FilterEngine | ResultEngine],
        bound: str | None,
        settings: PipelineSettings,
        messages: Path,
        queries: int,
    ) -> DeliveryCase:
        """Engine, floor and run in turns, as often as the set says."""
        self._say(name)
        passes: dict[str, list[EnginePass]] = {engine.name: [] for engine in engines}
        floors, runs, expected, count = [], [], None, 0
        for _ in range(self._chosen.rounds):
            for engine in engines:
                done = engine.timed(messages)
                expected = done.found if expected is None else expected
                _check(name, done.found, expected, "the engine's first pass")
                passes[engine.name].append(done)
            assert expected is not None
            floor, run = self._runner.floor(settings), self._run(settings, name, expected)
            count = int(run.total("messages"))
            _check(f"{name}, messages of the floor", floor.messages, count, "the run")
            floors.append(floor)
            runs.append(run)
        return DeliveryCase(
            case=name,
            queries=queries,
            cores=runs[0].cores,
            messages=count,
            counted="deliveries" if settings.output.inboxes else "matches",
            found=expected or 0,
            engines={name: tuple(done) for name, done in passes.items()},
            bound=bound,
            floors=tuple(floors),
            runs=tuple(runs),
        )

    def _files(
        self, sample: Sequence[GeneratedMessage], subscriptions: Path, queries: int
    ) -> FilesCase:
        """The same messages as files and in Parquet."""
        chosen, cores = self._chosen, self._definition.cores[-1]
        case = f"{chosen.files:,} files, {_cores(cores)}"
        self._say(case)
        folder, packed = self._folder / "files", self._folder / "packed"
        write_message_files(repeated(sample, chosen.files), folder)
        write_parts(repeated(sample, chosen.files), chosen.files, packed)
        # One micro-batch, as of Parquet.
        mode = {"bytes_per_batch_max": 2**40, "files_per_batch_max": chosen.files}
        as_files = self._settings(folder, subscriptions, cores, kind="directory", mode=mode)
        as_parquet = self._settings(packed, subscriptions, cores)
        expected = None
        files, parquet = [], []
        for _ in range(chosen.rounds):
            found = self._run(as_parquet, case, expected)
            expected = int(found.total("deliveries"))
            parquet.append(found)
            files.append(self._run(as_files, case, expected))
        self._runs += [*files, *parquet]
        return FilesCase(
            case=case,
            queries=queries,
            messages=chosen.files,
            files=tuple(files),
            parquet=tuple(parquet),
        )

    def _stream(
        self, sample: Sequence[GeneratedMessage], subscriptions: Path, queries: int
    ) -> StreamCase:
        """Files at a rate, until they are delivered."""
        chosen, cores = self._chosen, self._definition.cores[-1]
        case = f"stream, {chosen.rate:,} a second"
        self._say(case)
        folder = self._folder / "stream"
        folder.mkdir()
        mode = {"kind": "stream", "seconds_between_batches": SECONDS_BETWEEN_LOOKS}
        settings = self._settings(folder, subscriptions, cores, kind="directory", mode=mode)
        with self._runner.streaming(settings):
            # Java, the workers and the subscriptions are there when the first file is delivered.
            for number, message in enumerate(repeated(sample, 2 * cores)):
                write_file(message._replace(id=f"first-{number}"), folder)
            wait_for(settings, 2 * cores)
            first = max(batch for batch, _ in latencies_of(settings))
            wanted = round(chosen.rate * chosen.seconds) + chosen.rate
            rate = write_stream(
                repeated(sample, wanted), folder, rate=chosen.rate, seconds=chosen.seconds
            )
            wait_for(settings, sum(1 for _ in folder.glob("*.xml")))
            found = latencies_of(settings, after=first)
        return StreamCase(
            case=case,
            queries=queries,
            rate=rate,
            batches=len({batch for batch, _ in found}),
            latencies=tuple(seconds for _, seconds in found),
        )

    def _model(
        self, sample: Sequence[GeneratedMessage], subscriptions: Path, queries: int
    ) -> ModelCase:
        """A run of several micro-batches on each number of cores, and the model of all runs."""
        chosen = self._chosen
        folder = self._folder / "parts"
        # A file for each core: what is in one row group goes to one task.
        together = self._definition.cores[-1]
        copies = repeated(sample, chosen.messages)
        write_parts(copies, chosen.messages, folder, chosen.parts * together)
        for cores in self._definition.cores:
            case = f"{chosen.parts} micro-batches, {_cores(cores)}"
            self._say(case)
            mode = {"files_per_batch_max": together}
            self._runs.append(
                self._run(self._settings(folder, subscriptions, cores, mode=mode), case, None)
            )
        dispatch = [found for floor in self._floors for found in floor.dispatch]
        return ModelCase.of(queries, self._definition.model, self._runs, dispatch)

    def _run(self, settings: PipelineSettings, case: str, expected: int | None) -> RunTimes:
        """A run into an output of its own, which is looked at and then taken away.

        Raises:
            WrongCountError: It delivered more or less than expected, or its files hold other rows
                than its commits say.
        """
        self._number += 1
        place = self._folder / f"output-{self._number}"
        output = settings.output.model_copy(update={"path": str(place)})
        settings = settings.model_copy(update={"output": output})
        run = self._runner.run(settings)
        delivers = "deliveries" if settings.output.inboxes else "matches"
        delivered = int(run.total(delivers))
        if expected is not None:
            _check(case, delivered, expected, "one process")
        rows = rows_written(settings)
        if "inboxes" in rows:
            _check(f"{case}, rows of inboxes", rows["inboxes"], delivered, "the commits")
        shutil.rmtree(place)
        return run

    def _settings(
        self, source: Path, wanted: Path, cores: int, *, kind: str = "parquet", **more: Any
    ) -> PipelineSettings:
        """Settings of a run: messages, subscriptions, cores, and what sections have besides."""
        sections: dict[str, dict[str, Any]] = {
            "source": {"kind": kind, "path": source},
            "subscriptions": {"path": wanted},
            "output": {"path": self._folder / f"output-{source.name}"},
            "spark": {"master": f"local[{cores}]"},
        }
        for name, values in more.items():
            sections[name] = {**sections.get(name, {}), **values}
        return PipelineSettings(**sections)  # type: ignore[arg-type]

    def _written(self, rows: Sequence[Row], name: str) -> Path:
        return write_subscriptions(rows, self._folder / f"{name}.tsv")


def _check(case: str, found: int, expected: int, oracle: str) -> None:
    if found != expected:
        raise wrong_count(case, found, expected, oracle)


def _cores(number: int) -> str:
    return f"{number} core" + "s" * (number > 1)

"""The figures on chunking: what runs, draws and words them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pathcast_lab.bench.chunking.definition import ChunkingFigures
from pathcast_lab.bench.chunking.experiments import ChunkingExperiment, run_experiment
from pathcast_lab.bench.chunking.page import PAGE
from pathcast_lab.bench.chunking.plot import draw_chunking
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.run import PaperFigures, Points, Request, run_each


def _begin(request: Request) -> Points:
    def points(outcome: Outcome[Any]) -> Iterator[list[Value]]:
        figure = outcome.figure
        outcome.workload = figure.scenario
        chosen, seed = figure.sets[request.set_name], request.definition.seed
        return run_experiment(ChunkingExperiment(figure, chosen, seed, request.say, outcome.checks))

    return points


PAPER: Final = PaperFigures(
    definition=ChunkingFigures, run=run_each(_begin), draw=draw_chunking, page=PAGE
)

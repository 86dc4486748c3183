"""A run of the figures on chunking: which ones, and what becomes of one that fails.

A wrong answer voids the figure that gave it and no other. It prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pathcast_lab.bench.chunking.definition import ChunkingFigure, ChunkingFigures
from pathcast_lab.bench.chunking.experiments import ChunkingExperiment, run_experiment
from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value


def run_chunking_figures(
    definition: ChunkingFigures,
    names: Sequence[str],
    set_name: SetName,
    outcomes: list[Outcome[ChunkingFigure]],
    keep: Callable[[Sequence[Value]], None],
    say: Callable[[str], None],
) -> None:
    """Runs figures.

    Args:
        definition: The definitions.
        names: Names of the figures.
        set_name: Which set of each.
        outcomes: Takes an outcome when its figure begins, so that nothing is lost with the run.
        keep: Takes the values of each point as soon as they are there.
        say: Takes one line on what is being done.

    Raises:
        MissingDependencyError: lxml is not installed.
        KernelMissingError: The kernel is not installed.
    """
    for figure in definition.figures:
        if figure.name not in names or set_name not in figure.sets:
            continue
        outcome = Outcome(figure, figure.scenario)
        outcomes.append(outcome)
        experiment = ChunkingExperiment(
            figure, figure.sets[set_name], definition.seed, say, outcome.checks
        )
        outcome.collect(run_experiment(experiment), keep)

"""A run of the figures on chunking: which ones, and what becomes of one that fails.

A wrong answer voids the figure that gave it and no other. It prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pathcast.bench.chunking.definition import ChunkingFigure, ChunkingFigures
from pathcast.bench.chunking.experiments import ChunkingExperiment, run_experiment
from pathcast.bench.definitions import SetName
from pathcast.bench.figures.point import Value
from pathcast.errors import WrongCountError


@dataclass
class ChunkingOutcome:
    """What one figure gave.

    Attributes:
        figure: Its definition.
        workload: Which scenario.
        values: What was measured.
        checks: What was compared before times were taken.
        notes: What was left out, and why.
        failure: Why its values do not count.
        is_complete: Whether it came to its end.
    """

    figure: ChunkingFigure
    workload: str
    values: list[Value] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: str | None = None
    is_complete: bool = False


def run_chunking_figures(
    definition: ChunkingFigures,
    names: Sequence[str],
    set_name: SetName,
    outcomes: list[ChunkingOutcome],
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
        outcome = ChunkingOutcome(figure, figure.scenario)
        outcomes.append(outcome)
        experiment = ChunkingExperiment(
            figure, figure.sets[set_name], definition.seed, say, outcome.checks
        )
        try:
            for values in run_experiment(experiment):
                outcome.values += values
                keep(values)
            outcome.is_complete = True
        except WrongCountError as error:
            outcome.failure = str(error)
            outcome.values = []

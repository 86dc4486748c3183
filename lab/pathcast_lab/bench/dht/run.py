"""A run of the figures of the automaton on a ring. It prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.dht.definition import DhtFigure, DhtFigures
from pathcast_lab.bench.dht.experiments import DhtExperiment
from pathcast_lab.bench.dht.inputs import Inputs
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value


def run_dht_figures(
    definition: DhtFigures,
    names: Sequence[str],
    set_name: SetName,
    outcomes: list[Outcome[DhtFigure]],
    keep: Callable[[Sequence[Value]], None],
    say: Callable[[str], None],
) -> None:
    """Runs the figures; arguments as of `bench.figures.run.Request`.

    Raises:
        MissingDependencyError: lxml is not installed.
    """
    inputs = Inputs(definition)
    for figure in definition.figures:
        if figure.name not in names or set_name not in figure.sets:
            continue
        known = len(inputs.notes)
        outcome = Outcome(
            figure, "single DTDs" if figure.kind == "states" else " and ".join(figure.workloads)
        )
        outcomes.append(outcome)
        experiment = DhtExperiment(figure, figure.sets[set_name], inputs, say)
        outcome.collect(experiment.run(), keep)
        outcome.notes += inputs.notes[known:]

"""A run of the figures on wire formats: which ones, and what becomes of one that fails.

It prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.inputs import open_source, shared_data
from pathcast_lab.bench.wire.definition import WireFigure, WireFigures
from pathcast_lab.bench.wire.experiments import WireExperiment


def run_wire_figures(
    definition: WireFigures,
    names: Sequence[str],
    set_name: SetName,
    outcomes: list[Outcome[WireFigure]],
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
        MissingDependencyError: lxml or zstandard is not installed.
        KernelMissingError: The kernel is not installed.
    """
    shared = shared_data()
    place = None if shared is None else shared / definition.dtd
    if place is not None and place.is_file():
        source, workload = open_source(dtd=place, work=None), "nitf"
    else:
        say(f"the DTD is not at hand, the {definition.stand_in} domain stands in")
        source, workload = open_source(definition.stand_in, work=None), definition.stand_in
    experiment = WireExperiment(definition, source.graph, say, [])
    for figure in definition.figures:
        if figure.name not in names or set_name not in figure.sets:
            continue
        outcome = Outcome(figure, workload)
        outcomes.append(outcome)
        before = len(experiment.checks)
        outcome.collect(experiment.run(figure, figure.sets[set_name]), keep)
        outcome.checks += experiment.checks[before:]

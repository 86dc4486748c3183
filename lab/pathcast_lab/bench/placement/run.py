"""A run of figures of placement: which ones, and what becomes of one that fails.

A wrong answer voids the figure that gave it and no other. It prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.placement.definition import PlacementFigure, PlacementFigures
from pathcast_lab.bench.placement.pattern_queries import run_patterns
from pathcast_lab.bench.placement.realistic import run_realistic
from pathcast_lab.bench.placement.visits import run_visits


def run_placement_figures(
    definition: PlacementFigures,
    names: Sequence[str],
    set_name: SetName,
    outcomes: list[Outcome[PlacementFigure]],
    keep: Callable[[Sequence[Value]], None],
    say: Callable[[str], None],
) -> None:
    """Runs the figures.

    Args:
        definition: The definitions.
        names: Names of the figures.
        set_name: Which set of each.
        outcomes: Takes an outcome when its figure begins, so that nothing is lost with the run.
        keep: Takes the values of each point as soon as they are there.
        say: Takes one line on what is being done.

    Raises:
        KernelMissingError: The kernel is not installed.
        MissingDependencyError: lxml is not installed.
    """
    for figure in definition.figures:
        if figure.name not in names:
            continue
        outcome = Outcome(figure, ", ".join(figure.domains) or "patterns")
        outcomes.append(outcome)
        outcome.collect(_points(figure, set_name, definition.seed, say), keep)
        if outcome.is_complete:
            outcome.checks.append(f"{figure.caption}: partitions give what one index gives")


def _points(
    figure: PlacementFigure, set_name: SetName, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    chosen = figure.sets[set_name]
    match figure.kind:
        case "patterns":
            return run_patterns(figure, chosen, seed, say)
        case "realistic":
            return run_realistic(figure, chosen, seed, say)
        case "visits":
            return run_visits(figure, chosen, seed, say)

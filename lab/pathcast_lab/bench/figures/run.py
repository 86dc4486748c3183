"""A run of figures: which ones, in the order of the definition, and what becomes of one that fails.

A wrong answer voids the figure that gave it and no other; any other error ends its figure, and what
was measured of it before stays. It prints nothing.

Example:
    >>> chosen_names("11, t3", ("11", "12", "T3"))
    ('11', 'T3')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pathcast.errors import (
    ConfigError,
)
from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.figures.definition import FigureDefinition, FiguresDefinition
from pathcast_lab.bench.figures.inputs import Inputs
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import FIRST_PASS, KERNEL, Value
from pathcast_lab.bench.figures.sweep import Experiment, run_sweep
from pathcast_lab.bench.figures.tables import (
    run_characteristics,
    run_distinct,
    run_insertion,
    run_profile,
)


@dataclass(frozen=True)
class FiguresPlan:
    """What to run.

    Attributes:
        definition: The definitions.
        names: Names of the figures.
        set_name: Which set of each.
        work: Where generated queries are kept.
    """

    definition: FiguresDefinition
    names: Sequence[str]
    set_name: SetName
    work: Path | None


def chosen_names(text: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """Names of figures and tables (`T3`), in the order of the definition; None for all.

    Raises:
        ConfigError: There is no such figure.
    """
    if text is None:
        return tuple(known)
    by_letters = {name.upper(): name for name in known}
    asked = [part.strip().upper() for part in text.split(",")]
    for name in asked:
        if name not in by_letters:
            raise ConfigError(
                "config.invalid", key="--figure", reason=f"{name!r} is none of {', '.join(known)}"
            )
    return tuple(name for letters, name in by_letters.items() if letters in asked)


def run_figures(
    plan: FiguresPlan,
    outcomes: list[Outcome[FigureDefinition]],
    keep: Callable[[Sequence[Value]], None],
    say: Callable[[str], None],
) -> None:
    """Runs the figures.

    Args:
        plan: What to run.
        outcomes: Takes an outcome when its figure begins, so that nothing is lost with the run.
        keep: Takes the values of each point as soon as they are there.
        say: Takes one line on what is being done.

    Raises:
        MissingDependencyError: lxml is not installed.
    """
    inputs = Inputs(plan.definition, plan.work, say)
    for figure in plan.definition.figures:
        if figure.name not in plan.names:
            continue
        outcome = Outcome(figure, inputs.source(figure.workload).name)
        outcomes.append(outcome)
        if _is_copied(outcome, outcomes):
            keep(outcome.values)
            continue
        experiment = Experiment(
            figure=figure,
            chosen=figure.sets[plan.set_name],
            definition=plan.definition,
            inputs=inputs,
            seconds_max=plan.definition.point_seconds_max[plan.set_name],
            say=say,
            checks=outcome.checks,
            notes=outcome.notes,
        )
        outcome.collect(points(experiment), keep)


def _is_copied(
    outcome: Outcome[FigureDefinition], outcomes: Sequence[Outcome[FigureDefinition]]
) -> bool:
    """Whether a figure got the values of one that was run before and has the same ones."""
    for earlier in outcomes:
        if earlier.figure.name == outcome.figure.same_as and earlier.is_complete:
            name = outcome.figure.name
            outcome.values = [
                replace(value, figure=name)
                for value in earlier.values
                if outcome.figure.view != "tried" or value.series not in (KERNEL, FIRST_PASS)
            ]
            outcome.notes.append(f"The values are those of {earlier.figure.caption}.")
            outcome.is_complete = True
            return True
    return False


def points(experiment: Experiment) -> Iterator[list[Value]]:
    """The points of a figure or table, by its kind."""
    match experiment.figure.kind:
        case "sweep":
            return run_sweep(experiment)
        case "distinct":
            return run_distinct(experiment)
        case "characteristics":
            return run_characteristics(experiment)
        case "insertion":
            return run_insertion(experiment)
        case "profile":
            return run_profile(experiment)

"""A run of broker figures: which ones, and what becomes of one that fails.

A wrong answer voids the figure that gave it and no other; any other error ends its figure, and what
was measured of it before stays. It prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathcast_lab.bench.broker.definition import BrokerFigure, BrokerFigures
from pathcast_lab.bench.broker.experiments import BrokerExperiment, run_experiment
from pathcast_lab.bench.broker.inputs import BrokerInputs
from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value


@dataclass(frozen=True)
class BrokerPlan:
    """What to run.

    Attributes:
        definition: The definitions.
        names: Names of the figures.
        set_name: Which set of each.
        work: Where generated queries are kept; None for nowhere.
    """

    definition: BrokerFigures
    names: Sequence[str]
    set_name: SetName
    work: Path | None = None


def run_broker_figures(
    plan: BrokerPlan,
    outcomes: list[Outcome[BrokerFigure]],
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
        KernelMissingError: The kernel is not installed.
    """
    inputs = BrokerInputs(plan.definition.seed, plan.work)
    for figure in plan.definition.figures:
        if figure.name not in plan.names:
            continue
        outcome = Outcome(figure, figure.workload)
        outcomes.append(outcome)
        experiment = BrokerExperiment(
            figure=figure,
            chosen=figure.sets[plan.set_name],
            check_queries=plan.definition.check_queries[plan.set_name],
            check_messages=plan.definition.check_messages,
            inputs=inputs,
            seconds_max=plan.definition.point_seconds_max[plan.set_name],
            say=say,
            checks=outcome.checks,
            notes=outcome.notes,
        )
        outcome.collect(run_experiment(experiment), keep)

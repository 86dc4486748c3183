"""The figures of the broker paper: what runs, draws and words them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pathcast_lab.bench.broker.definition import BrokerFigures
from pathcast_lab.bench.broker.experiments import BrokerExperiment, run_experiment
from pathcast_lab.bench.broker.inputs import BrokerInputs
from pathcast_lab.bench.broker.page import PAGE
from pathcast_lab.bench.broker.plot import draw_broker
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.run import PaperFigures, Points, Request, run_each


def _begin(request: Request) -> Points:
    definition: BrokerFigures = request.definition
    inputs = BrokerInputs(definition.seed, request.work)

    def points(outcome: Outcome[Any]) -> Iterator[list[Value]]:
        figure = outcome.figure
        outcome.workload = figure.workload
        experiment = BrokerExperiment(
            figure=figure,
            chosen=figure.sets[request.set_name],
            check_queries=definition.check_queries[request.set_name],
            check_messages=definition.check_messages,
            inputs=inputs,
            seconds_max=definition.point_seconds_max[request.set_name],
            say=request.say,
            checks=outcome.checks,
            notes=outcome.notes,
        )
        return run_experiment(experiment)

    return points


PAPER: Final = PaperFigures(
    definition=BrokerFigures, run=run_each(_begin), draw=draw_broker, page=PAGE
)

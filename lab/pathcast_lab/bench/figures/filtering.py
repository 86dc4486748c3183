"""The figures on filtering: what runs, draws and words them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from pathcast_lab.bench.figures.definition import FiguresDefinition
from pathcast_lab.bench.figures.filtering_page import PAGE
from pathcast_lab.bench.figures.filtering_plot import draw
from pathcast_lab.bench.figures.inputs import Inputs
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import FIRST_PASS, KERNEL, Value
from pathcast_lab.bench.figures.run import PaperFigures, Points, Request, run_each
from pathcast_lab.bench.figures.sweep import Experiment, run_sweep
from pathcast_lab.bench.figures.tables import (
    run_characteristics,
    run_distinct,
    run_insertion,
    run_profile,
)

_KINDS: Final = {
    "sweep": run_sweep,
    "distinct": run_distinct,
    "characteristics": run_characteristics,
    "insertion": run_insertion,
    "profile": run_profile,
}


def _begin(request: Request) -> Points:
    definition: FiguresDefinition = request.definition
    inputs = Inputs(definition, request.work, request.say)

    def points(outcome: Outcome[Any]) -> Iterator[list[Value]]:
        figure = outcome.figure
        outcome.workload = inputs.source(figure.workload).name
        copied = _copied(outcome, request.outcomes)
        if copied is not None:
            yield copied
            return
        experiment = Experiment(
            figure=figure,
            chosen=figure.sets[request.set_name],
            definition=definition,
            inputs=inputs,
            seconds_max=definition.point_seconds_max[request.set_name],
            say=request.say,
            checks=outcome.checks,
            notes=outcome.notes,
        )
        yield from _KINDS[figure.kind](experiment)

    return points


def _copied(outcome: Outcome[Any], outcomes: Sequence[Outcome[Any]]) -> list[Value] | None:
    """The values of a figure that was run before and has the same ones; None without such a one."""
    figure = outcome.figure
    for earlier in outcomes:
        if earlier.figure.name == figure.same_as and earlier.is_complete:
            outcome.notes.append(f"The values are those of {earlier.figure.caption}.")
            return [
                replace(value, figure=figure.name)
                for value in earlier.values
                if figure.view != "tried" or value.series not in (KERNEL, FIRST_PASS)
            ]
    return None


PAPER: Final = PaperFigures(
    definition=FiguresDefinition, run=run_each(_begin), draw=draw, page=PAGE
)

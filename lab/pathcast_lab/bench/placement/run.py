"""The figures of placement: what runs, draws and words them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.run import PaperFigures, Points, Request, run_each
from pathcast_lab.bench.placement.definition import PlacementFigures
from pathcast_lab.bench.placement.page import PAGE
from pathcast_lab.bench.placement.pattern_queries import run_patterns
from pathcast_lab.bench.placement.plot import draw_placement
from pathcast_lab.bench.placement.realistic import run_realistic
from pathcast_lab.bench.placement.visits import run_visits

_KINDS: Final = {"patterns": run_patterns, "realistic": run_realistic, "visits": run_visits}


def _begin(request: Request) -> Points:
    def points(outcome: Outcome[Any]) -> Iterator[list[Value]]:
        figure = outcome.figure
        outcome.workload = ", ".join(figure.domains) or "patterns"
        chosen = figure.sets[request.set_name]
        yield from _KINDS[figure.kind](figure, chosen, request.definition.seed, request.say)
        outcome.checks.append(f"{figure.caption}: partitions give what one index gives")

    return points


PAPER: Final = PaperFigures(
    definition=PlacementFigures, run=run_each(_begin), draw=draw_placement, page=PAGE
)

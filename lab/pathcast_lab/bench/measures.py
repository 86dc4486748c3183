"""Figures of a benchmark, with their aims.

Example:
    >>> from pathcast_lab.bench.definitions import Aim
    >>> from pathcast_lab.bench.timing import Spread
    >>> figure = Measure("filter", "Q=10", "warm by lxml", "x lxml", Spread(0.9, 0.8, 1.1), 10)
    >>> with_aims([figure], [Aim(measure="warm by lxml", queries=10, most=1.0)])[0].is_met
    True

A figure without an aim is as true as one with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pathcast_lab.bench.definitions import Aim
from pathcast_lab.bench.timing import Spread


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure.

    Attributes:
        benchmark: Name of the benchmark.
        case: Which of its cases.
        name: What was measured.
        unit: Of the figure; "x lxml" is a multiple of the yardstick's time.
        spread: The figure: median, least and most.
        queries: Q of the case; None where there is none.
        messages: Messages of the case, where an aim depends on them.
        aim: What it should be, as text; None if nobody said.
        is_met: Whether its median is so.
    """

    benchmark: str
    case: str
    name: str
    unit: str
    spread: Spread
    queries: int | None = None
    messages: int | None = None
    aim: str | None = None
    is_met: bool | None = None


def with_aims(measures: Iterable[Measure], aims: Sequence[Aim]) -> list[Measure]:
    """The figures, each with the aim that speaks of it."""
    aimed: list[Measure] = []
    for measure in measures:
        found = next((aim for aim in aims if _speaks_of(aim, measure)), None)
        if found is not None:
            is_met = found.is_met(measure.spread.median)
            measure = replace(measure, aim=str(found), is_met=is_met)
        aimed.append(measure)
    return aimed


def _speaks_of(aim: Aim, measure: Measure) -> bool:
    return (
        aim.measure == measure.name
        and aim.queries in (None, measure.queries)
        and aim.case in (None, measure.case)
        and aim.messages in (None, measure.messages)
    )

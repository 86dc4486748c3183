"""Figures of placement in docs: tables, plots and the paper's statements, between marks.

The marks are those of the other figures (`bench.figures.page`), with names such as `placement_9`,
and `placement_9_full` for a full run.

Example:
    >>> figure = PlacementFigure(name="9", title="t", kind="visits", domains=("alerts",), sets={})
    >>> placement_table(figure, [])
    ''
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.figures.page import BLANK, FigurePage, time_text
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import markdown
from pathcast_lab.bench.placement.definition import PlacementFigure
from pathcast_lab.bench.placement.statements import judge

_UNITS: Final = {"%": " %", "x": "x", "s": " s", "MiB": " MiB"}


def placement_table(figure: PlacementFigure, values: Sequence[Value]) -> str:
    """The values of a figure as a Markdown table: a row a place, a column a measure."""
    del figure
    if not values:
        return ""
    measures = list(dict.fromkeys(value.measure for value in values))
    series = list(dict.fromkeys(value.series for value in values))
    has_axis = len({value.x for value in values}) > 1
    by_key = {(v.variant, v.series, v.x, v.measure): v for v in values}
    places = dict.fromkeys((value.variant, value.series, value.x) for value in values)
    if has_axis:
        # A row for each place of the axis, the series side by side.
        rows = [["", "repetitions", *(f"{one}: {m}" for m in measures for one in series)]]
        for variant, x in dict.fromkeys((v.variant, v.x) for v in values):
            cells = [by_key.get((variant, one, x, m)) for m in measures for one in series]
            rows.append([variant, f"{x:,g}", *map(_cell, cells)])
    else:
        rows = [["", "", "queries", *measures]]
        for variant, one, x in places:
            cells = [by_key.get((variant, one, x, measure)) for measure in measures]
            rows.append([variant, one, f"{x:,.0f}", *map(_cell, cells)])
    return markdown(rows)


def _cell(value: Value | None) -> str:
    if value is None:
        return BLANK
    median = value.spread.median
    return time_text(median) if value.unit == "us" else number(median) + _UNITS.get(value.unit, "")


PAGE: Final = FigurePage[PlacementFigure](
    run=lambda figure: "placement_run",
    table=placement_table,
    judge=lambda figure, found: judge(figure.name, found),
    has_full=True,
)

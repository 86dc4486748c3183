"""Figures of networks of brokers in docs: tables, plots and the paper's statements.

They are between marks such as `overlay_budgets`.

Example:
    >>> overlay_table(OverlayFigure(name="9", title="t", kind="state", sets={}), [])
    ''
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pathcast_lab.bench.figures.page import FigurePage, places_table
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlayKind
from pathcast_lab.bench.overlay.statements import judge

RUNS: Final[Mapping[OverlayKind, str]] = MappingProxyType(
    {
        "budgets": "overlay_run",
        "forms": "overlay_run",
        "state": "overlay_run",
        "projection": "overlay_projection_run",
        "restructuring": "overlay_restructuring_run",
        "links": "overlay_thousand_run",
        "pareto": "overlay_thousand_run",
        "in_force": "overlay_thousand_run",
        "host_brokers": "overlay_thousand_run",
        "changes": "overlay_times_run",
        "capacity": "overlay_times_run",
        "hops": "overlay_hops_run",
    }
)
"""Kind of a figure -> block that says which run it is of; those with times want a machine alone."""

_UNITS: Final = {
    "%": " %",
    "x": "x",
    "KiB": " KiB",
    "MiB": " MiB",
    "ms": " ms",
    "us": " µs",
}


def overlay_table(figure: OverlayFigure, values: Sequence[Value]) -> str:
    """The values of a figure as a Markdown table: a row a place, a column a measure."""
    del figure
    return places_table(values, _UNITS)


PAGE: Final = FigurePage[OverlayFigure](
    run=lambda figure: RUNS[figure.kind],
    table=overlay_table,
    judge=lambda figure, found: judge(figure.name, found),
)

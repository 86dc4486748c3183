"""Figures of networks of brokers in docs: tables, plots and the paper's statements.

They are between marks such as `overlay_budgets`.

Example:
    >>> overlay_table([])
    ''
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pathcast.bench.figures.page import BLANK, write_blocks
from pathcast.bench.figures.point import Value
from pathcast.bench.overlay.definition import OverlayFigures, OverlayKind
from pathcast.bench.overlay.statements import judge
from pathcast.bench.report import number

RUNS: Final[Mapping[OverlayKind, str]] = MappingProxyType(
    {
        "budgets": "overlay_run",
        "forms": "overlay_run",
        "state": "overlay_run",
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


def write_overlay_page(
    page: Path,
    directory: Path,
    record: Mapping[str, Any],
    values: Sequence[Value],
    definition: OverlayFigures,
) -> list[str]:
    """Writes the blocks of a run's figures into a page; see `bench.figures.page.write_blocks`.

    Figures of tables, of a thousand brokers of times and of hops say apart which run they are of.
    """
    measured = {figure["name"] for figure in record["figures"]}
    written = []
    for run in dict.fromkeys(RUNS.values()):
        figures = [one for one in definition.figures if RUNS[one.kind] == run]
        if measured & {one.name for one in figures}:
            written += write_blocks(
                page,
                directory,
                record,
                values,
                figures,
                run=run,
                table=lambda figure, found: overlay_table(found),
                judge=lambda figure, found: judge(figure.name, found),
            )
    return written


def overlay_table(values: Sequence[Value]) -> str:
    """The values of a figure as a Markdown table: a row a place, a column a measure."""
    if not values:
        return ""
    measures = list(dict.fromkeys(value.measure for value in values))
    by_key = {(v.variant, v.series, v.x, v.measure): v for v in values}
    rows = [["", "", "", *measures], ["---"] * (3 + len(measures))]
    for variant, series, x in dict.fromkeys((v.variant, v.series, v.x) for v in values):
        cells = [by_key.get((variant, series, x, measure)) for measure in measures]
        rows.append([variant, series, f"{x:,.12g}" if x else "", *map(_cell, cells)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(value: Value | None) -> str:
    return BLANK if value is None else number(value.spread.median) + _UNITS.get(value.unit, "")

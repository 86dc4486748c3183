"""Figures of brokers' tables in docs: tables and the plot, between marks such as `overlay_budgets`.

Example:
    >>> overlay_table([])
    ''
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pathcast.bench.figures.page import BLANK, write_blocks
from pathcast.bench.figures.point import Value
from pathcast.bench.overlay.definition import OverlayFigures
from pathcast.bench.report import number

_UNITS: Final = {"%": " %", "x": "x", "KiB": " KiB", "ms": " ms"}


def write_overlay_page(
    page: Path,
    directory: Path,
    record: Mapping[str, Any],
    values: Sequence[Value],
    definition: OverlayFigures,
) -> list[str]:
    """Writes the blocks of a run's figures into a page; see `bench.figures.page.write_blocks`."""
    return write_blocks(
        page,
        directory,
        record,
        values,
        definition.figures,
        run="overlay_run",
        table=lambda figure, found: overlay_table(found),
        judge=lambda figure, found: [],
    )


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

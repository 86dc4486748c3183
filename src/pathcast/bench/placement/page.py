"""Figures of placement in docs: tables, plots and the paper's statements, between marks.

The marks are those of the other figures (`bench.figures.page`), with names such as `placement_9`,
and `placement_9_full` for a full run.

Example:
    >>> placement_table([])
    ''
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pathcast.bench.figures.page import BLANK, marks_of, refreshed, run_text, time_text
from pathcast.bench.figures.point import Value
from pathcast.bench.figures.verdicts import statements_table
from pathcast.bench.placement.definition import PlacementFigures
from pathcast.bench.placement.statements import judge
from pathcast.bench.report import number

_UNITS: Final = {"%": " %", "x": "x", "s": " s", "MiB": " MiB"}


def write_placement_page(
    page: Path,
    directory: Path,
    record: Mapping[str, Any],
    values: Sequence[Value],
    definition: PlacementFigures,
) -> list[str]:
    """Writes the blocks of a run's figures into a page.

    Args:
        page: The page, with marks.
        directory: Of the run, for links to plots.
        record: The record of the run.
        values: Its values.
        definition: The figures.

    Returns:
        Names of the blocks that were written.

    Raises:
        ConfigError: There is no such page, or it has no marks.
    """
    text, marked = marks_of(page)
    link = os.path.relpath(directory.resolve(), page.resolve().parent)
    # Full runs have blocks of their own, so that a page can show both.
    suffix = "_full" if record["set"] == "full" else ""
    blocks = {f"placement_run{suffix}": run_text(record, link)}
    for figure in definition.figures:
        found = [value for value in values if value.figure == figure.name]
        if found:
            plot = directory / f"{figure.file_stem}.png"
            parts = [f"![{figure.caption}]({link}/{plot.name})"] if plot.is_file() else []
            parts.append(placement_table(found))
            verdicts = judge(figure.name, found)
            if verdicts:
                parts.append(statements_table(verdicts))
            blocks[figure.block + suffix] = "\n\n".join(parts)
    page.write_text(refreshed(text, blocks), encoding="utf-8")
    return [name for name in marked if name in blocks]


def placement_table(values: Sequence[Value]) -> str:
    """The values of a figure as a Markdown table: a row a place, a column a measure."""
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
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Value | None) -> str:
    if value is None:
        return BLANK
    median = value.spread.median
    return time_text(median) if value.unit == "us" else number(median) + _UNITS.get(value.unit, "")

"""Figures on wire formats in docs/figures.md: tables, plots and statements, between marks.

The marks are those of the other figures (`bench.figures.page`), with names such as `wire_7`.

Example:
    >>> wire_table(WireFigure(name="7", title="t", kind="size", sets={}), [])
    ''
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.figures.page import BLANK, FigurePage
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import markdown
from pathcast_lab.bench.wire.definition import WireFigure
from pathcast_lab.bench.wire.experiments import STEPS
from pathcast_lab.bench.wire.statements import judge
from pathcast_papers.onyx.wire_formats import FormatCost, WireFormat


def wire_table(figure: WireFigure, values: Sequence[Value]) -> str:
    """A figure as Markdown tables."""
    if not values:
        return ""
    tables = {
        "size": lambda: [_by_complexity(values, "size", "B")],
        "delay": lambda: [_by_complexity(values, "delay", "µs"), _steps(values)],
        "links": lambda: [_links(values)],
        "connections": lambda: [_connections(values)],
    }[figure.kind]()
    return "\n\n".join(map(markdown, tables))


def measured_costs(values: Sequence[Value], variant: str) -> dict[WireFormat, FormatCost]:
    """What formats cost at one complexity, from the values of Figures 7 and 8 of one run.

    This is what `pathcast_papers.onyx.wire_formats.best_format` takes.
    """
    table = {(v.series, v.measure): v.spread.median for v in values if v.variant == variant}
    return {
        format: FormatCost(table[format.value, "size"], table[format.value, "delay"] / 1e6)
        for format in WireFormat
        if (format.value, "size") in table and (format.value, "delay") in table
    }


def _by_complexity(values: Sequence[Value], measure: str, unit: str) -> list[list[str]]:
    found = {(v.series, v.variant): v.spread.median for v in values if v.measure == measure}
    variants = list(dict.fromkeys(value.variant for value in values))
    rows = [[f"{measure} of a message, {unit}", *variants]]
    for series in dict.fromkeys(value.series for value in values):
        cells = [found.get((series, variant)) for variant in variants]
        rows.append([series, *(BLANK if cell is None else number(cell) for cell in cells)])
    return rows


def _steps(values: Sequence[Value]) -> list[list[str]]:
    last = values[-1].variant
    found = {(v.series, v.measure): v.spread.median for v in values if v.variant == last}
    rows = [[f"µs at {last}", *STEPS]]
    for series in dict.fromkeys(name for name, measure in found if measure in STEPS):
        cells = [found.get((series, step)) for step in STEPS]
        rows.append([series, *(BLANK if cell is None else number(cell) for cell in cells)])
    return rows


def _links(values: Sequence[Value]) -> list[list[str]]:
    found = {(v.series, v.variant, v.x): v.spread.median for v in values}
    variants = list(dict.fromkeys(value.variant for value in values))
    names = list(dict.fromkeys(value.series for value in values))
    rows = [["Mb/s", *variants]]
    for bandwidth in sorted({value.x for value in values}):
        cells = []
        for variant in variants:
            times = {name: found[name, variant, bandwidth] for name in names}
            best = min(times, key=lambda name: times[name])
            by_text = 100 * times[best] / times["text"]
            cells.append(f"{best} ({number(times[best])} µs, {number(by_text)} % of text)")
        rows.append([f"{bandwidth:g}", *cells])
    return rows


def _connections(values: Sequence[Value]) -> list[list[str]]:
    rows = [["a connection", "µs a message", "least", "most"]]
    for value in values:
        spread = value.spread
        rows.append([value.series, *map(number, (spread.median, spread.least, spread.most))])
    return rows


PAGE: Final = FigurePage[WireFigure](
    run=lambda figure: "wire_run",
    table=wire_table,
    judge=lambda figure, found: judge(figure.name, found),
)

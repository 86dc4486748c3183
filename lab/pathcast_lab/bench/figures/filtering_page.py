"""The figures on filtering in docs/figures.md: a row for each place, a column for each curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.figures.definition import FigureDefinition
from pathcast_lab.bench.figures.page import BLANK, FigurePage, time_text
from pathcast_lab.bench.figures.point import FIRST_PASS, KERNEL, Value
from pathcast_lab.bench.figures.statements import judge
from pathcast_lab.bench.figures.verdicts import markdown

YFILTER = "yfilter"

AXES = {
    "queries": "Q",
    "depth_max": "D",
    "wildcard": "W",
    "descendant": "DS",
    "predicates": "P",
    "nested_paths": "NP",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its heading.
        cells: (variant, x) -> text.
    """

    title: str
    cells: Mapping[tuple[str, float], str]


def table(figure: FigureDefinition, values: Sequence[Value]) -> str:
    """A figure as a Markdown table: a row for each place, a column for each curve.

    Where the paper's text gives a number it stands beside ours, in its own unit.
    """
    if figure.kind == "sweep":
        columns = [*_times(figure, values), *_ratios(figure, values)]
    else:
        columns = _measures(figure, values)
    columns += _paper(figure, {column.title for column in columns})
    tables = [_columns_table(figure, columns)]
    shown = _shown(figure, values) if figure.kind == "sweep" else []
    if shown:
        tables.append(_columns_table(figure, shown))
    return "\n\n".join(tables)


def _columns_table(figure: FigureDefinition, columns: Sequence[Column]) -> str:
    places = {place for column in columns for place in column.cells}
    labels = [variant.label for variant in figure.variants]
    rows = sorted(places, key=lambda place: (labels.index(place[0]), place[1]))
    has_variants = len(labels) > 1
    heading = [*([""] if has_variants else []), AXES[figure.x], *(c.title for c in columns)]
    lines = [heading]
    for variant, x in rows:
        cells = [column.cells.get((variant, x), BLANK) for column in columns]
        lines.append([*([variant] if has_variants else []), f"{x:,g}", *cells])
    return markdown(lines)


def _times(figure: FigureDefinition, values: Sequence[Value]) -> list[Column]:
    """MQPT, and as a multiple of the yardstick in parentheses."""
    columns = []
    for algorithm in figure.algorithms:
        columns.append(_time_column(values, algorithm.value, None, algorithm.value))
    families = sorted({value.queries for value in values if value.series == KERNEL})
    for family in [None] if figure.x == "queries" else families:
        size = "" if family is None else f", Q={family:,}"
        for series in (KERNEL, FIRST_PASS):
            columns.append(_time_column(values, series, family, series + size))
    return [column for column in columns if column.cells]


def _time_column(values: Sequence[Value], series: str, queries: int | None, title: str) -> Column:
    mine = [v for v in values if v.series == series and queries in (None, v.queries)]
    by_lxml = {(v.variant, v.x): v.spread.median for v in mine if v.measure == "by lxml"}
    cells = {
        (v.variant, v.x): f"{time_text(v.spread.median)} ({number(by_lxml[v.variant, v.x])})"
        for v in mine
        if v.measure == "mqpt"
    }
    return Column(title, cells)


def _ratios(figure: FigureDefinition, values: Sequence[Value]) -> list[Column]:
    """The other reference algorithms as multiples of YFilter."""
    mqpt = {(v.series, v.variant, v.x): v.spread.median for v in values if v.measure == "mqpt"}
    columns = []
    for algorithm in figure.algorithms:
        if algorithm.value != YFILTER:
            cells = {
                (variant, x): number(value / mqpt[YFILTER, variant, x])
                for (series, variant, x), value in mqpt.items()
                if series == algorithm.value and (YFILTER, variant, x) in mqpt
            }
            columns.append(Column(f"{algorithm.value} : {YFILTER}", cells))
    return columns


def _shown(figure: FigureDefinition, values: Sequence[Value]) -> list[Column]:
    """Further measures, of each algorithm that has them; once, where they are the same for all."""
    series = [algorithm.value for algorithm in figure.algorithms]
    if figure.view == "components":
        series.append(KERNEL)
    columns: list[Column] = []
    for measure in figure.shown:
        found: list[Column] = []
        for one in series:
            cells = {
                (v.variant, v.x): _text(v)
                for v in values
                if v.series == one and v.measure == measure
            }
            if cells:
                found.append(Column(f"{measure}, {one}", cells))
        longest = max((column.cells for column in found), key=len, default={})
        is_same = all(column.cells.items() <= longest.items() for column in found)
        columns += [Column(measure, longest)] if found and is_same else found
    return columns


def _text(value: Value) -> str:
    median = value.spread.median
    return time_text(median) if value.unit == "us" else number(median)


def _measures(figure: FigureDefinition, values: Sequence[Value]) -> list[Column]:
    """The columns of a table: every measure of every series, or those that are named."""
    kinds = dict.fromkeys((v.series, v.queries, v.measure, v.unit) for v in values)
    columns: dict[str, dict[tuple[str, float], str]] = {}
    for series, queries, measure, unit in kinds:
        if figure.shown and measure not in figure.shown:
            continue
        if (series, measure) == (FIRST_PASS, "matches"):
            continue
        is_kernel = series in (KERNEL, FIRST_PASS)
        size = f", Q={queries:,}" if figure.x != "queries" and is_kernel else ""
        name = measure if measure == series else f"{series} {measure}"
        title = f"{name}{size}" if unit in ("1", "1/message") else f"{name}{size} ({unit})"
        cells = columns.setdefault(title, {})
        for v in values:
            if (v.series, v.queries, v.measure) == (series, queries, measure):
                cells[v.variant, v.x] = number(v.spread.median)
    return [Column(title, cells) for title, cells in columns.items()]


def _paper(figure: FigureDefinition, titles: set[str]) -> list[Column]:
    """What the paper's text says, a column for each curve that it gives numbers of."""
    columns: dict[str, dict[tuple[str, float], str]] = {}
    for point in figure.paper:
        unit = "" if point.unit == "1" else f" {point.unit}"
        title = f"paper: {point.series} ({point.where})"
        columns.setdefault(title, {})[point.variant, point.x] = f"{number(point.value)}{unit}"
    assert not titles & columns.keys()
    return [Column(title, cells) for title, cells in columns.items()]


PAGE: Final = FigurePage[FigureDefinition](
    run=lambda figure: "run",
    table=table,
    judge=lambda figure, found: judge(figure.name, found, figure.paper),
)
"""Of the figures on filtering."""

"""docs/figures.md: tables and plots of a run between marks, prose of people around them.

A block begins with `<!-- figures:11 -->` and ends with `<!-- /figures:11 -->`; the block `run` says
which run the page shows. Writing a page again changes what is between the marks and nothing else,
so that numbers are never typed.

Example:
    >>> print(refreshed("a <!-- figures:11 -->old<!-- /figures:11 --> b", {"11": "new"}))
    a <!-- figures:11 -->
    new
    <!-- /figures:11 --> b
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from pathcast.cli.columns import number
from pathcast.errors import ConfigError
from pathcast_lab.bench.figures.definition import FigureDefinition
from pathcast_lab.bench.figures.point import FIRST_PASS, KERNEL, Value
from pathcast_lab.bench.figures.statements import judge
from pathcast_lab.bench.figures.verdicts import Verdict, statements_table

BLANK = "–"
YFILTER = "yfilter"

_BLOCK = re.compile(r"<!-- figures:(?P<name>\w+) -->.*?<!-- /figures:(?P=name) -->", re.DOTALL)

AXES = {
    "queries": "Q",
    "depth_max": "D",
    "wildcard": "W",
    "descendant": "DS",
    "predicates": "P",
    "nested_paths": "NP",
}


class BlockFigure(Protocol):
    """What a page shows of a figure's definition."""

    @property
    def name(self) -> str:
        """As its values name it."""
        ...

    @property
    def caption(self) -> str:
        """Such as "Figure 11"."""
        ...

    @property
    def file_stem(self) -> str:
        """Of its plot."""
        ...

    @property
    def block(self) -> str:
        """Name of its block."""
        ...


FigureType = TypeVar("FigureType", bound=BlockFigure)


@dataclass(frozen=True, kw_only=True)
class FigurePage(Generic[FigureType]):
    """How the figures of a paper stand in a page, between marks.

    Attributes:
        run: A figure -> the block that says which run it is of.
        table: A figure and its values as Markdown.
        judge: What the paper says of a figure, judged by its values.
        has_full: Whether full runs have blocks of their own, so that a page can show both.
    """

    run: Callable[[FigureType], str]
    table: Callable[[FigureType, Sequence[Value]], str]
    judge: Callable[[FigureType, Sequence[Value]], Sequence[Verdict]]
    has_full: bool = False

    def write(
        self,
        page: Path,
        directory: Path,
        record: Mapping[str, Any],
        values: Sequence[Value],
        figures: Sequence[FigureType],
    ) -> list[str]:
        """Writes the blocks of a run's figures into a page.

        Args:
            page: The page, with marks.
            directory: Of the run, for links to plots.
            record: The record of the run.
            values: Its values.
            figures: Their definitions.

        Returns:
            Names of the blocks that were written.

        Raises:
            ConfigError: There is no such page, or it has no marks.
        """
        text, marked = marks_of(page)
        link = os.path.relpath(directory.resolve(), page.resolve().parent)
        suffix = "_full" if self.has_full and record["set"] == "full" else ""
        notes = {one["name"]: one["notes"] for one in record["figures"]}
        blocks: dict[str, str] = {}
        for figure in figures:
            if figure.name not in notes:
                continue
            blocks[self.run(figure) + suffix] = run_text(record, link)
            found = [value for value in values if value.figure == figure.name]
            if found:
                plot = directory / f"{figure.file_stem}.png"
                image = f"![{figure.caption}]({link}/{plot.name})\n\n" if plot.is_file() else ""
                parts = [image + self.table(figure, found)]
                if verdicts := self.judge(figure, found):
                    parts.append(statements_table(verdicts))
                said = "".join(f"\n- {note}" for note in notes[figure.name])
                blocks[figure.block + suffix] = "\n\n".join(parts) + (f"\n{said}" if said else "")
        page.write_text(refreshed(text, blocks), encoding="utf-8")
        return [name for name in marked if name in blocks]


def places_table(values: Sequence[Value], units: Mapping[str, str]) -> str:
    """Values as a Markdown table: a row a place, a column a measure.

    Args:
        values: Of one figure.
        units: What is written behind a number of a unit; nothing for the others.
    """
    if not values:
        return ""
    measures = list(dict.fromkeys(value.measure for value in values))
    by_key = {(v.variant, v.series, v.x, v.measure): v for v in values}
    rows = [["", "", "", *measures], ["---"] * (3 + len(measures))]
    for variant, series, x in dict.fromkeys((v.variant, v.series, v.x) for v in values):
        cells = [by_key.get((variant, series, x, measure)) for measure in measures]
        texts = [
            BLANK if cell is None else number(cell.spread.median) + units.get(cell.unit, "")
            for cell in cells
        ]
        rows.append([variant, series, f"{x:,.12g}" if x else "", *texts])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def marks_of(page: Path) -> tuple[str, list[str]]:
    """The text of a page, and the names of its blocks.

    Raises:
        ConfigError: There is no such page, or it has no marks.
    """
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        reason = f"{page} cannot be read: {error.strerror}"
        raise ConfigError("config.invalid", key="--page", reason=reason) from error
    marked = [match["name"] for match in _BLOCK.finditer(text)]
    if not marked:
        raise ConfigError(
            "config.invalid", key="--page", reason=f"{page} has no <!-- figures:... --> marks"
        )
    return text, marked


def refreshed(text: str, blocks: Mapping[str, str]) -> str:
    """The text with new contents between the marks; blocks without new contents stay."""

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in blocks:
            return match[0]
        return f"<!-- figures:{name} -->\n{blocks[name].strip()}\n<!-- /figures:{name} -->"

    return _BLOCK.sub(replaced, text)


def run_text(record: Mapping[str, Any], link: str) -> str:
    """Which run a page shows."""
    machine, load = record["machine"], record["machine"]["load"]
    workloads = sorted({one["workload"] for one in record["figures"]})
    failed = [f"{one['name']}: {one['failure']}" for one in record["figures"] if one["failure"]]
    lines = [
        f"Run of {record['started'][:10]}, commit {(record['commit'] or 'unknown')[:10]}, set "
        f"`{record['set']}`, workloads {', '.join(workloads)}; {machine['cpu']}, "
        f"{machine['cores']} cores, load {number(load[0]) if load else 'unknown'} before and "
        f"{number(record['load_at_end'][0]) if record['load_at_end'] else 'unknown'} after. "
        f"Values, checks and notes: [{RUN_LINK}]({link}).",
        *(f"Failed: {one}." for one in failed),
    ]
    return "\n".join(lines)


RUN_LINK = "values.csv and record.json"


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
    tables = [_markdown(figure, columns)]
    shown = _shown(figure, values) if figure.kind == "sweep" else []
    if shown:
        tables.append(_markdown(figure, shown))
    return "\n\n".join(tables)


def _markdown(figure: FigureDefinition, columns: Sequence[Column]) -> str:
    places = {place for column in columns for place in column.cells}
    labels = [variant.label for variant in figure.variants]
    rows = sorted(places, key=lambda place: (labels.index(place[0]), place[1]))
    has_variants = len(labels) > 1
    heading = [*([""] if has_variants else []), AXES[figure.x], *(c.title for c in columns)]
    lines = [heading, ["---"] * len(heading)]
    for variant, x in rows:
        cells = [column.cells.get((variant, x), BLANK) for column in columns]
        lines.append([*([variant] if has_variants else []), f"{x:,g}", *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


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


def time_text(microseconds: float) -> str:
    """A time in the unit that reads best.

    Example:
        >>> time_text(950.0), time_text(12_345.0)
        ('950 µs', '12.3 ms')
    """
    if microseconds < 1000:
        return f"{number(microseconds)} µs"
    return f"{number(microseconds / 1000)} ms"


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

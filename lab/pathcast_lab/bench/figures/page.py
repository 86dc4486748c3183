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
from typing import Any, Generic, Protocol, TypeVar

from pathcast.cli.columns import number
from pathcast.errors import ConfigError
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import Verdict, markdown, statements_table

BLANK = "–"

_BLOCK = re.compile(r"<!-- figures:(?P<name>\w+) -->.*?<!-- /figures:(?P=name) -->", re.DOTALL)


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
    rows = [["", "", "", *measures]]
    for variant, series, x in dict.fromkeys((v.variant, v.series, v.x) for v in values):
        cells = [by_key.get((variant, series, x, measure)) for measure in measures]
        texts = [
            BLANK if cell is None else number(cell.spread.median) + units.get(cell.unit, "")
            for cell in cells
        ]
        rows.append([variant, series, f"{x:,.12g}" if x else "", *texts])
    return markdown(rows)


def time_text(microseconds: float) -> str:
    """A time in the unit that reads best.

    Example:
        >>> time_text(950.0), time_text(12_345.0)
        ('950 µs', '12.3 ms')
    """
    if microseconds < 1000:
        return f"{number(microseconds)} µs"
    return f"{number(microseconds / 1000)} ms"


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

"""Figures of the paper on chunking in docs/figures.md: tables, plots and statements, between marks.

The marks are those of the other figures (`bench.figures.page`), with names such as `chunking_11`.

Example:
    >>> chunking_table(ChunkingFigure(name="11", title="t", kind="times", sets={}), [])
    ''
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pathcast.bench.chunking.definition import ChunkingFigure, ChunkingFigures
from pathcast.bench.chunking.experiments import CLEANED, WHOLE
from pathcast.bench.chunking.statements import judge
from pathcast.bench.figures.page import BLANK, marks_of, refreshed, run_text
from pathcast.bench.figures.point import Value
from pathcast.bench.figures.verdicts import statements_table
from pathcast.bench.report import number

_TIMES = ("chunking", "sum", "first", "last in parallel", WHOLE, CLEANED)


def write_chunking_page(
    page: Path,
    directory: Path,
    record: Mapping[str, Any],
    values: Sequence[Value],
    definition: ChunkingFigures,
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
    blocks = {"chunking_run": run_text(record, link)}
    by_name = {one["name"]: one for one in record["figures"]}
    for figure in definition.figures:
        found = [value for value in values if value.figure == figure.name]
        if found and figure.name in by_name:
            plot = directory / f"{figure.file_stem}.png"
            image = f"![{figure.caption}]({link}/{plot.name})\n\n" if plot.is_file() else ""
            parts = [image + chunking_table(figure, found)]
            verdicts = judge(figure.name, found)
            if verdicts:
                parts.append(statements_table(verdicts))
            blocks[figure.block] = "\n\n".join(parts)
    page.write_text(refreshed(text, blocks), encoding="utf-8")
    return [name for name in marked if name in blocks]


def chunking_table(figure: ChunkingFigure, values: Sequence[Value]) -> str:
    """A figure as Markdown tables."""
    if not values:
        return ""
    rows = {
        "distribution": _shares,
        "times": _times,
        "sizes": _sizes,
        "schemes": _schemes,
    }[figure.kind](values)
    tables = [_markdown(rows)]
    if figure.paper:
        paper = [
            [point.series, point.variant, f"{point.x:g}", f"{number(point.value)} {point.unit}"]
            for point in figure.paper
        ]
        tables.append(_markdown([["paper", "", "chunks", "says"], *paper]))
    return "\n\n".join(tables)


def _points(values: Sequence[Value]) -> list[tuple[int, float]]:
    return sorted({(value.queries, value.x) for value in values})


def _table(values: Sequence[Value]) -> dict[tuple[str, int, float, str], float]:
    return {(v.series, v.queries, v.x, v.measure): v.spread.median for v in values}


def _shares(values: Sequence[Value]) -> list[list[str]]:
    table = _table(values)
    names = [*sorted({value.series for value in values} - {"potpourri"}), "potpourri"]
    rows = [["Q", "chunks", *names]]
    for queries, chunks in _points(values):
        cells = [_share(table.get((name, queries, chunks, "share"))) for name in names]
        rows.append([f"{queries:,}", f"{chunks:g}", *cells])
    return rows


def _times(values: Sequence[Value]) -> list[list[str]]:
    table = _table(values)
    rows = [
        [
            "",
            "Q",
            "chunks",
            *_TIMES,
            "sum by whole",
            "first",
            "parallel",
            "cleaned",
            "largest piece",
        ]
    ]
    for series in dict.fromkeys(value.series for value in values):
        for queries, chunks in _points(values):
            times = [table.get((series, queries, chunks, measure)) for measure in _TIMES]
            if None in times:
                continue
            known = [time for time in times if time is not None]
            by_whole = [f"{number(100 * known[place] / known[4])} %" for place in (1, 2, 3, 5)]
            piece = table[series, queries, chunks, "largest piece"]
            piece /= table[series, queries, chunks, "message"]
            cells = [f"{number(time)} ms" for time in known]
            largest = f"{number(100 * piece)} %"
            rows.append([series, f"{queries:,}", f"{chunks:g}", *cells, *by_whole, largest])
    return rows


def _sizes(values: Sequence[Value]) -> list[list[str]]:
    table = _table(values)
    rows = [["chunks", "prefix", "queries", "elements", "size"]]
    for queries, chunks in _points(values):
        here = [v.series for v in values if (v.queries, v.x) == (queries, chunks)]
        for name in dict.fromkeys(here):
            key = (name, queries, chunks)
            elements = table.get((*key, "elements"))
            size = table.get((*key, "size"), 0.0)
            rows.append(
                [
                    f"{chunks:g}",
                    name if name == "potpourri" else f"`{name}`",
                    _share(table.get((*key, "share"))),
                    BLANK if elements is None else f"{elements:,.0f}",
                    f"{number(size)} KB",
                ]
            )
    return rows


def _schemes(values: Sequence[Value]) -> list[list[str]]:
    table = _table(values)
    rows = [["Q", "chunks", "scheme", "total", "slowest"]]
    for queries, chunks in _points(values):
        for name in dict.fromkeys(value.series for value in values):
            cells = [_share(table.get((name, queries, chunks, m))) for m in ("total", "slowest")]
            rows.append([f"{queries:,}", f"{chunks:g}", name, *cells])
    return rows


def _share(value: float | None) -> str:
    return BLANK if value is None else f"{number(value)} %"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

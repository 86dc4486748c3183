"""Figures of the paper on chunking in docs/figures.md: tables, plots and statements, between marks.

The marks are those of the other figures (`bench.figures.page`), with names such as `chunking_11`.

Example:
    >>> chunking_table(ChunkingFigure(name="11", title="t", kind="times", sets={}), [])
    ''
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.chunking.definition import ChunkingFigure
from pathcast_lab.bench.chunking.experiments import CLEANED, WHOLE
from pathcast_lab.bench.chunking.statements import judge
from pathcast_lab.bench.figures.page import BLANK, FigurePage
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import markdown

_TIMES = ("chunking", "sum", "first", "last in parallel", WHOLE, CLEANED)


def chunking_table(figure: ChunkingFigure, values: Sequence[Value]) -> str:
    """A figure as Markdown tables."""
    if not values:
        return ""
    rows = {
        "distribution": _shares,
        "times": _times,
        "sizes": _sizes,
        "schemes": _schemes,
        "memory": _memory,
    }[figure.kind](values)
    tables = [markdown(rows)]
    if figure.paper:
        paper = [
            [point.series, point.variant, f"{point.x:g}", f"{number(point.value)} {point.unit}"]
            for point in figure.paper
        ]
        tables.append(markdown([["paper", "", "chunks", "says"], *paper]))
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


def _memory(values: Sequence[Value]) -> list[list[str]]:
    table = _table(values)
    rows = [["Q", "chunks", "process", "reads", "before", "peak", "by whole"]]
    for queries, chunks in _points(values):
        whole = table["whole", queries, chunks, "peak"]
        for name in dict.fromkeys(value.series for value in values):
            size, before, peak = (
                table[name, queries, chunks, measure] for measure in ("size", "before", "peak")
            )
            cells = [f"{number(size)} MB", f"{number(before)} MiB", f"{number(peak)} MiB"]
            rows.append([f"{queries:,}", f"{chunks:g}", name, *cells, _share(100 * peak / whole)])
    return rows


def _share(value: float | None) -> str:
    return BLANK if value is None else f"{number(value)} %"


PAGE: Final = FigurePage[ChunkingFigure](
    run=lambda figure: "chunking_run",
    table=chunking_table,
    judge=lambda figure, found: judge(figure.name, found),
)

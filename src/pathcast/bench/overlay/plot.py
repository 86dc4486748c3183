"""Plots: table bytes against bytes wrongly forwarded, and time a hop. The others are tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pathcast.bench.figures.plot import DOTS_AN_INCH
from pathcast.bench.figures.point import Value
from pathcast.bench.overlay.budgets import COMMON, COVERING, OPTIMISED, TABLES, WRONG
from pathcast.bench.overlay.definition import OverlayFigure
from pathcast.bench.overlay.hops import CUT_THROUGH, HOP, STORED
from pathcast.bench.timing import missing_library

_Values: TypeAlias = Mapping[tuple[str, float, str], float]
"""Series, place on the axis and measure -> median."""


def draw_overlay(figure: OverlayFigure, values: Sequence[Value], workload: str, path: Path) -> bool:
    """Writes the plot of a figure; as `bench.placement.plot.draw_placement`.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    del workload
    draw = {"budgets": _draw_budgets, "hops": _draw_hops}.get(figure.kind)
    if draw is None or not values:
        return False
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise missing_library("matplotlib") from error
    variants = list(dict.fromkeys(value.variant for value in values))
    # No pyplot: it would keep figures, and a backend, for the whole process.
    drawn = Figure(figsize=(4 * len(variants), 4), layout="constrained")
    FigureCanvasAgg(drawn)
    drawn.suptitle(figure.title, fontsize="medium")
    grid = drawn.subplots(1, len(variants), squeeze=False)[0]
    for axes, variant in zip(grid, variants, strict=True):
        own = {
            (value.series, value.x, value.measure): value.spread.median
            for value in values
            if value.variant == variant
        }
        draw(axes, own)
        axes.set_title(variant, fontsize="small")
        axes.legend(fontsize="x-small")
    drawn.savefig(path, dpi=DOTS_AN_INCH)
    return True


def _draw_budgets(axes: Any, own: _Values) -> None:
    points = {
        (series, x): (own[series, x, TABLES], own[series, x, WRONG])
        for series, x, measure in own
        if measure == TABLES
    }
    curve = sorted(at for (series, _), at in points.items() if series in (OPTIMISED, "exact"))
    axes.plot(*zip(*curve, strict=True), "o-", color="#4c78a8", label=OPTIMISED, markersize=4)
    for series, mark in ((COMMON, "s"), (COVERING, "^")):
        at = points[series, 0.0]
        axes.plot([at[0]], [at[1]], mark, label=series, color="#e45756")
    others = [
        at for (series, x), at in points.items() if not x and series not in (COMMON, COVERING)
    ]
    axes.plot(*zip(*others, strict=True), ".", color="#999999", label="one level for all")
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlabel("% of the exact tables' bytes")
    axes.set_ylabel("% of bytes wrongly forwarded")


def _draw_hops(axes: Any, own: _Values) -> None:
    for way, mark in ((CUT_THROUGH, "o-"), (STORED, "s--")):
        curve = sorted(
            (x, y) for (series, x, kind), y in own.items() if (series, kind) == (way, HOP)
        )
        axes.plot(*zip(*curve, strict=True), mark, label=way, markersize=4)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("bytes of a message")
    axes.set_ylabel("ms for a further hop")

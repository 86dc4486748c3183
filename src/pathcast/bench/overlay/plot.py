"""The plot of table bytes against bytes wrongly forwarded. The other figures are tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pathcast.bench.figures.plot import DOTS_AN_INCH
from pathcast.bench.figures.point import Value
from pathcast.bench.overlay.budgets import COMMON, COVERING, OPTIMISED, TABLES, WRONG
from pathcast.bench.overlay.definition import OverlayFigure
from pathcast.bench.timing import missing_library


def draw_overlay(figure: OverlayFigure, values: Sequence[Value], workload: str, path: Path) -> bool:
    """Writes the plot of a figure; as `bench.placement.plot.draw_placement`.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    del workload
    if figure.kind != "budgets" or not values:
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
        axes.set_title(variant, fontsize="small")
        axes.legend(fontsize="x-small")
    drawn.savefig(path, dpi=DOTS_AN_INCH)
    return True

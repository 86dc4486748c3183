"""Plots of figures of networks of brokers. What is not drawn is a table.

They are drawn from values alone, so that old runs can be drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pathcast_lab.bench.figures.plot import drawing
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.overlay.budgets import COMMON, COVERING, OPTIMISED, TABLES, WRONG
from pathcast_lab.bench.overlay.definition import OverlayFigure
from pathcast_lab.bench.overlay.hops import HOP
from pathcast_lab.bench.overlay.host_brokers import HOSTS, LINKS
from pathcast_lab.bench.overlay.links import EXACT, GROUP

COLOURS: Final = ("#e45756", "#4c78a8", "#59a14f", "#b279a2")
LINES: Final = ("o-", "s:", "^--")


def draw_overlay(figure: OverlayFigure, values: Sequence[Value], workload: str, path: Path) -> bool:
    """Writes the plot of a figure; as `bench.placement.plot.draw_placement`.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    del workload
    has_curve = len({value.x for value in values}) > 1
    if not values or figure.kind not in _DRAWN or not has_curve:
        return False
    variants = list(dict.fromkeys(value.variant for value in values))
    size = (max(5, 4 * len(variants)), 4)
    with drawing(path, figure.title, size, len(variants)) as panels:
        for axes, variant in zip(panels, variants, strict=True):
            _DRAWN[figure.kind](axes, [value for value in values if value.variant == variant])
            axes.set_title(variant, fontsize="small")
            axes.legend(fontsize="x-small")
    return True


def _draw_budgets(axes: Any, values: Sequence[Value]) -> None:
    own = {(value.series, value.x, value.measure): value.spread.median for value in values}
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
    if others:
        axes.plot(*zip(*others, strict=True), ".", color="#999999", label="one level for all")
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlabel("% of the exact tables' bytes")
    axes.set_ylabel("% of bytes wrongly forwarded")


def _draw_hops(axes: Any, values: Sequence[Value]) -> None:
    _curves(axes, values, (HOP,))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("bytes of a message")
    axes.set_ylabel("ms for a further hop")


def _draw_links(axes: Any, values: Sequence[Value]) -> None:
    _curves(axes, values, (EXACT, GROUP))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("profiles")
    axes.set_ylabel("% of the bytes of flooding")


def _draw_host_brokers(axes: Any, values: Sequence[Value]) -> None:
    _curves(axes, values, (HOSTS, LINKS))
    axes.set_xlabel("repeated elements")
    axes.set_ylabel("% of brokers, of links")


def _draw_in_force(axes: Any, values: Sequence[Value]) -> None:
    for measure, line in zip(("median", "most"), LINES, strict=False):
        found = sorted((v.x, v.spread.median) for v in values if v.measure == measure)
        axes.plot(*zip(*found, strict=True), line, color=COLOURS[1], label=measure, markersize=4)
    axes.set_xscale("log")
    axes.set_xlabel("brokers")
    axes.set_ylabel("ms until in force")


def _curves(axes: Any, values: Sequence[Value], measures: Sequence[str]) -> None:
    """A curve for each series, which have colours, and measure, which have lines."""
    for series, colour in zip(dict.fromkeys(v.series for v in values), COLOURS, strict=False):
        for measure, line in zip(measures, LINES, strict=False):
            found = sorted(
                (v.x, v.spread.median) for v in values if (v.series, v.measure) == (series, measure)
            )
            label = f"{series}: {measure}"
            axes.plot(*zip(*found, strict=True), line, color=colour, label=label, markersize=4)


_DRAWN: Final = {
    "budgets": _draw_budgets,
    "pareto": _draw_budgets,
    "links": _draw_links,
    "host_brokers": _draw_host_brokers,
    "in_force": _draw_in_force,
    "hops": _draw_hops,
}

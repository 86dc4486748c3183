"""The plots: reference algorithms on the left, the kernel on the right, both against the yardstick.

The axes of the reference algorithms are linear, as the paper's are, so that shapes can be compared;
the kernel's is logarithmic, for a warm matcher and a first pass lie far apart. Times are multiples
of what `lxml.etree.fromstring` takes for the same messages in the same run.

It draws from values alone, so that old runs can be drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pathcast_lab.bench.figures.definition import FigureDefinition
from pathcast_lab.bench.figures.plot import draw_line, drawing
from pathcast_lab.bench.figures.point import FIRST_PASS, KERNEL, Value

COLOURS: Final = {
    "xfilter-basic": "#e45756",
    "xfilter": "#f58518",
    "hybrid": "#eeca3b",
    "yfilter": "#4c78a8",
    "yfilter-inline": "#e45756",
    "yfilter-sorted": "#54a24b",
}

LINES: Final = ("-", "--", ":")

AXES: Final = {
    "queries": "number of queries (x 1000)",
    "depth_max": "maximum depth D",
    "wildcard": "W, probability of *",
    "descendant": "DS, probability of //",
    "predicates": "P, predicates a query",
    "nested_paths": "NP, nested paths a query",
}


def draw(figure: FigureDefinition, values: Sequence[Value], workload: str, path: Path) -> bool:
    """Writes the plot of a figure.

    Args:
        figure: Its definition.
        values: What was measured.
        workload: Where the inputs came from.
        path: A PNG or SVG.

    Returns:
        Whether there was something to draw: tables are not drawn.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    if figure.kind != "sweep" or not values:
        return False
    view = {"components": _components, "tried": _tried, "kernel": _kernel}[figure.view]
    title = f"{figure.caption}: {figure.title}, {workload}"
    with drawing(path, title, (10, 4), panels=2) as (left, right):
        _references(left, figure, values)
        view(right, figure, values)
    return True


def _references(axes: Any, figure: FigureDefinition, values: Sequence[Value]) -> None:
    for variant, line in zip(figure.variants, LINES, strict=False):
        for algorithm in figure.algorithms:
            found = _curve(values, algorithm.value, variant.label, None)
            label = f"{algorithm.value} {variant.label}".rstrip()
            _line(axes, figure, found, label, COLOURS[algorithm.value], line)
    sizes = sorted({value.queries for value in values if value.series not in (KERNEL, FIRST_PASS)})
    fixed = f", Q={sizes[0]:,}" if figure.x != "queries" and len(sizes) == 1 else ""
    axes.set_title(f"reference algorithms in Python{fixed}", fontsize="small")
    _finish(axes, figure)


def _kernel(axes: Any, figure: FigureDefinition, values: Sequence[Value]) -> None:
    families = (
        [None]
        if figure.x == "queries"
        else sorted({value.queries for value in values if value.series == KERNEL})
    )
    colours = ["#4c78a8", "#72b7b2", "#b279a2", "#9d755d"]
    number = 0
    for variant in figure.variants:
        for family in families:
            colour = colours[number % len(colours)]
            number += 1
            size = "" if family is None else f"Q={family:,}"
            for series, line in ((KERNEL, "-"), (FIRST_PASS, ":")):
                found = _curve(values, series, variant.label, family)
                label = ", ".join(part for part in (series, variant.label, size) if part)
                _line(axes, figure, found, label, colour, line)
    axes.axhline(1.0, color="black", linewidth=1, label="lxml.etree.fromstring")
    axes.set_title("the kernel (logarithmic)", fontsize="small")
    _finish(axes, figure, is_logarithmic=True)


def _components(axes: Any, figure: FigureDefinition, values: Sequence[Value]) -> None:
    """Figure 13: navigation and collection, a bar for each algorithm at each place."""
    places = sorted({value.x for value in values if value.series == figure.algorithms[0].value})
    width = 0.8 / len(figure.algorithms)
    for number, algorithm in enumerate(figure.algorithms):
        parts = {
            name: [
                _median(values, algorithm.value, place, name)
                / _median(values, algorithm.value, place, "lxml")
                for place in places
            ]
            for name in ("navigation", "collection")
        }
        at = [place + (number - 1) * width for place in range(len(places))]
        colour = COLOURS[algorithm.value]
        axes.bar(at, parts["navigation"], width, color=colour, label=algorithm.value)
        axes.bar(
            at,
            parts["collection"],
            width,
            bottom=parts["navigation"],
            color=colour,
            hatch="///",
            edgecolor="white",
            label="result collection" if number == 0 else None,
        )
    axes.set_xticks(range(len(places)), [f"{place / 1000:g}" for place in places])
    axes.set_title("component costs, result collection hatched", fontsize="small")
    axes.set_xlabel(AXES["queries"])
    axes.set_ylabel("MQPT, multiple of lxml's parse")
    axes.legend(fontsize="x-small")


def _tried(axes: Any, figure: FigureDefinition, values: Sequence[Value]) -> None:
    """Figure 24: what sorting saves, whatever an evaluation costs."""
    for algorithm in figure.algorithms:
        found = sorted(
            (v.x, v.spread.median)
            for v in values
            if v.series == algorithm.value and v.measure == "predicates tried"
        )
        xs, ys = [x for x, _ in found], [y for _, y in found]
        axes.plot(xs, ys, "o-", color=COLOURS[algorithm.value], label=algorithm.value, markersize=3)
    axes.set_title("predicates tried after the structure matched", fontsize="small")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(AXES[figure.x])
    axes.set_ylabel("predicates tried a message")
    axes.legend(fontsize="x-small")


def _line(
    axes: Any, figure: FigureDefinition, found: list[Value], label: str, colour: str, line: str
) -> None:
    scale = 1000 if figure.x == "queries" else 1
    draw_line(axes, found, scale=scale, label=label, colour=colour, line=line)


def _finish(axes: Any, figure: FigureDefinition, *, is_logarithmic: bool = False) -> None:
    if is_logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(AXES[figure.x])
    axes.set_ylabel("MQPT, multiple of lxml's parse")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize="x-small")


def _curve(values: Sequence[Value], series: str, variant: str, queries: int | None) -> list[Value]:
    found = [
        value
        for value in values
        if value.series == series
        and value.variant == variant
        and value.measure == "by lxml"
        and queries in (None, value.queries)
    ]
    return sorted(found, key=lambda value: value.x)


def _median(values: Sequence[Value], series: str, x: float, measure: str) -> float:
    return next(
        value.spread.median
        for value in values
        if (value.series, value.x, value.measure) == (series, x, measure)
    )

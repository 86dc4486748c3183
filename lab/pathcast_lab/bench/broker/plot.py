"""The plots of the broker figures: algorithms on the left, the kernel on the right.

As multiples of what `lxml.etree.fromstring` takes for the same messages in the same run. Where the
figure compares optimisations the left side has bars, as the paper's Figures 7 and 10 have.

It draws from values alone, so that old runs can be drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pathcast_lab.bench.broker.definition import BrokerAlgorithm, BrokerFigure
from pathcast_lab.bench.broker.kernel_subject import KERNEL, SERIALISED
from pathcast_lab.bench.broker.statements import OPERATORS
from pathcast_lab.bench.figures.plot import draw_line, drawing
from pathcast_lab.bench.figures.point import Value

COLOURS: Final = {
    BrokerAlgorithm.F: "#e45756",
    BrokerAlgorithm.FW: "#f58518",
    BrokerAlgorithm.FWR: "#4c78a8",
    BrokerAlgorithm.SHARED: "#54a24b",
}

AXES: Final = {
    "queries": "number of queries (x 1000)",
    "predicates": "PP, predicate paths a query",
    "returns": "RP, return paths a query",
}


def draw_broker(figure: BrokerFigure, values: Sequence[Value], workload: str, path: Path) -> bool:
    """Writes the plot of a figure.

    Args:
        figure: Its definition.
        values: What was measured.
        workload: Which DTD.
        path: A PNG or SVG.

    Returns:
        Whether there was something to draw: counts of operators are not drawn.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    if figure.kind == "plans" or not values:
        return False
    panels = 2 if any(value.series in (KERNEL, SERIALISED) for value in values) else 1
    title = f"{figure.caption}: {figure.title}, {workload}"
    with drawing(path, title, (4 + 3 * panels, 4), panels) as (left, *others):
        if figure.kind == "operators":
            _operators(left, figure, values)
        elif len(figure.optimisations) > 1:
            _bars(left, figure, values)
        else:
            _lines(left, figure, values)
        for right in others:
            _kernel(right, figure, values)
    return True


def _bars(axes: Any, figure: BrokerFigure, values: Sequence[Value]) -> None:
    """A group for each optimisation, at the largest place."""
    found = [v for v in values if v.measure == "by lxml" and v.variant]
    last = max((value.x for value in found), default=0)
    width = 0.8 / len(figure.algorithms)
    for number, algorithm in enumerate(figure.algorithms):
        at, heights = [], []
        for place, how in enumerate(figure.optimisations):
            for value in found:
                if (value.series, value.variant, value.x) == (algorithm.value, how, last):
                    at.append(place + (number - 1) * width)
                    heights.append(value.spread.median)
        axes.bar(at, heights, width, color=COLOURS[algorithm], label=algorithm.value)
    axes.set_xticks(range(len(figure.optimisations)), figure.optimisations)
    axes.set_title(f"reference algorithms in Python, Q={last:,g}", fontsize="small")
    axes.set_ylabel("MQPT, multiple of lxml's parse")
    axes.legend(fontsize="x-small")


def _lines(axes: Any, figure: BrokerFigure, values: Sequence[Value]) -> None:
    for algorithm in figure.algorithms:
        _line(
            axes,
            figure,
            _curve(values, algorithm.value, "by lxml"),
            COLOURS[algorithm],
            algorithm.value,
        )
    axes.set_title("reference algorithms in Python", fontsize="small")
    axes.set_ylim(bottom=0)
    _finish(axes, figure)


def _operators(axes: Any, figure: BrokerFigure, values: Sequence[Value]) -> None:
    """Stacked costs of operators, a bar for each algorithm, optimisation and place."""
    found = [value for value in values if value.variant]
    bars = list(dict.fromkeys((v.series, v.variant, v.x) for v in found))
    by_key = {(v.series, v.variant, v.x, v.measure): v.spread.median / 1e3 for v in found}
    bottoms = [0.0] * len(bars)
    for measure in OPERATORS:
        heights = [by_key.get((*bar, measure), 0.0) for bar in bars]
        if any(heights):
            axes.bar(range(len(bars)), heights, 0.7, bottom=bottoms, label=measure)
            bottoms = [low + high for low, high in zip(bottoms, heights, strict=True)]
    labels = [
        "\n".join(
            part
            for part in (
                series.removeprefix("PathSharing-") if len(figure.algorithms) > 1 else "",
                how if len(figure.optimisations) > 1 else "",
                f"{x:,g}",
            )
            if part
        )
        for series, how, x in bars
    ]
    axes.set_xticks(range(len(bars)), labels, fontsize="x-small")
    axes.set_title("operators in Python, profiled", fontsize="small")
    axes.set_ylabel("ms a message")
    axes.legend(fontsize="x-small")


def _kernel(axes: Any, figure: BrokerFigure, values: Sequence[Value]) -> None:
    measures = (
        (KERNEL, "by lxml", "groups, less parsing"),
        (KERNEL, "total by lxml", "groups"),
        (SERIALISED, "total by lxml", "serialised"),
    )
    families = sorted({v.queries for v in values if v.series in (KERNEL, SERIALISED)})
    chosen: list[int | None] = [None] if figure.x == "queries" else [*families]
    colours = ["#4c78a8", "#72b7b2", "#b279a2"]
    for family, line in zip(chosen, ("-", "--", ":"), strict=False):
        for (series, measure, label), colour in zip(measures, colours, strict=True):
            curve = [v for v in _curve(values, series, measure) if family in (None, v.queries)]
            size = "" if family is None else f", Q={family:,}"
            _line(axes, figure, curve, colour, label + size, line)
    axes.axhline(1.0, color="black", linewidth=1, label="lxml.etree.fromstring")
    axes.set_title("the kernel (logarithmic)", fontsize="small")
    axes.set_yscale("log")
    _finish(axes, figure)


def _line(
    axes: Any,
    figure: BrokerFigure,
    found: Sequence[Value],
    colour: str,
    label: str,
    line: str = "-",
) -> None:
    scale = 1000 if figure.x == "queries" else 1
    draw_line(axes, found, scale=scale, label=label, colour=colour, line=line)


def _curve(values: Sequence[Value], series: str, measure: str) -> list[Value]:
    found = [value for value in values if (value.series, value.measure) == (series, measure)]
    return sorted(found, key=lambda value: (value.queries, value.x))


def _finish(axes: Any, figure: BrokerFigure) -> None:
    axes.set_xlabel(AXES[figure.x])
    axes.set_ylabel("multiple of lxml's parse")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize="x-small")

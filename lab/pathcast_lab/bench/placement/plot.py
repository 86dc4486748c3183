"""The plot of Figure 9, as the paper draws it: partitions matched by repetitions.

It draws from values alone, so that old runs can be drawn again. The other figures are tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pathcast_lab.bench.figures.plot import drawing
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.placement.definition import PlacementFigure
from pathcast_lab.bench.placement.pattern_queries import PEP, RANDOM
from pathcast_lab.bench.placement.statements import MATCHED, SENT

COLOURS = {RANDOM: "#e45756", PEP: "#4c78a8"}


def draw_placement(
    figure: PlacementFigure, values: Sequence[Value], workload: str, path: Path
) -> bool:
    """Writes the plot of a figure.

    Args:
        figure: Its definition.
        values: What was measured.
        workload: Where the queries came from.
        path: A PNG or SVG.

    Returns:
        Whether there was something to draw.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    del workload
    if figure.kind != "patterns" or not values:
        return False
    variants = list(dict.fromkeys(value.variant for value in values))
    title = f"{figure.caption}: {figure.title}"
    with drawing(path, title, (10, 4), panels=2) as (left, right):
        _curves(left, values, variants[:1], [(MATCHED, "-"), (SENT, ":")])
        _curves(right, values, variants, [(MATCHED, "-")])
        left.set_title(variants[0], fontsize="small")
        right.set_title("other values, other repetition", fontsize="small")
    return True


def _curves(
    axes: Any,
    values: Sequence[Value],
    variants: Sequence[str],
    measures: Sequence[tuple[str, str]],
) -> None:
    for number, variant in enumerate(variants):
        for series, colour in COLOURS.items():
            for measure, line in measures:
                found = sorted(
                    (value.x, value.spread.median)
                    for value in values
                    if (value.variant, value.series, value.measure) == (variant, series, measure)
                )
                label = f"{series}, {measure}" if len(measures) > 1 else f"{series}, {variant}"
                axes.plot(
                    [x for x, _ in found],
                    [y for _, y in found],
                    f"{'os^v'[number % 4]}{line}",
                    color=colour,
                    alpha=1 - 0.2 * number,
                    label=label,
                    markersize=4,
                )
    axes.set_xlabel("repeated elements")
    axes.set_ylabel("% of partitions")
    axes.set_ylim(0, 105)
    axes.legend(fontsize="x-small")

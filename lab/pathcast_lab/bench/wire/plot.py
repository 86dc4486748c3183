"""The plots of the figures on wire formats: bars of every format at each complexity.

It draws from values alone, so that old runs can be drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pathcast.cli.console import extra
from pathcast_lab.bench.figures.plot import DOTS_AN_INCH
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.wire.definition import WireFigure


def draw_wire(figure: WireFigure, values: Sequence[Value], workload: str, path: Path) -> bool:
    """Writes the plot of a figure.

    Args:
        figure: Its definition.
        values: What was measured.
        workload: Where its messages came from.
        path: A PNG or SVG.

    Returns:
        Whether there was something to draw: only the paper's own figures are drawn.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    if figure.kind not in ("size", "delay") or not values:
        return False
    with extra("bench", "pathcast-lab bench"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    found = {(v.series, v.variant): v.spread.median for v in values if v.measure == figure.kind}
    variants = list(dict.fromkeys(value.variant for value in values))
    names = list(dict.fromkeys(value.series for value in values))
    # No pyplot: it would keep figures, and a backend, for the whole process.
    drawn = Figure(figsize=(9, 4.5), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots()
    drawn.suptitle(f"{figure.caption}: {figure.title}, {workload}", fontsize="medium")
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        heights = [found.get((name, variant), 0.0) for variant in variants]
        places = [place + number * width for place in range(len(variants))]
        axes.bar(places, heights, width=width, label=name)
    axes.set_xticks([place + 0.4 for place in range(len(variants))], variants)
    axes.set_xlabel("DocDepth-MaxRepeats")
    axes.set_ylabel("bytes of a message" if figure.kind == "size" else "µs of a message")
    axes.legend(fontsize="x-small")
    drawn.savefig(path, dpi=DOTS_AN_INCH)
    return True

"""What the plots of all papers' figures have in common; matplotlib draws them, without pyplot.

They are drawn from values alone, so that old runs can be drawn again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pathcast.cli.console import extra
from pathcast_lab.bench.figures.point import Value

DOTS_AN_INCH: Final = 90


@contextmanager
def drawing(
    path: Path, title: str, size: tuple[float, float], panels: int = 1
) -> Iterator[list[Any]]:
    """Write a plot when the block ends.

    Args:
        path: A PNG or SVG.
        title: Above all panels.
        size: Width and height, in inches.
        panels: Their number, side by side.

    Yields:
        The axes of each panel.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    with extra("bench", "pathcast-lab bench"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    # pyplot would keep figures, and a backend, for the whole process.
    drawn = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(drawn)
    drawn.suptitle(title, fontsize="medium")
    yield list(drawn.subplots(1, panels, squeeze=False)[0])
    drawn.savefig(path, dpi=DOTS_AN_INCH)


def draw_line(
    axes: Any,
    found: Sequence[Value],
    *,
    scale: float,
    label: str,
    colour: str,
    line: str = "-",
) -> None:
    """Draw medians with the spread of their rounds; nothing where there are no values.

    Args:
        axes: Of a panel.
        found: The values of one curve, ascending.
        scale: What a place on the axis is divided by.
        label: In the legend.
        colour: Of the line.
        line: matplotlib's style.
    """
    if not found:
        return
    axes.errorbar(
        [value.x / scale for value in found],
        [value.spread.median for value in found],
        [
            [value.spread.median - value.spread.least for value in found],
            [value.spread.most - value.spread.median for value in found],
        ],
        fmt=f"o{line}",
        color=colour,
        label=label,
        markersize=3,
        linewidth=1.3,
        capsize=2,
    )

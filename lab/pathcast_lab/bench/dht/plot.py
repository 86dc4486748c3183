"""The plots of the figures: one panel for each of a few measures.

It draws from values alone, so that old runs can be drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pathcast.cli.console import extra
from pathcast_lab.bench.dht.definition import DhtFigure, DhtKind
from pathcast_lab.bench.dht.experiments import CHAIN, MESSAGES, SIBLINGS, STATES, WHOLE
from pathcast_lab.bench.dht.loads import BY_RANK
from pathcast_lab.bench.figures.plot import DOTS_AN_INCH
from pathcast_lab.bench.figures.point import Value

_PANELS: Final[dict[DhtKind, tuple[str, ...]]] = {
    "methods": (MESSAGES, CHAIN, WHOLE),
    "states": (STATES,),
    "queries": (MESSAGES, SIBLINGS, CHAIN, STATES),
    "peers": (MESSAGES, CHAIN),
    "loads": (BY_RANK,),
}
_AXES: Final[dict[DhtKind, str]] = {
    "methods": "queries",
    "states": "queries",
    "queries": "queries",
    "peers": "peers",
    "loads": "peers by rank",
}


def draw_dht(figure: DhtFigure, values: Sequence[Value], workload: str, path: Path) -> bool:
    """Writes the plot of a figure; as `bench.placement.plot.draw_placement`.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    del workload
    panels = _PANELS.get(figure.kind, ())
    if not panels or not values:
        return False
    with extra("bench", "pathcast-lab bench"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    if figure.kind == "loads":
        # What is stored and what is asked for have nothing in common.
        groups = list(dict.fromkeys((v.variant, v.series.split(",")[0]) for v in values))
    else:
        groups = [("", measure) for measure in panels]
    # No pyplot: it would keep figures, and a backend, for the whole process.
    drawn = Figure(figsize=(4.5 * len(groups), 4), layout="constrained")
    FigureCanvasAgg(drawn)
    drawn.suptitle(f"{figure.caption}: {figure.title}", fontsize="medium")
    grid = drawn.subplots(1, len(groups), squeeze=False)[0]
    for axes, (variant, panel) in zip(grid, groups, strict=True):
        own = values
        measure = panel
        if figure.kind == "loads":
            measure = BY_RANK
            own = [v for v in values if v.variant == variant and v.series.startswith(panel)]
        own = [value for value in own if value.measure == measure]
        for key in dict.fromkeys((value.variant, value.series) for value in own):
            found = sorted((v.x, v.spread.median) for v in own if (v.variant, v.series) == key)
            label = ", ".join(part for part in key if part and part != variant)
            axes.plot(*zip(*found, strict=True), "o-", label=label, markersize=4)
        axes.set_title(f"{panel} {variant}".strip(), fontsize="small")
        axes.set_xlabel(_AXES[figure.kind])
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="x-small")
    drawn.savefig(path, dpi=DOTS_AN_INCH)
    return True

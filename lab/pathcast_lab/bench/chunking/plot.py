"""The plots of the figures on chunking: parts of each way of evaluation, as shares of the whole.

It draws from values alone, so that old runs can be drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pathcast_lab.bench.chunking.definition import ChunkingFigure
from pathcast_lab.bench.chunking.experiments import WHOLE
from pathcast_lab.bench.figures.plot import drawing
from pathcast_lab.bench.figures.point import Value


def draw_chunking(
    figure: ChunkingFigure, values: Sequence[Value], workload: str, path: Path
) -> bool:
    """Writes the plot of a figure.

    Args:
        figure: Its definition.
        values: What was measured.
        workload: Which scenario.
        path: A PNG or SVG.

    Returns:
        Whether there was something to draw: only times are drawn.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    if figure.kind != "times" or not values:
        return False
    table = {(v.series, v.queries, v.x, v.measure): v.spread.median for v in values}
    places = sorted({(v.series, v.queries, v.x) for v in values})
    parts = ["chunking", *sorted({v.measure for v in values if v.measure.startswith("chunk ")})]
    parts.append("potpourri")
    title = f"{figure.caption}: {figure.title}, {workload}"
    with drawing(path, title, (3 + 0.6 * len(places), 4.5)) as [axes]:
        bottoms = [0.0] * len(places)
        for part in parts:
            heights = [table.get((*place, part), 0.0) / table[*place, WHOLE] for place in places]
            axes.bar(range(len(places)), heights, bottom=bottoms, label=part, width=0.7)
            bottoms = [low + high for low, high in zip(bottoms, heights, strict=True)]
        axes.axhline(1.0, color="black", linewidth=0.8)
        labels = [f"{series}\n{queries:,}\n{chunks:g}" for series, queries, chunks in places]
        axes.set_xticks(range(len(places)), labels, fontsize="x-small")
        axes.set_xlabel("evaluator, queries, chunks")
        axes.set_ylabel("time by that of the whole message")
        axes.legend(fontsize="x-small")
    return True

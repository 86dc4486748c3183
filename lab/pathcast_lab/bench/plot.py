"""The plot of a record: what a message costs as a multiple of the yardstick, against Q.

It draws from a record alone, so that old records can be drawn again.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from pathcast.cli.console import extra

PARTS = ("parsing", "matching", "collecting", "rest")
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#bab0ac")

STREAMS = {"filter": "distinct linear paths", "mixed": "realistic subscriptions"}
"""Benchmarks whose cases have warm and unseen messages -> what their queries are."""


def draw(record: dict[str, Any], path: Path) -> bool:
    """Writes the plot; the ending of the name chooses the format.

    Args:
        record: As `make_record` gives it.
        path: Such as `plot.png` or `plot.svg`.

    Returns:
        Whether there was something to draw: cases of `filter`, `mixed` or `adversarial`.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    results = {one["name"]: one["results"] for one in record["benchmarks"] if one["results"]}
    names = [name for name in (*STREAMS, "adversarial") if name in results]
    if not names:
        return False
    with extra("bench", "pathcast-lab bench"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    # No pyplot: it would keep figures, and a backend, for the whole process.
    figure = Figure(figsize=(10, 4.5 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{record['workload']['name']}, one thread; whiskers: all rounds")
    rows = figure.subplots(len(names), 2, width_ratios=(3, 2), squeeze=False)
    for name, (left, right) in zip(names, rows, strict=True):
        if name in STREAMS:
            _bars(left, results[name], STREAMS[name])
            _lines(right, results[name])
        else:
            _growth(left, right, results[name])
    figure.savefig(path, dpi=150)
    return True


def _bars(axes: Any, cases: list[dict[str, Any]], queries: str) -> None:
    bottoms = [0.0] * len(cases)
    for part, colour in zip(PARTS, COLOURS, strict=True):
        heights = [median([_ratio(one, part) for one in case["warm"]]) for case in cases]
        axes.bar(range(len(cases)), heights, 0.6, bottom=bottoms, label=part, color=colour)
        bottoms = [low + high for low, high in zip(bottoms, heights, strict=True)]
    totals = [[_ratio(one, "total") for one in case["warm"]] for case in cases]
    middles = [median(values) for values in totals]
    below = [middle - min(values) for middle, values in zip(middles, totals, strict=True)]
    above = [max(values) - middle for middle, values in zip(middles, totals, strict=True)]
    axes.errorbar(
        range(len(cases)), middles, [below, above], fmt="k.", capsize=4, label="total, median"
    )
    axes.axhline(1.0, color="black", linewidth=1, label="lxml.etree.fromstring")
    axes.set_xticks(range(len(cases)), [f"{case['queries']:,}" for case in cases])
    axes.set_xlabel(f"standing queries ({queries})")
    axes.set_ylabel("time of a message, as a multiple of lxml's parse")
    axes.set_title("messages seen before", fontsize="medium")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False)


def _ratio(one: dict[str, int], part: str) -> float:
    known = {name: one[f"{name}_ns"] for name in ("total", "parsing", "matching", "collecting")}
    known["rest"] = 2 * known["total"] - sum(known.values())
    return known[part] / one["yardstick_ns"]


def _lines(axes: Any, cases: list[dict[str, Any]]) -> None:
    """Unseen messages, quarter by quarter of the stream after the warm-up."""
    for case in cases:
        quarters = list(zip(*(one["quarters"] for one in case["unseen"]), strict=True))
        middles = [median(_ratio(one, "total") for one in rounds) for rounds in quarters]
        axes.plot(range(1, len(middles) + 1), middles, "o-", label=f"{case['queries']:,}")
    axes.set_xticks(range(1, len(cases[0]["unseen"][0]["quarters"]) + 1))
    axes.set_ylim(bottom=0)
    axes.axhline(1.0, color="black", linewidth=1)
    axes.set_xlabel("quarter of the stream after the warm-up")
    axes.set_title("messages not seen before", fontsize="medium")
    axes.legend(title="queries")


def _growth(times: Any, memory: Any, cases: list[dict[str, Any]]) -> None:
    """Families of queries: time and memory against their number, both axes logarithmic."""
    families: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        families.setdefault(case["case"].partition(" ")[0], []).append(case)
    for name, family in families.items():
        sizes = [case["queries"] for case in family]
        times.plot(
            sizes,
            [median([_ratio(one, "total") for one in case["warm"]]) for case in family],
            "o-",
            label=name,
        )
        known = [case for case in family if case["matcher_bytes"] is not None]
        memory.plot(
            [case["queries"] for case in known],
            [max(case["matcher_bytes"], 1) / 1e6 for case in known],
            "o-",
        )
    for axes in (times, memory):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("standing queries")
    times.axhline(1.0, color="black", linewidth=1)
    times.set_ylabel("time of a message, as a multiple of lxml's parse")
    times.set_title("adversarial families, messages seen before", fontsize="medium")
    times.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False)
    memory.set_ylabel("MB")
    memory.set_title("memory of a matcher", fontsize="medium")

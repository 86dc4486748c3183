"""A run of figures of networks of brokers. It prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.inputs import shared_data
from pathcast_lab.bench.overlay.budgets import run_budgets
from pathcast_lab.bench.overlay.capacity import run_capacity
from pathcast_lab.bench.overlay.changes import run_changes, run_in_force
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlayFigures
from pathcast_lab.bench.overlay.forms import run_forms
from pathcast_lab.bench.overlay.hops import run_hops
from pathcast_lab.bench.overlay.host_brokers import run_host_brokers
from pathcast_lab.bench.overlay.links import run_links
from pathcast_lab.bench.overlay.pareto import run_pareto
from pathcast_lab.bench.overlay.projection import run_projection
from pathcast_lab.bench.overlay.restructuring import run_restructuring
from pathcast_lab.bench.overlay.state import run_state

_CHECKS = {
    "budgets": "every table forwards whatever somebody behind it wants",
    "forms": "a profile that holds has an entry that holds",
    "hops": "every message is delivered once",
    "state": "contents only: no protocol is run",
    "projection": "results at the leaves are those of whole messages",
    "restructuring": "results at the leaves are those of whole messages",
    "links": "messages come to the brokers that have an entry which holds, and end there",
    "pareto": "every table lets through whatever somebody behind it wants",
    "changes": "Interests tell as many brokers as the arithmetic says",
    "in_force": "simulated brokers take the time that the arithmetic says",
    "host_brokers": "messages come to the brokers that host a query they satisfy, and end there",
    "capacity": "every message is delivered as often as it is wanted",
}


def run_overlay_figures(
    definition: OverlayFigures,
    names: Sequence[str],
    set_name: SetName,
    outcomes: list[Outcome[OverlayFigure]],
    keep: Callable[[Sequence[Value]], None],
    say: Callable[[str], None],
) -> None:
    """Runs the figures; arguments as of `bench.placement.run.run_placement_figures`.

    Raises:
        MissingDependencyError: lxml is not installed.
    """
    for each in definition.figures:
        if each.name not in names:
            continue
        figure = each
        if shared_data() is None and "nitf" in each.workloads:
            kept = tuple(name for name in each.workloads if name != "nitf")
            figure = each.model_copy(update={"workloads": kept})
        outcome = Outcome(figure, ", ".join(figure.workloads) or "networks")
        if figure is not each:
            outcome.notes.append("NITF left out: its DTD is not at hand")
        outcomes.append(outcome)
        outcome.collect(_points(figure, set_name, definition.seed, say), keep)
        if outcome.is_complete:
            outcome.checks.append(f"{figure.caption}: {_CHECKS[figure.kind]}")


def _points(
    figure: OverlayFigure, set_name: SetName, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    chosen = figure.sets[set_name]
    match figure.kind:
        case "budgets":
            return run_budgets(figure, chosen, seed, say)
        case "forms":
            return run_forms(figure, chosen, seed, say)
        case "state":
            return run_state(figure, chosen, seed, say)
        case "projection":
            return run_projection(figure, chosen, seed, say)
        case "restructuring":
            return run_restructuring(figure, chosen, seed, say)
        case "hops":
            return run_hops(figure, chosen, seed, say)
        case "links":
            return run_links(figure, chosen, seed, say)
        case "pareto":
            return run_pareto(figure, chosen, seed, say)
        case "changes":
            return run_changes(figure, chosen, seed, say)
        case "in_force":
            return run_in_force(figure, chosen, seed, say)
        case "host_brokers":
            return run_host_brokers(figure, chosen, seed, say)
        case "capacity":
            return run_capacity(figure, chosen, seed, say)

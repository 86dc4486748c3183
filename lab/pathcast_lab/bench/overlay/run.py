"""The figures of networks of brokers: what runs, draws and words them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.run import PaperFigures, Points, Request, run_each
from pathcast_lab.bench.inputs import shared_data
from pathcast_lab.bench.overlay.budgets import run_budgets
from pathcast_lab.bench.overlay.capacity import run_capacity
from pathcast_lab.bench.overlay.changes import run_changes, run_in_force
from pathcast_lab.bench.overlay.definition import OverlayFigures
from pathcast_lab.bench.overlay.forms import run_forms
from pathcast_lab.bench.overlay.hops import run_hops
from pathcast_lab.bench.overlay.host_brokers import run_host_brokers
from pathcast_lab.bench.overlay.links import run_links
from pathcast_lab.bench.overlay.page import PAGE
from pathcast_lab.bench.overlay.pareto import run_pareto
from pathcast_lab.bench.overlay.plot import draw_overlay
from pathcast_lab.bench.overlay.projection import run_projection
from pathcast_lab.bench.overlay.restructuring import run_restructuring
from pathcast_lab.bench.overlay.state import run_state

_Measured: TypeAlias = Callable[..., Iterator[list[Value]]]

_KINDS: Final[Mapping[str, tuple[_Measured, str]]] = {
    "budgets": (run_budgets, "every table forwards whatever somebody behind it wants"),
    "forms": (run_forms, "a profile that holds has an entry that holds"),
    "state": (run_state, "contents only: no protocol is run"),
    "projection": (run_projection, "results at the leaves are those of whole messages"),
    "restructuring": (run_restructuring, "results at the leaves are those of whole messages"),
    "hops": (run_hops, "every message is delivered once"),
    "links": (
        run_links,
        "messages come to the brokers that have an entry which holds, and end there",
    ),
    "pareto": (run_pareto, "every table lets through whatever somebody behind it wants"),
    "changes": (run_changes, "Interests tell as many brokers as the arithmetic says"),
    "in_force": (run_in_force, "simulated brokers take the time that the arithmetic says"),
    "host_brokers": (
        run_host_brokers,
        "messages come to the brokers that host a query they satisfy, and end there",
    ),
    "capacity": (run_capacity, "every message is delivered as often as it is wanted"),
}
"""Kind -> what measures it, and what holds of it before it is a result."""


def _begin(request: Request) -> Points:
    def points(outcome: Outcome[Any]) -> Iterator[list[Value]]:
        figure = outcome.figure
        if shared_data() is None and "nitf" in figure.workloads:
            kept = tuple(name for name in figure.workloads if name != "nitf")
            outcome.figure = figure = figure.model_copy(update={"workloads": kept})
            outcome.notes.append("NITF left out: its DTD is not at hand")
        outcome.workload = ", ".join(figure.workloads) or "networks"
        measure, check = _KINDS[figure.kind]
        chosen = figure.sets[request.set_name]
        yield from measure(figure, chosen, request.definition.seed, request.say)
        outcome.checks.append(f"{figure.caption}: {check}")

    return points


PAPER: Final = PaperFigures(
    definition=OverlayFigures, run=run_each(_begin), draw=draw_overlay, page=PAGE
)

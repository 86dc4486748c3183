"""The table of deployments: what runs and words it, one deployment after the other."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pathcast.cli.console import extra
from pathcast.cli.exits import ExitCode
from pathcast_lab.bench.deployments.alone import run_alone
from pathcast_lab.bench.deployments.definition import (
    DeploymentFigures,
    DeploymentKind,
    DeploymentSet,
    DeploymentTable,
)
from pathcast_lab.bench.deployments.inputs import Load, made_load
from pathcast_lab.bench.deployments.measured import Measured
from pathcast_lab.bench.deployments.page import PAGE
from pathcast_lab.bench.deployments.pipelines import run_spark
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.figures.run import PaperFigures, Points, Request, run_each


def _begin(request: Request) -> Points:
    # Who ends this ends its processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.INTERRUPTED))

    def points(outcome: Outcome[Any]) -> Iterator[list[Value]]:
        table = outcome.figure
        outcome.workload = table.domain
        chosen = table.sets[request.set_name]
        load = made_load(table, chosen, request.definition.seed)
        size = sum(map(len, load.messages)) / len(load.messages)
        mean = sum(map(len, load.answers)) / len(load.answers)
        outcome.notes.append(
            f"{len(load.messages):,} distinct messages, {size:,.0f} bytes and {mean:.1f} matches "
            "each in the mean, published in turn"
        )
        for column in table.deployments:
            request.say(f"{column.name}: {chosen.messages[column.kind]:,} messages")
            with TemporaryDirectory(prefix="pathcast-bench-") as folder:
                measured = _measured(table, chosen, load, column.kind, Path(folder) / "run")
            place = Place(table.name, "", column.name, 0, len(load.queries))
            yield list(measured.values(place))
            outcome.checks.append(
                f"{column.name}: pairs of query and message as one process has them"
            )

    return points


def _measured(
    table: DeploymentTable, chosen: DeploymentSet, load: Load, kind: DeploymentKind, folder: Path
) -> Measured:
    if kind == "one":
        return run_alone(table, chosen, load)
    if kind == "spark":
        return run_spark(table, chosen, load, folder)
    with extra("net", "pathcast-lab bench deployments"):
        from pathcast_lab.bench.deployments.processes import Brokers, Peers, run_processes
    deployed = (Brokers if kind == "brokers" else Peers)(table, chosen, folder)
    return run_processes(chosen, load, deployed)


PAPER: Final = PaperFigures(
    definition=DeploymentFigures,
    run=run_each(_begin),
    draw=lambda figure, values, workload, path: False,
    page=PAGE,
)

"""A run of all deployments, one after the other. It prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pathcast.errors import MissingDependencyError
from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.deployments.alone import run_alone
from pathcast_lab.bench.deployments.definition import (
    DeploymentFigures,
    DeploymentKind,
    DeploymentSet,
    DeploymentTable,
)
from pathcast_lab.bench.deployments.inputs import Load, made_load
from pathcast_lab.bench.deployments.measured import Measured
from pathcast_lab.bench.deployments.pipelines import run_spark
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.point import Place, Value


def run_deployments(
    definition: DeploymentFigures,
    names: Sequence[str],
    set_name: SetName,
    outcomes: list[Outcome[DeploymentTable]],
    keep: Callable[[Sequence[Value]], None],
    say: Callable[[str], None],
) -> None:
    """Runs the table; arguments as of `bench.placement.run.run_placement_figures`.

    Raises:
        MissingDependencyError: lxml, PySpark or the extra `net` is not installed.
    """
    for table in definition.figures:
        if table.name in names:
            outcome = Outcome(table, table.domain)
            outcomes.append(outcome)
            outcome.collect(_columns(table, set_name, definition.seed, outcome, say), keep)


def _columns(
    table: DeploymentTable,
    set_name: SetName,
    seed: int,
    outcome: Outcome[DeploymentTable],
    say: Callable[[str], None],
) -> Iterator[list[Value]]:
    chosen = table.sets[set_name]
    load = made_load(table, chosen, seed)
    size = sum(map(len, load.messages)) / len(load.messages)
    mean = sum(map(len, load.answers)) / len(load.answers)
    outcome.notes.append(
        f"{len(load.messages):,} distinct messages, {size:,.0f} bytes and {mean:.1f} matches each "
        "in the mean, published in turn"
    )
    for column in table.deployments:
        say(f"{column.name}: {chosen.messages[column.kind]:,} messages")
        with TemporaryDirectory(prefix="pathcast-bench-") as folder:
            measured = _measured(table, chosen, load, column.kind, Path(folder) / "run")
        place = Place(table.name, "", column.name, 0, len(load.queries))
        yield list(measured.values(place))
        outcome.checks.append(f"{column.name}: pairs of query and message as one process has them")


def _measured(
    table: DeploymentTable, chosen: DeploymentSet, load: Load, kind: DeploymentKind, folder: Path
) -> Measured:
    if kind == "one":
        return run_alone(table, chosen, load)
    if kind in ("broadcast", "partitioned"):
        return run_spark(table, chosen, load, kind, folder)
    try:
        from pathcast_lab.bench.deployments.processes import Brokers, Peers, run_processes
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "dependency.missing",
            purpose="pathcast-lab bench deployments",
            module=error.name or "grpc",
            extra="net",
        ) from error
    deployed = (Brokers if kind == "brokers" else Peers)(table, chosen, folder)
    return run_processes(chosen, load, deployed)

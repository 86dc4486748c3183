"""FLWR queries and messages of the broker figures, made once for each setting.

A million distinct queries take a while to generate, so they are kept in the work directory, under a
name that holds a digest of everything they depend on, the generator's own code included.

Example:
    >>> inputs = BrokerInputs(seed=0)
    >>> from pathcast_lab.bench.broker.definition import BrokerParameters
    >>> len(inputs.queries("bib", BrokerParameters(queries=5), 5))
    5

It generates nothing itself; `pathcast.workload` does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from pathcast.errors import ConfigError
from pathcast.schema import ElementGraph
from pathcast.workload import values
from pathcast_lab.bench.broker.definition import BrokerParameters
from pathcast_lab.bench.figures.inputs import first_of
from pathcast_lab.bench.inputs import write_lines
from pathcast_lab.workload import (
    BROKER_WORKLOADS,
    FlwrParameters,
    FlwrPredicate,
    FlwrQuery,
    brokers,
    flwr,
    generate_flwrs,
    generate_repeating,
)

KEPT_FROM: Final = 20_000
"""Queries that are worth a file."""


class BrokerInputs:
    """Where the queries and messages of a run come from.

    Args:
        seed: Of both.
        work: Where generated queries are kept; None for nowhere.

    Raises:
        MissingDependencyError: lxml is not installed.
    """

    def __init__(self, seed: int, work: Path | None = None) -> None:
        self._seed = seed
        self._work = work
        self._graphs = {name: one.graph() for name, one in BROKER_WORKLOADS.items()}
        self._kept: tuple[object, list[FlwrQuery]] = (None, [])

    def graph(self, workload: str) -> ElementGraph:
        """The element graph of a workload's DTD."""
        return self._graphs[workload]

    def messages(self, workload: str, count: int, values_max: int) -> list[bytes]:
        """The first messages of a workload."""
        parameters = BROKER_WORKLOADS[workload].documents(count, self._seed, values_max)
        return list(generate_repeating(self._graphs[workload], parameters))

    def queries(self, workload: str, parameters: BrokerParameters, most: int) -> list[FlwrQuery]:
        """The first queries of a workload.

        Args:
            workload: The DTD.
            parameters: What they are like; `queries` says how many are wanted.
            most: How many will be wanted with these parameters: so many are made at once, and kept
                until others are asked for.

        Raises:
            ConfigError: There are not so many.
        """
        most = max(most, parameters.queries)
        key = (workload, parameters.model_copy(update={"queries": most}))
        if self._kept[0] != key:
            wanted = key[1].flwr(workload, self._seed)
            self._kept = (key, flwr_queries(workload, wanted, self._work))
        return first_of(self._kept[1], parameters.queries)


def flwr_queries(
    workload: str, parameters: FlwrParameters, work: Path | None = None
) -> list[FlwrQuery]:
    """Distinct queries of a workload: as many as there are, up to those that are wanted.

    Args:
        workload: The DTD.
        parameters: What they are like.
        work: Where they are kept and looked for; None for nowhere.
    """
    if work is None or parameters.count < KEPT_FROM:
        return list(_found(workload, parameters))
    work.mkdir(parents=True, exist_ok=True)
    (work / ".gitignore").write_text("*\n", encoding="utf-8")
    name = f"flwr-{workload}-{parameters.count}-{_digest(workload, parameters)}.txt"
    if not (work / name).is_file():
        write_lines(work / name, map(_line, _found(workload, parameters)))
    with (work / name).open(encoding="utf-8") as file:
        return [_query(line.rstrip("\n")) for line in islice(file, parameters.count)]


def _found(workload: str, parameters: FlwrParameters) -> Iterator[FlwrQuery]:
    try:
        yield from generate_flwrs(BROKER_WORKLOADS[workload].graph(), parameters)
    except ConfigError as error:
        if error.code != "workload.exhausted":
            raise


def _digest(workload: str, parameters: FlwrParameters) -> str:
    digest = hashlib.sha256(BROKER_WORKLOADS[workload].dtd().encode())
    digest.update(repr(parameters).encode())
    for module in (brokers, flwr, values):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()[:16]


def _line(query: FlwrQuery) -> str:
    """A query on a line: paths and names have neither tabs nor spaces."""
    predicates = " ".join(f"{one.path}={one.constant}" for one in query.predicates)
    return "\t".join((query.element, query.binding, predicates, " ".join(query.returns)))


def _query(line: str) -> FlwrQuery:
    element, binding, predicates, returns = line.split("\t")
    conditions = (one.rpartition("=") for one in predicates.split())
    return FlwrQuery(
        element,
        binding,
        tuple(FlwrPredicate(path, constant) for path, _, constant in conditions),
        tuple(returns.split()),
    )

"""Queries by what they cost: partitions that take as long, not that hold as many.

What a query costs is measured on a sample of messages, in units that do not depend on the machine:
the steps that a message takes (`BatchStats.steps`), each exact evaluation, and each match, which
has to be collected and delivered. Queries that compare alike at the same places are a *class*;
some of each are measured, alone.

Example:
    >>> from pathcast import Query, Registry
    >>> index = Registry()
    >>> report = index.add([Query("often", "//a"), Query("never", "/b[@x = 1]")])
    >>> snapshot = index.freeze()
    >>> costs = measured_costs(snapshot, [b"<a/>", b"<a><a/></a>"])
    >>> by_id = dict(zip(snapshot.query_ids, costs.tolist()))
    >>> by_id["often"] > by_id["never"]
    True
    >>> placement = CostPlacement.of(snapshot.population(), costs, 2)
    >>> sorted(placement.place(snapshot.population()).tolist())
    [0, 1]

Queries share what they have in common, so that a partition costs less than its queries one by one;
the sum is what is evened out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pathcast.engine import Messages
from pathcast.model import Query
from pathcast.partition.placement import Touched, check_partitions
from pathcast.query import Population
from pathcast.registry import Registry, Snapshot
from pathcast_lab.bench.placement.balancing import balanced
from pathcast_lab.bench.placement.hashed import HashPlacement, everywhere

HELD: Final = 1.0
"""Cost of a query that nothing happens to: it is held, and found not to be concerned."""

MATCH: Final = 10.0
"""Cost of a match a message: a bit is collected, a number is written, somebody is told."""

EVALUATION: Final = 100.0
"""Cost of beginning an exact evaluation; its steps are counted besides."""


@dataclass(frozen=True)
class CostPlacement:
    """Queries evenly by cost; every message goes everywhere.

    Attributes:
        partitions: Their number.
        table: Id -> partition. Queries that came later go by their hash.
    """

    partitions: int
    table: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, population: Population, costs: np.ndarray, partitions: int) -> CostPlacement:
        """A placement of queries whose costs are known.

        Args:
            population: The queries.
            costs: Cost of each, by number, as `measured_costs` gives them.
            partitions: Their number.

        Raises:
            ConfigError: The number of partitions cannot be used.
        """
        check_partitions(partitions)
        weights = dict(zip(population.query_ids, costs.tolist(), strict=True))
        return cls(partitions, balanced(weights, partitions))

    @property
    def dont_care(self) -> None:
        """There is none."""
        return

    def place(self, population: Population) -> np.ndarray:
        """By the table, or by the hash."""
        known = [self.table.get(name, -1) for name in population.query_ids]
        placed = np.array(known, dtype=np.int64)
        unknown = np.flatnonzero(placed < 0)
        placed[unknown] = self._by_hash([population.query_ids[at] for at in unknown.tolist()])
        return placed.astype(np.uint32)

    def touched(self, messages: Messages) -> Touched:
        """All partitions."""
        return everywhere(messages, self.partitions)

    def _by_hash(self, ids: Sequence[str]) -> np.ndarray:
        return HashPlacement(self.partitions).place_ids(ids)


def measured_costs(
    snapshot: Snapshot,
    messages: Messages,
    *,
    sample: int = 32,
) -> np.ndarray:
    """The cost of each query of a snapshot for one message, as measured for its class.

    Args:
        snapshot: The queries.
        messages: A sample of what will come.
        sample: Queries that are measured of a class.

    Returns:
        Cost a message by number, `float64`; at least `HELD`.

    Cost: a pass over the messages for each class.
    """
    population = snapshot.population()
    classes = _classes(population)
    costs = np.empty(len(population), dtype=np.float64)
    ids = population.query_ids
    order = np.argsort(classes, kind="stable")
    starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
    for members in np.split(order, starts[1:]):
        # Spread over the class, so that what is common and what is rare are among them.
        at = np.linspace(0, len(members) - 1, min(sample, len(members))).astype(int)
        queries = [snapshot.query(ids[number]) for number in members[at].tolist()]
        costs[members] = _cost(queries, messages)
    return costs


def _cost(queries: Sequence[Query], messages: Messages) -> float:
    index = Registry()
    index.add(queries)
    stats = index.match(messages).stats
    work = stats.steps + MATCH * stats.matches + EVALUATION * stats.evaluations
    return HELD + work / (max(stats.messages - stats.refused, 1) * len(queries))


def _classes(population: Population) -> np.ndarray:
    """The class of each query: paths, and places and operators of its predicates."""
    known: dict[tuple[object, ...], int] = {}
    shapes: list[set[tuple[int, int]]] = [set() for _ in range(len(population))]
    paths = population.paths
    for query, place in zip(
        paths.column("query").to_pylist(), paths.column("place").to_pylist(), strict=True
    ):
        shapes[query].add((place, -1))
    columns = (population.column(name).tolist() for name in ("query", "place", "operator"))
    for query, place, operator in zip(*columns, strict=True):
        shapes[query].add((place, operator))
    numbers = [known.setdefault(tuple(sorted(shape)), len(known)) for shape in shapes]
    return np.array(numbers, dtype=np.int64)

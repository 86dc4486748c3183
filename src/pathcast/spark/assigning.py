"""Which partition each query of a generation goes to, and the routes that lead there.

A query that is delivered as an id is known to the filter index, one whose results are delivered to
the registry; both say what they ask for as columns (`pathcast.query.Population`), and are placed by
one placement. Of a generation in sections one section, which is a sample by the hash of ids, says
how to place all.

It decides nothing itself: `pathcast.partition` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.engine import Snapshot
from pathcast.partition import (
    CostPlacement,
    HashPlacement,
    PepPlacement,
    Placement,
    PrefixPlacement,
    measured_costs,
)
from pathcast.partition.population_routes import routes_of_population
from pathcast.partition.routing import routes_of
from pathcast.registry import Registry, SubscriptionSnapshot
from pathcast.spark.generations import QUERIES, Generation
from pathcast.spark.taking_up import read_queries, subscriptions_in

if TYPE_CHECKING:
    from pathcast.limits import Limits
    from pathcast.partition.routes import Routes
    from pathcast.query import Population
    from pathcast.spark.settings import PlacementSettings
    from pathcast.spark.storage import Storage

EXACT_MAX: Final = 2_000
"""Queries whose routes begin as exact paths, which takes 0.4 ms each; of more, the routes begin
with one thing that each asks, from columns."""


@dataclass(frozen=True)
class PieceQueries:
    """The queries of a generation, or of a section of it, as they are placed.

    Attributes:
        table: `taking_up.QUERIES_SCHEMA`.
        snapshot: The filter queries; None if there are none.
        populations: What filter queries ask for, and what the others do; None for none.
    """

    table: pa.Table
    snapshot: Snapshot | None
    populations: tuple[Population | None, Population | None]

    @classmethod
    def open(cls, storage: Storage, piece: Generation) -> PieceQueries:
        """The queries of a piece. Cost: 1 µs a filter query, 0.4 ms for each of the others."""
        with piece.local(storage, [QUERIES]) as [path]:
            table = read_queries(path)
        snapshot = notices = results = None
        with piece.files(storage) as files:
            if files.notices is not None:
                snapshot = Snapshot.open(files.notices)
                notices = snapshot.population()
            if files.results is not None:
                saved = SubscriptionSnapshot.open(files.results)
                results = Registry.of(saved, threads=1).population()
        return cls(table, snapshot, (notices, results))

    def larger(self) -> Population:
        """That of which there are more."""
        return max((each for each in self.populations if each is not None), key=len)

    def place(self, placement: Placement) -> list[np.ndarray | None]:
        """Where the queries of each population go."""
        return [None if each is None else placement.place(each) for each in self.populations]

    def rows(self, placed: list[np.ndarray | None]) -> np.ndarray:
        """Return the partition of each row of the table."""
        found = np.zeros(len(self.table), dtype=np.uint32)
        for population, where in zip(self.populations, placed, strict=True):
            if population is not None and where is not None:
                ids = pa.array(population.query_ids, pa.string())
                at = pc.index_in(self.table.column("id").combine_chunks(), value_set=ids)
                is_in = at.is_valid().to_numpy(zero_copy_only=False)
                found[is_in] = where[pc.drop_null(at).to_numpy()]
        return found


def placement_of(
    queries: PieceQueries,
    settings: PlacementSettings,
    *,
    limits: Limits,
    sample: pa.Array | None,
) -> Placement:
    """A placement made for queries.

    Args:
        queries: The queries, or a sample of them.
        settings: The scheme, and how many partitions.
        limits: What a message may cost.
        sample: Messages; "pep" chooses patterns by what they have, "cost" measures on them.
    """
    population, count = queries.larger(), settings.partitions
    match settings.scheme:
        case "pep":
            return PepPlacement.of(population, count, sample=sample, limits=limits, threads=1)
        case "prefix":
            return PrefixPlacement.of(population, count, limits=limits)
        case "hash":
            return HashPlacement(count)
        case "cost":
            costs = np.ones(len(population))
            if sample is not None and population is queries.populations[0]:
                assert queries.snapshot is not None
                costs = measured_costs(queries.snapshot, sample)
            return CostPlacement.of(population, costs, count)


def routes_to(
    queries: PieceQueries,
    placed: list[np.ndarray | None],
    *,
    is_exact: bool,
    namespaces: Mapping[str, str],
    dont_care: int | None,
    budget_bytes: int,
) -> Routes:
    """The routes that lead to the partitions of some queries.

    Args:
        queries: The queries.
        placed: `PieceQueries.place`.
        is_exact: Whether they begin as exact paths; see `EXACT_MAX`.
        namespaces: Prefixes for all queries.
        dont_care: As for `routes_of_population`.
        budget_bytes: Likewise.
    """
    if is_exact:
        partition_of = dict(
            zip(queries.table.column("id").to_pylist(), queries.rows(placed).tolist(), strict=True)
        )
        bound = (
            row._replace(namespaces={**namespaces, **(row.namespaces or {})})
            for row in subscriptions_in(queries.table)
        )
        return routes_of(bound, partition_of)
    pairs = [
        (population, where)
        for population, where in zip(queries.populations, placed, strict=True)
        if population is not None and where is not None
    ]
    found = None
    for population, where in pairs:
        routes = routes_of_population(
            population, where, dont_care=dont_care, budget_bytes=budget_bytes
        )
        if found is None:
            found = routes
            continue
        for route in routes:
            found.add_targets(route.path, route.targets)
    assert found is not None, "a piece without queries is not placed"
    return found

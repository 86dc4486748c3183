"""Which partition each query of a generation goes to, and the routes that lead there.

A query that is delivered as an id is known to the filter index, one whose results are delivered to
the broker; both say what they ask for as columns (`pathcast.query.Population`), and are placed by
one placement, made for the larger of the two.

It decides nothing itself: `pathcast.partition` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

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

if TYPE_CHECKING:
    from pathcast.customize import Broker
    from pathcast.customize.subscription_engines import SubscriptionEngines
    from pathcast.engine import Snapshot
    from pathcast.limits import Limits
    from pathcast.model import EngineName, Subscription
    from pathcast.partition.routes import Routes
    from pathcast.query import Population
    from pathcast.spark.settings import PlacementSettings

EXACT_MAX: Final = 2_000
"""Queries whose routes begin as exact paths, which takes 0.4 ms each; of more, the routes begin
with one thing that each asks, from columns."""


@dataclass(frozen=True)
class Queries:
    """What a generation was made of, as the driver holds it.

    Attributes:
        notices: Id -> filter query.
        results: Id -> subscription whose results are delivered, of any of its takers.
        takers: Who takes what, `TAKERS_SCHEMA`.
        snapshot: The filter queries.
        broker: The others.
    """

    notices: Mapping[str, Subscription]
    results: Mapping[str, Subscription]
    takers: pa.Table
    snapshot: Snapshot
    broker: Broker

    @classmethod
    def of(cls, engines: SubscriptionEngines, takers: pa.Table) -> Queries:
        """The queries of the engines that took them up."""
        rows, index, broker = engines.queries, engines.index, engines.broker
        notices = {name: row for name, row in rows.items() if name in index}
        results = {name: row for name, row in rows.items() if name in broker}
        return cls(notices, results, takers, index.freeze(), broker)


@dataclass(frozen=True)
class Assigned:
    """Where queries go.

    Attributes:
        partitions: How many there are.
        dont_care: The one of queries that nothing tells apart; None if there is none.
        partition_of: Id -> partition.
        routes: The routes to them, not yet within a budget.
    """

    partitions: int
    dont_care: int | None
    partition_of: Mapping[str, int]
    routes: Routes


def assigned(
    queries: Queries,
    settings: PlacementSettings,
    *,
    engine: EngineName,
    limits: Limits,
    namespaces: Mapping[str, str],
    sample: pa.Array | None,
) -> Assigned:
    """Places the queries of a generation.

    Args:
        queries: The queries.
        settings: The scheme, and how many partitions.
        engine: Which engine answers.
        limits: What a message may cost.
        namespaces: Prefixes for all queries.
        sample: Messages; "pep" chooses patterns by what they have, "cost" measures on them.

    Cost: 0.4 ms for each query whose results are delivered; of filter queries some µs for more than
    `EXACT_MAX`, and 0.4 ms up to then.
    """
    populations = [queries.snapshot.population(), queries.broker.population()]
    larger = max(populations, key=len)
    costs = None
    if settings.scheme == "cost" and sample is not None and larger is populations[0]:
        costs = measured_costs(queries.snapshot, sample, engine=engine)
    placement = _placement(larger, settings, engine, limits, costs, sample)
    placed = [placement.place(each) if len(each) else _NOWHERE for each in populations]
    partition_of: dict[str, int] = {}
    for population, where in zip(populations, placed, strict=True):
        partition_of.update(zip(population.query_ids, where.tolist(), strict=True))
    if len(partition_of) <= EXACT_MAX:
        every = (*queries.notices.values(), *queries.results.values())
        bound = (row._replace(namespaces=namespaces) for row in every)
        routes = routes_of(bound, partition_of)
    else:
        routes = routes_of_population(populations[0], placed[0])
        for route in routes_of_population(populations[1], placed[1]):
            routes.add_targets(route.path, route.targets)
    return Assigned(placement.partitions, placement.dont_care, partition_of, routes)


_NOWHERE: Final = np.zeros(0, dtype=np.uint32)


def _placement(
    population: Population,
    settings: PlacementSettings,
    engine: EngineName,
    limits: Limits,
    costs: np.ndarray | None,
    sample: pa.Array | None,
) -> Placement:
    count = settings.partitions
    match settings.scheme:
        case "pep":
            return PepPlacement.of(
                population, count, sample=sample, engine=engine, limits=limits, threads=1
            )
        case "prefix":
            return PrefixPlacement.of(population, count, engine=engine, limits=limits)
        case "hash":
            return HashPlacement(count)
        case "cost":
            known = np.ones(len(population)) if costs is None else costs
            return CostPlacement.of(population, known, count)

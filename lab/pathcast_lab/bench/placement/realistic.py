"""Placements of realistic queries: where messages go, what that moves, and what it takes.

Every partition is a snapshot of its own; a message is matched in each that it can match, on one
thread, one partition after another. The answers are compared with those of one index over all
queries before a time counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.engine import BatchResult
from pathcast.model import Query
from pathcast.partition import PepPlacement, patterns_by_schema
from pathcast.registry import Registry, Snapshot
from pathcast.schema import PathOccurrences
from pathcast.workload import (
    DOMAINS,
    SubscriptionParameters,
    generate_documents,
    generate_subscriptions,
)
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.placement.cost import CostPlacement, measured_costs
from pathcast_lab.bench.placement.definition import PlacementDomain, PlacementFigure, PlacementSet
from pathcast_lab.bench.placement.hashed import HashPlacement
from pathcast_lab.bench.placement.placing import Placement
from pathcast_lab.bench.placement.prefix import PrefixPlacement
from pathcast_lab.bench.timing import Spread, elapsed_ns, undisturbed, yardstick
from pathcast_lab.bench.wrong_count import WrongCountError

ONE = "one index"
"""The series of all queries together."""

SAMPLE = 50
"""Messages that costs and rates are measured on; none of those that the figure counts."""


def domain_queries(domain: str, count: int, seed: int) -> list[Query]:
    """Standing queries of subscribers to a domain."""
    parameters = SubscriptionParameters(queries=count, seed=seed, domains=(domain,))
    return [Query(row.query_id, row.query) for row in generate_subscriptions(parameters)]


def domain_messages(domain: str, count: int, seed: int) -> list[bytes]:
    """Messages of a domain."""
    known = DOMAINS[domain]
    return list(generate_documents(known.graph(), known.documents(count, seed), known.values()))


def occurrences_of(domain: str) -> PathOccurrences:
    """What the DTD of a domain says of its paths."""
    known = DOMAINS[domain]
    return PathOccurrences(known.graph(), root=known.root)


def run_realistic(
    figure: PlacementFigure, chosen: PlacementSet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Every placement of every domain, a list of values each.

    Raises:
        WrongCountError: Partitions together give other answers than one index.
    """
    for domain in figure.domains:
        index = Registry()
        index.add(domain_queries(domain, chosen.queries, seed))
        snapshot = index.freeze()
        messages = domain_messages(domain, chosen.messages, seed)
        bench = _Bench(figure, chosen, domain, snapshot, messages)
        yield bench.together()
        for name, placement in _placements(chosen, domain, snapshot, seed).items():
            say(f"{domain}, {name}: {len(snapshot):,} queries in {placement.partitions} partitions")
            yield bench.apart(name, placement)


def _placements(
    chosen: PlacementSet, domain: PlacementDomain, snapshot: Snapshot, seed: int
) -> dict[str, Placement]:
    population = snapshot.population()
    count = chosen.partitions
    sample = domain_messages(domain, SAMPLE, seed + 1)
    costs = measured_costs(snapshot, sample)
    return {
        "hash": HashPlacement(count, seed),
        "cost": CostPlacement.of(population, costs, count),
        "prefix": PrefixPlacement.of(population, count, threads=1),
        "PEP": PepPlacement.of(
            population,
            count,
            patterns=patterns_by_schema(population, [occurrences_of(domain)]),
            seed=seed,
            threads=1,
        ),
        "PEP by rates": PepPlacement.of(population, count, sample=sample, seed=seed, threads=1),
    }


class _Bench:
    """The queries and messages of one domain."""

    def __init__(
        self,
        figure: PlacementFigure,
        chosen: PlacementSet,
        domain: str,
        snapshot: Snapshot,
        messages: Sequence[bytes],
    ) -> None:
        self._figure = figure
        self._rounds = chosen.rounds
        self._domain = domain
        self._snapshot = snapshot
        self._messages = pa.array(messages, pa.binary())
        self._bytes = sum(map(len, messages))
        self._parse = yardstick(messages)

        def whole() -> BatchResult:
            found: BatchResult = snapshot.match(self._messages)
            return found

        self._whole = whole
        self._matches = np.diff(self._whole().matches.offsets.to_numpy())

    def together(self) -> list[Value]:
        """All queries in one index."""
        place = self._place(ONE, len(self._snapshot))
        return [
            place.value("matching", "us", self._timed(self._whole)),
            place.value("lxml", "us", self._timed(self._parse)),
            place.value("matches", "1", float(self._matches.mean())),
        ]

    def apart(self, name: str, placement: Placement) -> list[Value]:
        """The queries in the partitions of a placement."""
        population = self._snapshot.population()
        placed = placement.place(population)
        sizes = np.bincount(placed, minlength=placement.partitions)
        matchers = self._matchers(placed, placement.partitions)
        touched = placement.touched(self._messages)
        rows = [touched.rows_of(partition) for partition in range(placement.partitions)]
        parts = [
            (matcher, self._messages.take(pa.array(at)), at)
            for matcher, at in zip(matchers, rows, strict=True)
            if matcher is not None and len(at)
        ]
        self._check(name, parts)
        sent = np.array([len(at) for at in rows])
        messages = len(self._messages)
        lengths = pc.binary_length(self._messages).to_numpy()
        moved = sum(int(lengths[at].sum()) for at in rows) / self._bytes
        matching, slowest = self._matching([(matcher, part) for matcher, part, _ in parts])
        place = self._place(name, len(self._snapshot))
        at = placement.dont_care
        rest = 0.0 if at is None else float(sizes[at])
        shared = sizes if at is None else np.delete(sizes, at)
        return [
            place.value("partitions sent to", "%", 100 * sent.sum() / (messages * len(sizes))),
            place.value(
                "queries in them", "%", 100 * (sent * sizes).sum() / (messages * sizes.sum())
            ),
            place.value("bytes moved", "x", moved),
            place.value("don't care", "%", 100 * rest / sizes.sum()),
            place.value("imbalance", "x", float(shared.max() / max(shared.mean(), 1e-9))),
            place.value("routing", "us", self._timed(partial(placement.touched, self._messages))),
            place.value("matching", "us", matching),
            place.value("slowest partition", "us", slowest),
        ]

    def _matchers(self, placed: np.ndarray, partitions: int) -> list[Registry | Snapshot | None]:
        """A matcher for each partition that has queries."""
        ids = self._snapshot.query_ids
        order = np.argsort(placed, kind="stable")
        bounds = np.searchsorted(placed[order], np.arange(partitions + 1))
        matchers: list[Registry | Snapshot | None] = []
        for partition in range(partitions):
            members = order[bounds[partition] : bounds[partition + 1]].tolist()
            if not members:
                matchers.append(None)
                continue
            index = Registry()
            index.add(self._snapshot.query(ids[number]) for number in members)
            matchers.append(index.freeze())
        return matchers

    def _check(
        self, name: str, parts: Sequence[tuple[Registry | Snapshot, pa.Array, np.ndarray]]
    ) -> None:
        """The partitions have as many matches for each message as one index has."""
        found = np.zeros(len(self._messages), dtype=np.int64)
        for matcher, part, at in parts:
            found[at] += np.diff(matcher.match(part).matches.offsets.to_numpy())
        if not np.array_equal(found, self._matches):
            raise WrongCountError(
                case=f"{self._figure.caption}, {self._domain}, {name}: matches",
                found=int(found.sum()),
                expected=int(self._matches.sum()),
                oracle=ONE,
            )

    def _matching(
        self, parts: Sequence[tuple[Registry | Snapshot, pa.Array]]
    ) -> tuple[Spread, Spread]:
        """Time of all partitions together, and of the one that takes longest."""
        totals, slowest = [], []
        with undisturbed():
            for _ in range(self._rounds):
                times = [elapsed_ns(partial(matcher.match, part)) for matcher, part in parts]
                totals.append(sum(times) / 1e3 / len(self._messages))
                slowest.append(max(times, default=0) / 1e3 / len(self._messages))
        return Spread.of(totals), Spread.of(slowest)

    def _timed(self, action: Callable[[], object]) -> Spread:
        with undisturbed():
            times = [elapsed_ns(action) for _ in range(self._rounds)]
        return Spread.of([time / 1e3 / len(self._messages) for time in times])

    def _place(self, series: str, queries: int) -> Place:
        return Place(self._figure.name, self._domain, series, float(queries), queries)

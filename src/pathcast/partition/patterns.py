"""Exclusiveness patterns: comparisons for equality of one place with different values.

Queries that ask for different values of the same place exclude each other, as far as a message has
one value there. What all these comparisons have in common, structure and compared thing, is the
pattern.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = Registry()
    >>> texts = ["/m[@a = 1]", "/m[@a = 2][b = 'x']", "/m[b = 'y']", "/m/c"]
    >>> report = registry.add(Query(f"q{n}", text) for n, text in enumerate(texts))
    >>> for pattern in exclusiveness_patterns(registry.population()):
    ...     print(pattern.place, pattern.queries)
    /m/@a 2
    /m/b/. 2

Source: 001, 4.4, "Partitioning based on Exclusiveness Patterns", step (1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pathcast.partition.value_key import ValueKey, value_key
from pathcast.query import OPERATORS, Operator, Place, Population

PATTERNS_MAX: Final = 64
"""Patterns of one placement; each lets a message match one partition more."""

GAIN_MIN: Final = 0.0005
"""Share of all queries that a further pattern must cover."""


@dataclass(frozen=True, slots=True)
class ExclusivenessPattern:
    """A place whose values tell queries apart.

    Attributes:
        place: Structure and compared thing.
        queries: Queries that have the pattern.
        rate: Values that a message has there on average; None where no message was asked.
    """

    place: Place
    queries: int
    rate: float | None = None


@dataclass(frozen=True)
class PatternRows:
    """Which queries have which patterns, with which value.

    Attributes:
        queries: Numbers of queries, ascending.
        places: Numbers of places in the population, ascending within a query.
        keys: Numbers of keys.
        key_of: Number of a key -> the key.
    """

    queries: np.ndarray
    places: np.ndarray
    keys: np.ndarray
    key_of: Sequence[ValueKey]


def pattern_rows(population: Population) -> PatternRows:
    """The places that a query compares for equality, whichever of its alternatives holds.

    A place counts if every alternative compares it with the same value: a query with `@a = 1 or
    @a = 2` has no single value there. Of several values of one alternative the first by order is
    taken, as the message must have each of them.
    """
    is_equality = population.column("operator") == OPERATORS.index(Operator.EQ)
    queries, alternatives, places, constants = (
        population.column(name)[is_equality].astype(np.int64)
        for name in ("query", "alternative", "place", "constant")
    )
    key_of, key_numbers = _keys(population, constants)
    keys = key_numbers[constants]
    # One row a query, place and key: the first that all of its alternatives have.
    order = np.lexsort((alternatives, keys, places, queries))
    rows = np.stack([queries, places, keys, alternatives], axis=1)[order]
    if not len(rows):
        empty = np.zeros(0, np.int64)
        return PatternRows(empty, empty, empty, key_of)
    rows = rows[_differs(rows)]
    starts = np.flatnonzero(_differs(rows[:, :3]))
    found = np.diff(np.append(starts, len(rows)))
    shared = rows[starts]
    shared = shared[found == population.alternatives()[shared[:, 0]]]
    shared = shared[_differs(shared[:, :2])]
    return PatternRows(shared[:, 0], shared[:, 1], shared[:, 2], key_of)


def _differs(rows: np.ndarray) -> np.ndarray:
    """For each row, whether it is another one than the row before."""
    differs = np.ones(len(rows), dtype=bool)
    if len(rows):
        differs[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return differs


def _keys(population: Population, constants: np.ndarray) -> tuple[list[ValueKey], np.ndarray]:
    """The distinct keys in order, and for each constant that is used the number of its key."""
    used = np.unique(constants)
    keys = [value_key(population.constants[at]) for at in used.tolist()]
    key_of = sorted(set(keys))
    number = {key: at for at, key in enumerate(key_of)}
    numbers = np.zeros(len(population.constants), dtype=np.int64)
    numbers[used] = [number[key] for key in keys]
    return key_of, numbers


def candidate_patterns(population: Population) -> list[ExclusivenessPattern]:
    """Return all exclusiveness patterns of a population, by how many queries have them.

    Args:
        population: The predicates of the queries.

    Cost: a sort of the comparisons.
    """
    counted = np.bincount(pattern_rows(population).places, minlength=len(population.places))
    found = [
        ExclusivenessPattern(place, int(queries))
        for place, queries in zip(population.places, counted, strict=True)
        if queries
    ]
    return sorted(found, key=lambda each: (-each.queries, str(each.place)))


def exclusiveness_patterns(
    population: Population,
    *,
    patterns_max: int = PATTERNS_MAX,
    gain_min: float = GAIN_MIN,
) -> list[ExclusivenessPattern]:
    """Return patterns of which every query has one, as far as queries have any.

    Candidates are sorted by how many queries have them; of those, the one that covers most of the
    queries that are not covered yet is chosen, again and again.

    Args:
        population: The predicates of the queries.
        patterns_max: Most patterns.
        gain_min: Share of all queries that a further pattern must cover.

    Returns:
        The patterns, by their coverage.

    Cost: a sort of the comparisons, and one pass over them a pattern.
    """
    cover = PatternCover(population)
    chosen = cover.greedy(patterns_max, max(1, int(gain_min * len(population))))
    return cover.patterns(chosen)


def patterns_by_rates(
    population: Population,
    rates: Mapping[Place, float],
    buckets: int,
    *,
    patterns_max: int = PATTERNS_MAX,
) -> list[ExclusivenessPattern]:
    """Patterns with which messages visit few queries, from what messages have at their places.

    A pattern takes the queries that it covers out of the don't-care partition, which every message
    visits, and sends every message to a bucket more for each value. The pattern after which a
    message visits the fewest queries is chosen, again and again, while that gets less.

    Args:
        population: What the queries ask for.
        rates: Place -> values of a message there, on average; places that are not among them are
            no patterns.
        buckets: K.
        patterns_max: Most patterns.

    Returns:
        The patterns in the order in which they were chosen, with their rates.

    Cost: as `exclusiveness_patterns`.
    """
    cover = PatternCover(population)
    rows = cover.rows
    rate_of = np.array([rates.get(place, np.nan) for place in population.places])
    is_covered = np.zeros(len(population), dtype=bool)
    chosen: list[int] = []
    visited, sent = 1.0, 0.0
    while len(chosen) < patterns_max and len(population):
        left = ~is_covered[rows.queries]
        gains = np.bincount(rows.places[left], minlength=len(population.places))
        rest = 1 - (is_covered.sum() + gains) / len(population)
        shares = rest + (1 - (1 - 1 / buckets) ** (sent + rate_of)) * (1 - rest)
        shares[~(gains > 0) | np.isnan(rate_of)] = np.inf
        place = int(shares.argmin()) if len(shares) else 0
        if not len(shares) or shares[place] >= visited:
            break
        visited = float(shares[place])
        sent += float(rate_of[place])
        chosen.append(place)
        is_covered[cover.queries_of(place)] = True
    return [
        ExclusivenessPattern(
            population.places[place], int(cover.coverage[place]), float(rate_of[place])
        )
        for place in chosen
    ]


class PatternCover:
    """The queries that each place of a population covers.

    Args:
        population: The predicates of the queries.

    Attributes:
        population: As given.
        rows: Its patterns.
        coverage: Number of queries by the number of a place.
    """

    def __init__(self, population: Population) -> None:
        self.population = population
        self.rows = rows = pattern_rows(population)
        order = np.argsort(rows.places, kind="stable")
        self._of = rows.queries[order]
        self._bounds = np.searchsorted(rows.places[order], np.arange(len(population.places) + 1))
        self.coverage = np.diff(self._bounds)

    def queries_of(self, place: int) -> np.ndarray:
        """The queries that have a place."""
        found: np.ndarray = self._of[self._bounds[place] : self._bounds[place + 1]]
        return found

    def greedy(self, most: int, gain_min: int) -> list[int]:
        """Return places that cover the queries, the one with the greatest gain first.

        Args:
            most: Places.
            gain_min: Queries that a further place must cover.
        """
        is_covered = np.zeros(len(self.population), dtype=bool)
        chosen: list[int] = []
        while len(chosen) < most:
            left = ~is_covered[self.rows.queries]
            gains = np.bincount(self.rows.places[left], minlength=len(self.coverage))
            best = int(gains.max(initial=0))
            if best < gain_min:
                break
            place = max(np.flatnonzero(gains == best).tolist(), key=self.worth)
            chosen.append(place)
            is_covered[self.queries_of(place)] = True
        return chosen

    def worth(self, place: int) -> tuple[int, ...]:
        """Return the order of places of equal gain: more queries in all are worth more."""
        return int(self.coverage[place]), -place

    def patterns(self, chosen: Sequence[int]) -> list[ExclusivenessPattern]:
        """Return the patterns of places, by their coverage."""
        places = self.population.places
        order = sorted(chosen, key=lambda at: (-self.coverage[at], str(places[at])))
        return [ExclusivenessPattern(places[at], int(self.coverage[at])) for at in order]

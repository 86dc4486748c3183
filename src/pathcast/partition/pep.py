"""PEP: queries placed by the values of exclusiveness patterns.

Each of M patterns has its values cut into K buckets; partition i has the i-th bucket of every
pattern. A message whose patterns occur once each has M values, so that it can match queries in M
partitions of K at most: the *filtering power* M/K.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = Registry()
    >>> report = registry.add([Query(f"q{n}", f"/m[@a = {n}]") for n in range(100)])
    >>> placement = PepPlacement.of(registry.population(), 10)
    >>> placement.partitions, placement.dont_care, placement.power
    (11, 10, 0.1)
    >>> placement.touched([b"<m a='37'/>", b"<m/>"]).partitions.to_pylist()
    [[3, 10], [10]]

Source: 001, 4.4, "Partitioning based on Exclusiveness Patterns", step (2). Differs: buckets hold
about as many queries each, where the paper cuts the range of values; the two are the same for
values that are asked for equally often. Queries without any chosen pattern, of which the paper has
none, are in a partition of their own. With a sample of messages, patterns are chosen by the values
that messages have, not by coverage alone; `patterns_by_schema` chooses as the paper does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from pathcast.engine import Messages
from pathcast.limits import Limits
from pathcast.partition.pattern_values import PatternValues, measured_rates
from pathcast.partition.patterns import (
    GAIN_MIN,
    PATTERNS_MAX,
    ExclusivenessPattern,
    PatternRows,
    candidate_patterns,
    exclusiveness_patterns,
    pattern_rows,
    patterns_by_rates,
)
from pathcast.partition.placement import (
    Touched,
    check_partitions,
    stable_hashes,
    touched_lists,
)
from pathcast.partition.value_key import ValueKey
from pathcast.query import Place, Population

_MEASURED_MAX: Final = 512
"""Candidates whose values are counted in a sample; those that most queries have."""


@dataclass(frozen=True)
class PepPlacement:
    """Queries by the values that they ask for.

    Attributes:
        patterns: The exclusiveness patterns, M of them.
        buckets: K; partition K is the don't-care partition.
        borders: For each pattern the keys at which a bucket begins, the first bucket left out;
            ascending, K - 1 of them.
        seed: Chooses among the patterns of a query.
        limits: What a message may cost.
        threads: As for `Registry`.
    """

    patterns: tuple[ExclusivenessPattern, ...]
    buckets: int
    borders: tuple[tuple[ValueKey, ...], ...]
    seed: int = 0
    limits: Limits | None = None
    threads: int | None = None

    @classmethod
    def of(
        cls,
        population: Population,
        buckets: int,
        *,
        sample: Messages | None = None,
        patterns: Sequence[ExclusivenessPattern] | None = None,
        patterns_max: int = PATTERNS_MAX,
        gain_min: float = GAIN_MIN,
        seed: int = 0,
        limits: Limits | None = None,
        threads: int | None = None,
    ) -> PepPlacement:
        """A placement made for a population.

        Args:
            population: What the queries ask for; those that come later may be others.
            buckets: K, the partitions without the don't-care partition.
            sample: Messages as they will come: the patterns are those of `patterns_by_rates`, and
                a query with several is placed by the one of which a message has the fewest values.
            patterns: The patterns to use; None finds them.
            patterns_max: As for `exclusiveness_patterns`.
            gain_min: Likewise.
            seed: Chooses among the patterns of a query.
            limits: What a message may cost.
            threads: As for `Registry`.

        Raises:
            ConfigError: The number of buckets cannot be used.
        """
        check_partitions(buckets)
        if patterns is None and sample is not None:
            places = [each.place for each in candidate_patterns(population)[:_MEASURED_MAX]]
            rates = measured_rates(places, sample)
            patterns = patterns_by_rates(population, rates, buckets, patterns_max=patterns_max)
        elif patterns is None:
            patterns = exclusiveness_patterns(
                population, patterns_max=patterns_max, gain_min=gain_min
            )
        unfilled = cls(tuple(patterns), buckets, (), seed, limits, threads)
        chosen = unfilled._chosen(population)
        borders = []
        for number in range(len(patterns)):
            keys = chosen.keys[chosen.places == number]
            borders.append(_borders(keys, chosen.key_of, buckets))
        return replace(unfilled, borders=tuple(borders))

    @property
    def partitions(self) -> int:
        """K, and the don't-care partition."""
        return self.buckets + 1

    @property
    def dont_care(self) -> int:
        """The last partition."""
        return self.buckets

    @property
    def power(self) -> float:
        """M/K: the share of partitions that a message can match whose patterns occur once each."""
        return len(self.patterns) / self.buckets

    def place(self, population: Population) -> np.ndarray:
        """By the bucket of the key of each query. Cost: a sort of the comparisons."""
        placed = np.full(len(population), self.dont_care, dtype=np.uint32)
        chosen = self._chosen(population)
        placed[chosen.queries] = self._targets(chosen.places, chosen.keys, chosen.key_of)
        return placed

    def patterns_of(self, population: Population) -> list[np.ndarray]:
        """For each pattern the numbers of the queries that are placed by it."""
        chosen = self._chosen(population)
        return [chosen.queries[chosen.places == number] for number in range(len(self.patterns))]

    def touched(self, messages: Messages) -> Touched:
        """The buckets that the values of a message lie in, and the don't-care partition.

        A message whose values cannot be had within the limits goes everywhere.
        """
        found = self.values.of(messages)
        targets = self._targets(found.places, found.key_numbers, found.keys)
        is_usable = ~found.is_missing
        is_usable[list(found.errors)] = False
        usable = np.flatnonzero(is_usable)
        opened = np.flatnonzero(found.is_open & is_usable)
        every = np.arange(self.partitions)
        rows = [found.rows, usable, np.repeat(opened, self.partitions)]
        partitions = [targets, np.full(len(usable), self.dont_care), np.tile(every, len(opened))]
        lists = touched_lists(
            np.concatenate(rows), np.concatenate(partitions), self.partitions, found.is_missing
        )
        return Touched(lists, found.errors)

    @cached_property
    def values(self) -> PatternValues:
        """Make a finder of messages' values."""
        places = [pattern.place for pattern in self.patterns]
        return PatternValues(places, limits=self.limits, threads=self.threads)

    def _targets(
        self, patterns: np.ndarray, keys: np.ndarray, key_of: Sequence[ValueKey]
    ) -> np.ndarray:
        """The partition of each pair of pattern and key; each distinct pair is looked up once."""
        pairs, at = np.unique(patterns * len(key_of) + keys, return_inverse=True)
        targets = [
            bisect_right(self.borders[pair // len(key_of)], key_of[pair % len(key_of)])
            for pair in pairs.tolist()
        ]
        found: np.ndarray = np.array(targets, dtype=np.int64)[at]
        return found

    def _chosen(self, population: Population) -> PatternRows:
        """For each query that has patterns, the one that it is placed by: a random one of them.

        Which one follows from the seed and the id, so that it does not depend on the others. Where
        rates are known, it is the pattern of the least rate.
        """
        rows = pattern_rows(population)
        numbers: dict[Place, int] = {
            pattern.place: number for number, pattern in enumerate(self.patterns)
        }
        number_of = np.array([numbers.get(place, -1) for place in population.places], np.int64)
        places = number_of[rows.places] if len(rows.places) else rows.places
        is_used = places >= 0
        queries, places, keys = rows.queries[is_used], places[is_used], rows.keys[is_used]
        rates = np.array([pattern.rate or 0.0 for pattern in self.patterns])
        order = np.lexsort((places, rates[places], queries))
        queries, places, keys = queries[order], places[order], keys[order]
        having, picked, counts = np.unique(queries, return_index=True, return_counts=True)
        if any(pattern.rate is None for pattern in self.patterns):
            lots = stable_hashes(_taken(population.query_ids, having), self.seed)
            picked = picked + (lots % counts).astype(np.int64)
        return PatternRows(having, places[picked], keys[picked], rows.key_of)


def _taken(ids: Sequence[str], numbers: np.ndarray) -> Sequence[str]:
    take = getattr(ids, "take", None)
    if take is not None:
        found: Sequence[str] = take(numbers.tolist())
        return found
    return [ids[number] for number in numbers.tolist()]


def _borders(keys: np.ndarray, key_of: Sequence[ValueKey], buckets: int) -> tuple[ValueKey, ...]:
    """Where buckets begin so that about as many queries lie in each.

    Args:
        keys: Number of the key of each query.
        key_of: Keys by number, ascending.
        buckets: K.

    A key that many queries have is not cut; buckets beside it stay empty then.
    """
    if not len(keys):
        return ((1, 0.0, ""),) * (buckets - 1)
    below = np.cumsum(np.bincount(keys, minlength=len(key_of)))
    wanted = np.arange(1, buckets) * (len(keys) / buckets)
    # The first key that begins at or after so many queries.
    starts = np.concatenate([[0], below[:-1]])
    first = np.searchsorted(starts, wanted - 0.5)
    last = key_of[-1]
    beyond: ValueKey = (last[0], last[1], last[2] + "\0") if last[0] else (0, last[1], "\0")
    return tuple(key_of[at] if at < len(key_of) else beyond for at in first.tolist())

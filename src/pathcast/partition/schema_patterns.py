"""Exclusiveness patterns that the schemas of messages help to choose, as the paper does it.

Example:
    >>> from pathcast import Query, Registry
    >>> from pathcast.schema import PathOccurrences, parse_dtd
    >>> graph = parse_dtd(
    ...     "<!ELEMENT m (h, b*)><!ELEMENT h EMPTY><!ELEMENT b EMPTY>"
    ...     "<!ATTLIST h x CDATA #IMPLIED><!ATTLIST b x CDATA #IMPLIED>"
    ... )
    >>> registry = Registry()
    >>> texts = [f"/m[b/@x = {n}][h/@x = {n}]" for n in range(8)]
    >>> report = registry.add(Query(f"q{n}", text) for n, text in enumerate(texts))
    >>> found = patterns_by_schema(registry.population(), [PathOccurrences(graph, root="m")])
    >>> [str(pattern.place) for pattern in found]
    ['/m/h/@x']

Source: 001, 4.4, "Partitioning based on Exclusiveness Patterns", step (1): coverage, greedy cover,
perturbation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from pathcast.partition.patterns import (
    GAIN_MIN,
    PATTERNS_MAX,
    ExclusivenessPattern,
    PatternCover,
)
from pathcast.query import End, Place, Population
from pathcast.query.normal import AnyIn, AnyNamespace, Name, NameTest
from pathcast.schema import MANY, PathOccurrences, SchemaStep


def patterns_by_schema(
    population: Population,
    schemas: Sequence[PathOccurrences],
    *,
    patterns_max: int = PATTERNS_MAX,
    gain_min: float = GAIN_MIN,
) -> list[ExclusivenessPattern]:
    """Return patterns of which every query has one, as far as queries have any.

    The greedy choice prefers, of equal gains, a place that a message has once. Then every chosen
    pattern that can have several values in a message is given up for one that the schema allows
    once, where that covers the queries that no other chosen pattern does; and what covers none
    alone goes.

    Args:
        population: The predicates of the queries.
        schemas: How often a message has each place; a message is of one of them.
        patterns_max: Most patterns.
        gain_min: Share of all queries that a further pattern must cover.

    Returns:
        The patterns, by their coverage.
    """
    cover = _SchemaCover(population, schemas)
    chosen = cover.greedy(patterns_max, max(1, int(gain_min * len(population))))
    return cover.patterns(cover.perturbed(chosen))


class _SchemaCover(PatternCover):
    """The queries that each place covers, and whether a message has one value there."""

    def __init__(self, population: Population, schemas: Sequence[PathOccurrences]) -> None:
        super().__init__(population)
        self.is_once = cache(lambda place: occurs_once(schemas, population.places[place]))

    def worth(self, place: int) -> tuple[int, ...]:
        """Return the order of places of equal gain: a place that occurs once comes first."""
        return self.is_once(place), *super().worth(place)

    def patterns(self, chosen: Sequence[int]) -> list[ExclusivenessPattern]:
        """Return the patterns of places; of equal coverage, one that occurs once comes first."""
        found = {str(self.population.places[at]): self.is_once(at) for at in chosen}
        return sorted(
            super().patterns(chosen), key=lambda each: (-each.queries, not found[str(each.place)])
        )

    def perturbed(self, chosen: Sequence[int]) -> list[int]:
        """Return more places that occur once, which cover all queries that the given ones cover."""
        times = np.zeros(len(self.population), dtype=np.int32)
        for place in chosen:
            times[self.queries_of(place)] += 1
        kept = list(chosen)
        for place in sorted(chosen, key=lambda at: (self.is_once(at), self.coverage[at])):
            own = self.queries_of(place)
            alone = own[times[own] == 1]
            if len(alone):
                other = None if self.is_once(place) else self._instead(alone, kept)
                if other is None:
                    continue
                kept.append(other)
                times[self.queries_of(other)] += 1
            kept.remove(place)
            times[own] -= 1
        return kept

    def _instead(self, alone: np.ndarray, kept: Sequence[int]) -> int | None:
        """Return a place that occurs once and covers all of these queries."""
        is_alone = np.zeros(len(self.population), dtype=bool)
        is_alone[alone] = True
        inside = is_alone[self.rows.queries]
        found = np.bincount(self.rows.places[inside], minlength=len(self.coverage))
        whole = np.flatnonzero(found == len(alone)).tolist()
        usable = [place for place in whole if place not in kept and self.is_once(place)]
        return max(usable, key=lambda at: (self.coverage[at], -at), default=None)


def occurs_once(schemas: Sequence[PathOccurrences], place: Place) -> bool:
    """Return whether a valid message of any of the schemas has one value at most at a place.

    Comments and processing instructions that cut a text in two are not thought of.
    """
    test = place.attribute
    if place.end is End.ATTRIBUTE and not isinstance(test, Name):
        return False
    steps = [SchemaStep(axis.value, *_names(test)) for axis, test in place.steps]
    return bool(schemas) and all(each.max_occurrences(steps) < MANY for each in schemas)


def _names(test: NameTest) -> tuple[str | None, str | None]:
    match test:
        case Name(uri, local):
            return uri, local
        case AnyIn(uri):
            return uri, None
        case AnyNamespace(local):
            return None, local
        case _:
            return None, None

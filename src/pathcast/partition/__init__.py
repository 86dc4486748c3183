"""Queries in partitions: where each goes, and which partitions a message can match.

`PepPlacement` says both. It places queries by the values that they ask for, so that a
message goes to few partitions.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = Registry()
    >>> texts = [f"/order[@to = '{city}']" for city in ("Bern", "Graz", "Linz", "Oslo")]
    >>> report = registry.add(Query(f"q{n}", text) for n, text in enumerate(texts))
    >>> placement = PepPlacement.of(registry.population(), 4)
    >>> [str(pattern.place) for pattern in placement.patterns], placement.power
    (['/order/@to'], 0.25)
    >>> placement.touched([b"<order to='Linz'/>"]).partitions.to_pylist()
    [[2, 4]]

It starts no process and knows no cluster. The registration service of a network chooses hosts by
it.

Source: 001, 4.4. docs/scaling.md says when which placement pays.
"""

from pathcast.partition.patterns import (
    ExclusivenessPattern,
    candidate_patterns,
    exclusiveness_patterns,
    patterns_by_rates,
)
from pathcast.partition.pep import PepPlacement
from pathcast.partition.placement import Touched
from pathcast.partition.schema_patterns import patterns_by_schema
from pathcast.partition.value_key import ValueKey, value_key

__all__ = [
    "ExclusivenessPattern",
    "PepPlacement",
    "Touched",
    "ValueKey",
    "candidate_patterns",
    "exclusiveness_patterns",
    "patterns_by_rates",
    "patterns_by_schema",
    "value_key",
]

"""The book of a placement: which query is where, how full partitions are, and what to move.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> from pathcast.partition import HashPlacement
    >>> index = QueryIndex()
    >>> report = index.register([Query(f"q{n}", f"/a[@x = {n}]") for n in range(8)])
    >>> book = Assignment(HashPlacement(2))
    >>> added = book.add(index.population())
    >>> len(book), int(sum(book.loads()))
    (8, 8)
    >>> book.remove(["q3"])
    >>> len(book), book.partition_of("q3") is None
    (7, True)

It holds no queries and matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pathcast.errors import ConfigError, UnknownQueryError
from pathcast.partition.placement import Placement, Unit
from pathcast.query import Population


@dataclass(frozen=True)
class Move:
    """Queries that go from one partition to another.

    Attributes:
        unit: What they are placed by.
        source: Where they are.
        target: Where they go.
        ids: The queries, sorted.
    """

    unit: Unit
    source: int
    target: int
    ids: tuple[str, ...]


@dataclass
class _Unit:
    """The queries of a unit.

    Attributes:
        partition: Where they are.
        weights: Id -> load.
        load: Of all of them.
    """

    partition: int
    weights: dict[str, float] = field(default_factory=dict)
    load: float = 0.0


class Assignment:
    """Where queries are, by a placement.

    Args:
        placement: Says where queries go.
        weight: Load of a query by its id; 1 where it is not given.

    Attributes:
        placement: As it is now; `rebalance` replaces it.
    """

    def __init__(self, placement: Placement, weight: Callable[[str], float] | None = None) -> None:
        self.placement = placement
        self._weight = weight
        self._unit_of: dict[str, Unit] = {}
        self._units: dict[Unit, _Unit] = {}
        self._loads = np.zeros(placement.partitions)

    def add(self, population: Population) -> dict[str, int]:
        """Takes queries in.

        Args:
            population: What they ask for; none of their ids is taken.

        Returns:
            Id -> partition.

        Cost: about 2 µs a query.
        """
        placed: dict[str, int] = {}
        units = self.placement.units(population)
        for name, unit in zip(population.query_ids, units, strict=True):
            entry = self._units.get(unit)
            if entry is None:
                entry = self._units[unit] = _Unit(self.placement.partition_of(unit))
            weight = 1.0 if self._weight is None else self._weight(name)
            entry.weights[name] = weight
            entry.load += weight
            self._unit_of[name] = unit
            self._loads[entry.partition] += weight
            placed[name] = entry.partition
        return placed

    def remove(self, ids: Iterable[str]) -> None:
        """Takes queries out; all of them or, if one is unknown, none.

        Raises:
            UnknownQueryError: No query has one of the ids.
        """
        leaving = list(dict.fromkeys(ids))
        for name in leaving:
            if name not in self._unit_of:
                raise UnknownQueryError("query.unknown", id=name)
        for name in leaving:
            unit = self._unit_of.pop(name)
            entry = self._units[unit]
            weight = entry.weights.pop(name)
            entry.load -= weight
            self._loads[entry.partition] -= weight
            if not entry.weights:
                del self._units[unit]

    def unit_of(self, query_id: str) -> Unit:
        """What a query is placed by.

        Raises:
            UnknownQueryError: No query has this id.
        """
        if query_id not in self._unit_of:
            raise UnknownQueryError("query.unknown", id=query_id)
        return self._unit_of[query_id]

    def partition_of(self, query_id: str) -> int | None:
        """Where a query is; None if there is none of this id."""
        unit = self._unit_of.get(query_id, self)
        return None if unit is self else self._units[unit].partition

    def loads(self) -> np.ndarray:
        """Load of each partition, the don't-care partition's too; a copy."""
        return self._loads.copy()

    @property
    def imbalance(self) -> float:
        """Load of the fullest partition by the mean, the don't-care partition left out."""
        loads = self._shared_loads()
        mean = float(loads.mean())
        return float(loads.max()) / mean if mean > 0 else 1.0

    def planned_moves(self, imbalance_max: float) -> list[Move]:
        """Moves after which no partition has more than so many times the mean, if units allow it.

        From the fullest partition the unit goes that evens it out best with the emptiest one, again
        and again; it ends where every unit of the fullest partition is too large for that. Then the
        fullest partition is no fuller than the emptiest one and its lightest unit together.

        Args:
            imbalance_max: From 1 on.

        Raises:
            ConfigError: It is below 1.

        Cost: a pass over the units, and one over those of a partition for each move.
        """
        if not imbalance_max >= 1:
            reason = f"{imbalance_max!r} is not a number from 1 on"
            raise ConfigError("config.invalid", key="imbalance_max", reason=reason)
        loads = self._shared_loads()
        mean = float(loads.mean())
        inside: list[dict[Unit, float]] = [{} for _ in loads]
        for unit, entry in self._units.items():
            if entry.partition < len(loads):
                inside[entry.partition][unit] = entry.load
        targets: dict[Unit, int] = {}
        while loads.max() > imbalance_max * mean:
            fullest, emptiest = int(loads.argmax()), int(loads.argmin())
            gap = float(loads[fullest] - loads[emptiest])
            usable = [unit for unit, load in inside[fullest].items() if 0 < load < gap]
            if not usable:
                break
            best = min(usable, key=lambda each: (abs(inside[fullest][each] - gap / 2), str(each)))
            load = inside[fullest].pop(best)
            inside[emptiest][best] = load
            loads[fullest] -= load
            loads[emptiest] += load
            targets[best] = emptiest
        return [
            Move(
                unit, self._units[unit].partition, target, tuple(sorted(self._units[unit].weights))
            )
            for unit, target in targets.items()
            if self._units[unit].partition != target
        ]

    def switch(self, moves: Iterable[Move]) -> None:
        """Makes moves count: the placement is the one after them."""
        targets: Mapping[Unit, int] = {move.unit: move.target for move in moves}
        self.placement = self.placement.moved(targets)
        for unit, target in targets.items():
            entry = self._units.get(unit)
            if entry is not None:
                self._loads[entry.partition] -= entry.load
                self._loads[target] += entry.load
                entry.partition = target

    def _shared_loads(self) -> np.ndarray:
        loads = self._loads.copy()
        dont_care = self.placement.dont_care
        return loads if dont_care is None else np.delete(loads, dont_care)

    def __len__(self) -> int:
        return len(self._unit_of)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._unit_of

"""Queries by how their paths begin: a message goes where one of the beginnings is found.

Example:
    >>> from pathcast import Query, Registry
    >>> index = Registry()
    >>> texts = ["/m/a/b[c = 1]", "/m/a", "/m/d//e", "//f"]
    >>> report = index.add(Query(f"q{n}", text) for n, text in enumerate(texts))
    >>> placement = PrefixPlacement.of(index.population(), 3, steps=2)
    >>> placement.place(index.population()).tolist()
    [0, 0, 2, 1]
    >>> placement.touched([b"<m><d/></m>"]).partitions.to_pylist()
    [[2, 3]]

Structure alone does not exclude (001, 4.4): a message that has all beginnings goes everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pathcast import Snapshot
from pathcast.engine.messages import Messages, message_column
from pathcast.errors import ConfigError, KernelBugError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.partition.placement import (
    Touched,
    check_partitions,
    missing_of,
    touched_lists,
)
from pathcast.query import Place, Population
from pathcast.registry import Registry
from pathcast_lab.bench.placement.balancing import balanced


@dataclass(frozen=True)
class PrefixPlacement:
    """Queries by the first steps of their main paths.

    Attributes:
        groups: Partitions without the don't-care partition, which is the last one. Queries whose
            alternatives begin differently, or in a way that was not known, are there.
        steps: Steps that count.
        table: Beginning -> partition.
        limits: What a message may cost.
        threads: As for `Registry.matcher`.
    """

    groups: int
    steps: int
    table: Mapping[Place, int] = field(default_factory=dict)
    limits: Limits | None = None
    threads: int | None = None

    @classmethod
    def of(
        cls,
        population: Population,
        groups: int,
        *,
        steps: int = 2,
        limits: Limits | None = None,
        threads: int | None = None,
    ) -> PrefixPlacement:
        """A placement made for a population, its groups as even as whole beginnings allow.

        Raises:
            ConfigError: There is no such number of partitions or steps.
        """
        check_partitions(groups)
        if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
            reason = f"{steps!r} is not a whole number from 1 on"
            raise ConfigError("config.invalid", key="steps", reason=reason)
        empty = cls(groups, steps, {}, limits, threads)
        numbers, places = empty._beginnings(population)
        counts = np.bincount(numbers[numbers >= 0], minlength=len(places)).tolist()
        weights = {place: count for place, count in zip(places, counts, strict=True) if count}
        return replace(empty, table=balanced(weights, groups))

    @property
    def partitions(self) -> int:
        """The groups, and the don't-care partition."""
        return self.groups + 1

    @property
    def dont_care(self) -> int:
        """The last partition."""
        return self.groups

    def place(self, population: Population) -> np.ndarray:
        """By the beginnings. Cost: 0.1 µs a query."""
        numbers, places = self._beginnings(population)
        targets = [self.table.get(place, self.dont_care) for place in places]
        targets.append(self.dont_care)  # the number -1 stands for it
        placed: np.ndarray = np.array(targets, dtype=np.uint32)[numbers]
        return placed

    def touched(self, messages: Messages) -> Touched:
        """The partitions of the beginnings that a message has, and the don't-care partition."""
        is_missing = missing_of(message_column(messages).arrays)
        matcher, targets = self._matcher
        batch = matcher.match(messages)
        is_usable = ~is_missing
        errors = {row: each.error for row, each in enumerate(batch) if each.error is not None}
        is_usable[list(errors)] = False
        usable = np.flatnonzero(is_usable)
        found = [each.query_numbers.array.to_numpy() for each in batch]
        rows = np.repeat(np.arange(len(found)), [len(numbers) for numbers in found])
        hits = targets[np.concatenate(found)] if found else np.zeros(0, np.int64)
        lists = touched_lists(
            np.concatenate([rows, usable]),
            np.concatenate([hits, np.full(len(usable), self.dont_care)]),
            self.partitions,
            is_missing,
        )
        return Touched(lists, errors)

    @cached_property
    def _matcher(self) -> tuple[Registry | Snapshot, np.ndarray]:
        """Make a matcher of beginnings, and the partition of each by its number there."""
        index = Registry(limits=self.limits)
        places = list(self.table)
        rows = []
        for number, place in enumerate(places):
            path, namespaces = place.to_query()
            rows.append(Query(str(number), path, namespaces))
        for name, error in index.add(rows).rejected.items():
            raise KernelBugError("kernel.bug", reason=f"{places[int(name)]} is refused: {error}")
        snapshot = index.freeze()
        targets = [self.table[places[int(name)]] for name in snapshot.query_ids]
        return snapshot, np.array(targets, dtype=np.int64)

    def _beginnings(self, population: Population) -> tuple[np.ndarray, list[Place]]:
        """For each query the number of its beginning, -1 for none; and the beginnings."""
        known: dict[Place, int] = {}
        of_place = np.array(
            [
                known.setdefault(Place(place.steps[: self.steps], place.end), len(known))
                for place in population.places
            ],
            dtype=np.int64,
        )
        queries = population.paths.column("query").to_numpy()
        numbers = of_place[population.paths.column("place").to_numpy()]
        least = np.full(len(population), len(known), dtype=np.int64)
        most = np.full(len(population), -1, dtype=np.int64)
        np.minimum.at(least, queries, numbers)
        np.maximum.at(most, queries, numbers)
        return np.where(least == most, most, -1), list(known)

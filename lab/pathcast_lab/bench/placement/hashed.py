"""Queries placed by a hash of their ids, to compare placements by content with.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = Registry()
    >>> report = registry.add([Query(f"q{n}", f"/a[@x = {n}]") for n in range(4)])
    >>> placement = HashPlacement(partitions=2)
    >>> placed = placement.place(registry.population())
    >>> len(placed), set(placed.tolist()) <= {0, 1}
    (4, True)
    >>> placement.touched([b"<a/>"]).partitions.to_pylist()
    [[0, 1]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathcast.engine.messages import Messages, message_column
from pathcast.partition.placement import (
    Touched,
    check_partitions,
    missing_of,
    stable_hashes,
    touched_lists,
)
from pathcast.query import Population


@dataclass(frozen=True)
class HashPlacement:
    """Queries by a hash of their ids: even, and every message goes everywhere.

    Attributes:
        partitions: Their number.
        seed: Other seeds give other placements.
    """

    partitions: int
    seed: int = 0

    def __post_init__(self) -> None:
        check_partitions(self.partitions)

    @property
    def dont_care(self) -> None:
        """There is none."""
        return

    def place(self, population: Population) -> np.ndarray:
        """By the hash of the ids. Cost: 0.3 µs a query."""
        return self.place_ids(population.query_ids)

    def place_ids(self, ids: Sequence[str]) -> np.ndarray:
        """Where queries of these ids go: all that a hash wants to know of a query."""
        return stable_hashes(ids, self.seed) % np.uint32(self.partitions)

    def touched(self, messages: Messages) -> Touched:
        """All partitions."""
        return everywhere(messages, self.partitions)


def everywhere(messages: Messages, partitions: int) -> Touched:
    """All messages go to all partitions. No message is looked at."""
    missing = missing_of(message_column(messages).arrays)
    rows = np.repeat(np.flatnonzero(~missing), partitions)
    numbers = np.tile(np.arange(partitions), len(rows) // partitions)
    return Touched(touched_lists(rows, numbers, partitions, missing))

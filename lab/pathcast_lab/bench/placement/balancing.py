"""Loads in balance: units to partitions, the heaviest first.

Example:
    >>> balanced({"a": 5, "b": 4, "c": 3, "d": 2}, 2)
    {'a': 0, 'b': 1, 'c': 1, 'd': 0}

Source: Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 1969: longest
processing time first is at most 4/3 of the best possible.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TypeVar

Item = TypeVar("Item")


def balanced(weights: Mapping[Item, float], partitions: int) -> dict[Item, int]:
    """A partition for each unit, the heaviest first, each to the partition with the least load.

    Args:
        weights: Unit -> its load.
        partitions: Their number.

    Cost: a sort of the units.
    """
    heap = [(0.0, partition) for partition in range(partitions)]
    placed: dict[Item, int] = {}
    for unit in sorted(weights, key=lambda each: (-weights[each], str(each))):
        load, partition = heapq.heappop(heap)
        placed[unit] = partition
        heapq.heappush(heap, (load + weights[unit], partition))
    return placed

"""Random ways to cut a sequence of messages into batches.

Example:
    >>> import random
    >>> random_split(random.Random(1), ["a", "b", "c", "d"])
    [['a'], ['b', 'c'], ['d']]
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

_Item = TypeVar("_Item")


def random_split(random: Random, items: Sequence[_Item]) -> list[list[_Item]]:
    """The items in order, cut at random places; no part is empty."""
    parts: list[list[_Item]] = []
    for item in items:
        if not parts or random.randrange(3) == 0:
            parts.append([])
        parts[-1].append(item)
    return parts

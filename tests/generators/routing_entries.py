"""Entries of routing tables: conjunctions of what queries ask for, several to a target.

Example:
    >>> import random
    >>> entries = random_routing_entries(random.Random(2), ["/a/b[c]", "//d | //e"], 4, targets=3)
    >>> entries[0]
    RoutingEntry(paths=('/a/b/c',), targets=1)
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pathcast.boundary import native
from pathcast.model import RoutingEntry
from pathcast.query import compile_query, normalise


def random_routing_entries(
    random: Random, queries: Sequence[str], count: int, *, targets: int
) -> list[RoutingEntry]:
    """Entries over the paths of some queries.

    Args:
        random: Where the choices come from.
        queries: XPath 1.0 expressions without prefixes. Entries are their paths as they are, the
            linear paths of one (as ONYX maps a query), or any of several together.
        count: How many.
        targets: How many targets there are; most entries lead to few, some to many.
    """
    paths = [text for query in queries for text in compile_query(query).texts]
    found = []
    for _ in range(count):
        path = random.choice(paths)
        kind = random.randrange(4)
        if kind == 0:
            chosen = [each.text for each in native.Conjunction([normalise(path)]).linear().paths]
        elif kind == 1:
            chosen = random.choices(paths, k=random.randint(1, 4))
        else:
            chosen = [path]
        wanted = 1 if random.random() < 0.7 else random.randint(0, targets)
        mask = sum(1 << target for target in random.sample(range(targets), k=min(wanted, targets)))
        found.append(RoutingEntry(tuple(chosen), mask))
    return found

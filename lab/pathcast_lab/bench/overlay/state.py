"""Table bytes of one spanning tree against a broadcast tree for each root.

A network of brokers is a ring with as many chords at random. With one spanning tree, a broker has a
table for each of its neighbours in it: what stands behind. With a tree for each root (shortest
paths), it has one for each root and each child in the root's tree. Profiles are distinct entries
of one pool, with Zipf's frequencies, so that brokers share many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from random import Random

from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.overlay.topology import behind, below, breadth_first

POOL = 20_000
"""Distinct entries that profiles are drawn from."""

BYTES = 80
"""Bytes of an entry in a table; that of realistic ones."""


def run_state(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Every size of network."""
    weights = list(accumulate(1 / rank for rank in range(1, POOL + 1)))
    for brokers in chosen.brokers:
        say(f"{brokers} brokers")
        random = Random(seed)
        neighbours = network(random, brokers)
        own = []
        for _ in range(brokers):
            drawn = random.choices(range(POOL), cum_weights=weights, k=chosen.profiles)
            own.append(sum(1 << each for each in set(drawn)))
        roots = {
            "one tree": spanning_tree_bytes(neighbours, own),
            "a tree a source, 3 sources": root_tables_bytes(neighbours, own, range(3)),
            "a tree a broker": root_tables_bytes(neighbours, own, range(brokers)),
        }
        for series, size in roots.items():
            place = Place(figure.name, "", series, float(brokers), chosen.profiles)
            yield [
                place.value("a broker", "KiB", size / brokers / 1024),
                place.value("of one tree", "x", size / roots["one tree"]),
            ]


def network(random: Random, brokers: int) -> list[set[int]]:
    """The neighbours of each broker."""
    found: list[set[int]] = [set() for _ in range(brokers)]
    for at in range(brokers):
        for other in ((at + 1) % brokers, random.randrange(brokers)):
            if other != at:
                found[at].add(other)
                found[other].add(at)
    return found


def spanning_tree_bytes(neighbours: list[set[int]], own: list[int]) -> int:
    """Bytes of all tables if each broker has one for each neighbour in one spanning tree."""
    order, parent = breadth_first(neighbours, 0)
    downwards, upwards = behind(order, parent, own)
    return BYTES * sum(downwards[at].bit_count() + upwards[at].bit_count() for at in order[1:])


def root_tables_bytes(neighbours: list[set[int]], own: list[int], roots: range) -> int:
    """Bytes of all tables if each broker has one for each root and child in the root's tree."""
    total = 0
    for root in roots:
        order, parent = breadth_first(neighbours, root)
        found = below(order, parent, own)
        total += sum(found[at].bit_count() for at in order[1:])
    return total * BYTES

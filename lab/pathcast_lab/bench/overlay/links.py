"""Bytes on the links of a thousand brokers: flooding, one group, exact tables.

All three use the links of one spanning tree, and count a message once for each link it goes over.

- *Flooding*: over every link.
- *One group*: one multicast group for the stream, whose members are the brokers with a profile that
  any message of the stream satisfies. A message goes over the links of the smallest tree that
  joins its root and the members.
- *Exact tables*, of unlimited size: over a link if an entry that stands behind it holds. That is
  the smallest tree that joins its root and the brokers with such an entry, for each message anew.

What goes from a host to its users is not counted: it is the same for all three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np

from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet, Where
from pathcast_lab.bench.overlay.inputs import messages_of
from pathcast_lab.bench.overlay.population import Classes, Population, Stream, partition_hosts
from pathcast_lab.bench.overlay.topology import (
    Shape,
    Tree,
    behind,
    check_reached,
    crossings,
    tree_of,
    weight,
)

HOSTS = "brokers with a match"
GROUP = "one group"
EXACT = "exact tables"
TABLES = "tables of a broker"
FULLEST = "fullest broker"

MIB = 1 << 20


def run_links(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Every workload, shape of tree, number of profiles and way to choose hosts.

    Raises:
        WrongCountError: A message does not come to a broker that wants it.
        ConfigError: The DTD of NITF is not at hand.
    """
    brokers = chosen.brokers[0]
    for workload in figure.workloads:
        classes = Classes.of(workload, chosen.profiles, seed)
        messages = messages_of(workload, chosen.messages + chosen.sample, seed)
        learnt, counted = messages[: chosen.sample], messages[chosen.sample :]
        for shape, fan_out in figure.trees:
            tree = tree_of(shape, brokers, fan_out, Random(f"tree/{seed}"))
            stream = Stream.of(counted, brokers, np.random.default_rng(seed))
            own = partition_hosts(classes, tree, learnt)
            say(f"{workload}, {shape} tree: {len(classes.texts):,} distinct profiles")
            for count in chosen.populations:
                population = Population(classes, count, tree, np.random.default_rng(seed + count))
                for where in figure.hosts:
                    variant = f"{workload}, {_tree_text(shape, fan_out)}"
                    place = Place(figure.name, variant, where, float(count), count)
                    yield list(_point(place, classes, population, where, own, tree, stream))


def _tree_text(shape: Shape, fan_out: int) -> str:
    return f"{shape} tree, fan-out {fan_out}"


def _point(
    place: Place,
    classes: Classes,
    population: Population,
    where: Where,
    own: np.ndarray,
    tree: Tree,
    stream: Stream,
) -> Iterator[Value]:
    has, hosted = population.hosted(where, own)
    entries = classes.entry_sets(has)
    wanted = stream.wanted(classes.entries, entries)
    everything = (1 << len(stream.sizes)) - 1
    group = [everything if wants else 0 for wants in wanted]
    reached = sum(wants.bit_count() for wants in wanted)
    yield place.value(HOSTS, "%", 100 * reached / len(tree) / len(stream.sizes))
    yield place.value(GROUP, "%", _share(tree, stream, crossings(tree, group, stream.rooted)))
    crossed = crossings(tree, wanted, stream.rooted)
    check_reached(str(place), tree, wanted, stream.rooted, crossed)
    yield place.value(EXACT, "%", _share(tree, stream, crossed))
    size = table_bytes(tree, entries, classes.entry_bytes)
    yield place.value(TABLES, "MiB", size / len(tree) / MIB)
    yield place.value(FULLEST, "x", float(hosted.max() / hosted.mean()))


def _share(tree: Tree, stream: Stream, crossed: Sequence[int]) -> float:
    """Bytes on links in per cent of what flooding puts on them."""
    return 100 * weight(crossed, stream.sizes) / flooded_bytes(tree, stream)


def flooded_bytes(tree: Tree, stream: Stream) -> float:
    """Bytes on all links if every message goes over each."""
    return float(stream.sizes.sum()) * len(tree.links)


def table_bytes(tree: Tree, own: Sequence[int], entry_bytes: np.ndarray) -> float:
    """Bytes of the tables of all brokers, one for each neighbour.

    Args:
        tree: The brokers.
        own: For each broker the set of its entries.
        entry_bytes: Of each entry.
    """
    downwards, upwards = behind(range(len(tree)), tree.parent, own)
    return weight(downwards[1:], entry_bytes) + weight(upwards[1:], entry_bytes)

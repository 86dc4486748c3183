"""Figure 9 with brokers: how much of a network a message reaches, by where profiles are hosted.

The queries and messages are those of Figure 9 (`bench.placement.pattern_queries`), each partition
is a host broker, and brokers are in a tree. Hosts are chosen by `overlay.host_choice`: the nearest
to the user, who lives anywhere; by content, of all brokers; or by content among those of the user's
region, where partitions are as many as in the whole network. Links have exact tables.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.4, Figure 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

import numpy as np
import pyarrow as pa

from pathcast.overlay.host_choice import ByContent, Nearest
from pathcast.partition import PepPlacement, candidate_patterns
from pathcast.registry import Registry
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.overlay.population import chosen_hosts
from pathcast_lab.bench.overlay.topology import (
    Tree,
    check_reached,
    crossings,
    set_of,
    tree_of,
    weight,
)
from pathcast_lab.bench.placement.definition import PatternParameters
from pathcast_lab.bench.placement.pattern_queries import pattern_message, pattern_queries
from pathcast_lab.bench.timing import Spread

NEAREST = "nearest"
CONTENT = "by content"
IN_REGION = "by content in the region"

HOSTS = "host brokers"
REACHED = "brokers reached"
LINKS = "links"


def run_host_brokers(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Every number of repeated elements.

    Raises:
        WrongCountError: A message does not come to a broker that hosts a query it satisfies.
    """
    [brokers] = chosen.brokers
    [(shape, fan_out)] = figure.trees
    tree = tree_of(shape, brokers, fan_out, Random(f"tree/{seed}"))
    parameters = PatternParameters(queries=chosen.profiles, partitions=brokers)
    queries = pattern_queries(parameters, Random(f"queries/{seed}"))
    say(f"{len(queries):,} queries on {brokers} brokers")
    index = Registry()
    index.add(queries)
    snapshot = index.freeze()
    population = snapshot.population()
    placement = PepPlacement.of(
        population,
        brokers,
        patterns=candidate_patterns(population),
        seed=seed,
    )
    placed = placement.place(population).astype(np.int64)
    # Queries have the numbers of the snapshot from here on.
    own = [snapshot.query(name) for name in snapshot.query_ids]
    homes = np.random.default_rng(seed).integers(0, brokers, len(own))
    regions = np.array(tree.regions)[homes]
    hosts = {
        NEAREST: chosen_hosts(Nearest(), tree, own, homes, homes),
        CONTENT: chosen_hosts(ByContent(placement), tree, own, homes, placed),
        IN_REGION: chosen_hosts(
            ByContent(placement, 1), tree, own, homes, placed * (regions.max() + 1) + regions
        ),
    }
    for repeats in chosen.repeats:
        draw = Random(f"messages/{seed}/{repeats}")
        messages = [
            pattern_message(parameters, draw, repeats=repeats, is_each=True)
            for _ in range(chosen.messages)
        ]
        matches = snapshot.match(pa.array(messages)).matches
        found = [each.values.to_numpy() for each in matches]
        yield list(_point(figure, tree, hosts, repeats, messages, found, draw))


def _point(
    figure: OverlayFigure,
    tree: Tree,
    hosts: Mapping[str, np.ndarray],
    repeats: int,
    messages: Sequence[bytes],
    found: Sequence[np.ndarray],
    draw: Random,
) -> Iterator[Value]:
    sizes = np.array(list(map(len, messages)), dtype=float)
    roots = np.array([draw.randrange(len(tree)) for _ in messages])
    rooted = [set_of(roots == at) for at in range(len(tree))]
    for series, host_of in hosts.items():
        wants = np.zeros((len(tree), len(messages)), dtype=bool)
        for at, matched in enumerate(found):
            wants[host_of[matched], at] = True
        wanted = [set_of(row) for row in wants]
        crossed = crossings(tree, wanted, rooted)
        check_reached(series, tree, wanted, rooted, crossed)
        # A tree that joins so many links joins one broker more.
        count = len(messages)
        links = sum(each.bit_count() for each in crossed) / count
        sent = weight(crossed, sizes)
        place = Place(figure.name, "", series, float(repeats), len(host_of))
        shares = 100 * wants.mean(axis=0)
        yield place.value(
            HOSTS, "%", Spread(float(shares.mean()), float(shares.min()), float(shares.max()))
        )
        yield place.value(REACHED, "%", 100 * (1 + links) / len(tree))
        yield place.value(LINKS, "%", 100 * links / len(tree.links))
        yield place.value("on links", "KiB", sent / count / 1024)

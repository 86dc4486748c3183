"""What a change of one profile costs on its way through a network, and when it is in force.

A change goes over a link if it is news for those behind it. An entry that nobody has yet goes over
all links; one that others have goes from its host towards them, and ends where the way meets the
smallest tree that joins them: from there on, everybody has been told. `told_links` and
`in_force_after` are that arithmetic. What it says of how far changes go is compared with
`Interests`, which do it, and what it says of times with brokers in the simulated network, before
either is used where there are too many brokers for them.

A subscription is in force when all brokers that were told have settled, each after those behind it:
the way to the farthest of them, there and back. Nothing else was under way meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np

from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.content import LOCAL, DeliveryProfile, Delta
from pathcast.overlay.deliveries import InForce
from pathcast.overlay.interest import Interests
from pathcast.overlay.table import Table
from pathcast.protocol import Deliver, Effect, Node
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.overlay.population import Classes, Population
from pathcast_lab.bench.overlay.topology import Tree, set_of, tree_of
from pathcast_lab.bench.timing import Spread, undisturbed
from pathcast_lab.bench.wrong_count import WrongCountError
from pathcast_lab.sim import Network
from pathcast_lab.sim.toy_content import TOY

NEW = "an entry nobody has"
KNOWN = "as profiles come"
SIMULATED_MAX = 50
"""Brokers that are simulated, at most; times of larger networks are arithmetic."""

SETTLING_SECONDS = 12.0
"""Of the simulated world, until all brokers know each other."""

APART_SECONDS = 3.0
"""Between two subscriptions, so that each is in force before the next."""


def told_links(tree: Tree, host: int, others: int) -> list[tuple[int, int]]:
    """The links that a change goes over, each away from its host.

    Args:
        tree: The brokers.
        host: Where a profile is new.
        others: The set of brokers that have the entry already.
    """
    found: list[tuple[int, int]] = []
    waiting = [(host, -1)]
    for at, before in waiting:
        for other in tree.neighbours[at]:
            # News for those behind, unless somebody on this side has told them already.
            if other != before and not others & ~tree.side(at, other):
                found.append((at, other))
                waiting.append((other, at))
    return found


def in_force_after(tree: Tree, host: int, others: int) -> float:
    """Seconds from a subscription until it is in force; arguments as of `told_links`."""
    seconds = tree.delays_from(host)
    return 2 * max((seconds[to] for _, to in told_links(tree, host, others)), default=0.0)


class InterestNetwork:
    """What brokers of a tree tell each other, without links, losses or time.

    Args:
        tree: The brokers.
        covering: Whether entries that others cover are not told.

    Attributes:
        told: Deltas that went over links.
        seconds: That all `Interests` together took.
    """

    def __init__(self, tree: Tree, *, covering: bool = False) -> None:
        self.told = 0
        self.seconds = 0.0
        self._brokers = [Interests(covering=covering) for _ in range(len(tree))]
        for at, broker in enumerate(self._brokers):
            broker.set_neighbours(map(str, tree.neighbours[at]))

    def change(self, host: int, added: Sequence[str], removed: Sequence[str]) -> None:
        """Profiles of a host come and go, and everybody is told who has to be."""
        waiting = [(host, LOCAL, Delta(tuple(added), tuple(removed)))]
        for at, origin, delta in waiting:
            started = time.process_time()
            changes = self._brokers[at].update(origin, delta.added, delta.removed)
            self.seconds += time.process_time() - started
            self.told += len(changes)
            waiting += [(int(name), str(at), change) for name, change in changes.items()]

    def told_to(self, broker: int, neighbour: int) -> frozenset[str]:
        """All that a broker has told a neighbour."""
        return self._brokers[broker].told(str(neighbour))


def run_changes(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """What changes cost: every size of network.

    Raises:
        WrongCountError: `Interests` tell more or fewer brokers than the arithmetic says.
    """
    [(shape, fan_out)] = figure.trees
    [workload] = figure.workloads
    classes = Classes.of(workload, chosen.profiles, seed)
    table_us = _table_us(classes, chosen.changes)
    for brokers in chosen.brokers:
        draw = Random(f"changes/{seed}/{brokers}")
        tree = tree_of(shape, brokers, fan_out, draw)
        network = InterestNetwork(tree)
        standing = dict.fromkeys(draw.choices(classes.entries, k=chosen.sample), 0)
        for entry in standing:
            host = draw.randrange(brokers)
            standing[entry] |= 1 << host
            network.change(host, [entry], [])
        say(f"{brokers} brokers have {len(standing):,} entries")
        new = [entry for entry in classes.entries if entry not in standing][: chosen.changes]
        known = draw.choices(list(standing), k=len(new))
        interest_us = 0.0
        for series, entries in ((NEW, new), (KNOWN, known)):
            hosts = [draw.randrange(brokers) for _ in entries]
            network.told, network.seconds = 0, 0.0
            with undisturbed():
                for host, entry in zip(hosts, entries, strict=True):
                    network.change(host, [entry], [])
            told = _told(tree, hosts, entries, standing)
            place = Place(
                figure.name, "one profile an entry", series, float(brokers), chosen.sample
            )
            if network.told != sum(told):
                raise WrongCountError(
                    case=str(place),
                    found=network.told,
                    expected=sum(told),
                    oracle="arithmetic",
                )
            interest_us = 1e6 * network.seconds / (len(entries) + network.told)
            yield _cost(place, told, interest_us, table_us)
        for count in chosen.populations:
            told = _told_of_population(classes, count, tree, chosen.changes, draw)
            place = Place(figure.name, f"{count:,} profiles", KNOWN, float(brokers), count)
            yield _cost(place, told, interest_us, table_us)


def _cost(place: Place, told: Sequence[int], interest_us: float, table_us: float) -> list[Value]:
    """What changes cost a network whose brokers share the work evenly."""
    links = _mean(told)
    work_us = (1 + links.median) * interest_us + links.median * table_us
    return [
        place.value("links told", "", links),
        place.value("Interests", "us", interest_us),
        place.value("Table", "us", table_us),
        place.value("changes a second", "", 1e6 * place.x / work_us),
    ]


def _told(
    tree: Tree, hosts: Sequence[int], entries: Sequence[str], standing: dict[str, int]
) -> list[int]:
    """Links that each change goes over, one after another; takes note of the hosts."""
    found = []
    for host, entry in zip(hosts, entries, strict=True):
        found.append(len(told_links(tree, host, standing.get(entry, 0))))
        standing[entry] = standing.get(entry, 0) | 1 << host
    return found


def _told_of_population(
    classes: Classes, count: int, tree: Tree, changes: int, draw: Random
) -> list[int]:
    """Links that one more profile goes over, drawn as the others were."""
    random = np.random.default_rng(draw.randrange(1 << 30))
    has, _ = Population(classes, count, tree, random).hosted("random", np.array([]))
    profiles = random.choice(len(classes.texts), changes, p=classes.frequency)
    return [
        len(told_links(tree, draw.randrange(len(tree)), set_of(has[:, profile])))
        for profile in profiles
    ]


def _table_us(classes: Classes, changes: int) -> float:
    """Microseconds that a broker's table takes for an entry that is new, alone."""
    table = Table()
    new, old = classes.entries[:changes], classes.entries[changes:]
    table.set("east", old, [])
    table.route([b"<quote/>"])
    with undisturbed():
        started = time.process_time()
        for entry in new:
            table.set("west", [entry], [])
        return 1e6 * (time.process_time() - started) / len(new)


def run_in_force(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Times until in force: every shape and size of network.

    Raises:
        WrongCountError: Simulated brokers take another time than the arithmetic says.
    """
    for shape, fan_out in figure.trees:
        for brokers in chosen.brokers:
            draw = Random(f"in force/{seed}/{shape}/{brokers}")
            tree = tree_of(shape, brokers, fan_out, draw)
            hosts = draw.sample(range(brokers), min(brokers, chosen.changes))
            times = [in_force_after(tree, host, 0) for host in hosts]
            series = "arithmetic"
            if brokers <= SIMULATED_MAX:
                say(f"{shape} tree of {brokers} brokers, simulated")
                series = "simulated"
                found = simulated_times(tree, [(host, f"a{n}") for n, host in enumerate(hosts)])
                if not np.allclose(found, times, atol=1e-6):
                    raise WrongCountError(
                        case=f"{shape} tree of {brokers} brokers: milliseconds until in force",
                        found=round(1000 * max(found)),
                        expected=round(1000 * max(times)),
                        oracle="arithmetic",
                    )
            low, middle, high = np.percentile(times, [0, 50, 99]) * 1000
            place = Place(figure.name, f"{shape} tree", series, float(brokers), brokers)
            yield [
                place.value("least", "ms", float(low)),
                place.value("median", "ms", float(middle)),
                place.value("p99", "ms", float(high)),
                place.value("most", "ms", 1000 * max(times)),
            ]


def simulated_times(tree: Tree, asked: Sequence[tuple[int, str]]) -> list[float]:
    """Seconds from each subscription until its broker says that it is in force.

    Args:
        tree: The brokers, which are those of the product, in a network without faults.
        asked: Host and profile of each, in the language of `sim.toy_content`; one after another.
    """
    names = [f"b{at:04d}" for at in range(len(tree))]
    delays = {(names[min(link)], names[max(link)]): tree.seconds[link[0]] for link in tree.links}
    arrived: list[float] = []

    def on_deliver(_: str, given: Deliver) -> None:
        assert isinstance(given.what, InForce)
        arrived.append(network.now)

    network = Network(0, links=delays, delays=delays, on_deliver=on_deliver)
    for at, name in enumerate(names):
        links = {names[other]: 1 for other in tree.neighbours[at]}

        def factory(
            disk: object, incarnation: int, name: str = name, links: dict[str, int] = links
        ) -> Node:
            return BrokerNode(name, links, TOY, {}, incarnation, members=names)

        network.add(name, factory)
    network.run(SETTLING_SECONDS)
    started = []
    for number, (host, profile) in enumerate(asked):
        started.append(network.now)

        def subscribe(
            node: Node, now: float, name: str = f"s{number}", profile: str = profile
        ) -> Sequence[Effect]:
            assert isinstance(node, BrokerNode)
            return node.asked(now, node.broker.subscribe, name, "ann", DeliveryProfile(profile))

        network.call(names[host], subscribe)
        network.run(network.now + APART_SECONDS)
    return [end - start for start, end in zip(started, arrived, strict=True)]


def _mean(values: Sequence[float]) -> Spread:
    return Spread(float(np.mean(values)), float(min(values)), float(max(values)))

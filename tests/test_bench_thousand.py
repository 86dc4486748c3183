"""What figures of a thousand brokers reckon is what brokers, tables and the simulator do.

If these fail, the figures speak of another network than the product's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import numpy as np
import pytest

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from oracles import missing_reason

if missing_reason("kernel") is not None:
    pytest.skip(str(missing_reason("kernel")), allow_module_level=True)

from pathcast.model import Query
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.generalisation import at_level
from pathcast.overlay.host_choice import ByContent, HostChoice, Nearest
from pathcast.overlay.table import Table
from pathcast.partition import PepPlacement, candidate_patterns
from pathcast.query import conjunction_of
from pathcast.registry import Registry
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.byte_budgets import table_bytes as entries_bytes
from pathcast_lab.bench.overlay.capacity import (
    Costs,
    Load,
    brokers_needed,
    reached_at_random,
    reached_one,
)
from pathcast_lab.bench.overlay.changes import (
    InterestNetwork,
    in_force_after,
    simulated_times,
    told_links,
)
from pathcast_lab.bench.overlay.common_paths import common_entry
from pathcast_lab.bench.overlay.inputs import messages_of
from pathcast_lab.bench.overlay.links import table_bytes
from pathcast_lab.bench.overlay.pareto import NetworkTables
from pathcast_lab.bench.overlay.population import Classes, Population, Stream, chosen_hosts
from pathcast_lab.bench.overlay.quotes import (
    quote_entries,
    quote_messages,
    quote_profiles,
    symbol_of,
)
from pathcast_lab.bench.overlay.topology import (
    Shape,
    Tree,
    check_reached,
    crossings,
    members,
    set_of,
    tree_of,
)
from pathcast_lab.bench.placement.definition import PatternParameters
from pathcast_lab.bench.placement.pattern_queries import pattern_queries
from pathcast_lab.bench.wrong_count import WrongCountError

SHAPES: tuple[Shape, ...] = ("random", "preferential", "regions")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", SHAPES)
def test_trees_have_room_and_connected_regions(shape: Shape, seed: int) -> None:
    tree = tree_of(shape, 200, 4, Random(seed))
    children = np.bincount(tree.parent[1:], minlength=200)
    assert children.max() <= (8 if shape == "regions" else 4)
    assert len(set(tree.regions)) == 16
    for at, above in tree.links:
        # A region is entered once: by the broker that it is named after.
        assert tree.regions[at] == tree.regions[above] or at == tree.regions[at] < 16
    assert min(tree.seconds[1:]) >= 0.001


@pytest.mark.parametrize("seed", range(20))
def test_messages_go_over_the_ways_to_those_who_want_them(seed: int) -> None:
    random = Random(seed)
    tree = tree_of(random.choice(SHAPES), 14, 3, random)
    wanted = [random.getrandbits(40) & random.getrandbits(40) for _ in range(len(tree))]
    roots = [random.randrange(len(tree)) for _ in range(40)]
    rooted = [sum(1 << m for m, root in enumerate(roots) if root == at) for at in range(14)]
    crossed = crossings(tree, wanted, rooted)
    for message, root in enumerate(roots):
        expected = set()
        for at in range(len(tree)):
            if wanted[at] >> message & 1:
                mine, its = way_up(tree, at), way_up(tree, root)
                expected |= mine ^ its
        assert expected == {n + 1 for n, rows in enumerate(crossed) if rows >> message & 1}
    check_reached("as it is", tree, wanted, rooted, crossed)
    assert members(set_of(members(wanted[3], 40)), 40).tolist() == members(wanted[3], 40).tolist()


def way_up(tree: Tree, at: int) -> set[int]:
    """The links from a broker to broker 0, by their lower ends."""
    found = set()
    while at:
        found.add(at)
        at = tree.parent[at]
    return found


def test_a_message_that_ends_early_or_goes_too_far_is_noticed() -> None:
    line = Tree((-1, 0, 1), (0.0, 0.001, 0.001), (0, 0, 0))
    every = (1 << 20) - 1
    check_reached("right", line, [0, every, 0], [every, 0, 0], [every, 0])
    with pytest.raises(WrongCountError, match="brokers reached"):
        check_reached("early", line, [0, every, 0], [every, 0, 0], [0, 0])
    with pytest.raises(WrongCountError, match="links to one more"):
        check_reached("far", line, [0, every, 0], [every, 0, 0], [every, every])


@pytest.mark.parametrize("workload", ["payments", "quotes"])
def test_links_and_tables_are_those_of_interests_and_tables(workload: str) -> None:
    tree = tree_of("regions", 9, 3, Random(2))
    classes = Classes.of(workload, 60, 4)
    has, hosted = Population(classes, 40, tree, np.random.default_rng(1)).hosted(
        "location", np.array([])
    )
    assert hosted.sum() == 40
    own = classes.entry_sets(has)
    messages = messages_of(workload, 30, 4)
    if workload == "quotes":  # so that some are wanted
        symbols = [text.split("'")[1].encode() for text in classes.texts]
        messages = [
            b'<quote symbol="%s" move="99"%s' % (symbol, body[body.index(b">") :])
            for symbol, body in zip(symbols, messages, strict=False)
        ]
    stream = Stream.of(messages, len(tree), np.random.default_rng(3))
    wanted = stream.wanted(classes.entries, own)
    crossed = crossings(tree, wanted, stream.rooted)
    assert any(crossed)
    network = InterestNetwork(tree)
    for at in range(len(tree)):
        network.change(at, names_of(classes, own[at]), [])
    tables = []
    for at in range(len(tree)):
        table = Table()
        for other in tree.neighbours[at]:
            table.set(str(other), network.told_to(other, at), [])
        tables.append(table)
    told = [
        entries_bytes(network.told_to(at, other))
        for at in range(len(tree))
        for other in tree.neighbours[at]
    ]
    assert table_bytes(tree, own, classes.entry_bytes) == sum(told)
    for number, message in enumerate(messages):
        [root] = [at for at, rows in enumerate(stream.rooted) if rows >> number & 1]
        came, waiting = set(), [(root, -1)]
        for at, before in waiting:
            for name in tables[at].route([message])[0]:
                if int(name) != before:
                    came.add(max(at, int(name)))
                    waiting.append((int(name), at))
        assert came == {n + 1 for n, rows in enumerate(crossed) if rows >> number & 1}


def names_of(classes: Classes, entries: int) -> list[str]:
    return [classes.entries[at] for at in np.flatnonzero(members(entries, len(classes.entries)))]


def test_tables_within_a_budget_are_those_of_interests() -> None:
    tree = tree_of("random", 7, 3, Random(3))
    classes = Classes.of("payments", 40, 6)
    draw = np.random.default_rng(1)
    has, _ = Population(classes, 30, tree, draw).hosted("random", np.array([]))
    own = classes.entry_sets(has)
    stream = Stream.of(messages_of("payments", 20, 6), len(tree), draw)
    tables = NetworkTables(classes, tree, stream, own)
    place = Place("f", "", "", 0.0, 0)

    def told(made: Callable[[str], str] = lambda entry: entry, *, covering: bool = False) -> float:
        network = InterestNetwork(tree, covering=covering)
        for at in range(len(tree)):
            network.change(at, [made(each) for each in names_of(classes, own[at])], [])
        links = [(at, other) for at in range(len(tree)) for other in tree.neighbours[at]]
        return sum(entries_bytes(network.told_to(*link)) for link in links) / len(tree)

    def bytes_of(values: list[Value]) -> float:
        [size] = [value.spread.median for value in values if value.measure == "a broker"]
        return size * (1 << 20)

    widened = partial(at_level, level="existence")
    assert bytes_of(tables.exact(place)) == pytest.approx(told())
    assert bytes_of(tables.uncovered(place)) == pytest.approx(told(covering=True))
    assert bytes_of(tables.generalised(place, widened)) == pytest.approx(told(widened))
    network = InterestNetwork(tree)
    for at in range(len(tree)):
        network.change(at, names_of(classes, own[at]), [])
    common = [
        entries_bytes([common_entry(map(conjunction_of, behind)).text])
        for at in range(len(tree))
        for other in tree.neighbours[at]
        if (behind := network.told_to(at, other))
    ]
    assert bytes_of(tables.common(place)) == pytest.approx(sum(common) / len(tree))


@pytest.mark.parametrize("seed", range(20))
def test_a_change_goes_to_those_who_do_not_know(seed: int) -> None:
    random = Random(seed)
    tree = tree_of(random.choice(SHAPES), 12, 3, random)
    network, others = InterestNetwork(tree), 0
    for _ in range(6):
        host = random.randrange(len(tree))
        expected = told_links(tree, host, others)
        before = known(tree, network)
        network.told = 0
        network.change(host, ["/a"], [])
        others |= 1 << host
        assert network.told == len(expected)
        assert known(tree, network) - before == set(expected)


def known(tree: Tree, network: InterestNetwork) -> set[tuple[int, int]]:
    return {
        (at, other)
        for at in range(len(tree))
        for other in tree.neighbours[at]
        if network.told_to(at, other)
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_a_subscription_is_in_force_when_the_simulated_brokers_say_so(shape: Shape) -> None:
    random = Random(shape)
    tree = tree_of(shape, 9, 3, random)
    asked, expected, others = [], [], {"a1": 0, "a2": 0}
    for _ in range(8):
        host, entry = random.randrange(9), random.choice(["a1", "a2"])
        asked.append((host, entry))
        expected.append(in_force_after(tree, host, others[entry]))
        others[entry] |= 1 << host
    assert simulated_times(tree, asked) == pytest.approx(expected, abs=1e-6)
    assert 0.0 in expected
    assert len(set(expected)) > 2


@pytest.mark.parametrize("name", ["nearest", "content", "region"])
def test_hosts_are_those_that_each_profile_alone_is_given(name: str) -> None:
    tree = tree_of("regions", 12, 3, Random(1))
    queries = pattern_queries(PatternParameters(queries=80, values=30), Random(2))
    index = Registry()
    index.add(queries)
    population = index.population()
    by_id = {query.id: query for query in queries}
    queries = [by_id[name] for name in population.query_ids]
    patterns = candidate_patterns(population)
    placement = PepPlacement.of(population, 12, patterns=patterns, seed=3)
    placed = placement.place(population).astype(np.int64)
    assert placement.dont_care not in placed
    homes = np.random.default_rng(4).integers(0, 12, 80)
    regions = np.array(tree.regions)[homes]
    choices: dict[str, tuple[HostChoice, np.ndarray]] = {
        "nearest": (Nearest(), homes),
        "content": (ByContent(placement), placed),
        "region": (ByContent(placement, 1), placed * 16 + regions),
    }
    choice, alike = choices[name]
    found = chosen_hosts(choice, tree, queries, homes, alike)
    assert found.tolist() == chosen_hosts(choice, tree, queries, homes, np.arange(80)).tolist()
    assert len(set(found.tolist())) > 3


def test_quotes_are_of_the_size_and_the_selectivity_that_the_paper_says() -> None:
    profiles, messages = quote_profiles(300, 7), quote_messages(300, 7)
    assert {len(message) for message in messages} == {1000}
    for profile in profiles:
        assert quote_entries(profile) == disjuncts_of(profile, deliver="ids")
    # Every profile wants one quote of its symbol in ten; a symbol is one of ten thousand.
    index = Registry()
    index.add(
        Query(f"q{n}", text.replace(symbol_of(text), "A001")) for n, text in enumerate(profiles)
    )
    aimed = [b'<quote symbol="A001"' + message[20:] for message in messages]
    found = sum(len(result.query_ids) for result in index.match(aimed))
    assert found / len(profiles) / len(messages) == pytest.approx(0.1, rel=0.2)


def test_as_many_brokers_are_needed_as_have_the_time() -> None:
    load = Load(messages_a_second=100, users=10_000, selectivity=0.001)
    costs = Costs(take=0.002, hop=0.004, delivery=0.001, engine=0.0)
    for reached in (reached_at_random(load), reached_one):
        enough = [
            count
            for count in range(1, 100)
            if 100 * (0.002 + reached(count) * 0.004 + 10 * 0.001) <= count
        ]
        assert brokers_needed(load, costs, reached) == enough[0]
    assert reached_at_random(load)(10_000) == pytest.approx(10)
    assert reached_at_random(load)(1) == pytest.approx(1, abs=1e-4)

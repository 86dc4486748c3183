"""Queries in partitions: nothing is lost, nothing is found twice, and messages go to few of them.

If these fail, a query is in a partition that a message which satisfies it does not go to, or a
rebalance loses or doubles a match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from every_engine import engines
from generators import (
    random_expression,
    random_family,
    random_message,
    random_query,
    random_valued_message,
)
from generators.content import NUMBERS, STRINGS, VALUES
from oracles.engines import EngineName, made_by, population_of
from partitioned_index import PartitionedIndex
from pathcast import Query, Registry
from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.partition import (
    ExclusivenessPattern,
    PepPlacement,
    Touched,
    candidate_patterns,
    exclusiveness_patterns,
    patterns_by_rates,
    patterns_by_schema,
    value_key,
)
from pathcast.partition.pattern_values import PatternValues
from pathcast.query import End, Population, normalise
from pathcast.query import population_of as query_population
from pathcast.query.syntax import BinaryOperator
from pathcast.query.values import compare, number_of
from pathcast.schema import PathOccurrences, parse_dtd
from pathcast.workload import (
    DOMAINS,
    SubscriptionParameters,
    generate_documents,
    generate_subscriptions,
)
from pathcast_lab.bench.placement.cost import CostPlacement, measured_costs
from pathcast_lab.bench.placement.hashed import HashPlacement
from pathcast_lab.bench.placement.placing import Placement
from pathcast_lab.bench.placement.prefix import PrefixPlacement

MakePlacement = Callable[[Population, EngineName], Placement]

PLACEMENTS: dict[str, MakePlacement] = {
    "hash": lambda population, engine: HashPlacement(5, seed=3),
    "prefix": lambda population, engine: made_by(
        engine, PrefixPlacement.of, population, 4, steps=2
    ),
    "cost": lambda population, engine: CostPlacement.of(population, np.ones(len(population)), 3),
    "pep": lambda population, engine: made_by(
        engine, PepPlacement.of, population, 6, patterns_max=4, gain_min=0
    ),
    "rates": lambda population, engine: made_by(
        engine,
        PepPlacement.of,
        population,
        6,
        sample=[random_valued_message(Random(n)) for n in range(9)],
    ),
}


def population_of_texts(texts: Sequence[str]) -> Population:
    population = population_of(Query(f"q{n}", text) for n, text in enumerate(texts))
    assert len(population) == len(texts)
    return population


def families(random: Random, count: int) -> list[Query]:
    """Families of queries that differ in constants, and some of no family."""
    texts = [text for _ in range(count) for text in random_family(random, 8)]
    texts += [random_query(random) for _ in range(5)]
    texts += [random_expression(random) for _ in range(2)]
    return [Query(f"q{n}", text) for n, text in enumerate(texts)]


def whole_answers(
    engine: EngineName, queries: Sequence[Query], messages: list[bytes | None]
) -> list[list[str]]:
    index = made_by(engine, Registry)
    index.add(queries)
    return [list(result.query_ids) for result in index.match(messages)]


@engines
@pytest.mark.parametrize("kind", PLACEMENTS)
@pytest.mark.parametrize("seed", range(2))
def test_partitions_give_the_answers_of_one_index(engine: EngineName, kind: str, seed: int) -> None:
    random = Random(f"{kind}/{seed}")
    queries = families(random, 2)
    messages: list[bytes | None] = [random_valued_message(random) for _ in range(12)]
    messages += [random_message(random) for _ in range(3)]
    messages[7:7] = [None, b"<a", b""]
    # Half of the queries were not there when the placement was made.
    known = population_of(queries[::2])
    index = PartitionedIndex(PLACEMENTS[kind](known, engine), engine=engine, threads=1)
    rejected = index.add(queries).rejected
    whole = whole_answers(engine, queries, messages)
    found = index.match(messages)
    assert found.query_ids == whole
    assert sorted(found.errors) == [8, 9]
    assert any(whole)
    assert rejected.keys() == made_by(engine, Registry).add(queries).rejected.keys()
    gone = [query.id for query in queries[::3] if query.id not in rejected]
    index.remove(gone)
    left = [query for query in queries if query.id not in gone]
    assert index.match(pa.array(messages)).query_ids == whole_answers(engine, left, messages)
    assert len(index) == len(left) - len(set(rejected) - set(gone))


def test_a_number_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(ConfigError, match="partitions"):
        HashPlacement(0)
    with pytest.raises(ConfigError, match="steps"):
        PrefixPlacement.of(population_of_texts(["/a"]), 2, steps=0)


def test_keys_of_what_may_be_equal_are_equal() -> None:
    constants: list[str | float] = [*STRINGS, *(float(number_of(number)) for number in NUMBERS)]
    equal = 0
    for constant in constants:
        for value in VALUES:
            if compare(BinaryOperator.EQ, value, constant):
                assert value_key(value) == value_key(constant)
                equal += 1
    assert equal > 20


# Exclusiveness patterns


def test_patterns_cover_greedily() -> None:
    """Patterns 1 and 2 cover 6 queries; pattern 3, the second by coverage, adds nothing to them."""
    texts = [f"/m[@a = {n}][@c = {n}]" for n in range(3)] + ["/m[@a = 9]"] * 2
    texts += ["/m[@b = 1][@c = 1]", "/m[@b = 2]", "/m[@d > 1]"]
    patterns = exclusiveness_patterns(population_of_texts(texts), gain_min=0)
    assert [(str(each.place), each.queries) for each in patterns] == [("/m/@a", 5), ("/m/@b", 2)]


def test_a_pattern_that_repeats_is_given_up_for_one_that_cannot() -> None:
    graph = parse_dtd(
        "<!ELEMENT m (h, b*)><!ELEMENT h EMPTY><!ELEMENT b EMPTY>"
        "<!ATTLIST h x CDATA #IMPLIED><!ATTLIST b x CDATA #IMPLIED>"
    )
    schema = PathOccurrences(graph, root="m")
    texts = [f"/m[b/@x = {n}][h/@x = {n}]" for n in range(8)] + ["/m[h/@x = 8][h]"]
    texts += ["/m[b/@x = 9]"]
    population = population_of_texts(texts)
    # One query has nothing but the repeated one: coverage is not given up.
    patterns = patterns_by_schema(population, [schema], gain_min=0)
    assert [str(each.place) for each in patterns] == ["/m/h/@x", "/m/b/@x"]
    without = patterns_by_schema(population_of_texts(texts[:-2] + texts[:3]), [schema])
    assert [str(each.place) for each in without] == ["/m/h/@x"]
    unaware = exclusiveness_patterns(population_of_texts([*texts[:-2], *texts[-1:]]))
    assert [str(each.place) for each in unaware] == ["/m/b/@x"]


def test_patterns_are_chosen_by_what_messages_have() -> None:
    """Of two patterns of all queries the one that repeats is not needed, and a third is dear."""
    texts = [f"/m[@a = {n}][b/@x = {n}]" for n in range(50)] + ["/m/c[@y = 1]"]
    population = population_of_texts(texts)
    sample = ["<m a='1'>" + "".join(f"<b x='{n}'/><c y='{n}'/>" for n in range(9)) + "</m>"] * 3
    placement = made_by("reference", PepPlacement.of, population, 10, sample=sample)
    [pattern] = placement.patterns
    assert (str(pattern.place), pattern.queries, pattern.rate) == ("/m/@a", 50, 1.0)
    assert placement.place(population).tolist().count(10) == 1
    assert len(placement.touched(sample[:1]).partitions[0]) == 2
    places = {str(each.place): each.place for each in candidate_patterns(population)}
    rates = {places["/m/b/@x"]: 0.5, places["/m/@a"]: 0.25}
    chosen = patterns_by_rates(population, rates, 10)
    assert [str(each.place) for each in chosen] == ["/m/@a"]
    # Both were taken together: each query goes by the one with fewer values.
    both = [
        ExclusivenessPattern(places[name], 50, rate)
        for name, rate in (("/m/b/@x", 3.0), ("/m/@a", 1.0))
    ]
    placed, by_one = (
        PepPlacement.of(population, 10, patterns=patterns).place(population).tolist()
        for patterns in (both, both[1:])
    )
    assert placed == by_one
    assert len(set(placed)) > 1
    assert patterns_by_rates(population_of_texts(["/a"]), {}, 3) == []


@pytest.mark.parametrize("name", ["payments", "alerts"])
def test_rates_make_realistic_messages_visit_fewer_queries(name: str) -> None:
    domain = DOMAINS[name]
    rows = generate_subscriptions(SubscriptionParameters(queries=3000, domains=(name,)))
    index = Registry()
    index.add(Query(row.query_id, row.query) for row in rows)
    population = index.population()
    documents = list(generate_documents(domain.graph(), domain.documents(90, 1), domain.values()))
    schema = PathOccurrences(domain.graph(), root=domain.root)
    visited = []
    for placement in (
        PepPlacement.of(population, 30, patterns=patterns_by_schema(population, [schema])),
        PepPlacement.of(population, 30, sample=documents[:30]),
    ):
        sizes = np.bincount(placement.place(population), minlength=31)
        touched = placement.touched(documents[30:]).partitions
        visited.append(int(sizes[touched.values.to_numpy()].sum()) / (60 * len(population)))
    assert visited[1] < visited[0] < 1


def test_a_query_of_several_values_is_in_no_bucket() -> None:
    texts = ["/m[@a = 1 or @a = 2]", "/m[@a = 1 or @a = 1.0]", "/m[@a = 3][b or c]", "/m[@a > 3]"]
    population = population_of_texts(texts)
    placement = PepPlacement.of(population, 4, gain_min=0)
    placed = dict(zip(population.query_ids, placement.place(population).tolist(), strict=True))
    assert [placed[f"q{n}"] == placement.dont_care for n in range(4)] == [True, False, False, True]


def test_filtering_power_is_patterns_by_partitions() -> None:
    """M/K of the paper, 10 patterns and 100 partitions: about a tenth."""
    random = Random(5)
    texts = [
        "/m"
        + "".join(f"[p{at}/@v = {random.randrange(1000)}]" for at in random.sample(range(10), 2))
        for _ in range(20_000)
    ]
    population = population_of_texts(texts)
    # Nine of ten patterns cover queries that have two of them each.
    assert len(exclusiveness_patterns(population)) == 9
    patterns = candidate_patterns(population)
    assert len(patterns) == 10
    placement = PepPlacement.of(population, 100, patterns=patterns)
    assert placement.power == 0.1
    messages = [
        "<m>" + "".join(f'<p{n} v="{random.randrange(1000)}"/>' for n in range(10)) + "</m>"
        for _ in range(200)
    ]
    touched = placement.touched(messages).partitions.to_pylist()
    shares = [len([at for at in each if at != placement.dont_care]) / 100 for each in touched]
    assert 0.09 < sum(shares) / len(shares) <= 0.1
    sizes = np.bincount(placement.place(population), minlength=101)
    assert sizes[100] == 0
    assert sizes[:100].max() < 1.3 * sizes[:100].mean()


def test_the_place_of_a_query_depends_on_nothing_but_itself() -> None:
    random = Random(1)
    texts = [f"/m[@a = {random.randrange(50)}][@b = {random.randrange(50)}]" for _ in range(400)]
    population = population_of_texts(texts)
    placement = PepPlacement.of(population, 7, gain_min=0, seed=11)
    both = population_of_texts([*texts, "/m[@a = 1][@c = 7]"])
    assert all(len(set(borders)) > 1 for borders in placement.borders), "a pattern is not used"
    placed = dict(zip(population.query_ids, placement.place(population).tolist(), strict=True))
    again = dict(zip(both.query_ids, placement.place(both).tolist(), strict=True))
    assert all(again[name] == where for name, where in placed.items())


@engines
def test_a_message_whose_values_cannot_be_had_goes_everywhere(engine: EngineName) -> None:
    texts = [f"/m[b = {n}]" for n in range(40)]
    placement = made_by(
        engine, PepPlacement.of, population_of_texts(texts), 4, limits=Limits(result_bytes_max=64)
    )
    long = "<m>" + "".join(f"<b>{n:09}</b>" for n in range(900)) + "</m>"
    assert placement.touched([long, "<m><b>3</b></m>"]).partitions.to_pylist() == [
        [0, 1, 2, 3, 4],
        [0, 4],
    ]


def test_rows_of_a_partition() -> None:
    lists = pa.array([[0, 2], None, [], [1, 2], [2]], pa.list_(pa.uint32()))
    touched = Touched(lists)
    assert [touched.rows_of(at).tolist() for at in range(4)] == [[0], [3], [0, 3, 4], []]
    part = Touched(lists[2:])
    assert [part.rows_of(at).tolist() for at in range(4)] == [[], [1], [1, 2], []]


def test_hashes_are_even_and_seeds_differ() -> None:
    population = population_of_texts(["/a"] * 3000)
    sizes = np.bincount(HashPlacement(10).place(population), minlength=10)
    assert sizes.min() > 230
    assert sizes.max() < 370
    other = HashPlacement(10, seed=1).place(population)
    assert (other == HashPlacement(10).place(population)).mean() < 0.2


def test_measured_costs_even_out_what_is_satisfied_often() -> None:
    index = Registry()
    often = [Query(f"often{n}", "//a") for n in range(10)]
    seldom = [Query(f"seldom{n}", f"/m[@x = {n}]") for n in range(90)]
    index.add([*often, *seldom])
    snapshot = index.freeze()
    costs = measured_costs(snapshot, [b"<m x='1'><a/></m>"] * 5)
    of = dict(zip(snapshot.query_ids, costs.tolist(), strict=True))
    assert min(of[query.id] for query in often) > 3 * max(of[query.id] for query in seldom)
    placement = CostPlacement.of(snapshot.population(), costs, 5)
    placed = dict(
        zip(snapshot.query_ids, placement.place(snapshot.population()).tolist(), strict=True)
    )
    assert sorted(placed[query.id] for query in often) == sorted(list(range(5)) * 2)
    loads = np.bincount(list(placed.values()), weights=[of[name] for name in placed])
    assert loads.max() < 1.1 * loads.min()


@engines
def test_values_are_those_that_queries_compare(engine: EngineName) -> None:
    """Attributes, text and string-values, however they are written in the message."""
    texts = ("//a[@x = 1]", "//a[text() = 1]", "//a[. = 1]", "/n:r//@n:y[. = 1]")
    paths = [normalise(text, {"n": "urn:n"}) for text in texts]
    found_places = query_population(map(str, paths), [[path] for path in paths]).places
    places = [place for place in found_places if place.end is not End.ELEMENT]
    message = (
        '<r xmlns="urn:n" xmlns:n="urn:n"><a xmlns="" x="&lt;&#9;&quot;\'">'
        '1<b n:y="&gt;">2</b></a>'
        "<a xmlns='' x='a>b'>&amp;<![CDATA[<]]><!-- no -->&#13;</a>"
        "<a xmlns=''/><a xmlns='' x=''>7</a></r>"
    )
    found = made_by(engine, PatternValues, places).of([message, None, "<a>\u00e9\r\n</a>"])
    said: dict[tuple[int, int], list[object]] = {}
    for row, place, key in zip(*found.columns(), strict=True):
        _, number, text = found.keys[key]
        said.setdefault((row, place), []).append(text or number)
    assert {key: sorted(map(str, values)) for key, values in said.items()} == {
        (0, 0): ["0.0", "<\t\"'", "a>b"],
        (0, 1): sorted(["1.0", "&<", "\r", "7.0"]),
        (0, 2): sorted(["12.0", "&<\r", "0.0", "7.0"]),
        (0, 3): [">"],
        (2, 1): ["\u00e9\n"],
        (2, 2): ["\u00e9\n"],
    }

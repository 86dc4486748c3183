"""What a population asks for, as columns.

If these fail, placements are made of what no query says, or overlook what one does.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from every_engine import engines, kernel_engines
from generators import ALPHABET_WITH_NAMESPACES, random_expression, random_message, random_query
from generators.strategies import queries
from oracles.engines import EngineName, made_by
from oracles.paths import is_found
from pathcast import Query, Registry, Subscription
from pathcast.boundary import native
from pathcast.limits import Limits
from pathcast.query import (
    OPERATORS,
    Comparison,
    Operator,
    Place,
    Population,
    compile_query,
    normalise,
    path_to,
    population_of,
)
from pathcast.query.canonical import literal_text, number_text
from pathcast_papers.message import parse_message


def rows(population: Population) -> dict[str, tuple[int, list[tuple[Place, str, object]]]]:
    """Id -> number of alternatives, and what they compare and where they end, in any order."""
    found: dict[str, list[tuple[Place, str, object]]] = {name: [] for name in population.query_ids}
    for query, alternative, place in zip(*population.paths.to_pydict().values(), strict=True):
        name = population.query_ids[query]
        found[name].append((population.places[place], f"end of {alternative}", None))
    columns = population.predicates.to_pydict().values()
    for query, alternative, place, operator, constant in zip(*columns, strict=True):
        said = f"{alternative} {OPERATORS[operator].value}"
        row = (population.places[place], said, population.constants[constant])
        found[population.query_ids[query]].append(row)
    counts = population.alternatives().tolist()
    return {
        name: (count, sorted(found[name], key=repr))
        for name, count in zip(population.query_ids, counts, strict=True)
    }


def expected(texts: dict[str, str]) -> dict[str, tuple[int, list[tuple[Place, str, object]]]]:
    namespaces = ALPHABET_WITH_NAMESPACES.namespaces
    compiled = [compile_query(text, namespaces).alternatives for text in texts.values()]
    return rows(population_of(texts, compiled))


@kernel_engines
@pytest.mark.parametrize("seed", range(6))
def test_columns_are_those_of_the_normal_forms(engine: EngineName, seed: int) -> None:
    random = Random(seed)
    make = random_query if seed % 3 else random_expression
    texts = {f"q{n}": make(random, ALPHABET_WITH_NAMESPACES) for n in range(30)}
    texts |= {f"again{n}": texts[f"q{n}"] for n in range(5)}
    index = made_by(engine, Registry, namespaces=ALPHABET_WITH_NAMESPACES.namespaces)
    report = index.add(Query(name, text) for name, text in texts.items())
    accepted = {name: text for name, text in texts.items() if name not in report.rejected}
    assert len(accepted) > 15
    assert rows(index.population()) == expected(accepted)
    gone = list(accepted)[::3]
    index.remove(gone)
    assert rows(index.population()) == expected(
        {name: text for name, text in accepted.items() if name not in gone}
    )


@engines
def test_a_broker_says_the_same_of_its_subscriptions(engine: EngineName) -> None:
    registry = made_by(engine, Registry)
    texts = {
        "a": "//a[@x = 1]",
        "b": "/a[b = 'y' or c > 2]",
        "c": "for $v in //d[@e = 'f'] return <r/>",
    }
    registry.add(Subscription(name, "ann", text) for name, text in texts.items())
    population = registry.population()
    plain = population_of(
        ["a", "b"], [compile_query(texts[name]).alternatives for name in ("a", "b")]
    )
    found = rows(population)
    assert {name: found[name] for name in "ab"} == rows(plain)
    assert [str(place) for place, _, constant in found["c"][1] if constant == "f"] == ["//d/@e"]


@settings(max_examples=60, deadline=None)
@given(queries(ALPHABET_WITH_NAMESPACES))
def test_every_predicate_is_necessary(text: str) -> None:
    """Generalises a query to one of its predicates: the message that has it all has that."""
    namespaces = ALPHABET_WITH_NAMESPACES.namespaces
    query = normalise(text, namespaces)
    random = Random(text)
    trees = [
        parse_message(random_message(random, ALPHABET_WITH_NAMESPACES), Limits()) for _ in range(8)
    ]
    satisfied = [tree for tree in trees if is_found(query, tree)]
    found = population_of([text], [[query]])
    columns = (
        found.predicates.column(name).to_pylist() for name in ("place", "operator", "constant")
    )
    for at, operator, constant in zip(*columns, strict=True):
        place, compare = (
            found.places[at],
            Comparison(OPERATORS[operator], found.constants[constant]),
        )
        one = predicate_query(place, compare)
        assert all(is_found(one, tree) for tree in satisfied), (text, str(place))
        assert path_to(place, compare).covers(query)


def predicate_query(place: Place, compare: Comparison) -> native.NormalPath:
    """The query that asks for one predicate alone."""
    path, namespaces = Place(place.steps, place.end, place.attribute).to_query()
    if compare.operator.is_call:
        inside = f"{path}[{compare.operator.value}(., {literal(compare.constant)})]"
    else:
        inside = f"{path}[. {compare.operator.value} {literal(compare.constant)}]"
    return normalise(inside, namespaces)


def literal(constant: object) -> str:
    return number_text(constant) if isinstance(constant, float) else literal_text(str(constant))


def test_queries_are_counted_once_for_a_predicate() -> None:
    texts = [
        "/a[@x = 1]",
        "/a[@x = 1 or b]",
        "/a[@x = 1][c or d]",
        "/a[@x = '1']",
        "/a/b[../@x = 1]",
    ]
    population = population_of(
        map(str, range(len(texts))), [compile_query(text).alternatives for text in texts]
    )
    counted = {
        (str(population.places[row["place"]]), population.constants[row["constant"]]): row[
            "queries"
        ]
        for row in population.counts().to_pylist()
    }
    assert counted == {("/a/@x", 1.0): 4, ("/a/@x", "1"): 1}
    assert {OPERATORS[row["operator"]] for row in population.counts().to_pylist()} == {Operator.EQ}

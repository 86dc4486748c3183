"""Many queries in one index, warm and cold caches, and caches too small to be of use.

If one of these fails, answers depend on what was matched before, on the memory that is allowed, or
on how many queries share words, states and numbers with a query.
"""

from __future__ import annotations

import random

import pytest

from every_engine import engines
from generators import LINEAR, VALUES, MessageShape, QueryShape, random_message, random_query
from oracles import assert_same_matches
from oracles.engines import EngineName, made_by, running
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_papers import parse
from pathcast_papers.filtering.oracle import Oracle
from pathcast_papers.language import compile_query

CACHE_SIZES = (1, 4_000, 64_000, 2**28)


class Scale:
    """Queries of every kind, messages of every size, and what the oracle says."""

    def __init__(self) -> None:
        generator = random.Random("scale")
        texts = [random_query(generator, shape=LINEAR) for _ in range(700)]
        texts += [random_query(generator, shape=VALUES) for _ in range(400)]
        texts += [random_query(generator, shape=QueryShape(nesting_max=3)) for _ in range(400)]
        generator.shuffle(texts)
        self.queries = [Query(f"q{number:04}", text) for number, text in enumerate(texts)]
        self.texts = {query.id: query.text for query in self.queries}
        self.compiled = {query.id: compile_query(query.text) for query in self.queries}
        shapes = [
            MessageShape(depth_max=depth, children_max=children)
            for depth, children in ((1, 3), (3, 3), (5, 3), (7, 3), (4, 6), (12, 2))
        ]
        self.messages = [random_message(generator, shape=shape) for shape in shapes * 2]
        self.expected = [self.by_oracle(message) for message in self.messages]

    def by_oracle(self, message: bytes) -> list[str]:
        oracle = Oracle(parse(message, Limits()))
        return [query_id for query_id, each in self.compiled.items() if oracle.satisfies(each)]

    def check(self, engine: EngineName, found: list[list[str]]) -> None:
        for message, actual, wanted in zip(self.messages, found, self.expected, strict=True):
            assert_same_matches(actual, wanted, engine, "oracle", self.texts, message[:2000])


@pytest.fixture(scope="module")
def scale() -> Scale:
    made = Scale()
    assert sum(map(len, made.expected)) > 1_000
    return made


@engines
def test_many_queries(engine: EngineName, scale: Scale) -> None:
    index = made_by(engine, Registry)
    assert index.add(scale.queries).accepted == len(scale.queries)
    for matcher in (index, index.freeze()):
        for _ in ("cold", "warm"):
            results = matcher.match(scale.messages)
            scale.check(engine, [list(result.query_ids) for result in results])


@engines
@pytest.mark.parametrize("cache_bytes_max", CACHE_SIZES)
def test_memory_bounds_change_nothing(
    engine: EngineName, cache_bytes_max: int, scale: Scale
) -> None:
    if engine == "reference" and cache_bytes_max > 1:
        pytest.skip("the reference engine has no cache")
    index = made_by(engine, Registry)
    index.add(scale.queries)
    matcher = running(index.freeze(), cache_bytes_max=cache_bytes_max)
    for _ in range(3 if engine != "reference" else 1):
        results = matcher.match(scale.messages)
        scale.check(engine, [list(result.query_ids) for result in results])
    stats = results.stats
    if engine == "kernel" and cache_bytes_max == 1:
        assert stats.cache_resets or stats.nfa_messages, "the bound was not felt"
    if engine == "kernel" and cache_bytes_max == max(CACHE_SIZES):
        assert stats.cache_misses == stats.cache_resets == stats.nfa_messages == 0


@engines
def test_queries_that_come_and_go_among_many(engine: EngineName, scale: Scale) -> None:
    """Half of the queries are registered late, a third is removed and registered again."""
    index = made_by(engine, Registry)
    half = len(scale.queries) // 2
    index.add(scale.queries[:half])
    index.match(scale.messages[:6])
    index.add(scale.queries[half:])
    gone = scale.queries[::3]
    index.remove([query.id for query in gone])
    removed = {query.id for query in gone}
    found = [list(result.query_ids) for result in index.match(scale.messages)]
    for actual, wanted in zip(found, scale.expected, strict=True):
        assert actual == [query_id for query_id in wanted if query_id not in removed]
    index.add(gone)
    results = index.match(scale.messages)
    scale.check(engine, [list(result.query_ids) for result in results])
    index.freeze()
    results = index.match(scale.messages)
    scale.check(engine, [list(result.query_ids) for result in results])


@engines
@pytest.mark.parametrize("copies", [1, 63, 64, 65, 1000])
def test_many_copies_of_one_query(engine: EngineName, copies: int) -> None:
    """Numbers around the width of a word, all accepted by one state."""
    index = made_by(engine, Registry)
    queries = [Query(f"q{number:04}", "//b[@x=1]") for number in range(copies)]
    queries += [Query(f"r{number:04}", "//c") for number in range(copies)]
    index.add(queries)
    matcher = index.freeze()
    results = matcher.match([b"<a><b x='1'/></a>", b"<c/>", b"<a/>", b"<b x='1'><c/></b>"])
    names = [query.id for query in queries]
    assert [list(result.query_ids) for result in results] == [
        names[:copies],
        names[copies:],
        [],
        names,
    ]

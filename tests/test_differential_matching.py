"""Engines == oracle == lxml on generated queries and messages.

If one of these fails, an engine delivers a message that nobody asked for, or loses one.
Seeds are fixed, so a failure replays; PATHCAST_NIGHTLY=<examples> makes the nightly run longer.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from every_engine import engines
from generators import (
    ALPHABET,
    ALPHABET_WITH_NAMESPACES,
    LINEAR,
    VALUES,
    Alphabet,
    MessageShape,
    QueryShape,
    random_message,
    random_query,
    random_split,
    rewritten,
)
from generators.query_text import tree_of
from generators.strategies import messages, notations, query_sets
from oracles import ENGINES, LxmlQuery, assert_same_matches, lxml_tree, missing_reason
from oracles.engines import EngineName, made_by, running
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.query import canonical_form
from pathcast.registry import Registry, Snapshot
from pathcast_papers import ReferenceIndex, Selection, parse
from pathcast_papers.filtering.oracle import holds
from pathcast_papers.language import compile_query

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))

WORKLOADS: dict[str, tuple[Alphabet, QueryShape]] = {
    "linear": (ALPHABET, LINEAR),
    "values": (ALPHABET, VALUES),
    "nested": (ALPHABET, QueryShape(nesting_max=3)),
    "extended": (ALPHABET, QueryShape(has_extensions=True)),
    "namespaces": (ALPHABET_WITH_NAMESPACES, QueryShape()),
    "namespaces-extended": (ALPHABET_WITH_NAMESPACES, QueryShape(has_extensions=True)),
}

workloads = pytest.mark.parametrize("workload", sorted(WORKLOADS))


class Case:
    """Queries and messages from one seed."""

    def __init__(self, workload: str, seed: int, *, has_odd_values: bool = False) -> None:
        alphabet, shape = WORKLOADS[workload]
        generator = random.Random(f"{workload} {seed}")
        message_shape = MessageShape(has_odd_values=has_odd_values)
        namespaces = dict(alphabet.namespaces)
        texts = [random_query(generator, alphabet, shape) for _ in range(24)]
        texts += [rewritten(generator, tree_of(text, namespaces)) for text in texts[:6]]
        texts += generator.sample(texts, 3)
        self.queries = [Query(f"q{number}", text, namespaces) for number, text in enumerate(texts)]
        self.texts = {query.id: query.text for query in self.queries}
        self.compiled = {query.id: compile_query(query.text, namespaces) for query in self.queries}
        self.messages = [random_message(generator, alphabet, message_shape) for _ in range(5)]

    def by_oracle(self, message: bytes) -> list[str]:
        tree = parse(message, Limits())
        return [query_id for query_id, query in self.compiled.items() if holds(query, tree)]

    def by_lxml(self, message: bytes) -> list[str]:
        root = lxml_tree(message)
        return [query.id for query in self.queries if LxmlQuery(query).matches(root)]

    def check(self, engine: EngineName) -> int:
        """Compares an engine with the oracle on every message; gives the number of matches."""
        index = made_by(engine, Registry)
        report = index.add(self.queries)
        assert not report.rejected, {
            self.texts[query_id]: str(error) for query_id, error in report.rejected.items()
        }
        results = index.match(self.messages)
        for message, result in zip(self.messages, results, strict=True):
            assert result.error is None
            assert_same_matches(
                result.query_ids, self.by_oracle(message), engine, "oracle", self.texts, message
            )
        return results.stats.matches


@engines
@workloads
def test_engine_agrees_with_oracle(engine: EngineName, workload: str) -> None:
    matches = sum(Case(workload, seed, has_odd_values=True).check(engine) for seed in range(25))
    assert matches > 100, "the workload matches too little to prove anything"


@workloads
def test_oracle_agrees_with_lxml(workload: str) -> None:
    pytest.importorskip("lxml")
    matches = 0
    for seed in range(1000, 1025):
        case = Case(workload, seed)
        for message in case.messages:
            by_oracle = case.by_oracle(message)
            assert_same_matches(
                by_oracle, case.by_lxml(message), "oracle", "lxml", case.texts, message
            )
            matches += len(by_oracle)
    assert matches > 100, "the workload matches too little to prove anything"


@workloads
def test_inline_agrees_with_selection_postponed(workload: str) -> None:
    for seed in range(2000, 2025):
        case = Case(workload, seed)
        answers = []
        for selection in Selection:
            index = ReferenceIndex({}, selection=selection)
            index.register(case.queries, {})
            trees = [parse(message, Limits()) for message in case.messages]
            satisfied, ids = index.match(trees, Limits())
            answers.append([[ids[number] for number in each.numbers] for each in satisfied])
        for message, inline, postponed, sorted_ in zip(case.messages, *answers, strict=True):
            assert_same_matches(inline, postponed, "Inline", "SP", case.texts, message)
            assert_same_matches(sorted_, postponed, "sorted", "SP", case.texts, message)


@workloads
def test_notations_of_a_query_share_one_canonical_text(workload: str) -> None:
    """Equal queries that do not share a state cost memory; unequal ones that do are wrong."""
    alphabet, shape = WORKLOADS[workload]
    namespaces = dict(alphabet.namespaces)
    for seed in range(300):
        generator = random.Random(f"notation {seed}")
        text = random_query(generator, alphabet, shape)
        canonical = canonical_form(text, namespaces)
        other = rewritten(generator, tree_of(text, namespaces))
        assert canonical_form(other) == canonical, (text, other)
        assert canonical_form(canonical) == canonical


@engines
def test_batches_threads_and_order_of_registration_change_nothing(engine: EngineName) -> None:
    case = Case("nested", 7)
    generator = random.Random(11)
    expected = [sorted(case.by_oracle(message)) for message in case.messages]
    shuffled = generator.sample(case.queries, len(case.queries))
    for queries in (case.queries, shuffled):
        index = made_by(engine, Registry)
        index.add(queries)
        for threads in (1, 2, 3):
            matcher = running(index.freeze(), threads=threads)
            for split in ([case.messages], *_splits(generator, case.messages)):
                found = [
                    list(result.query_ids) for batch in split for result in matcher.match(batch)
                ]
                assert found == expected


def _splits(generator: random.Random, items: Sequence[bytes]) -> Iterator[list[list[bytes]]]:
    for _ in range(4):
        yield random_split(generator, items)


@engines
def test_a_query_never_depends_on_its_neighbours(engine: EngineName) -> None:
    """Registered alone or among others, a query gives the same answer."""
    case = Case("nested", 21)
    for query in case.queries[:10]:
        index = made_by(engine, Registry)
        index.add([query])
        results = index.match(case.messages)
        for message, result in zip(case.messages, results, strict=True):
            wanted = [query.id] if query.id in case.by_oracle(message) else []
            assert_same_matches(result.query_ids, wanted, engine, "oracle", case.texts, message)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=query_sets(max_size=8), batch=st.lists(messages(), min_size=1, max_size=3))
def test_generated_cases_that_shrink(texts: list[str], batch: list[bytes]) -> None:
    """All engines in one test: to generate a case takes longer than to answer it."""
    queries = [Query(f"q{number}", text) for number, text in enumerate(texts)]
    trees = [parse(message, Limits()) for message in batch]
    wanted = [
        [query.id for query in queries if holds(compile_query(query.text), tree)] for tree in trees
    ]
    for engine in [each for each in ENGINES if missing_reason(each) is None]:
        index = made_by(engine, Registry)
        report = index.add(queries)
        assert not report.rejected
        results = index.match(batch)
        for message, result, expected in zip(batch, results, wanted, strict=True):
            assert_same_matches(
                result.query_ids,
                expected,
                engine,
                "oracle",
                dict(each[:2] for each in queries),
                message,
            )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=notations(), message=messages())
def test_notations_mean_the_same(pair: tuple[str, str], message: bytes) -> None:
    tree = parse(message, Limits())
    text, other = pair
    assert holds(compile_query(text), tree) == holds(compile_query(other), tree)


@pytest.mark.nightly
@engines
@workloads
def test_engine_agrees_with_oracle_at_length(engine: EngineName, workload: str) -> None:
    for seed in range(10_000, 10_000 + NIGHTLY_EXAMPLES // len(WORKLOADS)):
        Case(workload, seed, has_odd_values=True).check(engine)


@pytest.mark.nightly
@workloads
def test_oracle_agrees_with_lxml_at_length(workload: str) -> None:
    pytest.importorskip("lxml")
    for seed in range(50_000, 50_000 + NIGHTLY_EXAMPLES // len(WORKLOADS)):
        case = Case(workload, seed)
        for message in case.messages:
            assert_same_matches(
                case.by_oracle(message),
                case.by_lxml(message),
                "oracle",
                "lxml",
                case.texts,
                message,
            )


@engines
def test_snapshots_answer_alike_in_every_engine(engine: EngineName, tmp_path: Path) -> None:
    """A file gives the same answers, numbers and version in every engine that reads it.

    Files of the papers' engine are read by that alone.
    """
    case = Case("nested", 33)
    index = made_by(engine, Registry)
    index.add(case.queries)
    index.remove(["q3", "q5"])
    frozen = index.freeze()
    frozen.save(tmp_path / "queries.snapshot")
    expected = frozen.match(case.messages)
    for other in ENGINES:
        if missing_reason(other) is not None or (engine == "reference" != other):
            continue
        opened = made_by(other, Snapshot.open, tmp_path / "queries.snapshot")
        assert {query_id: opened.query(query_id) for query_id in opened.query_ids} == {
            query_id: frozen.query(query_id) for query_id in frozen.query_ids
        }
        found = opened.match(case.messages)
        assert [list(result.query_ids) for result in found] == [
            list(result.query_ids) for result in expected
        ]
        assert opened.version == frozen.version
        assert list(opened.query_ids) == list(frozen.query_ids)
        opened.save(tmp_path / other)
        again = made_by(other, Snapshot.open, tmp_path / other)
        assert list(again.query_ids) == list(opened.query_ids)
        assert again.version == opened.version

"""Histories of register, remove, compact, freeze and match give what the oracle gives.

If one of these fails, an index that has been changed answers differently from one that was built
at once: a removed query is still delivered, a kept one is lost, or a snapshot changes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from every_engine import engines
from generators import (
    UNREADABLE,
    Compact,
    Freeze,
    HistoryStep,
    Match,
    Register,
    Remove,
    random_history,
    random_message,
    random_query,
)
from generators.strategies import histories, messages, query_sets
from oracles import assert_same_matches
from oracles.engines import EngineName, made_by
from pathcast import Snapshot
from pathcast.errors import DuplicateQueryError, QuerySyntaxError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_papers import parse
from pathcast_papers.filtering.oracle import holds
from pathcast_papers.language import CompiledQuery, compile_query

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))


class Model:
    """An index next to the plainest thing that should behave like it: a dictionary."""

    def __init__(self, engine: EngineName, batch: Sequence[bytes]) -> None:
        self.engine = engine
        self.batch = batch
        self.trees: list[MessageTree] = [parse(message, Limits()) for message in batch]
        self.index = made_by(engine, Registry)
        self.matcher = self.index
        self.registered: dict[str, str] = {}
        self.compiled: dict[str, CompiledQuery] = {}
        self.frozen: list[tuple[Registry | Snapshot, dict[str, str]]] = []

    def run(self, history: Sequence[HistoryStep]) -> None:
        for step in history:
            self.step(step)
        self.check(self.matcher, self.registered)
        for matcher, registered in self.frozen:
            self.check(matcher, registered)

    def step(self, step: HistoryStep) -> None:
        match step:
            case Register(queries):
                self.register(queries)
            case Remove(ids):
                self.index.remove(ids)
                for query_id in ids:
                    del self.registered[query_id]
            case Compact():
                self.index.freeze()
            case Freeze():
                snapshot = self.index.freeze()
                assert sorted(snapshot.query_ids) == sorted(self.registered)
                self.frozen.append((snapshot, dict(self.registered)))
            case Match():
                self.check(self.matcher, self.registered)
        assert len(self.index) == len(self.registered)

    def register(self, queries: Sequence[Query]) -> None:
        expected: dict[str, type[Exception]] = {}
        accepted = 0
        for query in queries:
            if query.text == UNREADABLE:
                expected[query.id] = QuerySyntaxError
            elif query.id in self.registered:
                expected[query.id] = DuplicateQueryError
            else:
                self.registered[query.id] = query.text
                accepted += 1
        report = self.index.add(queries)
        assert report.accepted == accepted
        assert set(report.rejected) == set(expected)
        for query_id in expected:
            assert isinstance(report.rejected[query_id], QuerySyntaxError | DuplicateQueryError)

    def check(self, matcher: Registry | Snapshot, registered: dict[str, str]) -> None:
        results = matcher.match(self.batch)
        for message, tree, result in zip(self.batch, self.trees, results, strict=True):
            wanted = []
            for query_id, text in registered.items():
                query = self.compiled.setdefault(text, compile_query(text))
                if holds(query, tree):
                    wanted.append(query_id)
            assert_same_matches(
                result.query_ids, wanted, self.engine, "oracle", registered, message
            )


def run_seed(engine: EngineName, seed: int) -> None:
    generator = random.Random(f"history {seed}")
    texts = [random_query(generator) for _ in range(8)]
    batch = [random_message(generator) for _ in range(2)]
    Model(engine, batch).run(random_history(generator, texts, 25))


@engines
def test_histories(engine: EngineName) -> None:
    for seed in range(60):
        run_seed(engine, seed)


@engines
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_histories_that_shrink(engine: EngineName, data: st.DataObject) -> None:
    texts = data.draw(query_sets(max_size=4))
    batch = data.draw(st.lists(messages(), min_size=1, max_size=2))
    Model(engine, batch).run(data.draw(histories(texts)))


@pytest.mark.nightly
@engines
def test_histories_at_length(engine: EngineName) -> None:
    for seed in range(10_000, 10_000 + NIGHTLY_EXAMPLES // 10):
        run_seed(engine, seed)


@engines
def test_compact_gives_back_what_removal_left(engine: EngineName) -> None:
    """After removing everything and compacting, an index behaves as a new one."""
    generator = random.Random(5)
    texts = [random_query(generator) for _ in range(50)]
    index = made_by(engine, Registry)
    for _ in range(3):
        queries = [Query(f"q{number}", text) for number, text in enumerate(texts)]
        assert index.add(queries).accepted == len(queries)
        index.remove([query.id for query in queries])
        index.freeze()
        assert len(index) == 0
        assert list(index.freeze().query_ids) == []
    results = index.match([random_message(generator) for _ in range(5)])
    assert all(not len(result.query_ids) for result in results)


@engines
def test_results_outlive_changes_of_the_index(engine: EngineName) -> None:
    """Ids are read lazily; what happens to the index in between must not show in them."""
    index = made_by(engine, Registry)
    index.add([Query("gone", "//zzz"), Query("q1", "//a"), Query("q2", "//b")])
    results = index.match([b"<a/>", b"<b/>"])
    index.remove(["gone", "q1"])
    index.freeze()
    index.add([Query("q9", "/a"), Query("q8", "/b")])
    assert [list(result.query_ids) for result in results] == [["q1"], ["q2"]]

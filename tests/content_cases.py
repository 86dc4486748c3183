"""Queries with conditions, messages and, by lxml or the oracle, which belong together."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping, Sequence

import pytest

from generators.content import FamilyShape, random_family, random_valued_message
from oracles import LxmlQuery, assert_same_matches, lxml_tree
from oracles.engines import EngineName, made_by
from pathcast import Snapshot
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_papers import parse
from pathcast_papers.filtering.oracle import Oracle
from pathcast_papers.language import compile_query

CASES = int(os.environ.get("PATHCAST_CONTENT", "8"))
NIGHTLY_CASES = int(os.environ.get("PATHCAST_NIGHTLY", "20000")) // 100

SHAPES = {
    "values": FamilyShape(nesting_max=0, has_positions=False),
    "linear-positions": FamilyShape(nesting_max=0, steps_max=3),
    "nested": FamilyShape(nesting_max=2, has_positions=False, conditions_max=2),
    "everything": FamilyShape(nesting_max=3),
    "alternatives": FamilyShape(nesting_max=1, has_alternatives=True),
}

shapes = pytest.mark.parametrize("shape", sorted(SHAPES))
paths = pytest.mark.parametrize("shape", sorted(SHAPES.keys() - {"alternatives"}))
"""Shapes whose queries each have one normal form, which is what the oracle evaluates."""


class Content:
    """Queries, messages and, by lxml or the oracle, which messages satisfy which query."""

    def __init__(
        self,
        texts: Iterable[str],
        messages: Sequence[bytes],
        *,
        namespaces: Mapping[str, str] | None = None,
        with_oracle: bool = False,
    ) -> None:
        self.texts = {f"q{number}": text for number, text in enumerate(texts)}
        self.queries = [Query(query_id, text, namespaces) for query_id, text in self.texts.items()]
        self.by_id = {query.id: query for query in self.queries}
        self.messages = messages
        self.truth: dict[str, frozenset[int]] = self.by_oracle() if with_oracle else self.by_lxml()

    def by_lxml(self) -> dict[str, frozenset[int]]:
        trees = [lxml_tree(message) for message in self.messages]
        truth = {}
        for query in self.queries:
            compiled = LxmlQuery(query)
            truth[query.id] = frozenset(
                number for number, tree in enumerate(trees) if compiled.matches(tree)
            )
        return truth

    def by_oracle(self) -> dict[str, frozenset[int]]:
        oracles = [Oracle(parse(message, Limits())) for message in self.messages]
        compiled = {query.id: compile_query(query.text) for query in self.queries}
        return {
            query_id: frozenset(
                number for number, oracle in enumerate(oracles) if oracle.satisfies(each)
            )
            for query_id, each in compiled.items()
        }

    @classmethod
    def random(cls, shape: str, seed: int, families: int = 10) -> Content:
        generator = random.Random(f"content {shape} {seed}")
        texts = [
            text for _ in range(families) for text in random_family(generator, 24, SHAPES[shape])
        ]
        return cls(texts, [random_valued_message(generator) for _ in range(16)])

    @property
    def matches(self) -> int:
        return sum(map(len, self.truth.values()))

    def index(self, engine: EngineName, ids: Iterable[str] | None = None) -> Registry:
        index = made_by(engine, Registry)
        self.register(index, self.texts if ids is None else ids)
        return index

    def register(self, index: Registry, ids: Iterable[str]) -> None:
        report = index.add([self.by_id[query_id] for query_id in ids])
        assert not report.rejected, {
            self.texts[query_id]: str(error) for query_id, error in report.rejected.items()
        }

    def check(
        self,
        matcher: Registry | Snapshot,
        ids: Iterable[str] | None = None,
        messages: Sequence[int] | None = None,
    ) -> None:
        """Asks for some messages, by number, with some of the queries registered."""
        wanted_ids = self.texts if ids is None else set(ids)
        numbers = range(len(self.messages)) if messages is None else messages
        results = matcher.match([self.messages[number] for number in numbers])
        for number, result in zip(numbers, results, strict=True):
            assert result.error is None
            wanted = [query_id for query_id in wanted_ids if number in self.truth[query_id]]
            assert_same_matches(
                result.query_ids, wanted, "engine", "lxml", self.texts, self.messages[number]
            )


def cases(engine: EngineName) -> range:
    """Seeds to be tried; the reference engine is slow and sees fewer."""
    return range(max(2, CASES // 8) if engine == "reference" else CASES)


def families(engine: EngineName) -> int:
    """Families in a case."""
    return 4 if engine == "reference" else 8

"""The published YFilter workload: every engine agrees with lxml on every query and document.

153,928 distinct location paths and some 200 queries with predicates and nested paths over NITF, and
100 documents. Skipped, with the reason, where the shared data is absent.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import pytest

from every_engine import engines
from oracles import ENGINES, LxmlQuery, assert_same_matches, lxml_tree, missing_reason
from oracles.engines import EngineName, made_by
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_papers import parse
from pathcast_papers.filtering.oracle import Oracle
from pathcast_papers.language import compile_query
from shared_data import SHARED_DATA

WORKLOAD = SHARED_DATA / "workloads" / "yfilter"

pytestmark = pytest.mark.skipif(
    not WORKLOAD.is_dir(),
    reason=f"shared data is not here: {WORKLOAD} (set PATHCAST_SHARED_DATA)",
)


SAMPLE_STEP = 101
"""Of the linear paths, every 101st is asked of all documents in a default run: 1,525."""


@pytest.fixture(scope="module")
def documents() -> list[bytes]:
    found = [path.read_bytes() for path in sorted((WORKLOAD / "docs").glob("*.xml"))]
    assert len(found) == 100
    return found


@pytest.fixture(scope="module")
def mixed() -> list[Query]:
    """Queries with value-based predicates, positions and nested paths."""
    texts = []
    for name in ("queries.txt", "queries1.txt", "queries2.txt", "queries3.txt"):
        texts += (WORKLOAD / "queries" / name).read_text().split("\n")
    queries = [
        Query(f"q{number}", text.strip()) for number, text in enumerate(texts) if text.strip()
    ]
    assert len(queries) >= 196
    return queries


@pytest.fixture(scope="module")
def linear() -> list[Query]:
    """Distinct location paths."""
    data = gzip.decompress((WORKLOAD / "queries" / "queries-153928-d.txt.gz").read_bytes())
    texts = [text for text in data.decode().split("\n") if text.strip()]
    assert len(texts) == 153_928
    return [Query(f"q{number}", text.strip()) for number, text in enumerate(texts)]


@pytest.fixture(scope="module")
def sample(linear: list[Query]) -> list[Query]:
    return linear[::SAMPLE_STEP]


@pytest.fixture(scope="module")
def mixed_by_lxml(mixed: list[Query], documents: list[bytes]) -> list[list[str]]:
    return by_lxml(mixed, documents)


@pytest.fixture(scope="module")
def sample_by_lxml(sample: list[Query], documents: list[bytes]) -> list[list[str]]:
    return by_lxml(sample, documents)


def by_lxml(queries: Sequence[Query], documents: Sequence[bytes]) -> list[list[str]]:
    """Ids that lxml finds, document by document."""
    pytest.importorskip("lxml")
    compiled = [(query.id, LxmlQuery(query)) for query in queries]
    trees = [lxml_tree(document) for document in documents]
    return [[query_id for query_id, query in compiled if query.matches(tree)] for tree in trees]


def check(
    engine: EngineName,
    queries: Sequence[Query],
    documents: Sequence[bytes],
    expected: Sequence[Sequence[str]],
) -> None:
    index = made_by(engine, Registry)
    assert not index.add(queries).rejected
    texts = {query.id: query.text for query in queries}
    assert any(expected), "nothing matches, so nothing is proved"
    for result, wanted in zip(index.match(documents), expected, strict=True):
        assert_same_matches(result.query_ids, wanted, engine, "lxml", texts)


@engines
def test_mixed_queries(
    engine: EngineName,
    mixed: list[Query],
    documents: list[bytes],
    mixed_by_lxml: list[list[str]],
) -> None:
    check(engine, mixed, documents, mixed_by_lxml)


@engines
def test_sample_of_the_linear_paths(
    engine: EngineName,
    sample: list[Query],
    documents: list[bytes],
    sample_by_lxml: list[list[str]],
) -> None:
    check(engine, sample, documents, sample_by_lxml)


def test_oracle(mixed: list[Query], documents: list[bytes], mixed_by_lxml: list[list[str]]) -> None:
    compiled = [(query.id, compile_query(query.text)) for query in mixed]
    texts = {query.id: query.text for query in mixed}
    for document, wanted in zip(documents[:20], mixed_by_lxml, strict=False):
        oracle = Oracle(parse(document, Limits()))
        found = [query_id for query_id, each in compiled if oracle.satisfies(each)]
        assert_same_matches(found, wanted, "oracle", "lxml", texts)


def test_all_linear_paths_on_some_documents(linear: list[Query], documents: list[bytes]) -> None:
    """All 153,928 in one index, where neighbours and shared states could disturb each other.

    Both machines answer all of them alike, and a sample as lxml does.
    """
    reason = missing_reason("kernel")
    if reason is not None:
        pytest.skip(reason)
    chosen = [min(documents, key=len), documents[50]]
    answers: dict[EngineName, list[Sequence[str]]] = {}
    for engine in ("kernel", "nfa"):
        index = made_by(engine, Registry)
        assert not index.add(linear).rejected
        found = index.match(chosen)
        answers[engine] = [result.query_ids for result in found]
    assert answers["kernel"] == answers["nfa"]
    sample = linear[:: SAMPLE_STEP // 10]
    asked = {query.id for query in sample}
    texts = {query.id: query.text for query in sample}
    for ids, wanted in zip(answers["kernel"], by_lxml(sample, chosen), strict=True):
        assert wanted
        assert_same_matches([id for id in ids if id in asked], wanted, "kernel", "lxml", texts)


@pytest.mark.nightly
def test_all_linear_paths_on_all_documents(linear: list[Query], documents: list[bytes]) -> None:
    expected = by_lxml(linear, documents)
    for engine in ENGINES:
        if missing_reason(engine) is None:
            check(engine, linear, documents, expected)

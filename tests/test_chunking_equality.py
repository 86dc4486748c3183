"""Chunked and unchunked give the same: nodes by lxml, answers by every engine.

Random schemas with recursion and namespaces, messages after them, queries of all of XPath 1.0. If
these fail, a subscriber loses a delivery, or gets one that was not asked for, because a message was
cut.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from oracles.engines import EngineName, made_by

etree = pytest.importorskip(
    "lxml.etree", reason="lxml is not installed: pip install 'pathcast[workload]'"
)

from generators.chunking_cases import (  # noqa: E402
    Case,
    from_document,
    selected,
)
from oracles.engines import ENGINES, missing_reason  # noqa: E402
from pathcast import Query, Registry  # noqa: E402
from pathcast.chunking.cut import Cut  # noqa: E402
from pathcast.chunking.evaluation import (  # noqa: E402
    ChunkEvaluator,
    merged,
    tasks_of,
)
from pathcast.chunking.filtering_scheme import Chunking, FilteringScheme  # noqa: E402
from pathcast.errors import PathcastError  # noqa: E402
from pathcast.schema import ElementPaths, parse_dtd  # noqa: E402
from pathcast_papers.chunking.plain import cut_plainly  # noqa: E402

SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(6, 300))]
CASES_A_SEED = 20
ENGINE_SEEDS = [
    *range(3),
    *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 60)),
]


def registered(case: Case, chunking: Chunking, count: int) -> dict[str, str]:
    """Ids and texts of queries that could be registered."""
    texts: dict[str, str] = {}
    for number in range(count):
        text = case.query()
        try:
            chunking.register(str(number), text, case.namespaces)
        except PathcastError:
            continue
        texts[str(number)] = text
    return texts


def selected_in_chunks(
    scheme: FilteringScheme, message: bytes, cut: Cut, namespaces: dict[str, str]
) -> tuple[dict[str, set[tuple[object, ...]]], set[str], set[str]]:
    """Nodes by query, queries that lxml does not read, and queries with a part in the potpourri."""
    nodes: dict[str, set[tuple[object, ...]]] = {}
    unread: set[str] = set()
    pieces = [(chunk.queries, part) for chunk, part in zip(scheme.chunks, cut.chunks, strict=True)]
    for queries, piece in [*pieces, (scheme.potpourri, message)]:
        if not piece:
            continue
        tree = etree.fromstring(piece).getroottree()
        for text, ids in queries.queries.items():
            try:
                found = selected(text, tree, namespaces)
            except etree.XPathError:
                unread.update(ids)
                continue
            for query_id in ids:
                nodes.setdefault(query_id, set()).update(found)
    left = {query_id for ids in scheme.potpourri.queries.values() for query_id in ids}
    return nodes, unread, left


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_nodes_are_selected(seed: int) -> None:
    looked: Counter[str] = Counter()
    for number in range(CASES_A_SEED):
        random = Random(seed * CASES_A_SEED + number)
        case = Case(random, has_namespaces=number % 3 == 0)
        chunking = Chunking(random.randrange(1, 6), case.paths if random.randrange(4) else None)
        texts = registered(case, chunking, 12)
        scheme, message = chunking.scheme(), case.message()
        cut = cut_plainly(scheme, message)
        assert cut.fault == ""
        found, unread, left = selected_in_chunks(scheme, message, cut, case.namespaces)
        tree = etree.fromstring(message).getroottree()
        for query_id, text in texts.items():
            if query_id in unread or "namespace::" in text:
                continue
            try:
                expected = selected(from_document(text, case.namespaces), tree, case.namespaces)
            except etree.XPathError:
                continue
            assert found.get(query_id, set()) == expected, (text, message)
            looked["queries"] += 1
            looked["in chunks"] += query_id not in left
            looked["selecting, in chunks"] += query_id not in left and bool(expected)
    assert looked["in chunks"] > 40
    assert looked["selecting, in chunks"] > 5


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", ENGINE_SEEDS)
def test_engines_answer_the_same(engine: EngineName, seed: int) -> None:
    if missing_reason(engine):
        pytest.skip(f"{missing_reason(engine)}")
    random = Random(1_000 + seed)
    case = Case(random, has_namespaces=seed % 2 == 0)
    chunking = Chunking(3, case.paths)
    texts = registered(case, chunking, 60)
    index = made_by(engine, Registry)
    report = index.add(Query(key, text, case.namespaces) for key, text in texts.items())
    for query_id in report.rejected:
        chunking.remove(query_id)
    evaluator = made_by(engine, ChunkEvaluator)
    matches = 0
    for _ in range(6):
        # One query leaves between two messages, and the next message is cut by another scheme.
        leaving = random.choice(sorted(texts))
        if leaving in index:
            index.remove([leaving])
            chunking.remove(leaving)
        scheme, message = chunking.scheme(), case.message()
        expected = index.match([message])[0]
        tasks = tasks_of(scheme, message, cut_plainly(scheme, message))
        answer = merged(evaluator.evaluate(task) for task in tasks)
        assert answer.query_ids == tuple(expected.query_ids)
        matches += len(answer.query_ids)
    assert matches


def test_a_message_that_is_not_built_as_the_schema_says_is_evaluated_whole() -> None:
    dtd = "<!ELEMENT a (b*)><!ELEMENT b (c*)><!ELEMENT c EMPTY>"
    paths = ElementPaths(parse_dtd(dtd), root="a")
    chunking = Chunking(1, paths)
    chunking.register("removed", "/a/c")
    chunking.register("resolved", "//c")
    scheme = chunking.scheme()
    for message, expected in (
        (b"<a><b><c/></b></a>", ("resolved",)),
        (b"<a><c/></a>", ("removed", "resolved")),
        (b"<b><c/></b>", ("resolved",)),
        (b"<a><x><b/></x></a>", ()),
    ):
        cut = cut_plainly(scheme, message)
        evaluator = made_by("reference", ChunkEvaluator)
        answer = merged(evaluator.evaluate(task) for task in tasks_of(scheme, message, cut))
        assert answer.query_ids == expected, message
        assert bool(cut.fault) is (message != b"<a><b><c/></b></a>")


def test_prefixes_are_known_where_a_message_is_evaluated_whole() -> None:
    dtd = "<!ELEMENT a (p:b*)><!ELEMENT p:b EMPTY>"
    chunking = Chunking(1, ElementPaths(parse_dtd(dtd), root="a", namespaces={"p": "urn:p"}))
    chunking.register("q", "//n:b", {"n": "urn:p"})
    scheme = chunking.scheme()
    message = b"<a xmlns:z='urn:p'><x/><z:b/></a>"
    cut = cut_plainly(scheme, message)
    assert cut.fault
    evaluator = made_by("reference", ChunkEvaluator)
    answer = merged(evaluator.evaluate(task) for task in tasks_of(scheme, message, cut))
    assert answer.query_ids == ("q",)


def test_what_comes_from_an_entity_is_not_cut() -> None:
    chunking = Chunking(1)
    chunking.register("q", "/a/b")
    cut = cut_plainly(chunking.scheme(), b"<!DOCTYPE a [<!ENTITY e '<b/>'>]><a>&e;</a>")
    assert cut.fault == "an element to be cut at comes from an entity"
    # Inside of what is copied, an entity is copied as it is referred to, with its declaration.
    message = b"<!DOCTYPE a [<!ENTITY e '<c/>'>]><a><b>&e;</b><x/></a>"
    cut = cut_plainly(chunking.scheme(), message)
    assert cut.fault == ""
    assert cut.chunks == (b"<!DOCTYPE a [<!ENTITY e '<c/>'>]><a><b>&e;</b></a>",)


def test_a_chunk_of_a_message_in_another_encoding() -> None:
    chunking = Chunking(1)
    chunking.register("q", "/a/b[.='é']")
    message = '<?xml version="1.0" encoding="UTF-16"?><a k="ü"><b>é</b><c/></a>'.encode("utf-16")
    cut = cut_plainly(chunking.scheme(), message)
    assert cut.chunks == ('<a k="ü"><b>é</b></a>'.encode(),)

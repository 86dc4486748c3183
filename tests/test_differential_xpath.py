"""All of XPath 1.0: engine == lxml on generated expressions and messages, and metamorphic rules.

If one of these fails, a query outside the indexed language is answered wrongly: the evaluator, the
split into necessary conditions and expression, or what joins the two is at fault.
"""

from __future__ import annotations

import os
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings

from every_engine import engines
from expression_cases import ALPHABETS, GENEROUS, Expressions
from generators import MessageShape, random_split
from generators.strategies import expressions, messages
from oracles import LxmlQuery, assert_same_matches, lxml_tree
from oracles.engines import EngineName, made_by, running
from oracles.lxml_differences import may_differ
from pathcast import Snapshot
from pathcast.errors import EvaluationBudgetError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry

pytest.importorskip("lxml")

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))

alphabets = pytest.mark.parametrize("alphabet", sorted(ALPHABETS))


def index_of(engine: EngineName, queries: list[Query]) -> Registry:
    index = made_by(engine, Registry, limits=GENEROUS)
    report = index.add(queries)
    assert not report.rejected, {
        query_id: str(error) for query_id, error in report.rejected.items()
    }
    return index


def answers(matcher: Registry | Snapshot, batch: list[bytes]) -> list[set[str]]:
    results = matcher.match(batch)
    for result in results:
        assert result.error is None
        assert not result.verdicts
    return [set(result.query_ids) for result in results]


def check(engine: EngineName, cases: Expressions) -> None:
    found = answers(index_of(engine, cases.queries), cases.messages)
    for number, ids in enumerate(found):
        assert_same_matches(
            ids & cases.truth.keys(),
            [query_id for query_id, rows in cases.truth.items() if number in rows],
            engine,
            "lxml",
            cases.texts,
            cases.messages[number],
        )


@engines
@alphabets
def test_expressions(engine: EngineName, alphabet: str) -> None:
    pairs = matches = telling = queries = 0
    for seed in range({"kernel": 16, "nfa": 6, "reference": 4}[engine]):
        cases = Expressions(alphabet, 100 + seed)
        check(engine, cases)
        pairs += cases.pairs
        matches += cases.matches
        telling += cases.telling
        queries += len(cases.truth)
    assert pairs > (12_000 if engine == "kernel" else 3000)
    assert matches > pairs // 6, "too little matches to prove much"
    assert telling > queries // 4, "too few queries tell messages apart"


@alphabets
def test_engines_agree_where_lxml_leaves_xpath(alphabet: str) -> None:
    """What lxml cannot be asked, two implementations of our own must answer alike."""
    asked = 0
    for seed in range(200, 230):
        cases = Expressions(alphabet, seed)
        queries = [query for query in cases.queries if query.id not in cases.truth]
        asked += len(queries)
        kernel, reference = (
            answers(index_of(engine, queries), cases.messages) for engine in ("kernel", "reference")
        )
        for message, found, wanted in zip(cases.messages, kernel, reference, strict=True):
            assert_same_matches(found, wanted, "kernel", "reference", cases.texts, message)
    assert asked > 30


@engines
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=expressions(), message=messages(shape=MessageShape(has_markup=True)))
def test_expressions_that_shrink(engine: EngineName, text: str, message: bytes) -> None:
    if may_differ(text):
        return
    wanted = LxmlQuery(Query("q", text)).matches(lxml_tree(message))
    found = answers(index_of(engine, [Query("q", text)]), [message])
    assert found == [{"q"} if wanted else set()], text


@pytest.mark.nightly
@alphabets
@pytest.mark.parametrize("engine", ["kernel"])
def test_a_million_pairs(engine: EngineName, alphabet: str) -> None:
    """At least a million pairs of query and message, over both alphabets."""
    pairs = 0
    seed = 10_000
    while pairs < max(1_000_000, NIGHTLY_EXAMPLES * 50) // len(ALPHABETS):
        cases = Expressions(alphabet, seed, queries=150, messages=40)
        check(engine, cases)
        pairs += cases.pairs
        seed += 1


@pytest.mark.nightly
@alphabets
def test_reference_agrees_at_length(alphabet: str) -> None:
    for seed in range(50_000, 50_000 + NIGHTLY_EXAMPLES // 200):
        check("reference", Expressions(alphabet, seed))


# --- What must change nothing -------------------------------------------------------------------


@engines
@alphabets
def test_neighbours_batches_and_order_change_nothing(engine: EngineName, alphabet: str) -> None:
    """Queries shuffled, added and registered alone; batches cut anywhere; threads."""
    cases = Expressions(alphabet, 300)
    others = Expressions(alphabet, 301).queries
    generator = random.Random(5)
    expected = answers(index_of(engine, cases.queries), cases.messages)
    mixed = cases.queries + [query._replace(id=f"other {query.id}") for query in others]
    generator.shuffle(mixed)
    index = index_of(engine, mixed)
    for matcher in (index, index.freeze()):
        for _ in range(2):
            found: list[set[str]] = []
            for batch in random_split(generator, cases.messages):
                found += answers(matcher, batch)
            assert [ids & cases.texts.keys() for ids in found] == expected
    for query in generator.sample(cases.queries, 15):
        alone = answers(index_of(engine, [query]), cases.messages)
        assert alone == [ids & {query.id} for ids in expected], query.text


@engines
def test_prefixes_are_only_names_for_namespaces(engine: EngineName) -> None:
    """In queries nothing changes; in messages, nothing but name() and namespace::."""
    for seed in range(310, 313):
        cases = Expressions("namespaces", seed)
        matcher = index_of(engine, cases.queries)
        expected = answers(matcher, cases.messages)
        renamed = [
            Query(
                query.id,
                re.sub(r"\b([pq]):(?!:)", r"other-\1:", query.text),
                {f"other-{prefix}": uri for prefix, uri in cases.namespaces.items()},
            )
            for query in cases.queries
        ]
        assert answers(index_of(engine, renamed), cases.messages) == expected
        plain = {
            query_id
            for query_id, text in cases.texts.items()
            if not re.search(r"(?<!-)\bname\(|namespace::", text)
        }
        batch = [re.sub(rb"\b([pq]):(?=[a-z])", rb"z\1:", message) for message in cases.messages]
        batch = [re.sub(rb"\bxmlns:([pq])=", rb"xmlns:z\1=", message) for message in batch]
        assert len(plain) > 20
        assert [ids & plain for ids in answers(matcher, batch)] == [ids & plain for ids in expected]


@engines
@alphabets
def test_values_in_other_notations_are_the_same(engine: EngineName, alphabet: str) -> None:
    """Text as CDATA sections or character references is the same text."""
    for seed in range(320, 323):
        cases = Expressions(alphabet, seed)
        matcher = index_of(engine, cases.queries)
        expected = answers(matcher, cases.messages)
        for rewrite in (in_cdata, in_references, in_entities):
            batch = [rewrite(message) for message in cases.messages]
            assert batch != cases.messages
            for message, found, wanted in zip(
                batch, answers(matcher, batch), expected, strict=True
            ):
                assert_same_matches(
                    found, wanted, rewrite.__name__, "as it was", cases.texts, message
                )


TEXT = re.compile(rb">([^<>&\[\]]+)<(?!!\[CDATA)")
"""Character data between tags; nothing of a DTD, of comments or of CDATA sections."""


def in_cdata(message: bytes) -> bytes:
    return in_content(message, lambda text: b"<![CDATA[" + text + b"]]>")


def in_references(message: bytes) -> bytes:
    return in_content(
        message,
        lambda text: b"".join(b"&#%d;" % ord(character) for character in text.decode()),
    )


def in_entities(message: bytes) -> bytes:
    """Text as predefined entities and references; `u` by an entity of the message's own."""
    if b"<!DOCTYPE" in message or b"<?xml" in message:
        return message
    return b"<!DOCTYPE any [<!ENTITY own 'u'>]>" + in_content(
        message, lambda text: text.replace(b"u", b"&own;")
    )


def in_content(message: bytes, rewritten: object) -> bytes:
    assert callable(rewritten)
    end = message.find(b"]>", message.find(b"<!DOCTYPE")) if b"<!DOCTYPE" in message else 0
    head, body = message[:end], message[end:]
    root = re.search(rb"<[a-z]", body)
    assert root is not None
    head, body = head + body[: root.start()], body[root.start() :]
    last = body.rfind(b"</") if b"</" in body else 0
    body, tail = body[: last + 1], body[last + 1 :]
    return head + TEXT.sub(lambda found: b">" + rewritten(found[1]) + b"<", body) + tail


@engines
def test_what_a_query_cannot_see_does_not_matter(engine: EngineName) -> None:
    """Siblings, attributes and comments of names that no query mentions."""
    asked = 0
    for seed in range(330, 336):
        cases = Expressions("plain", seed)
        # Wildcards, other nodes and positions of any node would see them; so would text, and the
        # way up from every node (`//ancestor::a`).
        blind = [
            query
            for query in cases.queries
            if not re.search(
                r"\*(?!\s*[\d(.])|node\(|\.\.|comment|processing|text\(|following|preceding|string"
                r"|@\*|namespace|sum|number|concat|last|lang|\[\s*\.|\.\s*[=!<>]|\(\.|\.\)|id\("
                r"|//\s*(?:ancestor|parent)",
                query.text,
            )
            and " * " not in query.text
        ]
        asked += len(blind)
        matcher = index_of(engine, blind)
        expected = answers(matcher, cases.messages)
        batch = [
            re.sub(rb"<([abc])(?=[ />])", rb"<\1 zz='5'", message) for message in cases.messages
        ]
        batch = [
            re.sub(rb"</([abc])>", rb"<zzz zz='1'/><!--zz--></\1>", message) for message in batch
        ]
        assert batch != cases.messages
        for message, found, wanted in zip(batch, answers(matcher, batch), expected, strict=True):
            assert_same_matches(found, wanted, "with more", "without", cases.texts, message)
    assert asked > 40


# --- The budget -----------------------------------------------------------------------------------


@engines
def test_over_budget_is_a_verdict_of_one_pair(engine: EngineName) -> None:
    """The pair gets the verdict, the query is not reported, all others are answered."""
    queries = [
        Query("dear", "//*[count(preceding::*) mod 7 = 6][not(following::zz)]/self::b[2 > 1]"),
        Query("cheap", "/r/a[last()]"),
        Query("indexed", "//a"),
    ]
    index = made_by(engine, Registry, limits=Limits(evaluation_steps_max=2000))
    assert not index.add(queries).rejected
    large = b"<r>" + b"<a><b/></a>" * 400 + b"</r>"
    results = index.match([b"<r><a><b/></a></r>", large, b"<r><a/></r>"])
    assert [list(result.query_ids) for result in results] == [
        ["cheap", "indexed"],
        ["cheap", "indexed"],
        ["cheap", "indexed"],
    ]
    assert list(results[1].verdicts) == ["dear"]
    assert isinstance(results[1].verdicts["dear"], EvaluationBudgetError)
    assert not results[0].verdicts
    assert not results[2].verdicts


@engines
def test_verdicts_do_not_depend_on_batches_or_threads(engine: EngineName) -> None:
    """Steps are counted, not timed, and for each pair from zero."""
    cases = Expressions("plain", 340)
    index = made_by(engine, Registry, limits=Limits(evaluation_steps_max=60))
    assert not index.add(cases.queries).rejected
    found = []
    for threads, size in ((1, 16), (2, 16), (1, 1), (2, 5)):
        matcher = running(index.freeze(), threads=threads)
        results = [
            result
            for start in range(0, len(cases.messages), size)
            for result in matcher.match(cases.messages[start : start + size])
        ]
        found.append([(list(result.query_ids), sorted(result.verdicts)) for result in results])
    assert any(verdicts for _, verdicts in found[0]), "no pair went over the budget"
    assert all(answer == found[0] for answer in found)

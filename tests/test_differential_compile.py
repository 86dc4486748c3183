"""What `compile_query` makes of an expression means the same, asked of lxml.

If one of these fails, a query is registered as something else than its author wrote: a canonical
expression with another meaning, or a necessary condition that is none, so that messages get lost.
"""

from __future__ import annotations

import os
import random

import pytest

from expression_cases import ALPHABETS, Expressions
from generators import ALPHABET, random_expression
from generators.expression_text import ExpressionShape
from oracles import LxmlQuery
from oracles.lxml_differences import may_differ
from pathcast.model import Query
from pathcast.query import CostClass, canonical_form, compile_query

pytest.importorskip("lxml")

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))

alphabets = pytest.mark.parametrize("alphabet", sorted(ALPHABETS))


def check(cases: Expressions) -> None:
    for query_id, rows in cases.truth.items():
        text = cases.texts[query_id]
        compiled = compile_query(text, cases.namespaces)
        found = {alternative: cases.by_lxml(alternative) for alternative in compiled.texts}
        some = frozenset().union(*found.values())
        if compiled.expression is None:
            assert some == rows, f"{text} is not {' or '.join(compiled.texts)}"
            continue
        lost = rows - some
        assert not lost, (
            f"{text} asks for none of {compiled.texts}\nmessage: {cases.messages[min(lost)]!r}"
        )
        if may_differ(compiled.expression) is None:
            assert cases.by_lxml(compiled.expression) == rows, (text, compiled.expression)


@alphabets
def test_compiled_queries_mean_the_same(alphabet: str) -> None:
    for seed in range(12):
        check(Expressions(alphabet, seed))


@pytest.mark.nightly
@alphabets
def test_compiled_queries_mean_the_same_at_length(alphabet: str) -> None:
    for seed in range(10_000, 10_000 + NIGHTLY_EXAMPLES // 40):
        check(Expressions(alphabet, seed))


@alphabets
def test_compiled_text_gives_itself_again(alphabet: str) -> None:
    """A snapshot keeps compiled text; read once more it must be the same query."""
    generator = random.Random(1)
    seen = set()
    for _ in range(600):
        text = random_expression(generator, ALPHABETS[alphabet])
        compiled = compile_query(text, ALPHABETS[alphabet].namespaces)
        seen.add(compiled.cost)
        for alternative in compiled.texts:
            assert canonical_form(alternative) == alternative
        assert compiled.texts == sorted(set(compiled.texts))
        assert 1 <= len(compiled.texts) <= 16
        if compiled.expression is not None:
            again = compile_query(compiled.expression)
            assert again.expression == compiled.expression, text
            assert again.texts == compiled.texts, text
            assert again.cost is compiled.cost
            assert compiled.reasons, text
    assert seen == set(CostClass)


def test_cost_classes_say_what_is_known() -> None:
    generator = random.Random(2)
    for _ in range(600):
        compiled = compile_query(random_expression(generator))
        if compiled.expression is None:
            assert compiled.cost is CostClass.INDEXED
        elif "/*" in compiled.texts:
            assert compiled.cost is CostClass.SCAN
        else:
            assert compiled.cost is CostClass.CANDIDATE_CHECKED


def test_generated_expressions_have_every_construct() -> None:
    """A generator that stopped writing a construct would leave it untested."""
    generator = random.Random(3)
    texts = [random_expression(generator) for _ in range(6000)]
    everything = "\n".join(texts)
    axes = "child descendant parent ancestor following-sibling preceding-sibling following"
    axes += " preceding attribute namespace self descendant-or-self ancestor-or-self"
    functions = "last position count id local-name namespace-uri name string concat starts-with"
    functions += " contains substring-before substring-after substring string-length"
    functions += " normalize-space translate boolean not true false lang number sum floor ceiling"
    functions += " round"
    wanted = [f"{axis}::" for axis in axes.split()] + [f"{name}(" for name in functions.split()]
    wanted += ["node()", "text()", "comment()", "processing-instruction()", "..", ".//", "*", "@"]
    wanted += [" and ", " or ", " mod ", " div ", " * ", " + ", " - ", "(-", " | ", " = ", " != "]
    wanted += [" < ", " <= ", " > ", " >= ", "processing-instruction('p')", ")[", ")/", ")//"]
    assert [construct for construct in wanted if everything.count(construct) < 10] == []
    namespaces = ExpressionShape(has_namespace_axis=False)
    assert not any(
        "namespace::" in random_expression(generator, ALPHABET, namespaces) for _ in range(2000)
    )


def test_lxml_reads_every_generated_expression() -> None:
    generator = random.Random(4)
    for _ in range(2000):
        LxmlQuery(Query("q", random_expression(generator)))

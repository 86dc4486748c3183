"""Hostile subscriptions end in an error of the query, quickly, and never in anything else.

If these fail, a subscriber can stop a broker by what it registers.
"""

from __future__ import annotations

import random
import time

import pytest

from expression_cases import ALTERNATIVES_MAX
from pathcast.errors import QuerySyntaxError
from pathcast.query import compile_subscription
from pathcast.query.xquery import binding_of, parse, text_of
from pathcast_papers.language.xquery.scanner import DEPTH_MAX, NODES_MAX, TEXT_BYTES_MAX
from xquery_cases import NAMESPACES
from xquery_damage import TEXTS, damaged

SECONDS_MAX = 5.0
"""Of this process's own, however busy the machine is; the longest takes a tenth of it."""

NESTED = {
    "parentheses": ("(", "//a", ")"),
    "predicates": ("//a[", "b", "]"),
    "calls": ("string(", "//a", ")"),
    "constructors": ("<a>", "{//b}", "</a>"),
    "constructors in braces": ("<a>{", "//b", "}</a>"),
    "attributes": ("<a b='{string(", "//b", ")}'>{//c}</a>"),
    "FLWORs in return": ("for $a in //a return ", "1", ""),
    "FLWORs in source": ("for $a in ", "//a", " return $a"),
    "conditionals": ("if (//a) then 1 else ", "//b", ""),
    "conditions": ("if (", "//b", ") then //a else ()"),
    "quantifiers": ("some $a in //a satisfies ", "//b", ""),
    "lets": ("let $a := //a return ", "$a", ""),
}


def swallow(text: str) -> str | None:
    """Compiles a text; gives the code of the error, if any."""
    try:
        compile_subscription(text, NAMESPACES, "ids")
    except QuerySyntaxError as error:
        str(error)
        return error.code
    return None


@pytest.mark.parametrize("name", NESTED)
def test_nesting_is_bounded_wherever_it_occurs(name: str) -> None:
    before, inner, after = NESTED[name]
    for depth in (DEPTH_MAX // 2 - 2, DEPTH_MAX + 1, 2_000):
        text = before * depth + inner + after * depth
        started = time.process_time()
        code = swallow(text)
        assert time.process_time() - started < SECONDS_MAX
        if depth < DEPTH_MAX:
            assert code in (None, "query.unsupported"), depth
        else:
            assert code in ("query.too_deep", "query.too_long", "query.unsupported"), depth


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("//a, " + "- " * 3_000 + "1", "query.too_large"),
        ("//a, 1" + " + 1" * 500, "query.too_deep"),
        ("//a" + ", 1" * 2_200, None),
        ("//a" + ", b" * 2_200, "query.too_large"),
        ("<a>{//b}</a>," * NODES_MAX + "1", "query.too_large"),
        ("//a, '" + "x" * TEXT_BYTES_MAX + "'", "query.too_long"),
        ("//a" + "[b]" * 65 + ", 1", "query.too_many_predicates"),
        ("(:" * 10_000, "query.too_long"),
        ("<a " * 5_000, "XPST0003"),
        ("<a>" + "{{" * 9_000, "XPST0003"),
        ("<a b='" + "''" * 9_000, "XPST0003"),
        ("let $x := //a return " + "($x," * 3 + "$x)))", None),
        ("for $a in //a return 1 (: \ud800 :)", "XPST0003"),
        ("", "XPST0003"),
        (" \n(: nothing :)", "XPST0003"),
    ],
)
def test_length_and_size_are_bounded(text: str, code: str | None) -> None:
    started = time.process_time()
    assert swallow(text) == code
    assert time.process_time() - started < SECONDS_MAX


@pytest.mark.parametrize(
    "text",
    [
        # Every `for` has two sources: as many ways as can be written.
        "for "
        + ", ".join(f"$v{n} in (//a[x='{n}'], //b[y < {n}])" for n in range(60))
        + " return $v1",
        # Every `let` doubles what it names.
        "let $v0 := //a "
        + " ".join(f"let $v{n + 1} := ($v{n}, $v{n}/b)" for n in range(60))
        + " return $v60",
        "<r>"
        + "".join(f"{{//a{n}[b = {n}][c < {n + 1} or d]/e[f = 'x']}}" for n in range(50))
        + "</r>",
        "for " + ", ".join(f"$v{n} in //a" for n in range(500)) + " return 1",
        "//a[" + " and ".join(f"//b{n}" for n in range(100)) + "], 1",
        "//a[" + " or ".join(f"(b{n} = {n} and .//c{n} != {n})" for n in range(80)) + "], 1",
    ],
)
def test_gates_are_bounded(text: str) -> None:
    started = time.process_time()
    compiled = compile_subscription(text)
    assert 1 <= len(compiled.alternatives) <= ALTERNATIVES_MAX
    assert time.process_time() - started < SECONDS_MAX


def test_every_beginning_of_a_text() -> None:
    for text in TEXTS:
        for end in range(0, len(text), 3):
            swallow(text[:end])


def test_damaged_texts() -> None:
    rng = random.Random(20)
    for _ in range(3_000):
        text = damaged(rng, rng.choice(TEXTS), rng.randint(1, 3))
        try:
            program = parse(text, NAMESPACES)
        except QuerySyntaxError:
            continue
        # What is still a program can be written, too.
        binding_of(program)
        written = text_of(program)
        if len(written.encode()) <= TEXT_BYTES_MAX:
            assert text_of(parse(written)) == written


def test_random_bytes() -> None:
    rng = random.Random(21)
    for _ in range(2_000):
        swallow(rng.randbytes(rng.randint(0, 60)).decode("latin-1"))

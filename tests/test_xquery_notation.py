"""Canonical texts parse to the program that they were written from.

If these fail, two subscriptions are taken for one, or one for two, and `explain` shows something
that was not registered.
"""

from __future__ import annotations

import random

import pytest

from generators import VOCABULARIES, FlwrWidth, random_flwr
from pathcast.query.xquery import parse, text_of
from xquery_cases import ACCEPTED, NAMESPACES
from xquery_writer import Writer

SAME = (
    (
        "for $a in //a, $b in $a/b where $a/c and $b return <r>{$b}</r>",
        "for $x in $msg//a for $y in $x/child::b where $x/c and $y return <r >{ $y }</r>",
    ),
    ("for $a in //p:a return $a/@p:b, 1", "for $a in //Q{urn:p}a return $a/@Q{urn:p}b, 1"),
    (
        'declare default element namespace "urn:p"; for $a in //a return $a/@b',
        "for $z in //p:a return $z/@b",
    ),
    ("//a[(b and c) and d], 'x'", '(doc("x")//a[b and (c and d)], "x")'),
    ("<a b='x &amp; y'>1{//c}</a>", '<a b="x &#38; y"><![CDATA[1]]>{ //c }</a>'),
    ("(//a or //b) or //c, 1", "//a or //b or //c, 1"),
)

DIFFERENT = (
    ("for $a in //a, $b in //b return $a", "for $a in //a, $b in //b return $b"),
    ("//a, 1", "//a, 1.0"),
    ("//a, 1.0", "//a, 1e0"),
    ("//a, '1'", "//a, 1"),
    ("<a>{//b}</a>", "<a> x{//b}</a>"),
    ("<p:a>{//b}</p:a>", "<q:a xmlns:q='urn:p'>{//b}</q:a>"),
    ("<a><b/>{//c}</a>", "<a>{<b/>}{//c}</a>"),
    ("//a = 1, 2", "//a eq 1, 2"),
    ("//a/b[1], 2", "(//a/b)[1], 2"),
)


def check(text: str, namespaces: dict[str, str] | None = None) -> None:
    program = parse(text, namespaces)
    written = text_of(program)
    again = parse(written)
    assert text_of(again) == written
    # Variables have other names now; once renamed, the trees are equal.
    assert parse(text_of(again)) == again


@pytest.mark.parametrize("text", ACCEPTED)
def test_canonical_texts_read_back(text: str) -> None:
    check(text, NAMESPACES)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_programs_have_one_text(one: str, other: str) -> None:
    assert text_of(parse(one, NAMESPACES)) == text_of(parse(other, NAMESPACES))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_programs_have_different_texts(one: str, other: str) -> None:
    assert text_of(parse(one, NAMESPACES)) != text_of(parse(other, NAMESPACES))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for $s in //a where $s/b = 1 return $s", "for $v1 in //a where $v1/b = 1 return $v1"),
        (
            "<p:a>{//b}</p:a>",
            'declare namespace p = "urn:p"; <p:a>{//b}</p:a>',
        ),
        ("<a xmlns='urn:x'>{//b, //Q{}c}</a>", '<a xmlns="urn:x">{//b, //Q{}c}</a>'),
        ("<a> &#32;{//b}</a>", "<a>&#x20; {//b}</a>"),
        ("//a[./b][.//c][..]/., 1", "//a[b][.//c][..]/self::node(), 1"),
        ("(//a)[(b, c)[1]]/d, 1", "(//a)[(b, c)[1]]/d, 1"),
        ("(for $a in //a return $a)[1], 2", "(for $v1 in //a return $v1)[1], 2"),
        ("-(-(//a)) + (1 - (2 - 3)), 1", "-(-//a) + (1 - (2 - 3)), 1"),
        ("if (//a) then (1, 2) else (), 3", "if (//a) then (1, 2) else (), 3"),
        ("concat('a\"b', '&lt;', \"it's\"), //a", 'concat("a""b", "<", "it\'s"), //a'),
    ],
)
def test_what_it_looks_like(text: str, expected: str) -> None:
    assert text_of(parse(text, NAMESPACES)) == expected


def test_generated_subscriptions_read_back() -> None:
    rng, writer = random.Random(5), Writer(6)
    for number in range(150):
        vocabulary = list(VOCABULARIES.values())[number % len(VOCABULARIES)]
        generated = random_flwr(rng, vocabulary, FlwrWidth.WHOLE)
        check(generated.text, dict(generated.namespaces))
        check(writer.subscription())

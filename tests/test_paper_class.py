"""The papers' class: what is recognised as a path, what is not, and that a path means its query."""

from __future__ import annotations

import random

import pytest

from generators import (
    ALPHABET,
    ALPHABET_WITH_NAMESPACES,
    Alphabet,
    MessageShape,
    random_expression,
    random_message,
    random_query,
)
from pathcast_papers.evaluation.xpath import Evaluator
from pathcast_papers.filtering.oracle import Oracle
from pathcast_papers.language import canonical_text, compile_query
from pathcast_papers.message import parse_message

PATHS = {
    "a/b": "/a/b",
    "/descendant::a[child::b]": "//a[b]",
    "//a//.": "//a",
    "/a//@b": "/a//.[@b]",
    "//@b": "//*[@b]",
    "//a[@b and c = 'x']/text()": "//a[@b][c[.='x']][text()]",
    "//a[3 > position()][@b][1]": "//a[position()<3][@b][position()=1]",
    "/a[.//b/@c != -2]": "/a[.//b[@c!=-2]]",
    "/a[contains(., 'x')][starts-with(@b, 'y')]": "/a[contains(.,'x')][starts-with(@b,'y')]",
    "/*[@* = 1]": "/*[@*=1]",
}

OTHERS = (
    "/",
    "//.",
    "/@a",
    "/text()",
    "a | b",
    "count(//a) > 1",
    "//a[b or c]",
    "//a[not(b)]",
    "//a[last()]",
    "//a[2 and b]",
    "/descendant::a[2]",
    "(//a)[2]",
    "//a/..",
    "//a/following-sibling::b",
    "//a[/b]",
    "//a[b = c]",
    "//a[b + 1]",
    "//a['x']",
    "//a[starts-with(b, 'x')]",
    "//a[starts-with(@*, 'x')]",
    "//a[starts-with(@b, '')]",
    "//a[.//. = 'x']",
    "//a[position() = '2']",
    "//comment()",
    "//a[count(b)]",
    "//a[@b = 1 div 0]",
)


@pytest.mark.parametrize(("text", "path"), PATHS.items())
def test_paths(text: str, path: str) -> None:
    compiled = compile_query(text)
    assert compiled.path is not None
    assert canonical_text(compiled.path) == compiled.text == path
    assert compile_query(path).path == compiled.path


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_path_of_the_class(text: str) -> None:
    assert compile_query(text).path is None


@pytest.mark.parametrize("alphabet", [ALPHABET, ALPHABET_WITH_NAMESPACES])
def test_a_path_means_what_its_query_means(alphabet: Alphabet) -> None:
    generator = random.Random(41)
    namespaces = dict(alphabet.namespaces)
    shape = MessageShape(has_markup=True, has_odd_values=True)
    found = 0
    for _ in range(20):
        messages = [random_message(generator, alphabet, shape) for _ in range(6)]
        oracles = [Oracle(parse_message(message)) for message in messages]
        texts = [random_query(generator, alphabet) for _ in range(10)]
        texts += [random_expression(generator, alphabet) for _ in range(20)]
        for compiled in (compile_query(text, namespaces) for text in texts):
            if compiled.path is None:
                continue
            for oracle in oracles:
                expected = Evaluator(oracle.tree).holds(compiled.expression)
                assert bool(oracle.select(compiled.path.steps)) == expected, compiled
                found += expected
    assert found > 200

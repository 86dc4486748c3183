"""Properties of normalisation on generated queries.

If these fail, equal queries no longer share a state, a query changes its meaning on the way to the
engine, or some text gets past the typed errors.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from random import Random
from types import ModuleType

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lxml import etree

from pathcast.errors import QuerySyntaxError
from pathcast.query import (
    canonical_form,
    names,
    normalise,
    parse,
)
from query_writer import ATTRIBUTES, NAMES, NUMBERS, STRINGS, Gardener, Maker, Path, Writer


class SeededRandom(Random):
    """A generator that shows its seed when an example fails."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def __repr__(self) -> str:
        return f"SeededRandom({self.number})"


randoms = st.builds(SeededRandom, st.integers(0, 2**32 - 1))


@pytest.fixture(scope="module")
def kernel() -> ModuleType:
    try:
        return importlib.import_module("pathcast_kernel")
    except ImportError as error:
        pytest.skip(f"the native kernel is not installed: {error}")


def as_lxml_reads(canonical: str) -> str:
    """Canonical text in XPath 1.0, which has no predicates after `.`."""
    return canonical.replace("//.[", "/descendant-or-self::*[")


def document(random: Random) -> etree._Element:
    """A small message over the names and values that queries are made of."""
    root = etree.Element(random.choice(NAMES[:-1]))
    elements = [root]
    for _ in range(random.randint(2, 20)):
        parent = random.choice(elements)
        if parent.xpath("count(ancestor::*)") < 5:
            elements.append(etree.SubElement(parent, random.choice(NAMES[:-1])))
    values = [*STRINGS, *(f"{number:g}" for number in NUMBERS)]
    for element in elements:
        for name in ATTRIBUTES[:-1]:
            if random.random() < 0.7:
                element.set(name, random.choice(values))
        if random.random() < 0.6:
            element.text = random.choice(values)
        if element is not root and random.random() < 0.2:
            element.tail = random.choice(values)
    return root


def selects(query: str, root: etree._Element) -> bool:
    return bool(root.getroottree().xpath(query))


@given(randoms)
@settings(max_examples=500, deadline=None)
def test_notations_of_one_query_have_one_canonical_form(random: Random) -> None:
    path = Maker(random).query()
    first, second = Writer(random).write(path), Writer(random).write(path)
    assert canonical_form(first) == canonical_form(second)


@given(randoms)
@settings(max_examples=500, deadline=None)
def test_branches_may_stand_anywhere(random: Random) -> None:
    path = Maker(random).query()
    moved = Gardener(random).moved(path)
    assert canonical_within_limits(random, moved) == canonical_within_limits(random, path)


def canonical_within_limits(random: Random, path: Path) -> str:
    """The canonical form of a path as it is written; few are written with too many nodes."""
    try:
        return canonical_form(Writer(random).write(path))
    except QuerySyntaxError as error:
        assume(error.code != "query.too_large")
        raise


def test_branches_do_move() -> None:
    """Guard: most paths with branches have others that ask the same."""
    branched = moved = 0
    for seed in range(300):
        random = Random(seed)
        path = Maker(random).query()
        if any(stage.conditions for step in path.steps for stage in step.stages[-1:]):
            branched += 1
            moved += Gardener(random).moved(path) != path
    assert moved >= branched * 0.5 >= 50


@given(randoms)
@settings(max_examples=500, deadline=None)
def test_brackets_never_nest_deeper_than_as_moved(random: Random) -> None:
    """The canonical form nests as little as any way to put the branches does."""
    path = Maker(random).query()
    normal = normalise(Writer(random).write(path))
    moved = Gardener(random).moved(path)
    written = Writer(random, is_plain=True, is_usual=True).write(moved)
    # A comparison on the end of a nested path takes a bracket of its own.
    assert brackets(normal.text) <= brackets(written) + 1


def brackets(text: str) -> int:
    """How deep brackets and calls of strings nest."""
    deepest = level = 0
    for character in re.sub(r"'[^']*'|\"[^\"]*\"|\(\s*\)", "", text):
        level += (character in "[(") - (character in "])")
        deepest = max(deepest, level)
    return deepest


@given(randoms)
@settings(max_examples=500, deadline=None)
def test_canonical_text_reads_back(random: Random) -> None:
    normal = normalise(Writer(random).write(Maker(random).query()))
    canonical = normal.text
    assert normalise(canonical) == normal
    assert canonical_form(canonical) == canonical


@given(randoms)
@settings(max_examples=500, deadline=None)
def test_canonical_form_selects_the_same_messages(random: Random) -> None:
    path = Maker(random, budget=2).query()
    query = Writer(random, is_plain=True).write(path)
    moved = Writer(random, is_plain=True).write(Gardener(random).moved(path))
    canonical = as_lxml_reads(canonical_form(query))
    for _ in range(3):
        root = document(random)
        answer = selects(query, root)
        assert selects(moved, root) == answer, etree.tostring(root)
        assert selects(canonical, root) == answer, etree.tostring(root)


def test_the_comparison_with_lxml_sees_both_answers() -> None:
    """Guard: a test on queries that never match, or always do, would prove nothing."""
    answers: Counter[bool] = Counter()
    for seed in range(400):
        random = Random(seed)
        query = Writer(random, is_plain=True).write(Maker(random, budget=2).query())
        canonical = as_lxml_reads(canonical_form(query))
        root = document(random)
        answer = selects(query, root)
        assert answer == selects(canonical, root), (seed, query, canonical)
        if "[" in canonical:
            answers[answer] += 1
    assert min(answers[True], answers[False]) >= 40, answers


SYMBOLS = "/ // . .. @ * [ ] ( ) , :: $ ' \" = != <> < <= > >= + - | & ! { } Q{ } ; # \\"
OPERANDS = "a b a:b *:a x- 1 2.5 .5 'x' \"y\" text() position() last() node() count( $msg doc('x')"
WORDS = "and or div mod child:: attribute:: descendant:: self::node() parent:: foo:: é not("
FRAGMENTS = (*SYMBOLS.split(), *OPERANDS.split(), *WORDS.split(), " ", "\n", "\u3000", "\x00")


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join))
@settings(max_examples=400, deadline=None)
def test_pieces_of_queries_give_a_form_or_a_typed_error(text: str) -> None:
    check_garbage(text)


@given(st.text(max_size=60))
def test_random_text_gives_a_form_or_a_typed_error(text: str) -> None:
    check_garbage(text)


@given(randoms, st.data())
def test_damaged_queries_give_a_form_or_a_typed_error(random: Random, data: st.DataObject) -> None:
    text = Writer(random).write(Maker(random).query())
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 4)))
    check_garbage(text[:start] + data.draw(st.sampled_from(FRAGMENTS)) + text[end:])


def check_garbage(text: str) -> None:
    try:
        parse(text)
        normal = normalise(text, {"a": "urn:a"})
    except QuerySyntaxError as error:
        caught = error
    else:
        assert normalise(normal.text) == normal
        return
    assert caught.params["reason"]
    offset = caught.params.get("offset", 0)
    assert isinstance(offset, int)
    assert 0 <= offset <= len(str(caught.params["query"]))
    assert str(caught)


@given(random=randoms)
@settings(max_examples=500, deadline=None)
def test_kernel_takes_usual_notation_and_canonical_text(random: Random, kernel: ModuleType) -> None:
    query = Writer(random, is_usual=True).write(Maker(random).query())
    canonical = canonical_form(query)
    assert kernel.canonical_form(query, {}) == canonical
    assert kernel.canonical_form(canonical, {}) == canonical


@given(random=randoms)
@settings(max_examples=500, deadline=None)
def test_kernel_moves_branches_alike(random: Random, kernel: ModuleType) -> None:
    path = Maker(random).query()
    moved = Writer(random, is_usual=True).write(Gardener(random).moved(path))
    assert kernel.canonical_form(moved, {}) == canonical_form(Writer(random).write(path))


@given(random=randoms)
@settings(max_examples=500, deadline=None)
def test_kernel_never_gives_another_form(random: Random, kernel: ModuleType) -> None:
    query = Writer(random).write(Maker(random).query())
    assert kernel.canonical_form(query, {}) in (None, canonical_form(query))


@given(text=st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join))
@settings(max_examples=500, deadline=None)
def test_kernel_accepts_nothing_that_is_refused(kernel: ModuleType, text: str) -> None:
    check_kernel_on_garbage(kernel, text)


@given(random=randoms, data=st.data())
@settings(max_examples=500, deadline=None)
def test_kernel_accepts_no_damaged_query_that_is_refused(
    kernel: ModuleType, random: Random, data: st.DataObject
) -> None:
    text = Writer(random, is_usual=True).write(Maker(random).query())
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 3)))
    piece = data.draw(st.sampled_from(("", *FRAGMENTS)))
    check_kernel_on_garbage(kernel, text[:start] + piece + text[end:])


def check_kernel_on_garbage(kernel: ModuleType, text: str) -> None:
    form = kernel.canonical_form(text, {"a": "urn:a"})
    if form is not None:
        assert canonical_form(text, {"a": "urn:a"}) == form


@pytest.mark.nightly
def test_long_run(kernel: ModuleType) -> None:
    """Everything above, for many more queries."""
    for seed in range(30_000):
        random = SeededRandom(seed)
        path = Maker(random, budget=random.choice((2, 6, 12))).query()
        plain = Writer(random, is_plain=True).write(path)
        usual = Writer(random, is_usual=True).write(Gardener(random).moved(path))
        canonical = canonical_form(plain)
        assert kernel.canonical_form(usual, {}) == canonical, seed
        assert canonical_form(usual) == canonical, seed
        assert kernel.canonical_form(canonical, {}) == canonical, seed
        root = document(random)
        assert selects(plain, root) == selects(as_lxml_reads(canonical), root), seed
        at = random.randrange(len(usual))
        end = at + random.randint(0, 3)
        check_kernel_on_garbage(kernel, usual[:at] + random.choice(FRAGMENTS) + usual[end:])


def test_compilers_agree_on_the_characters_of_names(kernel: ModuleType) -> None:
    """At both ends of every range of name characters, where a wrong bound would show."""
    edges = {ord(char) for char in names.NCNAME if ord(char) > 127}
    assert len(edges) >= 25
    around = {edge + step for edge in edges for step in (-1, 0, 1)} - set(range(0xD800, 0xE000))
    for text in (prefix + chr(code) for code in sorted(around) for prefix in ("", "a", "é")):
        is_name = names.is_ncname(text)
        assert (kernel.canonical_form(f"/{text}", {}) is not None) == is_name, ascii(text)

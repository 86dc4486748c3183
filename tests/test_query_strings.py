r"""Strings in queries, whatever they hold: they are values, never text that is read again.

If one of these fails, a constant with quotes of both kinds, brackets or braces becomes a part of
the query: it is answered wrongly, refused, or asks what somebody has slipped into it.
"""

from __future__ import annotations

import importlib
import random
from functools import cache
from pathlib import Path
from types import ModuleType
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content_cases import Content
from every_engine import engines
from generators.string_text import ODD_STRINGS, joined_string, written_string
from oracles import ENGINES, lxml_matches, missing_reason
from oracles.engines import EngineName, made_by
from pathcast.errors import QuerySyntaxError
from pathcast.model import Query, Subscription
from pathcast.query import (
    canonical_form,
    compile_query,
    parse,
)
from pathcast.query.canonical import has_literal, literal_text
from pathcast.query.constants import constant_of
from pathcast.query.syntax import Literal
from pathcast.query.xquery import parse as parse_xquery
from pathcast.query.xquery import text_of
from pathcast.registry import Registry, Snapshot
from pathcast_papers import language
from pathcast_papers.language.parser import DEPTH_MAX

VALUES = (*ODD_STRINGS, "'", '"', "a", "", "']", "5")

FRAMES = (
    # Conditions of paths: attributes, text, values, ends of nested paths, either way round.
    *("//a[. = {}]", "//a[. != {}]", "//a[. < {}]", "//a[{} = .]", "//a[{} >= @x]"),
    *("//a[@x = {}]", "//a[@x != {}]", "//a[@* = {}]", "//a[text() = {}]", "/r[a = {}]"),
    *("//r[.//@x = {}][2]", "/r/a/b[../@x = {}]", "/r[a/@x = {} and a]/b", "/r/a = {}"),
    *("//a[contains(., {})]", "//a[contains(@x, {})]", "//a[starts-with(., {})]"),
    *("//a[starts-with(@x, {})][last()]", "//a[contains(text(), {})]"),
    # Alternatives and expressions.
    *("//a[not(@x = {})]", "//a[@x = {} or @y = 'y']", "//a[normalize-space(@x) = {}]"),
    *("//a[substring-before(@x, {})]", "//a[substring-after(@x, {}) = 'z']", "boolean({})"),
    *("//a[concat(., 'z') = concat({}, 'z')][last()]", "count(//a[@x = {}]) > 1"),
    *("//a[translate(., {}, '') = '']", "//a[string-length({}) > string-length(@x)]"),
    *("//a[local-name() = {}]", "//a[name() != {}]", "//*[namespace-uri() = {}]"),
    *("//a[preceding-sibling::a[@x = {}]]", "string(//a[2]) = {}", "(//a | //b)[. = {}]"),
)

SPECIAL = "''''\"\"\"\"[](){}<>&;#~|^/=@*:, \t\r\nxX1é\U0001f600"
strings = st.text(
    st.sampled_from(SPECIAL)
    | st.characters(min_codepoint=32, exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"),
    max_size=40,
)
"""Of characters that XML allows, most of them with a meaning in some language."""

randoms = st.integers(0, 2**32 - 1).map(random.Random)


@cache
def every_frame() -> Content:
    """Each frame with each value, and messages that have the values and what is near them."""
    generator = random.Random(9)
    texts = [
        frame.format(*[written_string(generator, value)] * frame.count("{}"))
        for frame in FRAMES
        for value in VALUES
    ]
    return Content(texts, [message_of(value) for value in VALUES])


def message_of(value: str) -> bytes:
    swapped = value.translate(str.maketrans("'\"", "\"'"))
    rows = (value, swapped, value[1:], f"{value}z", f"z{value}")
    return "<r>{}<b>{}</b></r>".format(
        "".join(f"<a x={quoteattr(row)} y='y'>{escape(row)}</a>" for row in rows), escape(value)
    ).encode()


@engines
def test_every_place_of_every_string(engine: EngineName) -> None:
    content = every_frame()
    assert content.matches > len(content.texts)
    index = content.index(engine)
    content.check(index)
    content.check(index.freeze())


@pytest.mark.parametrize(
    ("saved_by", "opened_by"),
    [("kernel", "kernel"), ("kernel", "reference"), ("reference", "reference")],
)
def test_snapshots_keep_every_string(
    saved_by: EngineName, opened_by: EngineName, tmp_path: Path
) -> None:
    for engine in (saved_by, opened_by):
        if (reason := missing_reason(engine)) is not None:
            pytest.skip(reason)
    content, path = every_frame(), tmp_path / "index.snapshot"
    content.index(saved_by).freeze().save(path)
    snapshot = made_by(opened_by, Snapshot.open, path)
    assert {query_id: snapshot.query(query_id).text for query_id in content.texts} == content.texts
    content.check(snapshot)


def test_explain_shows_every_string() -> None:
    """What it shows of a query reads back as the path that was indexed."""
    content = every_frame()
    (engine, *_) = (name for name in ENGINES if missing_reason(name) is None)
    index = content.index(engine)
    for query in content.queries[:: len(VALUES) + 1]:
        for number in (0, 4):
            report = index.explain(query.id, content.messages[number])
            assert report.is_match == (number in content.truth[query.id]), query.text


@given(value=strings, generator=randoms)
@settings(max_examples=500, deadline=None)
def test_strings_read_back(value: str, generator: random.Random) -> None:
    """So no two strings have one text."""
    assert constant_of(parse(literal_text(value))) == value
    assert constant_of(parse(joined_string(generator, value))) == value
    assert constant_of(parse(written_string(generator, value))) == value
    assert has_literal(value) == (not literal_text(value).startswith("concat("))


@given(value=strings, generator=randoms)
@settings(max_examples=500, deadline=None)
def test_canonical_texts_read_back(
    value: str, generator: random.Random, kernel: ModuleType
) -> None:
    comparison = language.Comparison(language.Operator.EQ, value)
    conditions = (
        language.ValueCondition(comparison),
        language.AttributeCondition(language.Name("", "x"), comparison),
        language.TextCondition(comparison),
    )
    stages = (language.Stage((), conditions),)
    steps = (language.Step(language.Axis.DESCENDANT, language.Name("urn:'\"[]", "a"), stages),)
    wanted = language.canonical_text(language.NormalQuery(steps))
    written = [written_string(generator, value) for _ in conditions]
    text = "//Q{{urn:'\"[]}}a[.={}][{}=@x][text()={}]".format(*written)
    assert language.normalise(wanted).steps == steps
    assert canonical_form(text) == wanted
    assert canonical_form(wanted) == wanted
    assert kernel.canonical_form(wanted, {}) == wanted
    assert kernel.canonical_form(text, {}) in (None, wanted)
    usual = f"//a[@x={joined_string(generator, value)}]"
    assert kernel.canonical_form(usual, {}) == canonical_form(usual)


@given(value=strings, generator=randoms)
@settings(max_examples=200, deadline=None)
def test_expressions_read_back(value: str, generator: random.Random) -> None:
    written = written_string(generator, value)
    expression = compile_query(f"//a[preceding::b[@x = {written}]][last()]").expression
    assert expression is not None
    assert compile_query(expression).expression == expression


@given(value=strings.filter(lambda value: "\r" not in value))
@settings(max_examples=300, deadline=None)
def test_strings_of_xquery_read_back(value: str) -> None:
    """As a literal, in a constructor and as a namespace."""
    body = Literal(value)
    doubled = value.replace("&", "&amp;").replace("'", "''")
    program = parse_xquery(f"'{doubled}', //a")
    assert program.body.items[0] == body  # type: ignore[union-attr]
    texts = [text_of(program), f"<a b='{in_markup(doubled)}'>{in_markup(value)}{{//a}}</a>"]
    if value.strip() and not {"{", "}"} & set(value):
        texts.append(f"declare namespace p = '{doubled}'; <p:a>{{//p:a}}</p:a>")
    for text in texts:
        again = text_of(parse_xquery(text))
        assert text_of(parse_xquery(again)) == again


def in_markup(value: str) -> str:
    """Characters of a constructor."""
    return escape(value.replace("&amp;", "&"), {"{": "{{", "}": "}}"})


@pytest.fixture(scope="module")
def kernel() -> ModuleType:
    if (reason := missing_reason("kernel")) is not None:
        pytest.skip(reason)
    return importlib.import_module("pathcast_kernel")


def test_compilers_agree_at_the_greatest_depth(kernel: ModuleType) -> None:
    """A `concat` is a bracket more, as written and in canonical form."""
    accepted: set[int] = set()
    ends = (".", "@x", "text()", "b", "b/@x", "b//text()")
    conditions = [f"{end} = {{}}" for end in ends] + ["contains(., {})", "{} = b"]
    for condition in conditions:
        for string in ("'u'", "concat('u', 'v')", "concat(\"'\", '\"')"):
            for depth in range(DEPTH_MAX - 4, DEPTH_MAX + 1):
                inner = f"[{condition.format(string)}]"
                text = "/a" + "[c" * (depth - 1) + inner + "]" * (depth - 1)
                # A branch that no other can stand in for.
                text = text.replace("[c", "[@x][c/d][position()=1][c", 1)
                by_kernel, by_python = kernel.canonical_form(text, {}), form_or_code(text)
                if by_python == "query.too_deep":
                    assert by_kernel is None, text
                    continue
                accepted.add(depth)
                assert by_kernel in (None, by_python), text
                assert canonical_form(by_python) == by_python, text
                assert kernel.canonical_form(by_python, {}) == by_python, text
    assert max(accepted) >= DEPTH_MAX - 1


def form_or_code(text: str) -> str:
    """The canonical form, or the code of the error."""
    try:
        return canonical_form(text)
    except QuerySyntaxError as error:
        return error.code


@engines
def test_a_string_of_many_quotes(engine: EngineName) -> None:
    """Its canonical text has more parts than a query may be written with."""
    value = "'\"" * 400
    text = f"//a[@x = translate('{'pq' * 400}', 'pq', concat(\"'\", '\"'))]"
    index = made_by(engine, Registry)
    assert not index.add([Query("q", text)]).rejected
    messages = [f"<a x={quoteattr(each)}/>".encode() for each in (value, value[1:])]
    for matcher in (index, index.freeze()):
        assert [list(each.query_ids) for each in matcher.match(messages)] == [["q"], []]


@engines
@pytest.mark.parametrize("text", ["//a[. = 'it''s']", '//a[. = "a""b"]', "//a[contains(., '''')]"])
def test_doubled_quotes_are_no_xpath(engine: EngineName, text: str) -> None:
    """Two literals side by side, not an escape: XPath 2.0 has another meaning for that."""
    report = made_by(engine, Registry).add([Query("q", text)])
    assert report.rejected["q"].code == "XPST0003"


@engines
@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_subscriptions_with_any_string(engine: EngineName, value: str) -> None:
    """In XPath as in XQuery, whether shared plans, a program or a gate has the string."""
    doubled = '"' + value.replace("&", "&amp;").replace('"', '""').replace("\r", "&#13;") + '"'
    xpath = literal_text(value)
    texts = {
        "path": f"//a[@x = {xpath}]",
        "part": f"//a[contains(., {xpath})][last()]",
        "shared": f"for $a in //a where $a/@x = {doubled} return <hit>{{$a/@x}}</hit>",
        "program": f"<r>{{for $a in //a[contains(@x, {doubled})] order by $a return $a}}</r>",
        "let": f"for $a in //a let $s := {doubled} where $a/@x = $s return <s v='{{$s}}'/>",
    }
    registry = made_by(engine, Registry)
    report = registry.add([Subscription(name, name, text) for name, text in texts.items()])
    assert not report.rejected, report.rejected
    rows = (value, "-" if value != "-" else "+")
    messages = [
        f"<r><a x={quoteattr(row)}>{escape(row, {chr(13): '&#13;'})}</a></r>".encode()
        for row in rows
    ]
    assert lxml_matches(Query("q", texts["path"]), messages[0])
    for number, message in enumerate(messages):
        found = {delivery.subscription_id for delivery in registry.deliver(message)}
        is_part = value in rows[number]
        wanted = {"path", "shared", "let"} if number == 0 else set()
        assert found == wanted | ({"part", "program"} if is_part else set()), message

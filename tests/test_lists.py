"""Lists of values: one atom of the index, however many values, with the meaning of each language.

If these fail, a subscriber with a list misses messages or gets others', or a list costs as many
look-ups as it has values. XPath is held to lxml, XQuery to the interpreter of the papers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import quoteattr

import pytest
from lxml import etree

from customised_cases import GENEROUS, by_broker, by_reference
from oracles.paths import is_found, lets_pass, of_papers
from pathcast.boundary import native
from pathcast.errors import QuerySyntaxError
from pathcast.model import Query, Subscription
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.query import compile_query, compile_subscription, normalise, population_of
from pathcast.registry import Registry
from pathcast_papers.language.canonical import canonical_text
from pathcast_papers.language.xquery import parse as parse_by_papers
from pathcast_papers.message import parse_message

pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")

STRINGS: Final = (
    *("A", "B", "AB", "a", "", " ", " A", "A ", "1", "1.0", "01", "+1", "1e0", "NaN", "INF", "-0"),
    *('"', "'", "\"'", "&", "<", "(A,B)", "A,B", "\u00e9", "\U00010000", "A\tB", "x" * 70),
)
NUMBERS: Final = ("1", "1.0", "01", "10", "-1", "0", "0.5", "1e2", "-0", "9007199254740993")
PLACES: Final = ("@x", "@*", "text()", ".", "b", "b/@x", "b/text()", ".//b", "*[2]", "../b")


def message(chosen: random.Random) -> bytes:
    """A small tree with values of the lists, several and none at a place."""

    def value() -> str:
        return chosen.choice(STRINGS if chosen.random() < 0.7 else NUMBERS)

    def attribute() -> str:
        name = chosen.choice(("x", "y"))
        return f" {name}={quoteattr(value())}" if chosen.random() < 0.7 else ""

    def text() -> str:
        shown = value().replace("&", "&amp;").replace("<", "&lt;")
        return shown if chosen.random() < 0.7 else ""

    def element(depth: int) -> str:
        name = chosen.choice("ab")
        inner = "".join(
            text() + (element(depth - 1) if depth else "") for _ in range(chosen.randrange(4))
        )
        return f"<{name}{attribute()}>{inner}{text()}</{name}>"

    return f"<r>{''.join(element(2) for _ in range(3))}</r>".encode()


def xpath_literal(value: str) -> str:
    if '"' not in value:
        return f'"{value}"'
    return f"'{value}'" if "'" not in value else "concat('\"', \"'\")"


def xquery_literal(value: str) -> str:
    return '"' + value.replace("&", "&amp;").replace('"', '""') + '"'


def xpaths(chosen: random.Random, count: int) -> Iterator[str]:
    """`or` of equalities, most of one place; positions, conjunctions and negations around it."""
    for _ in range(count):
        place = chosen.choice(PLACES)
        is_numeric = chosen.random() < 0.4
        parts = []
        for _ in range(chosen.randint(2, 5)):
            own = place if chosen.random() < 0.85 else chosen.choice(PLACES)
            literal = xpath_literal(chosen.choice(STRINGS))
            if is_numeric and chosen.random() < 0.9:
                literal = chosen.choice(
                    ("1", "01.0", "10", "-1", "0", "-0", ".5", "100", "1 div 0")
                )
            elif chosen.random() < 0.1:
                literal = chosen.choice(("true()", f"string({literal})"))
            operator = "=" if chosen.random() < 0.9 else "!="
            swapped = chosen.random() < 0.2
            parts.append(
                f"{literal} {operator} {own}" if swapped else f"{own} {operator} {literal}"
            )
        joined = " or ".join(parts)
        shape = chosen.choice(
            (
                "//a[{0}]",
                "//a[{0}]/b",
                "//a[{0}][2]",
                "//a[2][{0}]",
                "/r/*[{0} or @y]",
                "//b[not({0})]",
                "//a[({0}) and ({1})]",
                "//a[b[{0}]]/@x",
                "//a[({0}) or @x = 'A']",
            )
        )
        other = " or ".join(f"@y = {xpath_literal(chosen.choice(STRINGS))}" for _ in range(3))
        yield shape.format(joined, other)


def lists(chosen: random.Random) -> str:
    """A list of literals: strings, numbers or both."""
    kind = chosen.random()
    values = []
    for _ in range(chosen.choice((1, 2, 2, 3, 5, 20))):
        is_string = kind < 0.5 or (kind > 0.85 and chosen.random() < 0.5)
        values.append(
            xquery_literal(chosen.choice(STRINGS)) if is_string else chosen.choice(NUMBERS)
        )
    if chosen.random() < 0.1:
        values.insert(chosen.randrange(len(values)), f"({values[0]}, {values[-1]})")
    return f"({chosen.choice((', ', ',')).join(values)})"


def xqueries(chosen: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        place, values = chosen.choice(PLACES), lists(chosen)
        operator = "=" if chosen.random() < 0.85 else chosen.choice(("!=", "<", ">="))
        compared = f"{place} {operator} {values}"
        if chosen.random() < 0.15:
            compared = f"{values} {operator} {place}"
        shape = chosen.choice(
            (
                "(//a[{0}], ())",
                "for $a in //a[{0}] return $a/b",
                "for $a in //a[{0}][2] return $a",
                "for $a in //a where $a/@x = {1} return <t>{{$a/b}}</t>",
                "<r>{{for $a in //a where $a/b = {1} and $a/@y return $a}}</r>",
                "for $a in //b where $a/text() = {1} return $a",
                "let $l := {1} for $a in //a where $a/@x = $l return $a",
                "for $a in //a[not({0})] return $a",
                "for $a in //*[not(. = {1})] return string($a/@x)",
                "for $a in //a where some $b in $a/b satisfies $b = {1} return $a",
                "for $a in //a where every $b in $a/b satisfies $b/@x = {1} return $a",
                "for $a in //a where count($a/b) = {1} return $a",
                "for $a in //a where string($a/@x) = {1} or number($a/b[1]) = {1} return $a",
                "for $a in //a[{0} or @y = {1}] return $a",
                "for $a in //a where if ($a/@x = {1}) then $a/b else $a/@y = {1} return $a",
            )
        )
        yield shape.format(compared, values)


@pytest.mark.parametrize("seed", range(4))
def test_or_of_equalities_is_what_lxml_says(seed: int) -> None:
    chosen = random.Random(seed)
    queries = list(dict.fromkeys(xpaths(chosen, 200)))
    index = Registry()
    report = index.add(Query(str(at), text) for at, text in enumerate(queries))
    assert not report.rejected, report.rejected
    # libxml2 reads exponents, which XPath 1.0 has not.
    messages = [message(chosen).replace(b"1e", b"1f") for _ in range(40)]
    rows = index.match(messages)
    evaluated = [etree.XPath(text) for text in queries]
    matched = 0
    for content, row in zip(messages, rows, strict=True):
        tree = etree.fromstring(content)
        wanted = {str(at) for at, query in enumerate(evaluated) if query(tree)}
        wrong = wanted ^ set(row.query_ids)
        assert not wrong, ([queries[int(number)] for number in wrong], content)
        matched += len(wanted)
    assert 0.1 < matched / len(messages) / len(queries) < 0.9


@pytest.mark.parametrize("seed", range(4))
def test_lists_are_what_the_papers_say(seed: int) -> None:
    chosen = random.Random(100 + seed)
    queries = list(dict.fromkeys(xqueries(chosen, 100)))
    registry = Registry(limits=GENEROUS)
    report = registry.add([Subscription(str(at), "desk", text) for at, text in enumerate(queries)])
    assert not report.rejected, report.rejected
    messages = [message(chosen) for _ in range(12)]
    delivered = 0
    for content, found in zip(messages, by_broker(registry, messages), strict=True):
        tree = parse_message(content)
        for at, text in enumerate(queries):
            wanted = by_reference(text, content, None)
            assert found.get(str(at)) == wanted, (text, content)
            if wanted is not None:
                delivered += 1
                paths = compile_subscription(text).paths
                assert any(is_found(path, tree) for path in paths), (text, content)
    assert delivered > len(messages) * len(queries) // 10


# A subscription, and the paths of which one must hold.
ATOMS: Final = (
    ("//a[@c = 'B' or @c = 'A' or 'B' = @c]", ["//a[@c=('A','B')]"]),
    ("//a[@c = 'A' or @c = 'A']", ["//a[@c='A']"]),
    ("//a[@c = 'A' or @d = 'B' or @c = 'B']", ["//a[@c=('A','B')]", "//a[@d='B']"]),
    ("//a[@c = 'A' or @c = 'B'][2]", ["//a[@c=('A','B')][position()=2]"]),
    ("//a[b/c = 'A' or b/c = 'B']", ["//a/b/c[.=('A','B')]"]),
    ("//a[@c = 2 or @c = 1 or 2.0 = @c]", ["//a[@c=(1,2)]"]),
    ("//a[@c = 1 or @c = 01]", ["//a[@c=1]"]),
    ("//a[@c = 1 or @c = 2 or @c = 1 div 0 or @d = 1]", ["//a[@c]", "//a[@d=1]"]),
    (
        "for $a in //a where $a/@c = 1 or $a/@c = 2 or $a/@d = 3 return $a",
        ["//a[double(@c)=(1,2)]", "//a[double(@d)=3]"],
    ),
    (
        "for $a in //a where $a/c = 1 or $a/c = 'x' or $a/c = -2 return $a",
        ["//a/c[.='x']", "//a/c[double(.)=(-2,1)]"],
    ),
    ("//a[@c = '1' or @c = 1 or @c = '2']", ["//a[@c=('1','2')]", "//a[@c=1]"]),
    ("(//a[@c = ('B', \"A\")], ())", ["//a[@c=('A','B')]"]),
    ("for $a in //a where ('A', 'B') = $a/@c return $a", ["//a[@c=('A','B')]"]),
    ("for $a in //a where $a/c = (2, 1.0, 1e0, -3) return $a", ["//a/c[double(.)=(-3,1,2)]"]),
    (
        "for $a in //a where $a/@c = (1, '1', 'x') return $a",
        ["//a[@c=('1','x')]", "//a[double(@c)=1]"],
    ),
    ("for $a in //a where $a/@c = ('A', 'A') return $a", ["//a[@c='A']"]),
    ("let $l := ('A', 'B') for $a in //a where $a/@c = $l return $a", ["//a[@c=('A','B')]"]),
    ("for $a in //a[not(. = ('A', 'B'))] return $a", ["//a[.!='A'][.!='B']"]),
    ("for $a in //a where $a/@c != ('A', 'B') return $a", ["//a[@c!='A']", "//a[@c!='B']"]),
)


@pytest.mark.parametrize(("text", "expected"), ATOMS, ids=[text for text, _ in ATOMS])
def test_one_atom(text: str, expected: list[str]) -> None:
    compiled = compile_subscription(text)
    assert list(compiled.alternatives) == expected
    for path in expected:
        assert native.NormalPath(path).text == path


def test_a_list_covers_its_parts() -> None:
    def path(condition: str) -> native.NormalPath:
        return native.NormalPath(f"//a[{condition}]")

    wide = path("@c=('A','B','C')")
    for narrow in ("@c='A'", "@c=('A','C')", "@c=('A','B','C')", "@c=('A','B')][@d"):
        assert wide.covers(path(narrow)), narrow
    for other in ("@c='D'", "@c=('A','D')", "@c", "@d=('A','B')", "@c!='D'"):
        assert not wide.covers(path(other)), other
    numbers = path("double(@c)=(1,2)")
    for narrow in ("@c='1'", "@c=('1','02')", "@c=1", "double(@c)=2"):
        assert numbers.covers(path(narrow)), narrow
    assert not numbers.covers(path("double(@c)=(1,3)"))
    plain = path("@c=(1,2)")
    for narrow in ("@c='1'", "@c=('1','02')", "@c=2", "@c=(1,2)"):
        assert plain.covers(path(narrow)), narrow
    for other in ("double(@c)=2", "double(@c)=(1,2)", "@c=(1,3)", "@c=('1','+2')"):
        assert not plain.covers(path(other)), other
    assert numbers.covers(plain)
    assert path("starts-with(@c,'A')").covers(path("@c=('AB','AC')"))
    assert path("double(@c)<3").covers(numbers)
    # A broker sends one entry for a list.
    assert disjuncts_of("for $a in //a where $a/@c = ('B', 'A') return $a") == (
        "//a[@c=('A','B')]",
    )


def test_ten_thousand_values_are_one_condition() -> None:
    values = [f"CODE{number:06d}" for number in range(10_000)]
    shown = ",".join(f'"{value}"' for value in reversed(values))
    text = f"for $a in //a where $a/@c = ({shown}) return $a"
    compiled = compile_subscription(text)
    assert len(compiled.alternatives) == 1
    registry = Registry()
    assert not registry.add([Subscription("list", "desk", text)]).rejected
    messages = [b"<r><a c='CODE009999'/></r>", b"<r><a c='CODE01000'/><b c='CODE000001'/></r>"]
    assert [sorted(each) for each in by_broker(registry, messages)] == [["list"], []]
    assert [by_reference(text, each, {}) is not None for each in messages] == [True, False]
    (gate,) = compiled.alternatives
    assert canonical_text(of_papers(native.NormalPath(gate))) == gate
    assert [lets_pass(compiled, each) for each in messages] == [True, False]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (",".join("1" for _ in range(100_001)), "query.too_many_values"),
        (",".join(f"'{'x' * 100}{number}'" for number in range(11_000)), "query.too_long"),
        ("'A') return <t>" + "x" * 40_000 + "</t> (: ", "query.too_long"),
    ],
)
def test_lists_have_bounds(values: str, code: str) -> None:
    text = f"for $a in //a where $a/@c = ({values}) return $a"
    report = Registry().add([Subscription("list", "desk", text)])
    assert report.rejected["list"].code == code
    with pytest.raises(QuerySyntaxError) as refused:
        parse_by_papers(text)
    assert (refused.value.code, refused.value.params) == (code, report.rejected["list"].params)


def test_a_population_tells_each_value_once() -> None:
    texts = {"one": "//a[@c='A' or @c='B']", "two": "//a[@c='B']"}
    found = population_of(texts, [compile_query(text).alternatives for text in texts.values()])
    counts = {
        found.constants[row["constant"]]: row["queries"] for row in found.counts().to_pylist()
    }
    assert counts == {"A": 1, "B": 2}
    assert normalise("//a[@c='A' or @c='B']").text == "//a[@c=('A','B')]"

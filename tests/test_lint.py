"""Lint: the documentation's example of each code, and what must not be complained about.

If one of these fails, subscribers are told that good queries are wrong, or not told about bad ones.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import re
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from generators import random_expression, random_message, random_query
from oracles import LxmlQuery, lxml_tree
from oracles.engines import made_by
from oracles.lxml_differences import may_differ
from oracles.paths import is_found, read_by_papers
from pathcast import Query, Registry
from pathcast.errors import MessageError, SchemaError
from pathcast.limits import Limits
from pathcast.lint import (
    CODES,
    Finding,
    LintReport,
    Structure,
    lint,
    structure_of_dtd,
    structure_of_sample,
)
from pathcast.lint.structure import VALUE_LENGTH_MAX, VALUES_MAX
from pathcast.query import normalise
from pathcast.query.condition_issues import ConditionIssue, condition_issues
from pathcast.query.notation import Notation, notation
from pathcast.query.reader import read_query
from pathcast.query.syntax import Expr, FunctionCall
from pathcast.schema import parse_dtd
from pathcast_papers.evaluation.xpath import Evaluator
from pathcast_papers.message import parse_message
from shared_data import shared_path

DOCUMENTATION = Path(__file__).resolve().parent.parent / "docs" / "lint.md"

needs_documentation = pytest.mark.skipif(
    not DOCUMENTATION.is_file(), reason="not in a clone: there is no documentation beside the tests"
)


def found(*texts: str, **given: object) -> tuple[Finding, ...]:
    queries = [Query(str(number), text) for number, text in enumerate(texts, start=1)]
    return lint(queries, **given).findings  # type: ignore[arg-type]


def codes(*texts: str, **given: object) -> list[str]:
    return [finding.code for finding in found(*texts, **given)]


def blocks(language: str) -> list[tuple[str, str]]:
    """What follows the language in the fence, and the block."""
    text = DOCUMENTATION.read_text(encoding="utf-8")
    return re.findall(rf"^```{language} ?(.*)\n((?:.*\n)*?)^```", text, re.MULTILINE)


@needs_documentation
def test_every_example_of_the_documentation_is_true() -> None:
    sample = [parse_message(block.encode()) for _, block in blocks("xml")]
    [(_, dtd)] = blocks("dtd")
    shown: set[str] = set()
    for given, block in blocks("finding"):
        lines = block.splitlines()
        at = next(number for number, line in enumerate(lines) if re.match(r"PL\d{3} ", line))
        has_caret = lines[at - 1].strip() == "^"
        texts = lines[: at - 1 if has_caret else at]
        code, severity, message = re.match(r"(PL\d{3}) (\w+): (.*)", lines[at]).groups()  # type: ignore[union-attr]
        arguments: dict[str, object] = {"sample": sample if given != "dtd" else None}
        if given == "dtd":
            arguments["dtd"] = parse_dtd(dtd)
        if given.startswith("comparisons="):
            arguments["comparisons_max"] = int(given.partition("=")[2])
        asked = [Query(str(number), text) for number, text in enumerate(texts, start=1)]
        if given == "xquery":
            asked = [query._replace(language="xquery") for query in asked]
        findings = lint(asked, **arguments).findings  # type: ignore[arg-type]
        finding = next(each for each in findings if each.code == code)
        assert (finding.severity, finding.message.strip()) == (severity, message.strip())
        if has_caret:
            assert finding.offset == lines[at - 1].index("^"), code
            assert finding.query == len(texts) - 1
        rest = dict(line.split(": ", 1) for line in lines[at + 1 :])
        assert finding.fix == rest.get("fix")
        if "rewritten" in rest:
            change, text = finding.replacement, texts[-1]
            assert change is not None
            after = text[change.offset + change.length :]
            assert text[: change.offset] + change.text + after == rest["rewritten"]
        shown.add(code)
    assert shown == set(CODES)


@needs_documentation
def test_the_documentation_has_the_titles_and_severities_of_the_codes() -> None:
    headings = re.findall(r"^### (PL\d{3}) (\w+): (.*)$", DOCUMENTATION.read_text(), re.MULTILINE)
    assert headings == [(code.code, code.severity, code.title) for code in CODES.values()]


NITF = parse_dtd(
    "<!ELEMENT nitf (head, body)><!ELEMENT head (title?, tobject*)><!ELEMENT title (#PCDATA)>"
    "<!ELEMENT tobject EMPTY><!ATTLIST tobject type (news|sport) 'news' area CDATA #IMPLIED>"
    "<!ELEMENT body (p|block)*><!ELEMENT block (p|block)*><!ELEMENT p (#PCDATA|em)*>"
    "<!ELEMENT em (#PCDATA)><!ATTLIST p lang NMTOKEN #IMPLIED>"
)


@pytest.mark.parametrize(
    "text",
    [
        "/nitf/head/tobject[@type='sport']",
        "//p[em = 'x' and em = 'y']",
        "//block//block/p/@lang",
        "//p[2][@lang]",
        "//p[position() > 1 and position() <= last()]",
        "//em/ancestor::block/p",
        "//title/../tobject[1]",
        "//title/following-sibling::tobject",
        "//p/text()[contains(., 'x')]",
        "//p[not(em)]",
        "//*[@*]",
        "//comment()",
        "//p/preceding::title",
        "//p[count(em) > 2 or @lang = 'de']",
        "id('x')/p",
        "//*[local-name() = 'p']",
        "//*:p",
    ],
)
def test_good_queries_are_left_alone(text: str) -> None:
    bad = [each for each in found(text, dtd=NITF) if each.severity != "info"]
    assert not bad


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("//p[em/em]", "PL105", 7),
        ("//tobject/text()", "PL105", 10),
        ("//p/@type", "PL105", 5),
        ("/body", "PL105", 1),
        ("//p[tobject or em]", "PL105", 4),
        ("//block/parent::head", "PL105", 16),
        ("//title/preceding-sibling::p", "PL105", 27),
        ("//p[starts-with(../@type, 'x')]", "PL105", 20),
        ("//tobject[starts-with(@type, 'x')]", "PL106", 10),
        ("//tobject[@type = 'news' and @type = 'weather']", "PL106", 29),
        ("//q", "PL101", 2),
        ("//p[Em]", "PL101", 4),
        ("//p[@Lang]", "PL102", 5),
        ("//tobject[type]", "PL101", 10),
        ("count(//tobjects) > 1", "PL101", 8),
        ("//n:p", "PL001", 2),
    ],
)
def test_what_a_dtd_cannot_have(text: str, code: str, offset: int) -> None:
    assert (code, offset) in [(each.code, each.offset) for each in found(text, dtd=NITF)]


def test_a_mistake_does_not_hide_the_next_one() -> None:
    names = [each.offset for each in found("/nitf/hed/titel[@x]/..", dtd=NITF)]
    assert names == [6, 10, 17]


def test_roots_of_a_dtd_can_be_named() -> None:
    assert "PL105" in codes("/body", dtd=NITF)
    assert "PL105" not in codes("/body", dtd=NITF, roots=["body"])
    with pytest.raises(SchemaError):
        lint([], dtd=NITF, roots=["nothing"])


def test_namespaces_of_a_dtd_are_those_of_its_xmlns_attributes() -> None:
    graph = parse_dtd(
        "<!ELEMENT a (p:b)><!ATTLIST a xmlns CDATA #FIXED 'urn:a' xmlns:p CDATA #FIXED 'urn:p'>"
        "<!ELEMENT p:b EMPTY><!ATTLIST p:b p:k CDATA #IMPLIED>"
    )
    assert codes("/a/b", dtd=graph) == ["PL103"]
    assert not found("/n:a/p:b/@p:k", dtd=graph, namespaces={"n": "urn:a", "p": "urn:p"})
    assert not found("/a/*:b", dtd=graph, namespaces={"": "urn:a"})


def test_a_name_that_is_in_no_namespace_is_told_from_the_default_one() -> None:
    sample = [parse_message(b"<a><b/></a>")]
    [finding] = found("/a", sample=sample, namespaces={"": "urn:x"})
    assert finding.code == "PL104"
    assert finding.replacement is not None
    assert finding.replacement.text == "Q{}a"


def test_prefixes_that_are_bound_are_used() -> None:
    sample = [parse_message(b"<a xmlns='urn:a'><b xmlns='urn:b'/></a>")]
    [finding] = found("/a/b", sample=sample, namespaces={"p": "urn:x", "n": "urn:a"})
    assert finding.replacement is not None
    assert finding.replacement.text == "n:a/p2:b"
    assert "bind p2 to urn:b" in str(finding.fix)


@pytest.mark.parametrize(
    ("text", "truths"),
    [
        ("//a[@x='1' and @x='2']", ["never"]),
        ("//a[@x='1'][@x='2']", ["never"]),
        ("//a[1][2]", ["never"]),
        ("//a[position()=1 and position()=2]", ["never"]),
        ("//a[position()>1][position()=1]", []),
        ("//a[@x][2]", []),
        ("//a[0]/b", ["never"]),
        ("//a[-1]", ["never"]),
        ("//a[last()]", []),
        ("//a[count(b) < 0]", ["never"]),
        ("//a[string-length(@x) = 2.5]", ["never"]),
        ("//a[@x < 'abc']", ["never"]),
        ("//a[@x < '3']", []),
        ("//a[b='x' and b='y']", []),
        ("//a[starts-with(b,'x') and starts-with(b,'y')]", ["never"]),
        ("//a[@* = 'x' and @* = 'y']", []),
        ("//a[../@x='1' and ../@x='2']", ["never"]),
        ("//a[../b='1' and ../b='2']", []),
        ("//a[@x='1' and not(@x)]", ["never"]),
        ("//a[@x and not(@y)]", []),
        ("//a[@x!='1' or @x!='2']", ["always"]),
        ("//a[b!='1' or b!='2']", []),
        ("//a[@x or not(@x)]", ["always"]),
        ("//a[true()]", ["always"]),
        ("//a['']", ["never"]),
        ("//a[. != .]", ["never"]),
        ("//a[b != b]", []),
        ("//a[contains(@x, '')]", ["always"]),
        ("//a[position() >= 1]", ["always"]),
        ("//a[@x > 3 and @x > 2]", ["implied"]),
        ("//a[@x and @x]", ["implied"]),
        ("1 = 2", ["never"]),
        ("count(//a) >= 0", ["always"]),
        ("//a[b[@x=1 and @x=2]]", ["never"]),
        ("//a[not(b[0])]", ["never"]),
        ("//a[@x='1' or 'y']", ["always"]),
        ("//a[@x='1' and 'y']", ["always"]),
        ("//a['y' or @x='1']", ["always"]),
        ("//a[@x or '']", ["never"]),
        ("//a[not('y')]", ["never"]),
        ("//a[not('')]", ["always"]),
        ("//a[not(@x or 'y')]", ["never", "always"]),
        ("//a[not(@x and '')]", ["always", "never"]),
        ("//a[boolean('')]", ["never"]),
        ("//a[boolean('y') or @x]", ["always"]),
        ("//a[string('y')]", ["always"]),
        ("//a[concat('', '')]", ["never"]),
        ("//a[contains('ab', 'b')]", ["always"]),
        ("//a[contains('ab', 'c')]", ["never"]),
        ("//a[1 or 2]", ["always", "always"]),
        ("//a[@x or 0]", ["never"]),
        ("//a[-1 or @x]", ["always"]),
        ("//a[position()=1 or 2]", ["always"]),
        ("//a[last() and @x]", ["always"]),
        ("//a[1 + 1]", []),
        ("//a[1 + 1][2]", ["never"]),
        ("//a[number('y')]", ["never"]),
        ("//a[1 div 0]", ["never"]),
        ("//a[position()]", ["always"]),
        ("//a[string-length('abc')]", []),
        ("//a[1 < 2 < 3]", ["always"]),
        ("//a[true() = 0]", ["never"]),
        ("//a[@x = true()]", []),
        ("//a[(@x or 'y') = true()]", ["always"]),
        ("//a[string(@x or 'y')]", ["always"]),
        ("//a['' or position() < 0]", ["never", "never", "never"]),
        ("//a['' = 'x' or 2 = 3]", ["never", "never", "never"]),
        ("not('y')", ["never"]),
        ("'y'", ["always"]),
        ("string(//a)", []),
        ("count(//a['y' and b])", ["always"]),
    ],
)
def test_conditions(text: str, truths: list[str]) -> None:
    meant = {"never": ("PL201",), "always": ("PL202",), "implied": ("PL202",)}
    reported = [each for each in found(text) if each.code in ("PL201", "PL202")]
    assert [each.code for each in reported] == [code for truth in truths for code in meant[truth]]
    if truths == ["implied"]:
        assert reported[0].severity == "info"


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ('//a[event="Flood" or "Tornado"]', "write `event='Tornado'`"),
        ("//a[event!='Flood' and 'Tornado']", "write `event!='Tornado'`"),
        ("//a['Flood' or event='Tornado']", "write `event='Flood'`"),
        ("//a[position()=1 or 2]", "write `position()=2`"),
        ("//a[@x or 2]", "for a position write `position()=2`"),
        ("//a['@x']", "`@x` without quotes may be meant"),
        ("//a[not('y')]", "`y` without quotes may be meant"),
        ("//a[starts-with(b, 'x') or 'y']", "`y` without quotes may be meant"),
        ("//a['']", None),
    ],
)
def test_what_a_constant_may_stand_for(text: str, fix: str | None) -> None:
    [finding] = [each for each in found(text) if each.code in ("PL201", "PL202")]
    assert finding.fix == fix


def random_constant(generator: random.Random, depth: int = 2) -> str:
    """An expression of any type that asks nothing of the message."""

    def inner() -> str:
        return random_constant(generator, depth - 1)

    if depth == 0 or generator.randrange(3) == 0:
        return generator.choice(("'y'", "''", "'0'", "0", "1", "2.5", "true()", "false()", "'a b'"))
    binary = ("or", "and", "=", "!=", "<", ">=", "+", "-", "*", "div", "mod")
    match generator.randrange(8):
        case 0:
            return f"not({inner()})"
        case 1:
            return f"boolean({inner()})"
        case 2:
            return f"string({inner()})"
        case 3:
            return f"{generator.choice(('contains', 'starts-with'))}({inner()}, {inner()})"
        case 4:
            return f"concat({inner()}, {inner()})"
        case 5:
            return f"{generator.choice(('number', 'string-length', 'floor'))}({inner()})"
        case _:
            return f"({inner()} {generator.choice(binary)} {inner()})"


HOLES = (
    "//a[{} or @x]",
    "//a[{} and @x]",
    "//a[@x='1' or {}]",
    "//a[not({})]",
    "//a[@x or not({} or b)]",
    "//a[boolean({})]/b",
    "//a[b[{} and c]]",
    "boolean({}) or //c",
    "not({} and //c)",
    "//*[string(({} or @x))='true']",
)
"""Where a condition is meant: `{}` is as good as `true()` or `false()` there."""


def test_a_constant_is_found_wherever_it_stands_for_a_condition() -> None:
    generator = random.Random(37)
    for _ in range(800):
        text = generator.choice(HOLES).format(random_constant(generator))
        assert {"PL201", "PL202"} & set(codes(text)), text


def with_constant(expr: Expr, issue: ConditionIssue) -> Expr:
    """An expression with what lint says of a condition in the place of the condition."""

    def put(value: object) -> object:
        if value is issue.expr:
            name = "true" if issue.truth == "always" else "false"
            return FunctionCall(name, (), issue.offset)
        if isinstance(value, tuple):
            return tuple(put(each) for each in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            changes = {
                each.name: put(getattr(value, each.name)) for each in dataclasses.fields(value)
            }
            return dataclasses.replace(value, **changes)
        return value

    return cast(Expr, put(expr))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_a_condition_is_what_it_is(seed: int) -> None:
    """With `true()` or `false()` in its place, the query is true of the same messages."""
    generator = random.Random(7100 + seed)
    messages = [random_message(generator) for _ in range(8)]
    evaluators = [Evaluator(parse_message(message)) for message in messages]
    said = {"always": 0, "never": 0, "implied": 0}
    same: list[tuple[str, str]] = []
    for _ in range(250):
        write = generator.choice((random_query, random_expression))
        text = write(generator)
        if generator.randrange(2):
            hole = generator.choice(HOLES)
            text = hole.format(generator.choice((random_constant(generator), f"boolean({text})")))
        expr = read_query(text, {})
        for issue in condition_issues(expr, Notation()):
            said[issue.truth] += 1
            if issue.truth == "implied":
                continue
            other = with_constant(expr, issue)
            assert other != expr or isinstance(issue.expr, FunctionCall), text
            same.append((notation(expr), notation(other)))
            for evaluator in evaluators:
                asked, answer = (evaluator.holds(read_by_papers(each)) for each in same[-1])
                assert asked == answer, (text, issue)
                if issue.is_decisive and issue.truth == "never":
                    assert not asked, (text, issue)
    assert said["always"] > 30
    assert said["never"] > 30
    assert_answered_alike(same, messages)


def assert_answered_alike(same: Sequence[tuple[str, str]], messages: Sequence[bytes]) -> None:
    """Both queries of each pair are satisfied by the same messages: by an engine, and by lxml."""
    index = Registry()
    rows = [
        Query(f"{at} {side}", text)
        for at, pair in enumerate(same)
        for side, text in zip("ab", pair, strict=True)
    ]
    refused = {name.split()[0] for name in index.add(rows).rejected}
    for result in index.match(messages):
        found = {name for name in result.query_ids if name.split()[0] not in refused}
        undecided = {name.split()[0] for name in result.verdicts}
        for at in range(len(same)):
            if str(at) not in undecided:
                assert (f"{at} a" in found) == (f"{at} b" in found), same[at]
    pytest.importorskip("lxml")
    trees = [lxml_tree(message) for message in messages]
    compared = 0
    for one, other in same:
        if any(may_differ(text) or "namespace::" in text for text in (one, other)):
            continue
        compared += 1
        asked = [LxmlQuery(Query("q", text)) for text in (one, other)]
        for tree in trees:
            assert asked[0].matches(tree) == asked[1].matches(tree), (one, other)
    assert compared > 30


def test_a_part_that_need_not_hold_is_no_error() -> None:
    for text in ("//a[@x=1 and @x=2 or @y]", "//a[not(@x=1 and @x=2)]", "//a[0]|//b"):
        [finding] = [each for each in found(text) if each.code == "PL201"]
        assert finding.severity == "warning", text


def test_a_value_that_need_not_be_there_is_no_error() -> None:
    for text in ("//tobject[@type='x' or @area]", "//tobject[not(@type='x')]"):
        [finding] = [each for each in found(text, dtd=NITF) if each.code == "PL106"]
        assert finding.severity == "warning"
    for text in ("//tobject[@type='x' and @area]", "//head[tobject/@type='x']"):
        assert [each.severity for each in found(text, dtd=NITF)] == ["error"]


@pytest.mark.parametrize("seed", range(8))
def test_findings_are_true_of_all_of_xpath(seed: int) -> None:
    """What an engine answers contradicts no finding."""
    generator = random.Random(5300 + seed)
    batch = [random_message(generator) for _ in range(8)]
    queries = [Query(str(at), random_expression(generator)) for at in range(80)]
    index = made_by("reference", Registry)
    assert not index.add(queries).rejected
    satisfied = [set(result.query_ids) for result in index.match(batch)]
    for finding in lint(queries).findings:
        for ids in satisfied:
            is_match, related = finding.query_id in ids, [str(at) in ids for at in finding.related]
            match finding.code, finding.severity:
                case "PL201", "error":
                    assert not is_match, queries[finding.query or 0].text
                case "PL203", _:
                    assert is_match, queries[finding.query or 0].text
                case "PL301", _:
                    assert [is_match] == related, queries[finding.query or 0].text
                case "PL302", _:
                    assert related == [True] or not is_match, queries[finding.query or 0].text


@pytest.mark.parametrize("queries", [500, pytest.param(5000, marks=pytest.mark.nightly)])
def test_what_is_said_never_to_hold_never_does(queries: int) -> None:
    generator = random.Random(23)
    trees = [parse_message(random_message(generator), Limits()) for _ in range(120)]
    hopeless = 0
    for _ in range(queries):
        text = random_query(generator)
        report = lint([Query("q", text)])
        if report.has("error"):
            hopeless += 1
            query = normalise(text)
            assert not any(is_found(query, tree) for tree in trees), text
        if any(each.code == "PL203" for each in report.findings):
            assert all(is_found(normalise(text), tree) for tree in trees), text
    assert hopeless > queries / 30


@pytest.mark.parametrize("samples", [20, pytest.param(200, marks=pytest.mark.nightly)])
def test_what_is_said_not_to_occur_in_the_sample_matches_nothing_of_it(samples: int) -> None:
    generator = random.Random(29)
    complaints = 0
    for _ in range(samples):
        trees = [parse_message(random_message(generator), Limits()) for _ in range(2)]
        structure = structure_of_sample(trees)
        texts = [random_query(generator) for _ in range(20)]
        report = lint([Query(text, text) for text in texts], sample=structure, comparisons_max=0)
        for finding in report.findings:
            if finding.code in ("PL101", "PL102", "PL105"):
                complaints += 1
                query = normalise(finding.query_id)
                assert not any(is_found(query, tree) for tree in trees), finding
    assert complaints > 1.6 * samples


def test_equal_and_covered_queries() -> None:
    texts = [
        "//a[b]/c",
        "//a[c]/b",
        "//a[@x='1' and @x='2']",
        "/x/a[b][c]",
        "//a|//b",
        "/x/b",
        "//b",
    ]
    report = found(*texts)
    related = [
        (each.code, each.query, each.related) for each in report if each.code in ("PL301", "PL302")
    ]
    assert ("PL301", 1, (0,)) in related
    assert ("PL302", 3, (0,)) in related or ("PL302", 3, (4,)) in related
    assert any(code == "PL302" and at == 5 for code, at, _ in related)
    assert any(code == "PL302" and at == 6 and by == (4,) for code, at, by in related)
    assert not any(at == 2 for _, at, _ in related)


def test_a_broken_query_is_no_yardstick_for_others() -> None:
    """`//alert[event="Flood" or "Tornado"]` is as good as `//alert`, which nobody meant."""
    good = ["//alert[severity='Severe']", "//alert[event='Flood']/area", "//alert"]
    broken = ['//alert[event="Flood" or "Tornado"]', "//alert[not(area or 'x')]", "//alert['x']"]
    report = found(*broken, *good, *broken)
    related = [(each.code, each.query, each.related) for each in report if each.related]
    # Good queries are compared with good ones, broken ones with their likes.
    assert related == [
        ("PL302", 3, (5,)),
        ("PL302", 4, (5,)),
        ("PL301", 6, (0,)),
        ("PL301", 7, (1,)),
        ("PL301", 8, (2,)),
    ]


def test_queries_that_differ_in_form_only_are_equal() -> None:
    assert codes("//a[@x = 1]", "//a[@x = 1][@x]").count("PL301") == 1


def test_thousands_of_queries_take_seconds() -> None:
    texts = [f"/quotes/quote[@symbol='S{at % 700}' and price > {at % 90}]" for at in range(2000)]
    texts += [f"//a{at % 40}/b{at % 70}[@n > {at}]" for at in range(1500)]
    begin = time.process_time()
    report = lint([Query(str(at), text) for at, text in enumerate(texts)])
    assert time.process_time() - begin < 60, "about 4 s; it must not be the square"
    assert sum(each.code == "PL302" for each in report.findings) > 2000


def test_the_bound_on_comparisons_holds() -> None:
    texts = [f"//a[@x > {at} and @y < {at}]" for at in range(60)]
    queries = [Query(text, text) for text in texts]
    assert not any(each.code == "PL303" for each in lint(queries).findings)
    [finding] = lint(queries, comparisons_max=100).findings
    assert finding.code == "PL303"
    assert "100 were" in finding.message


SUBSCRIPTIONS = sorted(
    (Path(__file__).resolve().parent.parent / "testdata").glob("subscriptions/*.toml")
)


def subscriptions(path: Path) -> tuple[list[Query], set[str], dict[str, str], Structure]:
    """The realistic subscriptions of a domain, those that no sample satisfies, and the sample."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    trees = []
    for file in sorted(shared_path(f"docs/{data['domain']}").rglob("*.xml")):
        with contextlib.suppress(MessageError):
            trees.append(parse_message(file.read_bytes()))
    queries = [Query(each["id"], each["text"]) for each in data["subscription"]]
    absent = {each["id"] for each in data["subscription"] if "absent" in each}
    return queries, absent, data.get("namespaces", {}), structure_of_sample(trees)


@pytest.mark.parametrize("path", SUBSCRIPTIONS, ids=lambda path: path.stem)
def test_realistic_subscriptions_are_left_alone_and_their_misspellings_found(path: Path) -> None:
    queries, absent, namespaces, structure = subscriptions(path)
    report = lint(queries, sample=structure, namespaces=namespaces)
    # One branch of its union is satisfied by no sample.
    known = absent | {"ted-changed"}
    assert {each.query_id for each in report.findings if each.severity != "info"} <= known
    generator = random.Random(41)
    tried = mended = 0
    for query in queries:
        for match in re.finditer(r"(?<=[:/])[A-Za-z]{5,}(?=[/\[\]=<> ])", query.text):
            name, cut = match[0], generator.randrange(match.start() + 1, match.end() - 1)
            wrong = Query("q", query.text[:cut] + query.text[cut + 1 :])
            found_ = lint([wrong], sample=structure, namespaces=namespaces).findings
            fixes = [str(each.fix) for each in found_ if each.code == "PL101"]
            if fixes:
                tried += 1
                mended += any(re.search(rf"[`:]{name}`", fix) for fix in fixes)
    assert tried > 5
    assert mended / tried > 0.9


ALERTS = [
    parse_message(
        b"<alert><severity k='Alpha'>Severe</severity><event>Flood</event><area> Ohio </area>"
        b"<text>A <b>big</b> one</text><note>one<!-- -->two</note></alert>"
    ),
    parse_message(
        b"<alert><severity>Minor</severity><event>Tornado</event><area>Iowa</area></alert>"
    ),
]


@pytest.mark.parametrize(
    ("text", "code", "fix"),
    [
        ("//alert[severity='severe']", "PL109", "write 'Severe'"),
        ("//severity[.='SEVERE']", "PL109", "write 'Severe'"),
        ("//severity/text()='severe'", "PL109", "write 'Severe'"),
        ("//severity[string()='severe']", "PL109", "write 'Severe'"),
        ("//alert[not(severity='severe')]", "PL109", "write 'Severe'"),
        ("//alert[event!='flood']", "PL109", "write 'Flood'"),
        ("//severity[@k='alpha']", "PL109", "write 'Alpha'"),
        ("//alert[area='Ohio']", "PL109", "write `normalize-space(area)='Ohio'`"),
        ("//alert[area!='ohio ']", "PL109", "write `normalize-space(area)!='Ohio'`"),
        ("//alert[severity=' Severe ']", "PL109", "write 'Severe'"),
        ("//alert[normalize-space(area)='ohio']", "PL109", "write 'Ohio'"),
        ("//alert[contains(event, 'flo')]", "PL109", None),
        ("//alert[starts-with(event, 'tor')]", "PL109", None),
        ("//alert[severity='Sever']", "PL108", "did you mean 'Severe'?"),
        ("//alert[severity='Unknown']", "PL108", None),
        ("//severity[@k='Alpho']", "PL107", "did you mean 'Alpha'?"),
        ("//alert[severity='Severe']", None, None),
        ("//alert[severity!='Unknown']", None, None),
        ("//alert[normalize-space(area)='Ohio']", None, None),
        ("//alert[normalize-space(area)='']", None, None),
        ("//alert[contains(area, 'hi')]", None, None),
        ("//alert[contains(area, 'x')]", None, None),
        ("//alert[severity=3]", None, None),
        ("//alert[severity='severe' or severity='Severe']", "PL109", "write 'Severe'"),
        ("//alert[text='A small one']", None, None),
        ("//note[text()='Two']", "PL109", "write 'two'"),
        ("//note[.='OneTwo']", "PL109", "write 'onetwo'"),
        ("//alert='x'", None, None),
        ("/='x'", None, None),
    ],
)
def test_values_of_elements(text: str, code: str | None, fix: str | None) -> None:
    said = [(each.code, each.fix) for each in found(text, sample=ALERTS) if each.code < "PL2"]
    assert said == ([] if code is None else [(code, fix)])
    severities = {each.severity for each in found(text, sample=ALERTS) if each.code == code}
    assert severities <= {"warning" if code == "PL109" else "info"}


def test_values_that_are_many_or_long_are_left_alone() -> None:
    many = "".join(f"<n>v{at}</n>" for at in range(VALUES_MAX + 1))
    few = "".join(f"<f>v{at % VALUES_MAX}</f>" for at in range(4 * VALUES_MAX))
    long = f"<l>{'x' * (VALUE_LENGTH_MAX + 1)}</l>"
    sample = [parse_message(f"<r>{many}{few}{long}</r>".encode())]
    assert codes("//n[.='V1']", "//l[.='X']", sample=sample) == []
    assert codes("//f[.='V1']", sample=sample) == ["PL109"]
    places = {place.local: place for place in structure_of_sample(sample).places}
    assert places["n"].content.values is None
    assert places["l"].texts.values is None
    assert len(places["f"].content.values or ()) == VALUES_MAX


def test_a_value_that_is_said_not_to_occur_matches_nothing_of_the_sample() -> None:
    generator = random.Random(31)
    said = 0
    for _ in range(150):
        trees = [parse_message(random_message(generator)) for _ in range(3)]
        structure = structure_of_sample(trees)
        name, value = generator.choice("abc"), generator.choice(("1", "U", "v  w", " 2 ", "É", "x"))
        what = generator.choice((".", "text()", "@x", "../@y", "normalize-space(.)", "string(@x)"))
        text = f"//{name}[{what}='{value}']"
        for finding in lint([Query("q", text)], sample=structure).findings:
            if finding.code in ("PL107", "PL108", "PL109"):
                said += 1
                expr = read_by_papers(text)
                assert not any(Evaluator(tree).holds(expr) for tree in trees), text
    assert said > 50


def test_the_report_is_data() -> None:
    report = lint([Query("q", "//a[0]"), Query("r", "//b[")])
    assert isinstance(report, LintReport)
    assert report.counts() == {"error": 2, "warning": 0, "info": 0}
    data = report.to_dict()
    assert data["queries"] == 2
    assert [each["code"] for each in data["findings"]] == ["PL201", "PL001"]  # type: ignore[attr-defined]
    assert lint([]).findings == ()


def test_a_sample_must_hold_something() -> None:
    with pytest.raises(SchemaError):
        lint([], sample=[])


def test_any_content_allows_every_declared_element() -> None:
    graph = parse_dtd("<!ELEMENT a ANY><!ELEMENT b (c)><!ELEMENT c EMPTY>")
    structure = structure_of_dtd(graph, ["a"])
    assert not [
        each for each in found("/a/a/b/c", "/a/c", "/a/text()", dtd=graph) if each.code == "PL105"
    ]
    assert len(structure.places) == 4

"""`explain` tells the truth: it agrees with the matcher, and names the condition that fails.

If one of these fails, a subscriber who asks why a message did not come is sent the wrong way.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from every_engine import engines
from generators import (
    ALPHABET_WITH_NAMESPACES,
    MessageShape,
    any_alphabet,
    in_some_encoding,
    random_expression,
    random_message,
    random_query,
)
from oracles import missing_reason
from oracles.engines import EngineName, made_by
from pathcast import Limits, Query, Registry
from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.engine import Explanation, ExpressionExplanation
from pathcast.errors import IllFormedMessageError, QuerySyntaxError, UnknownQueryError
from pathcast.kernel.message_nodes import MessageNodes

NEWS = b"""<nitf><head><title>Storm</title><tobject type="sport" area="SFO"/>\
<tobject type="weather" area="JFK"/></head>
<body><p>One</p><p n="2">Two <em>and</em> three</p></body></nitf>"""


def explain(query: str, message: bytes = NEWS, engine: EngineName = "reference") -> Explanation:
    index = made_by(engine, Registry)
    assert not index.add([Query("q1", query)]).rejected
    return index.explain("q1", message)


@engines
def test_a_match_shows_where_each_step_is(engine: EngineName) -> None:
    found = explain("/nitf/head//tobject[@type='weather']", engine=engine)
    assert found.is_match
    assert found.failure is None
    assert [step.text for step in found.steps] == ["/nitf", "/head", "//tobject[@type='weather']"]
    assert [(step.candidates, step.passed) for step in found.steps] == [(1, 1), (1, 1), (2, 1)]
    assert found.steps[2].nodes[0].path == "/nitf[1]/head[1]/tobject[2]"
    [predicate] = found.steps[2].predicates
    assert (predicate.text, predicate.candidates, predicate.passed) == ("[@type='weather']", 2, 1)
    assert found.steps[2].offset == 12


@pytest.mark.parametrize(
    ("query", "names", "hint"),
    [
        # At a step, in a condition, in a path of a condition, in a call, in one of two paths.
        ("//boddy", ("body",), "did you mean body?"),
        ("/nitf[boddy]", ("body",), "did you mean body?"),
        ("//head[titel = 'x']", ("title",), "did you mean title?"),
        ("//nitf[heed/title]", ("head",), "did you mean head?"),
        ("//nitf[head/titel]", ("title",), "did you mean title?"),
        ("//tobject[@aera = 'SFO']", ("@area",), "did you mean @area?"),
        ("//nitf[head and sum(boddy) > 3]", ("body",), "did you mean body?"),
        ("//head[title = titel]", ("title",), "did you mean title?"),
        # Nothing near is there, but elsewhere in the message.
        ("/nitf/titel", ("title",), "did you mean title? It occurs at /nitf[1]/head[1]/title[1]"),
        ("/nitf[@aera]", ("@area",), "did you mean @area? It occurs at"),
        ("//body[zzz]", (), None),
        # What a condition rightly asks not to be there is no slip.
        ("//head[not(titel) and zzz]", (), None),
    ],
)
def test_names_that_may_be_meant(query: str, names: tuple[str, ...], hint: str | None) -> None:
    failure = explain(query).failure
    assert failure is not None
    assert failure.near_names == names
    assert failure.hint is None if hint is None else str(failure.hint).startswith(hint)
    if hint is not None:
        assert str(explain(query)).count("did you mean") == 1


@engines
@pytest.mark.parametrize(
    ("query", "steps", "kind", "text", "seen", "miss"),
    [
        ("/nitf/title", 2, "name", "/title", ("head", "body"), None),
        ("/nitf/head/title/x", 4, "name", "/x", (), None),
        ("//zz", 1, "name", "//zz", ("nitf", "head", "title", "tobject", "body"), None),
        (
            "//tobject[@type='news']",
            1,
            "predicate",
            "[@type='news']",
            ("'sport'", "'weather'"),
            "`@type` is 'sport', the query wants 'news'",
        ),
        (
            "//tobject[@area='SF']",
            1,
            "predicate",
            "[@area='SF']",
            ("'SFO'", "'JFK'"),
            "`@area` is 'SFO', the query wants 'SF'",
        ),
        ("//tobject[@lang]", 1, "predicate", "[@lang]", (), "there is no `@lang`"),
        (
            "//p[. > 3]",
            1,
            "predicate",
            "[.>3]",
            ("'One'", "'Two and three'"),
            "`.` is 'One', the query wants more than 3 (that is no number)",
        ),
        (
            "//p[@n >= 3]",
            1,
            "predicate",
            "[@n>=3]",
            ("'2'",),
            "`@n` is '2', the query wants at least 3",
        ),
        (
            "/nitf/body/p[3]",
            3,
            "predicate",
            "[3]",
            ("positions 1 to 2",),
            "position 2, the query wants 3",
        ),
        ("//p[@n=2][2]", 1, "predicate", "[2]", ("position 1",), "position 1, the query wants 2"),
        (
            "//p[position() = 3]",
            1,
            "predicate",
            "[position()=3]",
            ("1", "2"),
            "`position()` is 2, the query wants 3",
        ),
        (
            "//tobject[starts-with(@area, 'X')]",
            1,
            "predicate",
            "[starts-with(@area, 'X')]",
            ("'SFO'", "'JFK'"),
            "`@area` is 'SFO', the query wants something that begins with 'X'",
        ),
        (
            "/nitf[body/p[@n=3]]/body/em[@a]",
            1,
            "predicate",
            "[body/p[@n=3]]",
            (),
            "`@n` is '2', the query wants 3",
        ),
        ("//p[not(.)]", 1, "predicate", "[not(.)]", (), "`.` holds (/nitf[1]/body[1]/p[1])"),
        (
            "//title[. = ../../body/p]",
            1,
            "predicate",
            "[.=../../body/p]",
            (),
            "`.` is 'Storm' and `../../body/p` is 'One' or 'Two and three'",
        ),
    ],
)
def test_the_first_failure_is_named(
    engine: EngineName,
    query: str,
    steps: int,
    kind: str,
    text: str,
    seen: tuple[str, ...],
    miss: str | None,
) -> None:
    found = explain(query, engine=engine)
    assert not found.is_match
    assert len(found.steps) == steps
    failure = found.steps[-1].failure
    assert failure is not None
    assert found.failure == failure
    assert (failure.kind, failure.text, failure.seen) == (kind, text, seen)
    assert failure.near_misses == (() if miss is None else (miss,))
    assert all(step.failure is None for step in found.steps[:-1])
    assert text in str(found)
    assert miss is None or miss in str(found)


def test_the_nearest_of_several_nodes_is_told() -> None:
    failure = explain("//tobject[@type='weather' and @area='SF']").failure
    assert failure is not None
    assert failure.nearest == "/nitf[1]/head[1]/tobject[2]"
    assert failure.near_misses == ("`@area` is 'JFK', the query wants 'SF'",)


@pytest.mark.parametrize(
    ("query", "names", "hint"),
    [
        ("/nitf/head/tobjct", ("tobject",), "did you mean tobject?"),
        ("//tobject/@aera", ("@area",), "did you mean @area?"),
        ("/nitf/Body", ("body",), "did you mean body?"),
        ("/nitf/title", (), "it occurs elsewhere: /nitf[1]/head[1]/title[1]"),
        ("//tobject/area", (), "there is an attribute of that name: @area"),
        ("/nitf/@head", (), "there is an element of that name: head"),
    ],
)
def test_near_names(query: str, names: tuple[str, ...], hint: str) -> None:
    failure = explain(query).failure
    assert failure is not None
    assert (failure.near_names, failure.hint) == (names, hint)
    assert hint in str(explain(query))


IN_URN_X = (
    '`a` is in namespace urn:x: write x:a with namespaces={"x": "urn:x"} (--namespace x=urn:x)'
)


@pytest.mark.parametrize(
    ("query", "namespaces", "names", "hint"),
    [
        ("/a", {}, ("Q{urn:x}a",), IN_URN_X),
        ("/a", {"p": "urn:y"}, ("Q{urn:x}a",), IN_URN_X),
        (
            "/a",
            {"x": "urn:y"},
            ("Q{urn:x}a",),
            IN_URN_X.replace("x:a", "p:a").replace("x=", "p=").replace('"x"', '"p"'),
        ),
        ("/a", {"n": "urn:x"}, ("n:a",), "`a` is in namespace urn:x: write n:a"),
        ("/n:a/n:b", {"n": "urn:x"}, ("b",), "`b` is in no namespace: write b"),
    ],
)
def test_the_same_name_in_another_namespace(
    query: str, namespaces: dict[str, str], names: tuple[str, ...], hint: str
) -> None:
    index = made_by("reference", Registry, namespaces=namespaces)
    found = index.explain(Query("q", query), b"<x:a xmlns:x='urn:x'><b/></x:a>")
    assert found.failure is not None
    assert (found.failure.near_names, found.failure.hint) == (names, hint)


def values(found: ExpressionExplanation) -> list[tuple[str, str, str]]:
    own = (found.text, found.kind, found.value)
    return [own, *(each for operand in found.operands for each in values(operand))]


def test_expressions_are_told_by_their_values() -> None:
    found = explain("count(//tobject) > 2 and not(//em) or string(//title)='Storm'")
    assert found.is_match
    assert found.root is not None
    assert values(found.root) == [
        ("count(//tobject)>2 and not(//em) or string(//title)='Storm'", "or", "true"),
        ("count(//tobject)>2 and not(//em)", "and", "false"),
        ("count(//tobject)>2", "comparison", "false"),
        ("count(//tobject)", "function", "2"),
        ("//tobject", "path", "2 nodes"),
        ("2", "constant", "2"),
        ("not(//em)", "not", "false"),
        ("//em", "path", "1 node"),
        ("string(//title)='Storm'", "comparison", "true"),
        ("string(//title)", "function", "'Storm'"),
        ("//title", "path", "1 node"),
        ("'Storm'", "constant", "'Storm'"),
    ]


@pytest.mark.parametrize(
    ("query", "misses"),
    [
        ("count(//tobject) > 2", ("`count(//tobject)` is 2, the query wants more than 2",)),
        ("not(//em)", ("`//em` holds (/nitf[1]/body[1]/p[2]/em[1])",)),
        ("//title = //em", ("`//title` is 'Storm' and `//em` is 'and'",)),
        ("//title = //none", ("there is no `//none`",)),
        ("//em and //none", ()),
        ("boolean(//title = 'x')", ("`//title` is 'Storm', the query wants 'x'",)),
        ("(//tobject)[3]", ("position 2, the query wants 3",)),
        ("false()", ()),
        ("count(//none)", ()),
        ("sum(//p/@n) = 3", ("`sum(//p/@n)` is 2, the query wants 3",)),
        ("//p[em] [@n = 3] | //none", ("`@n` is '2', the query wants 3",)),
    ],
)
def test_why_an_expression_is_false(query: str, misses: tuple[str, ...]) -> None:
    found = explain(query)
    assert not found.is_match
    assert found.failure is not None
    assert found.failure.near_misses == misses


def test_the_plan_is_shown() -> None:
    indexed = explain("//a|//b").plan
    assert (indexed.alternatives, indexed.expression) == (("//a", "//b"), None)
    assert (indexed.cost, indexed.reasons) == ("indexed", ())
    checked = explain("//p[last()]").plan
    assert checked.alternatives == ("//p",)
    assert checked.expression is not None
    assert checked.cost == "candidate-checked"
    assert checked.reasons
    scan = explain("not(//q)")
    assert scan.plan.cost == "scan"
    assert f"  scan: {'; '.join(scan.plan.reasons)}" in str(scan).split("\n")
    assert f"    check {scan.plan.expression}" in str(scan).split("\n")


def test_the_text_is_readable() -> None:
    assert str(explain("/nitf/head//tobject[@area][@type='news']")).split("\n") == [
        "q1: no match",
        "  /nitf/head//tobject[@area][@type='news']",
        "  /nitf                            1 node, first /nitf[1]",
        "  /head                            1 node, first /nitf[1]/head[1]",
        "  //tobject[@area][@type='news']   none of 2 nodes passes [@type='news']; "
        "seen: 'sport', 'weather'",
        "                                   [@area]: 2 of 2",
        "                                   nearest /nitf[1]/head[1]/tobject[1]: "
        "`@type` is 'sport', the query wants 'news'",
    ]
    assert str(explain("//p[em='x' or @n=3]")).split("\n") == [
        "q1: no match",
        "  //p[em='x' or @n=3]",
        "  indexed",
        "    index //p/em[.='x']",
        "       or //p[@n=3]",
        "  //p[em='x' or @n=3]   none of 2 nodes passes [em='x' or @n=3]",
        "                        nearest /nitf[1]/body[1]/p[2]: `@n` is '2', the query wants 3",
        "                          em='x' or @n=3: false",
        "                            em='x': false",
        "                              `em` is 'and', the query wants 'x'",
        "                            @n=3: false",
        "                              `@n` is '2', the query wants 3",
    ]


def test_long_and_many_values_are_cut() -> None:
    message = b"<r>" + b"".join(b"<a>%d%s</a>" % (n, b"x" * 200) for n in range(9)) + b"</r>"
    failure = explain("/r/a[.='y']", message).failure
    assert failure is not None
    assert len(failure.seen) == 5
    assert all(len(value) == 62 for value in failure.seen)


def test_long_steps_have_lines_of_their_own() -> None:
    lines = str(explain(f"/nitf/head[title = '{'x' * 80}']\n/title")).split("\n")
    assert lines[1].endswith("']  /title") or lines[1].endswith("'] /title")
    assert any(line.endswith(f"[title='{'x' * 80}']") for line in lines)
    assert all(line.isprintable() for line in lines)


def test_deep_nesting_takes_no_longer_than_it_is_deep() -> None:
    """Each level is told once, not once for the detail and once for the near miss."""
    query = "//a" + "[.//a" * 20 + "[@x=1]" + "]" * 20
    found = explain(query, b"<a>" * 30 + b"</a>" * 30)
    assert not found.is_match
    assert found.failure is not None
    assert found.failure.near_misses == ("there is no `@x`",)
    assert len(str(found)) < 50_000


def test_every_kind_of_node_has_a_path() -> None:
    message = b"<a x='1' xmlns:n='urn:n'>t<!--c--><?p i?><n:b/>u</a>"
    paths = {
        "/a/@x": "/a[1]/@x",
        "/a/text()[2]": "/a[1]/text()[2]",
        "//comment()": "/a[1]/comment()[1]",
        "//processing-instruction()": "/a[1]/processing-instruction('p')[1]",
        "/a/*": "/a[1]/Q{urn:n}b[1]",
        "/a/namespace::n": "/a[1]/namespace::n",
    }
    for query, path in paths.items():
        found = explain(query, message)
        assert found.is_match
        assert found.root is not None
        assert found.root.nodes[0].path == path


@engines
def test_a_refused_message_is_explained(engine: EngineName) -> None:
    found = explain("/a", b"<a>\n<b></a>", engine)
    assert not found.is_match
    assert found.steps == ()
    assert found.error is not None
    assert found.error["line"] == 2
    assert "refused" in str(found)
    assert str(found.error["message"]) in str(found)


@engines
def test_limits_of_the_index_hold(engine: EngineName) -> None:
    index = made_by(engine, Registry, limits=Limits(depth_max=1))
    index.add([Query("q1", "/a/b")])
    found = index.explain("q1", b"<a><b/></a>")
    assert found.error is not None
    assert found.error["code"] == "limit.depth"


def test_no_verdict_is_no_match() -> None:
    index = made_by("reference", Registry, limits=Limits(evaluation_steps_max=10))
    index.add([Query("q1", "count(//a[not(b)]) > 3")])
    found = index.explain("q1", b"<a>" + b"<a/>" * 40 + b"</a>")
    assert not found.is_match
    assert found.error is not None
    assert found.error["code"] == "limit.evaluation_steps"
    assert str(found).startswith("q1: no verdict")


def test_queries_need_not_be_registered() -> None:
    index = made_by("reference", Registry, namespaces={"n": "urn:n"})
    with pytest.raises(UnknownQueryError):
        index.explain("q1", b"<a/>")
    assert index.explain(Query("q", "/n:a"), b"<a xmlns='urn:n'/>").is_match
    with pytest.raises(QuerySyntaxError):
        index.explain(Query("q", "/a["), b"<a/>")
    assert len(index) == 0


def test_text_messages() -> None:
    index = made_by("reference", Registry)
    index.add([Query("q1", "/a[.='é']")])
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>"
    assert index.explain("q1", text).is_match
    assert index.explain("q1", bytearray(b"<b/>")).is_match is False


def steps_agree(found: ExpressionExplanation) -> bool:
    """What the walk found by steps is what the evaluator found."""
    own = True
    if found.kind == "path":
        own = found.is_true == all(step.failure is None for step in found.steps)
    own = own and found.is_true == (found.failure is None)
    return own and all(steps_agree(operand) for operand in found.operands)


def agrees(
    engine: EngineName, texts: list[str], batch: list[bytes], namespaces: dict[str, str]
) -> int:
    """Explains every query on every message and compares with the engine's answer."""
    queries = [Query(f"q{number}", text, namespaces) for number, text in enumerate(texts)]
    index = made_by(engine, Registry)
    assert not index.add(queries).rejected
    snapshot = index.freeze()
    matches = 0
    for message, result in zip(batch, snapshot.match(batch), strict=True):
        matched = set(result.query_ids)
        matches += len(matched)
        for query in queries:
            found = index.explain(query.id, message)
            assert found.is_match == (query.id in matched), (query.text, message)
            assert (found.failure is None) == found.is_match
            assert found.root is not None
            assert found.root.is_true == found.is_match, (query.text, message)
            assert steps_agree(found.root), query.text
            assert json.loads(json.dumps(found.to_dict()))["is_match"] == found.is_match
            assert str(found).startswith(query.id)
    return matches


@engines
def test_explain_agrees_with_the_matcher(engine: EngineName) -> None:
    generator = random.Random(17)
    texts = [random_query(generator) for _ in range(60)]
    assert agrees(engine, texts, [random_message(generator) for _ in range(6)], {}) > 20


@engines
@pytest.mark.parametrize("seed", range(4))
def test_explain_agrees_with_the_matcher_on_all_of_xpath(engine: EngineName, seed: int) -> None:
    generator = random.Random(1700 + seed)
    texts = [random_expression(generator) for _ in range(50)]
    assert agrees(engine, texts, [random_message(generator) for _ in range(4)], {}) > 10


def test_explain_agrees_with_the_matcher_on_namespaces() -> None:
    generator = random.Random(19)
    alphabet = ALPHABET_WITH_NAMESPACES
    texts = [random_query(generator, alphabet) for _ in range(50)]
    batch = [random_message(generator, alphabet) for _ in range(5)]
    assert agrees("reference", texts, batch, dict(alphabet.namespaces)) > 5


# --- The engine has the verdict --------------------------------------------------------------


def test_a_tree_has_all_that_its_door_let_in() -> None:
    """`Ͱ` begins a name since the fifth edition of XML, which expat does not follow."""
    if missing_reason("kernel") is not None:
        pytest.skip(str(missing_reason("kernel")))
    for query in (
        "//comment()",
        "//processing-instruction('q')",
        "name(/*/p:*)",
        "/*/namespace::p",
    ):
        index = Registry(namespaces={"p": "urn:p"})
        index.add([Query("q1", query)])
        message = "<a xmlns:p='urn:p'><!--x--><?q r?><p:Ͱb/></a>".encode()
        assert list(index.match([message])[0].query_ids) == ["q1"]
        found = index.explain("q1", message)
        assert found.is_match
        assert found.bug is None
        assert found.root is not None
        assert found.root.is_true


ANYTHING = (
    "//comment()",
    "//processing-instruction('p')",
    "/comment()|/processing-instruction()",
    "//namespace::*",
    "//@*",
    "id('i1 i2')",
    "//*[lang('en')]",
    "//*[namespace-uri()!='']",
    "//*[name()!=local-name()]",
    "//text()[last()]",
    "string(//comment())",
)


def explained(engine: EngineName, seed: int) -> tuple[int, int, int]:
    """Explains generated queries on generated messages; matches, refusals, verdicts among them."""
    generator = random.Random(seed)
    alphabet = generator.choice((any_alphabet(generator), ALPHABET_WITH_NAMESPACES))
    shape = MessageShape(has_odd_values=True, has_markup=True, has_defaults=True)
    texts = [random_expression(generator, alphabet) for _ in range(9)]
    texts += [random_query(generator, alphabet) for _ in range(6)]
    texts += generator.sample(ANYTHING, 5)
    queries = [Query(f"q{at}", text, dict(alphabet.namespaces)) for at, text in enumerate(texts)]
    limits = Limits(evaluation_steps_max=generator.choice((1_000_000, 60, 12)))
    index = made_by(engine, Registry, limits=limits)
    assert not index.add(queries).rejected
    snapshot = index.freeze()
    counts = [0, 0, 0]
    for _ in range(3):
        message = in_some_encoding(generator, random_message(generator, alphabet, shape))
        [answer] = snapshot.match([message])
        for query in queries:
            found = index.explain(generator.choice((query.id, query)), message)
            where = seed, query.text, message
            assert found.is_match == (query.id in answer.query_ids), where
            assert found.bug is None, where
            error = answer.error or answer.verdicts.get(query.id)
            assert found.error == (None if error is None else error.to_dict()), where
            # What makes the engine go over its budget need not be too much for the walk.
            assert found.root is None or found.root.is_true == found.is_match, where
            counts[0] += found.is_match
            counts[1] += answer.error is not None
            counts[2] += query.id in answer.verdicts
    return counts[0], counts[1], counts[2]


@engines
def test_the_verdict_is_the_engines_whatever_the_message(engine: EngineName) -> None:
    """Names of all characters, every kind of node, encodings, entities, defaults, small budgets."""
    counts = [explained(engine, seed) for seed in range(2000, 2010)]
    matches, refused, verdicts = (sum(column) for column in zip(*counts, strict=True))
    assert matches > 80
    assert verdicts > 2
    # The reference door follows the fourth edition in names.
    assert (refused > 100) == (engine == "reference")


@pytest.mark.nightly
@engines
@pytest.mark.parametrize("seed", range(8))
def test_the_verdict_is_the_engines_whatever_the_message_at_length(
    engine: EngineName, seed: int
) -> None:
    assert sum(explained(engine, 10_000 + 200 * seed + at)[0] for at in range(200)) > 1000


def poor_nodes(
    message: bytes, limits: Limits, encoding: str | None, steps_max: int
) -> MessageNodes:
    """The nodes of a door that forgets comments."""
    return MessageNodes(message.replace(b"<!--x-->", b""), limits, encoding, steps_max)


def test_steps_that_differ_from_the_engine_are_a_bug_that_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pathcast.engine.explain.MessageNodes", poor_nodes)
    for query, is_match in (("//comment()", True), ("not(//comment())", False)):
        found = explain(query, b"<a><!--x--></a>", "kernel")
        assert found.is_match == is_match
        assert found.root is not None
        assert found.root.is_true != is_match
        assert found.bug is not None
        assert found.bug["code"] == "explain.differs"
        assert str(found).split("\n")[0] == f"q1: {'match' if is_match else 'no match'}"
        assert "this is a bug of Pathcast: the engine says" in str(found)
        assert json.loads(json.dumps(found.to_dict()))["bug"]["code"] == "explain.differs"
    message = tmp_path / "a.xml"
    message.write_text("<a><!--x--></a>")
    told = CliRunner().invoke(build_app(), ["explain", "//comment()", str(message)])
    assert told.exit_code == ExitCode.REFUSED
    assert "bug of Pathcast" in told.stdout


def test_a_message_that_is_let_in_once_and_not_again_is_a_bug_that_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> MessageNodes:
        raise IllFormedMessageError("xml.syntax", line=1, column=2, offset=1, reason="no")

    monkeypatch.setattr("pathcast.engine.explain.MessageNodes", refuse)
    found = explain("//a", b"<a/>", "kernel")
    assert found.is_match
    assert (found.root, found.error) == (None, None)
    assert found.bug is not None
    assert "lets the message in to match it, but it is refused" in str(found)


def test_a_registered_query_is_asked_among_the_others() -> None:
    index = made_by("reference", Registry)
    index.add([Query("q1", "//a"), Query("q2", "//b")])
    index.remove(["q2"])
    assert index.explain("q1", b"<a/>").is_match
    assert not index.explain("q1", b"<b/>").is_match
    index.add([Query("q2", "//c")])
    assert index.explain("q2", b"<c/>").is_match


def test_what_is_too_much_to_tell_is_said() -> None:
    index = made_by("reference", Registry, limits=Limits(evaluation_steps_max=1))
    index.add([Query("q1", "//a//a//a")])
    found = index.explain("q1", b"<a>" * 40 + b"</a>" * 40)
    assert found.is_match
    assert (found.root, found.error, found.bug) == (None, None, None)
    assert "too much to tell" in str(found)

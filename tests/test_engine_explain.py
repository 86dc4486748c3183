"""`explain` tells the truth: it agrees with the matcher, and names the step that fails.

If one of these fails, a subscriber who asks why a message did not come is sent the wrong way.
"""

from __future__ import annotations

import json
import random

import pytest

from every_engine import engines
from pathcast import Limits, Query, QueryIndex
from pathcast.engine import Explanation
from pathcast.errors import UnknownQueryError
from pathcast.model import EngineName
from pathcast.testing import random_message, random_query

NEWS = b"""<nitf><head><title>Storm</title><tobject type="sport"/><tobject type="weather"/></head>
<body><p>One</p><p n="2">Two <em>and</em> three</p></body></nitf>"""


def explain(query: str, message: bytes = NEWS, engine: EngineName = "reference") -> Explanation:
    index = QueryIndex(engine=engine)
    assert not index.register([Query("q1", query)]).rejected
    return index.freeze().explain("q1", message)


@engines
def test_a_match_shows_where_each_step_is(engine: EngineName) -> None:
    found = explain("/nitf/head//tobject[@type='weather']", engine=engine)
    assert found.is_match
    assert [step.step for step in found.steps] == ["/nitf", "/head", "//tobject[@type='weather']"]
    assert [(step.candidates, step.passed) for step in found.steps] == [(1, 1), (1, 1), (2, 1)]
    assert found.steps[2].example == "/nitf[1]/head[1]/tobject[2]"


@engines
@pytest.mark.parametrize(
    ("query", "steps", "kind", "test", "seen"),
    [
        ("/nitf/title", 2, "path", "/title", ("head", "body")),
        ("/nitf/head/title/x", 4, "path", "/x", ()),
        ("//zz", 1, "path", "//zz", ("nitf", "head", "body", "title", "tobject")),
        ("//tobject[@type='news']", 1, "attribute", "[@type='news']", ("sport", "weather")),
        ("//tobject[@lang]", 1, "attribute", "[@lang]", ()),
        ("//title[text()='x']", 1, "text", "[text()='x']", ("Storm",)),
        ("//p[. > 3]", 1, "value", "[.>3]", ("One", "Two and three")),
        ("/nitf/body/p[3]", 3, "position", "[position()=3]", ("1 to 2",)),
        ("//p[@n=2][2]", 1, "position", "[position()=2]", ("1",)),
        ("//p[@n][. = 'x'][@n=2]", 1, "value", "[.='x']", ("One", "Two and three")),
        ("/nitf[body/p[@n=3]]/body/em[@a]", 1, "nested", "[body/p[@n=3]]", ()),
    ],
)
def test_the_first_failure_is_named(
    engine: EngineName, query: str, steps: int, kind: str, test: str, seen: tuple[str, ...]
) -> None:
    found = explain(query, engine=engine)
    assert not found.is_match
    assert len(found.steps) == steps
    failure = found.steps[-1].failure
    assert failure is not None
    assert (failure.kind, failure.test, failure.seen) == (kind, test, seen)
    assert all(step.failure is None for step in found.steps[:-1])
    assert test in str(found)


def test_nested_paths_are_explained_inside() -> None:
    failure = explain("/nitf[body/p[@n=3]]/body/em[@a]").steps[0].failure
    assert failure is not None
    assert failure.kind == "nested"
    inner = failure.nested[-1].failure
    assert inner is not None
    assert (inner.kind, inner.test, inner.seen) == ("attribute", "[@n=3]", ("2",))


def test_the_text_is_readable() -> None:
    assert str(explain("/nitf/head//tobject[@type='news']")).split("\n") == [
        "q1: no match",
        "  /nitf/head//tobject[@type='news']",
        "  /nitf                     1 element, first /nitf[1]",
        "  /head                     1 element, first /nitf[1]/head[1]",
        "  //tobject[@type='news']   none of 2 elements passes [@type='news']; "
        'seen: "sport", "weather"',
    ]


def test_the_query_is_shown_as_registered_and_as_explained() -> None:
    lines = str(explain(" //tobject[ 'news' = @type ]")).split("\n")
    assert lines[1:3] == [
        "   //tobject[ 'news' = @type ]",
        "  explained as //tobject[@type='news']",
    ]


def test_long_and_many_values_are_cut() -> None:
    message = b"<r>" + b"".join(b"<a>%d%s</a>" % (n, b"x" * 200) for n in range(9)) + b"</r>"
    failure = explain("/r/a[.='y']", message).steps[-1].failure
    assert failure is not None
    assert len(failure.seen) == 5
    assert all(len(value) == 60 for value in failure.seen)


def test_namespaces_are_shown_as_expanded_names() -> None:
    index = QueryIndex(engine="reference", namespaces={"p": "urn:p"})
    index.register([Query("q1", "/p:a/b")])
    found = index.freeze().explain("q1", b"<a xmlns='urn:p'><b/></a>")
    assert found.steps[0].example == "/Q{urn:p}a[1]"
    failure = found.steps[1].failure
    assert failure is not None
    assert failure.seen == ("Q{urn:p}b",)


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
    index = QueryIndex(engine=engine, limits=Limits(depth_max=1))
    index.register([Query("q1", "/a/b")])
    found = index.freeze().explain("q1", b"<a><b/></a>")
    assert found.error is not None
    assert found.error["code"] == "limit.depth"
    assert index.freeze().explain("q1", b"<a><b/></a>", limits=Limits()).is_match


def test_unknown_queries() -> None:
    index = QueryIndex(engine="reference")
    with pytest.raises(UnknownQueryError):
        index.freeze().explain("q1", b"<a/>")


def test_text_messages() -> None:
    index = QueryIndex(engine="reference")
    index.register([Query("q1", "/a[.='é']")])
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>"
    assert index.freeze().explain("q1", text).is_match
    assert index.freeze().explain("q1", bytearray(b"<b/>")).is_match is False


@engines
def test_explain_agrees_with_the_matcher(engine: EngineName) -> None:
    generator = random.Random(17)
    queries = [Query(f"q{number}", random_query(generator)) for number in range(60)]
    index = QueryIndex(engine=engine)
    index.register(queries)
    snapshot = index.freeze()
    batch = [random_message(generator) for _ in range(6)]
    for message, result in zip(batch, snapshot.matcher().match_batch(batch), strict=True):
        matched = set(result.query_ids)
        for query in queries:
            found = snapshot.explain(query.id, message)
            assert found.is_match == (query.id in matched), query.text
            assert found.is_match == all(step.failure is None for step in found.steps)
            assert json.loads(json.dumps(found.to_dict()))["is_match"] == found.is_match
            assert str(found).startswith(query.id)

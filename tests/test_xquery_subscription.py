"""A subscription is read as XPath or as XQuery, and compiled so.

If these fail, a path gets the semantics of another language, or a mistake is explained in one.
"""

from __future__ import annotations

import pytest

from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast.query import compile_query, compile_subscription
from pathcast.query.xquery import TEXT_BYTES_MAX, is_xquery

XPATH = (
    "//a",
    "/",
    "//a[@b < 'c']",
    "(//a)",
    "//a | //b",
    "count(//a) > 2",
    "//a = 'x &amp; y'",
    "for/let[some]/every",
    "if/then",
    "a <> 1",
    "//p:a",
    "$msg//a",
    "//a[namespace::p]",
    # A comment says nothing about the language.
    "//a[b < '9'] (: c :)",
    "(: urgent (: very :) :) //story",
    "//a[. = '(: c :)']",
    "count(: c :)(//a)",
    # Of neither language, and near to a path.
    "//a[",
    "//a]",
    "lenght(//a)",
    "",
)

XQUERY = (
    "<a/>",
    "<a>{//b}</a>",
    "for $a in //a return $a",
    "for\n$a in //a return $a",
    "(: comment :) for $a in //a return $a",
    "for (: comment :) $a in //a return $a",
    "let $a := //a return $a",
    "some $a in //a satisfies $a/b",
    "every $a in //a satisfies $a/b",
    "if (//a) then //b else //c",
    "declare namespace p = 'x'; //p:a",
    "xquery version '1.0'; //a",
    "(//a, //b)",
    "(for $a in //a return $a)",
    "min(//a)",
    "exists(//a)",
    "//a union //b",
    "//a eq 'x'",
    "//a[some $b in b satisfies $b]",
    "//a idiv 2",
    "max(//p:a)",
    # Of neither language, and near to a program.
    "for $a in",
    "<a>",
    "(//a, //b",
    "//a ! b",
)


@pytest.mark.parametrize("text", XPATH)
def test_read_as_xpath(text: str) -> None:
    assert not is_xquery(text)


@pytest.mark.parametrize("text", XQUERY)
def test_read_as_xquery(text: str) -> None:
    assert is_xquery(text)


def test_an_xpath_is_compiled_as_a_query() -> None:
    text = "//a[@b < 'c']/d[last()]"
    compiled, query = compile_subscription(text), compile_query(text)
    assert compiled.kind == "xpath"
    assert compiled.program is None
    assert list(compiled.alternatives) == query.texts
    assert compiled.expression == query.expression
    assert compiled.reasons == query.reasons


def test_a_program_has_a_gate_and_no_expression() -> None:
    compiled = compile_subscription("for $a in //a where $a/@b < 'c' return $a/d")
    assert compiled.kind == "xquery"
    assert compiled.program is not None
    assert compiled.alternatives == ("//a[@b]/d",)
    assert compiled.expression is None
    assert [str(reason) for reason in compiled.reasons] == [
        "the program decides and makes the result",
        "candidates come from //a[@b]/d",
    ]


@pytest.mark.parametrize("text", ["count(//a)", "//a = 1", "string(//a)", "1 + 1", "not(//a)"])
def test_only_nodes_have_fragments(text: str) -> None:
    with pytest.raises(UnsupportedQueryError) as caught:
        compile_subscription(text, deliver="fragment")
    assert caught.value.code == "subscription.fragment"
    assert 'deliver="message"' in str(caught.value)
    for deliver in ("message", "ids"):
        assert compile_subscription(text, deliver=deliver).kind == "xpath"


def test_a_program_is_a_filter_for_whoever_wants_no_result() -> None:
    text = "<a>{count(//b)}</a>"
    notice, fragment = compile_subscription(text, deliver="ids"), compile_subscription(text)
    assert (notice.program, notice.alternatives) == (fragment.program, fragment.alternatives)
    assert str(notice.reasons[0]) == "the program decides"


def test_namespaces_reach_either_language() -> None:
    namespaces = {"": "urn:d", "p": "urn:p"}
    assert compile_subscription("//a/@p:b", namespaces).alternatives == ("//Q{urn:d}a[@Q{urn:p}b]",)
    assert compile_subscription("<r>{//a/@p:b}</r>", namespaces).alternatives == (
        "//Q{urn:d}a[@Q{urn:p}b]",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("//a[", "write a condition and ] after it, or leave out the ["),
        ("lenght(//a)", None),
        ("for $a in //a", "return or another clause"),
        ("<a>{//b}", "the element that begins here does not end"),
    ],
)
def test_errors_are_of_the_language_that_a_text_looks_like(text: str, reason: str | None) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        compile_subscription(text)
    assert reason is None or reason in str(caught.value)


def test_a_long_program_may_begin_like_a_path_and_a_long_path_is_refused() -> None:
    long = " or ".join(f"//a{number}" for number in range(400))
    assert compile_subscription(f"({long}, //b)", deliver="ids").kind == "xquery"
    with pytest.raises(QuerySyntaxError, match="more than 512 syntax nodes"):
        compile_subscription(long, deliver="ids")
    blanks = " " * 9_000
    assert compile_subscription(f"(//a,{blanks}//b)").kind == "xquery"
    with pytest.raises(QuerySyntaxError, match="has 9005 bytes, at most 8192"):
        compile_subscription(f"//a{blanks}/b")
    with pytest.raises(QuerySyntaxError, match=f"at most {TEXT_BYTES_MAX}"):
        compile_subscription(f"<a>{{//b}}{'x' * TEXT_BYTES_MAX}</a>")

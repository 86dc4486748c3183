"""A subscription is read as XPath or as XQuery, and compiled so.

If these fail, a path gets the semantics of another language, or a mistake is explained in one.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping

import pytest

from generators import ALPHABET, VOCABULARIES, random_expression, random_notice
from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast.query import compile_query, compile_subscription
from pathcast.query.xquery import is_xquery, text_of, without_comments
from pathcast_papers.language.xquery.scanner import TEXT_BYTES_MAX

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


COMMENTS = ("(: c :)", "(::)", '(: it\'s "quoted" (: and nested :) / < [ :)', "(:\n:)")
_WORDS = re.compile(r"""("[^"]*"|'[^']*'|Q\{[^}]*\}|[\w.:*@$-]+)|([ \t\r\n]+)""")


def commented(rng: random.Random, text: str) -> str:
    """An expression without constructors, with comments for some of its blanks."""
    return _WORDS.sub(
        lambda found: (
            found[0]
            if found[1] is not None or rng.randrange(2)
            else found[0] + rng.choice(COMMENTS) + " "
        ),
        text,
    )


def outcome(text: str, namespaces: Mapping[str, str], deliver: str) -> object:
    """What a text is compiled to, but for places in it; or the code of its error."""
    try:
        compiled = compile_subscription(text, namespaces, deliver)
    except QuerySyntaxError as error:
        return error.code
    program = compiled.program and text_of(compiled.program)
    return compiled.kind, program, compiled.alternatives, compiled.expression


@pytest.mark.parametrize("deliver", ["fragment", "ids"])
def test_a_comment_changes_nothing(deliver: str) -> None:
    """Neither the language of a text nor what is made of it."""
    rng = random.Random(f"comments {deliver}")
    vocabulary = VOCABULARIES["orders"]
    kinds: Counter[str] = Counter()
    fixed = [text for text in (*XPATH, *XQUERY) if "<" not in text]
    for _ in range(120):
        texts = [
            rng.choice(fixed),
            random_expression(rng, ALPHABET),
            random_notice(rng, vocabulary, 1).text,
        ]
        for text in texts:
            # Comments are none between tags.
            if re.search(r"<[a-z/]", text):
                continue
            wanted = outcome(text, vocabulary.namespaces, deliver)
            for changed in (f"(: c :) {text}", f"{text} (: c (: d :) :)", commented(rng, text)):
                assert is_xquery(changed) == is_xquery(text), changed
                assert outcome(changed, vocabulary.namespaces, deliver) == wanted, changed
            kinds[wanted[0] if isinstance(wanted, tuple) else "error"] += 1
    assert min(kinds["xpath"], kinds["xquery"], kinds["error"]) > 15, kinds


def test_a_comment_in_a_string_or_a_namespace_is_none() -> None:
    for text in ("//a[. = '(: c :)']", '//a[. = "(:"]', "//Q{urn:(:x:)}a"):
        assert without_comments(text) == text
    assert without_comments("//a (: it's :)[b]") == "//a" + 11 * " " + "[b]"
    assert without_comments("//a (: b") == "//a (: b"


def test_places_of_faults_are_those_of_the_text() -> None:
    text = "(: c :) //a[b < ]"
    with pytest.raises(QuerySyntaxError) as caught:
        compile_subscription(text)
    assert caught.value.params["offset"] == text.index("]")


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

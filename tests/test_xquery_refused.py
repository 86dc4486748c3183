"""What is no subscription is said to be none: by name, by code, with its place.

If these fail, somebody learns too late, or not where, that a subscription cannot work.
"""

from __future__ import annotations

import pickle

import pytest

from pathcast.errors import CATALOGUE, QuerySyntaxError, UnsupportedQueryError
from pathcast.query.functions import REFUSED_ARGUMENTS, argument_counts
from pathcast.query.refused_functions import refused_functions
from pathcast.query.xquery import parse
from xquery_cases import NAMESPACES, REFUSED, WRONG


@pytest.mark.parametrize(("text", "construct"), REFUSED)
def test_refused_by_name(text: str, construct: str) -> None:
    with pytest.raises(UnsupportedQueryError) as caught:
        parse(text, NAMESPACES)
    assert caught.value.code == "query.unsupported"
    assert caught.value.params["construct"] == construct
    assert construct in str(caught.value)


@pytest.mark.parametrize(("text", "code", "offset"), WRONG)
def test_wrong_by_code_and_place(text: str, code: str, offset: int | None) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text, NAMESPACES)
    error = caught.value
    assert error.code == code
    assert type(error) is CATALOGUE[code].family
    if offset is not None:
        assert error.params["offset"] == offset
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_every_code_of_xquery_has_a_case() -> None:
    codes = {code for code in CATALOGUE if code.startswith("XQST")}
    assert codes <= {code for _, code, _ in WRONG}


@pytest.mark.parametrize("function", sorted(refused_functions()))
def test_functions_of_the_library_are_refused_by_name(function: str) -> None:
    assert function not in argument_counts()
    with pytest.raises(UnsupportedQueryError, match=rf"the function {function}\(\)"):
        parse(f"//a, fn:{function}()")


@pytest.mark.parametrize("function", sorted(argument_counts()))
def test_arity_is_checked(function: str) -> None:
    fewest, most = argument_counts()[function]
    for given in {fewest - 1, most + 1} - {-1, (1 << 16) + 1}:
        if (function, given) in REFUSED_ARGUMENTS:
            continue
        call = f"{function}({', '.join(['//a'] * given)})"
        with pytest.raises(QuerySyntaxError, match=r"XPST0017: .* takes .*, \d given"):
            parse(f"//a, {call}")


def test_line_and_column_of_a_text_of_several_lines() -> None:
    text = "<hot>{\n  for $s in //story\n  return $t/title\n}</hot>"
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    assert (caught.value.params["line"], caught.value.params["column"]) == (3, 10)
    assert caught.value.to_dict()["line"] == 3
    assert str(caught.value).splitlines() == [
        "XPST0008: variable $t is not declared",
        "  3 |   return $t/title",
        "               ^",
        "  the message is $msg",
    ]


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("for $story in //a return $stori", "did you mean $story?"),
        ("cuont(//a)", "did you mean count()?"),
        ("//a/chlid::b, 1", "did you mean child::?"),
        ("//pp:a, 1", 'declare namespace pp = "...";'),
        ("<a>}{//b}</a>", "write }}"),
        ("<a>&b{//b}</a>", "write &amp;"),
        ("//a = //b = //c", "put one of them in parentheses"),
    ],
)
def test_suggestions(text: str, suggestion: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    assert caught.value.params["suggestion"] == suggestion


@pytest.mark.parametrize(("function", "given"), sorted(REFUSED_ARGUMENTS))
def test_arguments_that_only_xquery_has_are_refused_by_name(function: str, given: int) -> None:
    with pytest.raises(UnsupportedQueryError) as caught:
        parse(f"//a, {function}({', '.join(['//a'] * given)})")
    assert f"{function}()" in str(caught.value.params["construct"])


@pytest.mark.parametrize(
    ("prefix", "uri"),
    [
        ("n", "http://www.w3.org/2000/xmlns/"),
        ("", "http://www.w3.org/2000/xmlns/"),
        ("n", "http://www.w3.org/XML/1998/namespace"),
        ("", "http://www.w3.org/XML/1998/namespace"),
    ],
)
def test_reserved_namespaces_cannot_be_given_either(prefix: str, uri: str) -> None:
    name = f"{prefix}:a" if prefix else "a"
    for text in (f"<{name}>{{//b/@c}}</{name}>", f"//{name}, 1"):
        with pytest.raises(QuerySyntaxError) as caught:
            parse(text, {prefix: uri})
        assert caught.value.code == "XQST0070"


def test_namespaces_that_canonical_texts_cannot_hold_are_refused() -> None:
    for uri in ("urn:{x}", "urn:\ud800", " urn:x", "urn:x\n", "urn:x  y"):
        with pytest.raises(UnsupportedQueryError, match="a namespace URI with"):
            parse("//n:a, 1", {"n": uri})
        with pytest.raises(UnsupportedQueryError, match="a namespace URI with"):
            parse("//a, 1", {"": uri})
    with pytest.raises(UnsupportedQueryError, match="a namespace URI with braces"):
        parse("<a xmlns:n='urn:}}'>{//b}</a>")

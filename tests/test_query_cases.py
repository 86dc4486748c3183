"""The table of queries: canonical form, or error with its place.

If these fail, a query is read otherwise than documented, or an error points elsewhere; if those of
the kernel fail, the two compilers disagree and the engines would answer differently.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathcast.errors import CATALOGUE, QuerySyntaxError, UnsupportedQueryError
from pathcast.query import canonical_form, compile_query, normalise

TABLE = Path(__file__).parent.parent / "testdata" / "queries.toml"
CASES: list[dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["queries"]
ACCEPTED = [case for case in CASES if "canonical" in case]
SPLIT = [case for case in CASES if "alternatives" in case]
REFUSED = [case for case in CASES if "error" in case]

KernelForm = Callable[[str, dict[str, str]], str | None]


def name_of(case: dict[str, Any]) -> str:
    return ascii(case["query"])[1:60]


@pytest.fixture(scope="module")
def kernel_form() -> KernelForm:
    """`canonical_form` of the native kernel."""
    try:
        kernel = importlib.import_module("pathcast_kernel")
    except ImportError as error:
        pytest.skip(f"the native kernel is not installed: {error}")
    form: KernelForm = kernel.canonical_form
    return form


def test_table_is_large_and_of_both_kinds() -> None:
    assert len(ACCEPTED) >= 200
    assert len(SPLIT) >= 100
    assert len(REFUSED) >= 100
    assert len(ACCEPTED) + len(SPLIT) + len(REFUSED) == len(CASES)
    codes = {case["error"] for case in REFUSED}
    static = {"XPST0003", "XPST0008", "XPST0017", "XPST0081", "XPTY0004"}
    assert codes == {*static, "query.unsupported"}
    assert {case["cost"] for case in SPLIT} == {"indexed", "candidate-checked", "scan"}


def test_no_query_stands_twice() -> None:
    keys = [(case["query"], tuple(case.get("namespaces", {}).items())) for case in CASES]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_canonical_form(case: dict[str, Any]) -> None:
    assert canonical_form(case["query"], case.get("namespaces")) == case["canonical"]


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_canonical_text_reads_back(case: dict[str, Any]) -> None:
    normal = normalise(case["query"], case.get("namespaces"))
    assert normalise(case["canonical"]) == normal
    assert normal.text == case["canonical"]


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_one_path_is_indexed(case: dict[str, Any]) -> None:
    compiled = compile_query(case["query"], case.get("namespaces"))
    assert compiled.texts == [case["canonical"]]
    assert compiled.expression is None
    assert compiled.cost.value == "indexed"
    assert compiled.reasons == ()


@pytest.mark.parametrize("case", SPLIT, ids=name_of)
def test_split(case: dict[str, Any]) -> None:
    compiled = compile_query(case["query"], case.get("namespaces"))
    assert compiled.texts == case["alternatives"]
    assert compiled.expression == case.get("expression")
    assert compiled.cost.value == case["cost"]
    assert bool(compiled.reasons) == (compiled.expression is not None)
    with pytest.raises(UnsupportedQueryError) as raised:
        normalise(case["query"], case.get("namespaces"))
    assert raised.value.code == "query.not_one_path"


@pytest.mark.parametrize("case", SPLIT, ids=name_of)
def test_split_reads_back(case: dict[str, Any]) -> None:
    for alternative in case["alternatives"]:
        assert canonical_form(alternative) == alternative
    if "expression" in case:
        again = compile_query(case["expression"])
        assert again.expression == case["expression"]
        assert again.texts == case["alternatives"]


@pytest.mark.parametrize("case", REFUSED, ids=name_of)
def test_refusal(case: dict[str, Any]) -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        normalise(case["query"], case.get("namespaces"))
    error = raised.value
    assert error.code == case["error"]
    assert error.params.get("construct") == case.get("construct")
    assert error.params["offset"] == case["offset"]
    assert error.params["query"] == case["query"]
    assert error.params["reason"]
    assert isinstance(error, UnsupportedQueryError) == (error.code == "query.unsupported")
    assert type(error) is CATALOGUE[error.code].family


@pytest.mark.parametrize("case", REFUSED, ids=name_of)
def test_refusal_shows_the_place(case: dict[str, Any]) -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        normalise(case["query"], case.get("namespaces"))
    lines = str(raised.value).splitlines()
    assert "?" not in lines[0].removesuffix("?")
    assert lines[2] == " " * (case["offset"] + 2) + "^"


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_kernel_gives_the_same_form(case: dict[str, Any], kernel_form: KernelForm) -> None:
    expected = case["canonical"] if case.get("fast", True) else None
    assert kernel_form(case["query"], case.get("namespaces", {})) == expected


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_kernel_takes_every_canonical_text(case: dict[str, Any], kernel_form: KernelForm) -> None:
    assert kernel_form(case["canonical"], {}) == case["canonical"]


@pytest.mark.parametrize("case", REFUSED + SPLIT, ids=name_of)
def test_kernel_declines_all_else(case: dict[str, Any], kernel_form: KernelForm) -> None:
    assert kernel_form(case["query"], case.get("namespaces", {})) is None


@pytest.mark.parametrize("case", SPLIT, ids=name_of)
def test_kernel_takes_every_alternative(case: dict[str, Any], kernel_form: KernelForm) -> None:
    for alternative in case["alternatives"]:
        assert kernel_form(alternative, {}) == alternative


SUGGESTIONS = {
    "/a/": "leave out the / at the end",
    "/a//": "leave out the // at the end",
    "/a//[b]": "//*[...]",
    "/a[@b == 3]": "one =",
    "/a[@b => 3]": ">=",
    "/a[@b && @c]": "`and`",
    "/a[@b || @c]": "`or`",
    "/a[@b AND @c]": "`and`",
    "/a[@b lt 3]": "write <",
    "/a[@b &lt; 3]": "not escaped",
    "/a[@b=“x”]": "straight quotes",
    "/a[@b = 'x]": "close it with '",
    "/a[b": "close the predicate with ]",
    "(/a": "close the parenthesis with )",
    "/a[(b]": "close the parenthesis with )",
    "/a[@b='x' @c='y']": "`and`",
    "/decendant::a": "descendant::",
    "/a[cuont(b)]": "count()",
    "/a[TEXT()='x']": "text()",
    "/a/txt()": "text()",
    "/a/count(b)": "no step",
    "/p:a": "*:a",
    "$x/a": "$msg",
    "count('x') > 1": "string-length()",
    "doc(@x)/a": "begin the path with /",
}


@pytest.mark.parametrize("query", SUGGESTIONS)
def test_suggestion(query: str) -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        normalise(query)
    suggestion = raised.value.params["suggestion"]
    assert isinstance(suggestion, str)
    assert SUGGESTIONS[query] in suggestion
    assert str(raised.value).endswith(suggestion)

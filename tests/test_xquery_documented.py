"""The description of the subscription language is true, table by table.

If these fail, subscribers are promised what there is not, or not told what there is.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast.query import compile_subscription
from pathcast.query.refused_functions import in_xquery
from pathcast.query.xquery import (
    binding_of,
    is_xquery,
    parse,
)
from pathcast_papers.language import xquery as reference
from pathcast_papers.language.xquery.frame import content_expressions
from pathcast_papers.language.xquery.scanner import (
    DEPTH_MAX,
    NODES_MAX,
    PREDICATES_MAX,
    TEXT_BYTES_MAX,
    TREE_DEPTH_MAX,
)

DOCUMENT = Path(__file__).parent.parent / "docs" / "subscriptions.md"
NAMESPACES = {"n": "urn:n"}
DELIMITER = re.compile(r"(?<!\\)\|")


def rows(heading: str, columns: int) -> list[list[str]]:
    """The rows of the table below a heading with so many columns; `\\|` is a bar."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"{heading}\n", 1)[1]
    found = []
    for line in re.split(r"\n#+ ", section)[0].splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in DELIMITER.split(line)[1:-1]]
        if len(cells) == columns and not set(line) <= set("|- "):
            found.append(cells)
    return found[1:]


def code(cell: str) -> str:
    match = re.fullmatch(r"`(.*)`", cell)
    assert match is not None, cell
    return match[1]


def test_examples() -> None:
    result = doctest.testfile(str(DOCUMENT), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    assert result.attempted >= 7


@pytest.mark.parametrize(("text", "language"), rows("## XPath or XQuery", 2))
def test_language(text: str, language: str) -> None:
    assert is_xquery(code(text)) == (language == "XQuery")


@pytest.mark.parametrize(("construct", "text"), rows("## What is accepted", 2))
def test_accepted(construct: str, text: str) -> None:
    compiled = compile_subscription(code(text), NAMESPACES)
    assert compiled.kind == "xquery", construct


def test_functions_are_listed() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").split("The functions are", 1)[1]
    listed = re.findall(r"`([A-Za-z-]+)`", section.split("all of them")[0])
    assert listed == list(in_xquery())


@pytest.mark.parametrize(("construct", "text", "name"), rows("## What is refused", 3))
def test_refused(construct: str, text: str, name: str) -> None:
    with pytest.raises(UnsupportedQueryError) as caught:
        compile_subscription(code(text), NAMESPACES, "ids")
    assert caught.value.params["construct"] == name, construct


@pytest.mark.parametrize(("text", "expected"), rows("## What is refused", 2))
def test_errors(text: str, expected: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        compile_subscription(code(text), NAMESPACES)
    assert caught.value.code == code(expected)


@pytest.mark.parametrize(("text", "gate"), rows("### The gate", 2))
def test_gates(text: str, gate: str) -> None:
    assert list(compile_subscription(code(text)).alternatives) == re.findall(r"`([^`]*)`", gate)


@pytest.mark.parametrize(
    ("text", "expressions", "delivered"), rows("### When a message is delivered", 3)
)
def test_content_expressions(text: str, expressions: str, delivered: str) -> None:
    assert delivered
    parse(code(text))
    found = content_expressions(reference.parse(code(text)))
    count = 1 if expressions == "the FLWR" else len(re.findall(r"`[^`]*`", expressions))
    assert len(found) == count


VALUES_MAX = 100_000
"""Of the kernel; `test_lists` finds one more refused."""


def test_limits_are_those_of_the_parser() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").split("Limits of a text:", 1)[1][:400]
    numbers = [int(text.replace(",", "")) for text in re.findall(r"\d[\d,]*\d", section)]
    bounds = [TEXT_BYTES_MAX // 1024, NODES_MAX, PREDICATES_MAX, DEPTH_MAX, TREE_DEPTH_MAX]
    assert numbers == [*bounds, VALUES_MAX]


def test_the_first_example_is_of_the_class_that_shares_plans() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").split("```xquery\n")[1].split("```")[0]
    assert binding_of(parse(text)) is not None


def test_tables_are_found() -> None:
    assert len(rows("## What is accepted", 2)) >= 25
    assert len(rows("## What is refused", 3)) >= 35
    assert len(rows("## What is refused", 2)) >= 10
    assert len(rows("### The gate", 2)) >= 7

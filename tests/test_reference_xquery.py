"""FLWR subscriptions in the reference interpreter: values, constructors, results.

If these fail, the reference has other results than XQuery 1.0 gives (or than the differences that
are named allow), and the kernel is measured against something wrong.
"""

from __future__ import annotations

import re

import pytest

from flwr_cases import FlwrGroup, flwr_groups
from oracles.saxon import SaxonError, SaxonOracle, saxon_missing_reason
from pathcast.errors import ConstructionError
from pathcast.message.canonical import canonical
from pathcast_papers.evaluation.xpath import Document
from pathcast_papers.language.syntax import Axis
from pathcast_papers.language.xquery import parse
from pathcast_papers.language.xquery.functions import ARGUMENT_COUNTS
from pathcast_papers.language.xquery.syntax import NodeKind
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.xquery import Evaluation, evaluate, holds
from test_formatted_values import COMPARED, MOMENT_PICTURES, OTHERS
from test_sequence_operators import EXPRESSIONS, PARTS, part_of

GROUPS = {group.name: group for group in flwr_groups()}
XQUERY = {name: group for name, group in GROUPS.items() if group.saxon_differs is None}
NAMED = {name: group for name, group in GROUPS.items() if group.saxon_differs is not None}

needs_saxon = pytest.mark.skipif(
    saxon_missing_reason() is not None, reason=str(saxon_missing_reason())
)


def evaluated(group: FlwrGroup, query: str, document: Document) -> Evaluation | str:
    """What the interpreter gives, or the code of its verdict."""
    try:
        return evaluate(parse(query, group.namespaces), document)
    except ConstructionError as error:
        return error.code


def is_built(evaluation: Evaluation) -> bool:
    """Whether a result is an element."""
    return any(result.startswith(b"<") for result in evaluation.results)


@pytest.mark.parametrize("name", GROUPS)
def test_results_are_as_written(name: str) -> None:
    group = GROUPS[name]
    document = Document(parse_message(group.message))
    for query, expected in group.cases:
        found = evaluated(group, query, document)
        if isinstance(found, Evaluation):
            assert found.results == expected, query
            assert found.is_delivered == bool(expected), query
            # A value may be false; nothing else that is delivered is.
            if is_built(found) or not expected:
                assert holds(parse(query, group.namespaces), document) == bool(expected), query
        else:
            assert found == expected, query


@needs_saxon
@pytest.mark.parametrize("name", XQUERY)
def test_results_are_those_of_saxon(name: str) -> None:
    group = XQUERY[name]
    oracle = SaxonOracle.shared()
    for query, expected in group.cases:
        if isinstance(expected, str):
            with pytest.raises(SaxonError, match=expected):
                oracle.evaluate(query, group.message, group.namespaces)
        else:
            found = oracle.evaluate(query, group.message, group.namespaces)
            assert [canonical(each) for each in found] == [canonical(each) for each in expected], (
                query
            )


@needs_saxon
@pytest.mark.parametrize("name", NAMED)
def test_named_differences_are_differences(name: str) -> None:
    """A difference that is none any more would hide what Saxon could tell."""
    group = NAMED[name]
    oracle = SaxonOracle.shared()
    differing = 0
    for query, expected in group.cases:
        try:
            found = oracle.evaluate(query, group.message, group.namespaces)
        except SaxonError:
            differing += 1
            continue
        if expected and isinstance(expected, tuple):
            differing += [canonical(each) for each in found] != [
                canonical(each) for each in expected
            ]
        else:
            differing += bool(found) != bool(expected)
    assert differing > len(group.cases) / 3


KEYWORDS = (
    *("for", "at", "in", "let", "where", "stable", "order", "by", "ascending", "descending"),
    *("empty", "greatest", "least", "return", "some", "every", "satisfies", "if", "then", "else"),
    *("and", "or", "div", "idiv", "mod", "union", "eq", "ne", "lt", "le", "gt", "ge"),
    *("xquery", "version", "declare", "namespace", "default", "element"),
)


def test_every_part_of_the_language_has_cases() -> None:
    """The cases are what the other engines are asked; an empty file would prove nothing."""
    queries = [query for group in GROUPS.values() for query, _ in group.cases]
    assert len(queries) > 600
    queries += [*EXPRESSIONS, *(part_of(to, part) for to in PARTS for part in PARTS[to])]
    queries += [*COMPARED, *OTHERS, "format-number"]
    queries += [f"format-{of} adjust-{of}-to-timezone" for of in MOMENT_PICTURES]
    words = {word for query in queries for word in re.findall(r"[\w-]+", query)}
    axes = {f"{axis.value}::" for axis in Axis if axis is not Axis.NAMESPACE}
    written = " ".join(queries).replace("@", "attribute::").replace("..", "parent::")
    assert [axis for axis in sorted(axes) if axis not in written] == []
    assert {*KEYWORDS, *ARGUMENT_COUNTS, *(kind.value for kind in NodeKind)} <= words

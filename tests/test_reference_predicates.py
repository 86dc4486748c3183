"""Inline, Selection Postponed and NP-Filter do what the paper says, and where it errs, better."""

from __future__ import annotations

import math

import pytest

from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_papers import Selection, parse
from pathcast_papers.evaluation.comparison import number_of, passes
from pathcast_papers.filtering.execution import Execution
from pathcast_papers.filtering.inline import Inline, QueryEvaluation, store_predicates
from pathcast_papers.filtering.predicate import ElementTests, predicates_of
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.filtering.yfilter import YFilter
from pathcast_papers.language import (
    AnyName,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Name,
    NestedCondition,
    NormalQuery,
    Operator,
    Stage,
    Step,
    ValueCondition,
    normalise,
)


def tree_of(text: str) -> MessageTree:
    return parse(text.encode(), Limits())


def is_match(selection: Selection, query: str, message: str) -> bool:
    yfilter = YFilter(selection)
    plan = QueryPlan(normalise(query))
    yfilter.insert(plan)
    return plan in yfilter.match(tree_of(message))


def child(name: str, *conditions: Condition) -> Step:
    """A step as it stands before equal queries are brought into one form."""
    stages = (Stage((), conditions),) if conditions else ()
    return Step(Axis.CHILD, Name("", name), stages)


def nested(*steps: Step) -> NestedCondition:
    return NestedCondition(steps)


both = pytest.mark.parametrize("selection", list(Selection))


@both
def test_predicates_of_different_elements_do_not_add_up(selection: Selection) -> None:
    """Section 5.1: siblings (backtracking) and nested elements (recursion) stay apart."""
    query = "//a[@a1='v1'][@a2='v2']"
    assert not is_match(selection, query, "<r><a a1='v1'/><a a2='v2'/></r>")
    assert not is_match(selection, query, "<a a1='v1'><a a2='v2'/></a>")
    assert is_match(selection, query, "<a a1='v1'><a a1='v1' a2='v2'/></a>")


@both
def test_the_recursive_example(selection: Selection) -> None:
    """Figure 21: the second path match satisfies q5."""
    assert is_match(selection, "//a[@a1='v2']//b", "<a a1='v1'><a a1='v2'><b/></a></a>")
    assert not is_match(selection, "//a[@a1='v2']/b", "<a a1='v2'><a a1='v1'><b/></a></a>")


@both
def test_elements_of_different_path_matches_do_not_add_up(selection: Selection) -> None:
    """Appendix A asks for some element a step; that is one condition too few."""
    query = "//a[@x]//b[@y]"
    assert not is_match(selection, query, "<a><b y=''><a x=''><b/></a></b></a>")
    assert is_match(selection, query, "<a><b y=''><a x=''><b y=''/></a></b></a>")


def test_appendix_a_alone_would_match_wrongly() -> None:
    """The message above passes the printed rule, so the stricter one is needed."""
    yfilter = YFilter(Selection.INLINE)
    plan = QueryPlan(normalise("//a[@x]//b[@y]"))
    yfilter.insert(plan)
    evaluation = QueryEvaluation(plan)
    evaluation.note(0, 2)  # the inner a has x
    evaluation.note(1, 1)  # the outer b has y
    assert evaluation.has_element_per_step()
    assert not is_match(Selection.INLINE, "//a[@x]//b[@y]", "<a><b y=''><a x=''><b/></a></b></a>")


def test_inline_takes_its_notes_back() -> None:
    """Appendix A, part 3: after the end of an element nothing refers to it."""
    plan = QueryPlan(normalise("/r/a[@x]/b[@y]"))
    yfilter = YFilter(Selection.INLINE)
    yfilter.insert(plan)
    tree = tree_of("<r><a x=''><b/></a><a><b y=''/></a></r>")
    inline = Inline(ElementTests(tree))
    execution = Execution(yfilter.nfa)
    for element, name in enumerate("rab"):
        inline.start_element(execution.start_element(element, "", name))
    assert inline._evaluation(plan).elements == {2: [{1}], 3: [set()]}
    for _ in range(2):
        execution.end_element()
        inline.end_element()
    assert inline._evaluation(plan).elements == {2: [set()], 3: [set()]}
    assert plan not in inline.satisfied


def test_inline_stores_predicates_at_the_states_of_their_steps() -> None:
    """Figure 19: tables of (query, predicate) at the states."""
    yfilter = YFilter()
    plan = QueryPlan(normalise("/a[@x][@y]//b[2]"))
    yfilter.insert(plan)
    store_predicates(yfilter.nfa, plan)
    a, b = yfilter.nfa.states_on(plan.steps)
    assert [number for _, number, _ in a.predicates] == [0, 1]
    assert [number for _, number, _ in b.predicates] == [2]


def test_predicates_carry_step_numbers() -> None:
    """Figure 20: SP finds the element of a predicate by its step number."""
    plan = QueryPlan(normalise("/a[@x]/*/b[@y][2][@z]"))
    assert [predicate.step_number for predicate in predicates_of(plan)] == [1, 3, 3, 3]


def test_query_decomposition() -> None:
    """Section 6.2.1: q6 has a main path and two extended nested paths."""
    plan = QueryPlan(normalise("/a[d]/b[e/f]/c"))
    assert len(plan.steps) == 3
    assert [(path.anchor_step, len(path.steps)) for path in plan.nested_paths] == [(1, 2), (2, 4)]


def test_query_decomposition_of_several_levels() -> None:
    """Section 6.2.3: inner nested paths come before those that need their filters."""
    c_d = nested(child("c"), child("d"))
    plan = QueryPlan(
        NormalQuery((child("a", nested(child("b", c_d), child("e", nested(child("f"))))),))
    )
    assert [(path.anchor_step, len(path.steps)) for path in plan.nested_paths] == [
        (2, 4),
        (3, 4),
        (1, 3),
    ]


def test_paths_are_shared_by_main_and_nested_paths() -> None:
    """Footnote 10: one store for each distinct path, whoever needs it."""
    yfilter = YFilter()
    for text in ("/a/b", "/a[b]", "/a[b]/b", "/a[b[c]]", "/a/b/c"):
        yfilter.insert(QueryPlan(normalise(text)))
    assert yfilter.nfa.state_count == 4


def test_equal_nested_paths_share_their_filter() -> None:
    b_is_1 = nested(child("b", ValueCondition(Comparison(Operator.EQ, 1.0))))
    first = QueryPlan(NormalQuery((child("a", b_is_1), child("c"))))
    second = QueryPlan(NormalQuery((child("a", AttributeCondition(AnyName()), b_is_1),)))
    other = QueryPlan(NormalQuery((child("r"), child("a", b_is_1))))
    assert first.nested_paths[0].key == second.nested_paths[0].key
    assert first.nested_paths[0].key != other.nested_paths[0].key


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1.0),
        ("-1", -1.0),
        (" 1.5\n", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.5", -0.5),
        ("007", 7.0),
        ("-0", 0.0),
        ("9" * 400, math.inf),
    ],
)
def test_numbers(text: str, number: float) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-",
        ".",
        "-.",
        "+1",
        "1e3",
        "1E3",
        "0x1",
        "- 1",
        "--1",
        "1 2",
        "1,5",
        "NaN",
        "Infinity",
        "inf",
        "\u00a01",
        "\u0661",
        "1_0",
        "\x0b1",
    ],
)
def test_not_numbers(text: str) -> None:
    """What `float()` or libxml2 would read and XPath 1.0 does not."""
    assert math.isnan(number_of(text))
    assert passes(text, Comparison(Operator.NE, 1.0))
    assert not any(
        passes(text, Comparison(operator, 1.0))
        for operator in Operator
        if operator is not Operator.NE and not operator.is_call
    )

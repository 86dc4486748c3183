"""The automaton of the reference engine is the paper's, structure by structure.

If these fail, the reference may give right answers still, but no longer shows how YFilter does it.
"""

from __future__ import annotations

import pytest

from pathcast.limits import Limits
from pathcast.model import Query
from pathcast_papers import ReferenceIndex, Selection, parse
from pathcast_papers.evaluation.fragment import EPSILON, fragment
from pathcast_papers.filtering.execution import Execution, bound_elements, path_matches
from pathcast_papers.filtering.nfa import CombinedNFA, State
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.filtering.yfilter import YFilter
from pathcast_papers.language import normalise


def combined(*texts: str) -> tuple[CombinedNFA, dict[str, State]]:
    nfa = CombinedNFA()
    return nfa, {text: nfa.insert(normalise(text).steps) for text in texts}


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("/a", [("", "a")]),
        ("/a//b", [("", "a"), EPSILON, ("", "b")]),
        ("/*", [(None, None)]),
        ("/*//b", [(None, None), EPSILON, ("", "b")]),
        ("/Q{u}*", [("u", None)]),
        ("/*:a", [(None, "a")]),
        ("/a//@x", [("", "a"), EPSILON]),
    ],
)
def test_fragments_of_location_steps(text: str, symbols: list[object]) -> None:
    """Figure 8: one transition a step, an epsilon-transition before it for `//`."""
    steps = normalise(text).steps
    assert [symbol for step in steps for symbol in fragment(step.axis, step.test)] == symbols


def test_common_prefixes_are_stored_once() -> None:
    """Figure 7: the eight example queries share states, two of them all of them."""
    nfa, states = combined(
        "/a/b", "/a/c", "/a/b/c", "/a//b/c", "/a/*/b", "/a//c", "/a/*/*/c", "/a/b/c "
    )
    assert states["/a/b/c"] is states["/a/b/c "]
    # initial; a; a/b, a/c, a/b/c; a//, a//b, a//b/c, a//c; a/*, a/*/b, a/*/*, a/*/*/c
    assert nfa.state_count == 13
    assert states["/a/b/c"].parent is states["/a/b"]
    assert states["/a//c"].parent is states["/a//b/c"].parent.parent  # type: ignore[union-attr]


def test_descendant_step_goes_over_a_state_of_its_own() -> None:
    """Figure 9c: without the epsilon-transition, merging `//a` would turn `/b` into `//b`."""
    nfa, states = combined("/b", "//a")
    descendant_child = states["//a"].parent
    assert descendant_child is not None
    assert descendant_child.is_descendant_child
    assert descendant_child.parent is nfa.initial
    assert states["/b"].parent is nfa.initial
    assert not states["/b"].is_descendant_child


def test_execution_backtracks_by_popping() -> None:
    """Figure 10: the end of an element brings back the states before it."""
    nfa, states = combined("/a/b", "/a//c")
    execution = Execution(nfa)
    execution.start_element(0, "", "a")
    active = set(execution.stack[-1])
    reached = {entry.state for entry in execution.start_element(1, "", "b")}
    assert states["/a/b"] in reached
    execution.end_element()
    assert set(execution.stack[-1]) == active
    reached = {entry.state for entry in execution.start_element(2, "", "c")}
    assert states["/a//c"] in reached
    assert states["/a/b"] not in reached


def test_path_matches_follow_predecessor_pointers() -> None:
    """Figure 21: both path matches of //a//b, elements of the //-child state left out."""
    nfa, states = combined("//a//b")
    execution = Execution(nfa)
    execution.start_element(0, "", "a")
    execution.start_element(1, "", "a")
    execution.start_element(2, "", "x")
    targets = execution.start_element(3, "", "b")
    (entry,) = [entry for entry in targets if entry.state is states["//a//b"]]
    assert sorted(path_matches(entry)) == [(0, 3), (1, 3)]
    assert bound_elements([entry], 1, lambda step, element: True) == {0, 1}
    assert bound_elements([entry], 1, lambda step, element: element != 3) == set()


def test_descendant_or_self_accepts_at_the_element_itself() -> None:
    """`/a//@x` asks `a` too: its //-child state accepts over the epsilon-transition."""
    nfa, states = combined("/a//@x")
    states["/a//@x"].store_users = 1
    execution = Execution(nfa)
    matches: list[tuple[int, ...]] = []
    for element, name in enumerate("ab"):
        for entry in execution.start_element(element, "", name):
            if entry.state is states["/a//@x"]:
                matches += path_matches(entry)
    assert sorted(matches) == [(0, 0), (0, 1)]


def test_recursion_does_not_list_path_matches() -> None:
    """Six `//a` steps in sixty nested `a` have fifty million path matches; none may be listed."""
    index = ReferenceIndex({})
    index.register(
        [
            Query("none", "//a[@x]//a[@x]//a[@x]//a[@x]//a[@x]//a[@x][@y]"),
            Query("nested", "//a[b]//a[b]//a[b]//a[b]//a[b]//a[c]"),
            Query("some", "//a//a//a[@x]//a//a//a[@x]"),
        ],
        {},
    )
    message = b"<a x=''>" * 60 + b"<b/>" + b"</a>" * 60
    (satisfied,), ids = index.match([parse(message, Limits())], Limits(evaluation_steps_max=1))
    assert [ids[number] for number in satisfied.numbers] == ["some"]


def test_equal_queries_share_one_plan_and_state() -> None:
    index = ReferenceIndex({})
    texts = ["/a/b[@x=1][@y]", "/child::a/b[@y and 1 = @x]", "a/b[@y][@x = 1.0]"]
    index.register([Query(str(number), text) for number, text in enumerate(texts)], {})
    assert index.distinct_count == 1
    assert index.yfilter.nfa.state_count == 3


@pytest.mark.parametrize("selection", list(Selection))
def test_deletion_takes_back_exactly_what_insertion_added(selection: Selection) -> None:
    """Section 4.6: a state goes when it accepts nothing and leads nowhere."""
    texts = ["/a/b", "/a/b[@x]//c", "//c[d/e[@x]/f]/g", "/a//b[c]", "//.[@x]", "/a//@x", "/a[d]/b"]
    yfilter = YFilter(selection)
    counts = [yfilter.nfa.state_count]
    plans = [QueryPlan(normalise(text)) for text in texts]
    for plan in plans:
        yfilter.insert(plan)
        counts.append(yfilter.nfa.state_count)
    for plan in reversed(plans):
        assert yfilter.nfa.state_count == counts.pop()
        yfilter.delete(plan)
    assert yfilter.nfa.state_count == counts.pop() == 1
    assert all(not state.predicates for state in yfilter.nfa.states())


def test_deletion_in_any_order_leaves_the_others() -> None:
    yfilter = YFilter()
    plans = {text: QueryPlan(normalise(text)) for text in ("/a", "/a/b", "/a/b/c", "/a[b/c]")}
    for plan in plans.values():
        yfilter.insert(plan)
    tree = parse(b"<a><b><c/></b></a>", Limits())
    for text in ("/a/b", "/a[b/c]", "/a"):
        yfilter.delete(plans.pop(text))
        assert yfilter.match(tree) == set(plans.values())
    assert yfilter.nfa.state_count == 4


def test_removal_is_lazy_until_compact() -> None:
    """Section 4.6: removed queries are filtered out of the answer; deletion comes later."""
    index = ReferenceIndex({})
    index.register([Query("q1", "/a/b"), Query("q2", "/a/c"), Query("q3", "/a/b")], {})
    index.remove(["q1", "q2"])
    assert index.distinct_count == 2
    (satisfied,), ids = index.match(
        [parse(b"<a><b/><c/></a>", Limits())], Limits(evaluation_steps_max=1)
    )
    assert [ids[number] for number in satisfied.numbers] == ["q3"]
    index.compact()
    assert index.distinct_count == 1
    assert index.yfilter.nfa.state_count == 3

"""Inline: predicates are tried while the NFA runs, at the states that bind their steps.

Every state has a table of the predicates attached to its step, as (query, predicate id). Reaching
a state tries them on the element and notes, per query and predicate, the elements that made it
true; leaving the element takes the notes back. At an accepting state a query is satisfied if each
of its steps has an element for which all predicates of that step are noted.

Example: for `//a[@x=1][@y=1]`, `<a x="1"><a y="1"/></a>` notes element 0 for the first predicate
and element 1 for the second; no element has both.

It takes queries without nested paths only, as the paper does.

Source: Diao et al., TODS 2003, section 5.1 and appendix A.
Differs: the final evaluation of appendix A asks for some element a step, and these may belong to
different path matches: `//a[@x]//b[@y]` is found in `<a><b y=""><a x=""><b/></a></b></a>`, where
no `b` with `y` is inside an `a` with `x`. Here the elements must lie on one path match.
"""

from __future__ import annotations

from collections.abc import Sequence

from pathcast_papers.filtering.execution import StackEntry, exists_path_match
from pathcast_papers.filtering.nfa import CombinedNFA
from pathcast_papers.filtering.predicate import ElementTests, predicates_of
from pathcast_papers.filtering.query_plan import QueryPlan


def store_predicates(nfa: CombinedNFA, query: QueryPlan) -> None:
    """Adds the predicates of a query to the tables of the states that bind its steps."""
    states = nfa.states_on(query.steps)
    for number, predicate in enumerate(predicates_of(query)):
        states[predicate.step_number - 1].predicates.append((query, number, predicate))


def delete_predicates(nfa: CombinedNFA, query: QueryPlan) -> None:
    """Takes the predicates of a query out of the tables again."""
    for state in nfa.states_on(query.steps):
        state.predicates = [row for row in state.predicates if row[0] is not query]


class QueryEvaluation:
    """Bookkeeping of one query in one message (the paper's class of this name).

    Attributes:
        elements: Step number -> for each predicate of the step, the open elements that pass it.
    """

    __slots__ = ("_by_number", "elements", "failed")

    def __init__(self, query: QueryPlan) -> None:
        self.elements: dict[int, list[set[int]]] = {}
        self.failed: set[StackEntry] = set()
        self._by_number: list[set[int]] = []
        for predicate in predicates_of(query):
            noted: set[int] = set()
            self._by_number.append(noted)
            self.elements.setdefault(predicate.step_number, []).append(noted)

    def note(self, predicate: int, element: int) -> None:
        """Notes that an element makes a predicate true."""
        self._by_number[predicate].add(element)

    def undo(self, predicate: int, element: int) -> None:
        """Takes a note back."""
        self._by_number[predicate].discard(element)

    def passes(self, step: int, element: int) -> bool:
        """Whether an element is noted for all predicates of a step."""
        return all(element in noted for noted in self.elements.get(step, ()))

    def has_element_per_step(self) -> bool:
        """Whether every step has an element that all its predicates note (appendix A, part 2)."""
        return all(set.intersection(*noted) for noted in self.elements.values())


class Inline:
    """Value-based predicates of one message, tried at every state that is reached.

    Attributes:
        satisfied: Queries that are satisfied so far.
    """

    def __init__(self, tests: ElementTests) -> None:
        self.satisfied: set[QueryPlan] = set()
        self._tests = tests
        self._evaluations: dict[QueryPlan, QueryEvaluation] = {}
        self._true_predicates: list[list[tuple[QueryPlan, int, int]]] = []

    def start_element(self, targets: Sequence[StackEntry]) -> None:
        """Tries the predicates of all states that an element has led to, then the queries."""
        true_predicates: list[tuple[QueryPlan, int, int]] = []
        for entry in targets:
            for query, number, predicate in entry.state.predicates:
                if query not in self.satisfied and self._tests.holds(predicate, entry.element):
                    self._evaluation(query).note(number, entry.element)
                    true_predicates.append((query, number, entry.element))
        for entry in targets:
            for query in entry.state.queries:
                if query not in self.satisfied and self._is_satisfied(query, entry):
                    self.satisfied.add(query)
        self._true_predicates.append(true_predicates)

    def end_element(self) -> None:
        """Takes back what the element has made true."""
        for query, number, element in self._true_predicates.pop():
            self._evaluation(query).undo(number, element)

    def _is_satisfied(self, query: QueryPlan, entry: StackEntry) -> bool:
        evaluation = self._evaluation(query)
        return evaluation.has_element_per_step() and exists_path_match(
            entry, evaluation.passes, evaluation.failed
        )

    def _evaluation(self, query: QueryPlan) -> QueryEvaluation:
        evaluation = self._evaluations.get(query)
        if evaluation is None:
            evaluation = self._evaluations[query] = QueryEvaluation(query)
        return evaluation

"""YFilter: all distinct queries in one automaton, one message at a time.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.language import normalise
    >>> from pathcast_papers import parse
    >>> yfilter = YFilter()
    >>> plans = [QueryPlan(normalise(text)) for text in ("/a/b[@x=1]", "//c", "/a[b]//c")]
    >>> for plan in plans:
    ...     yfilter.insert(plan)
    >>> satisfied = yfilter.match(parse(b'<a><b x="1"/></a>', Limits()))
    >>> [plan in satisfied for plan in plans]
    [True, False, False]

It knows distinct queries, not who registered them.

Source: Diao et al., TODS 2003, sections 3.2, 4.6, 5 and 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pathcast.message import MessageTree
from pathcast_papers.filtering.execution import Execution, StackEntry
from pathcast_papers.filtering.inline import Inline, delete_predicates, store_predicates
from pathcast_papers.filtering.nested_path_filter import NestedPathFilter
from pathcast_papers.filtering.nfa import CombinedNFA, State
from pathcast_papers.filtering.predicate import ElementTests
from pathcast_papers.filtering.predicate_sorting import PredicateTable, StreamStatistics
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.filtering.selection_postponed import SelectionPostponed
from pathcast_papers.filtering.state_execution import visited_states


class Selection(Enum):
    """When value-based predicates of queries without nested paths are tried."""

    INLINE = "inline"
    POSTPONED = "postponed"
    SORTED = "sorted"
    """Postponed, the most selective predicate of each query first."""


@dataclass(frozen=True, slots=True)
class PathMatching:
    """What the path matching engine hands to the NP-Filters.

    Attributes:
        satisfied: Queries without nested paths that are satisfied.
        stores: The path matches of each distinct path that a query with nested paths has.
        tests: Predicates on the elements of the message.
    """

    satisfied: set[QueryPlan]
    stores: dict[State, list[StackEntry]]
    tests: ElementTests


class YFilter:
    """The filter.

    Args:
        selection: How value-based predicates are tried. Queries with nested paths always have
            their selections postponed, since NP-Filter works on path matches.

    Attributes:
        nfa: The combined NFA.
        predicates_tried: Predicates that Selection Postponed evaluated, over all messages so far.
    """

    def __init__(self, selection: Selection = Selection.POSTPONED) -> None:
        self.nfa = CombinedNFA()
        self.predicates_tried = 0
        self._with_conditions = 0
        self._selection = selection
        self._table = PredicateTable(StreamStatistics() if selection is Selection.SORTED else None)
        self._nested_path_filters: dict[QueryPlan, NestedPathFilter] = {}

    @property
    def size(self) -> int:
        """States of the automaton."""
        return self.nfa.state_count

    def insert(self, plan: QueryPlan) -> None:
        """Merges the paths of a query into the automaton (section 3.2.2)."""
        accepting = self.nfa.insert(plan.steps)
        self._with_conditions += _has_conditions(plan)
        if not plan.nested_paths:
            accepting.queries.append(plan)
            if self._selection is Selection.INLINE:
                store_predicates(self.nfa, plan)
            elif plan.has_predicates:
                self._table.insert(plan)
            return
        nested = [self.nfa.insert(path.steps) for path in plan.nested_paths]
        for state in (accepting, *nested):
            state.store_users += 1
        self._nested_path_filters[plan] = NestedPathFilter(plan, accepting, nested)

    def delete(self, plan: QueryPlan) -> None:
        """Takes a query out, and the states that nothing else needs (section 4.6)."""
        self._with_conditions -= _has_conditions(plan)
        nested_path_filter = self._nested_path_filters.pop(plan, None)
        if nested_path_filter is None:
            accepting = self.nfa.states_on(plan.steps)[-1]
            accepting.queries.remove(plan)
            if self._selection is Selection.INLINE:
                delete_predicates(self.nfa, plan)
            elif plan.has_predicates:
                self._table.delete(plan)
            self.nfa.prune(accepting)
            return
        states = (nested_path_filter.main_store, *nested_path_filter.nested_stores)
        for state in states:
            state.store_users -= 1
        for state in dict.fromkeys(states):
            self.nfa.prune(state)

    def match(self, tree: MessageTree) -> set[QueryPlan]:
        """The queries that a message satisfies."""
        if not self._with_conditions:
            self._table.observe(tree)
            return {plan for state in visited_states(self.nfa, tree) for plan in state.queries}
        matched = self.match_paths(tree)
        self.filter_nested_paths(matched)
        return matched.satisfied

    def match_paths(self, tree: MessageTree) -> PathMatching:
        """The first phase: path matching, and the queries without nested paths."""
        tests = ElementTests(tree)
        selection: Inline | SelectionPostponed = (
            Inline(tests)
            if self._selection is Selection.INLINE
            else SelectionPostponed(tests, self._table)
        )
        execution = Execution(self.nfa)
        stores: dict[State, list[StackEntry]] = {}
        for element in range(len(tree)):
            while len(execution.stack) - 1 > tree.depth[element]:
                execution.end_element()
                selection.end_element()
            targets = execution.start_element(element, *tree.name[element])
            selection.start_element(targets)
            for entry in targets:
                if entry.state.store_users:
                    stores.setdefault(entry.state, []).append(entry)
        if isinstance(selection, SelectionPostponed):
            self.predicates_tried += selection.tried
            self._table.observe(tree)
        return PathMatching(selection.satisfied, stores, tests)

    def filter_nested_paths(self, matched: PathMatching) -> None:
        """The second phase: every NP-Filter, on the path matches of the first (6.2.2).

        Args:
            matched: What the first phase gave; satisfied queries are added to it.
        """
        for plan, nested_path_filter in self._nested_path_filters.items():
            if nested_path_filter.is_satisfied(matched.stores, matched.tests):
                matched.satisfied.add(plan)


def _has_conditions(plan: QueryPlan) -> bool:
    """Whether a query is more than a location path, so that path matches are needed.

    A `//.` at the end always has a condition, so bare accepting states are reached by a transition.
    """
    return plan.has_predicates or bool(plan.nested_paths)

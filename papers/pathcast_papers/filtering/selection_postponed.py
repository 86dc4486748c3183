"""Selection Postponed: predicates are tried on path matches, after the structure has matched.

When an element leads to an accepting state, the path matches that end there are read backwards
along the predecessor pointers, and each query of the state that is not satisfied yet tries its
predicates on the elements of each path match, by step number. The first predicate that fails ends
the path match for the query.

Example: `//a[@x=1]//b` on `<a x="2"><a x="1"><b/></a></a>` gives the path matches (0, 2) and
(1, 2); the second passes.

It keeps nothing between elements but which queries are satisfied.

Source: Diao et al., TODS 2003, section 5.2 and appendix B; the order of predicates: section 5.3.
Differs: where recursion gives an accepting state more than `LISTED_MAX` path matches they are not
listed but walked, each stack entry once a query, so recursive messages cost no more than polynomial
time; predicates are then tried step by step from the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, TypeAlias

from pathcast_papers.filtering.execution import StackEntry, exists_path_match, path_matches
from pathcast_papers.filtering.predicate import ElementTests
from pathcast_papers.filtering.predicate_sorting import PredicateTable
from pathcast_papers.filtering.query_plan import QueryPlan

LISTED_MAX: Final = 16
"""Path matches of one accepting state at one element that are listed."""

PathMatches: TypeAlias = list[tuple[int, ...]]


class SelectionPostponed:
    """Value-based predicates of one message, tried at accepting states.

    Args:
        tests: Predicates on the elements of the message.
        table: The predicates of the queries, in the order in which they are tried.

    Attributes:
        satisfied: Queries that are satisfied so far (the paper's queryEvalList).
        tried: Predicates that were evaluated on listed path matches.
    """

    def __init__(self, tests: ElementTests, table: PredicateTable) -> None:
        self.satisfied: set[QueryPlan] = set()
        self.tried = 0
        self._tests = tests
        self._table = table
        self._failed: dict[QueryPlan, set[StackEntry]] = {}

    def start_element(self, targets: Sequence[StackEntry]) -> None:
        """Tries the queries accepted at the states that an element has led to."""
        for entry in targets:
            matches: PathMatches | None = None
            for query in entry.state.queries:
                if query in self.satisfied:
                    continue
                if not query.has_predicates:
                    self.satisfied.add(query)
                    continue
                if matches is None:
                    matches = list(islice(path_matches(entry), LISTED_MAX + 1))
                if len(matches) > LISTED_MAX:
                    is_satisfied = self._walk(query, entry)
                else:
                    is_satisfied = self._try(query, matches)
                if is_satisfied:
                    self.satisfied.add(query)

    def end_element(self) -> None:
        """Nothing is undone: no bookkeeping refers to open elements."""

    def _try(self, query: QueryPlan, matches: PathMatches) -> bool:
        """Appendix B: whether all predicates are true on some path match."""
        predicates, holds = self._table.of(query), self._tests.holds
        for match in matches:
            for predicate in predicates:
                self.tried += 1
                if not holds(predicate, match[predicate.step_number - 1]):
                    break
            else:
                return True
        return False

    def _walk(self, query: QueryPlan, entry: StackEntry) -> bool:
        """The same without listing path matches."""
        tests, steps = self._tests, query.steps
        return exists_path_match(
            entry,
            lambda step, element: tests.passes(steps[step - 1], element),
            self._failed.setdefault(query, set()),
        )

"""Selection Postponed: predicates are tried on path matches, after the structure has matched.

When an element leads to an accepting state, the path matches that end there are read backwards
along the predecessor pointers, and each query of the state that is not satisfied yet tries its
predicates on the elements of the path match, by step number. The first predicate that fails ends
the path match.

Example: `//a[@x=1]//b` on `<a x="2"><a x="1"><b/></a></a>` gives the path matches (0, 2) and
(1, 2); the second passes.

It keeps nothing between elements but which queries are satisfied.

Source: Diao et al., TODS 2003, section 5.2 and appendix B.
Differs: path matches are not listed but walked, each stack entry once a query, so recursive
messages cost no more than polynomial time.
"""

from __future__ import annotations

from collections.abc import Sequence

from pathcast.reference.execution import StackEntry, exists_path_match
from pathcast.reference.predicate import ElementTests
from pathcast.reference.query_plan import QueryPlan


class SelectionPostponed:
    """Value-based predicates of one message, tried at accepting states.

    Attributes:
        satisfied: Queries that are satisfied so far (the paper's queryEvalList).
    """

    def __init__(self, tests: ElementTests) -> None:
        self.satisfied: set[QueryPlan] = set()
        self._tests = tests
        self._failed: dict[QueryPlan, set[StackEntry]] = {}

    def start_element(self, targets: Sequence[StackEntry]) -> None:
        """Tries the queries accepted at the states that an element has led to."""
        for entry in targets:
            for query in entry.state.queries:
                if query not in self.satisfied and self._is_satisfied(query, entry):
                    self.satisfied.add(query)

    def end_element(self) -> None:
        """Nothing is undone: no bookkeeping refers to open elements."""

    def _is_satisfied(self, query: QueryPlan, entry: StackEntry) -> bool:
        if not query.has_predicates:
            return True
        tests, steps = self._tests, query.steps
        return exists_path_match(
            entry,
            lambda step, element: tests.passes(steps[step - 1], element),
            self._failed.setdefault(query, set()),
        )

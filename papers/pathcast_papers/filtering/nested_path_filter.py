"""NP-Filter: main path matches pass only where every nested path has a match at its anchor.

All paths of a query, the main path and the extended nested paths, run through the automaton like
any others; their path matches are kept in stores, one for each distinct path. After the last
element each query with nested paths is evaluated:

1. store check: if any of its stores is empty, it is not satisfied;
2. filter construction: for each nested path, the elements at the anchor step of its path matches;
3. match filtering: main path matches whose element at an anchor step is not in the filter go;
   one that is left satisfies the query.

A nested path that holds nested paths itself is an NP-Filter below: inner filters are built first,
and the outer path keeps the matches that pass them.

Example: `/a[d]/b[e/f]/c` on `<a><d/><b><e><f/></e></b><b><c/></b></a>`: the filters are {a} and
{the first b}; the only main path match has the second b, so the query is not satisfied.

It runs after the automaton, on its path matches only.

Source: Diao et al., TODS 2003, section 6.2 and figure 25; several levels: 6.2.3.
Differs: a store keeps the stack entries in the accepting state, from which its path matches can be
read along the predecessor pointers, and not lists of element ids; equal nested paths share their
filter too. A position after a nested path counts the elements in the filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pathcast_papers.filtering.execution import StackEntry, bound_elements, exists_path_match
from pathcast_papers.filtering.nfa import State
from pathcast_papers.filtering.predicate import ElementTests
from pathcast_papers.filtering.query_plan import NestedPath, QueryPlan

Stores: TypeAlias = Mapping[State, Sequence[StackEntry]]
"""Accepting state of a distinct path -> its path matches in the message."""


class NestedPathFilter:
    """The NP-Filters of one query: its hierarchy, bottom up.

    Attributes:
        query: The query.
        main_store: Where the path matches of its main path are kept.
        nested_stores: The same for each of its nested paths, in the plan's order.
    """

    __slots__ = ("main_store", "nested_stores", "query")

    def __init__(self, query: QueryPlan, main_store: State, nested_stores: Sequence[State]) -> None:
        self.query = query
        self.main_store = main_store
        self.nested_stores = tuple(nested_stores)

    def is_satisfied(self, stores: Stores, tests: ElementTests) -> bool:
        """Whether a main path match passes all filters.

        Args:
            stores: The path matches of the message.
            tests: Predicates on its elements; receives the filters that are built.
        """
        if not self._has_all_stores(stores):
            return False
        for path, store in zip(self.query.nested_paths, self.nested_stores, strict=True):
            if path.key not in tests.filters:
                tests.filters[path.key] = _filter_of(path, stores[store], tests)
        failed: set[StackEntry] = set()
        steps = self.query.steps
        return any(
            exists_path_match(
                entry, lambda step, element: tests.passes(steps[step - 1], element), failed
            )
            for entry in stores[self.main_store]
        )

    def _has_all_stores(self, stores: Stores) -> bool:
        return self.main_store in stores and all(store in stores for store in self.nested_stores)


def _filter_of(path: NestedPath, store: Sequence[StackEntry], tests: ElementTests) -> set[int]:
    """The elements at the anchor step of the path matches that pass the path's own predicates."""
    steps = path.steps
    return bound_elements(
        store, path.anchor_step, lambda step, element: tests.passes(steps[step - 1], element)
    )

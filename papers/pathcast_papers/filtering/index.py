"""The index of the reference engine: who registered which distinct query.

Equal queries, however they are written, are one distinct query (`query_table`). Removal is lazy:
removed numbers are filtered out before results are returned, and `compact` takes them out of the
automaton.

Example:
    >>> index = ReferenceIndex({})
    >>> report = index.register([Query("q1", "/a/b"), Query("q2", "/child::a/b")], {})
    >>> len(index), index.distinct_count
    (2, 1)

It runs on the caller's thread, one call at a time.

Source: Diao et al., TODS 2003, sections 3.2.2 and 4.6.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from pathcast.errors import DuplicateQueryError, PathcastError, UnknownQueryError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.model import MatcherOptions, Query, RegisterReport
from pathcast_papers.filtering.matcher import ReferenceMatcher
from pathcast_papers.filtering.query_table import QueryTable, Satisfied
from pathcast_papers.filtering.snapshot import ReferenceSnapshot
from pathcast_papers.filtering.yfilter import Selection, YFilter
from pathcast_papers.language import compile_query


class ReferenceIndex:
    """Standing queries in a YFilter.

    Args:
        namespaces: Default bindings of prefixes.
        limits: What a message may cost, as its snapshots shall say.
        selection: How value-based predicates are tried.
    """

    def __init__(
        self,
        namespaces: Mapping[str, str],
        limits: Limits | None = None,
        *,
        selection: Selection = Selection.POSTPONED,
    ) -> None:
        self._namespaces = dict(namespaces)
        self._limits = limits or Limits()
        self._selection = selection
        self._lock = threading.RLock()
        self._yfilter = YFilter(selection)
        self._table = QueryTable(self._yfilter)
        self._queries: list[Query] = []
        self._ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._removed: set[int] = set()

    @property
    def distinct_count(self) -> int:
        """Distinct queries in the automaton, those of removed queries included."""
        return len(self._table)

    @property
    def yfilter(self) -> YFilter:
        """The automaton and what hangs on it."""
        return self._yfilter

    def register(self, queries: Sequence[Query], namespaces: Mapping[str, str]) -> RegisterReport:
        """Adds queries."""
        errors: dict[int, PathcastError] = {}
        with self._lock:
            for place, query in enumerate(queries):
                bindings = {**self._namespaces, **namespaces, **(query.namespaces or {})}
                try:
                    self._register(Query(query.id, query.text, bindings or None))
                except PathcastError as error:
                    errors[place] = error
        return RegisterReport.of(queries, errors)

    def register_gates(self, texts: Sequence[str]) -> RegisterReport:
        """Adds gates of the product, which may cast; the id is the text."""
        queries = [Query(text, text) for text in texts]
        with self._lock:
            for query in queries:
                self._register(query, is_canonical=True)
        return RegisterReport.of(queries, {})

    def _register(self, query: Query, *, is_canonical: bool = False) -> None:
        if query.id in self._numbers:
            raise DuplicateQueryError("query.duplicate", id=query.id)
        number = len(self._ids)
        compiled = compile_query(query.text, query.namespaces, is_canonical=is_canonical)
        self._table.insert(compiled, number)
        self._queries.append(query)
        self._ids.append(query.id)
        self._numbers[query.id] = number

    def remove(self, ids: Sequence[str]) -> None:
        """Takes queries out, lazily."""
        with self._lock:
            for query_id in ids:
                if query_id not in self._numbers:
                    raise UnknownQueryError("query.unknown", id=query_id)
            for query_id in dict.fromkeys(ids):
                self._removed.add(self._numbers.pop(query_id))

    def query(self, query_id: str) -> Query:
        """The query as it was registered."""
        with self._lock:
            if query_id not in self._numbers:
                raise UnknownQueryError("query.unknown", id=query_id)
            return self._queries[self._numbers[query_id]]

    def ids(self) -> list[str]:
        """The ids of all."""
        with self._lock:
            return list(self._numbers)

    def compact(self) -> None:
        """Takes removed queries out of the automaton and numbers the others anew."""
        with self._lock:
            if not self._removed:
                return
            kept = [number for number in range(len(self._ids)) if number not in self._removed]
            self._table.renumber({old: new for new, old in enumerate(kept)})
            # New lists: those handed out before must not change.
            self._ids = [self._ids[number] for number in kept]
            self._queries = [self._queries[number] for number in kept]
            self._numbers = {query_id: number for number, query_id in enumerate(self._ids)}
            self._removed = set()

    def freeze(self) -> ReferenceSnapshot:
        """The queries as they are now, in the order they were registered."""
        with self._lock:
            return ReferenceSnapshot(
                [self._queries[number] for number in sorted(self._numbers.values())],
                self._limits,
                selection=self._selection,
            )

    def matcher(self, options: MatcherOptions) -> ReferenceMatcher:
        """A matcher that sees every change from its next batch on."""
        return ReferenceMatcher(self, options.limits)

    def match(
        self, trees: Sequence[MessageTree], limits: Limits
    ) -> tuple[list[Satisfied], Sequence[str]]:
        """What each message satisfies, and what the numbers stand for."""
        with self._lock:
            return [self._match(tree, limits) for tree in trees], self._ids

    def _match(self, tree: MessageTree, limits: Limits) -> Satisfied:
        found = self._table.match(tree, limits)
        return Satisfied(
            [number for number in found.numbers if number not in self._removed],
            [number for number in found.over_budget if number not in self._removed],
            [number for number in found.undecided if number not in self._removed],
            found.evaluations,
            found.steps,
        )

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._numbers

"""The algorithms of the paper behind one interface: what it compares, by name.

Each takes query plans and answers, for a message, which of them it satisfies. They differ in what
they share between queries, and in the fragment of the query language that they take; on a query
that two of them take, they give the same answers.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.language import normalise
    >>> from pathcast_papers import parse
    >>> tree = parse(b"<a><b/><c/></a>", Limits())
    >>> for algorithm in Algorithm:
    ...     filter_ = algorithm.new()
    ...     plan = QueryPlan(normalise("/a//c"))
    ...     filter_.insert(plan)
    ...     assert filter_.match(tree) == {plan}

A plan belongs to the filter it was inserted into as long as it is in there; equal queries should be
one plan (4.1: identical queries are represented only once).

Source: Diao et al., TODS 2003, sections 3 to 6.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from pathcast.message import MessageTree
from pathcast_papers.filtering.hybrid import Hybrid
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.filtering.xfilter import XFilter
from pathcast_papers.filtering.yfilter import Selection, YFilter


class Filter(Protocol):
    """A filtering algorithm with some queries."""

    @property
    def size(self) -> int:
        """Size of its machine, in its own units: path nodes, trie and substring nodes, states."""

    def insert(self, plan: QueryPlan) -> None:
        """Adds a query.

        Raises:
            UnsupportedQueryError: The query is outside the algorithm's fragment.
        """

    def delete(self, plan: QueryPlan) -> None:
        """Takes a query out."""

    def match(self, tree: MessageTree) -> set[QueryPlan]:
        """The queries that a message satisfies."""


class Algorithm(Enum):
    """An algorithm; the value is its name."""

    XFILTER_BASIC = "xfilter-basic"
    """XFilter that begins with the first path node (3.1.2, figure 5). Linear paths."""
    XFILTER = "xfilter"
    """XFilter with List Balance and prefix check (3.1.2, figure 6). Linear paths."""
    HYBRID = "hybrid"
    """Substring trie with level checks (3.3). Linear paths."""
    YFILTER = "yfilter"
    """YFilter with Selection Postponed and NP-Filter (3.2, 5.2, 6.2). Location paths with
    predicates on attributes, text, value and position, and nested paths to any depth."""
    YFILTER_INLINE = "yfilter-inline"
    """YFilter with Inline (5.1). The same; queries with nested paths are postponed all the same."""
    YFILTER_SORTED = "yfilter-sorted"
    """Selection Postponed with predicate sorting (5.3). The same."""

    @property
    def takes_predicates(self) -> bool:
        """Whether its fragment goes beyond linear paths."""
        return self in (Algorithm.YFILTER, Algorithm.YFILTER_INLINE, Algorithm.YFILTER_SORTED)

    def new(self) -> Filter:
        """The algorithm without queries."""
        match self:
            case Algorithm.XFILTER_BASIC:
                return XFilter()
            case Algorithm.XFILTER:
                return XFilter(balances_lists=True)
            case Algorithm.HYBRID:
                return Hybrid()
            case Algorithm.YFILTER:
                return YFilter(Selection.POSTPONED)
            case Algorithm.YFILTER_INLINE:
                return YFilter(Selection.INLINE)
            case Algorithm.YFILTER_SORTED:
                return YFilter(Selection.SORTED)

"""The fragment of XFilter and Hybrid: linear paths.

A linear path has the axes `/` and `//`, names and wildcards, and no predicate of any kind. Both
algorithms leave wildcards out of what they look up and keep distances in document levels instead;
`gaps` brings a path into that form.

Example:
    >>> from pathcast_papers.language import normalise
    >>> [(gap.levels, gap.is_exact) for gap in gaps(QueryPlan(normalise("/a/*/*//b/c")), "XFilter")]
    [(1, True), (3, False), (1, True)]
    >>> gaps(QueryPlan(normalise("/a[@x]")), "XFilter")
    Traceback (most recent call last):
    ...
    pathcast.errors.UnsupportedQueryError: XFilter takes linear paths only; this query has \
predicates

It evaluates nothing.

Source: Diao et al., TODS 2003, section 3.1.1 (path nodes are not generated for wildcards).
Differs: `RelativePos` of a node after `//` is -1 in the paper, which forgets the wildcards in
between: `/a/*//b` would be `/a//b`. Here the distance is kept and said to be a least one. Wildcards
at the end of a path, of which the paper does not speak, are a node that any element matches.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pathcast.errors import UnsupportedQueryError
from pathcast_papers.evaluation.fragment import Symbol, symbol_of
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.language import AnyName, Axis

ANY: Final[Symbol] = (None, None)
"""The label of a wildcard."""


class Gap(NamedTuple):
    """A location step that is looked up, and how far it is from the one before.

    Attributes:
        symbol: The name; `ANY` only where the path ends in wildcards.
        levels: Document levels from the step that was looked up before, from the document node for
            the first one: 1 and the wildcards in between.
        is_exact: No `//` lies in between, so the distance is exact and not a least one.
    """

    symbol: Symbol
    levels: int
    is_exact: bool


def gaps(plan: QueryPlan, algorithm: str) -> list[Gap]:
    """The steps of a linear path without its wildcards.

    Args:
        plan: The query.
        algorithm: Who asks, for the error.

    Raises:
        UnsupportedQueryError: The query is no linear path.
    """
    if plan.nested_paths:
        raise _refused(algorithm, "nested paths")
    if plan.has_predicates:
        raise _refused(algorithm, "predicates")
    found: list[Gap] = []
    levels, is_exact = 0, True
    for number, step in enumerate(plan.steps, start=1):
        if step.axis is Axis.DESCENDANT_OR_SELF:
            raise _refused(algorithm, "a step that an element and its descendants pass")
        levels += 1
        is_exact = is_exact and step.axis is Axis.CHILD
        if not isinstance(step.test, AnyName) or number == len(plan.steps):
            found.append(Gap(symbol_of(step.test), levels, is_exact))
            levels, is_exact = 0, True
    return found


def _refused(algorithm: str, construct: str) -> UnsupportedQueryError:
    return UnsupportedQueryError(
        "algorithm.fragment", algorithm=algorithm, fragment="linear paths", construct=construct
    )

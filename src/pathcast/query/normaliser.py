"""Queries that are one path in normal form.

Most are: location paths with value predicates, positions and nested paths. What the normal form
keeps and how it is reached is told in docs/query-language.md; `pathcast.query.compiled` does the
work for every query.

Source: paper 003, section 2.2, for the language. Differs: XPath's meaning of positions and
comparisons throughout.
"""

from __future__ import annotations

from pathcast.boundary import native
from pathcast.errors import UnsupportedQueryError
from pathcast.query.canonical import canonical_text
from pathcast.query.compiled import compile_query
from pathcast.query.names import Namespaces
from pathcast.query.normal import NormalQuery
from pathcast.query.normal_data import query_of


def normalise(text: str, namespaces: Namespaces | None = None) -> NormalQuery:
    """The normal form of a query that one path says all of.

    Args:
        text: An XPath 1.0 expression.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.

    Returns:
        The normal form; equal for queries that differ only in notation.

    Raises:
        QuerySyntaxError: As `pathcast.query.compile_query`.
        UnsupportedQueryError: It takes several paths or the evaluator; `compile_query` tells.

    Cost: linear in the text times its depth; some hundred µs.

    Example:
        >>> normalise("//a[@b]") == normalise("descendant::a[attribute::b][@b]")
        True
        >>> normalise("//a[@b or @c]")
        Traceback (most recent call last):
        ...
        pathcast.errors.UnsupportedQueryError: not one path in normal form: has 2 alternatives
          //a[@b or @c]
          ^
    """
    compiled = compile_query(text, namespaces)
    reason, offset = f"has {len(compiled.alternatives)} alternatives", 0
    if compiled.expression is None:
        if len(compiled.alternatives) == 1:
            return compiled.alternatives[0]
    else:
        reason, offset = compiled.reasons[0].text, compiled.reasons[0].offset
    raise UnsupportedQueryError(
        "query.not_one_path", query=text, offset=offset, construct=reason, reason=reason
    )


def of_canonical(text: str) -> NormalQuery:
    """The normal form of a canonical text, which says more than XPath 1.0 can: XQuery's cast.

    Raises:
        QuerySyntaxError: It is none, and no other XPath either.
        UnsupportedQueryError: As in `normalise`.

    Example:
        >>> canonical_text(of_canonical("//a[double(@b)=3]"))
        '//a[double(@b)=3]'
    """
    steps = native.canonical_steps(text)
    return normalise(text) if steps is None else query_of(steps)


def canonical_form(text: str, namespaces: Namespaces | None = None) -> str:
    """The canonical text of a query that one path says all of.

    Args:
        text: An XPath 1.0 expression.
        namespaces: As in `normalise`.

    Returns:
        A text that parses to the same normal form when no namespaces are bound.

    Raises:
        QuerySyntaxError: As in `normalise`.

    Example:
        >>> canonical_form("$msg/nitf//*/p[10 >= @x][2]")
        '/nitf/*//p[@x<=10][position()=2]'
    """
    return canonical_text(normalise(text, namespaces))

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
from pathcast.query.compiled import compile_query, query_errors
from pathcast.query.names import Namespaces


def normalise(text: str, namespaces: Namespaces | None = None) -> native.NormalPath:
    """The normal form of a query that one path says all of.

    Args:
        text: An XPath 1.0 expression.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.

    Returns:
        The normal form; equal for queries that differ only in notation.

    Raises:
        QuerySyntaxError: As `pathcast.query.compile_query`.
        UnsupportedQueryError: It takes several paths or the evaluator; `compile_query` tells.

    Cost: linear in the text times its depth; some µs.

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
    return normalise(text, namespaces).text


def conjunction_of(text: str) -> native.Conjunction:
    """The paths that a text asks for together: location paths with `and` between them.

    Args:
        text: An XPath 1.0 expression without prefixes, or canonical texts.

    Raises:
        QuerySyntaxError: It is no query.
        UnsupportedQueryError: More has to be said than that paths are there.

    Cost: about 1 µs a path in canonical text, some more for another one.

    Example:
        >>> conjunction_of("//b[.='x and y'] and /a").paths
        [NormalPath("//b[.='x and y']"), NormalPath("/a")]
    """
    with query_errors(text, {}):
        found = native.Conjunction.read(text)
    if found is None:
        reason = "asks for more than that paths are there"
        raise UnsupportedQueryError(
            "query.not_one_path", query=text, offset=0, construct=reason, reason=reason
        )
    return found

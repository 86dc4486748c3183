"""What a query becomes: a path, if it is of the paper's class, and an expression in any case.

Example:
    >>> compile_query("//a[@x = 1]").text
    '//a[@x=1]'
    >>> compiled = compile_query("//a[last()]")
    >>> compiled.path, compiled.text
    (None, '/descendant-or-self::node()/child::a[last()]')
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast_papers.language.canonical import canonical_text
from pathcast_papers.language.expression import expression_text
from pathcast_papers.language.names import Namespaces
from pathcast_papers.language.normal import NormalQuery
from pathcast_papers.language.paper_class import path_of
from pathcast_papers.language.parser import DEPTH_MAX, parse
from pathcast_papers.language.static import nesting, resolve
from pathcast_papers.language.syntax import Expr


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query as it is filtered by.

    Attributes:
        text: The canonical text of its path, or of its expression; equal for queries that are one.
        path: The path that says all of it; None if it is not of the paper's class.
        expression: The whole query, names resolved.
    """

    text: str
    path: NormalQuery | None
    expression: Expr = field(repr=False, compare=False)


def compile_query(
    text: str, namespaces: Namespaces | None = None, *, is_canonical: bool = False
) -> CompiledQuery:
    """Compiles a query.

    Args:
        text: An XPath 1.0 expression.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.
        is_canonical: Whether it is canonical text of the product, which has more than XPath 1.0.

    Raises:
        QuerySyntaxError: It is not XPath 1.0, names something that is not declared, has a type
            error, or is over a limit.
    """
    written = parse(text, is_canonical=is_canonical)
    if nesting(written) > 2 * DEPTH_MAX:
        # Operators of many levels within one another would exhaust the stack.
        raise QuerySyntaxError(
            "query.too_deep", query=text, offset=0, maximum=DEPTH_MAX, reason="nests too deep"
        )
    resolved = resolve(written, text, namespaces or {})
    path = path_of(resolved)
    shown = expression_text(resolved) if path is None else canonical_text(path)
    return CompiledQuery(shown, path, resolved)


def normalise(
    text: str, namespaces: Namespaces | None = None, *, is_canonical: bool = False
) -> NormalQuery:
    """The path of a query of the paper's class.

    Args:
        text: An XPath 1.0 expression.
        namespaces: As for `compile_query`.
        is_canonical: As for `compile_query`.

    Raises:
        QuerySyntaxError: As for `compile_query`.
        UnsupportedQueryError: It is not of the class.

    Example:
        >>> normalise("//a[@b]") == normalise("/descendant::a[attribute::b][@b]")
        True
    """
    path = compile_query(text, namespaces, is_canonical=is_canonical).path
    if path is None:
        reason = "is no path of the class that the paper's algorithms take"
        raise UnsupportedQueryError(
            "query.not_one_path", query=text, offset=0, construct=reason, reason=reason
        )
    return path

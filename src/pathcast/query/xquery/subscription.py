"""Subscription text -> what is registered: a bare XPath, or a FLWR program and its gate.

A text is a bare XPath if the grammar of XPath 1.0 takes it, comments left out, and XQuery
otherwise; `is_xquery` alone decides that. So a path keeps the semantics of XPath 1.0 wherever it is
registered, and what only XQuery can say (`for`, tags, `min()`, a prolog) is XQuery. `(//a)` is
XPath; `(//a, //b)` is not.

Example:
    >>> compile_subscription("//story[@urgent]").kind
    'xpath'
    >>> compiled = compile_subscription("<hot>{//story[@urgent]/title}</hot>")
    >>> compiled.kind, compiled.alternatives
    ('xquery', ('//story[@urgent]/title',))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pathcast.errors import PathcastError, UnsupportedQueryError
from pathcast.query.canonical import canonical_text
from pathcast.query.compiled import Reason, compile_query
from pathcast.query.names import Namespaces
from pathcast.query.normal import NormalQuery
from pathcast.query.reader import read_query
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import Expr
from pathcast.query.xquery.gate import gate_of
from pathcast.query.xquery.language import is_xquery, without_comments
from pathcast.query.xquery.paper import PaperQuery, paper_form
from pathcast.query.xquery.reader import parse
from pathcast.query.xquery.syntax import Program


@dataclass(frozen=True, slots=True)
class CompiledSubscription:
    """A subscription, split into what is indexed and what is evaluated.

    Attributes:
        kind: "xpath" or "xquery".
        program: The syntax tree of a FLWR subscription; None for an XPath.
        paths: In normal form, sorted by canonical text. If the subscription is satisfied, one of
            them holds.
        expression: For an XPath, the expression that must be true besides; None where the paths say
            all of it, and for a FLWR, whose program decides.
        reasons: Why something has to be evaluated that the paths do not say.
        conjunctions: Paths that must all be in a message, one conjunction or more: if the
            subscription is satisfied, one of them is there. None if it never is.
    """

    kind: Literal["xpath", "xquery"]
    program: Program | None
    paths: tuple[NormalQuery, ...]
    expression: str | None
    reasons: tuple[Reason, ...]
    conjunctions: tuple[tuple[NormalQuery, ...], ...]

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The canonical texts of the paths."""
        return tuple(map(canonical_text, self.paths))


def compile_subscription(
    text: str, namespaces: Namespaces | None = None, deliver: str = "fragment"
) -> CompiledSubscription:
    """Compiles the query of a subscription.

    Args:
        text: An XPath 1.0 expression or an XQuery FLWR expression.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.
        deliver: "fragment", "message" or "ids". With "fragment", an XPath must select nodes, and no
            result of XQuery is a boolean; otherwise the effective boolean value decides.

    Returns:
        Its program or expression, and the paths of which one must be there.

    Raises:
        QuerySyntaxError: It is neither; the error is of the language that it looks like.
        UnsupportedQueryError: It holds a construct that is refused.

    Cost: linear in the text, times the alternatives.
    """
    bound = namespaces or {}
    if not is_xquery(text):
        return _compile_xpath(text, bound, deliver)
    program = parse(text, bound, deliver)
    gate = gate_of(program, is_condition=deliver != "fragment")
    return CompiledSubscription(
        "xquery", program, gate.paths, None, gate.reasons, gate.conjunctions
    )


def form_of_path(query: str, namespaces: Namespaces) -> PaperQuery | None:
    """A bare XPath as the binding path of a query; None if it is none.

    It tells the structure. What comparisons mean is another thing in XPath 1.0.
    """
    try:
        return paper_form(parse(f"for $bound in {query} return $bound", namespaces))
    except PathcastError:
        return None


def selection_of(text: str, namespaces: Namespaces | None = None) -> Expr:
    """The expression of a subscription that is a bare XPath, names resolved.

    Example:
        >>> from pathcast.query.expression import expression_text
        >>> expression_text(selection_of("(: all :) //a[1]"))
        '/descendant-or-self::node()/child::a[1]'

    Raises:
        QuerySyntaxError: As `compile_subscription`.

    Cost: linear in the text.
    """
    return read_query(without_comments(text), namespaces or {})


def _compile_xpath(text: str, namespaces: Namespaces, deliver: str) -> CompiledSubscription:
    """A bare XPath."""
    compiled = compile_query(without_comments(text), namespaces)
    if deliver == "fragment":
        kind = kind_of(selection_of(text, namespaces))
        if kind is not Kind.NODE_SET:
            found = kind.value.removeprefix("a ")
            raise UnsupportedQueryError(
                "subscription.fragment",
                query=text,
                offset=0,
                found=found,
                construct=f"fragments of {kind.value}",
                reason=f"the expression gives {kind.value}",
            )
    return CompiledSubscription(
        "xpath",
        None,
        compiled.alternatives,
        compiled.expression,
        compiled.reasons,
        compiled.conjunctions,
    )

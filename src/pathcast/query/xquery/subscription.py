"""Subscription text -> what the kernel makes of it: a bare XPath, or a FLWR program and its gate.

A subscriber may choose the language. Otherwise a text is a bare XPath if the grammar of XPath 1.0
takes it, comments left out, and XQuery if not; `is_xquery` alone decides that. So a path keeps the
semantics of XPath 1.0 wherever it is registered, and what only XQuery can say (`for`, tags,
`min()`, a prolog) is XQuery. `(//a)` is XPath; `(//a, //b)` is not.

Example:
    >>> compile_subscription("//story[@urgent]").kind
    'xpath'
    >>> compiled = compile_subscription("<hot>{//story[@urgent]/title}</hot>")
    >>> compiled.kind, compiled.alternatives
    ('xquery', ('//story[@urgent]/title',))
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pathcast.boundary import native, native_errors
from pathcast.errors import KernelBugError, PathcastError, UnsupportedQueryError
from pathcast.model import QueryLanguage
from pathcast.query.compiled import CostClass, Reason, compile_query
from pathcast.query.names import Namespaces
from pathcast.query.reader import read_query
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import Program
from pathcast.query.xquery.language import is_xquery, without_comments
from pathcast.query.xquery.paper import BindingStep, binding_of
from pathcast.query.xquery.reader import parse


@dataclass(frozen=True, slots=True)
class CompiledSubscription:
    """A subscription, split into what is indexed and what is evaluated.

    Attributes:
        kind: "xpath" or "xquery".
        way: How the kernel serves it: its plan is among the shared plans ("shared"), a program runs
            or nodes are selected where its gate holds ("gated", "selecting"), or it is a filter
            query ("filtering").
        cost: The cost class.
        paths: In normal form, sorted by canonical text. If the subscription is satisfied, one of
            them holds.
        expression: For an XPath, the expression that must be true besides; None where the paths say
            all of it, and for a FLWR, whose program decides.
        reasons: Why something has to be evaluated that the paths do not say.
        conjunctions: Paths that must all be in a message, one conjunction or more: if the
            subscription is satisfied, one of them is there. None if it never is.
        query: The text.
        namespaces: Of the text.
    """

    kind: Literal["xpath", "xquery"]
    way: Literal["shared", "gated", "selecting", "filtering"]
    cost: CostClass
    paths: tuple[native.NormalPath, ...]
    expression: str | None
    reasons: tuple[Reason, ...]
    conjunctions: tuple[native.Conjunction, ...]
    query: str = field(repr=False, compare=False)
    namespaces: Namespaces = field(repr=False, compare=False)

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The canonical texts of the paths."""
        return tuple(path.text for path in self.paths)

    @property
    def program(self) -> Program | None:
        """The syntax tree of a FLWR subscription, read anew; None for an XPath."""
        return parse(self.query, self.namespaces) if self.kind == "xquery" else None


def compile_subscription(
    text: str,
    namespaces: Namespaces | None = None,
    deliver: str = "fragment",
    language: QueryLanguage | None = None,
) -> CompiledSubscription:
    """Compiles the query of a subscription.

    Args:
        text: An XPath 1.0 expression or an XQuery FLWR expression.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.
        deliver: "fragment", "message", "ids" or "nodes". With "fragment", an XPath must select
            nodes, and no result of XQuery is a boolean; with "nodes", both give nodes of the
            message only; otherwise the effective boolean value decides.
        language: "xpath1" or "xquery"; None leaves it to the text.

    Returns:
        What it becomes, and the paths of which one must be there.

    Raises:
        QuerySyntaxError: It is neither; the error is of the language that was chosen, or that it
            looks like.
        UnsupportedQueryError: It holds a construct that is refused.

    Example:
        >>> text = "//alert[@sent > '2026-01-01']"
        >>> for language in ("xpath1", "xquery"):
        ...     compile_subscription(text, language=language).alternatives
        ("//alert[@sent>'2026-01-01']",)
        ('//alert[@sent]',)

    Cost: linear in the text, times the alternatives.
    """
    bound = dict(namespaces or {})
    with native_errors():
        try:
            compiled = native.compile_subscription(text, bound, deliver, language)
        except UnicodeEncodeError:
            # A lone surrogate is no character; the refusal says so.
            compiled = None
    if compiled is None:
        raise refusal_of(text, bound, deliver, language)
    kind, way, cost, paths, conjunctions, expression, reasons = compiled
    return CompiledSubscription(
        kind,
        way,
        CostClass(cost),
        tuple(paths),
        expression,
        tuple(Reason(clause, offset) for clause, offset in reasons),
        tuple(conjunctions),
        text,
        bound,
    )


def refusal_of(
    text: str, namespaces: Namespaces, deliver: str, language: QueryLanguage | None = None
) -> PathcastError:
    """Why a text cannot be the query of a subscription: the error that its subscriber sees."""
    try:
        if is_xquery(text, language):
            parse(text, namespaces, deliver)
        else:
            _check_xpath(text, namespaces, deliver)
    except PathcastError as error:
        return error
    return KernelBugError("kernel.bug", reason=f"the subscription {text!r} is refused")


def binding_of_path(query: str, namespaces: Namespaces) -> tuple[BindingStep, ...] | None:
    """A bare XPath as the binding path of a query; None if it is none.

    It tells the structure. What comparisons mean is another thing in XPath 1.0.
    """
    try:
        return binding_of(parse(f"for $bound in {query} return $bound", namespaces))
    except PathcastError:
        return None


def _check_xpath(text: str, namespaces: Namespaces, deliver: str) -> None:
    """Refuses a bare XPath that cannot be used."""
    plain = without_comments(text)
    compile_query(plain, namespaces)
    if deliver in ("fragment", "nodes"):
        kind = kind_of(read_query(plain, namespaces))
        if kind is not Kind.NODE_SET:
            found = kind.value.removeprefix("a ")
            raise UnsupportedQueryError(
                f"subscription.{deliver}",
                query=text,
                offset=0,
                found=found if deliver == "fragment" else kind.value,
                construct=f"{'fragments' if deliver == 'fragment' else 'places'} of {kind.value}",
                reason=f"the expression gives {kind.value}",
            )

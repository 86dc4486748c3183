"""Subscription text -> what is evaluated: a bare XPath, or a FLWR program.

A text is a bare XPath if the grammar of XPath 1.0 takes it, comments left out, and XQuery
otherwise; `is_xquery` alone decides that. So a path keeps the semantics of XPath 1.0 wherever it is
registered, and what only XQuery can say (`for`, tags, `min()`, a prolog) is XQuery. `(//a)` is
XPath; `(//a, //b)` is not.

Example:
    >>> compile_subscription("//story[@urgent]").kind
    'xpath'
    >>> compile_subscription("<hot>{//story[@urgent]/title}</hot>").kind
    'xquery'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast.model import QueryLanguage
from pathcast_papers.language.compiled import compile_query
from pathcast_papers.language.names import Namespaces
from pathcast_papers.language.parser import parse as parse_xpath
from pathcast_papers.language.static import Kind, kind_of
from pathcast_papers.language.syntax import Expr
from pathcast_papers.language.xquery.comments import without_comments
from pathcast_papers.language.xquery.functions import ADDED_ARGUMENT_COUNTS
from pathcast_papers.language.xquery.parser import parse
from pathcast_papers.language.xquery.syntax import (
    Arithmetic,
    ArithmeticOperator,
    Call,
    Comparison,
    Element,
    Flwor,
    If,
    Program,
    Quantified,
    Sequence,
)

# What no XPath expression begins with.
_XQUERY: Final = re.compile(r"[ \t\r\n]*(?:<|(?:for|let|some|every)[ \t\r\n]*\$)")

_LIMITS: Final = frozenset(
    {"query.too_long", "query.too_deep", "query.too_large", "query.too_many_predicates"}
)


@dataclass(frozen=True, slots=True)
class CompiledSubscription:
    """A subscription as it is evaluated on every message.

    Attributes:
        kind: "xpath" or "xquery".
        program: The syntax tree of a FLWR subscription; None for an XPath.
        expression: The expression of an XPath, names resolved; None for a FLWR.
    """

    kind: Literal["xpath", "xquery"]
    program: Program | None
    expression: Expr | None


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
        deliver: "fragment", "message" or "ids". With "fragment", an XPath must select nodes, and no
            result of XQuery is a boolean; otherwise the effective boolean value decides.
        language: "xpath1" or "xquery"; None leaves it to the text.

    Raises:
        QuerySyntaxError: It is neither; the error is of the language that was chosen, or that it
            looks like.
        UnsupportedQueryError: It holds a construct that is refused.

    Cost: linear in the text.
    """
    bound = namespaces or {}
    if language == "xpath1" or (language is None and not is_xquery(text)):
        return _compile_xpath(text, bound, deliver)
    return CompiledSubscription("xquery", parse(text, bound, deliver), None)


def is_xquery(text: str) -> bool:
    """Whether a text is read as XQuery.

    True if the grammar of XPath 1.0 does not take it, unless nothing else does either and it looks
    like a path. Comments do not count.

    Example:
        >>> [is_xquery(text) for text in ("//a", "(//a, //b)", "<a>{//b}</a>", "//a[", "min(//a)")]
        [False, True, True, False, True]
        >>> is_xquery("//a[b < '9'] (: c :)")
        False

    Cost: linear in the text.
    """
    plain = without_comments(text)
    if _XQUERY.match(plain):
        return True
    try:
        parse_xpath(plain)
    except QuerySyntaxError as error:
        if error.code in _LIMITS:
            return _has_what_xpath_lacks(text)
        return _is_nearer_to_xquery(text, error)
    return False


def _has_what_xpath_lacks(text: str) -> bool:
    """Whether a text that is over the limits of an XPath is XQuery that is no XPath."""
    try:
        waiting: list[object] = [parse(text).body]
    except QuerySyntaxError as error:
        # A prefix that is not bound here may be bound where it is compiled.
        return error.code not in (*_LIMITS, "XPST0003", "XPST0081")
    while waiting:
        part = waiting.pop()
        match part:
            case Sequence() | Flwor() | If() | Quantified() | Element():
                return True
            case Comparison(is_value=True) | Arithmetic(operator=ArithmeticOperator.IDIV):
                return True
            case Call(function=function) if function in ADDED_ARGUMENT_COUNTS:
                return True
            case tuple():
                waiting.extend(part)
            case _:
                waiting.extend(getattr(part, name) for name in getattr(part, "__slots__", ()))
    return False


def _is_nearer_to_xquery(text: str, xpath: QuerySyntaxError) -> bool:
    """Whether a text that is no XPath is XQuery, or is so for longer."""
    try:
        parse(text)
    except UnsupportedQueryError:
        return True
    except QuerySyntaxError as error:
        # A prefix that is not bound here may be bound where it is compiled.
        if error.code not in ("XPST0003", xpath.code):
            return True
        at, of_xpath = error.params.get("offset"), xpath.params.get("offset")
        return isinstance(at, int) and isinstance(of_xpath, int) and at > of_xpath
    return True


def _compile_xpath(text: str, namespaces: Namespaces, deliver: str) -> CompiledSubscription:
    """A bare XPath."""
    expression = compile_query(without_comments(text), namespaces).expression
    kind = kind_of(expression)
    if deliver in ("fragment", "nodes") and kind is not Kind.NODE_SET:
        found = kind.value.removeprefix("a ")
        raise UnsupportedQueryError(
            f"subscription.{deliver}",
            query=text,
            offset=0,
            found=found if deliver == "fragment" else kind.value,
            construct=f"{'fragments' if deliver == 'fragment' else 'places'} of {kind.value}",
            reason=f"the expression gives {kind.value}",
        )
    return CompiledSubscription("xpath", None, expression)

"""Canonical expression text: what the evaluators run.

Every axis is written out, names are `Q{uri}local` (no namespace: `local`), `Q{uri}*`, `*:local` or
`*`, every run of binary operators of one level stands in parentheses, and no prefix, variable or
abbreviation is left. The text parses back to itself with no namespaces bound.

Example:
    >>> from pathcast.query.reader import read_query
    >>> text = "//n:a[@b or count(c)*2>.5]/.."
    >>> expression_text(read_query(text, {"n": "urn:n"})).removeprefix("/")
    'descendant-or-self::node()/child::Q{urn:n}a[(attribute::b or ((count(child::c) * 2) > 0.5))]/parent::node()'

It is XPath 1.0 but for `Q{...}` and `*:local`, and for the predicates of `self::node()`.
"""  # noqa: E501 (the text is shown as it is)

from __future__ import annotations

from typing import Final

from pathcast.query.canonical import literal_text, number_text
from pathcast.query.reader import read_query
from pathcast.query.syntax import (
    BinaryExpr,
    Expr,
    FilterExpr,
    FunctionCall,
    Literal,
    LocationPath,
    NameTest,
    NodeTest,
    Number,
    PathExpr,
    Predicate,
    Step,
    UnaryExpr,
)

EXPRESSION_BYTES_MAX: Final = 64 * 1024
"""Bytes of a canonical expression text: axes and namespace URIs are written out, so it may be
longer than the query."""


def expression_text(expr: Expr) -> str:
    """The canonical text of an expression.

    Args:
        expr: A tree that `pathcast.query.reader.read_query` gave.

    Returns:
        The text; equal for trees that differ only in where their parts were written.

    Cost: linear in the text, times the depth.
    """
    match expr:
        case LocationPath(is_absolute=True, steps=()):
            # Bare, a name or * after it would be its first step.
            return "(/)"
        case LocationPath(is_absolute=is_absolute, steps=steps):
            return ("/" if is_absolute else "") + _steps(steps)
        case PathExpr(start=start, steps=steps):
            return f"{_primary(start)}/{_steps(steps)}"
        case FilterExpr(primary=primary, predicates=predicates):
            return _primary(primary) + _predicates(predicates)
        case FunctionCall(name=name, arguments=arguments):
            return f"{name}({','.join(expression_text(argument) for argument in arguments)})"
        case Literal(value=value):
            return literal_text(value)
        case Number(value=value):
            return number_text(value)
        case UnaryExpr(minuses=minuses, operand=operand):
            return "-" * minuses + expression_text(operand)
        case BinaryExpr(operators=operators, operands=operands):
            parts = [expression_text(operands[0])]
            for operator, operand in zip(operators, operands[1:], strict=True):
                parts.append(f" {operator.value} {expression_text(operand)}")
            return f"({''.join(parts)})"
    raise AssertionError(expr)


def read_expression(text: str) -> Expr:
    """The tree of a canonical expression text.

    Raises:
        QuerySyntaxError: It is not an expression.

    Example:
        >>> text = "(count(/descendant::Q{urn:n}a) > 1)"
        >>> expression_text(read_expression(text)) == text
        True
    """
    return read_query(text, {}, bytes_max=EXPRESSION_BYTES_MAX)


def _primary(expr: Expr) -> str:
    """An expression before a predicate or a slash."""
    text = expression_text(expr)
    is_primary = isinstance(expr, FunctionCall | FilterExpr) or text.startswith("(")
    return text if is_primary and not isinstance(expr, PathExpr) else f"({text})"


def _steps(steps: tuple[Step, ...]) -> str:
    return "/".join(
        f"{step.axis.value}::{_node_test(step.test)}{_predicates(step.predicates)}"
        for step in steps
    )


def _node_test(test: NodeTest) -> str:
    if isinstance(test, NameTest):
        if test.prefix is not None:
            return f"{test.prefix}:{test.local}"
        return f"Q{{{test.uri}}}{test.local}" if test.uri or _is_any_in(test) else test.local
    target = "" if test.target is None else literal_text(test.target)
    return f"{test.type.value}({target})"


def _is_any_in(test: NameTest) -> bool:
    return test.local == "*" and test.uri is not None


def _predicates(predicates: tuple[Predicate, ...]) -> str:
    return "".join(f"[{expression_text(predicate.expr)}]" for predicate in predicates)

"""The types of XPath 1.0: known before any message, as there are no variables.

Source: XPath 1.0, section 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from types import MappingProxyType
from typing import Final

from pathcast.query.functions import RESULT_TYPES
from pathcast.query.syntax import (
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    Literal,
    LocationPath,
    Number,
    PathExpr,
    Predicate,
    UnaryExpr,
    VariableReference,
)


class Kind(Enum):
    """The types of XPath 1.0; the value is how errors call them."""

    NODE_SET = "a node-set"
    BOOLEAN = "a boolean"
    NUMBER = "a number"
    STRING = "a string"


_KINDS: Final = MappingProxyType(
    {"nodes": Kind.NODE_SET, "boolean": Kind.BOOLEAN, "number": Kind.NUMBER, "string": Kind.STRING}
)

_DISJUNCTIONS: Final = frozenset({BinaryOperator.OR, BinaryOperator.UNION})

_BOOLEAN_OPERATORS: Final = frozenset(
    {
        BinaryOperator.OR,
        BinaryOperator.AND,
        BinaryOperator.EQ,
        BinaryOperator.NE,
        BinaryOperator.LT,
        BinaryOperator.LE,
        BinaryOperator.GT,
        BinaryOperator.GE,
    }
)


def kind_of(expr: Expr) -> Kind:
    """The type of an expression.

    Example:
        >>> from pathcast.query.reader import parse
        >>> [kind_of(parse(text)).value for text in ("a/b", "a = b", "a + b", "name(a)")]
        ['a node-set', 'a boolean', 'a number', 'a string']
    """
    match expr:
        case LocationPath() | PathExpr() | FilterExpr() | VariableReference():
            return Kind.NODE_SET
        case FunctionCall(name=name):
            return _KINDS[RESULT_TYPES[name]]
        case Literal():
            return Kind.STRING
        case Number() | UnaryExpr():
            return Kind.NUMBER
        case BinaryExpr(operators=(operator, *_)):
            if operator is BinaryOperator.UNION:
                return Kind.NODE_SET
            return Kind.BOOLEAN if operator in _BOOLEAN_OPERATORS else Kind.NUMBER
    raise AssertionError(expr)


def disjuncts(expr: Expr) -> int:
    """How many disjuncts an expression writes: operands of `or` and of unions.

    Example:
        >>> from pathcast.query.reader import parse
        >>> disjuncts(parse("a[@b = 1 or @b = 2 or @b = 3] | c")), disjuncts(parse("a/b"))
        (4, 1)

    Cost: linear in the tree; it does not recurse.
    """
    return 1 + sum(
        len(each.operands) - 1
        for each in _parts(expr)
        if isinstance(each, BinaryExpr) and each.operators[0] in _DISJUNCTIONS
    )


def _parts(expr: Expr) -> Iterator[Expr]:
    """An expression and all within it."""
    waiting: list[Expr] = [expr]
    while waiting:
        each = waiting.pop()
        yield each
        predicates: list[Predicate] = []
        match each:
            case LocationPath(steps=steps):
                predicates = [predicate for step in steps for predicate in step.predicates]
            case PathExpr(start=start, steps=steps):
                waiting.append(start)
                predicates = [predicate for step in steps for predicate in step.predicates]
            case FilterExpr(primary=primary):
                waiting.append(primary)
                predicates = list(each.predicates)
            case FunctionCall(arguments=arguments):
                waiting += arguments
            case UnaryExpr(operand=operand):
                waiting.append(operand)
            case BinaryExpr(operands=operands):
                waiting += operands
        waiting += [predicate.expr for predicate in predicates]

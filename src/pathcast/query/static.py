"""The types of XPath 1.0: known before any message, as there are no variables.

Source: XPath 1.0, section 1.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import Final

from pathcast.query.functions import CORE_FUNCTIONS
from pathcast.query.syntax import (
    EQUALITIES,
    ORDERS,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    Literal,
    LocationPath,
    Number,
    PathExpr,
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

_BOOLEAN_OPERATORS: Final = ORDERS | EQUALITIES | {BinaryOperator.OR, BinaryOperator.AND}


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
            return _KINDS[CORE_FUNCTIONS[name].result]
        case Literal():
            return Kind.STRING
        case Number() | UnaryExpr():
            return Kind.NUMBER
        case BinaryExpr(operators=(operator, *_)):
            if operator is BinaryOperator.UNION:
                return Kind.NODE_SET
            return Kind.BOOLEAN if operator in _BOOLEAN_OPERATORS else Kind.NUMBER
    raise AssertionError(expr)

"""Comparisons of something with a constant, wherever they stand in a syntax tree.

Example:
    >>> from pathcast.query.reader import parse
    >>> found = atom_of(parse("3 < string-length(@a)"))
    >>> found.operand.name, found.compare
    ('string-length', Comparison(operator=<Operator.GT: '>'>, constant=3.0))

It does not say whether they hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pathcast.query.normal import FLIPPED, Comparison, Constant, Operator
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FunctionCall,
    Literal,
    LocationPath,
    NameTest,
    Number,
    Step,
    UnaryExpr,
)

COMPARISONS: Final[Mapping[BinaryOperator, Operator]] = MappingProxyType(
    {BinaryOperator(each.value): each for each in Operator if not each.is_call}
)
"""Comparison operators of the syntax tree."""

CALLS: Final[Mapping[str, Operator]] = MappingProxyType(
    {"starts-with": Operator.STARTS_WITH, "contains": Operator.CONTAINS}
)
"""Functions that compare."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A comparison of something with a constant.

    Attributes:
        expr: The whole comparison.
        operand: What is compared; no constant and no boolean.
        compare: Operator and constant, the constant on the right.
    """

    expr: Expr
    operand: Expr
    compare: Comparison

    @property
    def is_call(self) -> bool:
        """Whether it is a function, which looks at the first of several nodes."""
        return self.compare.operator in CALLS.values()


def atom_of(expr: Expr) -> Atom | None:
    """The comparison with a constant that an expression is, if it is one."""
    if isinstance(expr, FunctionCall) and expr.name in CALLS:
        operand, constant = expr.arguments[0], constant_of(expr.arguments[1])
        is_value = constant_of(operand) is None and kind_of(operand) is not Kind.BOOLEAN
        if isinstance(constant, str) and is_value:
            return Atom(expr, operand, Comparison(CALLS[expr.name], constant))
        return None
    if not isinstance(expr, BinaryExpr) or expr.operators[0] not in COMPARISONS:
        return None
    if len(expr.operators) > 1:
        return None
    left, right = expr.operands
    operator = COMPARISONS[expr.operators[0]]
    if constant_of(left) is not None:
        left, right, operator = right, left, FLIPPED[operator]
    constant = constant_of(right)
    if constant is None or constant_of(left) is not None or kind_of(left) is Kind.BOOLEAN:
        return None
    return Atom(expr, left, Comparison(operator, constant))


def is_single(expr: Expr) -> bool:
    """Whether an expression has one value for a node, not one for each of several nodes."""
    if kind_of(expr) is not Kind.NODE_SET:
        return kind_of(expr) is not Kind.BOOLEAN
    if not isinstance(expr, LocationPath) or expr.is_absolute:
        return False
    return all(_gives_one(step) for step in expr.steps)


def _gives_one(step: Step) -> bool:
    test = step.test
    if step.axis in (Axis.SELF, Axis.PARENT):
        return True
    is_named = isinstance(test, NameTest) and test.local is not None and test.prefix != "*"
    return step.axis is Axis.ATTRIBUTE and is_named


def constant_of(expr: Expr) -> Constant | None:
    """The finite number or string that an expression is, if it is written as one."""
    sign = 1.0
    while isinstance(expr, UnaryExpr):
        sign *= -1.0 if expr.minuses % 2 else 1.0
        if isinstance(expr.operand, Literal):
            return None
        expr = expr.operand
    if isinstance(expr, Literal):
        return expr.value
    if not isinstance(expr, Number) or not math.isfinite(expr.value):
        return None
    return sign * expr.value + 0.0

"""Arithmetic on atomic values.

Operands are converted first: what is no number becomes a double, NaN if need be. Of two numbers the
poorer type is promoted to the richer one. Division of integers gives a decimal; `idiv` and `mod`
truncate. Where XQuery raises an error the result is the one that XPath 1.0 has for doubles:
division by zero is an infinity or NaN, `mod` and `idiv` by zero are NaN, an integer that has no
room in 64 bits is a double.

Example:
    >>> from pathcast_papers.message_broker.xquery.items import integer, untyped
    >>> str(calculate(ArithmeticOperator.DIV, integer(7), integer(2)))
    '3.5'
    >>> str(calculate(ArithmeticOperator.MOD, untyped("-7"), integer(2)))
    '-1'

Source: XQuery 1.0, section 3.4; XQuery 1.0 and XPath 2.0 Functions and Operators, section 6.2.
"""

from __future__ import annotations

import math

from pathcast_papers.language.syntax import BinaryOperator
from pathcast_papers.language.values import calculate as calculate_doubles
from pathcast_papers.language.values import ceiling_number, floor_number, round_number
from pathcast_papers.language.xquery.syntax import ArithmeticOperator
from pathcast_papers.message_broker.xquery.items import (
    Atomic,
    Kind,
    common_kind,
    decimal,
    double,
    integer,
    number_of,
    promoted,
)


def calculate(operator: ArithmeticOperator, left: Atomic, right: Atomic) -> Atomic:
    """Two values and the operator between them."""
    one, other = number_of(left), number_of(right)
    if operator is ArithmeticOperator.IDIV:
        return _integer_division(one, other)
    kind = common_kind(one, other)
    if kind is Kind.INTEGER and operator is not ArithmeticOperator.DIV:
        found = _of_integers(operator, one.whole, other.whole)
        return double(math.nan) if found is None else integer(found)
    result = calculate_doubles(BinaryOperator(operator.value), one.number, other.number)
    return double(result) if kind is Kind.DOUBLE else decimal(result)


def _of_integers(operator: ArithmeticOperator, one: int, other: int) -> int | None:
    match operator:
        case ArithmeticOperator.PLUS:
            return one + other
        case ArithmeticOperator.MINUS:
            return one - other
        case ArithmeticOperator.MULTIPLY:
            return one * other
    return None if other == 0 else one - other * _truncated(one, other)


def _truncated(one: int, other: int) -> int:
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _integer_division(one: Atomic, other: Atomic) -> Atomic:
    if one.kind is other.kind is Kind.INTEGER:
        if other.value == 0:
            return double(math.nan)
        return integer(_truncated(one.whole, other.whole))
    quotient = calculate_doubles(BinaryOperator.DIV, one.number, other.number)
    if other.number == 0 or not math.isfinite(quotient):
        return double(math.nan)
    return integer(math.trunc(quotient))


def negated(value: Atomic) -> Atomic:
    """Unary minus."""
    number = number_of(value)
    match number.kind:
        case Kind.INTEGER:
            return integer(-number.whole)
        case Kind.DECIMAL:
            return decimal(-number.number)
    return double(-number.number)


def sum_of(values: list[Atomic]) -> Atomic:
    """`fn:sum`: of nothing the integer 0."""
    total = integer(0)
    for value in values:
        total = calculate(ArithmeticOperator.PLUS, total, value)
    return total


def average_of(values: list[Atomic]) -> Atomic:
    """`fn:avg` of one value or more."""
    return calculate(ArithmeticOperator.DIV, sum_of(values), integer(len(values)))


def rounded(function: str, value: Atomic) -> Atomic:
    """`fn:floor`, `fn:ceiling`, `fn:round` and `fn:abs`: of the type that the number has."""
    number = number_of(value)
    if number.kind is Kind.INTEGER:
        return integer(abs(number.whole)) if function == "abs" else number
    match function:
        case "floor":
            result = floor_number(number.number)
        case "ceiling":
            result = ceiling_number(number.number)
        case "round":
            result = round_number(number.number)
        case _:
            result = abs(number.number)
    return promoted(number.kind, decimal(result) if number.kind is Kind.DECIMAL else double(result))

"""Arithmetic on atomic values.

Operands are converted first: what is no number becomes a double, NaN if need be. Of two numbers the
poorer type is promoted to the richer one. Division of integers gives a decimal; `idiv` and `mod`
truncate. Where XQuery raises an error the result is the one that XPath 1.0 has for doubles:
division by zero is an infinity or NaN, `mod` and `idiv` by zero are NaN, an integer that has no
room in 64 bits is a double; dates, times and durations that have no result give NaN.

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
from dataclasses import replace

from pathcast_papers.language.syntax import BinaryOperator
from pathcast_papers.language.typed_text import Duration, Moment, added, between
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
    if left.is_moment or right.is_moment:
        return _of_moments(operator, left, right) or double(math.nan)
    one, other = number_of(left), number_of(right)
    if operator is ArithmeticOperator.IDIV:
        return _integer_division(one, other)
    kind = common_kind(one, other)
    if kind is Kind.INTEGER and operator is not ArithmeticOperator.DIV:
        found = _of_integers(operator, one.whole, other.whole)
        return double(math.nan) if found is None else integer(found)
    result = calculate_doubles(BinaryOperator(operator.value), one.number, other.number)
    return double(result) if kind is Kind.DOUBLE else decimal(result)


def _of_moments(operator: ArithmeticOperator, left: Atomic, right: Atomic) -> Atomic | None:
    """Two values of which one is a date, a time or a duration; None if they have no such result."""
    one, other = left.value, right.value
    match operator:
        case ArithmeticOperator.PLUS if isinstance(other, Duration):
            return typed(added(one, other))
        case ArithmeticOperator.PLUS if isinstance(one, Duration):
            return typed(added(other, one))
        case ArithmeticOperator.MINUS if isinstance(other, Duration):
            return typed(added(one, replace(other, instant=-other.instant)))
        case ArithmeticOperator.MINUS if isinstance(one, Moment) and isinstance(other, Moment):
            return typed(between(one, other))
        case ArithmeticOperator.MULTIPLY if isinstance(one, Duration):
            return typed(scaled(one, float(one.instant) * number_of(right).number))
        case ArithmeticOperator.MULTIPLY if isinstance(other, Duration):
            return typed(scaled(other, float(other.instant) * number_of(left).number))
        case ArithmeticOperator.DIV if isinstance(one, Duration):
            if isinstance(other, Duration):
                is_ratio = one.to == other.to and other.instant != 0
                return decimal(float(one.instant) / float(other.instant)) if is_ratio else None
            divisor = number_of(right).number
            quotient = calculate_doubles(BinaryOperator.DIV, float(one.instant), divisor)
            return typed(scaled(one, quotient))
    return None


def typed(value: Moment | Duration | None) -> Atomic | None:
    """A date, a time or a duration as an atomic value."""
    return None if value is None else Atomic(Kind(value.to), value)


def scaled(duration: Duration, length: float) -> Duration | None:
    """A duration of another length, rounded to whole nanoseconds or months."""
    if not math.isfinite(length):
        return None
    return duration.of_length(int(round_number(length)))


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
    if values and isinstance(values[0].value, Duration):
        total, *values = values
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

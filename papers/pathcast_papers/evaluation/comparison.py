"""Comparing values with constants as XPath 1.0 does.

Example:
    >>> passes("300", Comparison(Operator.LE, 300.0)), passes("3e2", Comparison(Operator.EQ, 300.0))
    (True, False)
    >>> passes("dear", Comparison(Operator.NE, 300.0))     # NaN differs from every number
    True

It compares single values; that some node of a node-set must pass is the caller's business.

Source: XPath 1.0, sections 3.4 (comparisons), 4.4 (`number()`).
"""

from __future__ import annotations

import math
import operator
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from pathcast_papers.language import Comparison, Operator
from pathcast_papers.language.normal import Double, OneOf, TypedText
from pathcast_papers.language.regular_expressions import RegularExpression, read_pattern
from pathcast_papers.language.typed_text import Duration, Moment, value_of
from pathcast_papers.language.values import FOLDS

_NUMBER: Final = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")
_DOUBLE: Final = re.compile(
    r"[ \t\r\n]*([+-]?(?:INF|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[ \t\r\n]*"
)
_FLAGS: Final = re.compile(r"\(\?([a-z]+)\)")

_COMPARISONS: Final[dict[Operator, Callable[[float, float], bool]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def passes(value: str, compare: Comparison) -> bool:
    """Whether a string-value compares with a constant as asked.

    A number on the right makes both sides numbers; so does an order between strings.
    """
    operator_, constant = compare.operator, compare.constant
    if compare.fold:
        return passes(FOLDS[compare.fold](value), replace(compare, fold=""))
    if isinstance(constant, Double):
        return passes_number(double_of(value), operator_, constant.number)
    if isinstance(constant, TypedText):
        moments = [value_of(text, constant.to) for text in (value, constant.text)]
        instants = [each.instant for each in moments if isinstance(each, Moment | Duration)]
        return len(instants) == 2 and _COMPARISONS[operator_](*instants)
    if isinstance(constant, OneOf):
        if operator_ is Operator.EQ and isinstance(constant.values[0], str):
            # They are in order, and may be thousands.
            at = bisect_left(constant.values, value)
            return value in constant.values[at : at + 1]
        return any(passes(value, Comparison(operator_, each)) for each in constant.values)
    if isinstance(constant, float):
        return passes_number(number_of(value), operator_, constant)
    if operator_ is Operator.STARTS_WITH:
        return value.startswith(constant)
    if operator_ is Operator.CONTAINS:
        return constant in value
    if operator_ is Operator.MATCHES:
        return _pattern(constant).is_match(value)
    if operator_ is Operator.EQ:
        return value == constant
    if operator_ is Operator.NE:
        return value != constant
    return passes_number(number_of(value), operator_, number_of(constant))


@lru_cache(maxsize=4096)
def _pattern(written: str) -> RegularExpression:
    """A regular expression with its flags before it, as in `(?i)abc`."""
    flags = _FLAGS.match(written)
    return read_pattern(written[flags.end() :] if flags else written, flags[1] if flags else "")


def passes_number(value: float, operator_: Operator, constant: float) -> bool:
    """Whether a number compares with a number as asked (IEEE 754)."""
    return _COMPARISONS[operator_](value, constant)


def double_of(value: str) -> float:
    """The number that XQuery casts a text to; NaN if it is none.

    Example:
        >>> double_of(" +1e2 "), double_of("-INF"), double_of("inf"), double_of("1e")
        (100.0, -inf, nan, nan)
    """
    match = _DOUBLE.fullmatch(value)
    return float(match[1]) if match else math.nan


def number_of(value: str) -> float:
    """`number(value)`: NaN for what is no XPath 1.0 number, exponents and `+` included.

    Example:
        >>> number_of(" -.5 "), number_of("+5"), number_of("1e3"), number_of("")
        (-0.5, nan, nan, nan)
    """
    match = _NUMBER.fullmatch(value)
    return float(match[1]) if match else math.nan

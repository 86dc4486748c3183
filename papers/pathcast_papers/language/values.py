"""Values of XPath 1.0 and the core functions on them: strings, numbers, booleans.

A string is a `str`, a number a `float`, a boolean a `bool`. The functions take values that were
converted already and look at nothing else; node-sets are the evaluators' matter.

Example:
    >>> number_of(" -.5 "), number_of("1e3"), string_of(-0.0), string_of(1e21)
    (-0.5, nan, '0', '1000000000000000000000')
    >>> substring("12345", 1.5, 2.6), round_number(-0.2)
    ('234', -0.0)

Source: XPath 1.0, sections 3.5 (arithmetic), 4.2 (strings), 4.3 (booleans), 4.4 (numbers).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pathcast_papers.language.canonical import number_text
from pathcast_papers.language.syntax import BinaryOperator

Value: TypeAlias = str | float | bool
"""A value that is no node-set."""

_NUMBER: Final = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")
_BLANKS: Final = re.compile(r"[ \t\r\n]+")

COMPARISONS: Final = MappingProxyType[BinaryOperator, Callable[[Any, Any], bool]](
    {
        BinaryOperator.EQ: operator.eq,
        BinaryOperator.NE: operator.ne,
        BinaryOperator.LT: operator.lt,
        BinaryOperator.LE: operator.le,
        BinaryOperator.GT: operator.gt,
        BinaryOperator.GE: operator.ge,
    }
)
"""Operator -> comparison of two values of one type; of numbers by IEEE 754."""

FOLDS: Final = MappingProxyType[str, Callable[[str], str]](
    {
        # Every character by itself: a sigma at the end of a word is no other one.
        "lower-case": lambda text: "".join(character.lower() for character in text),
        "upper-case": str.upper,
        "ascii-case": lambda text: text.encode().lower().decode(),
    }
)
"""Functions that fold a text; the last one is the case-blind collation of canonical text."""


def number_of(value: Value) -> float:
    """`number(value)`: NaN for a string that is no XPath number, exponents and `+` included."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        return float(match[1]) if match else math.nan
    return float(value)


def string_of(value: Value) -> str:
    """`string(value)`: of a number the shortest decimal that reads back, without exponent."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return number_text(value)


def boolean_of(value: Value) -> bool:
    """`boolean(value)`: false for "", 0 and NaN."""
    return bool(value) and value == value


def compare(operator_: BinaryOperator, left: Value, right: Value) -> bool:
    """Whether two values compare as asked (3.4): `=` and `!=` by the richer type, orders by number.

    Example:
        >>> compare(BinaryOperator.EQ, "1.0", 1.0), compare(BinaryOperator.EQ, "1.0", "1")
        (True, False)
    """
    holds = COMPARISONS[operator_]
    if operator_ in (BinaryOperator.EQ, BinaryOperator.NE):
        if isinstance(left, bool) or isinstance(right, bool):
            return holds(boolean_of(left), boolean_of(right))
        if isinstance(left, str) and isinstance(right, str):
            return holds(left, right)
    return holds(number_of(left), number_of(right))


def calculate(operator_: BinaryOperator, left: float, right: float) -> float:
    """`+`, `-`, `*`, `div` and `mod` of IEEE 754; `mod` has the sign of the dividend."""
    match operator_:
        case BinaryOperator.PLUS:
            return left + right
        case BinaryOperator.MINUS:
            return left - right
        case BinaryOperator.MULTIPLY:
            return left * right
        case BinaryOperator.DIV:
            if right:
                return left / right
            if not left or math.isnan(left) or math.isnan(right):
                return math.nan
            return math.copysign(math.inf, left) * math.copysign(1.0, right)
        case BinaryOperator.MOD:
            return math.nan if math.isinf(left) or not right else math.fmod(left, right)
    raise AssertionError(operator_)


def floor_number(number: float) -> float:
    """`floor(number)`; of -0 it is -0."""
    return number if not math.isfinite(number) or not number else float(math.floor(number))


def ceiling_number(number: float) -> float:
    """`ceiling(number)`; of what lies between -1 and 0 it is -0."""
    if not math.isfinite(number):
        return number
    return math.copysign(float(math.ceil(number)), number)


def round_number(number: float) -> float:
    """`round(number)`: to the nearest whole number, of two the greater; -0 from -0.5 on."""
    if not math.isfinite(number):
        return number
    below = math.floor(number)
    rounded = float(below + 1 if number - below >= 0.5 else below)
    return rounded or math.copysign(rounded, number)


def substring(text: str, start: float, length: float | None = None) -> str:
    """`substring(text, start, length)`: positions from 1 on, rounded."""
    first = round_number(start)
    end = math.inf if length is None else first + round_number(length)
    if not end > first:
        # NaN among them, too.
        return ""
    begin = int(min(max(first, 1.0), len(text) + 1.0))
    return text[begin - 1 : int(min(max(end, 1.0), len(text) + 1.0)) - 1]


def substring_before(text: str, mark: str) -> str:
    """`substring-before(text, mark)`: "" where the mark does not occur."""
    before, found, _ = text.partition(mark) if mark else ("", "", "")
    return before if found else ""


def substring_after(text: str, mark: str) -> str:
    """`substring-after(text, mark)`: all of the text for an empty mark."""
    if not mark:
        return text
    return text.partition(mark)[2]


def normalize_space(text: str) -> str:
    """`normalize-space(text)`: blanks are those of XML."""
    return _BLANKS.sub(" ", text).strip(" ")


def translate(text: str, from_: str, to: str) -> str:
    """`translate(text, from, to)`: of a character that occurs twice, the first place counts."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(from_):
        table.setdefault(ord(character), to[place] if place < len(to) else None)
    return text.translate(table)


def apply(name: str, arguments: list[Value]) -> Value:
    """A core function of values; one that needs a context or a node-set is not among them.

    Example:
        >>> apply("concat", ["a", 1.0, True]), apply("round", ["2.5"])
        ('a1true', 3.0)
    """
    return _FUNCTIONS[name](*arguments)


_FUNCTIONS: Final = MappingProxyType[str, Callable[..., Value]](
    {
        "boolean": boolean_of,
        "not": lambda value: not boolean_of(value),
        "true": lambda: True,
        "false": lambda: False,
        "number": number_of,
        "string": string_of,
        "floor": lambda value: floor_number(number_of(value)),
        "ceiling": lambda value: ceiling_number(number_of(value)),
        "round": lambda value: round_number(number_of(value)),
        "concat": lambda *values: "".join(string_of(value) for value in values),
        "contains": lambda text, part: string_of(part) in string_of(text),
        "starts-with": lambda text, part: string_of(text).startswith(string_of(part)),
        "string-length": lambda text: float(len(string_of(text))),
        "normalize-space": lambda text: normalize_space(string_of(text)),
        "substring": lambda text, *places: substring(
            string_of(text), *(number_of(place) for place in places)
        ),
        "substring-before": lambda text, mark: substring_before(string_of(text), string_of(mark)),
        "substring-after": lambda text, mark: substring_after(string_of(text), string_of(mark)),
        "translate": lambda text, from_, to: translate(
            string_of(text), string_of(from_), string_of(to)
        ),
    }
)

VALUE_FUNCTIONS: Final = frozenset(_FUNCTIONS)
"""The core functions that `apply` knows."""

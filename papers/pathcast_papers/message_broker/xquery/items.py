"""The items of a sequence: nodes of the message, atomic values, constructed elements.

An atomic value has a kind; `double`, `decimal` and `integer` are numbers, and `untyped` is what a
node of a message without a schema has for a value. Numbers are printed as XQuery prints them.

Example:
    >>> str(double(1500000.0)), str(double(0.5)), str(decimal(1500000.0)), str(integer(7))
    ('1.5E6', '0.5', '1500000', '7')
    >>> number_of(untyped(" 12 ")), number_of(untyped("a dozen"))
    (Atomic(kind=<Kind.DOUBLE: 'double'>, value=12.0), Atomic(kind=<Kind.DOUBLE: 'double'>, value=nan))

Source: XQuery 1.0 and XPath 2.0 Functions and Operators, section 17.1 (casting).
Differs: integers have 64 bits, and one that has no room there is a double; decimals have the
precision of a double.
"""  # noqa: E501 (the values are shown as they are)

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from pathcast_papers.evaluation.xpath import Node
from pathcast_papers.language.canonical import number_text
from pathcast_papers.language.typed_text import Duration, Moment
from pathcast_papers.language.xquery.syntax import Name

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1

_NUMBER: Final = re.compile(
    r"[ \t\r\n]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN)[ \t\r\n]*"
)
_PLAIN_MIN: Final = 1e-6
_PLAIN_MAX: Final = 1e6


class Kind(Enum):
    """The types of atomic values."""

    STRING = "string"
    UNTYPED = "untyped"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    DATE = "date"
    DATE_TIME = "dateTime"
    TIME = "time"
    DAY_TIME_DURATION = "dayTimeDuration"
    YEAR_MONTH_DURATION = "yearMonthDuration"


@dataclass(frozen=True, slots=True)
class Atomic:
    """An atomic value.

    Attributes:
        kind: Its type.
        value: `str` for a string and an untyped value, `int` for an integer, `float` for a
            decimal and a double, `Moment` for dates and times, `Duration`.
    """

    kind: Kind
    value: str | bool | int | float | Moment | Duration

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.kind in _NUMBERS

    @property
    def is_text(self) -> bool:
        """Whether it is a string or untyped."""
        return self.kind in (Kind.STRING, Kind.UNTYPED)

    @property
    def whole(self) -> int:
        """The value of an integer."""
        assert isinstance(self.value, int)
        return self.value

    @property
    def is_moment(self) -> bool:
        """Whether it is a date, a time or a duration."""
        return isinstance(self.value, Moment | Duration)

    @property
    def instant(self) -> int:
        """What a date, a time or a duration is compared by."""
        assert isinstance(self.value, Moment | Duration)
        return self.value.instant

    @property
    def number(self) -> float:
        """The value of a number as a `float`."""
        assert not isinstance(self.value, Moment | Duration)
        return float(self.value)

    def __str__(self) -> str:
        match self.kind:
            case Kind.BOOLEAN:
                return "true" if self.value else "false"
            case Kind.DECIMAL:
                return number_text(self.number)
            case Kind.DOUBLE:
                return _double_text(self.number)
        return str(self.value)


_NUMBERS: Final = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)
"""The types of numbers; of two, the later one is what both are promoted to."""


@dataclass(frozen=True, slots=True, eq=False)
class ConstructedElement:
    """An element that a constructor made. Its parts are shared, not copied.

    Attributes:
        name: Its name.
        attributes: Names, each once, and values.
        namespaces: Prefix -> URI, in scope by itself; it inherits others from where it is put. A
            default namespace "" is none, and none is inherited.
        content: Text (never empty, never two in a row), nodes of the message, elements.
    """

    name: Name
    attributes: tuple[tuple[Name, str], ...]
    namespaces: dict[str, str]
    content: tuple[str | Node | ConstructedElement, ...]


Item: TypeAlias = Node | Atomic | ConstructedElement
"""What a sequence holds."""

Items: TypeAlias = tuple[Item, ...]
"""A sequence."""


def string(value: str) -> Atomic:
    """A string."""
    return Atomic(Kind.STRING, value)


def untyped(value: str) -> Atomic:
    """The value of a node."""
    return Atomic(Kind.UNTYPED, value)


def boolean(value: bool) -> Atomic:
    """A boolean."""
    return Atomic(Kind.BOOLEAN, value)


def double(value: float) -> Atomic:
    """A double."""
    return Atomic(Kind.DOUBLE, value)


def decimal(value: float) -> Atomic:
    """A decimal; a double where there is no such decimal. Decimals have no negative zero."""
    if not math.isfinite(value):
        return double(value)
    return Atomic(Kind.DECIMAL, value or 0.0)


def integer(value: int) -> Atomic:
    """An integer; a double beyond 64 bits."""
    if INTEGER_MIN <= value <= INTEGER_MAX:
        return Atomic(Kind.INTEGER, value)
    try:
        return double(float(value))
    except OverflowError:
        return double(math.copysign(math.inf, value))


def number_of(value: Atomic) -> Atomic:
    """A value as a number: itself if it is one, or a double; what is no number is NaN."""
    if value.is_number:
        return value
    if isinstance(value.value, Moment | Duration):
        return double(math.nan)
    if value.kind is Kind.BOOLEAN:
        return double(float(value.value))
    found = _NUMBER.fullmatch(str(value.value))
    if found is None:
        return double(math.nan)
    return double(float(found[1].replace("INF", "inf")))


def promoted(kind: Kind, value: Atomic) -> Atomic:
    """A number as one of a kind that is at least as rich.

    Example:
        >>> promoted(Kind.DECIMAL, integer(2))
        Atomic(kind=<Kind.DECIMAL: 'decimal'>, value=2.0)
    """
    return value if value.kind is kind else Atomic(kind, value.number)


def common_kind(*values: Atomic) -> Kind:
    """The type that numbers are promoted to when they meet."""
    return max((value.kind for value in values), key=_NUMBERS.index)


def _double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    if _PLAIN_MIN <= abs(value) < _PLAIN_MAX:
        return number_text(value)
    # The shortest digits that read back, whatever notation they come in.
    sign, digits, exponent = _digits(value)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _digits(value: float) -> tuple[str, str, int]:
    """Sign, significant digits, exponent of the first one."""
    mantissa, _, written = repr(value).partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    exponent = int(written or "0") + len(whole) - 1
    digits = whole + fraction
    leading = len(digits) - len(digits.lstrip("0"))
    return sign, digits.strip("0"), exponent - leading

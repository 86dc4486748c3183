"""What comparisons of one value with constants say together: can they hold, what do they imply?

A value is a string, read as a number where XPath 1.0 does (3.4). Every answer is sound: what is
said to be impossible is impossible, what is said to be implied is implied. `can_hold` is also
complete but for `contains` and prefixes of numbers: where it cannot decide, it says True.

Example:
    >>> more, less = Comparison(Operator.GT, 5.0), Comparison(Operator.LT, 3.0)
    >>> can_hold([more, less]), implies([more], Comparison(Operator.GT, 3.0))
    (False, True)
    >>> implies([Comparison(Operator.EQ, "abc")], Comparison(Operator.STARTS_WITH, "ab"))
    True

It knows one value. That some node of several must pass is the caller's business.

Source: XPath 1.0, sections 3.4 (comparisons), 4.2 (`starts-with`, `contains`), 4.4 (`number()`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pathcast.query.normal import Comparison, Double, Operator
from pathcast.query.values import double_of, number_of

_BEGINS_NUMBER: Final = re.compile(
    r"[ \t\r\n]*-?(?:[0-9]*(?:\.[0-9]*)?|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t\r\n]*)"
)
_PART_OF_NUMBER: Final = re.compile(r"[-0-9. \t\r\n]*")


def holds(value: str, compare: Comparison) -> bool:
    """Whether a string compares with a constant as asked.

    Example:
        >>> holds("300", Comparison(Operator.LE, 300.0)), holds("x", Comparison(Operator.NE, 1.0))
        (True, True)
    """
    operator, constant = compare.operator, compare.constant
    if isinstance(constant, str):
        match operator:
            case Operator.EQ:
                return value == constant
            case Operator.NE:
                return value != constant
            case Operator.STARTS_WITH:
                return value.startswith(constant)
            case Operator.CONTAINS:
                return constant in value
    if isinstance(constant, Double):
        return holds_for_number(double_of(value), operator, constant.number)
    return holds_for_number(number_of(value), operator, _as_number(constant))


def holds_for_number(value: float, operator: Operator, constant: float) -> bool:
    """Whether a number compares with a number as asked (IEEE 754)."""
    match operator:
        case Operator.EQ:
            return value == constant
        case Operator.NE:
            return value != constant
        case Operator.LT:
            return value < constant
        case Operator.LE:
            return value <= constant
        case Operator.GT:
            return value > constant
        case _:
            return value >= constant


def always_holds(compare: Comparison) -> bool:
    """Whether every value passes: `contains(., '')`."""
    return compare.constant == "" and compare.operator in (Operator.STARTS_WITH, Operator.CONTAINS)


def can_hold(known: Iterable[Comparison]) -> bool:
    """Whether one value can pass all comparisons; False only if none can."""
    return Facts.of(known) is not None


def implies(known: Iterable[Comparison], wanted: Comparison) -> bool:
    """Whether every value that passes some comparisons passes another one.

    Args:
        known: What is known of the value; may be nothing.
        wanted: What is asked.

    Returns:
        True if it follows. False does not say that it does not.
    """
    facts = Facts.of(known)
    return facts is None or facts.imply(wanted)


def can_hold_for_count(known: Sequence[tuple[Operator, float]], *, least: int) -> bool:
    """Whether a whole number from `least` on passes all comparisons.

    For `position()`, `last()` (from 1 on), `count(...)` and `string-length(...)` (from 0 on).

    Example:
        >>> can_hold_for_count([(Operator.GT, 1.0), (Operator.LT, 2.0)], least=1)
        False
    """
    interval = Interval()
    for operator, constant in known:
        interval = interval.cut(operator, constant)
    if math.isinf(interval.low) or interval.low < least:
        interval = interval.cut(Operator.GE, float(least))
    first = math.floor(interval.low) if interval.low_open else math.ceil(interval.low)
    first += 1 if interval.low_open else 0
    # Every excluded number can cost one candidate, no more.
    candidates = range(first, first + len(interval.holes) + 1)
    return any(interval.has(float(number)) for number in candidates)


def always_holds_for_count(operator: Operator, constant: float, *, least: int) -> bool:
    """Whether every whole number from `least` on compares as asked.

    Example:
        >>> always_holds_for_count(Operator.GE, 1.0, least=1)
        True
    """
    match operator:
        case Operator.GT | Operator.GE:
            return holds_for_number(float(least), operator, constant)
        case Operator.NE:
            return not constant.is_integer() or constant < least
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two bounds but for some; NaN is never among them.

    Attributes:
        low: Lower bound, perhaps minus infinity.
        low_open: Whether the bound itself is outside.
        high: Upper bound, perhaps infinity.
        high_open: Whether the bound itself is outside.
        holes: Numbers that are excluded.
    """

    low: float = -math.inf
    low_open: bool = False
    high: float = math.inf
    high_open: bool = False
    holes: frozenset[float] = frozenset()

    def has(self, number: float) -> bool:
        """Whether a number is inside."""
        above = number > self.low or (number == self.low and not self.low_open)
        below = number < self.high or (number == self.high and not self.high_open)
        return above and below and number not in self.holes

    @property
    def is_empty(self) -> bool:
        """Whether nothing is inside."""
        if self.low == self.high:
            return not self.has(self.low)
        return self.low > self.high

    def cut(self, operator: Operator, constant: float) -> Interval:
        """The part that compares with a constant as asked."""
        low, low_open, high, high_open = self.low, self.low_open, self.high, self.high_open
        if operator is Operator.NE:
            return Interval(low, low_open, high, high_open, self.holes | {constant})
        if operator in (Operator.EQ, Operator.GE, Operator.GT):
            is_open = operator is Operator.GT
            if constant > low or (constant == low and is_open):
                low, low_open = constant, is_open
        if operator in (Operator.EQ, Operator.LE, Operator.LT):
            is_open = operator is Operator.LT
            if constant < high or (constant == high and is_open):
                high, high_open = constant, is_open
        return Interval(low, low_open, high, high_open, self.holes)


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts known of a value that exists; made once where many questions are asked of it.

    Attributes:
        known: The comparisons.
        exact: The string that it is, if that is known.
        interval: The numbers that it may be, if it must be a number; else those it may be if it
            is one.
        is_number: Whether it must be a number.
        prefix: What it begins with.
        cast: As `interval`, of the number that it is cast to.
        is_cast: Whether it must be cast to a number.
    """

    known: tuple[Comparison, ...]
    exact: str | None
    interval: Interval
    is_number: bool
    prefix: str
    cast: Interval = Interval()
    is_cast: bool = False

    @staticmethod
    def of(known: Iterable[Comparison]) -> Facts | None:
        """The facts of a value that passes some comparisons; None if no value can."""
        all_known = tuple(known)
        exact: str | None = None
        interval, is_number, prefix = Interval(), False, ""
        cast, is_cast = Interval(), False
        for compare in all_known:
            operator, constant = compare.operator, compare.constant
            if isinstance(constant, Double):
                # What is a number is cast to that number.
                interval = interval.cut(operator, constant.number)
                cast = cast.cut(operator, constant.number)
                is_cast = is_cast or operator is not Operator.NE
                continue
            if operator is Operator.STARTS_WITH:
                start = str(constant)
                longer, shorter = (start, prefix) if len(start) > len(prefix) else (prefix, start)
                if not longer.startswith(shorter):
                    return None
                prefix = longer
            elif isinstance(constant, str):
                if operator is Operator.EQ:
                    exact = constant
                elif operator not in (Operator.NE, Operator.CONTAINS):
                    return (
                        None
                        if math.isnan(number_of(constant))
                        else Facts.of(
                            Comparison(each.operator, _as_number(each.constant))
                            if each is compare
                            else each
                            for each in all_known
                        )
                    )
            else:
                interval = interval.cut(operator, constant)
                is_number = is_number or operator is not Operator.NE
        if exact is not None and not all(holds(exact, compare) for compare in all_known):
            return None
        if is_number and (interval.is_empty or not _can_be_number(all_known, prefix)):
            return None
        if is_cast and cast.is_empty:
            return None
        return Facts(all_known, exact, interval, is_number, prefix, cast, is_cast)

    def imply(self, wanted: Comparison) -> bool:
        """Whether another comparison follows."""
        if wanted in self.known or always_holds(wanted):
            return True
        if self.exact is not None:
            return holds(self.exact, wanted)
        operator, constant = wanted.operator, wanted.constant
        if isinstance(constant, Double):
            known, is_known = (self.cast, self.is_cast)
            if self.is_number:
                known, is_known = (self.interval, True)
            inside = known.cut(_NEGATED[operator], constant.number)
            return inside.is_empty and (is_known or operator is Operator.NE)
        if isinstance(constant, str):
            match operator:
                case Operator.EQ:
                    return False
                case Operator.NE:
                    return not all(holds(constant, compare) for compare in self.known)
                case Operator.STARTS_WITH:
                    return self.prefix.startswith(constant)
                case Operator.CONTAINS:
                    return constant in self.prefix or any(
                        compare.operator is Operator.CONTAINS and constant in str(compare.constant)
                        for compare in self.known
                    )
        return self._implies_number(operator, _as_number(constant))

    def _implies_number(self, operator: Operator, constant: float) -> bool:
        inside = self.interval.cut(_NEGATED[operator], constant)
        if operator is Operator.NE:
            # What is no number differs from every number.
            return inside.is_empty or not _can_be_number(self.known, self.prefix)
        return self.is_number and inside.is_empty


NOTHING_KNOWN: Final = Facts((), None, Interval(), False, "")
"""The facts of any value."""

_NEGATED: Final = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.LE: Operator.GT,
    Operator.GT: Operator.LE,
    Operator.GE: Operator.LT,
}
"""The operator that holds for a number if and only if this one does not."""


def _as_number(constant: float | str | Double) -> float:
    if isinstance(constant, Double):
        return constant.number
    return constant if isinstance(constant, float) else number_of(constant)


def _can_be_number(known: Iterable[Comparison], prefix: str) -> bool:
    """Whether a value that has these parts can be a number; True where that is not clear."""
    return _BEGINS_NUMBER.fullmatch(prefix) is not None and all(
        _PART_OF_NUMBER.fullmatch(str(compare.constant)) is not None
        for compare in known
        if compare.operator is Operator.CONTAINS
    )

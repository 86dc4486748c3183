"""Comparing atomic values: for comparison operators, `order by`, `min`, `max` and distinctness.

Two values compare by the first of these that applies:

* as dates, times or durations, if one is such: a text is cast to its type, and nothing else compares
  with it but that durations of two types may be equal, if they have no length;
* as booleans, if one is a boolean. XQuery casts an untyped value: "true", "1", "false" and "0" are
  booleans. Any other untyped value is true, for its node is there (XPath 1.0); a string is true if
  it is not empty, a number if it is neither 0 nor NaN. In an order (`<`) a string or number meets
  the boolean as a number instead;
* as numbers, if one is a number; what is no number is NaN, which differs from everything;
* as strings, by code point.

General and value comparisons treat a pair alike: they differ in the pairs they try.

Example:
    >>> from pathcast_papers.message_broker.xquery.items import integer, string, untyped
    >>> holds(Comparator.EQ, untyped("01"), integer(1)), holds(Comparator.EQ, untyped("01"), string("1"))
    (True, False)
    >>> holds(Comparator.LT, untyped("10"), untyped("9"))
    True

Source: XQuery 1.0, section 3.5; XPath 1.0, section 3.4, for pairs that XQuery refuses.
"""  # noqa: E501 (an example in one line)

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Any, Final

from pathcast_papers.language.typed_text import Duration, Moment
from pathcast_papers.language.xquery.syntax import Comparator, OrderKey
from pathcast_papers.message_broker.xquery.casts import castable
from pathcast_papers.message_broker.xquery.items import (
    Atomic,
    Kind,
    common_kind,
    number_of,
    promoted,
)

_OPERATIONS: Final = MappingProxyType[Comparator, Callable[[Any, Any], bool]](
    {
        Comparator.EQ: operator.eq,
        Comparator.NE: operator.ne,
        Comparator.LT: operator.lt,
        Comparator.LE: operator.le,
        Comparator.GT: operator.gt,
        Comparator.GE: operator.ge,
    }
)
_BLANKS: Final = " \t\r\n"
_DURATIONS: Final = (Kind.DAY_TIME_DURATION, Kind.YEAR_MONTH_DURATION)
_MOMENTS: Final = ([Kind.DATE], [Kind.DATE_TIME], [Kind.TIME], *([each] for each in _DURATIONS))


def holds(comparator: Comparator, left: Atomic, right: Atomic) -> bool:
    """Whether two values compare as asked."""
    compare = _OPERATIONS[comparator]
    if {left.kind, right.kind} == {*_DURATIONS}:
        is_equal = left.instant == right.instant == 0
        return comparator is (Comparator.EQ if is_equal else Comparator.NE)
    if left.is_moment or right.is_moment:
        kind = left.kind if left.is_moment else right.kind
        instants = [instant_of(value, kind) for value in (left, right)]
        return None not in instants and compare(*instants)
    if Kind.BOOLEAN in (left.kind, right.kind):
        is_order = comparator not in (Comparator.EQ, Comparator.NE)
        if not (is_order and {left.kind, right.kind} - {Kind.BOOLEAN, Kind.UNTYPED}):
            return compare(boolean_of(left), boolean_of(right))
    elif left.is_text and right.is_text:
        return compare(left.value, right.value)
    one, other = number_of(left), number_of(right)
    if one.kind is other.kind is Kind.INTEGER:
        return compare(one.value, other.value)
    return compare(one.number, other.number)


def instant_of(value: Atomic, kind: Kind) -> int | None:
    """A value beside one of a kind of dates or times: one of that kind, or a text that is cast."""
    if not (value.is_text or value.kind is kind):
        return None
    found = castable(value, kind.value)
    return found.instant if found else None


def boolean_of(value: Atomic) -> bool:
    """A value beside a boolean."""
    match value.kind:
        case Kind.UNTYPED:
            return str(value.value).strip(_BLANKS) not in ("false", "0")
        case Kind.STRING | Kind.BOOLEAN:
            return bool(value.value)
    return bool(value.value) and value.value == value.value


def is_some_pair(
    comparator: Comparator, lefts: tuple[Atomic, ...], rights: tuple[Atomic, ...]
) -> bool:
    """Whether some pair of two sequences compares as asked: a general comparison.

    Cost: one look-up a value for `=` between texts; otherwise the product.
    """
    if comparator is Comparator.EQ and all(each.is_text for each in (*lefts, *rights)):
        return not {each.value for each in lefts}.isdisjoint(each.value for each in rights)
    return any(holds(comparator, one, other) for one in lefts for other in rights)


def are_alike(one: Atomic, other: Atomic) -> bool:
    """Whether two values are of types that compare."""
    both = one, other
    return (
        all(each.is_text for each in both)
        or all(each.is_number for each in both)
        or all(each.is_moment for each in both)
        or one.kind is other.kind
    )


def distinct(values: Iterable[Atomic], fold: Callable[[str], str] = str) -> list[Atomic]:
    """`fn:distinct-values`: the first of equal values, in the order of the first ones.

    Values of types that do not compare are distinct; NaN is equal to itself. Texts are equal if
    `fold` gives the same for both.
    """
    first: dict[object, Atomic] = {}
    for value in values:
        key: object = value.value
        if value.is_number:
            is_nan = math.isnan(value.number)
            key = ("number", "NaN" if is_nan else value.value)
        elif value.is_moment:
            # Durations of no length are equal, whatever their type.
            is_no_length = value.kind in _DURATIONS and value.instant == 0
            key = ("duration" if is_no_length else value.kind, value.instant)
        elif value.kind is Kind.BOOLEAN:
            key = ("boolean", key)
        else:
            key = fold(str(value))
        first.setdefault(key, value)
    return list(first.values())


def extreme(values: list[Atomic], fold: Callable[[str], str] = str, *, is_max: bool) -> Atomic:
    """`fn:min` and `fn:max` of one value or more.

    Untyped values are numbers. If all others are strings, or all are booleans, or all are dates or
    times of one kind, they compare as such; any other mixture is numbers. NaN is both least and
    greatest. Strings compare by what `fold` gives.
    """
    kinds = {value.kind for value in values}
    if kinds not in map(set, ([Kind.STRING], [Kind.BOOLEAN], *_MOMENTS)):
        values = [number_of(value) for value in values]
        kind = common_kind(*values)
        values = [promoted(kind, value) for value in values]
        for value in values:
            if math.isnan(value.number):
                return value
    found = values[0]
    if kinds == {Kind.STRING}:
        # Of equal ones the first, for both.
        return (max if is_max else min)(values, key=lambda value: fold(str(value)))
    for value in values[1:]:
        if holds(Comparator.GT if is_max else Comparator.LT, value, found):
            found = value
    return found


def folded(text: str) -> str:
    """A text as the case-blind collation compares it."""
    return text.encode().upper().decode()


def order(columns: list[list[Atomic | None]], keys: Sequence[OrderKey], count: int) -> list[int]:
    """The order in which tuples come.

    The values of one key are compared as strings if all are strings or untyped, as booleans if all
    are, else all as numbers.

    Args:
        columns: For every key, the most significant first, its value for every tuple; None where it
            is empty.
        keys: How each is ordered.
        count: Number of tuples.

    Returns:
        Places of the tuples; tuples with equal keys in the order they had.
    """
    places = list(range(count))
    # A stable sort by the least significant key first is a sort by all.
    for column, key in reversed(list(zip(columns, keys, strict=True))):
        empty, nan = (2, 1) if key.is_empty_greatest else (-2, -1)
        ranks: list[tuple[int, Any]] = []
        for value in _alike(column):
            if value is None:
                ranks.append((empty, 0))
            elif value.is_number and math.isnan(value.number):
                ranks.append((nan, 0))
            elif isinstance(value.value, Moment | Duration):
                ranks.append((0, value.value.instant))
            elif key.is_case_blind and isinstance(value.value, str):
                ranks.append((0, folded(value.value)))
            else:
                ranks.append((0, value.value))
        places.sort(key=ranks.__getitem__, reverse=key.is_descending)
    return places


def _alike(column: list[Atomic | None]) -> list[Atomic | None]:
    """The values of a key, as texts, booleans or numbers."""
    present = [value for value in column if value is not None]
    if all(value.is_text for value in present):
        return column
    if {value.kind for value in present} in map(set, ([Kind.BOOLEAN], *_MOMENTS)):
        return column
    numbers = [number_of(value) for value in present]
    kind = common_kind(*numbers)
    return [None if value is None else promoted(kind, number_of(value)) for value in column]

"""Functions of sequences, dates, times and characters that XPath 1.0 does not have.

A position that is missing or no number is that of no item; `insert-before` puts it first.

Source: XQuery and XPath Functions and Operators 3.1.
Differs: numbers of no character are left out of `codepoints-to-string`.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pathcast_papers.language.patterns import LazyPattern
from pathcast_papers.language.typed_text import Duration, Moment, value_of
from pathcast_papers.language.values import round_number
from pathcast_papers.language.xquery.syntax import Comparator
from pathcast_papers.message_broker.xquery.casts import cast
from pathcast_papers.message_broker.xquery.comparison import are_alike, folded, holds
from pathcast_papers.message_broker.xquery.items import (
    Atomic,
    Items,
    Kind,
    decimal,
    double,
    integer,
    number_of,
    promoted,
    string,
)

if TYPE_CHECKING:
    from pathcast_papers.message_broker.xquery.evaluator import Evaluator

_CHARACTER: Final = LazyPattern("[\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BILLION: Final = 10**9
_DIGITS_MAX: Final = 330


def current(micros: int, function: str) -> Items:
    """The time of a message, and the time zone of those who say none."""
    if function == "implicit-timezone":
        return (Atomic(Kind.DAY_TIME_DURATION, Duration("dayTimeDuration", 0)),)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    value = value_of(moment.isoformat(), "dateTime")
    assert isinstance(value, Moment)
    found = cast(Atomic(Kind.DATE_TIME, value), function.removeprefix("current-"))
    return () if found is None else (found,)


def component(evaluator: Evaluator, function: str, items: Items) -> Items:
    """`fn:year-from-date` and its like."""
    part, _, of = function.partition("-from-")
    if of == "duration":
        of = "yearMonthDuration" if part in ("years", "months") else "dayTimeDuration"
    values = evaluator.atomised(items[:1])
    found = cast(values[0], of) if values else None
    if found is None:
        return ()
    value = found.value
    if isinstance(value, Duration):
        return (_of_duration(part, value.instant),)
    assert isinstance(value, Moment)
    if part == "timezone":
        if value.zone is None:
            return ()
        zone = Duration("dayTimeDuration", value.zone * 60 * _BILLION)
        return (Atomic(Kind.DAY_TIME_DURATION, zone),)
    seconds, nanoseconds = divmod(value.nanoseconds, _BILLION)
    match part:
        case "year":
            return (integer(value.year),)
        case "month":
            return (integer(value.day.month),)
        case "day":
            return (integer(value.day.day),)
        case "hours":
            return (integer(seconds // 3600),)
        case "minutes":
            return (integer(seconds // 60 % 60),)
    return (decimal((seconds % 60 * _BILLION + nanoseconds) / _BILLION),)


def _of_duration(part: str, length: int) -> Atomic:
    """A part of a duration: of a negative one none is above zero."""
    sign, size = (-1 if length < 0 else 1), abs(length)
    match part:
        case "years":
            return integer(sign * (size // 12))
        case "months":
            return integer(sign * (size % 12))
    seconds = size // _BILLION
    match part:
        case "days":
            return integer(sign * (seconds // 86_400))
        case "hours":
            return integer(sign * (seconds // 3600 % 24))
        case "minutes":
            return integer(sign * (seconds // 60 % 60))
    return decimal(sign * (size % (60 * _BILLION)) / _BILLION)


def _date_with_time(evaluator: Evaluator, dates: Items, times: Items) -> Items:
    """`fn:dateTime`."""
    values = [evaluator.atomised(items[:1]) for items in (dates, times)]
    parts = [
        cast(value[0], to) if value else None for value, to in zip(values, _PARTS, strict=True)
    ]
    date, time = (None if part is None else part.value for part in parts)
    if not (isinstance(date, Moment) and isinstance(time, Moment)):
        return ()
    zones = {date.zone, time.zone} - {None}
    if len(zones) > 1:
        return ()
    zone = next(iter(zones), None)
    both = Moment("dateTime", date.cycle, date.day, time.nanoseconds, zone)
    return (Atomic(Kind.DATE_TIME, both),)


_PARTS: Final = ("date", "time")


def _place(evaluator: Evaluator, items: Items) -> float:
    """The first item as a place or a length."""
    values = evaluator.atomised(items[:1])
    return round_number(number_of(values[0]).number) if values else math.nan


def _subsequence(evaluator: Evaluator, items: Items, *bounds: Items) -> Items:
    """`fn:subsequence`."""
    start, *lengths = (_place(evaluator, each) for each in bounds)
    end = start + lengths[0] if lengths else math.inf
    return tuple(item for place, item in enumerate(items, start=1) if start <= place < end)


def _remove(evaluator: Evaluator, items: Items, position: Items) -> Items:
    """`fn:remove`."""
    at = _place(evaluator, position)
    return tuple(item for place, item in enumerate(items, start=1) if place != at)


def _insert_before(evaluator: Evaluator, items: Items, position: Items, added: Items) -> Items:
    """`fn:insert-before`."""
    at = _place(evaluator, position)
    before = 0 if math.isnan(at) else int(min(max(at, 1), len(items) + 1)) - 1
    return (*items[:before], *added, *items[before:])


def _index_of(evaluator: Evaluator, items: Items, wanted: Items, *collation: Items) -> Items:
    """`fn:index-of`: values of types that do not compare are not equal."""
    sought = evaluator.atomised(wanted[:1])
    if not sought:
        return ()

    def is_equal(each: Atomic) -> bool:
        if collation and each.is_text and sought[0].is_text:
            return folded(str(each)) == folded(str(sought[0]))
        return are_alike(each, sought[0]) and holds(Comparator.EQ, each, sought[0])

    values = enumerate(evaluator.atomised(items), start=1)
    return tuple(integer(place) for place, each in values if is_equal(each))


def _codepoints(evaluator: Evaluator, items: Items) -> Items:
    """`fn:string-to-codepoints`."""
    return tuple(integer(ord(character)) for character in _text(evaluator, items))


def _of_codepoints(evaluator: Evaluator, items: Items) -> Items:
    """`fn:codepoints-to-string`."""
    numbers = [number_of(value).number for value in evaluator.atomised(items)]
    found = [chr(int(each)) for each in numbers if each.is_integer() and 0 <= each < 0x110000]
    return (string("".join(each for each in found if _CHARACTER.match(each, 0))),)


def _encoded(evaluator: Evaluator, items: Items) -> Items:
    """`fn:encode-for-uri`."""
    return (string(quote(_text(evaluator, items), safe="~")),)


def _in_normal_form(evaluator: Evaluator, items: Items, *forms: Items) -> Items:
    """`fn:normalize-unicode`: as it is, if there is no such form."""
    text = _text(evaluator, items)
    match _text(evaluator, forms[0]).strip().upper() if forms else "NFC":
        case "NFC" | "NFD" | "NFKC" | "NFKD" as form:
            return (string(unicodedata.normalize(form, text)),)
    return (string(text),)


def _text(evaluator: Evaluator, items: Items) -> str:
    text = str(evaluator.atomised(items[:1])[0]) if items else ""
    evaluator.budget.charge_text(len(text))
    return text


def _to_even(evaluator: Evaluator, items: Items, *digits: Items) -> Items:
    """`fn:round-half-to-even`."""
    values = evaluator.atomised(items[:1])
    if not values:
        return ()
    number = number_of(values[0])
    places = _place(evaluator, digits[0]) if digits else 0.0
    if math.isnan(places):
        return (double(math.nan),)
    count = int(max(-_DIGITS_MAX, min(places, _DIGITS_MAX)))
    if number.kind is Kind.INTEGER:
        if count >= 0:
            return (number,)
        return (integer(round(number.whole, count) if count >= -18 else 0),)
    value = _rounded(number.number, count)
    return (
        promoted(number.kind, decimal(value) if number.kind is Kind.DECIMAL else double(value)),
    )


def to_greater(evaluator: Evaluator, items: Items, digits: Items) -> Items:
    """`fn:round` with digits: of two the greater number."""
    values = evaluator.atomised(items[:1])
    if not values:
        return ()
    number, places = number_of(values[0]), _place(evaluator, digits)
    if math.isnan(places):
        return (double(math.nan),)
    count = int(max(-_DIGITS_MAX, min(places, _DIGITS_MAX)))
    if number.kind is Kind.INTEGER:
        if count >= 0:
            return (number,)
        power = 10**-count
        return (integer((number.whole * 2 + power) // (power * 2) * power if count >= -18 else 0),)
    value = number.number
    if count >= 0 and math.isfinite(value):
        exact = Fraction(value) * 10**count + Fraction(1, 2)
        found = float(Fraction(math.floor(exact), 10**count))
        value = math.copysign(found, value) if found == 0 else found
    elif math.isfinite(value):
        power = float(f"1e{-count}")
        value = value * 0.0 if math.isinf(power) else round_number(value / power) * power
    return (
        promoted(number.kind, decimal(value) if number.kind is Kind.DECIMAL else double(value)),
    )


def _rounded(value: float, count: int) -> float:
    if not math.isfinite(value):
        return value
    if count >= 0:
        return float(f"{value:.{count}f}")
    power = float(f"1e{-count}")
    if math.isinf(power):
        return value * 0.0
    quotient = value / power
    return math.copysign(float(round(quotient)), quotient) * power


CHOSEN: Final = MappingProxyType[str, Callable[..., Items]](
    {
        "codepoints-to-string": _of_codepoints,
        "dateTime": _date_with_time,
        "encode-for-uri": _encoded,
        "head": lambda _, items: items[:1],
        "index-of": _index_of,
        "insert-before": _insert_before,
        "normalize-unicode": _in_normal_form,
        "remove": _remove,
        "reverse": lambda _, items: items[::-1],
        "round-half-to-even": _to_even,
        "string-to-codepoints": _codepoints,
        "subsequence": _subsequence,
        "tail": lambda _, items: items[1:],
    }
)
"""Functions by name; each takes the evaluator and the values of its arguments."""

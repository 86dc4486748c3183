"""Texts as values of types of XML Schema: what `xs:date("2026-12-31")` reads.

Dates follow the Gregorian calendar in all years, of which 0000 is the one before 0001. It repeats
itself after 400 years, so each date is computed with as one of the years 2000 to 2399.

Example:
    >>> moment = value_of("-0001-12-31T24:00:00.50Z", "dateTime")
    >>> moment is None, str(value_of("2023-12-31T24:00:00-05:00", "dateTime"))
    (True, '2024-01-01T00:00:00-05:00')
    >>> value_of(" 1 ", "boolean"), value_of("1.0", "integer"), value_of("1.0", "decimal")
    (True, None, 1.0)
    >>> str(value_of("-PT36H", "dayTimeDuration")), str(value_of("P13M", "yearMonthDuration"))
    ('-P1DT12H', 'P1Y1M')

Source: XML Schema 1.1, part 2, section 3.3; Functions and Operators 3.1, section 19.1.1.
Differs: years have at most nine digits, seconds nine after the point; further ones are cut off. The
text of a date, time or duration has at most 256 bytes, a number of a duration twelve digits.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import date, timedelta
from types import MappingProxyType
from typing import Final, TypeAlias

_BLANKS: Final = " \t\r\n"
_BYTES_MAX: Final = 256
_DAY_SECONDS: Final = 86_400
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097
_CYCLE_START: Final = 2000
_BILLION: Final = 10**9
_LENGTH_MAX: Final = 10**17

_DATE: Final = r"(?P<year>-?(?:[1-9][0-9]{4,8}|[0-9]{4}))-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME: Final = (
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
)
_ZONE: Final = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_PATTERNS: Final = MappingProxyType(
    {
        "date": re.compile(_DATE + _ZONE),
        "dateTime": re.compile(f"{_DATE}T{_TIME}{_ZONE}"),
        "time": re.compile(_TIME + _ZONE),
        "dayTimeDuration": re.compile(
            r"(?P<sign>-?)P(?=[0-9T])(?:(?P<day>[0-9]+)D)?(?:T(?=[0-9])(?:(?P<hour>[0-9]+)H)?"
            r"(?:(?P<minute>[0-9]+)M)?(?:(?P<second>[0-9]+)(?:\.(?P<fraction>[0-9]+))?S)?)?"
        ),
        "yearMonthDuration": re.compile(
            r"(?P<sign>-?)P(?=[0-9])(?:(?P<year>[0-9]+)Y)?(?:(?P<month>[0-9]+)M)?"
        ),
    }
)
_NUMBERS: Final = MappingProxyType(
    {
        "integer": re.compile(r"[+-]?[0-9]+"),
        "decimal": re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"),
        "double": re.compile(
            r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN"
        ),
    }
)
_DURATIONS: Final = ("dayTimeDuration", "yearMonthDuration")
_DURATION_DIGITS_MAX: Final = 12
_BOOLEANS: Final = MappingProxyType({"true": True, "1": True, "false": False, "0": False})


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, a time of day, or both.

    Attributes:
        to: Local name of its type: date, dateTime, time.
        cycle: How many times 400 years its date is later than `day`.
        day: Its date, in the years 2000 to 2399; of a time some day.
        nanoseconds: From the beginning of the day.
        zone: Minutes ahead of UTC; None without a time zone, which counts as UTC.
    """

    to: str
    cycle: int
    day: date
    nanoseconds: int
    zone: int | None

    @property
    def year(self) -> int:
        """The year of its date; the one before 0001 is 0."""
        return self.day.year + _CYCLE_YEARS * self.cycle - _CYCLE_START

    @property
    def instant(self) -> int:
        """Nanoseconds from some beginning, to compare values of one type by."""
        days = self.cycle * _CYCLE_DAYS + self.day.toordinal()
        seconds = days * _DAY_SECONDS - (self.zone or 0) * 60
        return seconds * _BILLION + self.nanoseconds

    def cast(self, to: str) -> Moment | None:
        """The value as one of another of the types; None if it has none."""
        match (self.to, to):
            case ("date", "dateTime"):
                return replace(self, to=to)
            case ("dateTime", "date"):
                return replace(self, to=to, nanoseconds=0)
            case ("dateTime", "time"):
                return replace(self, to=to, cycle=0, day=date(_CYCLE_START, 1, 1))
        return self if self.to == to else None

    def __str__(self) -> str:
        parts = []
        if self.to != "time":
            sign = "-" if self.year < 0 else ""
            parts.append(f"{sign}{abs(self.year):04}-{self.day:%m-%d}")
        if self.to != "date":
            seconds, nanoseconds = divmod(self.nanoseconds, _BILLION)
            clock = timedelta(seconds=seconds)
            fraction = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
            parts.append(f"{str(clock).rjust(8, '0')}{fraction}")
        return "T".join(parts) + self._zone_text()

    def _zone_text(self) -> str:
        if self.zone is None:
            return ""
        if self.zone == 0:
            return "Z"
        hours, minutes = divmod(abs(self.zone), 60)
        return f"{'-' if self.zone < 0 else '+'}{hours:02}:{minutes:02}"


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration of one of the two types that have an order.

    Attributes:
        to: Local name of its type: dayTimeDuration, yearMonthDuration.
        instant: Its length in nanoseconds, or in months.
    """

    to: str
    instant: int

    def cast(self, to: str) -> Duration | None:
        """The value as one of the other type, where it has no length."""
        if self.to == to:
            return self
        return Duration(to, 0) if to in _DURATIONS else None

    def of_length(self, length: int) -> Duration | None:
        """A duration of the same type; None if it is too long."""
        units = 1 if self.to == "yearMonthDuration" else _BILLION
        return Duration(self.to, length) if abs(length // units) < _LENGTH_MAX else None

    def __str__(self) -> str:
        sign, size = ("-" if self.instant < 0 else ""), abs(self.instant)
        if self.to == "yearMonthDuration":
            years, months = divmod(size, 12)
            shown = _shown((years, "Y"), (months, "M"))
            return f"{sign}P{shown or '0M'}"
        seconds, nanoseconds = divmod(size, _BILLION)
        minutes, seconds = divmod(seconds, 60)
        days = _shown((minutes // 1440, "D"))
        clock = _shown((minutes // 60 % 24, "H"), (minutes % 60, "M"))
        if seconds or nanoseconds:
            fraction = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
            clock += f"{seconds}{fraction}S"
        if not days + clock:
            return "PT0S"
        return f"{sign}P{days}{'T' if clock else ''}{clock}"


def added(value: object, duration: Duration) -> Moment | Duration | None:
    """A value and a duration; None if they have no sum."""
    is_in_months = duration.to == "yearMonthDuration"
    match value:
        case Duration(to=to, instant=length):
            return value.of_length(length + duration.instant) if to == duration.to else None
        case Moment(to="time"):
            nanoseconds = (value.nanoseconds + duration.instant) % (_DAY_SECONDS * _BILLION)
            return None if is_in_months else replace(value, nanoseconds=nanoseconds)
        case Moment() if is_in_months:
            months = value.year * 12 + value.day.month - 1 + duration.instant
            cycle, months = divmod(months, _CYCLE_YEARS * 12)
            year, month = divmod(months, 12)
            year += _CYCLE_START
            last = monthrange(year, month + 1)[1]
            day = date(year, month + 1, min(value.day.day, last))
            return _in_years(replace(value, cycle=cycle, day=day))
        case Moment():
            days, nanoseconds = divmod(
                value.nanoseconds + duration.instant, _DAY_SECONDS * _BILLION
            )
            start = date(_CYCLE_START, 1, 1).toordinal()
            days += value.day.toordinal() - start + value.cycle * _CYCLE_DAYS
            cycle, days = divmod(days, _CYCLE_DAYS)
            nanoseconds = nanoseconds if value.to == "dateTime" else 0
            day = date.fromordinal(start + days)
            return _in_years(replace(value, cycle=cycle, day=day, nanoseconds=nanoseconds))
    return None


def between(one: Moment, other: Moment) -> Duration | None:
    """The time since another moment of the same type."""
    if one.to != other.to:
        return None
    return Duration("dayTimeDuration", one.instant - other.instant)


def _in_years(moment: Moment) -> Moment | None:
    return moment if abs(moment.year) < 10**9 else None


Value: TypeAlias = str | bool | int | float | Moment | Duration


def value_of(text: str, to: str) -> Value | None:
    """The value of a text as one of a type, by its local name; None if it is not one."""
    stripped = text.strip(_BLANKS)
    if to in _PATTERNS:
        is_short = len(text.encode()) <= _BYTES_MAX
        found = _PATTERNS[to].fullmatch(stripped) if is_short else None
        if found is None:
            return None
        make = _duration if to in _DURATIONS else _moment
        return make(found.groupdict(), to)
    match to:
        case "string":
            return text
        case "boolean":
            return _BOOLEANS.get(stripped)
        case "integer" | "decimal" | "double":
            if _NUMBERS[to].fullmatch(stripped) is None:
                return None
            return int(stripped) if to == "integer" else float(stripped.replace("INF", "inf"))
    raise AssertionError(to)


def _shown(*parts: tuple[int, str]) -> str:
    return "".join(f"{value}{designator}" for value, designator in parts if value)


def _duration(parts: dict[str, str | None], to: str) -> Duration | None:
    names = ("year", "month", "day", "hour", "minute", "second")
    numbers = [(parts.get(name) or "").lstrip("0") for name in names]
    if any(len(number) > _DURATION_DIGITS_MAX for number in numbers):
        return None
    years, months, days, hours, minutes, seconds = (int(number or "0") for number in numbers)
    length = years * 12 + months
    if to == "dayTimeDuration":
        length = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        length = length * _BILLION + int((parts["fraction"] or "")[:9].ljust(9, "0"))
    return Duration(to, -length if parts["sign"] else length)


def _moment(parts: dict[str, str | None], to: str) -> Moment | None:
    zone = _zone_of(parts["zone"])
    if parts["zone"] is not None and zone is None:
        return None
    cycle, year = divmod(int(parts.get("year") or _CYCLE_START), _CYCLE_YEARS)
    try:
        day = date(year + _CYCLE_START, int(parts.get("month") or 1), int(parts.get("day") or 1))
    except ValueError:
        return None
    nanoseconds = _nanoseconds(parts) if to != "date" else 0
    if nanoseconds is None:
        return None
    days, nanoseconds = divmod(nanoseconds, _DAY_SECONDS * _BILLION)
    if to != "time" and days:
        day += timedelta(days)
        if day.year == _CYCLE_START + _CYCLE_YEARS:
            day, cycle = day.replace(year=_CYCLE_START), cycle + 1
    return Moment(to, cycle, day, nanoseconds, zone)


def _nanoseconds(parts: dict[str, str | None]) -> int | None:
    """From midnight; 24:00:00 is a whole day."""
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    fraction = parts["fraction"] or ""
    is_end = hour == 24 and not (minute or second or fraction.strip("0"))
    if not (hour < 24 or is_end) or minute > 59 or second > 59:
        return None
    seconds = hour * 3600 + minute * 60 + second
    return seconds * _BILLION + int(fraction[:9].ljust(9, "0"))


def _zone_of(written: str | None) -> int | None:
    if written is None or written == "Z":
        return None if written is None else 0
    hours, minutes = int(written[1:3]), int(written[4:6])
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        return None
    return (hours * 60 + minutes) * (-1 if written[0] == "-" else 1)

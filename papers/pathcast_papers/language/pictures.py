"""Numbers, dates and times as a picture shows them.

Example:
    >>> number_picture("#,##0.00;(0)")(-1234567.125)
    '(1234567)'
    >>> number_picture("#,##0.00")(1234567.125)
    '1,234,567.12'
    >>> from pathcast_papers.language.typed_text import value_of
    >>> moment_picture("[FNn], [D1o] [MNn,3-3] [Y]", "date")(value_of("2026-03-02", "date"))
    'Monday, 2nd Mar 2026'

Source: Functions and Operators 3.1, sections 4.7 and 9.8.
Differs: no exponents; names are English, whole or of three letters; of the forms of numbers there
are digits and ordinals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from types import MappingProxyType
from typing import Final, TypeAlias

from pathcast_papers.language.typed_text import Moment

_BILLION: Final = 10**9
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HALF: Final = re.compile(r"(?P<prefix>[^.,#0-9]*)(?P<inside>[.,#0-9].*?)??(?P<suffix>[^.,#0-9]*)")
_INSIDE: Final = re.compile(r"(?P<whole>[#,]*[0-9,]*)(?:(?P<point>\.)(?P<fraction>[0-9,]*[#,]*))?")
_SCALES: Final = MappingProxyType({"": 0, "%": 2, "\u2030": 3})
_MARKER: Final = re.compile(r"\[\[|\]\]|\[([^\]]*)\]|[\[\]]")
_PART: Final = re.compile(r"(?P<letter>.)(?P<form>.*?)(?:,(?P<width>[^,]*))?", re.DOTALL)
_WIDTH: Final = re.compile(r"(\*|0*[1-9][0-9]{0,2})(?:-(\*|0*[1-9][0-9]{0,2}))?")
_ZONES: Final = re.compile(r"(01:01|00:00||0101|0000|01|00|1|0)(t?)")
_OF_DATE: Final = "YMDdF"
_OF_TIME: Final = "HhPmsf"
_UNKNOWN: Final = "WwCE"


class PictureError(Exception):
    """A text is no picture.

    Attributes:
        kind: "syntax", "exponent", "absent" or "part".
        part: What is written in brackets.
    """

    def __init__(self, kind: str, part: str = "") -> None:
        super().__init__(kind)
        self.kind = kind
        self.part = part


# Numbers.


@dataclass(frozen=True, slots=True)
class _Half:
    """One half of a picture: `scale` digits go over the point, commas stand at places."""

    prefix: str
    suffix: str
    scale: int
    whole_min: int
    fraction_min: int
    fraction_max: int
    whole_commas: tuple[int, ...]
    group: int
    fraction_commas: tuple[int, ...]

    def shown(self, size: Decimal) -> str:
        """The digits of a number that is not negative."""
        with localcontext() as context:
            # All digits that a double can have, and those of the picture.
            context.prec = 1000 + self.fraction_max
            step = Decimal(1).scaleb(-self.fraction_max)
            rounded = size.scaleb(self.scale).quantize(step, ROUND_HALF_EVEN)
        whole, _, fraction = f"{rounded:f}".partition(".")
        whole = whole.lstrip("0").rjust(self.whole_min, "0")
        fraction = fraction.rstrip("0").ljust(self.fraction_min, "0")
        grouped = "".join(
            ("," if place and self._has_comma(len(whole) - place) else "") + digit
            for place, digit in enumerate(whole)
        )
        rest = "".join(
            ("," if place in self.fraction_commas else "") + digit
            for place, digit in enumerate(fraction)
        )
        return grouped + ("." + rest if rest else "")

    def _has_comma(self, digits: int) -> bool:
        return digits % self.group == 0 if self.group else digits in self.whole_commas


NumberPicture: TypeAlias = Callable[[float], str]


def number_picture(text: str) -> NumberPicture:
    """What writes numbers, by a picture.

    Raises:
        PictureError: It is none, or has an exponent.
    """
    halves = [_half(half) for half in text.split(";")]
    if len(halves) > 2:
        raise PictureError("syntax")

    def write(number: float) -> str:
        if math.isnan(number):
            return "NaN"
        is_negative = math.copysign(1, number) < 0
        half = halves[-1] if is_negative else halves[0]
        sign = "-" if is_negative and len(halves) == 1 else ""
        shown = "Infinity" if math.isinf(number) else half.shown(abs(Decimal(repr(number))))
        return f"{sign}{half.prefix}{shown}{half.suffix}"

    return write


def _half(text: str) -> _Half:
    found = _HALF.fullmatch(text)
    if found is None or found["inside"] is None:
        raise PictureError("syntax")
    inside = found["inside"]
    if re.fullmatch(r"[.,#0-9]*e[.,#0-9]*", inside):
        raise PictureError("exponent")
    marks = re.sub("[^%\u2030]", "", found["prefix"] + found["suffix"])
    parts = _INSIDE.fullmatch(inside)
    if parts is None or marks not in _SCALES or not re.search("[#0-9]", inside):
        raise PictureError("syntax")
    whole, fraction = parts["whole"], parts["fraction"] or ""
    if whole.endswith(",") or fraction.startswith(",") or fraction.endswith(",") or ",," in inside:
        raise PictureError("syntax")
    digits = [len(re.findall("[0-9]", each)) for each in (whole, fraction)]
    places = [len(each.replace(",", "")) for each in (whole, fraction)]
    if digits[0] == places[1] == 0:
        digits[0] = 1
    if digits == [0, 0]:
        digits[1] = 1
    commas = [len(whole[at.end() :].replace(",", "")) for at in re.finditer(",", whole)]
    commas.reverse()
    group = commas[0] if commas else 0
    size = max(places[0], 1)
    if group:
        is_regular = all(each % group == 0 for each in commas)
        wanted = list(range(group, size, group))
        if not is_regular or wanted != [each for each in commas if each < places[0]]:
            group = 0
    return _Half(
        found["prefix"],
        found["suffix"],
        _SCALES[marks],
        digits[0],
        digits[1],
        places[1],
        tuple(commas),
        group,
        tuple(len(fraction[: at.start()].replace(",", "")) for at in re.finditer(",", fraction)),
    )


# Dates and times.


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a date or time: letter and form as they are written, and the width."""

    letter: str
    form: str
    least: int
    most: int

    def shown(self, moment: Moment) -> str:
        seconds, nanoseconds = divmod(moment.nanoseconds, _BILLION)
        hours = seconds // 3600
        match self.letter:
            case "Y":
                return self._year(abs(moment.year))
            case "M" if self.form in ("n", "N", "Nn"):
                return self._name(_MONTHS[moment.day.month - 1])
            case "M":
                return self._number(moment.day.month)
            case "D":
                return self._number(moment.day.day)
            case "d":
                return self._number((moment.day - date(moment.day.year, 1, 1)).days + 1)
            case "F":
                return self._name(_DAYS[moment.day.weekday()])
            case "H":
                return self._number(hours)
            case "h":
                return self._number(hours % 12 or 12)
            case "P":
                return self._name("Am" if hours < 12 else "Pm")
            case "m":
                return self._number(seconds // 60 % 60)
            case "s":
                return self._number(seconds % 60)
            case "f":
                digits = f"{nanoseconds:09}"
                if len(self.form) > 1:
                    return digits[: len(self.form)].ljust(len(self.form), "0")
                return digits.rstrip("0") or "0"
        return self._zone(moment.zone)

    def _name(self, name: str) -> str:
        name = name[: self.most]
        shown = {"n": name.lower(), "N": name.upper(), "Nn": name}[self.form]
        return shown.ljust(self.least)

    def _number(self, number: int) -> str:
        if self.form == "1o":
            suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
            suffix = "th" if number % 100 in (11, 12, 13) else suffix
            return str(number).rjust(self.least, "0") + suffix
        return str(number).rjust(max(self.least, len(self.form)), "0")

    def _year(self, year: int) -> str:
        kept = self.most
        if kept == _ANY and len(self.form) > 1 and self.form != "1o":
            kept = len(self.form)
        return self._number(year % 10**kept if kept < 10 else year)

    def _zone(self, zone: int | None) -> str:
        if zone is None:
            return ""
        form, is_z = self.form.removesuffix("t"), self.form.endswith("t")
        if is_z and zone == 0:
            return "Z"
        hours, minutes = divmod(abs(zone), 60)
        match form:
            case "0101" | "0000":
                shown = f"{hours:02}{minutes:02}"
            case "01" | "00" if minutes == 0:
                shown = f"{hours:02}"
            case "1" | "0":
                shown = f"{hours}:{minutes:02}" if minutes else str(hours)
            case _:
                shown = f"{hours:02}:{minutes:02}"
        return ("GMT" if self.letter == "z" else "") + ("-" if zone < 0 else "+") + shown


_ANY: Final = 1 << 16
MomentPicture: TypeAlias = Callable[[Moment], str]


def moment_picture(text: str, of: str) -> MomentPicture:
    """What writes dates or times, by a picture.

    Args:
        text: The picture.
        of: Local name of the type: date, dateTime, time.

    Raises:
        PictureError: It is none, or asks for a part or a form that there is not.
    """
    pieces: list[str | _Part] = []
    place = 0
    for found in _MARKER.finditer(text):
        pieces.append(text[place : found.start()])
        place = found.end()
        if found[0] in ("[[", "]]"):
            pieces.append(found[0][0])
        elif found[1] is None:
            raise PictureError("syntax")
        else:
            pieces.append(_part(re.sub("[ \t\r\n]", "", found[1]), of))
    pieces.append(text[place:])
    return lambda moment: "".join(
        piece if isinstance(piece, str) else piece.shown(moment) for piece in pieces
    )


def _part(written: str, of: str) -> _Part:
    found = _PART.fullmatch(written)
    if found is None:
        raise PictureError("syntax")
    letter, form, width = found["letter"], found["form"], found["width"]
    absent = {"date": _OF_TIME, "time": _OF_DATE}.get(of, "")
    if letter in absent:
        raise PictureError("absent", letter)
    if letter in _UNKNOWN:
        raise PictureError("part", written)
    if letter not in _OF_DATE + _OF_TIME + "Zz":
        raise PictureError("syntax")
    least, most = _widths(width)
    form = form.removesuffix("c")
    if letter in "Zz":
        if width is not None or not _ZONES.fullmatch(form):
            raise PictureError("part", written)
        return _Part(letter, form, least, most)
    form = form or {"F": "n", "P": "n", "m": "01", "s": "01"}.get(letter, "1")
    is_name = form in ("n", "N", "Nn")
    is_digits = re.fullmatch("[01]+", form) is not None
    match letter:
        case "F":
            is_known = is_name and most in (3, _ANY)
        case "M" if is_name:
            is_known = most in (3, _ANY)
        case "P":
            is_known = is_name and most in (2, _ANY)
        case "f":
            is_known = is_digits and width is None
        case "Y":
            is_known = is_digits or form == "1o"
        case "M":
            is_known = is_digits or form == "1o"
        case _:
            is_known = (is_digits or form == "1o") and most >= 2
    if not is_known:
        raise PictureError("part", written)
    return _Part(letter, form, least, most)


def _widths(written: str | None) -> tuple[int, int]:
    if written is None:
        return 1, _ANY
    found = _WIDTH.fullmatch(written)
    if found is None:
        raise PictureError("syntax")
    least = 1 if found[1] == "*" else int(found[1])
    most = _ANY if found[2] in (None, "*") else int(found[2])
    if least > most:
        raise PictureError("syntax")
    return least, most

"""Functions that XPath 1.0 does not have, and what to write instead.

`in_xquery` gives those that an XQuery subscription may call; `refused_functions` are nowhere.

Example:
    >>> for_function("ends-with")
    "for a path x write `substring(x, string-length(x) - string-length('s') + 1) = 's'`; in a \
Subscription, ends-with() is there, as XQuery"
    >>> for_function("node-name")
    'it is in neither language here; for most uses write `name(x)`'
    >>> for_function("current-date"), for_function("parse-json")
    ('in a Subscription, current-date() is there, as XQuery', 'it is in neither language here')
    >>> for_type("integer")
    'for a path x write `number(x)`; in a Subscription, xs:integer() is there, as XQuery'

All recommendations are XPath 1.0, which XQuery takes as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from pathcast.boundary import native
from pathcast.query.functions import CORE_FUNCTIONS

_UPPER: Final = "'ABCDEFGHIJKLMNOPQRSTUVWXYZ'"
_LOWER: Final = "'abcdefghijklmnopqrstuvwxyz'"


_WORD: Final = "contains(concat(' ', normalize-space(x), ' '), ' s ')"
_YEAR: Final = "substring(x, 1, 4)"
_MONTH: Final = "substring(x, 6, 2)"
_DAY: Final = "substring(x, 9, 2)"

INSTEAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        "exists": "boolean(x)",
        "empty": "not(x)",
        "data": "string(x)",
        "avg": "sum(x) div count(x)",
        "min": "x[not(../x < .)]",
        "max": "x[not(../x > .)]",
        "distinct-values": "x[not(. = preceding-sibling::x)]",
        "string-join": "concat(x, ',', x)",
        "ends-with": "substring(x, string-length(x) - string-length('s') + 1) = 's'",
        "upper-case": f"translate(x, {_LOWER}, {_UPPER})",
        "lower-case": f"translate(x, {_UPPER}, {_LOWER})",
        "abs": "x * (1 - 2 * number(x < 0))",
        "compare": "1 - number(x = 's')",
        "matches": "contains(x, 's')",
        "replace": "translate(x, 'ab', 'xy')",
        "tokenize": "substring-before(concat(normalize-space(x), ' '), ' ')",
        "codepoint-equal": "x = 's'",
        "contains-token": _WORD,
        "day-from-date": _DAY,
        "day-from-dateTime": _DAY,
        "exactly-one": "count(x) = 1",
        "has-children": "boolean(x/node())",
        "head": "x[1]",
        "hours-from-dateTime": "substring(x, 12, 2)",
        "hours-from-time": "substring(x, 1, 2)",
        "minutes-from-dateTime": "substring(x, 15, 2)",
        "minutes-from-time": "substring(x, 4, 2)",
        "month-from-date": _MONTH,
        "month-from-dateTime": _MONTH,
        "node-name": "name(x)",
        "round-half-to-even": "round(x)",
        "seconds-from-dateTime": "substring(x, 18, 2)",
        "seconds-from-time": "substring(x, 7, 2)",
        "subsequence": "x[position() >= 2 and position() < 4]",
        "tail": "x[position() > 1]",
        "year-from-date": _YEAR,
        "year-from-dateTime": _YEAR,
    }
)
"""Functions that XPath 1.0 lacks -> what it has for what they are mostly called for."""

_NUMBERS: Final = ("integer", "decimal", "double", "float", "int", "long", "short")

TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(_NUMBERS, "number(x)"),
        "string": "string(x)",
        "boolean": "x = 'true'",
        "date": "number(translate(substring(x, 1, 10), '-', ''))",
        "dateTime": "number(translate(substring(x, 1, 19), '-T:', ''))",
        "time": "number(translate(substring(x, 1, 8), ':', ''))",
    }
)
"""Some types of XML Schema -> what compares as they do; a date is the number of its digits."""

CAST_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "boolean": "true or false",
        "date": "2026-12-31, or with a time zone 2026-12-31+01:00",
        "dateTime": "2026-12-31T23:59:59, or with a time zone 2026-12-31T23:59:59Z",
        "dayTimeDuration": "P30D, PT12H30M or -P1DT0.5S",
        "decimal": "12.5",
        "double": "12.5 or 1.25e1",
        "integer": "12",
        "string": "in any way",
        "time": "23:59:59, or with a time zone 23:59:59Z",
        "yearMonthDuration": "P1Y6M or -P18M",
    }
)
"""The types that an XQuery subscription may cast to -> how values of them are written."""

NOWHERE: Final = "it is in neither language here"


@cache
def in_xquery() -> tuple[str, ...]:
    """Functions that an XQuery subscription may call, and an XPath may not."""
    called = (name for name, *_ in native.xquery_functions())
    return tuple(name for name in called if name not in CORE_FUNCTIONS)


@cache
def refused_functions() -> frozenset[str]:
    """Functions of the standard library that are refused by name."""
    return frozenset(native.refused_functions())


VALUES_OF: Final = "values-of"

FOR_VALUES_OF: Final = (
    "the lines of a file are put in its place before a query is registered: by `--values FOLDER`, "
    "by `subscriptions.values` of a pipeline, by `with_values` in Python"
)
"""Advice for the name that stands for a list in a file, which is no function of the language."""


def for_function(name: str) -> str | None:
    """Advice for a function that XPath 1.0 does not have; None if it is none at all.

    Args:
        name: Without a prefix.
    """
    if name == VALUES_OF:
        return FOR_VALUES_OF
    if name in in_xquery():
        there = f"in a Subscription, {name}() is there, as XQuery"
        return f"for a path x write `{INSTEAD[name]}`; {there}" if name in INSTEAD else there
    return for_refused(name) if name in refused_functions() else None


def for_refused(name: str) -> str:
    """Advice for a function of the standard library that neither language has here."""
    return f"{NOWHERE}; for most uses write `{INSTEAD[name]}`" if name in INSTEAD else NOWHERE


def for_type(name: str) -> str:
    """Advice for a type of XML Schema that is called; without a prefix."""
    if name not in TYPES:
        return NOWHERE
    there = f"; in a Subscription, xs:{name}() is there, as XQuery" if name in CAST_TYPES else ""
    return f"for a path x write `{TYPES[name]}`{there}"


def for_text_of(name: str) -> str:
    """How a value of a type that can be cast to is written; without a prefix."""
    return f"a value of xs:{name} is written {CAST_TYPES[name]}"

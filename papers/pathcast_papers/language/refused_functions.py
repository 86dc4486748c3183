"""Functions that XPath 1.0 does not have, and what to write instead.

`IN_XQUERY` are those that an XQuery subscription may call; `REFUSED_FUNCTIONS` are nowhere.

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
from types import MappingProxyType
from typing import Final

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

IN_XQUERY: Final = frozenset(
    [
        "abs",
        "adjust-date-to-timezone",
        "adjust-dateTime-to-timezone",
        "adjust-time-to-timezone",
        "avg",
        "codepoint-equal",
        "codepoints-to-string",
        "compare",
        "contains-token",
        "current-date",
        "current-dateTime",
        "current-time",
        "data",
        "dateTime",
        "day-from-date",
        "day-from-dateTime",
        "days-from-duration",
        "deep-equal",
        "distinct-values",
        "empty",
        "encode-for-uri",
        "ends-with",
        "exists",
        "format-date",
        "format-dateTime",
        "format-number",
        "format-time",
        "head",
        "hours-from-dateTime",
        "hours-from-duration",
        "hours-from-time",
        "implicit-timezone",
        "index-of",
        "insert-before",
        "lower-case",
        "matches",
        "max",
        "min",
        "minutes-from-dateTime",
        "minutes-from-duration",
        "minutes-from-time",
        "month-from-date",
        "month-from-dateTime",
        "months-from-duration",
        "normalize-unicode",
        "remove",
        "replace",
        "reverse",
        "round-half-to-even",
        "seconds-from-dateTime",
        "seconds-from-duration",
        "seconds-from-time",
        "string-join",
        "string-to-codepoints",
        "subsequence",
        "tail",
        "timezone-from-date",
        "timezone-from-dateTime",
        "timezone-from-time",
        "tokenize",
        "upper-case",
        "year-from-date",
        "year-from-dateTime",
        "years-from-duration",
    ]
)
"""Functions that an XQuery subscription may call, and an XPath may not."""

REFUSED_FUNCTIONS: Final = frozenset(
    [
        "analyze-string",
        "apply",
        "available-environment-variables",
        "base-uri",
        "collection",
        "default-collation",
        "doc-available",
        "document-uri",
        "element-with-id",
        "environment-variable",
        "error",
        "escape-html-uri",
        "exactly-one",
        "filter",
        "fold-left",
        "fold-right",
        "for-each",
        "for-each-pair",
        "format-integer",
        "function-arity",
        "function-lookup",
        "function-name",
        "generate-id",
        "has-children",
        "idref",
        "in-scope-prefixes",
        "innermost",
        "iri-to-uri",
        "json-doc",
        "json-to-xml",
        "local-name-from-QName",
        "namespace-uri-for-prefix",
        "namespace-uri-from-QName",
        "nilled",
        "node-name",
        "one-or-more",
        "outermost",
        "parse-ietf-date",
        "parse-json",
        "parse-xml",
        "parse-xml-fragment",
        "path",
        "prefix-from-QName",
        "put",
        "QName",
        "resolve-QName",
        "resolve-uri",
        "root",
        "serialize",
        "sort",
        "static-base-uri",
        "trace",
        "transform",
        "unordered",
        "unparsed-text",
        "unparsed-text-available",
        "unparsed-text-lines",
        "uri-collection",
        "xml-to-json",
        "zero-or-one",
    ]
)
"""Functions of the standard library that are refused by name."""

NOWHERE: Final = "it is in neither language here"


def for_function(name: str) -> str | None:
    """What to write for a function that XPath 1.0 does not have; None if it is none at all.

    Args:
        name: Without a prefix.
    """
    if name in IN_XQUERY:
        there = f"in a Subscription, {name}() is there, as XQuery"
        return f"for a path x write `{INSTEAD[name]}`; {there}" if name in INSTEAD else there
    return for_refused(name) if name in REFUSED_FUNCTIONS else None


def for_refused(name: str) -> str:
    """What to write for a function of the standard library that neither language has here."""
    return f"{NOWHERE}; for most uses write `{INSTEAD[name]}`" if name in INSTEAD else NOWHERE


def for_type(name: str) -> str:
    """What to write for a type of XML Schema that is called; without a prefix."""
    if name not in TYPES:
        return NOWHERE
    there = f"; in a Subscription, xs:{name}() is there, as XQuery" if name in CAST_TYPES else ""
    return f"for a path x write `{TYPES[name]}`{there}"


def for_text_of(name: str) -> str:
    """How a value of a type that can be cast to is written; without a prefix."""
    return f"a value of xs:{name} is written {CAST_TYPES[name]}"

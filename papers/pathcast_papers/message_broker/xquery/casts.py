"""Casts between the types of atomic values.

Where XQuery raises an error there is no value; for a double there is NaN.

Example:
    >>> from pathcast_papers.message_broker.xquery.items import double, untyped
    >>> str(cast(untyped(" 2024-02-29 "), "date")), cast(untyped("2023-02-29"), "date")
    ('2024-02-29', None)
    >>> str(cast(double(-1.5), "integer")), str(cast(untyped("a"), "double"))
    ('-1', 'NaN')

Source: XQuery and XPath Functions and Operators 3.1, section 19.
"""

from __future__ import annotations

import math

from pathcast_papers.language.typed_text import Duration, Moment, Value, value_of
from pathcast_papers.message_broker.xquery.items import (
    Atomic,
    Kind,
    boolean,
    decimal,
    double,
    integer,
    string,
)


def cast(value: Atomic, to: str) -> Atomic | None:
    """A value as one of a type; None if there is none."""
    found = castable(value, to)
    return double(math.nan) if found is None and to == "double" else found


def castable(value: Atomic, to: str) -> Atomic | None:
    """A value as one of a type; None if the cast is an error."""
    if to == "string":
        return string(str(value))
    if value.is_text:
        return typed(value_of(str(value.value), to), to)
    if isinstance(value.value, Moment | Duration):
        return typed(value.value.cast(to), to)
    number = value.number
    match to:
        case "boolean":
            return boolean(bool(number) and number == number)
        case "double":
            return double(number)
        case "integer" | "decimal" if not math.isfinite(number):
            return None
        case "integer":
            return integer(int(value.value))
        case "decimal":
            return decimal(number)
    return None


def typed(value: Value | None, to: str) -> Atomic | None:
    """An atomic value of a type; None for None."""
    match value:
        case None:
            return None
        case int() if to == "integer":
            return integer(value)
        case float() if to == "decimal":
            return decimal(value)
    return Atomic(Kind(to), value)

"""Advice for queries that order dates or other texts, which XPath 1.0 cannot.

An order (`<`, `<=`, `>`, `>=`) compares numbers in XPath 1.0. The digits of a date are a number,
and order as dates do; XQuery has dates, and orders other text.

Example:
    >>> from pathcast.query.atoms import atom_of
    >>> from pathcast.query.reader import parse
    >>> for text in ("@day >= '2026-06-01'", "price > 'high'"):
    ...     print(for_order_of_text(atom_of(parse(text)), Notation()))
    write `translate(substring(@day,1,10),'-','')>=20260601`; or, in a Subscription, \
`@day>=xs:date('2026-06-01')` for dates, `@day>=xs:dateTime('2026-06-01T00:00:00')` for dateTimes
    XPath 1.0 orders numbers only; in a Subscription write `price>'high'` with \
language="xquery", which compares text

It does not say whether a comparison is an order of text; `pathcast.query.truth` does.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from pathcast.query.atoms import Atom, is_single
from pathcast.query.canonical import literal_text
from pathcast.query.notation import Notation
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import Expr, FunctionCall, LocationPath

_DATE: Final = re.compile(r"(\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?)?)(Z?)")
"""A date, or a date and a time; messages may be more precise."""

_SIGNS: Final = "-T:"


def for_order_of_text(atom: Atom, notation: Notation) -> str | None:
    """Advice for an order of text; None where a number is compared with it.

    Args:
        atom: A comparison by `<`, `<=`, `>` or `>=` with a text that is no number.
        notation: Writes the names of the query.
    """
    compared = _read(atom.operand)
    if kind_of(compared) is Kind.NUMBER:
        return None
    sign, text = atom.compare.operator.value, str(atom.compare.constant)
    operand = notation.expr(compared)
    ordered = f"`{operand}{sign}{literal_text(text)}`"
    date = _DATE.fullmatch(text)
    in_xquery = f'{ordered} with language="xquery", which compares text'
    if date is None:
        return f"XPath 1.0 orders numbers only; in a Subscription write {in_xquery}"
    if is_single(compared):
        written = _digits(operand, date[1], sign)
    else:
        # A function reads the first of several nodes; each of them is asked here.
        nodes = operand if isinstance(compared, LocationPath) else f"({operand})"
        written = f"{nodes}[{_digits('.', date[1], sign)}]"
    if typed := _typed(date[1], date[2]):
        values = [f"`{operand}{sign}xs:{to}('{value}')` for {to}s" for to, value in typed]
        in_xquery = ", ".join(values)
    return f"write `{written}`; or, in a Subscription, {in_xquery}"


def _read(operand: Expr) -> Expr:
    """The operand of a comparison, without a conversion that is made anyway."""
    while isinstance(operand, FunctionCall) and operand.name in ("number", "string"):
        if not operand.arguments:
            break
        [operand] = operand.arguments
    return operand


def _typed(date: str, zone: str) -> list[tuple[str, str]]:
    """The types that a text can be compared as, and its value of each; none if it is no date."""
    try:
        moment = datetime.fromisoformat(date)
    except ValueError:
        return []
    date_time = moment.isoformat()
    if "T" not in date:
        return [("date", date + zone), ("dateTime", date_time + zone)]
    # Without seconds it is no value of the type, and messages will have none of it either.
    return [("dateTime", date + zone)] if date == date_time else []


def _digits(operand: str, date: str, sign: str) -> str:
    """A comparison of the digits of dates."""
    signs = "".join(each for each in _SIGNS if each in date)
    digits = "".join(each for each in date if each.isdigit())
    return f"translate(substring({operand},1,{len(date)}),'{signs}',''){sign}{digits}"

"""Which of the nodes that fail a condition comes nearest, and what it would have taken.

Example:
    >>> from pathcast.query import Comparison, Operator
    >>> sentence("@area", ["SFO", "JFK"], Comparison(Operator.EQ, "SF"))
    "`@area` is 'SFO', the query wants 'SF'"
    >>> sentence("price", [], Comparison(Operator.GT, 300.0))
    'there is no `price`'

It compares values with constants; it walks no message.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from typing import Final

from pathcast.query import Comparison, Operator
from pathcast.query.canonical import literal_text, number_text
from pathcast.query.normal import Double
from pathcast.query.values import double_of, number_of

SEEN_MAX: Final = 5
"""Values shown of a condition that failed."""

SEEN_LENGTH_MAX: Final = 60
"""Characters shown of a value."""

_ESCAPES: Final = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}

_WORDS: Final = {
    Operator.LT: "less than",
    Operator.LE: "at most",
    Operator.GT: "more than",
    Operator.GE: "at least",
}


def nearness(value: str, compare: Comparison) -> float:
    """How near a value comes to passing a comparison that it fails: 0 (not at all) to 1.

    Example:
        >>> compare = Comparison(Operator.EQ, "SF")
        >>> nearness("SFO", compare) > nearness("JFK", compare)
        True
    """
    constant = compare.constant
    if isinstance(constant, str) and compare.operator not in _WORDS:
        compared = value[:SEEN_LENGTH_MAX].lower()
        return difflib.SequenceMatcher(None, compared, constant.lower()).ratio()
    if isinstance(constant, Double):
        wanted, number = constant.number, double_of(value)
    else:
        wanted = constant if isinstance(constant, float) else number_of(constant)
        number = number_of(value)
    if math.isnan(number) or math.isnan(wanted):
        return 0.0
    return 1.0 / (1.0 + abs(number - wanted) / (1.0 + abs(wanted)))


def sentence(
    operand: str, values: Sequence[str], compare: Comparison, *, is_number: bool = False
) -> str:
    """State the value that a condition found and the value that it wanted.

    Args:
        operand: What is compared, as the query has it.
        values: Its values; none if there is no such node.
        compare: The comparison that all of them fail.
        is_number: Whether it is a number, not the text of a node.
    """
    if not values:
        return f"there is no `{operand}`"
    nearest = max(values, key=lambda value: nearness(value, compare))
    seen = nearest if is_number else shown(nearest)
    text = f"`{operand}` is {seen}, the query wants {wanted(compare)}"
    needs_number = isinstance(compare.constant, float) or compare.operator in _WORDS
    if needs_number and compare.operator is not Operator.NE and math.isnan(number_of(nearest)):
        text += " (that is no number)"
    return text


def wanted(compare: Comparison) -> str:
    """A comparison in words.

    Example:
        >>> wanted(Comparison(Operator.GE, 300.0)), wanted(Comparison(Operator.STARTS_WITH, "72"))
        ('at least 300', "something that begins with '72'")
    """
    constant = compare.constant
    if isinstance(constant, Double):
        constant = constant.number
    text = number_text(constant) if isinstance(constant, float) else literal_text(constant)
    match compare.operator:
        case Operator.EQ:
            return text
        case Operator.NE:
            return f"anything but {text}"
        case Operator.STARTS_WITH:
            return f"something that begins with {text}"
        case Operator.CONTAINS:
            return f"something that contains {text}"
        case operator:
            return f"{_WORDS[operator]} {text}"


def shown(value: str) -> str:
    """A value in quotes, on one line, shortened."""
    return literal_text(shortened(value.translate(_ESCAPES)))


def shortened(value: str) -> str:
    """A value, cut where it is long."""
    return value if len(value) <= SEEN_LENGTH_MAX else value[: SEEN_LENGTH_MAX - 1] + "…"

"""Values in an order that numbers and strings share, so that a range of values is a bucket.

A comparison with a number compares numbers, one with a string compares strings; the same pattern
may have both (`[@x = 7]`, `[@x = '7.0']`), and XQuery casts more strings to numbers (`+7`). What a
value may be equal to, by any of these comparisons, has the key of the value.

Example:
    >>> value_key("7.0") == value_key(7.0), value_key("7.0") == value_key("+7e0")
    (True, True)
    >>> sorted([value_key("b"), value_key(10.0), value_key("9"), value_key("")])
    [(0, 9.0, ''), (0, 10.0, ''), (1, 0.0, ''), (1, 0.0, 'b')]
"""

from __future__ import annotations

from typing import TypeAlias

from pathcast.query.normal import Constant, Double
from pathcast.query.values import double_of

ValueKey: TypeAlias = tuple[int, float, str]
"""Numbers by their size, then what is no number, by code points."""


def value_key(value: Constant | Double) -> ValueKey:
    """The key of a value of a message, or of the constant that it is compared with."""
    if isinstance(value, Double):
        value = value.number
    # What XPath reads as a number is cast to the same number.
    number = double_of(value) if isinstance(value, str) else value
    if number == number:
        return (0, number + 0.0, "")
    return (1, 0.0, str(value))

"""Comparisons of one value with constants together: can they hold, what do they imply?

The kernel answers (`kernel/core/src/language/compile/implication.rs`). A value is a string, read as
a number where XPath 1.0 does (3.4). Every answer is sound: what is said to be impossible is
impossible, what is said to be implied is implied. `can_hold` is also complete but for `contains`
and prefixes of numbers: where it cannot decide, it says True.

Example:
    >>> from pathcast.query.normal import Operator
    >>> more, less = Comparison(Operator.GT, 5.0), Comparison(Operator.LT, 3.0)
    >>> can_hold([more, less]), implies([more], Comparison(Operator.GT, 3.0))
    (False, True)
    >>> implies([Comparison(Operator.EQ, "abc")], Comparison(Operator.STARTS_WITH, "ab"))
    True

It knows one value. That some node of several must pass is the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterable

from pathcast.boundary import native
from pathcast.query.normal import Comparison, Double
from pathcast.query.values import number_of


def holds(value: str, compare: Comparison) -> bool:
    """Whether a string compares with a constant as asked.

    Example:
        >>> from pathcast.query.normal import Operator
        >>> holds("300", Comparison(Operator.LE, 300.0)), holds("x", Comparison(Operator.NE, 1.0))
        (True, True)
    """
    return native.holds(value, compare.to_native())


def can_hold(known: Iterable[Comparison]) -> bool:
    """Whether one value can pass all comparisons; False only if none can."""
    return native.can_hold([compare.to_native() for compare in known])


def implies(known: Iterable[Comparison], wanted: Comparison) -> bool:
    """Whether every value that passes some comparisons passes another one.

    Args:
        known: What is known of the value; may be nothing.
        wanted: What is asked.

    Returns:
        True if it follows. False does not say that it does not.
    """
    return native.implies([compare.to_native() for compare in known], wanted.to_native())


def can_hold_for_count(known: Iterable[Comparison], *, least: int) -> bool:
    """Whether a whole number from `least` on passes all comparisons.

    For `position()`, `last()` (from 1 on), `count(...)` and `string-length(...)` (from 0 on); with
    a text, too, they compare as numbers.

    Example:
        >>> from pathcast.query.normal import Operator
        >>> more, less = Comparison(Operator.GT, 1.0), Comparison(Operator.LT, 2.0)
        >>> can_hold_for_count([more, less], least=1)
        False
    """
    return native.can_be_count([_of_number(compare) for compare in known], least)


def always_holds_for_count(compare: Comparison, *, least: int) -> bool:
    """Whether every whole number from `least` on compares as asked.

    Example:
        >>> from pathcast.query.normal import Operator
        >>> always_holds_for_count(Comparison(Operator.GE, 1.0), least=1)
        True
    """
    return native.is_any_count(_of_number(compare), least)


def _of_number(compare: Comparison) -> tuple[int, float]:
    operator, constant = compare.to_native()[0], compare.constant
    if isinstance(constant, Double):
        return operator, constant.number
    return operator, constant if isinstance(constant, float) else number_of(constant)

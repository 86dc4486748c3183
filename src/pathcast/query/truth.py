"""The truth that one condition has by itself: always, never, or neither.

A constant has one value whatever the message is; a position is at least 1; no string is less than a
text that is no number.

Example:
    >>> from pathcast.query import parse
    >>> own_truth(parse("count(a) >= 0"), Notation())
    ('always', '`count(a)>=0`: `count(a)` is a whole number from 0 on')

It looks at no other condition; see `pathcast.query.condition_walk`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from pathcast.query.atoms import COMPARISONS, Atom, atom_of, is_single
from pathcast.query.canonical import literal_text
from pathcast.query.constants import constant_of
from pathcast.query.implication import (
    always_holds_for_count,
    can_hold,
    can_hold_for_count,
    implies,
)
from pathcast.query.normal import Operator
from pathcast.query.notation import Notation
from pathcast.query.ordered_text import for_order_of_text
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import (
    BinaryExpr,
    BinaryOperator,
    Expr,
    FunctionCall,
)
from pathcast.query.syntax import Literal as StringLiteral
from pathcast.query.syntax import Number as NumberLiteral
from pathcast.query.values import boolean_of, number_of

Truth: TypeAlias = Literal["never", "always", "implied"]
"""never: no node passes; always: every node does; implied: another condition says it already."""

KnownTruth: TypeAlias = tuple[Truth, str]
"""The truth of a condition, and why."""

OPPOSITE: Final[Mapping[Truth, Truth]] = {"never": "always", "always": "never"}
"""What `not` makes of it."""

_JOINING: Final = (BinaryOperator.AND, BinaryOperator.OR)

_COUNTS: Final = {"position": 1, "last": 1, "count": 0, "string-length": 0}
"""Functions that give whole numbers, and the least of them."""


def meant(expr: Expr, beside: Sequence[Expr], notation: Notation) -> str | None:
    """Advice for a condition that says nothing, among the operands of an `and` or `or`."""
    ordered = atom_of(expr)
    if ordered is not None and orders_text(ordered):
        return for_order_of_text(ordered, notation)
    if isinstance(expr, FunctionCall) and expr.name in ("not", "boolean"):
        return meant(expr.arguments[0], (), notation)
    if not isinstance(expr, StringLiteral | NumberLiteral):
        return None
    for other in beside:
        atom = atom_of(other)
        if atom is None or atom.is_call or type(atom.compare.constant) is not type(expr.value):
            continue
        operator = next(each for each, of in COMPARISONS.items() if of is atom.compare.operator)
        operands = (atom.operand, expr)
        written = BinaryExpr((operator,), operands, expr.offset)
        return f"write `{notation.expr(written)}`"
    if isinstance(expr, NumberLiteral):
        return f"for a position write `position()={notation.expr(expr)}`"
    return f"`{expr.value}` without quotes may be meant" if expr.value else None


def own_truth(expr: Expr, notation: Notation) -> KnownTruth | None:
    """The truth of a condition that does not depend on anything; with the reason."""
    shown = notation.expr(expr)
    match expr:
        case StringLiteral(value=value):
            return _always_if(value != ""), "a string is true unless it is empty"
        case NumberLiteral(value=value):
            return _always_if(value != 0.0), "a number is true here unless it is 0"
        case FunctionCall(name=("position" | "last")):
            return "always", f"`{shown}` is a number from 1 on, which is true"
        case FunctionCall(name="true"):
            return "always", "`true()` always holds"
        case FunctionCall(name="false"):
            return "never", "`false()` never holds"
    constant = constant_of(expr)
    is_joined = isinstance(expr, BinaryExpr) and expr.operators[0] in _JOINING
    if constant is not None and not is_joined:
        is_true = boolean_of(constant)
        word = "true" if is_true else "false"
        return _always_if(is_true), f"`{shown}` is {word} whatever the message is"
    atom = atom_of(expr)
    if atom is not None:
        return _truth_of_atom(atom, notation)
    if isinstance(expr, BinaryExpr) and expr.operators[0] in COMPARISONS:
        return _truth_of_comparison(expr, notation)
    return None


def _truth_of_atom(atom: Atom, notation: Notation) -> KnownTruth | None:
    shown, compare = notation.expr(atom.expr), atom.compare
    operator, constant = compare.operator, compare.constant
    if orders_text(atom) and isinstance(constant, str):
        reason = f"`{operator.value}` compares numbers, and {literal_text(constant)} is none"
        return "never", f"`{shown}`: {reason}"
    least = least_of(atom.operand)
    if least is not None:
        name = notation.expr(atom.operand)
        if not can_hold_for_count([compare], least=least):
            return "never", f"`{shown}`: `{name}` is a whole number from {least} on"
        if always_holds_for_count(compare, least=least):
            return "always", f"`{shown}`: `{name}` is a whole number from {least} on"
    if kind_of(atom.operand) is Kind.STRING and not can_hold([compare]):
        return "never", f"`{shown}` holds for no string"
    if atom.is_call and implies((), compare):
        return "always", f"`{shown}`: every string has the empty one in it"
    return None


def orders_text(atom: Atom) -> bool:
    """Whether a comparison orders something by a text that is no number; it holds for nothing."""
    operator, constant = atom.compare.operator, atom.compare.constant
    is_order = operator not in (Operator.EQ, Operator.NE) and not atom.is_call
    return is_order and isinstance(constant, str) and math.isnan(number_of(constant))


def _truth_of_comparison(expr: BinaryExpr, notation: Notation) -> KnownTruth | None:
    """Comparisons of a value with itself."""
    if len(expr.operators) > 1:
        return None
    left, right = expr.operands
    operator = COMPARISONS[expr.operators[0]]
    shown = notation.expr(expr)
    is_same = notation.expr(left) == notation.expr(right)
    if is_same and is_single(left) and operator in (Operator.NE, Operator.LT, Operator.GT):
        # Only NaN differs from itself, and a string does not.
        if operator is Operator.NE and kind_of(left) is Kind.NUMBER:
            return None
        return "never", f"`{shown}` compares a value with itself"
    return None


def _always_if(condition: bool) -> Truth:
    return "always" if condition else "never"


def least_of(operand: Expr) -> int | None:
    """The least that a whole number can be; None if it is no whole number."""
    return _COUNTS.get(operand.name) if isinstance(operand, FunctionCall) else None

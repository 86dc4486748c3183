"""The necessary conditions of an expression: tree patterns of which one is there if it is true.

`Weakener.true(expr, spine)` gives spines (`language.spine`) that extend a given one. For
every construct the claim is:

    if a message holds the given spine with some node as its focus, and the expression is true with
    that node as context node, then the message holds one of the spines given, with the same node
    as its focus.

If nothing was noted as lost (`losses`), the converse holds too, and the patterns say all of it.
Why each construct keeps the claim:

- `and`: the operands one after the other, each on what the one before gave. `or`, and a union: the
  spines of all operands. `not` goes inwards (De Morgan) to comparisons that have an opposite: those
  of numbers that are never NaN, and those of one string. Any other `not` says nothing.
- A node-set is true if a walk over its steps has an end (`language.walking`).
- A comparison of a node-set with a constant is true if a node compares so (XPath 1.0, 3.4): the end
  of a walk gets the comparison. With a boolean, it asks whether there is a node. With anything that
  is not constant, there must at least be a node; two node-sets need a node each.
- A function that takes a string reads the first node of a node-set. If there is at most one
  (`.`, `..`, one attribute), that is the node; if not, "some node passes" follows from "the first
  node passes", whenever no node at all would not pass. What is not empty needs a node.
- The string functions pass on what they must be given: a result of `normalize-space` that has a
  word comes from a string that contains it, one of `substring` likewise, and so on.
- `count(p) > n` needs a node, and if `p` is one step from the node to its children, a node in
  position n+1. A number that is compared, other than by `!=`, is not NaN: so no operand of the
  arithmetic is, and no node-set in it is empty.
- A name compared with a constant is a node test.
- Positions: see `language.walking`. `last()`, `lang()`, `id()` say nothing, or little.
- A query has as many alternatives as it writes disjuncts, and some more (`alternatives_max`). Where
  a conjunction would have more, the operand with more of them stands for both. Other alternatives
  that are too many become the one pattern that all of them have in common
  (`language.generalising`).

Cost: in proportion to the syntax nodes, times the alternatives at each place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from pathcast_papers.language.constants import constant_of
from pathcast_papers.language.normal import Comparison
from pathcast_papers.language.number_conditions import (
    OPERATORS,
    NumberConditions,
    is_focus,
    what_it_is,
)
from pathcast_papers.language.spine import NodeKind, Spine
from pathcast_papers.language.static import Kind, kind_of
from pathcast_papers.language.string_conditions import (
    SOMETHING,
    StringTest,
    Wanted,
    self_path,
)
from pathcast_papers.language.syntax import (
    BinaryExpr,
    BinaryOperator,
    Expr,
    FunctionCall,
    Number,
)
from pathcast_papers.language.values import (
    COMPARISONS,
    Value,
    boolean_of,
    compare,
    number_of,
    string_of,
)

_FLIPPED: Final = MappingProxyType(
    {
        BinaryOperator.EQ: BinaryOperator.EQ,
        BinaryOperator.NE: BinaryOperator.NE,
        BinaryOperator.LT: BinaryOperator.GT,
        BinaryOperator.LE: BinaryOperator.GE,
        BinaryOperator.GT: BinaryOperator.LT,
        BinaryOperator.GE: BinaryOperator.LE,
    }
)

_OPPOSITES: Final = MappingProxyType(
    {
        BinaryOperator.EQ: BinaryOperator.NE,
        BinaryOperator.NE: BinaryOperator.EQ,
        BinaryOperator.LT: BinaryOperator.GE,
        BinaryOperator.GE: BinaryOperator.LT,
        BinaryOperator.GT: BinaryOperator.LE,
        BinaryOperator.LE: BinaryOperator.GT,
    }
)

_EQUALITIES: Final = frozenset({BinaryOperator.EQ, BinaryOperator.NE})

_NEVER_NAN: Final = frozenset({"position", "last", "count", "string-length"})
"""Functions whose result is a whole number."""


class Weakener(NumberConditions):
    """Conditions, comparisons and numbers; see the module."""

    def true(self, expr: Expr, spine: Spine, *, counts: bool) -> list[Spine]:
        """The spines of which one is there if an expression is true for the focus.

        Args:
            expr: Any expression; one that is no boolean counts by `boolean()`.
            spine: What is known to be there.
            counts: Whether `position()` can be said of the focus.
        """
        value = constant_of(expr)
        if value is not None:
            return [spine] if boolean_of(value) else []
        match expr:
            case BinaryExpr(operators=(BinaryOperator.AND, *_)):
                return self.conjunction(expr, spine, counts=counts)
            case BinaryExpr(operators=(BinaryOperator.OR, *_)):
                found = [
                    each
                    for operand in expr.operands
                    for each in self.true(operand, spine, counts=counts)
                ]
                return self.joined(found, spine, expr.offset)
            case BinaryExpr(operators=operators) if operators[-1] in COMPARISONS:
                left, right = _sides(expr)
                return self.comparison(operators[-1], left, right, spine, counts=counts)
            case FunctionCall():
                return self.call(expr, spine, counts=counts)
        if kind_of(expr) is Kind.NODE_SET:
            return self.exists(expr, spine)
        return self.number_is_there(expr, spine)

    def conjunction(self, expr: BinaryExpr, spine: Spine, *, counts: bool) -> list[Spine]:
        """All operands, each on what those before gave."""
        return self.all_of(expr.operands, spine, partial(self.true, counts=counts))

    def all_of(
        self,
        operands: Iterable[Expr],
        spine: Spine,
        read: Callable[[Expr, Spine], list[Spine]],
    ) -> list[Spine]:
        """Operands that must all be as asked; `read` gives the spines of one of them."""
        spines = [spine]
        for operand in operands:
            found = list(dict.fromkeys(each for before in spines for each in read(operand, before)))
            if len(found) > self.alternatives_max:
                # Either side is necessary by itself; the one with more alternatives says more.
                self.lose(f"has more than {self.alternatives_max} alternatives", operand.offset)
                found = max(spines, read(operand, spine), key=len)
            spines = self.joined(found, spine, operand.offset)
        return spines

    def call(self, expr: FunctionCall, spine: Spine, *, counts: bool) -> list[Spine]:
        """A call as a condition."""
        match expr.name:
            case "not":
                return self.false(expr.arguments[0], spine, counts=counts)
            case "boolean":
                return self.true(expr.arguments[0], spine, counts=counts)
            case "starts-with" | "contains":
                return self.part(expr, spine)
            case "position" | "last":
                return [spine]
            case "lang":
                self.lose("uses lang(), which only the evaluator knows", expr.offset)
                return [spine]
        match kind_of(expr):
            case Kind.NODE_SET:
                return self.exists(expr, spine)
            case Kind.STRING:
                return self.string(expr, SOMETHING, spine)
            case Kind.NUMBER:
                # True is a number that is neither 0 nor NaN.
                zero = Number(0.0, expr.offset)
                found = self.comparison(BinaryOperator.NE, expr, zero, spine, counts=counts)
                return [each for one in found for each in self.number_is_there(expr, one)]
        raise AssertionError(expr)

    def part(self, expr: FunctionCall, spine: Spine) -> list[Spine]:
        """`starts-with` and `contains`."""
        whole, part = expr.arguments
        value = constant_of(part)
        if value is None:
            self.lose(f"{expr.name}() of something that is computed", expr.offset)
            return [spine]
        text = string_of(value)
        if not text:
            # Every string starts with the empty one and contains it.
            return [spine]
        test = StringTest.BEGINS if expr.name == "starts-with" else StringTest.HAS
        return self.string(whole, Wanted(test, text), spine)

    def false(self, expr: Expr, spine: Spine, *, counts: bool) -> list[Spine]:
        """The spines of which one is there if an expression is false for the focus."""
        value = constant_of(expr)
        if value is not None:
            return [] if boolean_of(value) else [spine]
        match expr:
            case BinaryExpr(operators=(BinaryOperator.AND, *_)):
                found = [
                    each
                    for operand in expr.operands
                    for each in self.false(operand, spine, counts=counts)
                ]
                return self.joined(found, spine, expr.offset)
            case BinaryExpr(operators=(BinaryOperator.OR, *_)):
                return self.all_of(expr.operands, spine, partial(self.false, counts=counts))
            case BinaryExpr(operators=operators) if operators[-1] in COMPARISONS:
                left, right = _sides(expr)
                if self.has_opposite(operators[-1], left, right, spine):
                    opposite = _OPPOSITES[operators[-1]]
                    return self.comparison(opposite, left, right, spine, counts=counts)
            case FunctionCall(name="not"):
                return self.true(expr.arguments[0], spine, counts=counts)
            case FunctionCall(name="boolean"):
                return self.false(expr.arguments[0], spine, counts=counts)
        self.lose("asks by not() for what must be absent", expr.offset)
        return [spine]

    def has_opposite(self, operator: BinaryOperator, left: Expr, right: Expr, spine: Spine) -> bool:
        """Whether "does not compare so" is a comparison, too."""
        if operator in _EQUALITIES:
            return all(
                kind_of(each) is not Kind.NODE_SET or is_focus(each) for each in (left, right)
            )
        return all(_is_never_nan(each) for each in (left, right))

    # Comparisons.

    def comparison(
        self,
        operator: BinaryOperator,
        left: Expr,
        right: Expr,
        spine: Spine,
        *,
        counts: bool,
    ) -> list[Spine]:
        """A comparison, by the types of its sides (3.4)."""
        constant = constant_of(right)
        if constant is None:
            flipped = constant_of(left)
            if flipped is None:
                return self.two_sides(operator, left, right, spine)
            left, operator, constant = right, _FLIPPED[operator], flipped
        kind = kind_of(left)
        if kind is Kind.BOOLEAN or isinstance(constant, bool):
            return self.truth_compared(operator, left, constant, spine, counts=counts)
        match kind:
            case Kind.NODE_SET:
                return self.nodes_compared(operator, left, constant, spine)
            case Kind.NUMBER:
                return self.number_compared(
                    operator, left, number_of(constant), spine, counts=counts
                )
        if operator in _EQUALITIES and isinstance(constant, str):
            return self.string_compared(operator, left, constant, spine)
        self.lose("reads a string as a number", left.offset)
        if operator is BinaryOperator.NE:
            return [spine]
        return self.string(left, SOMETHING, spine)

    def two_sides(
        self, operator: BinaryOperator, left: Expr, right: Expr, spine: Spine
    ) -> list[Spine]:
        """A comparison of which neither side is constant."""
        self.lose(_what_is_compared(left, right), left.offset)
        kinds = (kind_of(left), kind_of(right))
        if Kind.BOOLEAN in kinds:
            return [spine]
        is_numeric = operator not in _EQUALITIES or Kind.NUMBER in kinds
        spines = [spine]
        for side, kind in zip((left, right), kinds, strict=True):
            if kind is Kind.NODE_SET:
                spines = [each for one in spines for each in self.exists(side, one)]
            elif is_numeric and operator is not BinaryOperator.NE:
                spines = [each for one in spines for each in self.number_is_there(side, one)]
        return self.joined(spines, spine, left.offset)

    def truth_compared(
        self,
        operator: BinaryOperator,
        expr: Expr,
        constant: Value,
        spine: Spine,
        *,
        counts: bool,
    ) -> list[Spine]:
        """A comparison that asks whether an expression is true."""
        if kind_of(expr) is Kind.BOOLEAN or operator in _EQUALITIES:
            holds = [compare(operator, truth, constant) for truth in (False, True)]
        elif kind_of(expr) is Kind.NODE_SET:
            # A node-set beside a boolean is one.
            holds = [compare(operator, truth, constant) for truth in (False, True)]
        else:
            return self.comparison(
                operator, expr, Number(number_of(constant), expr.offset), spine, counts=counts
            )
        if all(holds):
            return [spine]
        if holds[1]:
            return self.true(expr, spine, counts=counts)
        return self.false(expr, spine, counts=counts) if holds[0] else []

    def string_compared(
        self, operator: BinaryOperator, expr: Expr, constant: str, spine: Spine
    ) -> list[Spine]:
        """A string is another, or is not."""
        is_equal = operator is BinaryOperator.EQ
        if is_equal and constant:
            return self.string(expr, Wanted(StringTest.IS, constant), spine)
        if not is_equal and not constant:
            return self.string(expr, SOMETHING, spine)
        path = _string_argument(expr)
        if path is not None and is_focus(path) and spine[-1].kind is NodeKind.ELEMENT:
            return self.exists(path, spine, Comparison(OPERATORS[operator], constant))
        self.lose("asks for a string that may be empty", expr.offset)
        return [spine]


def _sides(expr: BinaryExpr) -> tuple[Expr, Expr]:
    """The two sides of the last operator of a run."""
    if len(expr.operators) == 1:
        return expr.operands[0], expr.operands[1]
    before = replace(expr, operators=expr.operators[:-1], operands=expr.operands[:-1])
    return before, expr.operands[-1]


def _is_never_nan(expr: Expr) -> bool:
    value = constant_of(expr)
    if value is not None:
        return not math.isnan(number_of(value))
    return isinstance(expr, FunctionCall) and expr.name in _NEVER_NAN


def _string_argument(expr: Expr) -> Expr | None:
    """The node-set that `string()` is called of."""
    if isinstance(expr, FunctionCall) and expr.name == "string":
        argument = expr.arguments[0] if expr.arguments else self_path(expr.offset)
        return argument if kind_of(argument) is Kind.NODE_SET else None
    return None


def _what_is_compared(left: Expr, right: Expr) -> str:
    """What is known of neither side of a comparison, as a reason."""
    for side in (right, left):
        if kind_of(side) is not Kind.NODE_SET:
            return what_it_is(side)
    if kind_of(left) is kind_of(right) is Kind.NODE_SET:
        return "compares two paths"
    return "compares two things that both depend on the message"

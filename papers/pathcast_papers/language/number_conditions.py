"""What must be there if a number is as asked.

A part of `pathcast_papers.language.weakening`, which argues for every rule.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeGuard

from pathcast_papers.language import conditions, normal
from pathcast_papers.language.constants import constant_of
from pathcast_papers.language.normal import Comparison, Operator
from pathcast_papers.language.spine import NodeKind, Spine
from pathcast_papers.language.static import Kind, kind_of
from pathcast_papers.language.string_conditions import (
    SOMETHING,
    StringConditions,
    is_single,
    self_path,
)
from pathcast_papers.language.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FunctionCall,
    LocationPath,
    NameTest,
    Number,
    Predicate,
    UnaryExpr,
)
from pathcast_papers.language.values import Value, compare, number_of

OPERATORS: Final = MappingProxyType(
    {
        BinaryOperator.EQ: Operator.EQ,
        BinaryOperator.NE: Operator.NE,
        BinaryOperator.LT: Operator.LT,
        BinaryOperator.LE: Operator.LE,
        BinaryOperator.GT: Operator.GT,
        BinaryOperator.GE: Operator.GE,
    }
)
"""Operator as written -> operator of the normal form."""


class NumberConditions(StringConditions):
    """Numbers, and node-sets compared with constants."""

    def nodes_compared(
        self, operator: BinaryOperator, expr: Expr, constant: Value, spine: Spine
    ) -> list[Spine]:
        """Some node of a node-set compares so with a number or string."""
        if isinstance(constant, str):
            goal = conditions.comparison(OPERATORS[operator], constant)
            return self.exists(expr, spine, goal)
        number = number_of(constant)
        if math.isfinite(number):
            return self.exists(expr, spine, Comparison(OPERATORS[operator], number + 0.0))
        if math.isnan(number):
            return self.exists(expr, spine) if operator is BinaryOperator.NE else []
        self.lose("compares with an infinite number", expr.offset)
        return self.exists(expr, spine)

    def number_compared(
        self, operator: BinaryOperator, expr: Expr, number: float, spine: Spine, *, counts: bool
    ) -> list[Spine]:
        """A number compares so with a constant."""
        if math.isnan(number):
            return [spine] if operator is BinaryOperator.NE else []
        if isinstance(expr, FunctionCall):
            match expr.name:
                case "position":
                    return self.position(operator, number, spine, expr.offset, counts=counts)
                case "count":
                    return self.count(operator, expr, number, spine)
                case "number":
                    return self.converted(operator, expr, number, spine)
                case "string-length" if not compare(operator, 0.0, number):
                    if not _is_any_from_one(operator, number):
                        self.lose(what_it_is(expr), expr.offset)
                    argument = expr.arguments[0] if expr.arguments else self_path(expr.offset)
                    return self.string(argument, SOMETHING, spine)
                case "sum" if not compare(operator, 0.0, number):
                    self.lose(what_it_is(expr), expr.offset)
                    return self.exists(expr.arguments[0], spine)
        self.lose(what_it_is(expr), expr.offset)
        if operator is BinaryOperator.NE:
            return [spine]
        return self.number_is_there(expr, spine)

    def position(
        self, operator: BinaryOperator, number: float, spine: Spine, offset: int, *, counts: bool
    ) -> list[Spine]:
        """`position()` compares so with a number."""
        node = spine[-1]
        if not counts or node.kind is not NodeKind.ELEMENT or not math.isfinite(number):
            self.lose("counts positions among what only the evaluator knows", offset)
            return [spine]
        last = node.stages[-1]
        position = normal.Position(OPERATORS[operator], number + 0.0)
        last = replace(last, positions=(*last.positions, position))
        return [(*spine[:-1], replace(node, stages=(*node.stages[:-1], last)))]

    def count(
        self, operator: BinaryOperator, expr: FunctionCall, number: float, spine: Spine
    ) -> list[Spine]:
        """`count()` compares so with a number."""
        nodes = expr.arguments[0]
        if compare(operator, 0.0, number):
            if operator in (BinaryOperator.GE, BinaryOperator.GT) or not (
                number == number and math.isfinite(number)
            ):
                # It holds for no node at all, and for more then, too.
                return [spine]
            self.lose("asks by count() for how many there may be at most", expr.offset)
            return [spine]
        fewest = 1.0
        if operator in (BinaryOperator.GT, BinaryOperator.GE, BinaryOperator.EQ):
            fewest = _fewest(operator, number)
        if math.isinf(fewest):
            return []
        if operator not in (BinaryOperator.GT, BinaryOperator.GE, BinaryOperator.NE):
            self.lose("asks by count() for an exact number", expr.offset)
        if fewest <= 1.0:
            return self.exists(nodes, spine)
        if not _is_children(nodes):
            self.lose("asks by count() for more than one", expr.offset)
            return self.exists(nodes, spine)
        step = nodes.steps[0]
        nth = Predicate(Number(fewest, step.offset), step.offset)
        step = replace(step, predicates=(*step.predicates, nth))
        return self.exists(replace(nodes, steps=(step,)), spine)

    def converted(
        self, operator: BinaryOperator, expr: FunctionCall, number: float, spine: Spine
    ) -> list[Spine]:
        """`number(x)` compares so with a number."""
        argument = expr.arguments[0] if expr.arguments else self_path(expr.offset)
        if kind_of(argument) is Kind.NUMBER:
            return self.number_compared(operator, argument, number, spine, counts=False)
        if kind_of(argument) is not Kind.NODE_SET:
            self.lose("uses number(), which only the evaluator knows", expr.offset)
            if operator is BinaryOperator.NE:
                return [spine]
            return self.number_is_there(argument, spine)
        if operator is BinaryOperator.NE and not is_focus(argument):
            # The number of no node is NaN, which is unequal, too.
            self.lose("asks for a number that need not be there", expr.offset)
            return [spine]
        if not is_single(argument):
            self.lose("reads the first node of several as a number", expr.offset)
        return self.nodes_compared(operator, argument, number, spine)

    def number_is_there(self, expr: Expr, spine: Spine) -> list[Spine]:
        """What must be there if an expression, as a number, is not NaN."""
        if constant_of(expr) is not None:
            return [spine]
        kind = kind_of(expr)
        if kind is Kind.NODE_SET:
            return self.exists(expr, spine)
        if kind is Kind.STRING:
            return self.string(expr, SOMETHING, spine)
        operands: tuple[Expr, ...] = ()
        match expr:
            case UnaryExpr(operand=operand):
                self.lose(what_it_is(expr), expr.offset)
                operands = (operand,)
            case BinaryExpr() if kind is Kind.NUMBER:
                self.lose(what_it_is(expr), expr.offset)
                operands = expr.operands
            case FunctionCall(name="number" | "floor" | "ceiling" | "round"):
                self.lose(what_it_is(expr), expr.offset)
                operands = expr.arguments or (self_path(expr.offset),)
            case FunctionCall(name="sum"):
                self.lose(what_it_is(expr), expr.offset)
        spines = [spine]
        for operand in operands:
            spines = [each for one in spines for each in self.number_is_there(operand, one)]
        return self.joined(spines, spine, expr.offset)


def is_focus(expr: Expr) -> bool:
    """Whether a path is the context node and nothing else."""
    return (
        isinstance(expr, LocationPath)
        and not expr.is_absolute
        and all(
            step.axis is Axis.SELF
            and not isinstance(step.test, NameTest)
            and not step.predicates
            and step.test.type.value == "node"
            for step in expr.steps
        )
    )


def _is_children(expr: Expr) -> TypeGuard[LocationPath]:
    """Whether a path is one step to children of the context node, by name."""
    return (
        isinstance(expr, LocationPath)
        and not expr.is_absolute
        and len(expr.steps) == 1
        and expr.steps[0].axis is Axis.CHILD
        and isinstance(expr.steps[0].test, NameTest)
    )


def _fewest(operator: BinaryOperator, number: float) -> float:
    """The least whole number from 1 on that compares so; infinite if there is none."""
    if operator is BinaryOperator.GT:
        least = math.floor(number) + 1.0 if math.isfinite(number) else math.inf
    elif operator is BinaryOperator.GE:
        least = float(math.ceil(number)) if math.isfinite(number) else math.inf
    else:
        least = number if number.is_integer() and number >= 1 else math.inf
    return max(least, 1.0)


def _is_any_from_one(operator: BinaryOperator, number: float) -> bool:
    """Whether all whole numbers from 1 on compare so, given that 0 does not."""
    match operator:
        case BinaryOperator.NE:
            return True
        case BinaryOperator.GT:
            return number < 1
        case BinaryOperator.GE:
            return number <= 1
    return False


def what_it_is(expr: Expr) -> str:
    """What a number is, as a reason."""
    match expr:
        case FunctionCall(name=name):
            return f"uses {name}(), which only the evaluator knows"
        case UnaryExpr():
            return "calculates (-)"
        case BinaryExpr(operators=(operator, *_)):
            return f"calculates ({operator.value})"
    return "uses a number that only the evaluator knows"

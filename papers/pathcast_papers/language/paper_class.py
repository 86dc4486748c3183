"""The class that the paper's automaton takes, recognised in an XPath: location paths downwards.

A query of the class is a path of steps on child and descendant with name tests; predicates are
conjunctions of positions, of comparisons of an attribute, of text or of the value with a constant,
and of nested paths. Positions count among the children of one parent, so a step on the axis
`descendant`, written out, has none. What is not of the class is evaluated, not rewritten.

Example:
    >>> from pathcast_papers.language.canonical import canonical_text
    >>> from pathcast_papers.language.expression import read_expression
    >>> path = path_of(read_expression("//a[@b > 1 and c/text()][2]/@d"))
    >>> path and canonical_text(path)
    '//a[@b>1][c[text()]][position()=2][@d]'
    >>> path_of(read_expression("//a[@b or c]")) is None
    True

Source: Diao et al., TODS 2003, section 2.2. Differs: XPath's positions and comparisons; string
functions on one attribute or the value, as `filtering.predicate` evaluates them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pathcast_papers.language.canonical import condition_text, number_text, position_text
from pathcast_papers.language.functions import CAST, FOLDS, LIST, MOMENT_CASTS
from pathcast_papers.language.normal import (
    FLIPPED,
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Constant,
    Double,
    Name,
    NameTest,
    NestedCondition,
    NormalQuery,
    OneOf,
    Operator,
    Position,
    Stage,
    Step,
    TextCondition,
    TypedText,
    ValueCondition,
)
from pathcast_papers.language.syntax import Axis as WrittenAxis
from pathcast_papers.language.syntax import (
    BinaryExpr,
    BinaryOperator,
    Expr,
    FunctionCall,
    Literal,
    LocationPath,
    NodeType,
    NodeTypeTest,
    Number,
    Predicate,
    UnaryExpr,
)
from pathcast_papers.language.syntax import NameTest as WrittenName
from pathcast_papers.language.syntax import Step as WrittenStep

_OPERATORS: Final = {BinaryOperator(each.value): each for each in FLIPPED}
_CALLS: Final = {"starts-with": Operator.STARTS_WITH, "contains": Operator.CONTAINS}
_TESTS: Final = {**_CALLS, "matches": Operator.MATCHES}
"""Functions that canonical text of the product asks of folded texts, and of one of several."""


class _NotOfTheClassError(Exception):
    """The query has something that the class lacks."""


def path_of(expr: Expr) -> NormalQuery | None:
    """The path that a query is; None if it is not of the class.

    Args:
        expr: The query, names resolved.
    """
    if not isinstance(expr, LocationPath):
        return None
    try:
        steps = _path(expr.steps, None)
    except _NotOfTheClassError:
        return None
    if not steps:
        return None
    if steps[0].axis is Axis.DESCENDANT_OR_SELF:
        # The document node has neither attributes nor text.
        steps[0] = replace(steps[0], axis=Axis.DESCENDANT)
    return NormalQuery(tuple(steps))


def _path(written: Sequence[WrittenStep], compare: Comparison | None) -> list[Step]:
    """The steps of a path, of whose end a comparison may be asked.

    What the path ends in besides elements, and the comparison, are conditions of the last step.
    """
    steps: list[Step] = []
    is_deep = False
    for at, step in enumerate(written):
        is_last = at == len(written) - 1
        if _is_bare_node(step, WrittenAxis.DESCENDANT_OR_SELF):
            is_deep = True
        elif _is_bare_node(step, WrittenAxis.SELF):
            continue
        elif _is_element(step):
            steps.append(_element(step, is_deep=is_deep))
            is_deep = False
        elif is_last and (end := _end(step, compare)) is not None:
            return _ended(steps, [end], is_deep=is_deep)
        elif is_last and is_deep and compare is None and _is_node(step, WrittenAxis.SELF):
            return _ended(steps, _only_of_elements(step.predicates), is_deep=True)
        else:
            raise _NotOfTheClassError
    if compare is None:
        # //. at the end asks for nothing more.
        return steps
    if is_deep:
        raise _NotOfTheClassError
    return _ended(steps, [ValueCondition(compare)], is_deep=False)


def _ended(steps: list[Step], conditions: list[Condition], *, is_deep: bool) -> list[Step]:
    if is_deep:
        last = Step(Axis.DESCENDANT_OR_SELF, AnyName(), (_stage([], conditions),))
        return [*steps, last]
    if not steps:
        raise _NotOfTheClassError
    for condition in conditions:
        steps[-1] = _with_condition(steps[-1], condition)
    return steps


def _end(step: WrittenStep, compare: Comparison | None) -> Condition | None:
    """What a step asks that leads to attributes or text."""
    if step.predicates:
        return None
    if step.axis is WrittenAxis.ATTRIBUTE and isinstance(step.test, WrittenName):
        return AttributeCondition(_name_test(step.test), compare)
    is_text = isinstance(step.test, NodeTypeTest) and step.test.type is NodeType.TEXT
    return TextCondition(compare) if is_text and step.axis is WrittenAxis.CHILD else None


def _only_of_elements(predicates: Sequence[Predicate]) -> list[Condition]:
    """The predicates of `//.[...]`, which only an element can satisfy: it is `//@a`, written so."""
    if not predicates:
        raise _NotOfTheClassError
    found: list[Condition] = []
    for predicate in predicates:
        positions, conditions = _predicate(predicate.expr)
        if positions or not all(
            isinstance(each, AttributeCondition | TextCondition) for each in conditions
        ):
            raise _NotOfTheClassError
        found += conditions
    return found


def _is_element(step: WrittenStep) -> bool:
    is_down = step.axis in (WrittenAxis.CHILD, WrittenAxis.DESCENDANT)
    return is_down and isinstance(step.test, WrittenName)


def _element(step: WrittenStep, *, is_deep: bool) -> Step:
    assert isinstance(step.test, WrittenName)
    is_child = step.axis is WrittenAxis.CHILD
    axis = Axis.CHILD if is_child and not is_deep else Axis.DESCENDANT
    stages: list[Stage] = []
    for predicate in step.predicates:
        positions, conditions = _predicate(predicate.expr)
        if positions and not is_child:
            raise _NotOfTheClassError
        if positions or not stages:
            stages.append(_stage(positions, conditions))
        else:
            stages[-1] = _stage(stages[-1].positions, [*stages[-1].conditions, *conditions])
    return Step(axis, _name_test(step.test), tuple(stages))


def _is_node(step: WrittenStep, axis: WrittenAxis) -> bool:
    is_node = isinstance(step.test, NodeTypeTest) and step.test.type is NodeType.NODE
    return is_node and step.axis is axis


def _is_bare_node(step: WrittenStep, axis: WrittenAxis) -> bool:
    return _is_node(step, axis) and not step.predicates


def _predicate(expr: Expr) -> tuple[list[Position], list[Condition]]:
    """What a predicate asks: positions, and conditions."""
    if isinstance(expr, Number | UnaryExpr):
        return [Position(Operator.EQ, _number(expr))], []
    positions: list[Position] = []
    conditions: list[Condition] = []
    waiting: list[Expr] = [expr]
    while waiting:
        each = waiting.pop()
        if isinstance(each, BinaryExpr) and each.operators[0] is BinaryOperator.AND:
            waiting += each.operands
            continue
        found = _conjunct(each)
        if isinstance(found, Position):
            positions.append(found)
        else:
            conditions.append(found)
    return positions, conditions


def _conjunct(expr: Expr) -> Position | Condition:
    beyond = beyond_xpath(expr)
    if beyond is not None:
        return _nested(*beyond)
    match expr:
        case LocationPath():
            return _nested(expr, None)
        case FunctionCall(name=name, arguments=(LocationPath() as path, text)) if name in _CALLS:
            return _call(path, Comparison(_CALLS[name], _text(text)))
        case BinaryExpr(operators=(written,), operands=(left, right)):
            operator = _OPERATORS.get(written)
            if operator is None:
                raise _NotOfTheClassError
            if not isinstance(left, LocationPath) and not _is_call(left, "position"):
                left, right, operator = right, left, FLIPPED[operator]
            if _is_call(left, "position"):
                return Position(operator, _number(right))
            if isinstance(left, LocationPath):
                return _nested(left, Comparison(operator, _constant(right)))
    raise _NotOfTheClassError


def beyond_xpath(expr: Expr) -> tuple[LocationPath, Comparison] | None:
    """A condition that canonical text of the product has and XPath 1.0 has not.

    Returns:
        A path, and how some node that it gives compares; None of any other expression.
    """
    match expr:
        case FunctionCall(name=name, arguments=(asked, given)) if name in _TESTS:
            operator = _TESTS[name]
        case BinaryExpr(operators=(written,), operands=(asked, given)) if written in _OPERATORS:
            operator = _OPERATORS[written]
        case _:
            return None
    match asked:
        case FunctionCall(name=function, arguments=(LocationPath() as path,)):
            if function == CAST:
                return path, Comparison(operator, _doubles(given))
            if function in MOMENT_CASTS:
                return path, Comparison(operator, TypedText(function, _text(given)))
            if function in FOLDS:
                return path, Comparison(operator, _texts(given), function)
        case LocationPath() as path if operator is Operator.MATCHES or _is_call(given, LIST):
            return path, Comparison(operator, _texts(given))
    return None


def _nested(path: LocationPath, compare: Comparison | None) -> Condition:
    """The condition that a path from an element gives something, with a value as asked."""
    if path.is_absolute:
        raise _NotOfTheClassError
    if len(path.steps) == 1:
        (only,) = path.steps
        end = _end(only, compare)
        if end is not None:
            return end
        if compare is not None and _is_bare_node(only, WrittenAxis.SELF):
            return ValueCondition(compare)
    steps = _path(path.steps, compare)
    if not steps:
        raise _NotOfTheClassError
    return NestedCondition(tuple(steps))


def _call(path: LocationPath, compare: Comparison) -> Condition:
    """A string function on the value, or on one attribute, of which an element has one at most."""
    condition = _nested(path, compare)
    is_one = isinstance(condition, ValueCondition) or (
        isinstance(condition, AttributeCondition) and isinstance(condition.test, Name)
    )
    if not is_one or compare.constant == "":
        raise _NotOfTheClassError
    return condition


def _is_call(expr: Expr, *names: str) -> bool:
    return isinstance(expr, FunctionCall) and expr.name in names


def _texts(expr: Expr) -> str | OneOf:
    """A string, or a list of strings or numbers."""
    return _one_of(expr) if _is_call(expr, LIST) else _text(expr)


def _doubles(expr: Expr) -> Double | OneOf:
    """A number that values are cast for, or a list of such."""
    if _is_call(expr, LIST):
        return OneOf(tuple(map(Double, _numbers(expr))))
    return Double(_number(expr))


def _one_of(expr: Expr) -> OneOf:
    """A list: strings in the order of their code points, each once, or numbers."""
    assert isinstance(expr, FunctionCall)
    if isinstance(expr.arguments[0], Number | UnaryExpr):
        return OneOf(tuple(_numbers(expr)))
    return OneOf(tuple(sorted(set(map(_text, expr.arguments)))))


def _numbers(expr: Expr) -> list[float]:
    """The numbers of a list, each once, in the order of their texts."""
    assert isinstance(expr, FunctionCall)
    return sorted(set(map(_number, expr.arguments)), key=number_text)


def _constant(expr: Expr) -> Constant:
    return _number(expr) if isinstance(expr, Number | UnaryExpr) else _text(expr)


def _number(expr: Expr) -> float:
    match expr:
        case Number(value=value) if math.isfinite(value):
            return value
        case UnaryExpr(minuses=minuses, operand=Number(value=value)) if math.isfinite(value):
            return (-value if minuses % 2 else value) + 0.0
    raise _NotOfTheClassError


def _text(expr: Expr) -> str:
    match expr:
        case Literal(value=value):
            return value
        case FunctionCall(name="concat", arguments=arguments):
            # A string with quotes of both kinds has no literal.
            return "".join(map(_text, arguments))
    raise _NotOfTheClassError


def _name_test(test: WrittenName) -> NameTest:
    if test.prefix == "*":
        return AnyNamespace(test.local)
    if test.local == "*":
        return AnyName() if test.uri is None else AnyIn(test.uri)
    return Name(test.uri or "", test.local)


def _stage(positions: Sequence[Position], conditions: Sequence[Condition]) -> Stage:
    """A stage, its parts sorted by their text and without duplicates."""
    return Stage(
        tuple(sorted(dict.fromkeys(positions), key=position_text)),
        tuple(sorted(dict.fromkeys(conditions), key=condition_text)),
    )


def _with_condition(step: Step, condition: Condition) -> Step:
    """A step that asks for one thing more, after all its predicates."""
    if not step.stages:
        return replace(step, stages=(Stage((), (condition,)),))
    *others, last = step.stages
    return replace(step, stages=(*others, _stage(last.positions, [*last.conditions, condition])))

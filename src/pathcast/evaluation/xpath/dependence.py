"""The parts of its context on which an expression's value depends.

Example:
    >>> from pathcast.query import read_query
    >>> expr = read_query("(count(/child::a) > position())", {})
    >>> dependence_of(expr)[id(expr)]
    <Dependence.POSITION: 2>

Source: Gottlob, Koch and Pichler, TODS 2005, section 5 ("relevant context").
"""

from __future__ import annotations

from enum import Flag

from pathcast.query.syntax import (
    BinaryExpr,
    Expr,
    FilterExpr,
    FunctionCall,
    LocationPath,
    PathExpr,
    Predicate,
    Step,
    UnaryExpr,
)


class Dependence(Flag):
    """Parts of a context."""

    NOTHING = 0
    NODE = 1
    POSITION = 2
    SIZE = 4


_OF_CONTEXT_NODE = frozenset(
    {
        "string",
        "number",
        "string-length",
        "normalize-space",
        "local-name",
        "namespace-uri",
        "name",
    }
)
"""Functions that are about the context node when they have no argument."""


def dependence_of(expr: Expr) -> dict[int, Dependence]:
    """The dependence of every sub-expression, by `id`; those of predicates are among them.

    Cost: linear in the expression.
    """
    found: dict[int, Dependence] = {}
    _visit(expr, found)
    return found


def _visit(expr: Expr, found: dict[int, Dependence]) -> Dependence:
    result = Dependence.NOTHING
    match expr:
        case LocationPath(is_absolute=is_absolute, steps=steps):
            _visit_steps(steps, found)
            result = Dependence.NOTHING if is_absolute else Dependence.NODE
        case PathExpr(start=start, steps=steps):
            _visit_steps(steps, found)
            result = _visit(start, found)
        case FilterExpr(primary=primary, predicates=predicates):
            _visit_predicates(predicates, found)
            result = _visit(primary, found)
        case FunctionCall(name=name, arguments=arguments):
            result = _own(name, has_arguments=bool(arguments))
            for argument in arguments:
                result |= _visit(argument, found)
        case UnaryExpr(operand=operand):
            result = _visit(operand, found)
        case BinaryExpr(operands=operands):
            for operand in operands:
                result |= _visit(operand, found)
    found[id(expr)] = result
    return result


def _own(name: str, *, has_arguments: bool) -> Dependence:
    if name == "position":
        return Dependence.POSITION
    if name == "last":
        return Dependence.SIZE
    is_about_node = name == "lang" or (name in _OF_CONTEXT_NODE and not has_arguments)
    return Dependence.NODE if is_about_node else Dependence.NOTHING


def _visit_steps(steps: tuple[Step, ...], found: dict[int, Dependence]) -> None:
    for step in steps:
        _visit_predicates(step.predicates, found)


def _visit_predicates(predicates: tuple[Predicate, ...], found: dict[int, Dependence]) -> None:
    for predicate in predicates:
        _visit(predicate.expr, found)

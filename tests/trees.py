"""Syntax trees of the product and of the papers' readers as tuples that can be compared.

The papers' trees have classes of their own for the two languages; `of_papers` gives a tree the
shape that the product's has.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from pathcast_papers.language import syntax as xpath
from pathcast_papers.language.xquery import syntax as xquery

RENAMED = {
    xquery.Variable: "VariableReference",
    xquery.Call: "FunctionCall",
    xquery.Filter: "FilterExpr",
    xquery.Range: "RangeExpr",
    xquery.Name: "ConstructedName",
    xquery.Attribute: "AttributeConstructor",
    xquery.Element: "ElementConstructor",
}
JOINED = {xquery.Or: "OR", xquery.And: "AND", xquery.Union: "UNION"}


def of_product(part: Any) -> Any:
    """A tree of `pathcast.query.syntax` as tuples, offsets included."""
    if isinstance(part, tuple):
        return tuple(map(of_product, part))
    if is_dataclass(part):
        return (type(part).__name__, *_values(part, of_product))
    return _leaf(part)


def of_papers(part: Any) -> Any:
    """A tree of either reader of the papers as tuples, offsets included."""
    match part:
        case tuple():
            return tuple(map(of_papers, part))
        case xpath.Predicate():
            return of_papers(part.expr)
        case xpath.NameTest():
            local = None if part.local == "*" else part.local
            return _node("NameTest", part.uri, local, part.prefix, part.offset)
        case xpath.NodeTypeTest():
            return _node("KindTest", part.type, part.target, part.offset)
        case xpath.Number():
            return _node("Number", part.value, xquery.LiteralKind.DOUBLE, part.offset)
        case xpath.BinaryExpr():
            return _node("BinaryExpr", part.operators, part.operands, part.offset)
        case xquery.NameTest() | xquery.KindTest():
            inner = _values(part, of_papers)
            more = (None, 0) if isinstance(part, xquery.NameTest) else (0,)
            return (type(part).__name__, *inner, *map(_leaf, more))
        case xquery.Or() | xquery.And() | xquery.Union():
            operators = ("BinaryOperator", JOINED[type(part)])
            joined = (operators,) * (len(part.operands) - 1)
            return ("BinaryExpr", joined, of_papers(part.operands), _leaf(part.offset))
        case xquery.Comparison() | xquery.Arithmetic():
            is_value = isinstance(part, xquery.Comparison) and part.is_value
            operator = ("BinaryOperator", "VALUE_" * is_value + part.operator.name)
            operands = of_papers((part.left, part.right))
            return ("BinaryExpr", (operator,), operands, _leaf(part.offset))
        case xquery.Negation():
            return _node("UnaryExpr", 1, part.operand, part.offset)
        case xquery.Literal(kind=xquery.LiteralKind.STRING):
            return _node("Literal", part.value, part.offset)
        case xquery.Literal():
            return _node("Number", part.value, part.kind, part.offset)
        case xquery.Path(start=xquery.Root() | xquery.Context() as start):
            return _node("LocationPath", isinstance(start, xquery.Root), part.steps, part.offset)
        case xquery.Path():
            return _node("PathExpr", part.start, part.steps, part.offset)
    if is_dataclass(part):
        name = RENAMED.get(type(part), type(part).__name__)
        return (name, *_values(part, of_papers))
    return _leaf(part)


def _node(name: str, *values: Any) -> Any:
    return (name, *map(of_papers, values))


def _values(part: Any, convert: Any) -> list[Any]:
    return [convert(getattr(part, field.name)) for field in fields(part)]


ENUMS = {
    "NodeType": "NodeKind",
    "LiteralKind": "NumberKind",
    "Comparator": "BinaryOperator",
    "ArithmeticOperator": "BinaryOperator",
}


def _leaf(part: Any) -> tuple[str, str]:
    if isinstance(part, Enum):
        name = type(part).__name__
        return ENUMS.get(name, name), part.name
    return type(part).__name__, repr(part)

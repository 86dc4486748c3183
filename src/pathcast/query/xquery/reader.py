"""XQuery text -> syntax tree with its names resolved, as the kernel reads it.

Example:
    >>> program = parse('<hot>{for $s in //story where $s/@prio < 3 return $s/title}</hot>')
    >>> program.body.name.local
    'hot'
    >>> parse("for $s in //story return $t")
    Traceback (most recent call last):
    ...
    pathcast.errors.QuerySyntaxError: XPST0008: variable $t is not declared
      for $s in //story return $t
                               ^
      the message is $msg

Nothing is read here: the kernel gives tuples, of which this makes the classes of
`pathcast.query.syntax`, or a refusal, of which `refusals` makes an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pathcast.boundary import native, native_errors
from pathcast.query import syntax
from pathcast.query.names import Namespaces, is_text
from pathcast.query.reader import check_length
from pathcast.query.syntax import (
    Axis,
    BinaryOperator,
    ConstructedName,
    KindTest,
    NameTest,
    NodeKind,
    Program,
)
from pathcast.query.xquery.refusals import ProgramRefusal, error_of

TEXT_BYTES_MAX: Final = 1056 * 1024
"""Bytes (UTF-8) of a FLWR subscription: 32 KiB, and 1 MiB for the values of its lists, which the
kernel counts apart."""

_Node: TypeAlias = tuple[Any, ...]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse(text: str, namespaces: Namespaces | None = None, deliver: str | None = None) -> Program:
    """The syntax tree of a FLWR subscription.

    Args:
        text: XQuery 1.0, of the subset that docs/subscriptions.md describes.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace. The
            prolog may add to them and replace them.
        deliver: "fragment", "message", "ids" or "nodes", for the rules that depend on it; None for
            the language alone.

    Returns:
        The tree, with names resolved and offsets in characters.

    Raises:
        QuerySyntaxError: With the code of the W3C: the text is not XQuery (XPST0003), names
            something that is not declared (XPST0008, XPST0017, XPST0081), builds an element that
            is not well-formed (XQST....), has a type error (XPTY....), never depends on the
            message, or is over a limit.
        UnsupportedQueryError: It is XQuery beyond the subset; `params["construct"]` names it.

    Cost: linear in the text.
    """
    check_length(text, text, TEXT_BYTES_MAX)
    bound = [
        (prefix, _encodable(uri)) for prefix, uri in (namespaces or {}).items() if is_text(prefix)
    ]
    with native_errors():
        tree, refusal = native.xquery_program(text, bound, deliver)
    if tree is None:
        assert refusal is not None
        raise error_of(text, ProgramRefusal(*refusal))
    return Program(_build(tree))


def _encodable(uri: str) -> str:
    """A URI with U+FFFE for its lone surrogates, by which the kernel knows that it had some."""
    return uri if is_text(uri) else _SURROGATE.sub("\ufffe", uri)


def _build(node: _Node) -> Any:
    """A node of the tree: the kernel gives its kind, its fields, and where it begins."""
    kind, *fields, offset = node
    if kind in _OPERATORS:
        operator, operands = _OPERATORS[kind], _all(fields[0])
        return syntax.BinaryExpr((operator,) * (len(operands) - 1), operands, offset)
    if (made := _MADE.get(kind)) is not None:
        return made(*fields, offset)
    found: type[Any] = getattr(syntax, _CLASSES.get(kind, kind))
    return found(*map(_field, fields), offset)


def _field(value: Any) -> Any:
    """A field: a node begins with its kind, several nodes with the first of them."""
    if not isinstance(value, tuple):
        return value
    return _build(value) if value and isinstance(value[0], str) else _all(value)


def _all(nodes: tuple[_Node, ...]) -> tuple[Any, ...]:
    return tuple(map(_build, nodes))


def _comparison(
    operator: str, is_value: bool, left: _Node, right: _Node, offset: int
) -> syntax.BinaryExpr:
    found = BinaryOperator(operator)
    written = BinaryOperator[f"VALUE_{found.name}"] if is_value else found
    return syntax.BinaryExpr((written,), _all((left, right)), offset)


def _arithmetic(operator: str, left: _Node, right: _Node, offset: int) -> syntax.BinaryExpr:
    return syntax.BinaryExpr((BinaryOperator(operator),), _all((left, right)), offset)


def _path(
    start: str | _Node, steps: tuple[_Node, ...], offset: int
) -> syntax.LocationPath | syntax.PathExpr:
    if isinstance(start, tuple):
        return syntax.PathExpr(_build(start), _all(steps), offset)
    return syntax.LocationPath(start == "root", _all(steps), offset)


def _step(axis: str, test: _Node, predicates: tuple[_Node, ...], offset: int) -> syntax.Step:
    kind, first, second = test
    found = NameTest(first, second) if kind == "NameTest" else KindTest(NodeKind(first), second)
    return syntax.Step(Axis(axis), found, _all(predicates), offset)


def _literal(value: str | float, kind: str, offset: int) -> syntax.Literal | syntax.Number:
    if isinstance(value, str):
        return syntax.Literal(value, offset)
    return syntax.Number(value, syntax.NumberKind(kind), offset)


def _name(name: _Node) -> ConstructedName | syntax.ComputedName:
    if isinstance(name[0], str):
        return ConstructedName(*name)
    expr, namespaces = name
    return syntax.ComputedName(_build(expr), namespaces)


def _element(
    name: _Node,
    attributes: tuple[_Node, ...],
    namespaces: tuple[tuple[str, str], ...],
    content: tuple[_Node, ...],
    offset: int,
) -> syntax.ElementConstructor:
    return syntax.ElementConstructor(
        _name(name), _all(attributes), namespaces, _all(content), offset
    )


def _attribute(name: _Node, parts: tuple[_Node, ...], offset: int) -> syntax.AttributeConstructor:
    return syntax.AttributeConstructor(_name(name), _all(parts), offset)


_OPERATORS: Final = MappingProxyType(
    {"Or": BinaryOperator.OR, "And": BinaryOperator.AND, "Union": BinaryOperator.UNION}
)
"""Kinds of nodes that are operators between operands."""

_CLASSES: Final = MappingProxyType(
    {
        "Call": "FunctionCall",
        "Filter": "FilterExpr",
        "Range": "RangeExpr",
        "Variable": "VariableReference",
    }
)
"""Kinds of nodes whose class has another name."""

_MADE: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "Comparison": _comparison,
        "Arithmetic": _arithmetic,
        "Negation": lambda operand, offset: syntax.UnaryExpr(1, _build(operand), offset),
        "Path": _path,
        "Step": _step,
        "Literal": _literal,
        "Element": _element,
        "Attribute": _attribute,
    }
)
"""Kinds of nodes of which not all fields are taken as they are."""

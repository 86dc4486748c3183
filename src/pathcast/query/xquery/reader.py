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

Nothing is read here: the kernel gives tuples, of which this makes the classes of `syntax`, or a
refusal, of which `refusals` makes an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pathcast.boundary import native, native_errors
from pathcast.query.names import Namespaces, is_text
from pathcast.query.reader import check_length
from pathcast.query.xquery import syntax
from pathcast.query.xquery.refusals import ProgramRefusal, error_of
from pathcast.query.xquery.syntax import (
    ArithmeticOperator,
    Axis,
    Comparator,
    KindTest,
    LiteralKind,
    Name,
    NameTest,
    NodeKind,
    Program,
)

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
    """A node of the tree; its last item is where it begins."""
    return _BUILDERS[node[0]](*node[1:])


def _all(nodes: tuple[_Node, ...]) -> tuple[Any, ...]:
    return tuple(map(_build, nodes))


def _sequence(items: tuple[_Node, ...], offset: int) -> syntax.Sequence:
    return syntax.Sequence(_all(items), offset)


def _flwor(
    clauses: tuple[_Node, ...],
    where: _Node | None,
    order: tuple[_Node, ...],
    body: _Node,
    offset: int,
) -> syntax.Flwor:
    condition = None if where is None else _build(where)
    return syntax.Flwor(_all(clauses), condition, _all(order), _build(body), offset)


def _for(variable: str, position: str | None, source: _Node, offset: int) -> syntax.For:
    return syntax.For(variable, position, _build(source), offset)


def _let(variable: str, value: _Node, offset: int) -> syntax.Let:
    return syntax.Let(variable, _build(value), offset)


def _order_key(key: _Node, is_descending: bool, is_greatest: bool, offset: int) -> syntax.OrderKey:
    return syntax.OrderKey(_build(key), is_descending, is_greatest, offset)


def _quantified(
    is_every: bool, bindings: tuple[_Node, ...], condition: _Node, offset: int
) -> syntax.Quantified:
    return syntax.Quantified(is_every, _all(bindings), _build(condition), offset)


def _if(condition: _Node, then: _Node, otherwise: _Node, offset: int) -> syntax.If:
    return syntax.If(_build(condition), _build(then), _build(otherwise), offset)


def _comparison(
    operator: str, is_value: bool, left: _Node, right: _Node, offset: int
) -> syntax.Comparison:
    return syntax.Comparison(Comparator(operator), is_value, _build(left), _build(right), offset)


def _arithmetic(operator: str, left: _Node, right: _Node, offset: int) -> syntax.Arithmetic:
    return syntax.Arithmetic(ArithmeticOperator(operator), _build(left), _build(right), offset)


def _instance_of(
    operand: _Node, item: _Node | str, occurrence: str, offset: int
) -> syntax.InstanceOf:
    wanted = item if isinstance(item, str) else _build(item)
    return syntax.InstanceOf(_build(operand), wanted, occurrence, offset)


def _path(start: str | _Node, steps: tuple[_Node, ...], offset: int) -> syntax.Path:
    if isinstance(start, tuple):
        return syntax.Path(_build(start), _all(steps), offset)
    begin = syntax.Root(offset) if start == "root" else syntax.Context(offset)
    return syntax.Path(begin, _all(steps), offset)


def _step(axis: str, test: _Node, predicates: tuple[_Node, ...], offset: int) -> syntax.Step:
    kind, first, second = test
    found = NameTest(first, second) if kind == "NameTest" else KindTest(NodeKind(first), second)
    return syntax.Step(Axis(axis), found, _all(predicates), offset)


def _filter(primary: _Node, predicates: tuple[_Node, ...], offset: int) -> syntax.Filter:
    return syntax.Filter(_build(primary), _all(predicates), offset)


def _literal(value: str | float, kind: str, offset: int) -> syntax.Literal:
    return syntax.Literal(value, LiteralKind(kind), offset)


def _call(function: str, arguments: tuple[_Node, ...], offset: int) -> syntax.Call:
    return syntax.Call(function, _all(arguments), offset)


def _element(
    name: _Node,
    attributes: tuple[_Node, ...],
    namespaces: tuple[tuple[str, str], ...],
    content: tuple[_Node, ...],
    offset: int,
) -> syntax.Element:
    return syntax.Element(Name(*name), _all(attributes), namespaces, _all(content), offset)


def _attribute(name: _Node, parts: tuple[_Node, ...], offset: int) -> syntax.Attribute:
    return syntax.Attribute(Name(*name), _all(parts), offset)


_BUILDERS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "Sequence": _sequence,
        "Flwor": _flwor,
        "For": _for,
        "Let": _let,
        "OrderKey": _order_key,
        "Quantified": _quantified,
        "If": _if,
        "Or": lambda operands, offset: syntax.Or(_all(operands), offset),
        "And": lambda operands, offset: syntax.And(_all(operands), offset),
        "Union": lambda operands, offset: syntax.Union(_all(operands), offset),
        "Comparison": _comparison,
        "Arithmetic": _arithmetic,
        "Negation": lambda operand, offset: syntax.Negation(_build(operand), offset),
        "Cast": lambda to, operand, offset: syntax.Cast(to, _build(operand), offset),
        "Castable": lambda to, is_optional, operand, offset: syntax.Castable(
            to, is_optional, _build(operand), offset
        ),
        "InstanceOf": _instance_of,
        "Range": lambda first, last, offset: syntax.Range(_build(first), _build(last), offset),
        "SimpleMap": lambda source, body, offset: syntax.SimpleMap(
            _build(source), _build(body), offset
        ),
        "Intersection": lambda is_except, left, right, offset: syntax.Intersection(
            is_except, _build(left), _build(right), offset
        ),
        "Path": _path,
        "Step": _step,
        "Filter": _filter,
        "Variable": syntax.Variable,
        "Literal": _literal,
        "Call": _call,
        "ContextItem": syntax.ContextItem,
        "Element": _element,
        "Attribute": _attribute,
        "Text": syntax.Text,
        "Enclosed": lambda expr, offset: syntax.Enclosed(_build(expr), offset),
    }
)

"""Syntax tree -> text as a person would write it: abbreviated, without needless blanks.

For messages that quote a part of a query. Prefixes are kept as they were written; nothing is
looked up and nothing is brought to canonical form (`pathcast.query.canonical` does that).

Example:
    >>> from pathcast.query import parse
    >>> notation(parse("/descendant-or-self::node()/child::a[ attribute::b='x' and (1+2)*3 ]"))
    "//a[@b='x' and (1 + 2) * 3]"

The text parses to the same tree, offsets aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast.query.canonical import literal_text, number_text
from pathcast.query.names import XML_NAMESPACE, Namespaces
from pathcast.query.syntax import (
    EQUALITIES,
    ORDERS,
    PRECEDENCE,
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    KindTest,
    Literal,
    LocationPath,
    NodeKind,
    NodeTest,
    Number,
    PathExpr,
    Step,
    UnaryExpr,
    VariableReference,
)

_TIGHT: Final = ORDERS | EQUALITIES | {BinaryOperator.UNION}
"""Operators without blanks around them, where nothing reads them otherwise."""

_UNION_LEVEL: Final = -1


def notation(expr: Expr, namespaces: Namespaces | None = None) -> str:
    """An expression as text.

    Args:
        expr: A syntax tree, as it was parsed or resolved.
        namespaces: The prefixes to use for names of a resolved tree; without them, and for
            namespaces that have none, `Q{uri}name` is written.
    """
    return Notation(namespaces).expr(expr)


def is_double_slash(step: Step) -> bool:
    """Whether a step is what `//` stands for."""
    return (
        step.axis is Axis.DESCENDANT_OR_SELF
        and step.test == KindTest(NodeKind.NODE)
        and not step.predicates
    )


def is_bare_self(step: Step) -> bool:
    """Whether a step is `.`."""
    is_node = step.test == KindTest(NodeKind.NODE)
    return step.axis is Axis.SELF and is_node and not step.predicates


class Notation:
    """Writes parts of queries with the prefixes that one of them uses."""

    def __init__(self, namespaces: Namespaces | None = None) -> None:
        bound = namespaces or {}
        self._default = bound.get("", "")
        self._prefixes = {uri: prefix for prefix, uri in bound.items() if prefix}
        self._prefixes.setdefault(XML_NAMESPACE, "xml")

    def expr(self, expr: Expr) -> str:
        """An expression."""
        match expr:
            case LocationPath(is_absolute, steps):
                return self.path(steps, is_absolute)
            case PathExpr(start, steps):
                is_primary = isinstance(start, FunctionCall | VariableReference | FilterExpr)
                before = self.expr(start)
                return (before if is_primary else f"({before})") + self.path(steps, True)
            case FilterExpr(primary, predicates):
                inner = self.expr(primary)
                is_primary = isinstance(
                    primary, FunctionCall | VariableReference | Literal | Number
                )
                return (inner if is_primary else f"({inner})") + self.predicates(predicates)
            case FunctionCall(name, arguments):
                return f"{name}({', '.join(self.expr(argument) for argument in arguments)})"
            case VariableReference(name):
                return f"${name}"
            case Literal(value):
                return literal_text(value)
            case Number(value):
                return number_text(value)
            case UnaryExpr(minuses, operand):
                return "-" * minuses + self.operand(operand, _UNION_LEVEL)
            case BinaryExpr():
                return self.binary(expr)
        raise AssertionError(expr)

    def step(self, step: Step, *, with_predicates: bool = True) -> str:
        """A location step, without what stands before it."""
        predicates = self.predicates(step.predicates) if with_predicates else ""
        is_node = step.test == KindTest(NodeKind.NODE)
        if is_node and step.axis is Axis.SELF:
            return "." + predicates
        if is_node and step.axis is Axis.PARENT:
            return ".." + predicates
        axis = {Axis.CHILD: "", Axis.ATTRIBUTE: "@"}.get(step.axis, f"{step.axis.value}::")
        has_default = step.axis not in (Axis.ATTRIBUTE, Axis.NAMESPACE)
        return axis + self.node_test(step.test, has_default=has_default) + predicates

    def node_test(self, test: NodeTest, *, has_default: bool) -> str:
        """A node test; unprefixed names are in the default namespace, but for attributes."""
        if isinstance(test, KindTest):
            target = "" if test.target is None else literal_text(test.target)
            return f"{test.kind.value}({target})"
        local = test.local or "*"
        if test.uri is None:
            return local if test.prefix is None else f"{test.prefix}:{local}"
        return self.name(test.uri, local, has_default=has_default)

    def name(self, uri: str, local: str, *, has_default: bool) -> str:
        """An expanded name."""
        if uri == (self._default if has_default else "") and local != "*":
            return local
        prefix = self._prefixes.get(uri)
        return f"Q{{{uri}}}{local}" if prefix is None else f"{prefix}:{local}"

    def path(self, steps: Sequence[Step], is_absolute: bool) -> str:
        """Steps with the slashes between them."""
        text = ""
        for number, step in enumerate(steps):
            is_first = number == 0
            is_inner = number < len(steps) - 1 and (is_absolute or not is_first)
            if is_double_slash(step) and is_inner and not text.endswith("//"):
                text += "//"
                continue
            if not text.endswith("//") and (is_absolute or not is_first):
                text += "/"
            text += self.step(step)
        return text or "/"

    def predicates(self, predicates: Sequence[Expr]) -> str:
        """Predicates in their brackets."""
        return "".join(f"[{self.expr(predicate)}]" for predicate in predicates)

    def binary(self, expr: BinaryExpr) -> str:
        """Operands and the operators between them."""
        level = _level(expr)
        text = self.operand(expr.operands[0], level)
        for operator, operand in zip(expr.operators, expr.operands[1:], strict=True):
            sign = operator.value if operator in _TIGHT else f" {operator.value} "
            text += sign + self.operand(operand, level - 1)
        return text

    def operand(self, expr: Expr, level: int) -> str:
        """An operand, in parentheses if an operator of a level would tear it apart."""
        text = self.expr(expr)
        return f"({text})" if _level(expr) > level else text


def _level(expr: Expr) -> int:
    """How loosely an expression holds together: the place of its operator in `PRECEDENCE`."""
    if isinstance(expr, BinaryExpr):
        operator = expr.operators[0]
        levels = (level for level, tight in enumerate(PRECEDENCE) if operator in tight)
        return next(levels, _UNION_LEVEL)
    if isinstance(expr, UnaryExpr):
        return 0
    return _UNION_LEVEL - 1

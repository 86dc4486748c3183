"""The syntax tree: an XPath 1.0 expression as it was written.

Every production of the grammar that carries meaning has a class of its name; abbreviations are
expanded (`@a` is the attribute axis, `//` a step `descendant-or-self::node()`), parentheses leave
no node of their own. Every node knows the offset (characters, from 0) where it begins.

The tree says nothing of what can be evaluated: see `pathcast.query.compiled`.

Source: XML Path Language (XPath) 1.0, sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Axis(Enum):
    """The thirteen axes (XPath 1.0, 2.2)."""

    ANCESTOR = "ancestor"
    ANCESTOR_OR_SELF = "ancestor-or-self"
    ATTRIBUTE = "attribute"
    CHILD = "child"
    DESCENDANT = "descendant"
    DESCENDANT_OR_SELF = "descendant-or-self"
    FOLLOWING = "following"
    FOLLOWING_SIBLING = "following-sibling"
    NAMESPACE = "namespace"
    PARENT = "parent"
    PRECEDING = "preceding"
    PRECEDING_SIBLING = "preceding-sibling"
    SELF = "self"


class NodeType(Enum):
    """The node types that a node test can ask for (XPath 1.0, production 38)."""

    COMMENT = "comment"
    NODE = "node"
    PROCESSING_INSTRUCTION = "processing-instruction"
    TEXT = "text"


class BinaryOperator(Enum):
    """Operators between two expressions, `<>` read as `!=`."""

    OR = "or"
    AND = "and"
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    PLUS = "+"
    MINUS = "-"
    MULTIPLY = "*"
    DIV = "div"
    MOD = "mod"
    UNION = "|"


PRECEDENCE: tuple[frozenset[BinaryOperator], ...] = (
    frozenset({BinaryOperator.MULTIPLY, BinaryOperator.DIV, BinaryOperator.MOD}),
    frozenset({BinaryOperator.PLUS, BinaryOperator.MINUS}),
    frozenset({BinaryOperator.LT, BinaryOperator.LE, BinaryOperator.GT, BinaryOperator.GE}),
    frozenset({BinaryOperator.EQ, BinaryOperator.NE}),
    frozenset({BinaryOperator.AND}),
    frozenset({BinaryOperator.OR}),
)
"""Levels of operators, the tightest first. Unary minus binds tighter, `|` tighter still."""


@dataclass(frozen=True, slots=True)
class NameTest:
    """A name test (production 37), with the extensions `*:name` and `Q{uri}name`.

    Attributes:
        prefix: Prefix as written; None without one; "*" in `*:name`.
        local: Local name, or "*".
        uri: Namespace URI of `Q{uri}name`, else None.
        offset: Where it begins.
    """

    prefix: str | None
    local: str
    uri: str | None
    offset: int


@dataclass(frozen=True, slots=True)
class NodeTypeTest:
    """A test for a type of node: `text()`, `processing-instruction('x')`."""

    type: NodeType
    target: str | None
    offset: int


NodeTest: TypeAlias = NameTest | NodeTypeTest
"""What a location step asks of a node (production 7)."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """An expression in square brackets (production 8)."""

    expr: Expr
    offset: int


@dataclass(frozen=True, slots=True)
class Step:
    """A location step (production 4).

    Attributes:
        axis: The axis.
        test: The node test.
        predicates: In order. A predicate after `.` or `..` is taken too, as XPath 2.0 does.
        offset: Where the step begins; for the step that `//` stands for, the first slash.
    """

    axis: Axis
    test: NodeTest
    predicates: tuple[Predicate, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class LocationPath:
    """A location path (production 1)."""

    is_absolute: bool
    steps: tuple[Step, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A string in quotes."""

    value: str
    offset: int


@dataclass(frozen=True, slots=True)
class Number:
    """A number; never negative, for the sign is an operator."""

    value: float
    offset: int


@dataclass(frozen=True, slots=True)
class VariableReference:
    """`$name`."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function of the core library, or of `doc` and `document`."""

    name: str
    arguments: tuple[Expr, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class FilterExpr:
    """A primary expression or one in parentheses, filtered (production 20)."""

    primary: Expr
    predicates: tuple[Predicate, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class PathExpr:
    """A path that begins at the value of an expression: `$x/a`, `id('n')//b` (production 19)."""

    start: Expr
    steps: tuple[Step, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class UnaryExpr:
    """One minus or several before an expression (production 27)."""

    minuses: int
    operand: Expr
    offset: int


@dataclass(frozen=True, slots=True)
class BinaryExpr:
    """Operators of one level, applied from left to right: `a - b + c` (productions 18, 21-26).

    Attributes:
        operators: One fewer than there are operands.
        operands: Two or more.
        offset: Where the first operand begins.
        operator_offset: Where the first operator stands.
    """

    operators: tuple[BinaryOperator, ...]
    operands: tuple[Expr, ...]
    offset: int
    operator_offset: int


Expr: TypeAlias = (
    LocationPath
    | PathExpr
    | FilterExpr
    | FunctionCall
    | VariableReference
    | Literal
    | Number
    | UnaryExpr
    | BinaryExpr
)
"""Any expression (production 14)."""

"""The syntax tree of a query, in XPath 1.0 or XQuery, with a class for each production.

Every node knows the offset (characters, from 0) where it begins; offsets do not count when trees
are compared. Abbreviations are expanded: `@a` is the attribute axis, `//` a step
`descendant-or-self::node()`, `..` the parent axis; parentheses leave no node of their own.

An XPath is as it was written (`pathcast.query.parse`), or with its names resolved (`read_query`).
A program, of a subscription in XQuery, says each thing in one way only:

- Names carry namespace URIs; no prefix is left but those that constructed names are written with.
- An absolute path begins at the message, whether it was `$msg`, `doc("...")`, `/` or a relative
  path or `.` outside every predicate; one without steps is the message. A relative path and
  `ContextItem` stand inside predicates alone.
- A function that reads the context item when it has no argument has `ContextItem` as its argument
  (or the message, outside predicates); `position()` and `last()` outside predicates are the
  number 1.
- `(a/b)/c` is one path; `()` is a `Sequence` without items; operators have one operator each, but
  for `or`, `and` and `|`.
- Boundary space is gone, references are replaced, neighbouring text in a constructor is one `Text`.

The tree says nothing of what can be evaluated: see `pathcast.query.compiled`.

Source: XML Path Language (XPath) 1.0, sections 2 and 3; XQuery 1.0, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias


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


class NodeKind(Enum):
    """The kinds of nodes that a kind test can ask for; XPath 1.0 has the first four."""

    NODE = "node"
    TEXT = "text"
    COMMENT = "comment"
    PROCESSING_INSTRUCTION = "processing-instruction"
    ELEMENT = "element"
    ATTRIBUTE = "attribute"


class BinaryOperator(Enum):
    """Operators between two expressions, `<>` read as `!=`; `eq`, `idiv` and the like in XQuery."""

    OR = "or"
    AND = "and"
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    VALUE_EQ = "eq"
    VALUE_NE = "ne"
    VALUE_LT = "lt"
    VALUE_LE = "le"
    VALUE_GT = "gt"
    VALUE_GE = "ge"
    PLUS = "+"
    MINUS = "-"
    MULTIPLY = "*"
    DIV = "div"
    IDIV = "idiv"
    MOD = "mod"
    UNION = "|"

    @property
    def is_of_values(self) -> bool:
        """Whether it compares one value with one: `eq` and the like, of XQuery."""
        return self.name.startswith("VALUE_")


MULTIPLICATIVE: Final = frozenset({BinaryOperator.MULTIPLY, BinaryOperator.DIV, BinaryOperator.MOD})
ADDITIVE: Final = frozenset({BinaryOperator.PLUS, BinaryOperator.MINUS})
ORDERS: Final = frozenset(
    {BinaryOperator.LT, BinaryOperator.LE, BinaryOperator.GT, BinaryOperator.GE}
)
EQUALITIES: Final = frozenset({BinaryOperator.EQ, BinaryOperator.NE})
PRECEDENCE: Final[tuple[frozenset[BinaryOperator], ...]] = (
    MULTIPLICATIVE,
    ADDITIVE,
    ORDERS,
    EQUALITIES,
    frozenset({BinaryOperator.AND}),
    frozenset({BinaryOperator.OR}),
)
"""Levels of the operators of XPath 1.0, the tightest first; unary minus is tighter, `|` tighter
still."""


class NumberKind(Enum):
    """The types of numbers that are written."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"


@dataclass(frozen=True, slots=True)
class NameTest:
    """A name test; selects nodes of the axis's principal kind only.

    Attributes:
        uri: Namespace URI, "" for no namespace; None for any (`*`, `*:name`), and where it is not
            resolved.
        local: Local name; None for any (`*`, `p:*`).
        prefix: As written, of a name that is not resolved; "*" in `*:name`. None without one.
    """

    uri: str | None
    local: str | None
    prefix: str | None = None
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class KindTest:
    """A kind test: `node()`, `text()`, `processing-instruction('x')`.

    Attributes:
        kind: The kind of node.
        target: Of a processing instruction; None for any.
    """

    kind: NodeKind
    target: str | None = None
    offset: int = field(default=0, compare=False, repr=False)


NodeTest: TypeAlias = NameTest | KindTest
"""What a step asks of a node."""


@dataclass(frozen=True, slots=True)
class Step:
    """A location step.

    Attributes:
        axis: The axis.
        test: Which nodes of the axis.
        predicates: In order; a number is a position along the axis, anything else counts by its
            truth. A predicate after `.` or `..` is taken too, as XPath 2.0 does.
        offset: Where the step begins; for the step that `//` stands for, the first slash.
    """

    axis: Axis
    test: NodeTest
    predicates: tuple[Expr, ...] = ()
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LocationPath:
    """A location path, from the message or the context node; nodes in document order, each once."""

    is_absolute: bool
    steps: tuple[Step, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PathExpr:
    """A path that begins at the nodes of an expression: `$x/a`, `id('n')//b`."""

    start: Expr
    steps: tuple[Step, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FilterExpr:
    """`primary[predicate]...`: the positions are those in the whole sequence."""

    primary: Expr
    predicates: tuple[Expr, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A string in quotes."""

    value: str
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A number; never negative, for the sign is an operator.

    Attributes:
        value: `int` for an integer, `float` for a decimal or a double.
        kind: Its type; all numbers of XPath 1.0 are doubles.
    """

    value: float
    kind: NumberKind = NumberKind.DOUBLE
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class VariableReference:
    """`$name`; in a program the name is `local`, or `Q{uri}local`, as bound innermost."""

    name: str
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function, of as many arguments as it takes.

    Attributes:
        name: As written in an XPath; in a program the local name, and
            `pathcast.query.functions` has them all.
        arguments: In a program see the module for the context item.
    """

    name: str
    arguments: tuple[Expr, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnaryExpr:
    """One minus or several before an expression. Unary plus is two of them, in XQuery."""

    minuses: int
    operand: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BinaryExpr:
    """Operators of one level, applied from left to right: `a - b + c`.

    Attributes:
        operators: One fewer than there are operands.
        operands: Two or more.
    """

    operators: tuple[BinaryOperator, ...]
    operands: tuple[Expr, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ContextItem:
    """`.` inside a predicate of a program; any item, not only a node."""

    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """`a, b` and `()`: the items of all, one after the other. Never has exactly one item."""

    items: tuple[Expr, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class For:
    """`$variable at $position in source`, of a FLWOR or of a quantifier.

    Attributes:
        variable: Name of the variable, bound to each item in turn.
        position: Name of the variable bound to the item's number (from 1), or None. A quantifier
            has none.
        source: The sequence; sees the variables bound before it.
    """

    variable: str
    position: str | None
    source: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let:
    """`let $variable := value`."""

    variable: str
    value: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of `order by`. Tuples with equal keys stay in their order.

    Attributes:
        key: An expression of at most one item.
        is_descending: Whether `descending` was written.
        is_empty_greatest: Whether an empty key (and NaN next to it) comes after all others in
            ascending order; `empty least` is the default.
        is_case_blind: Whether texts are in the order of the case-blind collation.
    """

    key: Expr
    is_descending: bool = False
    is_empty_greatest: bool = False
    is_case_blind: bool = False
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Flwor:
    """A FLWOR expression.

    Attributes:
        clauses: `for` and `let`, one per variable, in order.
        where: The condition, by its effective boolean value; None without.
        order: The keys of `order by`, the most significant first.
        body: What `return` gives for each tuple.
    """

    clauses: tuple[For | Let, ...]
    where: Expr | None
    order: tuple[OrderKey, ...]
    body: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Quantified:
    """`some $a in x, $b in y satisfies c`, or `every`."""

    is_every: bool
    bindings: tuple[For, ...]
    condition: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If:
    """`if (condition) then a else b`."""

    condition: Expr
    then: Expr
    otherwise: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """`xs:date(a)`, `a cast as xs:date?`: the first item's value as one of a type.

    Attributes:
        to: Local name of the type in the namespace of XML Schema.
        operand: What is cast.
    """

    to: str
    operand: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Castable:
    """`a castable as xs:date`.

    Attributes:
        to: Local name of the type in the namespace of XML Schema.
        is_optional: Whether no item can be cast too: `xs:date?`.
        operand: What would be cast.
    """

    to: str
    is_optional: bool
    operand: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InstanceOf:
    """`a instance of element(b)*`.

    Attributes:
        operand: What is looked at.
        item: What each item must be: for `element()`, `node()` and other node tests a step to the
            node itself or to an attribute; else as it is written, with the prefix `xs`.
        occurrence: How many items there may be: "", "?", "*" or "+".
    """

    operand: Expr
    item: Step | str
    occurrence: str
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RangeExpr:
    """`first to last`: integers; none if one of the two is none."""

    first: Expr
    last: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SimpleMap:
    """`source ! body`: what the body gives for each item of the source, its context item."""

    source: Expr
    body: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Intersection:
    """`left intersect right` or `left except right`: nodes in document order, each once."""

    is_except: bool
    left: Expr
    right: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConstructedName:
    """The name of something that is constructed.

    Attributes:
        prefix: As written; "" without one.
        uri: Namespace URI; "" for none.
        local: Local name.
    """

    prefix: str
    uri: str
    local: str


@dataclass(frozen=True, slots=True)
class ComputedName:
    """A name of something that is constructed, as the value of an expression.

    Attributes:
        expr: The expression.
        namespaces: What each prefix is statically bound to, as (prefix, URI), in order; prefix ""
            is the default element namespace.
    """

    expr: Expr
    namespaces: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Characters of a constructor; never empty."""

    value: str
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Enclosed:
    """`{expr}` in content or in an attribute value.

    In content, neighbouring atomic items of one enclosed expression are joined by a space; those
    of two enclosed expressions are not. In an attribute all items are, as strings.
    """

    expr: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AttributeConstructor:
    """An attribute of a constructor.

    Attributes:
        name: Its name; without a prefix in no namespace.
        parts: Text and enclosed expressions, none for the empty string.
    """

    name: ConstructedName | ComputedName
    parts: tuple[Text | Enclosed, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ElementConstructor:
    """An element constructor; one without a computed name is as a direct one.

    Attributes:
        name: Its name.
        attributes: In order, no name twice; namespace declarations are not among them.
        namespaces: The declarations written on it, as (prefix, URI); prefix "" is the default
            namespace, URI "" takes it back.
        content: Text, constructors and enclosed expressions. `{<b/>}` stays an `Enclosed`.
    """

    name: ConstructedName | ComputedName
    attributes: tuple[AttributeConstructor, ...]
    namespaces: tuple[tuple[str, str], ...]
    content: tuple[Content, ...]
    offset: int = field(default=0, compare=False, repr=False)


Content: TypeAlias = Text | ElementConstructor | Enclosed
"""What stands in a constructor."""

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
    | ContextItem
    | Sequence
    | Flwor
    | Quantified
    | If
    | Cast
    | Castable
    | InstanceOf
    | RangeExpr
    | SimpleMap
    | Intersection
    | ElementConstructor
)
"""Any expression; those of XPath 1.0 come first."""


@dataclass(frozen=True, slots=True)
class Program:
    """A whole subscription: the prolog has gone into the names."""

    body: Expr

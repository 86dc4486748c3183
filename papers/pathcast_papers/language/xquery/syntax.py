"""The syntax tree of a FLWR subscription: an XQuery 1.0 expression with its names resolved.

What the parser gives is what the interpreters run, so the tree says each thing in one way only:

- Names carry namespace URIs; no prefix is left but those that constructed names are written with.
- The message is `Root`, whether it was `$msg`, `doc("...")`, `/` or a relative path or `.` outside
  every predicate. `Context` and `ContextItem` stand inside predicates alone.
- A function that reads the context item when it has no argument has `ContextItem` as its argument
  (or the message, outside predicates); `position()` and `last()` outside predicates are the
  literal 1.
- `//` is a step `descendant-or-self::node()`, `@a` the attribute axis, `..` the parent axis;
  `(a/b)/c` is one path; parentheses leave no node of their own; `()` is a `Sequence` without items.
- Boundary space is gone, references are replaced, neighbouring text in a constructor is one `Text`.

Every node knows the offset (characters, from 0) where it begins; offsets do not count when trees
are compared.

Source: XQuery 1.0, section 3, of whose productions the classes have their names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from pathcast_papers.language.syntax import Axis

__all__ = [
    "And",
    "Arithmetic",
    "ArithmeticOperator",
    "Attribute",
    "Axis",
    "Call",
    "Cast",
    "Castable",
    "Comparator",
    "Comparison",
    "Content",
    "Context",
    "ContextItem",
    "Element",
    "Enclosed",
    "Expr",
    "Filter",
    "Flwor",
    "For",
    "If",
    "InstanceOf",
    "Intersection",
    "KindTest",
    "Let",
    "Literal",
    "LiteralKind",
    "Name",
    "NameTest",
    "Negation",
    "NodeKind",
    "NodeTest",
    "Or",
    "OrderKey",
    "Path",
    "Program",
    "Quantified",
    "Range",
    "Root",
    "Sequence",
    "SimpleMap",
    "Step",
    "Text",
    "Union",
    "Variable",
]


class NodeKind(Enum):
    """The kinds of nodes that a kind test can ask for; `NODE` is any."""

    NODE = "node"
    TEXT = "text"
    COMMENT = "comment"
    PROCESSING_INSTRUCTION = "processing-instruction"
    ELEMENT = "element"
    ATTRIBUTE = "attribute"


class LiteralKind(Enum):
    """The types of literals."""

    STRING = "string"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"


class Comparator(Enum):
    """Comparison operators; `eq`, `ne` and so on are the same with `Comparison.is_value`."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class ArithmeticOperator(Enum):
    """Operators between numbers."""

    PLUS = "+"
    MINUS = "-"
    MULTIPLY = "*"
    DIV = "div"
    IDIV = "idiv"
    MOD = "mod"


@dataclass(frozen=True, slots=True)
class Name:
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
class NameTest:
    """A name test; selects nodes of the axis's principal kind only.

    Attributes:
        uri: Namespace URI, "" for no namespace; None for any (`*`, `*:name`).
        local: Local name; None for any (`*`, `p:*`).
    """

    uri: str | None
    local: str | None


@dataclass(frozen=True, slots=True)
class KindTest:
    """A kind test: `node()`, `text()`, `processing-instruction(x)`.

    Attributes:
        kind: The kind of node.
        target: Of a processing instruction; None for any.
    """

    kind: NodeKind
    target: str | None = None


NodeTest: TypeAlias = NameTest | KindTest
"""What a step asks of a node."""


@dataclass(frozen=True, slots=True)
class Root:
    """The document node of the message, as the start of a path."""

    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Context:
    """The context item of the predicate around it, as the start of a path."""

    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ContextItem:
    """`.` inside a predicate; any item, not only a node."""

    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Step:
    """An axis step.

    Attributes:
        axis: Any but the namespace axis.
        node_test: Which nodes of the axis.
        predicates: In order; a number is a position along the axis, anything else counts by its
            effective boolean value.
    """

    axis: Axis
    node_test: NodeTest
    predicates: tuple[Expr, ...] = ()
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Path:
    """A path; its nodes are in document order, each once.

    Attributes:
        start: `Root`, `Context`, or an expression that gives nodes (never a `Path`).
        steps: None only after `Root`, where the value is the document node.
    """

    start: Root | Context | Expr
    steps: tuple[Step, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """`primary[predicate]...`: the positions are those in the whole sequence."""

    primary: Expr
    predicates: tuple[Expr, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`. The name is `local`, or `Q{uri}local`; the innermost binding is meant."""

    name: str
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A string or a number.

    Attributes:
        value: `str` for a string, `int` for an integer, `float` for a decimal or a double.
        kind: Its type.
    """

    value: str | int | float
    kind: LiteralKind
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function call.

    Attributes:
        function: Local name; `pathcast_papers.language.xquery.functions` has them all.
        arguments: As many as the function takes; see the module for the context item.
    """

    function: str
    arguments: tuple[Expr, ...]
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
class Or:
    """`a or b or c`: two operands or more."""

    operands: tuple[Expr, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class And:
    """`a and b and c`: two operands or more."""

    operands: tuple[Expr, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A general comparison, or a value comparison (`eq`)."""

    operator: Comparator
    is_value: bool
    left: Expr
    right: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers and the operator between them; empty if one of them is."""

    operator: ArithmeticOperator
    left: Expr
    right: Expr
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """Unary minus. Unary plus is two of them."""

    operand: Expr
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
class Range:
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
class Union:
    """`a | b | c`: two operands or more, nodes in document order, each once."""

    operands: tuple[Expr, ...]
    offset: int = field(default=0, compare=False, repr=False)


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
class ComputedName:
    """The name of something that is constructed, as the value of an expression.

    Attributes:
        expr: The expression.
        namespaces: What each prefix is statically bound to, "" for the default element namespace.
    """

    expr: Expr
    namespaces: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a constructor.

    Attributes:
        name: Its name; without a prefix in no namespace.
        parts: Text and enclosed expressions, none for the empty string.
    """

    name: Name | ComputedName
    parts: tuple[Text | Enclosed, ...]
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Element:
    """A direct element constructor.

    Attributes:
        name: Its name.
        attributes: In order, no name twice; namespace declarations are not among them.
        namespaces: The declarations written on it, as (prefix, URI); prefix "" is the default
            namespace, URI "" takes it back.
        content: Text, constructors and enclosed expressions. `{<b/>}` stays an `Enclosed`.
    """

    name: Name | ComputedName
    attributes: tuple[Attribute, ...]
    namespaces: tuple[tuple[str, str], ...]
    content: tuple[Content, ...]
    offset: int = field(default=0, compare=False, repr=False)


Content: TypeAlias = Text | Element | Enclosed
"""What stands in a constructor."""

Expr: TypeAlias = (
    Sequence
    | Flwor
    | Quantified
    | If
    | Or
    | And
    | Comparison
    | Arithmetic
    | Negation
    | Cast
    | Castable
    | InstanceOf
    | Range
    | SimpleMap
    | Union
    | Intersection
    | Path
    | Filter
    | Variable
    | Literal
    | Call
    | ContextItem
    | Element
)
"""Any expression."""


@dataclass(frozen=True, slots=True)
class Program:
    """A whole subscription: the prolog has gone into the names."""

    body: Expr

"""The normal form of a standing query: what the engines evaluate.

The Python face of `kernel/core/src/language/query/ast.rs`, class by class. A query is a main path
of location steps, true of a message if the path selects an element. Comparisons on the end of a
path are conditions of its last step (`/a/b[@c=3]` stands for a path to `@c` too), so a nested path
asks for existence only. Of the nested paths of a step's last stage and the steps after it, which
ask the same, a rule chooses the one that leads on. `language.canonical` writes a normal form
as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Axis(Enum):
    """How a step leads on from the step before it; the value is how it is written."""

    CHILD = "/"
    """The element is a child."""
    DESCENDANT = "//"
    """The element is a descendant. Positions still count among the children of one parent."""
    DESCENDANT_OR_SELF = "//."
    """The element itself or a descendant; comes from `//@name` and `//text()`, only as the last
    step, always with the node test `*`."""


@dataclass(frozen=True, slots=True)
class AnyName:
    """`*`"""  # noqa: D415 (the notation is the description)


@dataclass(frozen=True, slots=True)
class Name:
    """`name` or `Q{uri}name`; no namespace is the empty URI."""

    uri: str
    local: str


@dataclass(frozen=True, slots=True)
class AnyIn:
    """`prefix:*`, canonically `Q{uri}*`."""

    uri: str


@dataclass(frozen=True, slots=True)
class AnyNamespace:
    """`*:name`."""

    local: str


NameTest: TypeAlias = AnyName | Name | AnyIn | AnyNamespace
"""What an element or attribute must be called."""


class Operator(Enum):
    """Comparison operator; the value is how it is written."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    STARTS_WITH = "starts-with"
    CONTAINS = "contains"
    MATCHES = "matches"

    @property
    def is_call(self) -> bool:
        """Whether it is written as a function: `starts-with(@x,'7')`.

        It stands in conditions on one attribute, named in full, or on the string-value of an
        element only, and its constant is a string that is not empty.
        """
        return self in (Operator.STARTS_WITH, Operator.CONTAINS, Operator.MATCHES)


FLIPPED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""The operator when the two sides change places."""

Constant: TypeAlias = float | str
"""Right-hand side of a comparison, a finite number or a string; its type decides how values are
compared (XPath 1.0, 3.4)."""


@dataclass(frozen=True, slots=True)
class Double:
    """A number that values are cast for as XQuery does it; canonical text of the product has it."""

    number: float


@dataclass(frozen=True, slots=True)
class TypedText:
    """A date, time or duration that values are compared with as XQuery does it.

    Attributes:
        to: The type, such as date or dayTimeDuration.
        text: The value, as the type writes it.
    """

    to: str
    text: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """Constants of one kind, one of which a value compares with as asked."""

    values: tuple[str, ...] | tuple[float, ...] | tuple[Double, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`op constant`.

    Attributes:
        operator: Operator.
        constant: What a value is compared with; a regular expression, its flags before it in
            `(?...)`, for `matches`.
        fold: The function that values are folded by before, such as lower-case; "" for none.
    """

    operator: Operator
    constant: Constant | Double | TypedText | OneOf
    fold: str = ""


@dataclass(frozen=True, slots=True)
class AttributeCondition:
    """`[@name]`, `[@name op constant]`: some attribute that passes the test."""

    test: NameTest
    compare: Comparison | None = None


@dataclass(frozen=True, slots=True)
class TextCondition:
    """`[text()]`, `[text() op constant]`: some text node child."""

    compare: Comparison | None = None


@dataclass(frozen=True, slots=True)
class ValueCondition:
    """`[. op constant]`: the string-value of the element."""

    compare: Comparison


@dataclass(frozen=True, slots=True)
class NestedCondition:
    """`[a//b]`: a nested path, relative to the element; true if it selects something."""

    steps: tuple[Step, ...]


Condition: TypeAlias = AttributeCondition | TextCondition | ValueCondition | NestedCondition
"""A condition on the element of one step."""


@dataclass(frozen=True, slots=True)
class Position:
    """`position() op number`."""

    operator: Operator
    number: float


@dataclass(frozen=True, slots=True)
class Stage:
    """A run of predicates of one step.

    The positions of a stage count in the list that the stages before it have left; its conditions
    then filter further.

    Attributes:
        positions: All must hold; empty only in a first stage.
        conditions: All must hold; sorted by canonical text, without duplicates.
    """

    positions: tuple[Position, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A location step.

    Attributes:
        axis: How it leads on from the step before.
        test: The node test.
        stages: The predicates; empty for a bare step.
    """

    axis: Axis
    test: NameTest
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class NormalQuery:
    """A standing query in normal form.

    Attributes:
        steps: The main path, read from the document node; one step or more.
    """

    steps: tuple[Step, ...]

"""Words of queries: axes, name tests, operators and comparisons.

Paths in normal form are the kernel's (`pathcast_kernel.NormalPath`); these are what analysis and
placement say of parts of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias


class PathAxis(Enum):
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

    @property
    def is_call(self) -> bool:
        """Whether it is written as a function: `starts-with(@x,'7')`.

        It stands in conditions on one attribute, named in full, or on the string-value of an
        element only, and its constant is a string that is not empty.
        """
        return self in (Operator.STARTS_WITH, Operator.CONTAINS)


FLIPPED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""The operator when the two sides change places."""


@dataclass(frozen=True, slots=True)
class Double:
    """A finite number that values are cast for, as XQuery casts them to `xs:double`."""

    number: float


Constant: TypeAlias = float | str
"""A finite number or a string; its type decides how values are compared (XPath 1.0, 3.4)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`op constant`."""

    operator: Operator
    constant: Constant | Double

    def to_native(self) -> tuple[int, Constant | tuple[float]]:
        """The number of the operator, and the constant; (number,) where the value is cast."""
        number, constant = _NUMBERS[self.operator], self.constant
        return number, (constant.number,) if isinstance(constant, Double) else constant


_NUMBERS: Final = {operator: number for number, operator in enumerate(Operator)}

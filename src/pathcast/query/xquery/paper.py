"""Subscriptions of the class that the paper on customised delivery shares plans for.

    <outer> { for $v in binding path where condition and ... return template } </outer>

with one `for`, a `where` clause that is a conjunction of comparisons of a path relative to the
variable with a constant (or of its existence), and a template whose only expressions are paths
relative to the variable. Paths go down only, by `/` and `//`, over element names and `*`.

Source: Diao and Franklin, "Query Processing for High-Volume XML Message Brokering", section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pathcast.query.xquery.syntax import Comparator, Element, Expr, NameTest


class Target(Enum):
    """What a path ends at."""

    ELEMENT = "element"
    """The element of the last step; in a comparison, its string value."""
    TEXT = "text()"
    """Its text nodes."""
    ATTRIBUTE = "@"
    """An attribute of it."""


@dataclass(frozen=True, slots=True)
class PaperCondition:
    """A path from an element, and what is asked of its end.

    Attributes:
        steps: Relative to the element that is asked; none where its own text or attribute is.
        target: What is compared.
        attribute: The attribute's name, where `target` is one.
        operator: How, with the path on the left; None for existence.
        constant: A string, or a number (which compares as numbers); None for existence.
    """

    steps: tuple[PaperStep, ...]
    target: Target
    attribute: NameTest | None
    operator: Comparator | None
    constant: str | float | None


@dataclass(frozen=True, slots=True)
class PaperStep:
    """A step down.

    Attributes:
        is_descendant: Whether `//` stands before it.
        name: Which elements; `NameTest(None, None)` for `*`.
        conditions: Its predicates; in the binding path only.
    """

    is_descendant: bool
    name: NameTest
    conditions: tuple[PaperCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class PaperReturn:
    """A return path.

    Attributes:
        steps: Relative to the variable; none for the variable itself or for its text or attribute.
        target: What is returned.
        attribute: The attribute's name, where `target` is one.
    """

    steps: tuple[PaperStep, ...]
    target: Target
    attribute: NameTest | None


@dataclass(frozen=True, slots=True)
class PaperQuery:
    """A subscription of the paper's class.

    Attributes:
        binding: Steps of the binding path, from the document node.
        predicates: The `where` clause, a conjunction.
        returns: The return paths, in the order in which they stand in the template.
        template: What `return` has: a constructor, a path or a sequence of them. Every `Path` and
            `Variable` met in document order is the next of `returns`.
        outer: The constructor around the FLWR, which stands in it as the one enclosed expression;
            None if there is none.
        variable: The variable's name.
    """

    binding: tuple[PaperStep, ...]
    predicates: tuple[PaperCondition, ...]
    returns: tuple[PaperReturn, ...]
    template: Expr
    outer: Element | None
    variable: str

"""Where an expression is evaluated: variables, focus, namespaces of the constructors around it.

Example:
    >>> inner = DynamicContext().bind("x", ()).bind("y", ())
    >>> inner.variables.name, inner.binding("x").value
    ('y', ())

Source: XQuery 1.0, section 2.1 (expression context).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pathcast_papers.message_broker.xquery.items import Item, Items


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """A variable and its value, inside all those that were bound before. Known by identity.

    Attributes:
        name: The name.
        value: The sequence.
        outer: What was bound before.
    """

    name: str
    value: Items
    outer: Binding | None


class Focus(NamedTuple):
    """What a predicate is tried on: an item, its position and the number of items."""

    item: Item
    position: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class DynamicContext:
    """Everything that the value of an expression may depend on, besides the message.

    Attributes:
        variables: The innermost binding.
        focus: None outside all predicates.
        namespaces: Prefix -> URI, as the constructors that stand around the expression declare.
    """

    variables: Binding | None = None
    focus: Focus | None = None
    namespaces: Mapping[str, str] = field(default_factory=dict)

    def bind(self, name: str, value: Items) -> DynamicContext:
        """With one more variable."""
        variables = Binding(name, value, self.variables)
        return DynamicContext(variables, self.focus, self.namespaces)

    def at(self, focus: Focus) -> DynamicContext:
        """With another focus."""
        return DynamicContext(self.variables, focus, self.namespaces)

    def inside(self, namespaces: Mapping[str, str]) -> DynamicContext:
        """With other namespaces."""
        return DynamicContext(self.variables, self.focus, namespaces)

    def binding(self, name: str) -> Binding:
        """The innermost binding of a variable; there is one, or the parser would have refused."""
        found = self.variables
        while found is not None:
            if found.name == name:
                return found
            found = found.outer
        raise AssertionError(name)

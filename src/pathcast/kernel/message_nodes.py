"""The nodes of one message, and the values of expressions at them.

Example:
    >>> nodes = MessageNodes(b"<a><b>1</b><b>2</b></a>", Limits())
    >>> found = nodes.value("child::a/child::b", Context(DOCUMENT_NODE))
    >>> [nodes.string_value(node) for node in found]
    ['1', '2']
    >>> nodes.values("(. > 1)", [Context(node) for node in found])
    [False, True]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from pathcast.boundary import native, native_errors
from pathcast.errors import error_for
from pathcast.limits import Limits

Node: TypeAlias = int
"""A node; sorts in document order."""

Result: TypeAlias = str | float | bool | tuple[Node, ...]
"""A value of any of the four types; nodes are in document order, each once."""

DOCUMENT_NODE: Final[Node] = 0
"""The document node."""


class OverBudgetError(Exception):
    """The evaluations take more steps than they were given."""


class Context(NamedTuple):
    """Where an expression is evaluated (XPath 1.0, 1)."""

    node: Node
    position: int = 1
    size: int = 1


class NodeFacts(NamedTuple):
    """A node by itself.

    Attributes:
        kind: "document", "element", "attribute", "namespace", "text", "comment" or
            "processing instruction".
        uri: Namespace of its name; "" for what is in none, or has no name.
        local: Local name; the target of an instruction, the prefix of a namespace node.
        place: Its place, from 1, among the siblings of its kind and name.
        parent: The parent; None for the document node.
    """

    kind: str
    uri: str
    local: str
    place: int
    parent: Node | None


class MessageNodes:
    """One message, kept to be asked.

    Args:
        message: The message.
        limits: What it may cost.
        encoding: Its encoding, where the caller knows it.
        steps_max: Steps that all evaluations together may take.

    Raises:
        MessageError: The door refused the message.
    """

    def __init__(
        self,
        message: bytes,
        limits: Limits,
        encoding: str | None = None,
        steps_max: int = 1_000_000,
    ) -> None:
        with native_errors():
            answer = native.MessageNodes.of(message, limits, encoding, steps_max)
        if isinstance(answer, tuple):
            raise error_for(*answer)
        self._nodes = answer

    def values(self, expression: str, contexts: Sequence[Context]) -> list[Result]:
        """The values of an expression, one for each context.

        Args:
            expression: The expression, its names resolved (`Q{uri}name`).
            contexts: Where it is evaluated.

        Raises:
            OverBudgetError: There are no steps left for it.
        """
        with native_errors():
            found = self._nodes.values(expression, contexts)
        if found is None:
            raise OverBudgetError
        return found

    def value(self, expression: str, context: Context) -> Result:
        """The value of an expression in one context; otherwise as `values`."""
        return self.values(expression, [context])[0]

    def string_value(self, node: Node) -> str:
        """The string-value of a node.

        Raises:
            OverBudgetError: There are no steps left for it.
        """
        return str(self.value("string()", Context(node)))

    def facts(self, node: Node) -> NodeFacts:
        """A node by itself. Cost: the siblings before it."""
        with native_errors():
            return NodeFacts(*self._nodes.node(node))

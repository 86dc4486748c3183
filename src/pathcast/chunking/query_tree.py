"""The query tree: the label paths of all queries, with how much weight each one carries.

A node is a location step below those above it; its weight is that of all alternatives whose path
leads through it or ends there. Weights are whole numbers, so that equal ones are equal: how many
queries there are, or the nanoseconds that they were measured to take.

Example:
    >>> tree = QueryTree()
    >>> for path in ("abc", "abd", "abc"):
    ...     tree.add(tuple(("", name) for name in path), 1)
    >>> [(node.text, node.weight) for node in tree.nodes()]
    [('/a', 3), ('/a/b', 3), ('/a/b/c', 2), ('/a/b/d', 1)]

Source: Lehner and Irmert, BTW 2003, section 4, Figure 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pathcast.chunking.names import path_text
from pathcast.schema import ExpandedName, LabelPath


@dataclass(eq=False, slots=True)
class QueryTreeNode:
    """A node of the query tree.

    Attributes:
        path: Its label path; empty for the document node.
        above: The node above; None for the document node.
        weight: Of the alternatives that lead through it or end there.
        own: Of those that end there.
        below: Name -> node.
    """

    path: LabelPath
    above: QueryTreeNode | None
    weight: int = 0
    own: int = 0
    below: dict[ExpandedName, QueryTreeNode] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Its label path as it is read."""
        return path_text(self.path)

    def ancestors(self) -> Iterator[QueryTreeNode]:
        """The nodes above, the root element's last; the document node is none of them."""
        above = self.above
        while above is not None and above.path:
            yield above
            above = above.above

    def children(self) -> list[QueryTreeNode]:
        """The nodes below, by name."""
        return [self.below[name] for name in sorted(self.below)]


class QueryTree:
    """Label paths with weights; paths come and go."""

    def __init__(self) -> None:
        self.document = QueryTreeNode((), None)

    def add(self, path: LabelPath, weight: int) -> None:
        """Adds weight to a label path and those above it. Cost: linear in its length.

        Args:
            path: The label path.
            weight: Positive, or negative to take away what was added before.
        """
        node = self.document
        node.weight += weight
        for name in path:
            child = node.below.get(name)
            if child is None:
                child = node.below[name] = QueryTreeNode((*node.path, name), node)
            node = child
            node.weight += weight
        node.own += weight
        while node.above is not None and not node.weight and not node.below:
            del node.above.below[node.path[-1]]
            node = node.above

    def nodes(self) -> Iterator[QueryTreeNode]:
        """All nodes but the document node, from the top, by name."""
        waiting = self.document.children()[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children()[::-1]

    def candidates(self) -> list[QueryTreeNode]:
        """The nodes that a chunk may be cut at: all but those of root elements."""
        return [node for node in self.nodes() if len(node.path) > 1]

    def __len__(self) -> int:
        """How many nodes there are, the document node apart."""
        return sum(1 for _ in self.nodes())

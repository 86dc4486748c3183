"""How often a path can occur in one message, as a DTD has it.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> graph = parse_dtd(
    ...     "<!ELEMENT order (head, line+)><!ELEMENT head (day?)><!ELEMENT day (#PCDATA)>"
    ...     "<!ELEMENT line (day)>"
    ... )
    >>> counts = PathOccurrences(graph, root="order")
    >>> child, below = SchemaStep("/", "", "order"), SchemaStep("//", "", "day")
    >>> counts.max_occurrences([child, SchemaStep("/", "", "head"), below])
    1
    >>> counts.max_occurrences([below]) == MANY
    True

What it says holds of valid messages whose root is the one that was named. It counts to two: 0, 1
or `MANY`. Elements of a choice that exclude each other are counted together, so that `MANY` may be
said of what is found once; 0 and 1 are always right.

Source: 001, 4.4: "the best choice of an exclusiveness pattern would be one that can appear at most
once in any message, as dictated by the schema".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from pathcast.errors import SchemaError
from pathcast.schema.element_paths import ExpandedName, MessageNames
from pathcast.schema.graph import ContentKind, ElementGraph

MANY: Final = 2
"""More often than once."""

_Places: TypeAlias = frozenset[int]
"""Steps of a path that have been taken, as one element may end several beginnings of it."""

_Way: TypeAlias = tuple[ExpandedName, _Places]
"""An element and the steps taken there. An element of a message is reached by one way only, so it
is counted once however many beginnings of the path it ends."""


class SchemaStep(NamedTuple):
    """A location step.

    Attributes:
        axis: "/" for a child, "//" for a descendant, "//." for the element itself or one below it.
        uri: Namespace URI of the element; None for any.
        local: Local name; None for any.
    """

    axis: str
    uri: str | None
    local: str | None

    def takes(self, name: ExpandedName) -> bool:
        """Whether an element of this name passes the node test."""
        return self.uri in (None, name[0]) and self.local in (None, name[1])


class PathOccurrences:
    """Counts how often paths can occur in a message of a DTD.

    Args:
        graph: The DTD.
        root: Name of the root element as the DTD writes it; without it every element may be one.
        namespaces: As for `ElementPaths`.

    Raises:
        SchemaError: The DTD declares no element `root`.
    """

    def __init__(
        self,
        graph: ElementGraph,
        *,
        root: str | None = None,
        namespaces: Mapping[str, str] | None = None,
    ) -> None:
        if root is not None and root not in graph:
            raise SchemaError("schema.unusable", reason=f"the DTD declares no element {root}")
        written = MessageNames(graph, namespaces or {})
        names = {element.name: written.expanded(element.name) for element in graph}
        declared = [(names[element.name], 2) for element in graph if element.name in graph.heights]
        self._children: dict[ExpandedName, list[tuple[ExpandedName, int]]] = {}
        for element in graph:
            if element.kind is ContentKind.ANY:
                children = declared
            else:
                children = [
                    (names[child.name], 2 if child.repeatable else 1)
                    for child in element.children
                    if child.name in graph.heights
                ]
            self._children[names[element.name]] = children
        self._roots = [name for name, _ in declared] if root is None else [names[root]]

    def max_occurrences(self, steps: Sequence[SchemaStep]) -> int:
        """How many elements of one message a path can select.

        Args:
            steps: From the document node on; one or more.

        Returns:
            0, 1 or `MANY`.

        Cost: elements of the DTD times the sets of steps that one way can have taken (a few more
            than there are steps, as a rule), for each element that may be the root.
        """
        return max((self._most(root, steps) for root in self._roots), default=0)

    def _most(self, root: ExpandedName, steps: Sequence[SchemaStep]) -> int:
        start = (root, _taken(frozenset({0}), root, steps))
        edges = self._ways(start, steps)
        ends = [way for way in edges if len(steps) in way[1]]
        useful = _leading_to(ends, edges)
        found = dict.fromkeys(useful, 0)
        entering = dict.fromkeys(useful, 0)
        for way in useful:
            for target, _ in edges[way]:
                if target in useful:
                    entering[target] += 1
        if start not in useful:
            return 0
        found[start] = 1
        ready = [way for way in useful if not entering[way]]
        done = 0
        while ready:
            way = ready.pop()
            done += 1
            for target, most in edges[way]:
                if target in useful:
                    found[target] = min(MANY, found[target] + most * found[way])
                    entering[target] -= 1
                    if not entering[target]:
                        ready.append(target)
        if done < len(useful):
            # A way that comes back to where it was can be gone again and again.
            return MANY
        return min(MANY, sum(found[way] for way in ends))

    def _ways(self, start: _Way, steps: Sequence[SchemaStep]) -> dict[_Way, list[tuple[_Way, int]]]:
        """The ways that each way leads on to, and how often each can stand under one element."""
        edges: dict[_Way, list[tuple[_Way, int]]] = {}
        waiting = [start]
        while waiting:
            way = waiting.pop()
            if way in edges:
                continue
            name, places = way
            edges[way] = [
                ((child, taken), most)
                for child, most in self._children.get(name, ())
                if (taken := _taken(places, child, steps))
            ]
            waiting.extend(target for target, _ in edges[way])
        return edges


def _taken(places: _Places, name: ExpandedName, steps: Sequence[SchemaStep]) -> _Places:
    """The steps that have been taken at a child of this name."""
    taken = set()
    for place in places:
        if place < len(steps):
            step = steps[place]
            if step.axis != "/":
                taken.add(place)
            if step.takes(name):
                taken.add(place + 1)
    for place in sorted(taken):
        if place < len(steps) and steps[place].axis == "//.":
            taken.add(place + 1)
    return frozenset(taken)


def _leading_to(
    ends: Sequence[_Way], edges: Mapping[_Way, Sequence[tuple[_Way, int]]]
) -> set[_Way]:
    """The ways that lead to one of these."""
    sources: dict[_Way, list[_Way]] = {}
    for way, targets in edges.items():
        for target, _ in targets:
            sources.setdefault(target, []).append(way)
    found = set(ends)
    waiting = list(ends)
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source not in found:
                found.add(source)
                waiting.append(source)
    return found

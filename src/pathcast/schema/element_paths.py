"""Paths of a DTD's element graph: which elements may stand in which.

The graph is that of the paper: a node for each element, an edge from each element to each one that
may be its child. An element declared `ANY` may hold every declared element.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> paths = ElementPaths(parse_dtd(
    ...     "<!ELEMENT book (section*)><!ELEMENT section (section | figure)*>"
    ...     "<!ELEMENT figure (image)><!ELEMENT image EMPTY>"
    ... ), root="book")
    >>> paths.children(("", "section"))
    (('', 'figure'), ('', 'section'))
    >>> sorted(paths.below(("", "figure")))
    [('', 'image')]

It holds of messages whose parents and children are edges of the graph, and whose root is the one
that was named. It is no validation: order, number, attributes and text may be anything.

Source: Diao and Franklin, VLDB 2003, section 4 (DTD element graph).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final, TypeAlias

from pathcast.errors import SchemaError
from pathcast.schema.graph import ContentKind, Element, ElementGraph

ExpandedName: TypeAlias = tuple[str, str]
"""Namespace URI ("" for none) and local name."""

# Stands between the elements declared ANY and all declared ones, so that edges stay few.
_ANYTHING: Final[ExpandedName] = ("\0", "\0")


class ElementPaths:
    """Paths of an element graph.

    Args:
        graph: The DTD.
        root: Name of the root element as the DTD writes it. Without it every element may be the
            root, and nothing is known of what a leading `//` passes over.
        namespaces: Prefix -> namespace URI, "" for names without one. What is missing is taken
            from attributes `xmlns` and `xmlns:...` for which the DTD has a default.

    Raises:
        SchemaError: The DTD declares no element `root`.

    Cost: linear in elements and edges.
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
        names = MessageNames(graph, namespaces or {})
        self.root: ExpandedName | None = None if root is None else names.expanded(root)
        edges: dict[ExpandedName, set[ExpandedName]] = {_ANYTHING: set()}
        for element in graph:
            name = names.expanded(element.name)
            children = edges.setdefault(name, set())
            edges[_ANYTHING].add(name)
            if element.kind is ContentKind.ANY:
                children.add(_ANYTHING)
            else:
                children.update(names.expanded(child.name) for child in element.children)
        self._build(edges)

    @classmethod
    def of(
        cls, root: ExpandedName | None, edges: Mapping[ExpandedName, Iterable[ExpandedName]]
    ) -> ElementPaths:
        """The paths of a graph that is given as it appears in messages.

        Args:
            root: Name of the root element; None where every element may be it.
            edges: Element -> those that may be its children.

        Example:
            >>> a, b = ("", "a"), ("", "b")
            >>> sorted(ElementPaths.of(a, {a: [b]}).below(a))
            [('', 'b')]
        """
        paths = cls.__new__(cls)
        paths.root = root
        paths._build(
            {_ANYTHING: set(edges)} | {name: set(children) for name, children in edges.items()}
        )
        return paths

    def _build(self, edges: dict[ExpandedName, set[ExpandedName]]) -> None:
        for children in list(edges.values()):
            for child in children:
                edges.setdefault(child, set())
        if self.root is not None:
            reached = _reached([self.root], edges)
            edges = {name: children for name, children in edges.items() if name in reached}
        self._edges: Mapping[ExpandedName, frozenset[ExpandedName]] = MappingProxyType(
            {name: frozenset(children) for name, children in edges.items()}
        )
        self._parents: dict[ExpandedName, set[ExpandedName]] = {name: set() for name in edges}
        for name, children in edges.items():
            for child in children:
                self._parents[child].add(name)
        self._below: dict[ExpandedName, frozenset[ExpandedName]] = {}
        self._children: dict[ExpandedName, tuple[ExpandedName, ...]] = {}

    def children(self, parent: ExpandedName) -> tuple[ExpandedName, ...]:
        """The elements that may be children of an element, sorted; found once."""
        found = self._children.get(parent)
        if found is None:
            children = self._edges.get(parent, frozenset())
            if _ANYTHING in children:
                children |= self._edges[_ANYTHING]
            found = self._children[parent] = tuple(sorted(children - {_ANYTHING}))
        return found

    @cached_property
    def names(self) -> frozenset[ExpandedName]:
        """Every element; with a root, those that can be reached from it."""
        return frozenset(self._edges) - {_ANYTHING}

    def leading_to(self, names: Iterable[ExpandedName]) -> set[ExpandedName]:
        """These elements of the graph, and those that one of them may stand in, at any distance.

        Cost: linear in the edges between them.
        """
        return _reached(names, self._parents) - {_ANYTHING}

    def below(self, above: ExpandedName) -> frozenset[ExpandedName]:
        """The elements that may stand in an element, at any distance; found once."""
        found = self._below.get(above)
        if found is None:
            edges = self._edges.get(above, frozenset())
            found = frozenset(_reached(edges, self._edges)) - {_ANYTHING}
            self._below[above] = found
        return found


class MessageNames:
    """The names of a DTD as they appear in messages."""

    def __init__(self, graph: ElementGraph, namespaces: Mapping[str, str]) -> None:
        self._graph = graph
        self._given = namespaces
        self._declared: dict[str, str] = {}
        for element in graph:
            for prefix, uri in _declarations(element):
                self._declared.setdefault(prefix, uri)

    def expanded(self, name: str) -> ExpandedName:
        """The name in messages of an element that the DTD writes so."""
        prefix, colon, local = name.rpartition(":")
        if prefix in self._given:
            return (self._given[prefix], local)
        if name in self._graph:
            for declared, uri in _declarations(self._graph[name]):
                if declared == prefix:
                    return (uri, local)
        if prefix in self._declared:
            return (self._declared[prefix], local)
        # A prefix that nothing binds: no message has an element of such a name.
        return (f"\0{prefix}", local) if colon else ("", local)


def _declarations(element: Element) -> Iterator[tuple[str, str]]:
    for attribute in element.attributes:
        if attribute.value is not None:
            if attribute.name == "xmlns":
                yield "", attribute.value
            elif attribute.name.startswith("xmlns:"):
                yield attribute.name.removeprefix("xmlns:"), attribute.value


def _reached(
    start: Iterable[ExpandedName], edges: Mapping[ExpandedName, Iterable[ExpandedName]]
) -> set[ExpandedName]:
    """The start and everything reached from it."""
    found = set(start)
    waiting = list(found)
    while waiting:
        for name in edges[waiting.pop()]:
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found

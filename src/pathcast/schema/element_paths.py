"""Paths of a DTD's element graph: loops and single paths.

The graph is that of the paper: a node for each element, an edge from each element to each one that
may be its child. Elements on a common loop are those of one strongly connected component. An
element declared `ANY` may hold every declared element.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> paths = ElementPaths(parse_dtd(
    ...     "<!ELEMENT book (section*)><!ELEMENT section (section | figure)*>"
    ...     "<!ELEMENT figure (image)><!ELEMENT image EMPTY>"
    ... ), root="book")
    >>> paths.is_on_loop(("", "section")), paths.is_on_loop(("", "figure"))
    (True, False)
    >>> paths.single_path(("", "figure"), ("", "image"))
    (('', 'image'),)
    >>> paths.single_path(("", "section"), ("", "image")) is None
    True

What it says holds of messages whose parents and children are edges of the graph, and whose root is
the one that was named. `conforms` asks just that; it is no validation: order, number, attributes
and text may be anything.

Source: Diao and Franklin, VLDB 2003, section 4 (DTD element graph), 5.1 (single paths).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    """Loops and paths of an element graph.

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
        names = _Names(graph, namespaces or {})
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
    def of_message(cls, names: Sequence[ExpandedName], parents: Sequence[int]) -> ElementPaths:
        """The graph of the parents and children that one message has.

        Args:
            names: Name of each element, in document order; one or more.
            parents: Number of each element's parent; of the root, any negative one.
        """
        edges: dict[ExpandedName, set[ExpandedName]] = {_ANYTHING: set()}
        for parent, child in _pairs(names, parents):
            edges.setdefault(parent, set()).add(child)
        edges.setdefault(names[0], set())
        paths = cls.__new__(cls)
        paths.root = names[0]
        paths._build(edges)
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
        self._component = _components(self._edges)
        size: dict[int, int] = {}
        for component in self._component.values():
            size[component] = size.get(component, 0) + 1
        self._on_loop = frozenset(
            name
            for name, children in self._edges.items()
            if name in children or size[self._component[name]] > 1
        )

    @property
    def looped(self) -> frozenset[ExpandedName]:
        """The elements on some loop."""
        return self._on_loop - {_ANYTHING}

    def is_on_loop(self, name: ExpandedName) -> bool:
        """Whether an element can stand in itself, at any distance."""
        return name in self._on_loop

    def is_on_same_loop(self, name: ExpandedName, other: ExpandedName) -> bool:
        """Whether each of two elements can stand in the other; of one element, `is_on_loop`.

        A loop may pass an element twice: what counts is that there is a way back.
        """
        return (
            name in self._on_loop
            and other in self._on_loop
            and self._component[name] == self._component[other]
        )

    def is_edge(self, parent: ExpandedName, child: ExpandedName) -> bool:
        """Whether an element may be a child of another one."""
        children = self._edges.get(parent)
        if children is None:
            return False
        return child in children or (_ANYTHING in children and child in self._edges[_ANYTHING])

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

    def single_path(
        self, above: ExpandedName | None, below: ExpandedName
    ) -> tuple[ExpandedName, ...] | None:
        """The names from an element down to another one, if there is but one way.

        Args:
            above: The upper element; None for the document node.
            below: The lower element.

        Returns:
            The names below `above`, the last of them `below`. None if there is no way, or more
            than one, a loop among them.

        Cost: linear in the graph.
        """
        if above is None:
            if self.root is None:
                return None
            if self.root == below:
                return None if self.is_on_loop(below) else (below,)
            rest = self.single_path(self.root, below)
            return None if rest is None or self.is_on_loop(self.root) else (self.root, *rest)
        if above not in self._edges or below not in self._edges or below == above:
            # From an element to itself there is no way, or a loop and so any number of ways.
            return None
        between = _reached([above], self._edges) & _reached([below], self._parents)
        if any(name in self._on_loop for name in between):
            return None
        way: list[ExpandedName] = []
        here = above
        while here != below:
            following = [name for name in self._edges[here] if name in between]
            if len(following) != 1:
                return None
            here = following[0]
            if here != _ANYTHING:
                way.append(here)
        return tuple(way)

    def has_no_other_way(
        self, above: ExpandedName | None, below: ExpandedName, way: tuple[ExpandedName, ...]
    ) -> bool:
        """Whether there is no way from an element down to another one but the given one.

        Args:
            above: The upper element; None for the document node.
            below: The lower element.
            way: As from `single_path`.
        """
        start = self.root if above is None else above
        if start is None:
            return False
        if start not in self._edges or (
            below not in _reached(self._edges[start], self._edges)
            and not (above is None and below == start)
        ):
            return True
        return self.single_path(above, below) == way

    def conforms(self, names: Sequence[ExpandedName], parents: Sequence[int]) -> bool:
        """Whether what this object says holds of a message.

        Args:
            names: Name of each element, in document order.
            parents: Number of each element's parent; of the root, any negative one.

        Cost: a set of pairs, and one look-up for each distinct pair.
        """
        if not names or (self.root is not None and names[0] != self.root):
            return False
        return all(self.is_edge(parent, child) for parent, child in _pairs(names, parents))


def expanded_names(
    graph: ElementGraph, namespaces: Mapping[str, str] | None = None
) -> dict[str, ExpandedName]:
    """Name of each declared element as the DTD writes it -> what it is in messages.

    Args:
        graph: The DTD.
        namespaces: As for `ElementPaths`.
    """
    names = _Names(graph, namespaces or {})
    return {element.name: names.expanded(element.name) for element in graph}


class _Names:
    """The names of a DTD as they appear in messages."""

    def __init__(self, graph: ElementGraph, namespaces: Mapping[str, str]) -> None:
        self._graph = graph
        self._given = namespaces
        self._declared: dict[str, str] = {}
        for element in graph:
            for prefix, uri in _declarations(element):
                self._declared.setdefault(prefix, uri)

    def expanded(self, name: str) -> ExpandedName:
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


def _pairs(
    names: Sequence[ExpandedName], parents: Sequence[int]
) -> set[tuple[ExpandedName, ExpandedName]]:
    """The distinct pairs of a parent's and a child's name in a message."""
    return {
        (names[parent], name) for name, parent in zip(names, parents, strict=True) if parent >= 0
    }


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


def _components(
    edges: Mapping[ExpandedName, Iterable[ExpandedName]],
) -> dict[ExpandedName, int]:
    """Number of the strongly connected component of each name (Tarjan, without recursion)."""
    order: dict[ExpandedName, int] = {}
    low: dict[ExpandedName, int] = {}
    component: dict[ExpandedName, int] = {}
    stack: list[ExpandedName] = []
    for start in edges:
        if start in order:
            continue
        order[start] = low[start] = len(order)
        stack.append(start)
        work = [(start, iter(edges[start]))]
        while work:
            name, rest = work[-1]
            child = next(rest, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == order[name]:
                    while True:
                        member = stack.pop()
                        component[member] = order[name]
                        if member == name:
                            break
            elif child not in order:
                order[child] = low[child] = len(order)
                stack.append(child)
                work.append((child, iter(edges[child])))
            elif child not in component:
                low[name] = min(low[name], order[child])
    return component

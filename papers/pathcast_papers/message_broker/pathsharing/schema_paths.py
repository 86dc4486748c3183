"""Loops and single paths of an element graph, from a DTD or from one message.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> paths = SchemaPaths(parse_dtd(
    ...     "<!ELEMENT book (section*)><!ELEMENT section (section | figure)*>"
    ...     "<!ELEMENT figure (image)><!ELEMENT image EMPTY>"
    ... ), root="book")
    >>> paths.is_on_loop(("", "section")), paths.is_on_loop(("", "figure"))
    (True, False)
    >>> paths.single_path(("", "figure"), ("", "image"))
    (('', 'image'),)
    >>> paths.single_path(("", "section"), ("", "image")) is None
    True

Source: Diao and Franklin, VLDB 2003, section 4 (DTD element graph), 5.1 (single paths).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from pathcast.schema import ElementPaths
from pathcast.schema.element_paths import _ANYTHING, ExpandedName, _reached


class SchemaPaths(ElementPaths):
    """Paths of an element graph, with its loops."""

    @classmethod
    def of_message(cls, names: Sequence[ExpandedName], parents: Sequence[int]) -> SchemaPaths:
        """The graph of the parents and children that one message has.

        Args:
            names: Name of each element, in document order; one or more.
            parents: Number of each element's parent; of the root, any negative one.
        """
        edges: dict[ExpandedName, set[ExpandedName]] = {names[0]: set()}
        for parent, child in _pairs(names, parents):
            edges.setdefault(parent, set()).add(child)
        paths = cls.__new__(cls)
        paths.root = names[0]
        paths._build(edges)
        return paths

    @cached_property
    def _component(self) -> dict[ExpandedName, int]:
        """Number of the strongly connected component of each name."""
        return _components(self._edges)

    @cached_property
    def _on_loop(self) -> frozenset[ExpandedName]:
        size = Counter(self._component.values())
        return frozenset(
            name
            for name, children in self._edges.items()
            if name in children or size[self._component[name]] > 1
        )

    @cached_property
    def looped(self) -> frozenset[ExpandedName]:
        """The elements on some loop: each can stand in itself, at any distance."""
        return self._on_loop & self.names

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
        return all(child in self.children(parent) for parent, child in _pairs(names, parents))


def _pairs(
    names: Sequence[ExpandedName], parents: Sequence[int]
) -> set[tuple[ExpandedName, ExpandedName]]:
    """The distinct pairs of a parent's and a child's name in a message."""
    return {
        (names[parent], name) for name, parent in zip(names, parents, strict=True) if parent >= 0
    }


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

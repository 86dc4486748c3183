"""The axes of XPath over a structure: where a step can lead from some places.

Example:
    >>> from pathcast.lint.structure import DOCUMENT, structure_of_dtd
    >>> from pathcast.query import parse
    >>> from pathcast.schema import parse_dtd
    >>> reach = Reach(structure_of_dtd(parse_dtd("<!ELEMENT a (b)><!ELEMENT b EMPTY>")))
    >>> [child] = parse("/*").steps
    >>> reach.step(child, frozenset({DOCUMENT}))
    frozenset({1})

It knows no predicates. What it gives contains everything that a message can have there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from pathcast.lint.structure import ANY_NAMESPACE, DOCUMENT, Structure
from pathcast.query.syntax import Axis, NameTest, NodeKind, NodeTest, Step

REACHED_MAX: Final = 50_000
"""Steps from places that are remembered; queries of one file take the same ones again and again."""


class Leaf(NamedTuple):
    """A node that is no element: an attribute, text, or something that is never denied.

    Attributes:
        kind: "attribute", "text" or "other" (comments, instructions, namespace nodes).
        place: The place of its parent.
        name: Expanded name of an attribute.
    """

    kind: str
    place: int
    name: tuple[str, str] = ("", "")


Node: TypeAlias = int | Leaf
"""A place or what stands in one."""

Nodes: TypeAlias = frozenset[Node]


class Reach:
    """Steps over one structure; what was asked for is remembered."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self._below: dict[int, frozenset[int]] = {}
        self._reached: dict[tuple[Axis, NodeTest, Nodes], Nodes] = {}

    def descendants(self, place: int) -> frozenset[int]:
        """Places inside a place."""
        if place == DOCUMENT and self.structure.source == "sample":
            return self.structure.all_places
        known = self._below.get(place)
        if known is None:
            known = self._below[place] = frozenset(self.structure.descendants([place]))
        return known

    def step(self, step: Step, contexts: Nodes) -> Nodes:
        """The elements that the axis and node test of a step reach, without its predicates."""
        key = (step.axis, step.test, contexts)
        known = self._reached.get(key)
        if known is None:
            found: set[Node] = set()
            for context in contexts:
                found |= self._along(step, context)
            if len(self._reached) >= REACHED_MAX:
                self._reached.clear()
            known = self._reached[key] = frozenset(found)
        return known

    def _along(self, step: Step, context: Node) -> set[Node]:
        axis = step.axis
        place = context if isinstance(context, int) else context.place
        if axis is Axis.ATTRIBUTE or axis is Axis.NAMESPACE:
            if not isinstance(context, int):
                return set()
            if axis is Axis.NAMESPACE:
                return {Leaf("other", place)}
            return self._attributes(step, place)
        elements, around = self._elements(axis, context, place)
        found: set[Node] = {node for node in elements if self._passes(step, node)}
        found |= {leaf for leaf in self._leaves(axis, context, around) if self._passes(step, leaf)}
        return found

    def _elements(
        self, axis: Axis, context: Node, place: int
    ) -> tuple[Iterable[int], Iterable[int]]:
        """Elements on an axis, and the places whose text may be on it."""
        structure = self.structure
        is_element = isinstance(context, int)
        below = self.descendants(place) if is_element else frozenset()
        match axis:
            case Axis.CHILD:
                return (structure.places[place].children, [place]) if is_element else ((), ())
            case Axis.DESCENDANT:
                return below, ({place} | below if is_element else ())
            case Axis.DESCENDANT_OR_SELF:
                return ({place} | below, {place} | below) if is_element else ((), ())
            case Axis.SELF:
                return ([place] if is_element else ()), ()
            case Axis.PARENT:
                return (structure.places[place].parents if is_element else [place]), ()
            case Axis.ANCESTOR | Axis.ANCESTOR_OR_SELF:
                above = structure.ancestors([place])
                has_self = not is_element or axis is Axis.ANCESTOR_OR_SELF
                return (above | {place} if has_self else above), ()
            case Axis.FOLLOWING_SIBLING | Axis.PRECEDING_SIBLING:
                parents = structure.places[place].parents if is_element else {place}
                beside = {child for at in parents for child in structure.places[at].children}
                return beside, parents
            case _:
                return structure.all_places, structure.all_places

    def _leaves(self, axis: Axis, context: Node, around: Iterable[int]) -> Iterable[Leaf]:
        """Text and other nodes on an axis."""
        if not isinstance(context, int) and axis in (
            Axis.SELF,
            Axis.DESCENDANT_OR_SELF,
            Axis.ANCESTOR_OR_SELF,
        ):
            yield context
        for place in around:
            if self.structure.places[place].has_text:
                yield Leaf("text", place)
            yield Leaf("other", place)

    def _attributes(self, step: Step, place: int) -> set[Node]:
        found: set[Node] = set()
        for name in self.structure.places[place].attributes:
            leaf = Leaf("attribute", place, name)
            if self._passes(step, leaf):
                found.add(leaf)
        return found

    def _passes(self, step: Step, node: Node) -> bool:
        """Whether a node passes the node test of a step."""
        test = step.test
        if not isinstance(test, NameTest):
            if test.kind is NodeKind.NODE:
                return True
            if test.kind is NodeKind.TEXT:
                return not isinstance(node, int) and node.kind == "text"
            return not isinstance(node, int) and node.kind == "other"
        if isinstance(node, int):
            if node == DOCUMENT or step.axis is Axis.ATTRIBUTE:
                return False
            place = self.structure.places[node]
            return _is_named((place.uri, place.local), test)
        return (
            node.kind == "attribute" and step.axis is Axis.ATTRIBUTE and _is_named(node.name, test)
        )


def _is_named(name: tuple[str, str], test: NameTest) -> bool:
    uri, local = name
    if test.local not in (None, local):
        return False
    is_any = test.prefix == "*" or (test.local is None and test.uri is None)
    return is_any or uri == ANY_NAMESPACE or uri == (test.uri or "")

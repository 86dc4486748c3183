"""The element graph of a DTD: which element may stand in which, and with which attributes.

Example:
    >>> leaf = Element("b", ContentKind.TEXT, None, ())
    >>> content = NameParticle("b", Occurrence.ANY)
    >>> graph = ElementGraph((Element("a", ContentKind.CHILDREN, content, ()), leaf))
    >>> graph["a"].children
    (Child(name='b', required=False, repeatable=True),)
    >>> graph.root_candidates
    ('a',)

This module is plain data: it reads no DTD (`pathcast.schema.dtd` does) and validates no document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from pathcast.errors import SchemaError


class Occurrence(Enum):
    """How often a particle may occur; the value is the DTD's sign."""

    ONCE = ""
    OPTIONAL = "?"
    ANY = "*"
    MANY = "+"

    @property
    def is_required(self) -> bool:
        """At least one."""
        return self in (Occurrence.ONCE, Occurrence.MANY)

    @property
    def is_repeatable(self) -> bool:
        """More than one is allowed."""
        return self in (Occurrence.ANY, Occurrence.MANY)


class ContentKind(Enum):
    """The four kinds of content of XML 1.0, 3.2, with text alone told apart from mixed."""

    EMPTY = "empty"
    ANY = "any"
    TEXT = "text"
    MIXED = "mixed"
    CHILDREN = "children"

    @property
    def has_text(self) -> bool:
        """Character data is allowed."""
        return self in (ContentKind.ANY, ContentKind.TEXT, ContentKind.MIXED)


class AttributeType(Enum):
    """Attribute types of XML 1.0, 3.3.1."""

    CDATA = "cdata"
    ID = "id"
    IDREF = "idref"
    IDREFS = "idrefs"
    ENTITY = "entity"
    ENTITIES = "entities"
    NMTOKEN = "nmtoken"
    NMTOKENS = "nmtokens"
    ENUMERATION = "enumeration"
    NOTATION = "notation"


class AttributeDefault(Enum):
    """Attribute defaults of XML 1.0, 3.3.2. `VALUE` is a default value without keyword."""

    REQUIRED = "required"
    IMPLIED = "implied"
    FIXED = "fixed"
    VALUE = "none"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A declared attribute.

    Attributes:
        name: As written, with its prefix.
        type: Declared type.
        default: Kind of default.
        value: Default or fixed value.
        enumeration: Allowed values of an enumeration or notation, in declared order.
    """

    name: str
    type: AttributeType
    default: AttributeDefault
    value: str | None = None
    enumeration: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NameParticle:
    """An element name in a content model."""

    name: str
    occurrence: Occurrence


@dataclass(frozen=True, slots=True)
class SequenceParticle:
    """`(a, b)` in a content model."""

    particles: tuple[Particle, ...]
    occurrence: Occurrence


@dataclass(frozen=True, slots=True)
class ChoiceParticle:
    """`(a | b)` in a content model. In mixed content `#PCDATA` is left out of the alternatives."""

    particles: tuple[Particle, ...]
    occurrence: Occurrence


Particle: TypeAlias = NameParticle | SequenceParticle | ChoiceParticle
"""A content particle."""


@dataclass(frozen=True, slots=True)
class Child:
    """An element that may stand in another one.

    Attributes:
        name: Its name.
        required: Every instance of the parent has one.
        repeatable: An instance of the parent may have several.
    """

    name: str
    required: bool
    repeatable: bool


@dataclass(frozen=True)
class Element:
    """A declared element.

    Attributes:
        name: As written, with its prefix.
        kind: Kind of content.
        content: Content model; None for `EMPTY`, `ANY` and text alone.
        attributes: In declared order.
    """

    name: str
    kind: ContentKind
    content: Particle | None
    attributes: tuple[Attribute, ...]

    @cached_property
    def children(self) -> tuple[Child, ...]:
        """Every element that may stand in this one, once, in the order of the content model.

        An element declared `ANY` has none here: it would make every path possible.
        """
        if self.content is None:
            return ()
        bounds = _bounds(self.content)
        return tuple(Child(name, low > 0, high > 1) for name, (low, high) in bounds.items())


def _bounds(particle: Particle) -> dict[str, tuple[int, int]]:
    """Name -> fewest and most occurrences in the particle, counted to 2."""
    if isinstance(particle, NameParticle):
        inner = {particle.name: (1, 1)}
    else:
        found: dict[str, list[tuple[int, int]]] = {}
        for part in particle.particles:
            for name, pair in _bounds(part).items():
                found.setdefault(name, []).append(pair)
        if isinstance(particle, SequenceParticle):
            inner = {
                name: (sum(low for low, _ in pairs), sum(high for _, high in pairs))
                for name, pairs in found.items()
            }
        else:
            # An alternative without the name has none of it.
            inner = {
                name: (
                    min(low for low, _ in pairs) if len(pairs) == len(particle.particles) else 0,
                    max(high for _, high in pairs),
                )
                for name, pairs in found.items()
            }
    occurrence = particle.occurrence
    return {
        name: (
            min(low, 2) if occurrence.is_required else 0,
            2 if occurrence.is_repeatable else min(high, 2),
        )
        for name, (low, high) in inner.items()
    }


@dataclass(frozen=True)
class ElementGraph:
    """All elements of a DTD.

    Attributes:
        declared: The elements in declared order.
        unread_entities: Names of external parameter entities that were not read; what they
            declare is missing.

    Example:
        >>> graph = ElementGraph((Element("a", ContentKind.TEXT, None, ()),))
        >>> "a" in graph, len(graph), graph.recursive_elements
        (True, 1, frozenset())
    """

    declared: tuple[Element, ...]
    unread_entities: tuple[str, ...] = ()
    _by_name: Mapping[str, Element] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {element.name: element for element in self.declared}
        if not by_name:
            raise SchemaError("schema.unusable", reason="the DTD declares no element")
        object.__setattr__(self, "_by_name", MappingProxyType(by_name))

    def __getitem__(self, name: str) -> Element:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Element]:
        return iter(self.declared)

    def __len__(self) -> int:
        return len(self.declared)

    @cached_property
    def heights(self) -> Mapping[str, int]:
        """Name -> levels of its smallest valid subtree, itself counted.

        Names that have none, as they demand themselves or something undeclared, are not here.
        """
        heights: dict[str, int] = {}
        changed = True
        while changed:
            changed = False
            for element in self.declared:
                inner = 0 if element.content is None else _height(element.content, heights)
                if inner is not None and heights.get(element.name, inner + 2) > inner + 1:
                    heights[element.name] = inner + 1
                    changed = True
        return MappingProxyType(heights)

    @cached_property
    def child_names(self) -> Mapping[str, tuple[str, ...]]:
        """Name -> the elements that can stand in it in some valid document."""
        return MappingProxyType(
            {
                element.name: tuple(
                    child.name for child in element.children if child.name in self.heights
                )
                for element in self.declared
            }
        )

    @cached_property
    def recursive_elements(self) -> frozenset[str]:
        """Elements that can stand in themselves, at any distance."""
        return frozenset(
            element.name
            for element in self.declared
            if element.name in self._descendants(element.name)
        )

    @cached_property
    def root_candidates(self) -> tuple[str, ...]:
        """Elements that stand in no other one, best first: the more it can hold, the better.

        Where every element stands in another one, those that can hold the most.
        """
        inner = {
            name for parent, names in self.child_names.items() for name in names if name != parent
        }
        usable = [element.name for element in self.declared if element.name in self.heights]
        reach = {name: len(self._descendants(name) | {name}) for name in usable}
        outer = [name for name in usable if name not in inner]
        if not outer and usable:
            most = max(reach.values())
            outer = [name for name in usable if reach[name] == most]
        return tuple(sorted(outer, key=lambda name: -reach[name]))

    def root(self, name: str | None = None) -> Element:
        """The element with this name, or the best root candidate.

        Raises:
            SchemaError: There is none, or nothing valid can be made of it.
        """
        if name is None:
            if not self.root_candidates:
                raise SchemaError(
                    "schema.unusable",
                    reason="no element of the DTD can be completed: each demands itself or "
                    "something that is not declared",
                )
            return self._by_name[self.root_candidates[0]]
        if name not in self._by_name:
            raise SchemaError("schema.unusable", reason=f"the DTD declares no element {name}")
        if name not in self.heights:
            raise SchemaError(
                "schema.unusable",
                reason=f"element {name} cannot be completed: it demands itself or something that "
                "is not declared",
            )
        return self._by_name[name]

    def _descendants(self, name: str) -> set[str]:
        found: set[str] = set()
        waiting = list(self.child_names[name])
        while waiting:
            here = waiting.pop()
            if here not in found:
                found.add(here)
                waiting.extend(self.child_names[here])
        return found


def _height(particle: Particle, heights: Mapping[str, int]) -> int | None:
    """Levels the particle needs at least; None while nothing can complete it."""
    if not particle.occurrence.is_required:
        return 0
    if isinstance(particle, NameParticle):
        return heights.get(particle.name)
    return combined_height(particle, [_height(part, heights) for part in particle.particles])


def combined_height(
    particle: SequenceParticle | ChoiceParticle, inner: Sequence[int | None]
) -> int | None:
    """Levels that a group needs, from those that its members need."""
    known = [height for height in inner if height is not None]
    if isinstance(particle, ChoiceParticle):
        return min(known, default=None)
    return max(known, default=0) if len(known) == len(inner) else None


def particle_height(particle: Particle, heights: Mapping[str, int]) -> int | None:
    """Levels that one occurrence of the particle needs at least; None if it cannot be completed.

    Example:
        >>> particle_height(NameParticle("b", Occurrence.ANY), {"b": 1})
        1
    """
    if isinstance(particle, NameParticle):
        return heights.get(particle.name)
    return combined_height(particle, [_height(part, heights) for part in particle.particles])

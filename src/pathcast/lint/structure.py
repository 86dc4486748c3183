"""The structure of messages: from a sample of them, or from a DTD.

A structure is a graph of *places*. Place 0 is the document node; every other one stands for the
elements that occur there: in a sample all elements with the same path of names from the root (a
path summary, so that everything in it did occur), in a DTD all elements of one declaration.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> dtd = "<!ELEMENT a (b*)><!ELEMENT b (#PCDATA)><!ATTLIST b k (x|y) 'x'>"
    >>> structure = structure_of_dtd(parse_dtd(dtd))
    >>> [(place.local, sorted(place.children)) for place in structure.places]
    [('', [1]), ('a', [2]), ('b', [])]
    >>> sorted(structure.places[2].attributes[("", "k")].values)
    ['x', 'y']

Of a sample it keeps the values of attributes, of text nodes and of elements that hold no elements,
as long as they are few and short: a list of choices, not prose. It knows nothing of order, of how
often something occurs, or of what occurs together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, TypeAlias

from pathcast.errors import SchemaError
from pathcast.message import ExpandedName, MessageTree
from pathcast.schema import Attribute, AttributeDefault, ContentKind, ElementGraph

DOCUMENT: Final = 0
"""The place of the document node."""

PLACES_MAX: Final = 200_000
"""Places of a sample; a sample with more says little by its paths."""

VALUES_MAX: Final = 40
"""Distinct values of an attribute or element that are kept; one with more is no list of choices."""

VALUE_LENGTH_MAX: Final = 120
"""Characters of a value that is kept; one with more is prose."""

ANY_NAMESPACE: Final = "*"
"""The namespace of a name whose namespace is not known: a DTD need not say it."""

Source: TypeAlias = Literal["sample", "dtd"]
"""The source of a structure."""


@dataclass(slots=True)
class ValueFacts:
    """Known facts of the values at a place: of an attribute, of text nodes, of elements.

    Attributes:
        values: All values it can have, or has in the sample; None if they cannot be told.
        count: How often an attribute occurs in the sample; 0 for a DTD, and for what is none.
    """

    values: frozenset[str] | None
    count: int = 0

    def add(self, value: str) -> None:
        """One more value of the sample."""
        if self.values is None or value in self.values:
            return
        is_kept = len(self.values) < VALUES_MAX and len(value) <= VALUE_LENGTH_MAX
        self.values = self.values | {value} if is_kept else None


@dataclass(slots=True)
class ElementPlace:
    """Elements that occur at one place.

    Attributes:
        uri: Namespace, or `ANY_NAMESPACE`.
        local: Local name; "" for the document node.
        parents: Places it occurs in.
        children: Places that occur in it.
        attributes: Expanded name -> facts.
        content: The string-values of the elements; not to be told for those that hold elements.
        texts: The values of the text nodes.
        has_text: Whether there are text nodes.
        count: Elements in the sample; 0 for a DTD.
    """

    uri: str
    local: str
    parents: set[int] = field(default_factory=set)
    children: dict[int, None] = field(default_factory=dict)
    attributes: dict[ExpandedName, ValueFacts] = field(default_factory=dict)
    content: ValueFacts = field(default_factory=lambda: ValueFacts(None))
    texts: ValueFacts = field(default_factory=lambda: ValueFacts(None))
    has_text: bool = False
    count: int = 0


@dataclass(frozen=True)
class Structure:
    """The elements, attributes and values that messages can have.

    Attributes:
        source: What it was made of.
        places: The places; the document node first.
        messages: Messages in the sample; 0 for a DTD.
        roots: Names of the root elements.
        notes: What of the source could not be read or used.
    """

    source: Source
    places: Sequence[ElementPlace]
    messages: int = 0
    roots: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def described(self) -> str:
        """The source in words: "the sample", "the DTD"."""
        return "the sample" if self.source == "sample" else "the DTD"

    @cached_property
    def elements(self) -> Mapping[ExpandedName, int]:
        """Expanded name of an element -> how often it occurs (0 for a DTD)."""
        found: Counter[ExpandedName] = Counter()
        for place in self.places[1:]:
            found[(place.uri, place.local)] += place.count
        return found

    @cached_property
    def attributes(self) -> Mapping[ExpandedName, int]:
        """Expanded name of an attribute -> how often it occurs (0 for a DTD)."""
        found: Counter[ExpandedName] = Counter()
        for place in self.places:
            for name, facts in place.attributes.items():
                found[name] += facts.count
        return found

    @cached_property
    def all_places(self) -> frozenset[int]:
        """Every place but the document node."""
        return frozenset(range(1, len(self.places)))

    def descendants(self, starts: Iterable[int]) -> set[int]:
        """Places inside some places, at any distance."""
        found: set[int] = set()
        waiting = list(starts)
        while waiting:
            for child in self.places[waiting.pop()].children:
                if child not in found:
                    found.add(child)
                    waiting.append(child)
        return found

    def ancestors(self, starts: Iterable[int]) -> set[int]:
        """Places around some places, at any distance, the document node included."""
        found: set[int] = set()
        waiting = list(starts)
        while waiting:
            for parent in self.places[waiting.pop()].parents:
                if parent not in found:
                    found.add(parent)
                    waiting.append(parent)
        return found

    def path(self, place: int) -> str:
        """One path from the root to a place, for messages."""
        names: list[str] = []
        seen: set[int] = set()
        while place != DOCUMENT and place not in seen:
            seen.add(place)
            names.append(self.places[place].local)
            place = min(self.places[place].parents, default=DOCUMENT)
        return "/" + "/".join(reversed(names))


def structure_of_sample(trees: Iterable[MessageTree], notes: Sequence[str] = ()) -> Structure:
    """The paths that occur in some messages.

    Args:
        trees: The messages; read one after the other and not kept.
        notes: What could not be read.

    Raises:
        SchemaError: There is no message.

    Cost: in proportion to the messages.

    Example:
        >>> from pathcast.kernel import parse
        >>> from pathcast.limits import Limits
        >>> found = structure_of_sample([parse(b"<a><b/><b k='1'/></a>", Limits())])
        >>> dict(found.elements), dict(found.attributes)
        ({('', 'a'): 1, ('', 'b'): 2}, {('', 'k'): 1})
    """
    summary = _Summary()
    for tree in trees:
        summary.add(tree)
    if not summary.messages:
        raise SchemaError("schema.unusable", reason="the sample holds no message")
    roots = tuple(summary.places[at].local for at in summary.places[DOCUMENT].children)
    all_notes = list(notes)
    if summary.is_full:
        all_notes.append(f"the sample has more than {PLACES_MAX} distinct paths; some are left out")
    return Structure("sample", summary.places, summary.messages, roots, tuple(all_notes))


class _Summary:
    def __init__(self) -> None:
        self.places = [ElementPlace("", "")]
        self.index: dict[tuple[int, ExpandedName], int] = {}
        self.messages = 0
        self.is_full = False

    def add(self, tree: MessageTree) -> None:
        self.messages += 1
        at: list[ElementPlace] = []
        numbers: list[int] = []
        starts = tree.attribute_start
        for element, name in enumerate(tree.name):
            parent = DOCUMENT if element == 0 else numbers[tree.parent[element]]
            numbers.append(self.place(parent, name))
            place = self.places[numbers[-1]]
            at.append(place)
            place.count += 1
            for number in range(starts[element], starts[element + 1]):
                facts = place.attributes.get(tree.attribute_name[number])
                if facts is None:
                    facts = place.attributes[tree.attribute_name[number]] = _no_values()
                facts.count += 1
                facts.add(tree.attribute_value[number])
            if place.content.values is None:
                continue
            if tree.element_end[element] > element + 1:
                place.content.values = None
            else:
                inside = slice(tree.text_start[element], tree.text_end[element])
                place.content.add("".join(tree.text_value[inside]))
        for element, value in zip(tree.text_parent, tree.text_value, strict=True):
            place = at[element]
            place.has_text = True
            if place.texts.values is not None:
                place.texts.add(value)

    def place(self, parent: int, name: ExpandedName) -> int:
        known = self.index.get((parent, name))
        if known is not None:
            return known
        if len(self.places) >= PLACES_MAX:
            # What is left out joins its parent: nothing is said to be impossible because of it.
            self.is_full = True
            return parent or 1
        content, texts = _no_values(), _no_values()
        self.places.append(ElementPlace(*name, parents={parent}, content=content, texts=texts))
        number = len(self.places) - 1
        self.places[parent].children[number] = None
        self.index[parent, name] = number
        return number


def _no_values() -> ValueFacts:
    """The facts of what has not occurred yet."""
    return ValueFacts(frozenset())


def structure_of_dtd(graph: ElementGraph, roots: Collection[str] = ()) -> Structure:
    """The structure that a DTD allows.

    Args:
        graph: The DTD.
        roots: Names of root elements, as the DTD writes them; the elements that stand in no other
            one if not given.

    Raises:
        SchemaError: A root is not declared.
    """
    namespaces = _declared_namespaces(graph)
    places = [ElementPlace("", "")]
    number = {element.name: at for at, element in enumerate(graph, start=1)}
    for element in graph:
        uri, local = _expanded(element.name, namespaces, is_element=True)
        places.append(ElementPlace(uri, local))
    for element in graph:
        place = places[number[element.name]]
        is_any = element.kind is ContentKind.ANY
        names = tuple(number) if is_any else tuple(child.name for child in element.children)
        for name in names:
            if name in number:
                place.children[number[name]] = None
                places[number[name]].parents.add(number[element.name])
        place.has_text = element.kind.has_text
        for attribute in element.attributes:
            if attribute.name != "xmlns" and not attribute.name.startswith("xmlns:"):
                name_ = _expanded(attribute.name, namespaces, is_element=False)
                place.attributes[name_] = ValueFacts(_values(attribute))
    chosen = tuple(roots) or graph.root_candidates or tuple(number)
    for root in chosen:
        if root not in number:
            raise SchemaError("schema.unusable", reason=f"the DTD declares no element {root}")
        places[DOCUMENT].children[number[root]] = None
        places[number[root]].parents.add(DOCUMENT)
    notes = [f"the DTD's module %{name}; was not read" for name in graph.unread_entities]
    return Structure("dtd", places, 0, chosen, tuple(notes))


def _values(attribute: Attribute) -> frozenset[str] | None:
    if attribute.enumeration:
        return frozenset(attribute.enumeration)
    if attribute.default is AttributeDefault.FIXED and attribute.value is not None:
        return frozenset({attribute.value})
    return None


def _declared_namespaces(graph: ElementGraph) -> dict[str, str]:
    """Prefix -> URI, from fixed or default values of `xmlns` attributes; "" for the default."""
    found: dict[str, str] = {"xml": "http://www.w3.org/XML/1998/namespace"}
    for element in graph:
        for attribute in element.attributes:
            if attribute.value is None:
                continue
            if attribute.name == "xmlns":
                found.setdefault("", attribute.value)
            elif attribute.name.startswith("xmlns:"):
                found.setdefault(attribute.name.removeprefix("xmlns:"), attribute.value)
    return found


def _expanded(name: str, namespaces: Mapping[str, str], *, is_element: bool) -> ExpandedName:
    prefix, colon, local = name.partition(":")
    if colon:
        return namespaces.get(prefix, ANY_NAMESPACE), local
    return (namespaces.get("", "") if is_element else ""), name


def names_with_local(names: Mapping[ExpandedName, int], local: str) -> Iterator[ExpandedName]:
    """The expanded names that have a local name."""
    return (name for name in names if name[1] == local)

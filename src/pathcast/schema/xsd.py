"""An XML Schema, from a file or from text, as an element graph.

Schemas are read by the package `xmlschema` (optional dependency, extra `xsd`). An element graph
knows elements by name; a schema may give one name several types, in several places. Such an element
may hold here whatever it may hold in one of them.

Example:
    >>> schema = parse_xsd('''
    ...   <xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:n"
    ...       elementFormDefault="qualified">
    ...     <xs:element name="a"><xs:complexType><xs:sequence>
    ...       <xs:element name="b" type="xs:int" maxOccurs="unbounded"/>
    ...     </xs:sequence><xs:attribute name="k" use="required"/></xs:complexType></xs:element>
    ...   </xs:schema>''')
    >>> paths = schema.paths(root=("urn:n", "a"))
    >>> paths.children(("urn:n", "a"))
    (('urn:n', 'b'),)

Types that a message chooses itself (`xsi:type`) and elements that a wildcard lets in without
declaring them are not in it, and a message may have such. Nothing is fetched from a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pathcast.errors import SchemaError, extra
from pathcast.schema.element_paths import ElementPaths, ExpandedName
from pathcast.schema.graph import (
    Attribute,
    AttributeDefault,
    AttributeType,
    ChoiceParticle,
    ContentKind,
    Element,
    ElementGraph,
    NameParticle,
    Occurrence,
    Particle,
    SequenceParticle,
)

_ATTRIBUTE_TYPES: Final = {
    "ID": AttributeType.ID,
    "IDREF": AttributeType.IDREF,
    "IDREFS": AttributeType.IDREFS,
    "NMTOKEN": AttributeType.NMTOKEN,
    "NMTOKENS": AttributeType.NMTOKENS,
}


@dataclass(frozen=True, slots=True)
class XsdSchema:
    """An element graph, and what the prefixes of its names stand for.

    Attributes:
        graph: Names are `prefix:local`, or `local` in no namespace; prefixes are made up.
        namespaces: Prefix -> namespace URI.
    """

    graph: ElementGraph
    namespaces: Mapping[str, str]

    def paths(self, *, root: ExpandedName | None = None) -> ElementPaths:
        """The paths that the schema allows.

        Raises:
            SchemaError: It declares no element `root`.
        """
        name = None if root is None else _written(root, self.namespaces)
        return ElementPaths(self.graph, root=name, namespaces=self.namespaces)


def read_xsd(path: str | os.PathLike[str]) -> XsdSchema:
    """The element graph of a schema file.

    Args:
        path: The file; what it includes and imports is read if it is a local file.

    Raises:
        SchemaError: The file cannot be read or is not an XML Schema.
        MissingDependencyError: xmlschema is not installed.

    Cost: that of `xmlschema`: seconds for the largest industry schemas.
    """
    if not Path(path).is_file():
        raise SchemaError("schema.xsd", path=str(path), reason="there is no such file")
    return _graph_of(_opened(os.fspath(path), os.fspath(path)))


def parse_xsd(text: str, *, reads_files: bool = True) -> XsdSchema:
    """The element graph of a schema; otherwise as `read_xsd`.

    Args:
        text: The schema.
        reads_files: Whether local files are read that it includes or imports; one that comes from a
            stranger must not name files.
    """
    if not text.lstrip().startswith("<"):
        raise SchemaError("schema.xsd", path="the text", reason="it is no XML")
    return _graph_of(_opened(text, "the text", "local" if reads_files else "none"))


def _opened(source: str, path: str, allow: str = "local") -> Any:
    with extra("xsd", "reading XML Schema"):
        import xmlschema
    try:
        return xmlschema.XMLSchema(source, allow=allow, defuse="always")
    except (xmlschema.XMLSchemaException, OSError, SyntaxError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SchemaError("schema.xsd", path=path, reason=reason) from error


def _graph_of(schema: Any) -> XsdSchema:
    return _Reader().read(schema)


def _written(name: ExpandedName, namespaces: Mapping[str, str]) -> str:
    uri, local = name
    prefix = next((prefix for prefix, each in namespaces.items() if each == uri), "?")
    return f"{prefix}:{local}" if prefix else local


class _Reader:
    def __init__(self) -> None:
        self.namespaces = {"": ""}
        self.found: dict[str, list[Element]] = {}
        self.waiting: list[Any] = []
        self.seen: set[tuple[str, int]] = set()

    def read(self, schema: Any) -> XsdSchema:
        self.waiting = sorted(schema.maps.elements.values(), key=lambda element: element.name)
        while self.waiting:
            self.element(self.waiting.pop())
        elements = tuple(_united(name, each) for name, each in sorted(self.found.items()))
        if not elements:
            raise SchemaError("schema.unusable", reason="the schema declares no element")
        return XsdSchema(ElementGraph(elements), self.namespaces)

    def name(self, qualified: str) -> str:
        """`{uri}local` with a prefix."""
        uri, _, local = qualified.rpartition("}")
        uri = uri.removeprefix("{")
        if uri not in self.namespaces.values():
            self.namespaces[f"n{len(self.namespaces)}"] = uri
        return _written((uri, local), self.namespaces)

    def element(self, element: Any) -> None:
        name = self.name(element.name)
        if (name, id(element.type)) in self.seen:
            return
        self.seen.add((name, id(element.type)))
        kind, content = self.content(element.type)
        attributes = tuple(self.attributes(element))
        self.found.setdefault(name, []).append(Element(name, kind, content, attributes))

    def content(self, type_: Any) -> tuple[ContentKind, Particle | None]:
        if type_.is_simple() or type_.has_simple_content():
            return ContentKind.TEXT, None
        if any(
            type(each).__name__.endswith("AnyElement") for each in type_.content.iter_elements()
        ):
            self.waiting += _declared(type_.content)
            return ContentKind.ANY, None
        content = self.group(type_.content)
        if type_.mixed:
            return (ContentKind.TEXT, None) if content is None else (ContentKind.MIXED, content)
        return (ContentKind.EMPTY, None) if content is None else (ContentKind.CHILDREN, content)

    def group(self, group: Any) -> Particle | None:
        if group.max_occurs == 0:
            return None
        parts = [part for each in group if (part := self.particle(each)) is not None]
        if not parts:
            return None
        occurrence = _occurrence(group)
        if group.model == "choice":
            if len(parts) < len(group):
                occurrence = _with_none(occurrence)
            return ChoiceParticle(tuple(parts), occurrence)
        return SequenceParticle(tuple(parts), occurrence)

    def particle(self, particle: Any) -> Particle | None:
        if hasattr(particle, "model"):
            return self.group(particle)
        if particle.max_occurs == 0:
            return None
        names = [NameParticle(self.name(particle.name), Occurrence.ONCE)]
        self.waiting.append(particle)
        for substitute in sorted(particle.iter_substitutes(), key=lambda element: element.name):
            self.waiting.append(substitute)
            names.append(NameParticle(self.name(substitute.name), Occurrence.ONCE))
        if len(names) == 1:
            return NameParticle(names[0].name, _occurrence(particle))
        return ChoiceParticle(tuple(names), _occurrence(particle))

    def attributes(self, element: Any) -> Iterator[Attribute]:
        for qualified, attribute in element.attributes.items():
            if qualified is None:
                continue
            value = attribute.fixed if attribute.fixed is not None else attribute.default
            default = AttributeDefault.IMPLIED if value is None else AttributeDefault.VALUE
            if attribute.fixed is not None:
                default = AttributeDefault.FIXED
            elif attribute.use == "required":
                default = AttributeDefault.REQUIRED
            type_ = _ATTRIBUTE_TYPES.get(attribute.type.local_name or "", AttributeType.CDATA)
            yield Attribute(self.name(qualified), type_, default, value)


def _declared(group: Any) -> Iterator[Any]:
    return (each for each in group.iter_elements() if each.name is not None)


def _occurrence(particle: Any) -> Occurrence:
    is_repeatable = particle.max_occurs is None or particle.max_occurs > 1
    if particle.min_occurs > 0:
        return Occurrence.MANY if is_repeatable else Occurrence.ONCE
    return Occurrence.ANY if is_repeatable else Occurrence.OPTIONAL


def _with_none(occurrence: Occurrence) -> Occurrence:
    return Occurrence.ANY if occurrence.is_repeatable else Occurrence.OPTIONAL


def _united(name: str, elements: list[Element]) -> Element:
    """Elements of one name as one that may hold what any of them may."""
    first, *others = dict.fromkeys(elements)
    if not others:
        return first
    every = (first, *others)
    attributes = {attribute.name: attribute for each in every for attribute in each.attributes}
    if any(each.kind is ContentKind.ANY for each in every):
        return Element(name, ContentKind.ANY, None, tuple(attributes.values()))
    contents = tuple(dict.fromkeys(each.content for each in every if each.content is not None))
    has_text = any(each.kind.has_text for each in every)
    if not contents:
        kind = ContentKind.TEXT if has_text else ContentKind.EMPTY
        return Element(name, kind, None, tuple(attributes.values()))
    kind = ContentKind.MIXED if has_text else ContentKind.CHILDREN
    content = ChoiceParticle(contents, Occurrence.OPTIONAL)
    return Element(name, kind, content, tuple(attributes.values()))

"""A DTD, from a file or from text, as an element graph.

The declarations are read by lxml (optional dependency, extra `workload`).

Example:
    >>> graph = parse_dtd("<!ELEMENT a (b*)><!ELEMENT b (#PCDATA)><!ATTLIST b k (x|y) 'x'>")
    >>> [child.name for child in graph["a"].children], graph["b"].attributes[0].enumeration
    (['b'], ('x', 'y'))

It reads no XSD, fetches nothing from a network, and does not validate documents.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from pathcast.errors import SchemaError, extra
from pathcast.schema.external import decode, encoded, read_text, with_modules
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

_OCCURRENCES = {
    "once": Occurrence.ONCE,
    "opt": Occurrence.OPTIONAL,
    "mult": Occurrence.ANY,
    "plus": Occurrence.MANY,
}
# lxml gives the names of a content model without their prefixes. So a colon becomes another
# character that names may hold, and turns back in whatever is read.
_COLONS = "\u203f\u2040\u00b7"


def read_dtd(path: str | os.PathLike[str]) -> ElementGraph:
    """The element graph of a DTD file.

    Args:
        path: File with the declarations of an external subset. Modules that it names by a relative
            path are read from beside it or below; others are left out and named in
            `unread_entities`.

    Raises:
        SchemaError: The file cannot be read or is not a DTD.
        MissingDependencyError: lxml is not installed.

    Cost: About 10 ms for NITF (83 KB, 123 elements).
    """
    file = Path(path)
    return _graph_of(read_text(file), file.parent, str(file))


def parse_dtd(text: str | bytes, *, name: str = "the text") -> ElementGraph:
    """The element graph of the declarations in a text.

    Args:
        text: Declarations of an external subset. No file is read, whatever they name.
        name: What errors call the DTD.

    Raises:
        SchemaError: The text is not a DTD.
        MissingDependencyError: lxml is not installed.
    """
    decoded = decode(encoded(text, name) if isinstance(text, str) else text, name)
    return _graph_of(decoded, None, name)


def _graph_of(text: str, directory: Path | None, path: str) -> ElementGraph:
    with extra("workload", "reading a DTD"):
        from lxml import etree
    resolved = with_modules(text, directory, path)
    colon = next((char for char in _COLONS if char not in resolved.text), None)
    if colon is None:
        raise SchemaError("schema.unreadable", path=path, reason=f"it uses all of {_COLONS}")
    source = io.BytesIO(resolved.text.replace(":", colon).encode())
    try:
        dtd = etree.DTD(source)
    except etree.LxmlError as error:
        raise SchemaError("schema.unreadable", path=path, reason=_reason(error)) from error
    names = _Names(colon)
    elements = tuple(names.element(declaration) for declaration in dtd.iterelements())
    if not elements:
        raise SchemaError("schema.unreadable", path=path, reason="it declares no element")
    return ElementGraph(elements, resolved.unread)


def _reason(error: Any) -> str:
    entry = next((entry for entry in error.error_log if entry.line > 0), None)
    return str(error) if entry is None else f"line {entry.line}: {entry.message}"


class _Names:
    """Turns what lxml read into the graph's types, and colons back into colons."""

    def __init__(self, colon: str) -> None:
        self._colon = colon

    def element(self, declaration: Any) -> Element:
        kind = ContentKind.CHILDREN
        content: Particle | None = None
        match declaration.type:
            case "empty":
                kind = ContentKind.EMPTY
            case "any":
                kind = ContentKind.ANY
            case "mixed":
                content = self._mixed(declaration.content)
                kind = ContentKind.TEXT if content is None else ContentKind.MIXED
            case "element":
                content = self._particle(declaration.content)
            case _:
                # An ATTLIST without ELEMENT: nothing is known of the content.
                kind = ContentKind.ANY
        attributes = tuple(self._attribute(attribute) for attribute in declaration.iterattributes())
        return Element(self._text(declaration.name), kind, content, attributes)

    def _text(self, text: str) -> str:
        return text.replace(self._colon, ":")

    def _attribute(self, attribute: Any) -> Attribute:
        value = attribute.default_value
        return Attribute(
            self._text(attribute.name),
            AttributeType(attribute.type),
            AttributeDefault(attribute.default),
            None if value is None else self._text(value),
            tuple(self._text(text) for text in attribute.itervalues()),
        )

    def _mixed(self, node: Any) -> Particle | None:
        if node.type == "pcdata":
            return None
        names = [part for part in self._spine(node) if part.type == "element"]
        particles = tuple(NameParticle(self._text(part.name), Occurrence.ONCE) for part in names)
        return ChoiceParticle(particles, Occurrence.ANY) if particles else None

    def _particle(self, node: Any) -> Particle:
        occurrence = _OCCURRENCES[node.occur]
        if node.type == "element":
            return NameParticle(self._text(node.name), occurrence)
        particles = tuple(self._particle(part) for part in self._spine(node))
        group = SequenceParticle if node.type == "seq" else ChoiceParticle
        return group(particles, occurrence)

    @staticmethod
    def _spine(node: Any) -> list[Any]:
        """Members of a group, which lxml gives as pairs nested to the right."""
        parts = [node.left]
        rest = node.right
        while rest is not None and rest.type == node.type and rest.occur == "once":
            parts.append(rest.left)
            rest = rest.right
        if rest is not None:
            parts.append(rest)
        return [part for part in parts if part is not None]

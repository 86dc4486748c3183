"""Schemas: a DTD or an XML Schema as an element graph, and what it says of loops and paths.

Example:
    >>> graph = parse_dtd("<!ELEMENT note (para+)><!ELEMENT para (#PCDATA)>")
    >>> graph.root_candidates, len(graph)
    (('note',), 2)

It validates no message.
"""

from pathcast.schema.dtd import parse_dtd, read_dtd
from pathcast.schema.element_paths import ElementPaths, ExpandedName
from pathcast.schema.expansion import Expansion, LabelPath, PathStep, Way, expand
from pathcast.schema.graph import (
    Attribute,
    AttributeDefault,
    AttributeType,
    Child,
    ChoiceParticle,
    ContentKind,
    Element,
    ElementGraph,
    NameParticle,
    Occurrence,
    Particle,
    SequenceParticle,
    particle_height,
)
from pathcast.schema.occurrences import MANY, PathOccurrences, SchemaStep
from pathcast.schema.validation import MessageValidator, ValidationFault, is_xsd, validator_of
from pathcast.schema.xsd import XsdSchema, parse_xsd, read_xsd

__all__ = [
    "MANY",
    "Attribute",
    "AttributeDefault",
    "AttributeType",
    "Child",
    "ChoiceParticle",
    "ContentKind",
    "Element",
    "ElementGraph",
    "ElementPaths",
    "ExpandedName",
    "Expansion",
    "LabelPath",
    "MessageValidator",
    "NameParticle",
    "Occurrence",
    "Particle",
    "PathOccurrences",
    "PathStep",
    "SchemaStep",
    "SequenceParticle",
    "ValidationFault",
    "Way",
    "XsdSchema",
    "expand",
    "is_xsd",
    "parse_dtd",
    "parse_xsd",
    "particle_height",
    "read_dtd",
    "read_xsd",
    "validator_of",
]

"""Schemas of sources: a check that a text is one, and how often paths can occur by it.

Example:
    >>> check_schema("<!ELEMENT order (item*)>  <!ELEMENT item (#PCDATA)>")

A schema comes from a stranger: no file that it names is read.

Source: 001, section 5: the catalog manager parses packets about sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pathcast.errors import MissingDependencyError, SchemaError
from pathcast.overlay.messages import TEXT_MAX
from pathcast.schema import (
    ElementGraph,
    PathOccurrences,
    is_xsd,
    parse_dtd,
    parse_xsd,
    validator_of,
)


def read_schema(text: str) -> tuple[ElementGraph, Mapping[str, str]]:
    """The elements of a DTD or an XML Schema, and prefix -> namespace of the latter.

    Raises:
        SchemaError: It cannot be read.
        MissingDependencyError: What reads it is not installed.

    Cost: about 10 ms for NITF (83 KB).
    """
    if is_xsd(text):
        schema = parse_xsd(text, reads_files=False)
        return schema.graph, schema.namespaces
    return parse_dtd(text, name="the schema"), {}


def check_schema(text: str, *, validated: bool = False) -> None:
    """Refuses what is neither a DTD nor an XML Schema; nothing is a schema too, that says nothing.

    Args:
        text: The schema.
        validated: Whether messages are to be validated against it.

    Raises:
        SchemaError: It cannot be read, or no message can be validated against it.
        MissingDependencyError: What reads it is not installed.

    Cost: As `read_schema`, and for a schema to validate by as `validator_of`; nothing for one of
        the last that were checked.
    """
    fault = _fault(text, validated)
    if fault is not None:
        raise fault.with_traceback(None)


@lru_cache(maxsize=16)
def _fault(text: str, validated: bool) -> SchemaError | MissingDependencyError | None:
    """Why a schema cannot be used: found once, beside the event loop that asks for it again."""
    try:
        if text:
            read_schema(text)
        if validated:
            if not 0 < len(text) <= TEXT_MAX:
                reason = f"messages are validated against schemas of 1 to {TEXT_MAX:,} characters"
                raise SchemaError("schema.unusable", reason=reason)
            validator_of(text)
    except (SchemaError, MissingDependencyError) as error:
        return error
    return None


def occurrences_of(text: str) -> list[PathOccurrences]:
    """How often paths can occur in messages of a schema; nothing for a schema that says nothing.

    Raises:
        SchemaError: It cannot be read.
        MissingDependencyError: What reads it is not installed.
    """
    if not text:
        return []
    graph, namespaces = read_schema(text)
    root = graph.root_candidates[0] if len(graph.root_candidates) == 1 else None
    return [PathOccurrences(graph, root=root, namespaces=namespaces)]

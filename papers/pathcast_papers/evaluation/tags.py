r"""Tags in the bytes of a message that was let in, and the attributes that a declaration gives.

Example:
    >>> message = b"<a t='x xmlns=y>' n:d = \"1\" ><b/></a>"
    >>> tag = START_TAG.match(message)
    >>> tag[1], tag.end(), attribute_names(tag[0])
    (b'a', 29, [b't', b'n:d'])
    >>> attribute_defaults(b"<!DOCTYPE a [<!ATTLIST a k CDATA 'x&lt;'>]><a/>")
    {b'a': {b'k': 'x<'}}

It checks nothing: the door has.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final
from xml.parsers import expat

from pathcast.errors import UnreadableMessageError

# Possessive, since a repetition that may give back keeps a place for every character.
START_TAG: Final = re.compile(rb"<([^\s/>]++)(?:[^>'\"]++|'[^']*+'|\"[^\"]*+\")*+>")
"""A start tag or an empty-element tag; its name is the first group."""

_ATTRIBUTE: Final = re.compile(rb"\s([^\s=/>'\"]++)\s*+=\s*+(?:'[^']*+'|\"[^\"]*+\")")


def attribute_names(tag: bytes) -> list[bytes]:
    """The names of the attributes that are written in a start tag, declarations among them.

    Args:
        tag: All of the tag.
    """
    return [match[1] for match in _ATTRIBUTE.finditer(tag)]


class _RootReachedError(Exception):
    """The prolog has been read."""


def attribute_defaults(message: bytes) -> dict[bytes, dict[bytes, str]]:
    """Element name -> attribute name -> value, of what the internal subset gives by default.

    Args:
        message: A message in UTF-8.

    Raises:
        UnreadableMessageError: The declarations expand to more than is read.

    Cost: a search of the message; a reading of its prolog if there is an attribute-list
    declaration.
    """
    found: dict[bytes, dict[bytes, str]] = {}
    if b"<!ATTLIST" not in message:
        return found

    def declare(element: str, name: str, kind: str, default: str | None, required: int) -> None:
        # The first declaration of an attribute counts, with a default or without.
        known = declared.setdefault(element, set())
        if name not in known and default is not None:
            found.setdefault(element.encode(), {})[name.encode()] = default
        known.add(name)

    def stop(*_: object) -> None:
        raise _RootReachedError

    declared: dict[str, set[str]] = {}
    parser = expat.ParserCreate("UTF-8")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    parser.ExternalEntityRefHandler = lambda *_: 1
    parser.AttlistDeclHandler = declare
    parser.StartElementHandler = stop
    try:
        with suppress(_RootReachedError):
            parser.Parse(message.removeprefix(b"\xef\xbb\xbf"), True)
    except expat.ExpatError as error:
        reason = f"its attribute-list declarations cannot be read: {error}"
        raise UnreadableMessageError(
            "message.unreadable", path="the message", reason=reason
        ) from None
    return found

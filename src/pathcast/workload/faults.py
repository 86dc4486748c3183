"""Breaks well-formed messages, so that refusal can be shown and tested.

Example:
    >>> break_message(b"<a><b>1</b></a>", Fault.MISMATCHED_TAG, Draw(1))
    b'<a><b>1</b-></a>'

Every result is refused by a conformant parser with the limits of `pathcast.limits.Limits`.
"""

from __future__ import annotations

from pathcast.workload.parameters import Fault
from pathcast.workload.values import Draw

DEPTH = 300
"""Levels added by `Fault.TOO_DEEP`; the default limit of a message is 256."""

_BOMB_LEVELS = 9
_BOMB_WIDTH = 10


def break_message(message: bytes, fault: Fault, draw: Draw) -> bytes:
    """The message with one fault.

    Args:
        message: A well-formed document in UTF-8 without document type declaration, whose root
            element has an end tag.
        fault: What to break.
        draw: Chooses the place.
    """
    match fault:
        case Fault.TRUNCATED:
            end = message.rindex(b"</")
            return message[: 1 + int(draw.random() * end)]
        case Fault.MISMATCHED_TAG:
            close = message.index(b">", _end_tag(message, draw))
            return message[:close] + b"-" + message[close:]
        case Fault.UNDECLARED_ENTITY:
            return _insert(message, b"&undeclared;", draw)
        case Fault.INVALID_UTF8:
            return _insert(message, b"\xc3\x28", draw)
        case Fault.ENTITY_BOMB:
            return _bomb(message)
        case Fault.TOO_DEEP:
            end = message.rindex(b"</")
            nested = b"<level>" * DEPTH + b"</level>" * DEPTH
            return message[:end] + nested + message[end:]


def _end_tag(message: bytes, draw: Draw) -> int:
    """Where some end tag begins; before it stands content of an element."""
    found = message.find(b"</", int(draw.random() * len(message)))
    return found if found >= 0 else message.rindex(b"</")


def _insert(message: bytes, data: bytes, draw: Draw) -> bytes:
    place = _end_tag(message, draw)
    return message[:place] + data + message[place:]


def _bomb(message: bytes) -> bytes:
    """10 ** 9 characters by entities that call entities."""
    declarations = [b'<!ENTITY e0 "boom">']
    for level in range(1, _BOMB_LEVELS + 1):
        calls = b"&e%d;" % (level - 1) * _BOMB_WIDTH
        declarations.append(b'<!ENTITY e%d "%s">' % (level, calls))
    start = message.index(b"?>") + 2 if message.startswith(b"<?xml") else 0
    while message[start : start + 1].isspace():
        start += 1
    stop = min(place for sign in b" >/\n" if (place := message.find(sign, start)) >= 0)
    doctype = b"<!DOCTYPE %s [%s]>" % (message[start + 1 : stop], b"".join(declarations))
    end = message.rindex(b"</")
    call = b"&e%d;" % _BOMB_LEVELS
    return message[:start] + doctype + message[start:end] + call + message[end:]

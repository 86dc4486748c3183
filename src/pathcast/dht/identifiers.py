"""Identifiers on the circle, and the keys of the automaton's states.

An identifier is a whole SHA-1 (m = 160 bits) as a number; the circle is ordered modulo 2^160. A
member of the ring has that of its name and life, a key that of its text; the key belongs to the
first member at or after it.

The key of a state is "start" and the labels on the way to it, `$` for epsilon and `*` for the
wildcard, each behind a `/`. What would be read as something else in a name is percent-encoded, so
that different paths have different keys; concatenation alone has one key for a, bc and ab, c.

Example:
    >>> state_key([EPSILON, Name("dblp"), Name("a", "urn:x")])
    'start/$/dblp/{urn:x}a'
    >>> state_key([Name("a"), Name("bc")]) == state_key([Name("ab"), Name("c")])
    False
    >>> is_between(9, 1, 3), is_between(3, 3, 9), is_between(5, 7, 5)
    (True, False, True)

Source: 000, sections 2.3 and 3. Differs: delimiter, namespaces, encoding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

__all__ = [
    "BITS",
    "CIRCLE",
    "EPSILON",
    "WILDCARD",
    "Label",
    "Name",
    "identifier",
    "is_between",
    "is_in_range",
    "state_key",
]

BITS: Final = 160
CIRCLE: Final = 1 << BITS
_ENCODED = {ord(c): f"%{ord(c):02X}" for c in "%/{}$*"}


class _Special(Enum):
    EPSILON = "$"
    WILDCARD = "*"


EPSILON: Final = _Special.EPSILON
WILDCARD: Final = _Special.WILDCARD


class Name(NamedTuple):
    """The name of an element; no namespace is the empty one."""

    local: str
    namespace: str = ""


Label = Name | _Special


def identifier(text: str) -> int:
    """The place of a text on the circle: its SHA-1. Takes any str, lone surrogates too."""
    return int.from_bytes(hashlib.sha1(text.encode("utf-8", "surrogatepass")).digest())


def is_between(low: int, given: int, high: int) -> bool:
    """Whether one meets `given` on the way from `low` to `high`, both left out.

    From a place to itself is once round: everything else lies between.
    """
    return low < given < high if low < high else given > low or given < high


def is_in_range(low: int, given: int, high: int) -> bool:
    """Whether `given` is in (low, high]: what a member `high` after a member `low` is for."""
    return given == high or is_between(low, given, high)


def state_key(path: Iterable[Label]) -> str:
    """The key of the state that is reached over these labels from the start state.

    Args:
        path: Labels of the transitions, the first one leaves the start state.

    Returns:
        A text that no other path has.
    """
    return "/".join(("start", *map(_written, path)))


def _written(label: Label) -> str:
    if isinstance(label, _Special):
        return label.value
    local = label.local.translate(_ENCODED)
    return f"{{{label.namespace.translate(_ENCODED)}}}{local}" if label.namespace else local

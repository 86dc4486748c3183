"""Identifiers on the circle, and the keys of the automaton's states.

An identifier is a whole SHA-1 (m = 160 bits) as a number; the circle is ordered modulo 2^160. A
member of the ring has that of its name and life, a key that of its text; the key belongs to the
first member at or after it.

The key of a state is "start" and the labels on the way to it, `$` for epsilon and `*` for the
wildcard, each behind a `/`. What would be read as something else in a name is percent-encoded, so
that different paths have different keys; concatenation alone has one key for a, bc and ab, c. The
labels are those of `pathcast.dht.fragment`, so `{urn:x}*` and `{*}a` are among them.

Example:
    >>> state_key([EPSILON, ("", "dblp"), ("urn:x", "a"), (None, None)])
    'start/$/dblp/{urn:x}a/*'
    >>> state_key([("", "a"), ("", "bc")]) == state_key([("", "ab"), ("", "c")])
    False
    >>> state_path("start/$/dblp/{urn:x}a/*")
    (None, ('', 'dblp'), ('urn:x', 'a'), (None, None))
    >>> is_between(9, 1, 3), is_between(3, 3, 9), is_between(5, 7, 5)
    (True, False, True)

Source: 000, sections 2.3 and 3. Differs: delimiter, namespaces, encoding.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from pathcast.dht.fragment import EPSILON, Symbol
from pathcast.errors import PeerError

BITS: Final = 160
CIRCLE: Final = 1 << BITS
BIN: Final = "#"
"""How a label of a bin begins (`pathcast.dht.piece_records`); no label of a state does."""

_ENCODED = {ord(c): f"%{ord(c):02X}" for c in "%/{}$*"}
_LABEL = re.compile(r"(?:\{(\*|[^{}$*]*)\})?(\*|[^{}$*]*)")
_DECODED = re.compile("|".join(_ENCODED.values()))


@lru_cache(maxsize=8_192)
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


def state_key(path: Iterable[Symbol]) -> str:
    """The key of the state that is reached over these labels from the start state.

    Args:
        path: Labels of the transitions, the first one leaves the start state.

    Returns:
        A text that no other path has.
    """
    return "/".join(("start", *map(label_text, path)))


def state_path(key: str) -> tuple[Symbol, ...]:
    """The labels of a key.

    Raises:
        PeerError: "dht.key"; no state has this key.
    """
    start, *labels = key.split("/")
    path = tuple(map(label_of, labels))
    if start != "start" or state_key(path) != key or any(map(_is_of_bin, labels)):
        raise PeerError("dht.key", key=key)
    return path


def _is_of_bin(label: str) -> bool:
    return label.startswith(BIN)


@lru_cache(maxsize=8_192)
def label_text(label: Symbol) -> str:
    """A label as it stands in a key, without the `/`."""
    if label is None:
        return "$"
    namespace, local = label
    name = "*" if local is None else local.translate(_ENCODED)
    if namespace is None:
        return "*" if local is None else f"{{*}}{name}"
    if local is None or namespace:
        return f"{{{namespace.translate(_ENCODED)}}}{name}"
    return name


@lru_cache(maxsize=8_192)
def label_of(text: str) -> Symbol:
    """The label of a text that `label_text` wrote; some label of any other."""
    found = _LABEL.fullmatch(text)
    if found is None:
        # `$`, or nothing that is written here.
        return EPSILON
    namespace, local = found.groups()
    if local == "*":
        return (None if namespace is None else _plain(namespace)), None
    return ("" if namespace is None else None if namespace == "*" else _plain(namespace)), _plain(
        local
    )


def _plain(text: str) -> str:
    return _DECODED.sub(lambda code: chr(int(code[0][1:], 16)), text)

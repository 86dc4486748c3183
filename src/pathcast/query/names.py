"""Names as XML writes them, and what a prefix stands for.

This module knows characters and bindings. Which names a query may use where is the grammar's
matter (`pathcast.query.reader`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, TypeGuard

from pathcast.query.patterns import LazyPattern

Namespaces: TypeAlias = Mapping[str, str]
"""Prefix -> namespace URI; the key "" is the default element namespace."""

XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"
"""What the prefix `xml` stands for, bound or not (Namespaces in XML 1.0, section 3)."""

XMLNS_NAMESPACE: Final = "http://www.w3.org/2000/xmlns/"
"""What the prefix `xmlns` stands for; no other, and no element, may have it."""

# Productions 4 and 4a of XML 1.0 (fifth edition) without the colon.
_START: Final = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_CHAR: Final = _START + "\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040"

NCNAME: Final = f"[{_START}][{_CHAR}]*"
"""A regular expression for a name without a colon."""

_BLANKS: Final = re.compile("[ \t\r\n]+")

NCNAME_PATTERN: Final = LazyPattern(NCNAME)
"""`NCNAME`, compiled."""


def is_text(value: object) -> TypeGuard[str]:
    r"""Whether a value is a string of characters: one that can be written in UTF-8.

    Python's strings may hold lone surrogates, halves of a pair that are no characters.

    Example:
        >>> is_text("desk"), is_text("caf\udce9"), is_text(b"desk"), is_text(None)
        (True, False, False, False)
    """
    return isinstance(value, str) and are_texts((value,))


def are_texts(values: Iterable[object]) -> bool:
    """Whether `is_text` holds for all of many values. Cost: about 20 ns each."""
    try:
        joined = "".join(values)  # type: ignore[arg-type]
        return joined.isascii() or bool(joined.encode())
    except (TypeError, UnicodeEncodeError):
        return False


def uri_of(literal: str) -> str:
    """The URI that a literal of a query means: white space in it counts as in a list of words.

    Example:
        >>> uri_of(" urn:a  b ")
        'urn:a b'
    """
    return " ".join(filter(None, _BLANKS.split(literal)))


def namespace_of(prefix: str, namespaces: Namespaces) -> str | None:
    """The namespace URI that a prefix is bound to; None if it is not.

    Example:
        >>> namespace_of("n", {"n": "urn:news"})
        'urn:news'
        >>> namespace_of("m", {"n": "urn:news"}) is None
        True
    """
    return XML_NAMESPACE if prefix == "xml" else namespaces.get(prefix)

"""Names as XML writes them, and what a prefix stands for.

This module knows characters and bindings. Which names a query may use where is the grammar's
matter (`pathcast.query.reader`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, TypeAlias, TypeGuard

Namespaces: TypeAlias = Mapping[str, str]
"""Prefix -> namespace URI; the key "" is the default element namespace."""

XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"
"""What the prefix `xml` stands for, bound or not (Namespaces in XML 1.0, section 3)."""

# Productions 4 and 4a of XML 1.0 (fifth edition) without the colon.
_START: Final = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_CHAR: Final = _START + "\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040"

NCNAME: Final = f"[{_START}][{_CHAR}]*"
"""A regular expression for a name without a colon."""


def is_ncname(text: str) -> bool:
    """Whether a text is a name without a colon.

    Example:
        >>> is_ncname("nitf-3.6"), is_ncname("n:a"), is_ncname("3")
        (True, False, False)
    """
    return _ncname_pattern().fullmatch(text) is not None


@cache
def _ncname_pattern() -> re.Pattern[str]:
    """`NCNAME`, compiled where it is first used: that takes 5 ms, which `import pathcast` saves."""
    return re.compile(NCNAME)


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


def namespace_of(prefix: str, namespaces: Namespaces) -> str | None:
    """The namespace URI that a prefix is bound to; None if it is not.

    Example:
        >>> namespace_of("n", {"n": "urn:news"})
        'urn:news'
        >>> namespace_of("m", {"n": "urn:news"}) is None
        True
    """
    return XML_NAMESPACE if prefix == "xml" else namespaces.get(prefix)

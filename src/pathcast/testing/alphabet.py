"""The few names and values that generated messages and queries are made of.

They are few on purpose: with three names, most generated queries meet something in most generated
messages, and recursion, wildcards and duplicates come by themselves.

Example:
    >>> Alphabet().elements
    ('a', 'b', 'c')
    >>> ALPHABET_WITH_NAMESPACES.namespaces["p"]
    'urn:p'

It generates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Alphabet:
    """Names and values to draw from.

    Attributes:
        elements: Local names of elements.
        attributes: Local names of attributes.
        values: Values of attributes and text; XPath numbers, text, blanks, the empty string.
        odd_values: Values that libxml2 reads as numbers and XPath 1.0 does not; left out where
            lxml is asked.
        numbers: Numbers to compare with, as they are written.
        namespaces: Prefix -> URI, in messages and in queries; empty for none.
    """

    elements: tuple[str, ...] = ("a", "b", "c")
    attributes: tuple[str, ...] = ("x", "y")
    values: tuple[str, ...] = ("1", "2", "u", "", " 2 ", "1.0", "-1", ".5", "2.", "10", "v w", "é")
    odd_values: tuple[str, ...] = ("1e1", "2E0", "1e", "+1", "0x1", "Infinity", "- 1")
    numbers: tuple[str, ...] = ("1", "2", "0", "-1", "0.5", "1.5", "10")
    namespaces: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


ALPHABET: Final = Alphabet()
"""No namespaces."""

ALPHABET_WITH_NAMESPACES: Final = Alphabet(
    elements=("a", "b"),
    namespaces=MappingProxyType({"p": "urn:p", "q": "urn:q"}),
)
"""Two namespaces beside none."""

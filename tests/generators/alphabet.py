"""The few names and values that generated messages and queries are made of.

They are few on purpose: with three names, most generated queries meet something in most generated
messages, and recursion, wildcards and duplicates come by themselves.

Example:
    >>> Alphabet().elements
    ('a', 'b', 'c')
    >>> ALPHABET_WITH_NAMESPACES.namespaces["p"]
    'urn:p'

`any_alphabet` draws the names from all of XML's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Alphabet:
    """Names and values to draw from.

    Attributes:
        elements: Local names of elements.
        attributes: Local names of attributes.
        values: Values of attributes and text; XPath numbers, text, blanks, the empty
            string, quotes of both kinds.
        odd_values: Values that libxml2 reads as numbers and XPath 1.0 does not; left out where
            lxml is asked.
        numbers: Numbers to compare with, as they are written.
        namespaces: Prefix -> URI, in messages and in queries; empty for none.
    """

    elements: tuple[str, ...] = ("a", "b", "c")
    attributes: tuple[str, ...] = ("x", "y")
    values: tuple[str, ...] = (
        *("1", "2", "u", "", " 2 ", "1.0", "-1", ".5", "2.", "10", "v w", "é"),
        *("'\"", "'\"][@y='1"),
    )
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

_NAME_STARTS: Final = (
    "AZ", "__", "az", "\u00c0\u00d6", "\u00d8\u00f6", "\u00f8\u02ff", "\u0370\u037d",
    "\u037f\u1fff", "\u200c\u200d", "\u2070\u218f", "\u2c00\u2fef", "\u3001\ud7ff",
    "\uf900\ufdcf", "\ufdf0\ufffd", "\U00010000\U000effff",
)  # fmt: skip
_NAME_PARTS: Final = (
    *_NAME_STARTS,
    "--",
    "..",
    "09",
    "\u00b7\u00b7",
    "\u0300\u036f",
    "\u203f\u2040",
)


def random_name(random: Random) -> str:
    """A name without a colon, of characters of every range that XML has for them.

    Source: XML 1.0 (fifth edition), productions 4 and 4a.
    """
    length = random.choice((0, 0, 1, 3))
    ranges = [random.choice(_NAME_STARTS), *(random.choice(_NAME_PARTS) for _ in range(length))]
    ends = random.choice((0, 0, 1, 2))
    # The ends of a range, where an off-by-one would be; else anywhere in it.
    name = "".join(
        each[ends] if ends < 2 else chr(random.randint(ord(each[0]), ord(each[1])))
        for each in ranges
    )
    # Some names have a meaning already: those of XML, and `i` in generated messages.
    return f"_{name}" if name.lower().startswith(("xml", "i")) else name


def any_alphabet(random: Random) -> Alphabet:
    """An alphabet whose names are any of XML's, prefixes among them.

    Example:
        >>> len(set(any_alphabet(Random(3)).elements))
        3
    """
    names = list(dict.fromkeys(random_name(random) for _ in range(30)))
    prefixes = {} if random.randrange(3) == 0 else {names[5]: "urn:p", names[6]: "urn:q"}
    return Alphabet(
        elements=tuple(names[:3]),
        attributes=tuple(names[3:5]),
        namespaces=MappingProxyType(prefixes),
    )

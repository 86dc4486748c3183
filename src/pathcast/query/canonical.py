"""Parts of canonical text: name tests, numbers, strings.

The kernel writes the same, byte for byte, in the canonical text of a path.

Example:
    >>> from pathcast.query.normal import Name
    >>> name_test_text(Name("urn:n", "a")), number_text(2.0), literal_text("x")
    ('Q{urn:n}a', '2', "'x'")
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from pathcast.query.normal import AnyIn, AnyName, AnyNamespace, NameTest

_RUN: Final = re.compile(r"""[^'"]*(?:'[^"]*|"[^']*)""")
"""Characters up to a quote of the other kind than the first among them."""


def name_test_text(test: NameTest) -> str:
    """A name test, its namespace as `Q{uri}`."""
    if isinstance(test, AnyName):
        return "*"
    if isinstance(test, AnyIn):
        return f"Q{{{test.uri}}}*"
    if isinstance(test, AnyNamespace):
        return f"*:{test.local}"
    return f"Q{{{test.uri}}}{test.local}" if test.uri else test.local


def number_text(number: float) -> str:
    """The shortest decimal that reads back as the number, without exponent.

    Example:
        >>> number_text(5.0), number_text(-0.0), number_text(1e21), number_text(2.5e-7)
        ('5', '0', '1000000000000000000000', '0.00000025')
    """
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    text = format(Decimal(repr(number)), "f")
    return text.removesuffix(".0")


def literal_text(value: str) -> str:
    r"""A string as XPath 1.0 writes it, which has no escapes.

    It stands in single quotes, or in double ones if it holds a single one. What holds both kinds
    has no literal: it is cut where the kind of its quotes changes, and joined by `concat`.

    Example:
        >>> print(literal_text("a"), literal_text("it's"), literal_text("it's \"b\""))
        'a' "it's" concat("it's ",'"b"')
    """
    if has_literal(value):
        quote = '"' if "'" in value else "'"
        return f"{quote}{value}{quote}"
    return f"concat({','.join(map(literal_text, _RUN.findall(value)))})"


def has_literal(value: str) -> bool:
    """Whether a string can stand in quotes: XPath 1.0 cannot quote one with both kinds."""
    return "'" not in value or '"' not in value

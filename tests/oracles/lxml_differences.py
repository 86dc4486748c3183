"""Where lxml (libxml2 2.14) leaves XPath 1.0: by name, each with a query that shows it.

lxml is an oracle only for what is not listed here. `tests/test_lxml_differences.py` asks lxml and
every engine each of these queries, so that the list neither grows stale nor hides a fault of ours.

Example:
    >>> DIFFERENCES["following-of-attribute"].query
    '//@x/following::b'
    >>> may_differ("//@x[following::b]")
    'following-of-attribute'
    >>> may_differ("//@x/following-sibling::b") is None
    True

What is left open by XPath 1.0 is no difference and not listed, but no test may depend on it: the
order of attributes and of namespace nodes of one element. Both sides take `xml:id` for an ID, which
XPath 1.0, older than `xml:id`, could not say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One way in which libxml2 leaves XPath 1.0.

    Attributes:
        name: What it is called.
        section: Of XPath 1.0.
        query: A query that shows it.
        message: With this message.
        by_xpath: What XPath 1.0 says; None if the query is not XPath 1.0 at all.
        by_lxml: What lxml says.
        why: In words.
    """

    name: str
    section: str
    query: str
    message: bytes = b"<a/>"
    by_xpath: bool | None = True
    by_lxml: bool = False
    why: str


_LIST: Final = (
    Difference(
        name="exponent-in-string",
        section="4.4",
        query="//a[@x = 1000]",
        message=b"<a x='1e3'/>",
        by_xpath=False,
        by_lxml=True,
        why="number() reads exponents; XPath 1.0 knows digits and a point only",
    ),
    Difference(
        name="exponent-in-expression",
        section="3.7",
        query="1e3 = 1000",
        by_xpath=None,
        by_lxml=True,
        why="so do numbers in expressions",
    ),
    Difference(
        name="digits-of-fractions",
        section="4.2",
        query="string(1 div 3) = '0.3333333333333333'",
        why="string() gives 15 digits; XPath 1.0 as many as tell the number from all others",
    ),
    Difference(
        name="large-number-as-string",
        section="4.2",
        query="string(10000000000) = '10000000000'",
        why="string() gives an exponent from 1e9 on unless it is a 32-bit integer",
    ),
    Difference(
        name="small-number-as-string",
        section="4.2",
        query="string(0.000001) = '0.000001'",
        why="string() gives an exponent below 1e-5",
    ),
    Difference(
        name="rounding-of-long-numerals",
        section="3.7, 4.4",
        query="number('9007199254740993.5') = 9007199254740994",
        why="numerals of more than 15 digits are rounded digit by digit, not to the nearest",
    ),
    Difference(
        name="round-below-a-half",
        section="4.4",
        query="round(0.49999999999999994) = 0",
        why="round() adds a half and rounds down; the sum is 1",
    ),
    Difference(
        name="following-of-attribute",
        section="2.2",
        query="//@x/following::b",
        message=b"<a x=''><b/></a>",
        why="the content of the parent comes after an attribute in document order and is none of "
        "its descendants; libxml2 begins after the parent",
    ),
    Difference(
        name="following-of-namespace",
        section="2.2",
        query="//namespace::p/following::b",
        message=b"<a xmlns:p='urn:p'><b/></a>",
        why="likewise after a namespace node",
    ),
    Difference(
        name="preceding-of-the-end",
        section="2.2",
        query="/comment()/preceding::a",
        message=b"<a>1</a><!-- z -->",
        why="climbing out of a root element that nothing stands before, libxml2 stops too early",
    ),
    Difference(
        name="undeclared-default-namespace",
        section="5.4",
        query="count(/*/*/namespace::*) = 1",
        message=b"<a xmlns='urn:d'><b xmlns=''/></a>",
        why="xmlns='' takes the default namespace away; libxml2 makes it a namespace node",
    ),
    Difference(
        name="lang-of-namespace",
        section="4.3",
        query="//namespace::p[lang('en')]",
        message=b"<a xml:lang='en' xmlns:p='urn:p'/>",
        why="the parent of a namespace node has a language; libxml2 does not look there",
    ),
    Difference(
        name="order-of-ids",
        section="2.4, 4.1",
        query="id('j i')[1][self::b]",
        message=b"<a><b xml:id='i'/><c xml:id='j'/></a>",
        why="positions count in document order; after id() libxml2 counts in the order of the ids",
    ),
    Difference(
        name="blank-before-ids",
        section="4.1",
        query="id(' i')",
        message=b"<a xml:id='i'/>",
        why="libxml2 loses the first id after leading white space",
    ),
)

DIFFERENCES: Final[Mapping[str, Difference]] = MappingProxyType(
    {difference.name: difference for difference in _LIST}
)
"""Name -> difference."""

_FOLLOWING: Final = re.compile(r"following\s*::")
_ATTRIBUTE: Final = re.compile(r"@|attribute\s*::")
_NAMESPACE: Final = re.compile(r"namespace\s*::")
_LANG: Final = re.compile(r"lang\s*\(")


def may_differ(text: str) -> str | None:
    """The name of a difference that an expression could meet, going by its constructs alone.

    Differences that depend on values in the message are not seen: numbers with exponents or more
    than 15 digits, `xmlns=""`, markup after the root element alone.
    """
    if _NAMESPACE.search(text):
        if _FOLLOWING.search(text):
            return "following-of-namespace"
        if _LANG.search(text):
            return "lang-of-namespace"
    if _ATTRIBUTE.search(text) and _FOLLOWING.search(text):
        return "following-of-attribute"
    return None

"""Where Pathcast and Saxon (SaxonC-HE 13) differ: by name, each with a query that shows it.

Saxon is an oracle only for what is not listed here. `tests/test_customised_saxon_differences.py`
asks Saxon and the reference interpreter each of these, so that the list neither grows stale nor
hides a fault.

Example:
    >>> DIFFERENCES["number-of-a-word"].by_saxon
    'FORG0001'
    >>> error_difference("XPTY0004")
    'one-item'
    >>> error_difference("XQTY0024") is None
    True

Most are one decision: where XQuery raises a dynamic error for a value, a subscription gets the
answer that XPath 1.0 would give, since one odd message must not silence a subscriber. Three are
liberties that XQuery gives an implementation. Four are Saxon's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class SaxonDifference:
    """One way in which answers differ.

    Attributes:
        name: What it is called.
        query: A subscription that shows it.
        message: With this message.
        by_pathcast: Our results; an error code if it is an error with us.
        by_saxon: Saxon's results, or the code of its error.
        why: In words.
    """

    name: str
    query: str
    message: bytes = b"<a/>"
    by_pathcast: tuple[bytes, ...] | str
    by_saxon: tuple[bytes, ...] | str
    why: str


_LIST: Final = (
    SaxonDifference(
        name="number-of-a-word",
        query="<r>{ for $b in //b where $b != 1 return string($b) }</r>",
        message=b"<a><b>x</b></a>",
        by_pathcast=(b"<r>x</r>",),
        by_saxon="FORG0001",
        why="what is no number is NaN where a number is wanted, as in XPath 1.0",
    ),
    SaxonDifference(
        name="one-item",
        query="<r>{ for $a in /a where contains($a/b, 'x') return <hit/> }</r>",
        message=b"<a><b>x</b><b>y</b></a>",
        by_pathcast=(b"<r><hit/></r>",),
        by_saxon="XPTY0004",
        why="the first item is taken where one is wanted, as in XPath 1.0; types are converted",
    ),
    SaxonDifference(
        name="truth-of-a-sequence",
        query="<r>{ if ((1, count(//a))) then <hit/> else () }</r>",
        by_pathcast=(b"<r><hit/></r>",),
        by_saxon="FORG0006",
        why="a sequence of several values is true",
    ),
    SaxonDifference(
        name="division-by-zero",
        query="<r>{ for $a in /a return count($a) div 0 }</r>",
        by_pathcast=(b"<r>INF</r>",),
        by_saxon="FOAR0001",
        why="division by zero is infinite or NaN for every type of number, as in XPath 1.0",
    ),
    SaxonDifference(
        name="digits-of-decimals",
        query="<r>{ for $a in /a return count($a) div 3 }</r>",
        by_pathcast=(b"<r>0.3333333333333333</r>",),
        by_saxon=(b"<r>0.333333333333333333</r>",),
        why="decimals have the precision of doubles",
    ),
    SaxonDifference(
        name="hyphen-at-the-end-of-a-class",
        query="<r>{ for $a in /a return matches('A', '[a-]', 'i') }</r>",
        by_pathcast=(b"<r>true</r>",),
        by_saxon=(b"<r>false</r>",),
        why="Saxon forgets the other case of the character before such a hyphen",
    ),
    SaxonDifference(
        name="beginning-after-something-optional",
        query="<r>{ for $a in /a return matches('a', 'a?^') }</r>",
        by_pathcast=(b"<r>true</r>",),
        by_saxon=(b"<r>false</r>",),
        why="Saxon does not try the empty match there",
    ),
    SaxonDifference(
        name="few-repeats-of-a-group",
        query="<r>{ for $a in /a return replace('price', 'p(ri|r)*?', '-') }</r>",
        by_pathcast=(b"<r>-rice</r>",),
        by_saxon=(b"<r>-ce</r>",),
        why="Saxon repeats a group of several lengths as often as it can, though `*?` asks for few",
    ),
    SaxonDifference(
        name="case-of-the-dotted-capital-i",
        query="<r>{ for $a in /a return matches('&#x130;', '[a-z]', 'i') }</r>",
        by_pathcast=(b"<r>false</r>",),
        by_saxon=(b"<r>true</r>",),
        why=(
            "its lower case is two characters, so that no other character has the same "
            "(F&O 3.1, 5.6.1.1)"
        ),
    ),
    SaxonDifference(
        name="what-nobody-asks-for",
        query="for $a in /a let $e := <e>{ $a/@x, $a/@x }</e> return <r/>",
        message=b"<a x=''/>",
        by_pathcast="XQDY0025",
        by_saxon=(b"<r/>",),
        why="XQuery 1.0, 2.3.4: an error need not be raised where the value is not used",
    ),
    SaxonDifference(
        name="braced-name",
        query="for $a in /a return element {concat('Q{urn:x}', name($a))} {}",
        by_pathcast="XQDY0074",
        by_saxon=(b"<a xmlns='urn:x'/>",),
        why="XQuery 3.1, 3.9.3.1: a name is a prefix and a local name; a message declares none",
    ),
    SaxonDifference(
        name="prefix-of-an-attribute",
        query="<r>{ //b/@* }</r>",
        message=b"<a xmlns:p='urn:p'><b p:x='1'><b xmlns:p='urn:q' p:x='2'/></b></a>",
        by_pathcast=(b"<r xmlns:p='urn:p' xmlns:p_1='urn:q' p:x='1' p_1:x='2'/>",),
        by_saxon=(b"<r xmlns:p='urn:p' xmlns:p_2='urn:q' p:x='1' p_2:x='2'/>",),
        why="an attribute whose prefix is taken gets one that the implementation makes up",
    ),
    SaxonDifference(
        name="undeclared-default",
        query='declare default element namespace "d"; '
        'for $a in //a return <i><k:s xmlns:k="k"/></i>',
        message=b"<a xmlns='d'/>",
        by_pathcast=(b"<i xmlns='d'><k:s xmlns:k='k'/></i>",),
        by_saxon=(b"<i xmlns='d'><k:s xmlns='' xmlns:k='k'/></i>",),
        why="an element with a prefix inherits the default namespace of the constructor around it, "
        'unless it takes it back itself (`xmlns=""`); Saxon sees what the message takes back as '
        "never said, and takes back that of the prolog",
    ),
    SaxonDifference(
        name="default-taken-back",
        query='declare default element namespace "d"; <a xmlns="u"><b xmlns="">{ //x }</b></a>',
        message=b"<x/>",
        by_pathcast=(b"<a xmlns='u'><b xmlns=''><x/></b></a>",),
        by_saxon=(b"<a xmlns='u'><b xmlns='d'/></a>",),
        why='XQuery 1.0, 3.7.1.2: after xmlns="" names without prefix are in no namespace; inside '
        "another declaration Saxon goes back to the default namespace of the prolog",
    ),
    SaxonDifference(
        name="the-word-nan",
        query="<r>{ for $a in //a where $a/@x > 2 return <hit/> }</r>",
        message=b"<b><a x='NaN'/><a x='3'/></b>",
        by_pathcast=(b"<r><hit/></r>",),
        by_saxon=(b"<r><hit/><hit/></r>",),
        why="no comparison holds of NaN but !=; Saxon takes an untyped NaN for greater than any",
    ),
    SaxonDifference(
        name="time-zone-after-fourteen-hours",
        query="<r>{ for $a in //a return $a/@x castable as xs:date }</r>",
        message=b"<a x='2026-12-31+14:01'/>",
        by_pathcast=(b"<r>false</r>",),
        by_saxon=(b"<r>true</r>",),
        why="XML Schema 1.1, part 2, D.3: a time zone has at most 14 hours and no minutes more",
    ),
    SaxonDifference(
        name="carriage-return-alone",
        query="<r>{ //b }</r>",
        message=b"<a><b>&#13;<c/></b></a>",
        by_pathcast=(b"<r><b>&#13;<c/></b></r>",),
        by_saxon=(b"<r><b>\n<c/></b></r>",),
        why="Saxon writes a carriage return in white space beside elements as it is, and it is "
        "read as a line feed",
    ),
)

DIFFERENCES: Final[Mapping[str, SaxonDifference]] = MappingProxyType(
    {difference.name: difference for difference in _LIST}
)
"""Name -> difference."""

_BY_CODE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "FORG0001": "number-of-a-word",
        "XPTY0004": "one-item",
        "FORG0006": "truth-of-a-sequence",
        "FOAR0001": "division-by-zero",
        "FOAR0002": "division-by-zero",
    }
)

CONSTRUCTION_ERRORS: Final = frozenset({"XQTY0024", "XQDY0025", "XQDY0044", "XQDY0074", "XQDY0096"})
"""Errors that Pathcast reports, too: a constructor would make what is no element."""


_TAKES_BACK: Final = re.compile(r"""xmlns\s*=\s*(?:""|'')""")
_DECLARES: Final = re.compile(r"""xmlns\s*=\s*["'][^"']""")


def text_difference(text: str, namespaces: Mapping[str, str]) -> str | None:
    """The name of a difference that a subscription could meet, going by its text; None if none.

    Example:
        >>> text_difference("<a xmlns='u'><b xmlns=''>{//x}</b></a>", {"": "d"})
        'default-taken-back'
        >>> text_difference("<a xmlns='u'><b xmlns=''>{//x}</b></a>", {}) is None
        True
    """
    has_default = bool(namespaces.get("")) or "default element namespace" in text
    if has_default and _TAKES_BACK.search(text) and _DECLARES.search(text):
        return "default-taken-back"
    return None


def error_difference(code: str) -> str | None:
    """The name of the difference that an error of Saxon's stands for; None if it is no such."""
    return _BY_CODE.get(code)

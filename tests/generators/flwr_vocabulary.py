"""What generated subscriptions and their messages speak of: names, what stands in what, values.

Bibliographies are flat, books recursive; one vocabulary has namespaces, one has names that are
words of the language, one is small enough for anything to stand anywhere.

Example:
    >>> BOOK.elements["section"].children
    ('title', 'p', 'figure', 'section')
    >>> BOOK.is_number("@width"), BOOK.is_number("title")
    (True, False)

These are no DTDs: messages keep to them most of the time, not always.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

Content = Literal["", "number", "text", "mixed"]
"""What character data an element has: none between its children, one value, or among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementKind:
    """One element of a vocabulary.

    Attributes:
        children: Names of the elements in it.
        attributes: Names without `@`.
        content: Its character data.
    """

    children: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    content: Content = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Names and values of a kind of message.

    Attributes:
        root: The document element.
        elements: Name, as a query writes it, -> kind.
        numbers: Names of attributes, without `@`, whose values are numbers.
        texts: Values of the others; some occur in several places, so that comparisons hold.
        namespaces: Prefix -> namespace name; "" is that of names without prefix.
        depth_max: Levels of a message.
    """

    root: str
    elements: Mapping[str, ElementKind]
    numbers: frozenset[str]
    texts: tuple[str, ...]
    namespaces: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    depth_max: int = 5

    def is_number(self, name: str) -> bool:
        """Whether the values of an element, or of an attribute written `@name`, are numbers."""
        if name.startswith("@"):
            return name[1:] in self.numbers
        return name in self.elements and self.elements[name].content == "number"

    def below(self, name: str) -> tuple[str, ...]:
        """Names of the elements that can stand below an element, at any level, sorted."""
        found: set[str] = set()
        waiting = list(self.elements[name].children) if name in self.elements else []
        while waiting:
            child = waiting.pop()
            if child not in found:
                found.add(child)
                waiting += self.elements[child].children
        return tuple(sorted(found))


_PERSON: Final = ElementKind(children=("last", "first"))
_TEXT: Final = ElementKind(content="text")
_NUMBER: Final = ElementKind(content="number")

BIB: Final = Vocabulary(
    root="bib",
    elements=MappingProxyType(
        {
            "bib": ElementKind(children=("book", "book", "book")),
            "book": ElementKind(
                children=("title", "author", "editor", "publisher", "price"),
                attributes=("year", "isbn"),
            ),
            "author": _PERSON,
            "editor": ElementKind(children=("last", "first", "affiliation")),
            "title": _TEXT,
            "last": _TEXT,
            "first": _TEXT,
            "affiliation": _TEXT,
            "publisher": _TEXT,
            "price": ElementKind(content="number", attributes=("currency",)),
        }
    ),
    numbers=frozenset({"year"}),
    texts=(
        *("XML", "XML processing", "Stevens", "W.", "EUR", "Data & Web", "caf\u00e9", "a<b"),
        'it\'s "so"',
    ),
)
"""Flat: no element below one of its name."""

BOOK: Final = Vocabulary(
    root="book",
    elements=MappingProxyType(
        {
            "book": ElementKind(children=("title", "author", "section", "section")),
            "section": ElementKind(
                children=("title", "p", "figure", "section"), attributes=("id", "difficulty")
            ),
            "figure": ElementKind(children=("title", "image"), attributes=("width", "height")),
            "title": _TEXT,
            "author": _TEXT,
            "p": ElementKind(content="mixed", children=("em", "figure")),
            "em": _TEXT,
            "image": ElementKind(attributes=("source",)),
        }
    ),
    numbers=frozenset({"id", "width", "height"}),
    texts=(
        *("XML processing", "XML", "easy", "hard", "Introduction", "x.gif", "R&D", " XML "),
        "'\"]}{",
    ),
    depth_max=6,
)
"""Recursive: sections in sections, as deep as the message goes."""

ORDERS: Final = Vocabulary(
    root="o:orders",
    elements=MappingProxyType(
        {
            "o:orders": ElementKind(children=("o:order", "o:order", "note")),
            "o:order": ElementKind(
                children=("p:party", "line", "o:order", "note"), attributes=("o:no", "state")
            ),
            "p:party": ElementKind(children=("p:name", "note"), attributes=("p:role",)),
            "p:name": _TEXT,
            "line": ElementKind(children=("p:name", "amount"), attributes=("no",)),
            "amount": ElementKind(content="number", attributes=("currency",)),
            "note": ElementKind(content="mixed", children=("p:name",)),
        }
    ),
    numbers=frozenset({"no", "o:no"}),
    texts=("new", "paid", "buyer", "seller", "EUR", "ACME & Co", "M\u00fcller", "<x>", '"\'"'),
    namespaces=MappingProxyType({"": "urn:example:line", "o": "urn:example:o", "p": "urn:p?a&b"}),
)
"""Namespaces: names in three of them, the one without prefix included."""

WORDS: Final = Vocabulary(
    root="for",
    elements=MappingProxyType(
        {
            "for": ElementKind(
                children=("return", "div", "if", "body.content"), attributes=("where", "in")
            ),
            "return": ElementKind(children=("div", "a-b", "text"), attributes=("order", "mod")),
            "div": ElementKind(children=("div", "and", "or"), attributes=("mod",), content="mixed"),
            "if": ElementKind(children=("then", "else"), attributes=("eq",)),
            "then": _NUMBER,
            "else": _TEXT,
            "and": _TEXT,
            "or": _NUMBER,
            "a-b": ElementKind(content="number", attributes=("in",)),
            "text": _TEXT,
            "body.content": ElementKind(children=("div", "\u00e9l\u00e9ment"), content="mixed"),
            "\u00e9l\u00e9ment": ElementKind(content="text", attributes=("order",)),
        }
    ),
    numbers=frozenset({"mod", "in"}),
    texts=(
        "for",
        "$x",
        "{}",
        '\'" and "\'"',
        "]]>",
        "it's",
        'say "so"',
        "&amp;",
        "\U0001f600x",
        "\uffeex",
        "\u00df",
        "",
    ),
)
"""Names that are words of the language, values that look like markup."""

_ANY: Final = ElementKind(children=("a", "b", "c"), attributes=("x", "y"), content="mixed")

SMALL: Final = Vocabulary(
    root="a",
    elements=MappingProxyType({"a": _ANY, "b": _ANY, "c": ElementKind(content="number")}),
    numbers=frozenset({"x"}),
    texts=("u", "v", "1", "u v", "'\""),
    depth_max=5,
)
"""Three names, each within each: many path matches, many duplicates."""

VOCABULARIES: Final[Mapping[str, Vocabulary]] = MappingProxyType(
    {"bib": BIB, "book": BOOK, "orders": ORDERS, "words": WORDS, "small": SMALL}
)
"""Name -> vocabulary."""

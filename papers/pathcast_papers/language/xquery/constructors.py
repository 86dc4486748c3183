"""Direct element constructors: tags, text, references, namespaces.

Between tags the text is read as it stands; at a brace the tokens take over, and give the place
after the closing brace back.

Source: XQuery 1.0, section 3.7.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from pathcast.errors import QuerySyntaxError
from pathcast_papers.language.names import NCNAME, XML_NAMESPACE, uri_of
from pathcast_papers.language.patterns import LazyPattern
from pathcast_papers.language.xquery.paths import Paths
from pathcast_papers.language.xquery.syntax import (
    Attribute,
    Content,
    Element,
    Enclosed,
    Expr,
    Name,
    Text,
)

_QNAME: Final = LazyPattern(f"{NCNAME}(?::{NCNAME})?")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_CONTENT_STOP: Final = re.compile(r"[<{}]")
_VALUE_STOPS: Final = {'"': re.compile(r'["<{}]'), "'": re.compile(r"['<{}]")}
_VALUE_SPACE: Final = re.compile(r"\r\n|[\t\r\n]")
_BLANK: Final = " \t\r\n"


@dataclass(slots=True)
class _Tag:
    """A start tag while it is read.

    Attributes:
        attributes: Name as written, place and parts of each.
        namespaces: Prefix -> URI of its declarations.
        has_expressions: Whether an attribute so far has an enclosed expression.
    """

    attributes: list[tuple[str, int, tuple[Text | Enclosed, ...]]] = field(default_factory=list)
    namespaces: dict[str, str] = field(default_factory=dict)
    has_expressions: bool = False


class _Run:
    """The text between two tags or braces.

    Attributes:
        pieces: The text so far.
        start: Where it begins.
        is_kept: Whether it is kept even if it is white space: something of it was written as a
            reference or a CDATA section, or it is not white space at all.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.start = 0
        self.is_kept = False

    def add(self, piece: str, start: int, *, is_kept: bool) -> None:
        if not self.pieces:
            self.start = start
        self.pieces.append(piece)
        self.is_kept = self.is_kept or is_kept

    def flush(self, content: list[Content]) -> None:
        """Hands over what was read, unless it is boundary space."""
        text = "".join(self.pieces)
        if text and (self.is_kept or text.strip(_BLANK)):
            content.append(Text(text, self.start))
        self.pieces = []
        self.is_kept = False


class Constructors(Paths):
    """The part of the parser that reads constructors."""

    def constructor(self) -> Expr:
        """A direct constructor in an expression; the token is its `<`."""
        element, place = self.element(self.start)
        self.move(place)
        return element

    def wrong(self, place: int, expected: str) -> QuerySyntaxError:
        """The error of the character at a place."""
        found = "the end"
        if place < len(self.text):
            found = ascii(self.text[place : place + 1])[1:-1]
        return self.error("XPST0003", place, f"found {found} where {expected} is expected")

    def element(self, start: int) -> tuple[Element, int]:
        """An element constructor that begins at a place; and where it ends."""
        text = self.text
        if text.startswith("<!--", start):
            raise self.unsupported("a comment constructor", start, "use (: ... :) for comments")
        if text.startswith("<?", start):
            raise self.unsupported("a processing instruction constructor", start)
        match = _QNAME.match(text, start + 1)
        if match is None:
            raise self.wrong(start + 1, "the name of an element")
        self.count(start)
        self.enter(start)
        tag, written, outer = _Tag(), match[0], self.namespaces
        place = self._attributes(tag, match.end())
        name = self.constructed_name(written, start + 1, is_attribute=False)
        attributes = self._named(tag)
        content: tuple[Content, ...] = ()
        if text.startswith("/>", place):
            place += 2
        else:
            content, place = self._content(place + 1, start)
            place = self._end_tag(written, place)
        self.namespaces = outer
        self.leave()
        declared = tuple(sorted(tag.namespaces.items()))
        return Element(name, attributes, declared, content, start), place

    def constructed_name(self, written: str, place: int, *, is_attribute: bool) -> Name:
        """The name of something that is constructed."""
        prefix, colon, local = written.partition(":")
        if colon:
            if prefix == "xmlns":
                raise self.error("XQST0070", place, "the prefix xmlns is reserved")
            return Name(prefix, self.prefixed(prefix, place), local)
        return Name("", "" if is_attribute else self.default_namespace(place), written)

    # Start and end tag.

    def _attributes(self, tag: _Tag, place: int) -> int:
        """Reads the attributes; gives where the `>` or `/>` stands."""
        text = self.text
        while True:
            after = _blank_end(text, place)
            if text.startswith((">", "/>"), after):
                return after
            match = _QNAME.match(text, after)
            if match is None or after == place:
                raise self.wrong(
                    after, "an attribute, > or />" if after > place else "a blank, > or />"
                )
            place = _blank_end(text, match.end())
            if not text.startswith("=", place):
                raise self.wrong(place, "=")
            place = _blank_end(text, place + 1)
            if not text.startswith(('"', "'"), place):
                raise self.wrong(place, "a value in quotes")
            parts, place = self._value(tag, match[0], place)
            written = match[0]
            if written == "xmlns" or written.startswith("xmlns:"):
                self._declare(tag, written.partition(":")[2], parts, after)
            else:
                self.count(after)
                tag.attributes.append((written, after, parts))

    def _value(self, tag: _Tag, name: str, place: int) -> tuple[tuple[Text | Enclosed, ...], int]:
        """An attribute value; and the place after its closing quote."""
        text, quote, opened = self.text, self.text[place], place
        stop = _VALUE_STOPS[quote]
        parts: list[Text | Enclosed] = []
        pieces: list[str] = []
        begin = place = place + 1
        while True:
            match = stop.search(text, place)
            if match is None:
                raise self.error("XPST0003", opened, "the value that begins here does not end")
            end, found = match.start(), match[0]
            if end > place:
                # White space is a blank in an attribute, unless it is written as a reference.
                pieces.append(self.plain(_VALUE_SPACE.sub(" ", text[place:end]), place))
            if found == "<":
                raise self.wrong(end, "&lt;")
            place = end + 2
            if text.startswith(found, end + 1):
                pieces.append(found)
                continue
            if found == "}":
                raise self.error("XPST0003", end, "a } stands alone", "write }}")
            if pieces and (value := "".join(pieces)):
                parts.append(Text(value, begin))
            if found == quote:
                return tuple(parts), end + 1
            if name == "xmlns" or name.startswith("xmlns:"):
                raise self.error("XQST0022", end, "a namespace is declared by a literal only")
            tag.has_expressions = True
            enclosed, place = self._enclosed(end)
            parts.append(enclosed)
            pieces, begin = [], place

    def _declare(
        self, tag: _Tag, prefix: str, parts: tuple[Text | Enclosed, ...], offset: int
    ) -> None:
        """A namespace declaration attribute."""
        if tag.has_expressions:
            raise self.unsupported(
                "a namespace declaration after an attribute with an enclosed expression",
                offset,
                "write the declaration first",
            )
        uri = uri_of("".join(part.value for part in parts if isinstance(part, Text)))
        if prefix in tag.namespaces:
            raise self.error("XQST0071", offset, f"{prefix or 'the default'} is declared twice")
        if prefix == "xmlns" or (prefix == "xml") is not (uri == XML_NAMESPACE):
            raise self.error("XQST0070", offset, "xml and xmlns are reserved")
        if prefix and not uri:
            raise self.error("XQST0085", offset, f"the prefix {prefix} cannot be taken back")
        tag.namespaces[prefix] = self.bindable(prefix, uri, offset)
        # What follows in this tag sees the declaration, too.
        self.namespaces = {**self.namespaces, prefix: uri}

    def _named(self, tag: _Tag) -> tuple[Attribute, ...]:
        """The attributes with their names looked up."""
        found: list[Attribute] = []
        names: set[tuple[str, str]] = set()
        for written, offset, parts in tag.attributes:
            name = self.constructed_name(written, offset, is_attribute=True)
            if (name.uri, name.local) in names:
                raise self.error("XQST0040", offset, f"attribute {written} is there twice")
            names.add((name.uri, name.local))
            found.append(Attribute(name, parts, offset))
        return tuple(found)

    def _end_tag(self, written: str, place: int) -> int:
        """Reads the end tag at a place; gives where it ends."""
        match = _QNAME.match(self.text, place + 2)
        if match is None or match[0] != written:
            raise self.wrong(place, f"</{written}>")
        after = _blank_end(self.text, match.end())
        if not self.text.startswith(">", after):
            raise self.wrong(after, ">")
        return after + 1

    # Content.

    def _enclosed(self, place: int) -> tuple[Enclosed, int]:
        """`{expr}` at a place; and where it ends."""
        self.count(place)
        self.move(place + 1)
        if self.is_symbol("}"):
            raise self.unsupported("an empty enclosed expression {}", place, "write {()}")
        expr = self.sequence()
        if not self.is_symbol("}"):
            raise self.unexpected("} or an operator")
        return Enclosed(expr, place), self.end

    def _content(self, place: int, start: int) -> tuple[tuple[Content, ...], int]:
        """What stands between the tags; and where the end tag begins."""
        text = self.text
        content: list[Content] = []
        run = _Run()
        while True:
            match = _CONTENT_STOP.search(text, place)
            if match is None:
                raise self.error("XPST0003", start, "the element that begins here does not end")
            end, found = match.start(), match[0]
            if end > place:
                raw = text[place:end]
                run.add(self.plain(raw, place), place, is_kept="&" in raw)
            if found != "<" and text.startswith(found, end + 1):
                run.add(found, end, is_kept=True)
                place = end + 2
            elif found == "}":
                raise self.error("XPST0003", end, "a } stands alone", "write }}")
            elif found == "{":
                run.flush(content)
                enclosed, place = self._enclosed(end)
                content.append(enclosed)
            elif text.startswith("</", end):
                run.flush(content)
                return tuple(content), end
            elif text.startswith("<![CDATA[", end):
                place = self._cdata(run, end)
            else:
                run.flush(content)
                element, place = self.element(end)
                content.append(element)

    def _cdata(self, run: _Run, start: int) -> int:
        """Adds a CDATA section to the text; gives where it ends."""
        close = self.text.find("]]>", start)
        if close < 0:
            raise self.error("XPST0003", start, "the section that begins here does not end")
        raw = self.text[start + len("<![CDATA[") : close]
        run.add(raw.replace("\r\n", "\n").replace("\r", "\n"), start, is_kept=True)
        return close + 3


def _blank_end(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return place if match is None else match.end()

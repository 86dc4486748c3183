"""Computed constructors of elements.

With constant names they are what tags say too:
`element a {attribute b {e}, text {f}, g}` is `<a b="{e}">{...}{g}</a>`: attributes come first, and
each text is a part of the content of its own. Elsewhere there are no computed attributes and texts:
no item is one. A name that is no constant stays an expression.

Source: XQuery 3.1, section 3.9.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from pathcast_papers.language.names import NCNAME, XML_NAMESPACE
from pathcast_papers.language.patterns import LazyPattern
from pathcast_papers.language.xquery.constructors import Constructors
from pathcast_papers.language.xquery.paths import in_quotes
from pathcast_papers.language.xquery.scanner import Kind
from pathcast_papers.language.xquery.syntax import (
    Attribute,
    Call,
    ComputedName,
    Content,
    Element,
    Enclosed,
    Expr,
    Flwor,
    If,
    Let,
    Literal,
    LiteralKind,
    Name,
    Sequence,
    Variable,
)

_QNAME: Final = LazyPattern(f"{NCNAME}(?::{NCNAME})?")
_BRACE: Final = re.compile(r"\{")
_BLANKS: Final = " \t\r\n"
_UNNAMED: Final = frozenset({"text", "document", "comment"})
_INSTEAD: Final = MappingProxyType(
    {
        "attribute": 'put it first into element name {...}, or into a tag: name="{...}"',
        "text": "put it into element name {...}, or write string(...)",
        "document": "write its content by itself",
        "comment": "a result has the comments of the message alone",
        "processing-instruction": "a result has the instructions of the message alone",
        "namespace": 'declare it in a tag: xmlns:p="..."',
    }
)
"""The word of a constructor that there is not -> what to write."""


@dataclass(slots=True)
class _Content:
    """What stands in the braces of an element so far; `items` are one part in the end."""

    attributes: list[Attribute] = field(default_factory=list)
    parts: list[Content] = field(default_factory=list)
    items: list[Expr] = field(default_factory=list)
    start: int = 0


class Computed(Constructors):
    """The part of the parser that reads computed constructors."""

    def computed_word(self) -> str | None:
        """The word of the computed constructor that comes next, if one does."""
        word = self.value
        if self.kind is not Kind.NAME or not (word == "element" or word in _INSTEAD):
            return None
        place = self.after_blanks(self.end)
        if word not in _UNNAMED:
            name = _QNAME.match(self.text, place)
            place = place if name is None else self.after_blanks(name.end())
        return word if _BRACE.match(self.text, place) else None

    def computed(self, word: str) -> Expr:
        """A computed constructor where an expression is expected."""
        offset = self.start
        if word != "element":
            raise self.unsupported(f"a computed {word} constructor", offset, _INSTEAD[word])
        self.count(offset)
        self.enter(offset)
        self.advance()
        place = self.start
        written = self._name(offset)
        name = (
            self.constructed_name(written, place, is_attribute=False)
            if isinstance(written, str)
            else written
        )
        content = _Content()
        self.expect("{", "after the name")
        if not self.take("}"):
            while self._item(content):
                pass
            self._end_items(content)
            self.expect("}", "or an operator")
        self.leave()
        return Element(name, tuple(content.attributes), (), tuple(content.parts), offset)

    def _name(self, offset: int) -> str | ComputedName:
        """The name after the word, as it is or in braces as a string or another expression."""
        if self.take("{"):
            written, place = self.value, self.start
            if self.kind is Kind.STRING and self._is_name(written.strip(_BLANKS)):
                self.advance()
                if self.take("}"):
                    return written.strip(_BLANKS)
                self.move(place)
            self.enter(offset)
            expr = self.sequence()
            self.leave()
            text = expr.value if isinstance(expr, Literal) else None
            if isinstance(text, str) and not self._is_name(text.strip(_BLANKS)):
                reason = f"{in_quotes(text)} is no name of an element or attribute"
                raise self.error("XQDY0074", place, reason)
            self.expect("}", "or an operator")
            return ComputedName(expr, self._known_namespaces(offset))
        written = self.value
        if not self._is_name(written):
            raise self.unexpected("the name of an element")
        self.advance()
        return written

    def _known_namespaces(self, offset: int) -> tuple[tuple[str, str], ...]:
        """What every prefix is bound to here."""
        known = [(prefix, uri) for prefix, uri in self.namespaces.items() if prefix != "xml"]
        bound = [(prefix, self.bindable(prefix, uri, offset)) for prefix, uri in known]
        return (*sorted(bound), ("xml", XML_NAMESPACE))

    def _is_name(self, written: str) -> bool:
        found = _QNAME.match(written, 0)
        return found is not None and found.end() == len(written)

    def _item(self, content: _Content) -> bool:
        """Reads what stands before a comma or the end; whether more comes."""
        offset = self.start
        word = self.computed_word()
        if word == "attribute" and not (content.parts or content.items):
            self._attribute(content)
        elif word == "text":
            self._text(content)
        else:
            item = self.single()
            if isinstance(item, Element):
                self._end_items(content)
                content.parts.append(item)
            else:
                if not content.items:
                    content.start = offset
                content.items += item.items if isinstance(item, Sequence) else (item,)
        if not self.take(","):
            return False
        self.count(offset)
        return True

    def _end_items(self, content: _Content) -> None:
        if not content.items:
            return
        items = tuple(content.items)
        self.count(content.start)
        expr = items[0] if len(items) == 1 else Sequence(items, content.start)
        content.parts.append(Enclosed(expr, content.start))
        content.items = []

    def _attribute(self, content: _Content) -> None:
        """`attribute name {e}` at the head of an element."""
        offset = self.start
        self.count(offset)
        self.advance()
        written = self._name(offset)
        name = (
            self._attribute_name(written, content, offset) if isinstance(written, str) else written
        )
        place = self.start
        value = self._braced_value()
        parts = () if value is None else (Enclosed(value, place),)
        content.attributes.append(Attribute(name, parts, offset))

    def _attribute_name(self, written: str, content: _Content, offset: int) -> Name:
        """A constant name of an attribute, which those before do not have."""
        if written == "xmlns" or written.startswith("xmlns:"):
            raise self.error("XQST0070", offset, "the prefix xmlns is reserved")
        name = self.constructed_name(written, offset, is_attribute=True)
        known = [each.name for each in content.attributes]
        if (name.uri, name.local) in [(it.uri, it.local) for it in known if isinstance(it, Name)]:
            raise self.error("XQST0040", offset, f"attribute {written} is there twice")
        return name

    def _text(self, content: _Content) -> None:
        """`text {e}`: a text of the values, with blanks between them; none of no value."""
        offset = self.start
        self._end_items(content)
        self.count(offset)
        self.advance()
        value = self._braced_value()
        if value is None:
            return
        text, blank = Variable("text", offset), Literal(" ", LiteralKind.STRING, offset)
        joined = Call("string-join", (text, blank), offset)
        chosen = If(Call("exists", (text,), offset), joined, Sequence((), offset), offset)
        expr = Flwor((Let("text", value, offset),), None, (), chosen, offset)
        content.parts.append(Enclosed(expr, offset))

    def _braced_value(self) -> Expr | None:
        """`{e}`; None where nothing is between the braces."""
        offset = self.start
        self.expect("{", "after the name")
        if self.take("}"):
            return None
        self.enter(offset)
        value = self.sequence()
        self.leave()
        self.expect("}", "or an operator")
        return value

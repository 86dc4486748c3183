"""The plain chunker: a whole message in, its chunks out, in Python.

Names are followed down the label paths of all chunks at once; inside a subtree that a chunk keeps,
bytes are copied; a single node is its start tag and end tag. Start tags of open elements wait until
a chunk needs them, so an element that has nothing for a chunk leaves nothing in it.

Example:
    >>> from pathcast.chunking.filtering_scheme import Chunking
    >>> chunking = Chunking(1)
    >>> _ = chunking.register("q", "/a/b[c]/d")
    >>> message = b"<a k='1'><b><c>1</c><d>2</d></b><b>x</b><!-- no --></a>"
    >>> cut = cut_plainly(chunking.scheme(), message)
    >>> cut.chunks, cut.elements
    ((b"<a k='1'><b><c></c><d>2</d></b></a>",), (4,))

A chunk is UTF-8, whatever the message was in. What stands before the root element is in all of
them, a document type declaration among it, which text and attributes may depend on. White space
between elements that are left out is left out.

Source: Lehner and Irmert, BTW 2003, sections 4 and 5 (CHUNKTOOL).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.parsers import expat

from pathcast.chunking.cut import Cut, CutNode, cut_tree
from pathcast.chunking.filtering_scheme import FilteringScheme
from pathcast.limits import Limits
from pathcast.schema.element_paths import ExpandedName
from pathcast_papers.message import parse_message
from pathcast_papers.message.decoding import decode_message

_SEPARATOR: Final = "\x1f"
_XML_DECLARATION: Final = re.compile(rb"\s*<\?xml\s.*?\?>", re.DOTALL)
_TAG: Final = re.compile(rb"<(?:[^>\"']|\"[^\"]*\"|'[^']*')*>")


def cut_plainly(
    scheme: FilteringScheme,
    message: bytes,
    limits: Limits | None = None,
    encoding: str | None = None,
) -> Cut:
    """Cuts a message.

    Args:
        scheme: What the chunks are.
        message: The whole message.
        limits: What it may cost.
        encoding: What the caller knows of its encoding.

    Raises:
        MessageError: The door refuses the message.

    Cost: some 3 µs an element; memory of the message, three times.
    """
    parse_message(message, limits, encoding)
    data = decode_message(message, encoding).text.encode()
    declaration = _XML_DECLARATION.match(data)
    data = data[declaration.end() :] if declaration else data
    return _PlainChunker(scheme, data).run()


@dataclass(slots=True)
class _Open:
    """An open element."""

    name: ExpandedName
    node: CutNode | None
    kept: int
    tag: bytes
    end: int
    is_empty: bool


class _PlainChunker:
    def __init__(self, scheme: FilteringScheme, data: bytes) -> None:
        self.count = len(scheme.chunks)
        self.paths = scheme.paths
        self.data = data
        self.document = cut_tree(scheme)
        self.stack: list[_Open] = []
        self.written = [0] * self.count
        self.parts: list[list[bytes]] = [[] for _ in range(self.count)]
        self.elements = [0] * self.count
        self.copied = [0] * self.count
        self.prolog = b""
        self.fault = ""

    def run(self) -> Cut:
        self.parser = expat.ParserCreate("UTF-8", _SEPARATOR)
        self.parser.namespace_prefixes = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.Parse(self.data, True)
        chunks = tuple(b"".join(parts) for parts in self.parts)
        return Cut(chunks, tuple(self.elements), self.fault)

    def start(self, written: str, _: object) -> None:
        parts = written.split(_SEPARATOR)
        name = (parts[0], parts[1]) if len(parts) > 1 else ("", parts[0])
        above = self.stack[-1] if self.stack else None
        self.check(above, name)
        node_above = self.document if above is None else above.node
        node = None if node_above is None else node_above.below.get(name)
        place = self.parser.CurrentByteIndex
        if above is None:
            self.prolog = self.data[:place]
        is_in_entity = self.data[place : place + 1] != b"<"
        kept = 0 if above is None else above.kept
        if is_in_entity and node is not None:
            self.fault = self.fault or "an element to be cut at comes from an entity"
        tag = _TAG.match(self.data, place)
        end = place if is_in_entity or tag is None else tag.end()
        is_empty = self.data[end - 2 : end] == b"/>"
        now = kept | (node.content if node else 0)
        single = (node.single if node else 0) & ~now
        self.stack.append(_Open(name, node, now, self.data[place:end], end, is_empty))
        for number in _bits(now):
            self.elements[number] += 1
        for number in _bits(now & ~kept):
            self.open_above(number)
            self.copied[number] = place
            self.written[number] = len(self.stack)
        for number in _bits(single):
            self.open_above(number)
            self.keep(number, self.stack[-1])
            self.written[number] = len(self.stack)

    def check(self, above: _Open | None, name: ExpandedName) -> None:
        if self.paths is None:
            return
        is_known = (
            name == self.paths.root if above is None else name in self.paths.children(above.name)
        )
        if not is_known:
            self.fault = self.fault or "the message is not built as the schema says"

    def open_above(self, number: int) -> None:
        """Writes the start tags that a chunk has not got, the innermost element's apart."""
        if not self.written[number]:
            self.parts[number].append(self.prolog)
        for each in self.stack[self.written[number] : -1]:
            self.keep(number, each)

    def keep(self, number: int, element: _Open) -> None:
        self.parts[number].append(element.tag)
        self.elements[number] += 1

    def end(self, _: str) -> None:
        element = self.stack.pop()
        depth = len(self.stack)
        kept_above = self.stack[-1].kept if self.stack else 0
        if element.is_empty:
            end = element.end
        else:
            place = self.parser.CurrentByteIndex
            end = (
                self.data.index(b">", place) + 1 if self.data[place : place + 1] == b"<" else place
            )
        for number in _bits(element.kept & ~kept_above):
            self.parts[number].append(self.data[self.copied[number] : end])
        for number in range(self.count):
            if self.written[number] > depth:
                self.written[number] = depth
                if not element.kept >> number & 1 and not element.is_empty:
                    self.parts[number].append(b"</" + _qualified(element.tag) + b">")


def _qualified(tag: bytes) -> bytes:
    """The name in a start tag, as it is written."""
    return re.split(rb"[\s/>]", tag[1:], maxsplit=1)[0]


def _bits(mask: int) -> Iterable[int]:
    number = 0
    while mask:
        if mask & 1:
            yield number
        mask >>= 1
        number += 1

"""Results as XML: items of a subscription's value as bytes.

An element of the message is written with all namespaces that are in scope for it and that where it
is put does not have; in a constructed element it also inherits those of that element. `xmlns=""` is
written where an element in no namespace, or one that says `xmlns=""` itself, is put into one that
has a default namespace, and what is inside does not inherit that default any more.

Text is written with `&`, `<`, `>` and carriage return escaped; attribute values with `"`, tab and
newline besides, and `>` as it is.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.evaluation.xpath import Document
    >>> document = Document(parse_message(b"<a xmlns='urn:d'><b x='1 &lt; 2'/>&amp;</a>"))
    >>> serialiser = Serialiser(document, bytes_max=1000)
    >>> serialiser.result(document.children(document.children(Node(0))[0])[0])
    b'<b xmlns="urn:d" x="1 &lt; 2"/>'

Source: XSLT 2.0 and XQuery 1.0 Serialization, section 5; XQuery 1.0, section 3.7.1.3 (copying).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pathcast_papers.evaluation.xpath import Document, Node, NodeKind
from pathcast_papers.message_broker.xquery.construction import written
from pathcast_papers.message_broker.xquery.items import Atomic, ConstructedElement, Item

_Part: TypeAlias = str | Node | ConstructedElement


class TooLongError(Exception):
    """The results are longer than they may be."""


class Serialiser:
    """Writes the results that one subscription gets from one message.

    Args:
        document: The message.
        bytes_max: Bytes that all results together may have.
    """

    def __init__(self, document: Document, bytes_max: int) -> None:
        self._document = document
        self._left = bytes_max
        self._parts: list[bytes] = []

    def result(self, item: Item) -> bytes:
        """One item: a node with all that is in it, or a value as text.

        Raises:
            TooLongError: There is no room left for it.
        """
        self._parts = []
        if isinstance(item, Atomic):
            self._write(escaped_text(str(item)))
        elif isinstance(item, ConstructedElement):
            self._constructed(item)
        elif self._document.kind(item) in (NodeKind.ATTRIBUTE, NodeKind.NAMESPACE):
            self._write(escaped_text(self._document.string_value(item)))
        else:
            self._copy(item, {})
        return b"".join(self._parts)

    def _write(self, text: str) -> None:
        data = text.encode()
        self._left -= len(data)
        if self._left < 0:
            raise TooLongError
        self._parts.append(data)

    def _constructed(self, element: ConstructedElement) -> None:
        """Without recursion: variables can nest elements as deep as a text is long."""
        waiting: list[tuple[Iterator[_Part], str, Mapping[str, str]]] = []
        content, end, names = self._open(element, {})
        waiting.append((content, end, names))
        while waiting:
            content, end, names = waiting[-1]
            part = next(content, None)
            if part is None:
                self._write(end)
                waiting.pop()
            elif isinstance(part, str):
                self._write(escaped_text(part))
            elif isinstance(part, ConstructedElement):
                waiting.append(self._open(part, names))
            else:
                self._copy(part, names)

    def _open(
        self, element: ConstructedElement, outer: Mapping[str, str]
    ) -> tuple[Iterator[_Part], str, Mapping[str, str]]:
        """Writes a start tag.

        Returns:
            The content, the end tag ("" after an empty-element tag), the namespaces in scope.
        """
        names = {**outer, **element.namespaces}
        if not element.name.uri or not names.get(""):
            names.pop("", None)
        name = written(element.name)
        attributes = [(written(name), value) for name, value in element.attributes]
        self._start_tag(name, outer, names, attributes, is_empty=not element.content)
        return iter(element.content), f"</{name}>" if element.content else "", names

    def _start_tag(
        self,
        name: str,
        outer: Mapping[str, str],
        names: Mapping[str, str],
        attributes: list[tuple[str, str]],
        *,
        is_empty: bool,
    ) -> None:
        parts = [f"<{name}"]
        for prefix in sorted({*outer, *names}):
            uri = names.get(prefix, "")
            if uri != outer.get(prefix, ""):
                declared = f"xmlns:{prefix}" if prefix else "xmlns"
                parts.append(f' {declared}="{escaped_value(uri)}"')
        parts += [f' {attribute}="{escaped_value(value)}"' for attribute, value in attributes]
        parts.append("/>" if is_empty else ">")
        self._write("".join(parts))

    def _copy(self, top: Node, outer: Mapping[str, str]) -> None:
        """Writes a node of the message and all that is in it.

        Args:
            top: The node.
            outer: The namespaces in scope where it is put.
        """
        document = self._document
        opened: list[tuple[int, str, Mapping[str, str], str]] = []
        names, default = outer, outer.get("", "")
        for place in range(top.place, document.end(top)):
            while opened and opened[-1][0] <= place:
                _, end, names, default = opened.pop()
                self._write(end)
            node = Node(place)
            match document.kind(node):
                case NodeKind.ELEMENT:
                    end, inner, inherited = self._element(node, names, outer, default)
                    if end:
                        opened.append((document.end(node), end, names, default))
                        names, default = inner, inherited
                case NodeKind.TEXT:
                    self._write(escaped_text(document.string_value(node)))
                case NodeKind.COMMENT:
                    self._write(f"<!--{document.string_value(node)}-->")
                case NodeKind.INSTRUCTION:
                    content = document.string_value(node)
                    target = document.qualified_name(node)
                    self._write(f"<?{target}{' ' if content else ''}{content}?>")
        while opened:
            self._write(opened.pop()[1])

    def _element(
        self, node: Node, names: Mapping[str, str], outer: Mapping[str, str], default: str
    ) -> tuple[str, Mapping[str, str], str]:
        """Writes the start tag of an element of the message.

        Args:
            node: The element.
            names: Namespaces in scope for what was written around it.
            outer: Namespaces in scope where the copied tree is put.
            default: Default namespace that is inherited from there.

        Returns:
            The end tag ("" after an empty-element tag), the namespaces in scope inside, the default
            namespace that is inherited inside.
        """
        document = self._document
        own = dict(document.namespace_bindings(node))
        own.pop("xml", None)
        if "" not in own:
            uri, _ = document.expanded_name(node) or ("", "")
            # An element in no namespace has no prefix, and what it holds is shut off with it.
            if not uri or document.has_default_taken_back(node):
                default = ""
        inner = {**outer, **own}
        if "" not in own:
            inner.pop("", None)
            if default:
                inner[""] = default
        attributes = [
            (document.qualified_name(each), document.string_value(each))
            for each in document.attributes(node)
        ]
        name = document.qualified_name(node)
        is_empty = document.end(node) == node.place + 1
        self._start_tag(name, names, inner, attributes, is_empty=is_empty)
        return "" if is_empty else f"</{name}>", inner, default


def escaped_text(text: str) -> str:
    """Characters as content of an element.

    Example:
        >>> escaped_text("a < b && ]]>")
        'a &lt; b &amp;&amp; ]]&gt;'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#xD;")


def escaped_value(text: str) -> str:
    r"""Characters as the value of an attribute between double quotes.

    Example:
        >>> escaped_value('a "b"\n')
        'a &quot;b&quot;&#xA;'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return text.replace("\t", "&#x9;").replace("\n", "&#xA;").replace("\r", "&#xD;")

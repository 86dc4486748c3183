"""The message tree: one message as columns, the Python mirror of the kernel's.

Elements are numbered in document order from 0 (the root element), text nodes too. The elements
inside element `e` are `range(e + 1, element_end[e])`, its text nodes and theirs
`range(text_start[e], text_end[e])`, its attributes
`range(attribute_start[e], attribute_start[e + 1])`.

Example:
    >>> from pathcast.message import parse_message
    >>> tree = parse_message(b"<a b='1'>x<c/>y</a>")
    >>> tree.name, tree.parent, tree.text_value
    ([('', 'a'), ('', 'c')], [-1, 0], ['x', 'y'])

It holds no comments, no processing instructions and no namespace declarations, and cannot be
written back as XML.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

ExpandedName: TypeAlias = tuple[str, str]
"""Namespace URI ("" for none) and local name."""

NO_ELEMENT: Final = -1
"""The parent of the root element."""


@dataclass(slots=True)
class MessageTree:
    """The columns of one message.

    Attributes:
        name: Expanded name of each element.
        parent: Parent element of each element, `NO_ELEMENT` for the root.
        depth: Depth of each element; the root has 0.
        element_end: One past the last element of the subtree.
        attribute_start: First attribute of each element; one entry more than there are elements.
        text_start: First text node inside each element.
        text_end: One past the last text node inside each element.
        attribute_name: Expanded name of each attribute. Namespace declarations are not attributes.
        attribute_value: Normalised value of each attribute.
        text_parent: Element that each text node is a child of.
        text_value: Content of each text node (XPath 1.0, 5.7): CDATA merged in, never empty, split
            by tags, comments and processing instructions.
    """

    name: list[ExpandedName] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    element_end: list[int] = field(default_factory=list)
    attribute_start: list[int] = field(default_factory=list)
    text_start: list[int] = field(default_factory=list)
    text_end: list[int] = field(default_factory=list)
    attribute_name: list[ExpandedName] = field(default_factory=list)
    attribute_value: list[str] = field(default_factory=list)
    text_parent: list[int] = field(default_factory=list)
    text_value: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        """Number of elements."""
        return len(self.name)

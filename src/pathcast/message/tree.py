"""The message tree: one message as columns, the Python mirror of the kernel's.

Elements are numbered in document order from 0 (the root element), text nodes too. The elements
inside element `e` are `range(e + 1, element_end[e])`, its text nodes and theirs
`range(text_start[e], text_end[e])`, its attributes
`range(attribute_start[e], attribute_start[e + 1])`.

Example:
    >>> from pathcast.kernel import parse
    >>> from pathcast.limits import Limits
    >>> tree = parse(b"<a b='1'>x<c/>y</a>", Limits())
    >>> tree.name, tree.parent, tree.text_value
    ([('', 'a'), ('', 'c')], [-1, 0], ['x', 'y'])

What only some XPath expressions ask for (comments, processing instructions, prefixes, namespace
declarations, declared ids) is in `details`. A tree cannot be written back as XML.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

ExpandedName: TypeAlias = tuple[str, str]
"""Namespace URI ("" for none) and local name."""

NO_ELEMENT: Final = -1
"""The parent of the root element."""


@dataclass(slots=True)
class TreeDetails:
    """The columns of a message that paths over elements, attributes and text do without.

    A *markup* is a comment or processing instruction; they are numbered in document order. Those
    beside the root element are among them, those of a document type declaration are not.

    Attributes:
        markup_target: Target of each processing instruction, None for a comment.
        markup_content: Content of each.
        markup_parent: Element that each is a child of, `NO_ELEMENT` beside the root element.
        markup_texts_before: Number of text nodes before each.
        markup_start: Number of markups before each element.
        markup_end: Number of markups before the end of each element.
        prefix: Prefix of each element as written, "" if it has none.
        attribute_prefix: Prefix of each attribute as written, "" if it has none.
        declaration_start: First namespace declaration of each element; one entry more than there
            are elements.
        declaration: Prefix ("" for the default namespace) and namespace URI ("" for none) of each
            namespace declaration.
        id_attribute: Attributes that the document type declaration says are of type ID.
    """

    markup_target: list[str | None] = field(default_factory=list)
    markup_content: list[str] = field(default_factory=list)
    markup_parent: list[int] = field(default_factory=list)
    markup_texts_before: list[int] = field(default_factory=list)
    markup_start: list[int] = field(default_factory=list)
    markup_end: list[int] = field(default_factory=list)
    prefix: list[str] = field(default_factory=list)
    attribute_prefix: list[str] = field(default_factory=list)
    declaration_start: list[int] = field(default_factory=list)
    declaration: list[tuple[str, str]] = field(default_factory=list)
    id_attribute: set[int] = field(default_factory=set)


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
        details: The other columns, which every door gives; None in a tree made in another way.
            They do not count when trees are compared.
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
    details: TreeDetails | None = field(default=None, compare=False)

    def __len__(self) -> int:
        """Number of elements."""
        return len(self.name)

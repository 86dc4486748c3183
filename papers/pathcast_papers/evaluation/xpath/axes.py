"""The thirteen axes and the node tests.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.evaluation.xpath.document import DOCUMENT_NODE, Document
    >>> document = Document(parse_message(b"<a><b/><c/><d/></a>"))
    >>> c = document.node_of_element(2)
    >>> [document.qualified_name(node) for node in axis_nodes(document, Axis.PRECEDING, c)]
    ['b']

Source: XPath 1.0, sections 2.2 (axes) and 2.3 (node tests).
"""

from __future__ import annotations

from collections.abc import Iterator

from pathcast_papers.evaluation.xpath.document import Document, Node, NodeKind
from pathcast_papers.language.syntax import Axis, NameTest, NodeTest, NodeType


def axis_nodes(document: Document, axis: Axis, node: Node) -> list[Node]:
    """The nodes of an axis in the order in which positions count: away from the context node."""
    match axis:
        case Axis.SELF:
            return [node]
        case Axis.CHILD:
            return document.children(node)
        case Axis.DESCENDANT:
            return document.descendants(node)
        case Axis.DESCENDANT_OR_SELF:
            return [node, *document.descendants(node)]
        case Axis.ATTRIBUTE:
            return document.attributes(node)
        case Axis.NAMESPACE:
            return document.namespaces(node)
        case Axis.PARENT:
            parent = document.parent(node)
            return [] if parent is None else [parent]
        case Axis.ANCESTOR:
            return list(_ancestors(document, node))
        case Axis.ANCESTOR_OR_SELF:
            return [node, *_ancestors(document, node)]
        case Axis.FOLLOWING_SIBLING:
            return [each for each in _siblings(document, node) if each > node]
        case Axis.PRECEDING_SIBLING:
            return [each for each in reversed(_siblings(document, node)) if each < node]
        case Axis.FOLLOWING:
            return [Node(place) for place in range(document.end(node), len(document))]
        case Axis.PRECEDING:
            above = set(_ancestors(document, node))
            before = (Node(place) for place in range(node.place - 1, -1, -1))
            return [each for each in before if each not in above]


def _ancestors(document: Document, node: Node) -> Iterator[Node]:
    parent = document.parent(node)
    while parent is not None:
        yield parent
        parent = document.parent(parent)


def _siblings(document: Document, node: Node) -> list[Node]:
    """The children of the parent; none for attribute and namespace nodes."""
    parent = document.parent(node)
    if parent is None or document.kind(node) in (NodeKind.ATTRIBUTE, NodeKind.NAMESPACE):
        return []
    return document.children(parent)


def passes(document: Document, axis: Axis, test: NodeTest, node: Node) -> bool:
    """Whether a node passes the node test of a step on an axis."""
    kind = document.kind(node)
    if isinstance(test, NameTest):
        if kind is not _principal(axis):
            return False
        name = document.expanded_name(node)
        if name is None:
            return False
        uri, local = name
        if test.prefix != "*" and test.uri is not None and test.uri != uri:
            return False
        return test.local in ("*", local)
    match test.type:
        case NodeType.NODE:
            return True
        case NodeType.TEXT:
            return kind is NodeKind.TEXT
        case NodeType.COMMENT:
            return kind is NodeKind.COMMENT
    if kind is not NodeKind.INSTRUCTION:
        return False
    return test.target is None or document.expanded_name(node) == ("", test.target)


def _principal(axis: Axis) -> NodeKind:
    """The type of node that a name on an axis asks for."""
    if axis is Axis.ATTRIBUTE:
        return NodeKind.ATTRIBUTE
    return NodeKind.NAMESPACE if axis is Axis.NAMESPACE else NodeKind.ELEMENT

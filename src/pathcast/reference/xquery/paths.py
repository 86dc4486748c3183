"""Axis steps: the nodes of an axis that pass a node test.

The axes are those of `pathcast.reference.xpath.axes`; the node tests are XQuery's.

Source: XQuery 1.0, section 3.2.1.
"""

from __future__ import annotations

from typing import Final

from pathcast.query.syntax import Axis
from pathcast.query.xquery.syntax import NameTest, NodeKind, NodeTest
from pathcast.reference.xpath import Document, Node
from pathcast.reference.xpath import NodeKind as Kind

_KINDS: Final = {
    NodeKind.TEXT: Kind.TEXT,
    NodeKind.COMMENT: Kind.COMMENT,
    NodeKind.PROCESSING_INSTRUCTION: Kind.INSTRUCTION,
    NodeKind.ELEMENT: Kind.ELEMENT,
    NodeKind.ATTRIBUTE: Kind.ATTRIBUTE,
}


def passes(document: Document, axis: Axis, test: NodeTest, node: Node) -> bool:
    """Whether a node of an axis passes the node test of a step."""
    kind = document.kind(node)
    if isinstance(test, NameTest):
        if kind is not (Kind.ATTRIBUTE if axis is Axis.ATTRIBUTE else Kind.ELEMENT):
            return False
        uri, local = document.expanded_name(node) or ("", "")
        return test.uri in (None, uri) and test.local in (None, local)
    if test.kind is NodeKind.NODE:
        return True
    if kind is not _KINDS[test.kind]:
        return False
    return test.target is None or document.expanded_name(node) == ("", test.target)

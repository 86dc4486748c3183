"""Where a node is: the path from the root to it, for people and for XPath.

Example:
    >>> from pathcast.message import parse_message
    >>> from pathcast.query.notation import Notation
    >>> from pathcast.evaluation.xpath import Document
    >>> document = Document(parse_message(b"<a><b/><b n='1'/></a>"))
    >>> b = document.node_of_element(2)
    >>> node_path(document, document.attributes(b)[0], Notation())
    '/a[1]/b[2]/@n'
"""

from __future__ import annotations

from pathcast.evaluation.xpath import Document, Node, NodeKind
from pathcast.query.notation import Notation


def node_path(document: Document, node: Node, notation: Notation) -> str:
    """The path to a node, with places among siblings of the same kind and name.

    Args:
        document: The message.
        node: The node.
        notation: Writes names with the prefixes of the query; others as `Q{uri}name`.

    Cost: siblings of the node and of those around it.
    """
    parts: list[str] = []
    at: Node | None = node
    while at is not None:
        parent = document.parent(at)
        if parent is not None:
            parts.append(_part(document, at, parent, notation))
        at = parent
    return "/" + "/".join(reversed(parts))


def is_leaf(document: Document, node: Node) -> bool:
    """Whether a node holds no elements, so that its string-value says all of it."""
    kind = document.kind(node)
    if kind not in (NodeKind.ELEMENT, NodeKind.DOCUMENT):
        return True
    return not any(document.kind(child) is NodeKind.ELEMENT for child in document.children(node))


def _part(document: Document, node: Node, parent: Node, notation: Notation) -> str:
    kind = document.kind(node)
    name = document.expanded_name(node)
    if kind is NodeKind.ATTRIBUTE and name is not None:
        return "@" + notation.name(*name, has_default=False)
    if kind is NodeKind.NAMESPACE and name is not None:
        return f"namespace::{name[1] or '*'}"
    alike = [
        child
        for child in document.children(parent)
        if document.kind(child) is kind and document.expanded_name(child) == name
    ]
    test = {
        NodeKind.TEXT: "text()",
        NodeKind.COMMENT: "comment()",
        NodeKind.INSTRUCTION: "processing-instruction()",
    }.get(kind)
    if test is None:
        test = notation.name(*(name or ("", "")), has_default=True)
    elif kind is NodeKind.INSTRUCTION and name is not None:
        test = f"processing-instruction('{name[1]}')"
    return f"{test}[{alike.index(node) + 1}]"

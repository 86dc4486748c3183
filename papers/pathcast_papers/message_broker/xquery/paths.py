"""Axis steps: the nodes of an axis that pass a node test.

The axes are those of `evaluation.xpath.axes`; the node tests are XQuery's. `//a`, short
for two steps, is taken as one where that makes no difference.

Source: XQuery 1.0, section 3.2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast_papers.evaluation.xpath import Document, Node
from pathcast_papers.evaluation.xpath import NodeKind as Kind
from pathcast_papers.language.syntax import Axis
from pathcast_papers.language.xquery.syntax import KindTest, NameTest, NodeKind, NodeTest, Step

_KINDS: Final = {
    NodeKind.TEXT: Kind.TEXT,
    NodeKind.COMMENT: Kind.COMMENT,
    NodeKind.PROCESSING_INSTRUCTION: Kind.INSTRUCTION,
    NodeKind.ELEMENT: Kind.ELEMENT,
    NodeKind.ATTRIBUTE: Kind.ATTRIBUTE,
}


_ANY_NODE_BELOW: Final = Step(Axis.DESCENDANT_OR_SELF, KindTest(NodeKind.NODE))


def shortened(steps: Sequence[Step]) -> list[Step]:
    """Steps that lead to the same nodes, `//a` being `descendant::a` where no predicate counts.

    Example:
        >>> child = Step(Axis.CHILD, NameTest("", "a"))
        >>> [step.axis.value for step in shortened([_ANY_NODE_BELOW, child, child])]
        ['descendant', 'child']
    """
    found: list[Step] = []
    for step in steps:
        if (
            step.axis is Axis.CHILD
            and not step.predicates
            and found
            and found[-1] == _ANY_NODE_BELOW
        ):
            found[-1] = Step(Axis.DESCENDANT, step.node_test)
        else:
            found.append(step)
    return found


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

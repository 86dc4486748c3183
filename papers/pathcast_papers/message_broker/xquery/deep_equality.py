"""`fn:deep-equal`: whether two sequences have equal items.

Comments and instructions within nodes do not count, nor does the order of attributes.

Source: Functions and Operators 3.1, section 14.2.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pathcast_papers.evaluation.xpath import Node, NodeKind
from pathcast_papers.language.xquery.syntax import Comparator
from pathcast_papers.message_broker.xquery.comparison import are_alike, holds
from pathcast_papers.message_broker.xquery.items import Atomic, Item, Items

if TYPE_CHECKING:
    from pathcast_papers.message_broker.xquery.evaluator import Evaluator

_MARKUP: Final = (NodeKind.COMMENT, NodeKind.INSTRUCTION)


def are_equal(evaluator: Evaluator, one: Items, other: Items, fold: Callable[[str], str]) -> bool:
    """Whether two sequences have equal items; `fold` gives what texts are compared by."""
    return len(one) == len(other) and all(
        _are_equal_items(evaluator, *pair, fold) for pair in zip(one, other, strict=True)
    )


def _are_equal_items(
    evaluator: Evaluator, one: Item, other: Item, fold: Callable[[str], str]
) -> bool:
    evaluator.budget.charge(1)
    if isinstance(one, Node) and isinstance(other, Node):
        return one == other or _are_equal_nodes(evaluator, one, other, fold)
    if not (isinstance(one, Atomic) and isinstance(other, Atomic)):
        return False
    if one.is_text and other.is_text:
        return fold(str(one)) == fold(str(other))
    if one.is_number and other.is_number and math.isnan(one.number) and math.isnan(other.number):
        return True
    return are_alike(one, other) and holds(Comparator.EQ, one, other)


def _are_equal_nodes(
    evaluator: Evaluator, one: Node, other: Node, fold: Callable[[str], str]
) -> bool:
    document = evaluator.document
    waiting = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        evaluator.budget.charge(1)
        if document.kind(left) is not document.kind(right):
            return False
        if document.expanded_name(left) != document.expanded_name(right):
            return False
        if document.kind(left) is not NodeKind.ELEMENT:
            if fold(document.string_value(left)) != fold(document.string_value(right)):
                return False
            continue
        attributes = [
            {
                document.expanded_name(each): fold(document.string_value(each))
                for each in document.attributes(node)
            }
            for node in (left, right)
        ]
        children = [
            [each for each in document.children(node) if document.kind(each) not in _MARKUP]
            for node in (left, right)
        ]
        if attributes[0] != attributes[1] or len(children[0]) != len(children[1]):
            return False
        waiting += zip(*children, strict=True)
    return True

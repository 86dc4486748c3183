"""The oracle: one query on one message, with no filtering, straight from XPath 1.0.

A location path maps a node-set to a node-set, step by step. Nothing is shared, nothing is compiled
and nothing is clever, so that a difference between the oracle and an engine is the engine's fault.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.language import normalise
    >>> from pathcast_papers import parse
    >>> tree = parse(b"<a><b><c>1</c></b><b><c>7</c></b></a>", Limits())
    >>> Oracle(tree).select(normalise("/a/b[2]/c[. > 5]").steps)
    [4]
    >>> is_satisfied(normalise("/a/b[3]"), tree)
    False

Cost: in proportion to the message, a step, and again for every nested path.

Source: XPath 1.0, sections 2 (location paths), 2.4 (predicates), 3.4 (comparisons), 5 (data model).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pathcast.message import MessageTree
from pathcast_papers.evaluation.comparison import passes, passes_number
from pathcast_papers.evaluation.xpath import Evaluator
from pathcast_papers.language import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    CompiledQuery,
    Condition,
    Name,
    NameTest,
    NestedCondition,
    NormalQuery,
    Position,
    Stage,
    Step,
    TextCondition,
    ValueCondition,
)

DOCUMENT: Final = -1
"""The document node among elements."""


def is_satisfied(query: NormalQuery, tree: MessageTree) -> bool:
    """Whether a query selects something in a message."""
    return bool(Oracle(tree).select(query.steps))


def holds(compiled: CompiledQuery, tree: MessageTree) -> bool:
    """Whether a compiled query holds for a message, whatever it costs.

    Args:
        compiled: The query, of any class.
        tree: The message.

    Example:
        >>> from pathcast_papers.message import parse_message
        >>> from pathcast_papers.language import compile_query
        >>> holds(compile_query("//b[last() = 2] | //c"), parse_message(b"<a><b/><b/></a>"))
        True
    """
    return Oracle(tree).satisfies(compiled)


class Oracle:
    """Location paths on one message. Elements are their numbers in document order."""

    def __init__(self, tree: MessageTree) -> None:
        self.tree = tree
        self._evaluator: Evaluator | None = None
        self._children: dict[int, list[int]] = {DOCUMENT: [0]}
        for element in range(1, len(tree)):
            self._children.setdefault(tree.parent[element], []).append(element)

    def satisfies(self, compiled: CompiledQuery) -> bool:
        """Whether the message satisfies a query of any class."""
        if compiled.path is not None:
            return bool(self.select(compiled.path.steps))
        self._evaluator = self._evaluator or Evaluator(self.tree)
        return self._evaluator.holds(compiled.expression)

    def select(self, steps: Sequence[Step], context: Iterable[int] = (DOCUMENT,)) -> list[int]:
        """The elements that a path selects from some context elements, in document order."""
        nodes = list(context)
        for step in steps:
            nodes = self.step(step, nodes)
        return nodes

    def step(self, step: Step, context: Sequence[int]) -> list[int]:
        """The elements that one step selects."""
        selected: set[int] = set()
        for candidates in self.candidate_lists(step, context):
            selected.update(self.filtered(candidates, step.stages))
        return sorted(selected)

    def candidate_lists(self, step: Step, context: Sequence[int]) -> Iterator[list[int]]:
        """What axis and node test give, as the lists in which positions count.

        `//a` is short for `/descendant-or-self::node()/child::a`: one list for every parent.
        """
        if step.axis is Axis.CHILD:
            parents = list(context)
        else:
            parents = sorted(
                {node for start in context for node in self.descendants_or_self(start)}
            )
        if step.axis is Axis.DESCENDANT_OR_SELF:
            yield [node for node in parents if node != DOCUMENT]
            return
        for parent in parents:
            yield [
                child
                for child in self.children(parent)
                if is_named(self.tree.name[child], step.test)
            ]

    def filtered(self, candidates: list[int], stages: Sequence[Stage]) -> list[int]:
        """What the predicates leave of a list."""
        for stage in stages:
            candidates = self.at_positions(candidates, stage.positions)
            for condition in stage.conditions:
                candidates = [node for node in candidates if self.holds(condition, node)]
        return candidates

    def at_positions(self, candidates: list[int], positions: Sequence[Position]) -> list[int]:
        """The elements of a list whose positions in it are as asked."""
        return [
            node
            for number, node in enumerate(candidates, start=1)
            if all(passes_number(float(number), at.operator, at.number) for at in positions)
        ]

    def holds(self, condition: Condition, node: int) -> bool:
        """Whether a condition is true of an element."""
        match condition:
            case AttributeCondition(test, compare):
                return _some(self.attribute_values(node, test), compare)
            case TextCondition(compare):
                return _some(self.text_values(node), compare)
            case ValueCondition(compare):
                return _some([self.string_value(node)], compare)
            case NestedCondition(steps):
                return bool(self.select(steps, [node]))

    def children(self, node: int) -> list[int]:
        """The child elements of an element or of the document."""
        return self._children.get(node, [])

    def descendants_or_self(self, node: int) -> range:
        """An element and its descendants; of the document, the document and all elements."""
        return range(node, len(self.tree) if node == DOCUMENT else self.tree.element_end[node])

    def attribute_values(self, node: int, test: NameTest) -> list[str]:
        """The values of an element's attributes that pass a node test."""
        tree = self.tree
        own = range(tree.attribute_start[node], tree.attribute_start[node + 1])
        return [tree.attribute_value[at] for at in own if is_named(tree.attribute_name[at], test)]

    def text_values(self, node: int) -> list[str]:
        """The text nodes that are children of an element."""
        tree = self.tree
        inside = range(tree.text_start[node], tree.text_end[node])
        return [tree.text_value[text] for text in inside if tree.text_parent[text] == node]

    def string_value(self, node: int) -> str:
        """All text inside an element."""
        tree = self.tree
        inside = range(tree.text_start[node], tree.text_end[node])
        return "".join(tree.text_value[text] for text in inside)


def is_named(name: tuple[str, str], test: NameTest) -> bool:
    """Whether an expanded name passes a node test."""
    uri, local = name
    match test:
        case AnyName():
            return True
        case Name():
            return (uri, local) == (test.uri, test.local)
        case AnyIn():
            return uri == test.uri
        case AnyNamespace():
            return local == test.local


def _some(values: Sequence[str], compare: Comparison | None) -> bool:
    """Whether some node's value compares as asked (XPath 1.0, 3.4)."""
    if compare is None:
        return bool(values)
    return any(passes(value, compare) for value in values)

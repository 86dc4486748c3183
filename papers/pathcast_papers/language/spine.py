"""Tree patterns in the making: what is known to be there on the way to the node in question.

A *spine* is the chain of pattern nodes from the document node down to the node that an expression
is read for (the focus). Each pattern node stands for one node of the message; what hangs off the
chain is folded into conditions of its nodes. So a spine is a path in normal form that is not yet
closed: going down adds a node, going up closes one.

Example:
    >>> a = PatternNode(1, NodeKind.ELEMENT, Axis.CHILD, Name("", "a"))
    >>> b = PatternNode(2, NodeKind.ELEMENT, Axis.DESCENDANT, Name("", "b"))
    >>> folded((b,), is_main=False)
    [NestedCondition(steps=(Step(axis=<Axis.DESCENDANT: '//'>, test=Name(uri='', local='b'), stages=()),))]
    >>> len(with_conditions((DOCUMENT, a), 1, folded((b,), is_main=False))[1].stages[0].conditions)
    1

Nothing here decides what a query means; see `pathcast_papers.language.weakening`.
"""  # noqa: E501 (the value is shown as it is)

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final, TypeAlias

from pathcast_papers.language.conditions import simplified, stage
from pathcast_papers.language.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Name,
    NameTest,
    NestedCondition,
    Stage,
    Step,
    TextCondition,
)

ANY: Final = AnyName()


class NodeKind(Enum):
    """What kind of node of the message a pattern node stands for."""

    DOCUMENT = auto()
    ELEMENT = auto()
    ATTRIBUTE = auto()
    TEXT = auto()
    OTHER = auto()
    """A comment, a processing instruction or a namespace node: no condition can ask for it."""


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node that must be there.

    Attributes:
        key: Tells pattern nodes of one query apart.
        kind: What kind of node it is.
        axis: How it hangs on the node before it; for an attribute or text, `//.` says that it
            belongs to that element or one below it.
        test: Its name, for elements and attributes.
        stages: Predicates of an element, conditions of the document node; not in order.
        compares: What the value of an attribute or text must be.
        is_counted: Positions count nodes of exactly this test, so it must stay as it is.
    """

    key: int
    kind: NodeKind
    axis: Axis
    test: NameTest = ANY
    stages: tuple[Stage, ...] = ()
    compares: tuple[Comparison, ...] = ()
    is_counted: bool = False

    @property
    def is_container(self) -> bool:
        """Whether it may have children."""
        return self.kind in (NodeKind.DOCUMENT, NodeKind.ELEMENT)


Spine: TypeAlias = tuple[PatternNode, ...]
"""From the document node to the focus."""

DOCUMENT: Final = PatternNode(0, NodeKind.DOCUMENT, Axis.CHILD)
"""The document node, with nothing known of it."""


def with_conditions(spine: Spine, at: int, conditions: Iterable[Condition]) -> Spine:
    """A spine in which one node meets conditions, after all predicates it has."""
    added = tuple(conditions)
    if not added:
        return spine
    node = spine[at]
    if node.stages:
        last = node.stages[-1]
        last = Stage(last.positions, last.conditions + added)
        node = replace(node, stages=(*node.stages[:-1], last))
    else:
        node = replace(node, stages=(Stage((), added),))
    return (*spine[:at], node, *spine[at + 1 :])


def folded(nodes: Sequence[PatternNode], *, is_main: bool) -> list[Condition]:
    """What a chain of nodes says of the node it hangs on, as conditions of that node.

    Args:
        nodes: One or more; the last may be an attribute, a text node or another.
        is_main: Whether it hangs on the document node.
    """
    *elements, last = nodes
    end: list[Condition] = []
    if last.kind is NodeKind.ELEMENT:
        elements.append(last)
    elif last.kind is NodeKind.ATTRIBUTE:
        end = [AttributeCondition(last.test, each) for each in last.compares or (None,)]
    elif last.kind is NodeKind.TEXT:
        end = [TextCondition(each) for each in last.compares or (None,)]
    steps = [_step(node) for node in elements]
    if last.axis is Axis.DESCENDANT_OR_SELF and end:
        steps.append(Step(Axis.DESCENDANT_OR_SELF, ANY, (stage((), end),)))
    elif not steps:
        return end
    elif end:
        steps[-1] = _step(with_conditions((elements[-1],), 0, end)[0])
    return [NestedCondition(simplified(steps, is_main=is_main))] if steps else []


def _step(node: PatternNode) -> Step:
    stages = [stage(each.positions, each.conditions) for each in node.stages]
    kept = tuple(each for each in stages if each.positions or each.conditions)
    return Step(node.axis, node.test, kept)


def open_stage(spine: Spine, *, is_counted: bool) -> Spine:
    """A spine whose focus begins to read a predicate.

    Positions count what the predicates before have left, so a predicate's own conditions are kept
    apart until `close_stage`.
    """
    node = spine[-1]
    if node.kind is not NodeKind.ELEMENT:
        return spine
    stages = (*node.stages, Stage())
    return (*spine[:-1], replace(node, stages=stages, is_counted=node.is_counted or is_counted))


def close_stage(spine: Spine, *, was_counted: bool) -> Spine:
    """A spine whose focus has read its predicate."""
    node = spine[-1]
    if node.kind is not NodeKind.ELEMENT:
        return spine
    *others, last = node.stages
    if last.positions:
        return spine
    stages: tuple[Stage, ...] = (last,) if last.conditions else ()
    if others:
        # It stays even if it is empty: then it is that of a predicate further out, still open.
        *others, before = others
        stages = (*others, Stage(before.positions, before.conditions + last.conditions))
    return (*spine[:-1], replace(node, stages=stages, is_counted=was_counted))


def common_test(left: NameTest, right: NameTest) -> NameTest | None:
    """The names that pass both tests; None if there are none.

    Example:
        >>> common_test(AnyIn("u"), AnyNamespace("a")), common_test(Name("", "a"), AnyIn("u"))
        (Name(uri='u', local='a'), None)
    """
    if left == right or isinstance(right, AnyName):
        return left
    if isinstance(left, AnyName):
        return right
    if isinstance(right, Name) and not isinstance(left, Name):
        left, right = right, left
    match left, right:
        case Name(uri=uri), AnyIn(uri=other):
            return left if uri == other else None
        case Name(local=local), AnyNamespace(local=other):
            return left if local == other else None
        case (AnyIn(uri=uri), AnyNamespace(local=local)) | (
            AnyNamespace(local=local),
            AnyIn(uri=uri),
        ):
            return Name(uri, local)
    return None

"""Moves over tree patterns: down to a new node, up to the node before or to one between.

A `Cursor` is a place on a walk. Moves give the places where a node of the message may be, and say
of it what is asked. They are a part of `language.walking`, which says why they are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pathcast_papers.language import normal
from pathcast_papers.language.normal import Comparison, NameTest
from pathcast_papers.language.spine import (
    ANY,
    NodeKind,
    PatternNode,
    Spine,
    common_test,
    folded,
    with_conditions,
)
from pathcast_papers.language.syntax import NameTest as WrittenName
from pathcast_papers.language.syntax import NodeType, Step

WORK_MAX: Final = 2048
"""Pattern nodes made and predicates read for one query of few disjuncts; beyond, walks say nothing
more. Few queries take more than a hundred; nested `.//.[...]` would take exponentially many."""

WORK_OF_ALTERNATIVE: Final = 16
"""The same for each alternative that a query of many disjuncts may have."""

WAYS_MAX: Final = 16
"""Alternatives of a query that writes no disjunction: ways in which its axes can be followed."""

ALTERNATIVES_MAX: Final = 512
"""Alternatives of any query."""


def alternatives_max(disjuncts: int) -> int:
    """How many alternatives a query may have.

    Args:
        disjuncts: As many as are written in it: operands of `or` and of unions.

    Returns:
        Some for each disjunct, so that a list of values is indexed value by value, however long it
        is; a product of several lists has more, and is not.

    Example:
        >>> [alternatives_max(disjuncts) for disjuncts in (1, 17, 1_000)]
        [16, 68, 512]
    """
    return min(ALTERNATIVES_MAX, max(WAYS_MAX, 4 * disjuncts))


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the patterns do not say.

    Attributes:
        text: What, as a clause.
        offset: Where in the query.
    """

    text: str
    offset: int


class TooManyError(Exception):
    """A walk has too many ends to be followed."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place on a walk.

    Attributes:
        spine: From the document node to the current node.
        fork: Key of the node of the spine where the walk left that of the context node.
        parked: The rest of the context node's spine, below the fork.
    """

    spine: Spine
    fork: int
    parked: Spine = ()

    @property
    def node(self) -> PatternNode:
        """The current node."""
        return self.spine[-1]


class Mover:
    """Moves cursors.

    Args:
        disjuncts: As many as are written in the query.

    Attributes:
        losses: Whatever the patterns found so far do not say.
        alternatives_max: Alternatives that anything in the query may become.
    """

    def __init__(self, disjuncts: int = 1) -> None:
        self.losses: list[Loss] = []
        self.alternatives_max = alternatives_max(disjuncts)
        self._work_max = max(WORK_MAX, WORK_OF_ALTERNATIVE * self.alternatives_max)
        self._keys = 0
        self._work = 0

    def lose(self, text: str, offset: int) -> None:
        """Notes that something is not said."""
        self.losses.append(Loss(text, offset))

    def work(self) -> None:
        """Counts what a query takes to be read.

        Raises:
            TooManyError: It has taken all it may.
        """
        self._work += 1
        if self._work > self._work_max:
            raise TooManyError

    def pushed(
        self, cursor: Cursor, kind: NodeKind, axis: normal.Axis, test: NameTest = ANY
    ) -> Cursor:
        """A cursor at a new node below."""
        self.work()
        self._keys += 1
        node = PatternNode(self._keys, kind, axis, test)
        return replace(cursor, spine=(*cursor.spine, node))

    def lifted(self, cursor: Cursor) -> Cursor:
        """A cursor at the node before in the spine."""
        node, spine = cursor.node, cursor.spine[:-1]
        if node.key == cursor.fork:
            return Cursor(spine, spine[-1].key, (node, *cursor.parked))
        is_main = spine[-1].kind is NodeKind.DOCUMENT
        spine = with_conditions(spine, len(spine) - 1, folded((node,), is_main=is_main))
        return replace(cursor, spine=spine)

    def above(self, cursor: Cursor, axis: normal.Axis) -> Cursor:
        """A cursor at a new element between its node, then on `axis`, and the node before."""
        self.work()
        self._keys += 1
        between = PatternNode(self._keys, NodeKind.ELEMENT, normal.Axis.DESCENDANT)
        node = replace(cursor.node, axis=axis)
        return self.lifted(replace(cursor, spine=(*cursor.spine[:-1], between, node)))

    def parents(self, cursor: Cursor) -> list[Cursor]:
        """Where the parent may be."""
        node = cursor.node
        if node.kind is NodeKind.DOCUMENT:
            return []
        self.check_lift(node)
        if node.axis is normal.Axis.CHILD:
            return [self.lifted(cursor)]
        between = self.above(cursor, normal.Axis.CHILD)
        before = cursor.spine[-2]
        is_impossible = before.kind is NodeKind.DOCUMENT and node.kind in (
            NodeKind.ATTRIBUTE,
            NodeKind.TEXT,
        )
        if is_impossible:
            return [between]
        direct = (*cursor.spine[:-1], replace(node, axis=normal.Axis.CHILD))
        return [self.lifted(replace(cursor, spine=direct)), between]

    def ancestors(self, cursor: Cursor) -> list[Cursor]:
        """Where an ancestor may be."""
        found: list[Cursor] = []
        if not cursor.node.is_container:
            for owner in self.parents(cursor):
                found += [owner, *self.ancestors(owner)]
            return found
        while cursor.node.kind is not NodeKind.DOCUMENT:
            self.check_lift(cursor.node)
            if cursor.node.axis is not normal.Axis.CHILD:
                found.append(self.above(cursor, normal.Axis.DESCENDANT))
            cursor = self.lifted(cursor)
            found.append(cursor)
        return found

    def expanded(self, cursors: Iterable[Cursor]) -> list[Cursor]:
        """The cursors' nodes and all nodes below them."""
        found: list[Cursor] = []
        for cursor in cursors:
            found.append(cursor)
            if cursor.node.is_container:
                or_self = normal.Axis.DESCENDANT_OR_SELF
                found.append(self.pushed(cursor, NodeKind.ELEMENT, normal.Axis.DESCENDANT))
                found.append(self.pushed(cursor, NodeKind.TEXT, or_self))
                found.append(self.pushed(cursor, NodeKind.OTHER, or_self))
        return found

    def tested(self, cursor: Cursor, step: Step) -> list[Cursor]:
        """The cursor if its node may pass the node test of a step, with what that says of it."""
        node, test = cursor.node, step.test
        if isinstance(test, WrittenName):
            if node.kind is not NodeKind.ELEMENT:
                return []
            return self.narrowed(cursor, name_test(test), step.offset)
        match test.type:
            case NodeType.NODE:
                return [cursor]
            case NodeType.TEXT:
                return [cursor] if node.kind is NodeKind.TEXT else []
        return [cursor] if node.kind is NodeKind.OTHER else []

    def narrowed(self, cursor: Cursor, test: NameTest, offset: int) -> list[Cursor]:
        """The cursor if its node may have a name that passes a test, with that said of it."""
        node = cursor.node
        both = common_test(node.test, test)
        if both is None:
            return []
        if both == node.test:
            return [cursor]
        is_or_self = node.axis is normal.Axis.DESCENDANT_OR_SELF
        if node.kind is NodeKind.ELEMENT and (node.is_counted or is_or_self):
            self.lose("the name of a node whose position counts among other names", offset)
            return [cursor]
        if node.kind is NodeKind.ATTRIBUTE and node.compares:
            self.lose("the name of an attribute that was compared", offset)
            return [cursor]
        return [replace(cursor, spine=(*cursor.spine[:-1], replace(node, test=both)))]

    def compared(self, cursor: Cursor, goal: Comparison, offset: int) -> Cursor:
        """A cursor whose node has a value as asked."""
        node = cursor.node
        if node.kind is NodeKind.DOCUMENT:
            # Its string-value is that of the root element.
            cursor = self.pushed(cursor, NodeKind.ELEMENT, normal.Axis.CHILD)
            node = cursor.node
        if node.kind is NodeKind.ELEMENT:
            value = normal.ValueCondition(goal)
            spine = with_conditions(cursor.spine, len(cursor.spine) - 1, (value,))
            return replace(cursor, spine=spine)
        if node.kind is NodeKind.OTHER:
            return cursor
        is_one = node.kind is NodeKind.ATTRIBUTE and isinstance(node.test, normal.Name)
        if not is_one and goal.operator.is_call:
            what = "text nodes" if node.kind is NodeKind.TEXT else "attributes of several names"
            self.lose(f"{goal.operator.value}() of {what} is for the evaluator", offset)
            return self.containing(cursor, goal)
        if not is_one and node.compares:
            self.lose("several comparisons of one node of several", offset)
            return cursor
        node = replace(node, compares=(*node.compares, goal))
        return replace(cursor, spine=(*cursor.spine[:-1], node))

    def containing(self, cursor: Cursor, goal: Comparison) -> Cursor:
        """A cursor at a text node with some text: so has the value of the element it is in."""
        before = cursor.spine[-2]
        if cursor.node.kind is not NodeKind.TEXT or before.kind is not NodeKind.ELEMENT:
            return cursor
        value = normal.ValueCondition(Comparison(normal.Operator.CONTAINS, goal.constant))
        spine = with_conditions(cursor.spine, len(cursor.spine) - 2, (value,))
        return replace(cursor, spine=spine)

    def check_kind(self, node: PatternNode, offset: int) -> None:
        """Notes the loss of a node that no condition asks for."""
        if node.kind is NodeKind.OTHER:
            self.lose("comments, instructions and namespaces are for the evaluator", offset)

    def check_lift(self, node: PatternNode) -> None:
        """Notes what is lost by going up from a node."""
        self.check_kind(node, 0)
        if node.kind is NodeKind.ELEMENT and node.axis is normal.Axis.DESCENDANT_OR_SELF:
            # Only while `//.[...]` is tried, which then is read otherwise.
            self.lose("goes up from //.", 0)


def name_test(test: WrittenName) -> NameTest:
    """A resolved name test in the normal form's terms."""
    if test.prefix == "*":
        return normal.AnyNamespace(test.local)
    if test.uri is None:
        return ANY
    return normal.AnyIn(test.uri) if test.local == "*" else normal.Name(test.uri, test.local)

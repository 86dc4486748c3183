"""Location paths as walks over tree patterns.

A `Cursor` is a place on a walk: the spine down to the current node, and where it left the spine of
the context node. Every step of a location path moves it; where the pattern leaves open what stands
between two nodes (`//`), there is a move for each possibility, so a walk has several ends, of which
one must be the one in the message.

- `child`, `descendant`, `attribute` add a node below, `self` says more of the node.
- `parent` goes back up. If the node was reached by `/`, it is the node before; if by `//`, it is
  the node before or a new one between. `ancestor` goes up any number of times. What is left behind
  becomes a nested path. All of this is exact: both directions of "a node of the message is selected
  if and only if one of the patterns is there with it" hold, for a pattern says of axes exactly what
  they are.
- Siblings weaken to children of the parent (their order is lost), `following` and `preceding` to
  nodes anywhere, comments, instructions and namespace nodes to nothing. These lose something, which
  is noted with its reason: then the patterns are only necessary.

Positions count as the normal form counts: on a step of the axis child (also as `//` abbreviates
it), when all predicates before were read exactly and without alternatives. Otherwise they are lost.

Source: Olteanu, Meuss, Furche, Bry, "XPath: Looking Forward" (2002), for the idea that reverse
axes are forward axes of another pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from pathcast_papers.language import normal
from pathcast_papers.language.moving import Cursor, Mover, TooManyError, name_test
from pathcast_papers.language.normal import AttributeCondition, Comparison, TextCondition
from pathcast_papers.language.spine import (
    ANY,
    NodeKind,
    PatternNode,
    Spine,
    close_stage,
    folded,
    open_stage,
    with_conditions,
)
from pathcast_papers.language.static import Kind, kind_of
from pathcast_papers.language.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    LocationPath,
    NodeType,
    NodeTypeTest,
    PathExpr,
    Predicate,
    Step,
    UnaryExpr,
)
from pathcast_papers.language.syntax import NameTest as WrittenName

CURSORS_MAX: Final = 64
"""Ends that a walk may have while it goes on, if the query may not have more alternatives."""


class Walker(Mover):
    """Walks; what predicates say is its subclass's matter."""

    def true(self, expr: Expr, spine: Spine, *, counts: bool) -> list[Spine]:
        """The spines of which one is there if an expression is true for the focus."""
        raise AssertionError("a subclass knows expressions")

    def few(self, cursors: list[Cursor]) -> list[Cursor]:
        """The ends of a walk, if they are not too many.

        Raises:
            TooManyError: They are.
        """
        if len(cursors) > max(CURSORS_MAX, self.alternatives_max):
            raise TooManyError
        return cursors

    # Node-sets.

    def nodes(self, expr: Expr, spine: Spine, *, is_plain: bool) -> tuple[list[Cursor], bool]:
        """The ends of the walks that a node-set is; whether `//.` is still to come after them.

        Args:
            expr: An expression whose type is node-set.
            spine: Of the context node.
            is_plain: Whether only existence is asked of the ends.
        """
        match expr:
            case LocationPath(is_absolute=True, steps=steps):
                start = Cursor(spine[:1], spine[0].key, spine[1:])
                return self.walk([start], steps, is_pending=False, is_plain=is_plain)
            case LocationPath(steps=steps):
                start = Cursor(spine, spine[-1].key)
                return self.walk([start], steps, is_pending=False, is_plain=is_plain)
            case PathExpr(start=before, steps=steps):
                cursors, is_pending = self.nodes(before, spine, is_plain=False)
                return self.walk(cursors, steps, is_pending=is_pending, is_plain=is_plain)
            case FilterExpr(primary=primary, predicates=predicates):
                cursors = self.all_nodes(primary, spine)
                found = [
                    kept
                    for cursor in cursors
                    for kept in self.filtered(cursor, predicates, is_countable=False)
                ]
                return self.few(found), False
            case BinaryExpr(operands=operands):
                found = [c for each in operands for c in self.all_nodes(each, spine)]
                return self.few(found), False
            case FunctionCall():
                self.lose("id() is for the evaluator", expr.offset)
                start = Cursor(spine[:1], spine[0].key, spine[1:])
                return [self.pushed(start, NodeKind.ELEMENT, normal.Axis.DESCENDANT)], False
        raise AssertionError(expr)

    def all_nodes(self, expr: Expr, spine: Spine) -> list[Cursor]:
        """The ends of the walks that a node-set is."""
        cursors, is_pending = self.nodes(expr, spine, is_plain=False)
        return self.expanded(cursors) if is_pending else cursors

    def finish(
        self, cursor: Cursor, goal: Comparison | None, offset: int, *, is_pending: bool
    ) -> list[Spine]:
        """The spines of the context node in which a walk has come to its end.

        Args:
            cursor: The end.
            goal: What the string-value of the node at the end is compared with.
            offset: Where in the query this is asked.
            is_pending: Whether `//.` is still to come.
        """
        if is_pending and goal is not None:
            return [
                spine
                for end in self.expanded([cursor])
                for spine in self.finish(end, goal, offset, is_pending=False)
            ]
        if goal is not None:
            cursor = self.compared(cursor, goal, offset)
        at = _index(cursor.spine, cursor.fork)
        branch = cursor.spine[at + 1 :]
        self.check_kind(cursor.node, offset)
        spine = cursor.spine[: at + 1]
        if branch:
            is_main = spine[-1].kind is NodeKind.DOCUMENT
            spine = with_conditions(spine, at, folded(branch, is_main=is_main))
        return [spine + cursor.parked]

    # Steps.

    def walk(
        self, cursors: list[Cursor], steps: Sequence[Step], *, is_pending: bool, is_plain: bool
    ) -> tuple[list[Cursor], bool]:
        """The ends of a walk over steps; whether `//.` is still to come after them."""
        for index, step in enumerate(steps):
            if _is_bare_node(step, Axis.SELF):
                continue
            if _is_bare_node(step, Axis.DESCENDANT_OR_SELF):
                is_pending = True
                continue
            is_last = is_plain and index == len(steps) - 1
            found: list[Cursor] = []
            for cursor in cursors:
                below = is_pending and cursor.node.is_container
                if below and is_last and step.axis is Axis.SELF:
                    kept = self.or_self(cursor, step)
                    if kept is not None:
                        found.append(kept)
                        continue
                is_countable = step.axis is Axis.CHILD and isinstance(step.test, WrittenName)
                for moved in self.moves(cursor, step, is_pending=below):
                    found += self.filtered(moved, step.predicates, is_countable=is_countable)
            cursors, is_pending = self.few(found), False
        return cursors, is_pending

    def or_self(self, cursor: Cursor, step: Step) -> Cursor | None:
        """`//.[@a]` at the end of a path, which is how `//@a` is written canonically."""
        if not (isinstance(step.test, NodeTypeTest) and step.test.type is NodeType.NODE):
            return None
        noted = len(self.losses)
        start = self.pushed(cursor, NodeKind.ELEMENT, normal.Axis.DESCENDANT_OR_SELF)
        results = self.filtered(start, step.predicates, is_countable=False)
        is_exact = len(self.losses) == noted and len(results) == 1
        if is_exact and results[0].spine[:-1] == cursor.spine:
            node = results[0].node
            only = [each for stage in node.stages for each in stage.conditions]
            # A text node or comment, too, has a value: only these two ask for an element.
            if all(isinstance(each, AttributeCondition | TextCondition) for each in only):
                return results[0] if only else None
        del self.losses[noted:]
        return None

    def moves(self, cursor: Cursor, step: Step, *, is_pending: bool) -> list[Cursor]:
        """Where a step may lead before its predicates.

        Args:
            cursor: Where from.
            step: The step.
            is_pending: Whether it starts at the node or anything below.
        """
        axis, node = step.axis, cursor.node
        if axis in (Axis.CHILD, Axis.DESCENDANT):
            return self.down(cursor, step, is_deep=is_pending or axis is Axis.DESCENDANT)
        if axis is Axis.ATTRIBUTE:
            return self.attributes(cursor, step, is_pending=is_pending)
        if is_pending:
            below = self.expanded([cursor])
            if axis in (Axis.SELF, Axis.DESCENDANT_OR_SELF):
                return [kept for each in below for kept in self.tested(each, step)]
            return [moved for each in below for moved in self.moves(each, step, is_pending=False)]
        match axis:
            case Axis.SELF:
                return self.tested(cursor, step)
            case Axis.DESCENDANT_OR_SELF:
                return self.tested(cursor, step) + self.down(cursor, step, is_deep=True)
            case Axis.PARENT:
                candidates = self.parents(cursor)
            case Axis.ANCESTOR:
                candidates = self.ancestors(cursor)
            case Axis.ANCESTOR_OR_SELF:
                candidates = [cursor, *self.ancestors(cursor)]
            case _:
                return self.elsewhere(cursor, step, node)
        return [kept for each in candidates for kept in self.tested(each, step)]

    def elsewhere(self, cursor: Cursor, step: Step, node: PatternNode) -> list[Cursor]:
        """The axes that no pattern knows; exact only where they are empty."""
        axis = step.axis
        if axis is Axis.NAMESPACE:
            if node.kind is not NodeKind.ELEMENT:
                return []
            return [self.pushed(cursor, NodeKind.OTHER, normal.Axis.CHILD)]
        is_sibling = axis in (Axis.FOLLOWING_SIBLING, Axis.PRECEDING_SIBLING)
        if node.kind is NodeKind.DOCUMENT or (is_sibling and node.kind is NodeKind.ATTRIBUTE):
            return []
        self.lose(f"uses the axis {axis.value}, which only the evaluator knows", step.offset)
        if is_sibling:
            beside: list[Cursor] = []
            for above in self.parents(cursor):
                found = self.down(above, step, is_deep=False)
                if above.node.kind is NodeKind.DOCUMENT and node.kind is NodeKind.ELEMENT:
                    # The root element is the only one there.
                    found = [each for each in found if each.node.kind is NodeKind.OTHER]
                beside += found
            return beside
        # What the walk has seen so far stays known, as a branch of its own.
        (left,) = self.finish(cursor, None, step.offset, is_pending=False)
        return self.down(Cursor(left[:1], left[0].key, left[1:]), step, is_deep=True)

    def down(self, cursor: Cursor, step: Step, *, is_deep: bool) -> list[Cursor]:
        """Child nodes, or nodes anywhere below."""
        node = cursor.node
        if not node.is_container:
            return []
        axis = normal.Axis.DESCENDANT if is_deep else normal.Axis.CHILD
        leaf_axis = normal.Axis.DESCENDANT_OR_SELF if is_deep else normal.Axis.CHILD
        test = step.test
        if isinstance(test, WrittenName):
            return [self.pushed(cursor, NodeKind.ELEMENT, axis, name_test(test))]
        found: list[Cursor] = []
        if test.type is NodeType.NODE:
            found.append(self.pushed(cursor, NodeKind.ELEMENT, axis))
        has_text = is_deep or node.kind is NodeKind.ELEMENT
        if test.type in (NodeType.NODE, NodeType.TEXT) and has_text:
            found.append(self.pushed(cursor, NodeKind.TEXT, leaf_axis))
        if test.type is not NodeType.TEXT:
            found.append(self.pushed(cursor, NodeKind.OTHER, leaf_axis))
        return found

    def attributes(self, cursor: Cursor, step: Step, *, is_pending: bool) -> list[Cursor]:
        """The attributes of an element, or of one there or below."""
        node, test = cursor.node, step.test
        is_owner = node.kind is NodeKind.ELEMENT or (node.kind is NodeKind.DOCUMENT and is_pending)
        is_any = isinstance(test, NodeTypeTest) and test.type is NodeType.NODE
        if not is_owner or not (is_any or isinstance(test, WrittenName)):
            return []
        wanted = name_test(test) if isinstance(test, WrittenName) else ANY
        axis = normal.Axis.DESCENDANT_OR_SELF if is_pending else normal.Axis.CHILD
        return [self.pushed(cursor, NodeKind.ATTRIBUTE, axis, wanted)]

    # Predicates.

    def filtered(
        self, cursor: Cursor, predicates: Iterable[Predicate], *, is_countable: bool
    ) -> list[Cursor]:
        """The cursors that one cursor becomes by predicates of its node.

        Args:
            cursor: At the node.
            predicates: In order.
            is_countable: Whether positions count as the normal form counts them.
        """
        cursors, is_exact = [cursor], True
        for predicate in predicates:
            noted = len(self.losses)
            condition = _as_condition(predicate.expr)
            has_position = _has_position(condition)
            counts = is_countable and is_exact
            found: list[Cursor] = []
            for each in cursors:
                self.work()
                was_counted = each.node.is_counted
                spine = open_stage(each.spine, is_counted=has_position)
                for result in self.true(condition, spine, counts=counts):
                    closed = close_stage(result, was_counted=was_counted)
                    found.append(replace(each, spine=closed))
            if len(found) > self.alternatives_max:
                # What the predicates before say is necessary without this one, too.
                reason = f"has more than {self.alternatives_max} alternatives"
                self.lose(reason, predicate.expr.offset)
                found = cursors
            cursors = found
            is_exact = is_exact and len(self.losses) == noted and len(cursors) == 1
        return cursors


def _index(spine: Spine, key: int) -> int:
    return next(at for at, node in enumerate(spine) if node.key == key)


def _is_bare_node(step: Step, axis: Axis) -> bool:
    is_node = isinstance(step.test, NodeTypeTest) and step.test.type is NodeType.NODE
    return is_node and step.axis is axis and not step.predicates


def _as_condition(expr: Expr) -> Expr:
    """A predicate as a condition: a number is compared with the position (2.4)."""
    if kind_of(expr) is not Kind.NUMBER:
        return expr
    position = FunctionCall("position", (), expr.offset)
    return BinaryExpr((BinaryOperator.EQ,), (position, expr), expr.offset, expr.offset)


def _has_position(expr: Expr) -> bool:
    """Whether a predicate asks for the position or the size of its own list."""
    waiting, found = [expr], False
    while waiting and not found:
        match waiting.pop():
            case FunctionCall(name=name, arguments=arguments):
                found = name in ("position", "last")
                waiting += arguments
            case BinaryExpr(operands=operands):
                waiting += operands
            case UnaryExpr(operand=operand):
                waiting.append(operand)
            case PathExpr(start=start):
                waiting.append(start)
            case FilterExpr(primary=primary):
                waiting.append(primary)
    return found

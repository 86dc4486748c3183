"""The nodes of a message that an expression needs for its value.

The expression is followed from *spots*, label paths at which its context nodes lie, and every step
notes which nodes it chooses among. A *need* is a label path all of whose nodes must be there: as
single nodes (start tag with attributes), or with everything in them. Ancestors of what is there are
there as well.

If all needs are met, every sub-expression has in the smaller message the value that it has in the
whole one: each step of it is offered the same nodes, in the same order. So positions, counts and
negations come out right, not only what exists.

Example:
    >>> from pathcast.query import read_query
    >>> text = "count(c/d) > 1 and ../@x = e"
    >>> needs = Needs(None)
    >>> needs.truth(read_query(text, {}), frozenset([Spot((("", "a"), ("", "b")))]))
    >>> sorted(str(need) for need in needs.found)
    ['/a/b/c/d', '/a/b/e', '/a/b/e with content']

It does not choose a chunk; `pathcast.chunking.cleaning` weighs needs against prefixes.

Source: Lehner and Irmert, BTW 2003, section 4 ("Considering XPath Expression with Filters"), which
adds single nodes for what a filter names. Differs: nodes whose value is compared are added with
their content; what is needed is derived for all of XPath 1.0, as for the projection of documents by
Marian and Simeon, VLDB 2003.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from pathcast.chunking.names import exact_name, is_node_test, matcher, path_text
from pathcast.query.notation import is_double_slash
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    LocationPath,
    NameTest,
    PathExpr,
    Step,
    UnaryExpr,
)
from pathcast.schema import ElementPaths, LabelPath, PathStep, Way, expand

_OF_CONTEXT_VALUE: Final = frozenset({"string", "number", "string-length", "normalize-space"})
"""Functions of the value of the context node where they have no argument."""

_OF_NODES: Final = frozenset({"count", "local-name", "namespace-uri", "name", "boolean", "not"})
"""Functions that do not look into the nodes they are given."""


class SpotKind(Enum):
    """The kind of content at a spot."""

    ELEMENT = "element"
    """An element, or at the empty label path the document node."""
    TEXT = "text"
    """Children of the element that are no elements."""
    LEAF = "leaf"
    """Attributes or namespace nodes of the element."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where nodes lie.

    Attributes:
        path: Label path; empty for the document node.
        is_below: They lie somewhere below it, not at it.
        kind: What they are.
    """

    path: LabelPath
    is_below: bool = False
    kind: SpotKind = SpotKind.ELEMENT


Spots: TypeAlias = frozenset[Spot]

DOCUMENT: Final = Spot(())


@dataclass(frozen=True, slots=True, order=True)
class Need:
    """All nodes at a label path.

    Attributes:
        path: The label path; empty for the document node.
        has_content: With all that is in them.
    """

    path: LabelPath
    has_content: bool

    def __str__(self) -> str:
        return path_text(self.path) + (" with content" if self.has_content else "")


class Needs:
    """Collects needs.

    Args:
        paths: What the schema says; None where there is none.

    Attributes:
        found: Need -> why, in a few words; the first reason counts.
    """

    def __init__(self, paths: ElementPaths | None) -> None:
        self._paths = None if paths is None or paths.root is None else paths
        self.found: dict[Need, str] = {}

    def add(self, path: LabelPath, *, has_content: bool, why: str) -> None:
        """Notes that the nodes at a label path are needed."""
        self.found.setdefault(Need(path, has_content), why)

    # Expressions, by what is done with them.

    def truth(self, expr: Expr, context: Spots) -> None:
        """The expression as a condition; of a node-set only whether there is a node."""
        if kind_of(expr) is Kind.NODE_SET:
            self.nodes(expr, context)
        else:
            self.value(expr, context)

    def value(self, expr: Expr, context: Spots) -> None:
        """The expression as a string or number; of nodes, their string-values."""
        match expr:
            case UnaryExpr(operand=operand):
                self.value(operand, context)
            case BinaryExpr(operators=(BinaryOperator.OR | BinaryOperator.AND, *_)):
                for operand in expr.operands:
                    self.truth(operand, context)
            case BinaryExpr() if kind_of(expr) is not Kind.NODE_SET:
                for operand in expr.operands:
                    self.value(operand, context)
            case FunctionCall() if kind_of(expr) is not Kind.NODE_SET:
                self.call(expr, context)
            case _ if kind_of(expr) is Kind.NODE_SET:
                self.contents(self.nodes(expr, context), "string value")

    def call(self, expr: FunctionCall, context: Spots) -> None:
        """A call that gives no nodes."""
        if not expr.arguments and expr.name in _OF_CONTEXT_VALUE:
            self.contents(context, "string value")
        for argument in expr.arguments:
            if expr.name in _OF_NODES:
                self.truth(argument, context)
            else:
                self.value(argument, context)

    def contents(self, spots: Iterable[Spot], why: str) -> None:
        """Notes that the content of elements is needed."""
        for spot in spots:
            if spot.kind is SpotKind.ELEMENT:
                self.add(spot.path, has_content=True, why=why)

    def nodes(self, expr: Expr, context: Spots) -> Spots:
        """Where the nodes of a node-set lie."""
        match expr:
            case LocationPath(is_absolute=is_absolute, steps=steps):
                return self.steps(steps, frozenset([DOCUMENT]) if is_absolute else context)
            case PathExpr(start=start, steps=steps):
                return self.steps(steps, self.nodes(start, context))
            case FilterExpr(primary=primary, predicates=predicates):
                spots = self.nodes(primary, context)
                for predicate in predicates:
                    self.truth(predicate, spots)
                return spots
            case BinaryExpr(operands=operands):
                return frozenset().union(*(self.nodes(each, context) for each in operands))
            case FunctionCall(arguments=arguments):
                # id(): what carries an id can be anywhere.
                for argument in arguments:
                    self.value(argument, context)
                return self.anywhere("id()")
        raise AssertionError(expr)

    def anywhere(self, why: str) -> Spots:
        """Nodes that can be anywhere in the message: all of it is needed."""
        self.add((), has_content=True, why=why)
        return frozenset([DOCUMENT, Spot((), is_below=True), Spot((), True, SpotKind.TEXT)])

    # Steps.

    def steps(self, steps: tuple[Step, ...], context: Spots) -> Spots:
        """Where steps lead from a context."""
        spots = context
        number = 0
        while number < len(steps):
            step = steps[number]
            is_descendant = is_double_slash(step) and number + 1 < len(steps)
            if is_descendant and steps[number + 1].axis is Axis.CHILD:
                number += 1
                step = Step(Axis.DESCENDANT, steps[number].test, steps[number].predicates, 0)
            following = steps[number + 1] if number + 1 < len(steps) else None
            spots = self.step(step, spots, following)
            number += 1
        return spots

    def step(self, step: Step, context: Spots, following: Step | None) -> Spots:
        """Where one step leads."""
        spots: set[Spot] = set()
        is_passed = (
            not step.predicates
            and following is not None
            and following.axis is Axis.CHILD
            and isinstance(following.test, NameTest)
        )
        for spot in context:
            spots |= self.from_spot(step, spot, is_passed=is_passed)
        found = frozenset(spots)
        for predicate in step.predicates:
            self.truth(predicate, found)
        return found

    def from_spot(self, step: Step, spot: Spot, *, is_passed: bool) -> Spots:
        """Where a step leads from one spot, predicates apart."""
        match step.axis:
            case Axis.ATTRIBUTE | Axis.NAMESPACE:
                is_element = spot.kind is SpotKind.ELEMENT
                leaf = Spot(spot.path, spot.is_below, SpotKind.LEAF)
                return frozenset([leaf] if is_element else [])
            case Axis.SELF:
                return frozenset([spot] if _can_be(step, spot) else [])
            case Axis.PARENT:
                return frozenset(each for each in _parents(spot) if _can_be(step, each))
            case Axis.ANCESTOR | Axis.ANCESTOR_OR_SELF:
                spots = _ancestors(spot)
                if step.axis is Axis.ANCESTOR_OR_SELF:
                    spots |= {spot}
                return frozenset(each for each in spots if _can_be(step, each))
            case Axis.FOLLOWING_SIBLING | Axis.PRECEDING_SIBLING:
                if spot.kind is SpotKind.LEAF or not (spot.path or spot.is_below):
                    return frozenset()
                found: set[Spot] = set()
                for parent in _parents(spot):
                    found |= self.downward(Axis.CHILD, step, parent, is_passed=False)
                return frozenset(found)
            case Axis.FOLLOWING | Axis.PRECEDING:
                return self.anywhere(f"{step.axis.value}::")
            case _:
                if spot.kind is SpotKind.ELEMENT:
                    return self.downward(step.axis, step, spot, is_passed=is_passed)
                is_self = step.axis is Axis.DESCENDANT_OR_SELF and _can_be(step, spot)
                return frozenset([spot] if is_self else [])

    def downward(self, axis: Axis, step: Step, spot: Spot, *, is_passed: bool) -> Spots:
        """Children or descendants of an element."""
        if not isinstance(step.test, NameTest) or spot.is_below:
            return self.everything_in(axis, step, spot)
        expansions = self.resolved(axis, step, spot)
        if expansions is None:
            return self.everything_in(axis, step, spot)
        found: set[Spot] = set()
        for each, is_open in expansions:
            if is_open:
                self.add(each, has_content=True, why="// that recursion keeps from being resolved")
                found.add(Spot(each, is_below=True))
            else:
                if not is_passed:
                    self.add(each, has_content=False, why="node of a condition")
                found.add(Spot(each))
        return frozenset(found)

    def resolved(self, axis: Axis, step: Step, spot: Spot) -> list[tuple[LabelPath, bool]] | None:
        """Label paths of a name test; None if nothing is known of them."""
        name = exact_name(step.test)
        if self._paths is None:
            return [((*spot.path, name), False)] if name and axis is Axis.CHILD else None
        assert isinstance(step.test, NameTest)
        way = {
            Axis.CHILD: Way.CHILD,
            Axis.DESCENDANT: Way.DESCENDANT,
            Axis.DESCENDANT_OR_SELF: Way.DESCENDANT_OR_SELF,
        }[axis]
        steps = [PathStep(way, matcher(step.test))]
        found = expand(self._paths, steps, above=spot.path)
        return [(each.names, each.is_open(steps)) for each in found]

    def everything_in(self, axis: Axis, step: Step, spot: Spot) -> Spots:
        """Require the whole content of an element, of which nothing is known."""
        why = "nodes of any kind" if not isinstance(step.test, NameTest) else "* or //"
        self.add(spot.path, has_content=True, why=why)
        found = {Spot(spot.path, is_below=True)}
        if not isinstance(step.test, NameTest):
            found.add(Spot(spot.path, spot.is_below, SpotKind.TEXT))
            found.add(Spot(spot.path, True, SpotKind.TEXT))
            if not is_node_test(step):
                found.discard(Spot(spot.path, is_below=True))
        if axis is Axis.DESCENDANT_OR_SELF:
            found.add(spot)
        return frozenset(found)


def _can_be(step: Step, spot: Spot) -> bool:
    """Whether a node at a spot can pass a node test."""
    test = step.test
    if not isinstance(test, NameTest):
        return is_node_test(step) or spot.kind is SpotKind.TEXT
    if spot.kind is not SpotKind.ELEMENT:
        return False
    if spot.is_below:
        return True
    return bool(spot.path) and matcher(test)(spot.path[-1])


def _parents(spot: Spot) -> frozenset[Spot]:
    own = Spot(spot.path)
    if spot.kind is not SpotKind.ELEMENT:
        return frozenset([own, Spot(spot.path, is_below=True)] if spot.is_below else [own])
    if spot.is_below:
        return frozenset([own, Spot(spot.path, is_below=True)])
    return frozenset([Spot(spot.path[:-1])] if spot.path else [])


def _ancestors(spot: Spot) -> frozenset[Spot]:
    has_own = spot.is_below or spot.kind is not SpotKind.ELEMENT
    last = len(spot.path) + 1 if has_own else len(spot.path)
    found = {Spot(spot.path[:length]) for length in range(last)}
    if spot.is_below:
        found.add(Spot(spot.path, is_below=True))
    return frozenset(found)

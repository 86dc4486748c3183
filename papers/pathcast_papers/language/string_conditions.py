"""What must be there if a node-set is not empty, or a string is as asked.

A part of `pathcast_papers.language.weakening`, which argues for every rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from pathcast_papers.language import normal
from pathcast_papers.language.constants import constant_of
from pathcast_papers.language.generalising import generalised
from pathcast_papers.language.moving import Cursor, TooManyError
from pathcast_papers.language.names import NCNAME_PATTERN, uri_of
from pathcast_papers.language.normal import Comparison, Operator
from pathcast_papers.language.spine import NodeKind, Spine
from pathcast_papers.language.static import Kind, kind_of
from pathcast_papers.language.syntax import (
    Axis,
    Expr,
    FilterExpr,
    FunctionCall,
    LocationPath,
    NameTest,
    NodeType,
    NodeTypeTest,
    Number,
    Step,
)
from pathcast_papers.language.values import number_of, string_of
from pathcast_papers.language.walking import Walker


class StringTest(Enum):
    """What is asked of a string. Nothing that is asked holds for an empty one."""

    IS = auto()
    BEGINS = auto()
    HAS = auto()
    IS_SOMETHING = auto()
    """It is not empty."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A test of a string, and the string that it takes (not empty; "" if it takes none)."""

    test: StringTest
    text: str = ""

    @property
    def comparison(self) -> Comparison:
        """The same asked of a node."""
        match self.test:
            case StringTest.IS:
                return Comparison(Operator.EQ, self.text)
            case StringTest.BEGINS:
                return Comparison(Operator.STARTS_WITH, self.text)
            case StringTest.HAS:
                return Comparison(Operator.CONTAINS, self.text)
        return Comparison(Operator.NE, "")


SOMETHING: Final = Wanted(StringTest.IS_SOMETHING)


class StringConditions(Walker):
    """Node-sets and strings."""

    def joined(self, spines: Iterable[Spine], base: Spine, offset: int) -> list[Spine]:
        """Alternatives without repetition, and not more than may be.

        Args:
            spines: Extensions of `base`.
            base: The spine they extend; if it is among them, it is all there is to say.
            offset: Where in the query.
        """
        found = list(spines)
        if len(found) < 2:
            return found
        found = list(dict.fromkeys(found))
        if base in found:
            return [base]
        if len(found) > self.alternatives_max:
            self.lose(f"has more than {self.alternatives_max} alternatives", offset)
            return [generalised(found, base)]
        return found

    def exists(self, expr: Expr, spine: Spine, goal: Comparison | None = None) -> list[Spine]:
        """The spines of which one is there if a node-set has a node with a value as asked."""
        if goal is None:
            expr = _without_first(expr)
        try:
            cursors, is_pending = self.nodes(expr, spine, is_plain=goal is None)
            ends = [
                end
                for cursor in cursors
                for end in self.finish(cursor, goal, expr.offset, is_pending=is_pending)
            ]
        except TooManyError:
            self.lose("has too many ways to be true", expr.offset)
            return [spine]
        return self.joined(ends, spine, expr.offset)

    # Strings.

    def string(self, expr: Expr, wanted: Wanted, spine: Spine) -> list[Spine]:
        """The spines of which one is there if the string of an expression is as asked."""
        if kind_of(expr) is Kind.NODE_SET:
            if not is_single(expr):
                self.lose("reads the first node of several as a string", expr.offset)
            return self.exists(expr, spine, wanted.comparison)
        if not isinstance(expr, FunctionCall) or kind_of(expr) is not Kind.STRING:
            self.lose("reads a number or a condition as a string", expr.offset)
            return [spine]
        argument = expr.arguments[0] if expr.arguments else self_path(expr.offset)
        match expr.name:
            case "string":
                return self.string(argument, wanted, spine)
            case "local-name" | "namespace-uri" | "name":
                return self.name(expr.name, argument, wanted, spine)
            case "substring":
                return self.substring(expr, wanted, spine)
            case "substring-before" | "substring-after":
                return self.beside(expr, wanted, spine)
        self.lose(f"uses {expr.name}(), which only the evaluator knows", expr.offset)
        match expr.name:
            case "normalize-space":
                return self.string(argument, _longest_word(wanted), spine)
            case "translate":
                return self.string(argument, SOMETHING, spine)
            case "concat":
                return self.joint(expr, wanted, spine)
        return [spine]

    def joint(self, expr: FunctionCall, wanted: Wanted, spine: Spine) -> list[Spine]:
        """Asks for what a concatenation shows of its one part that is not constant.

        Characters that no constant part has come from that part, and next to one another.
        """
        values = [constant_of(argument) for argument in expr.arguments]
        others = [a for a, value in zip(expr.arguments, values, strict=True) if value is None]
        known = {c for value in values if value is not None for c in string_of(value)}
        unknown = "".join(" " if c in known else c for c in wanted.text)
        runs = unknown.split(" ")
        longest = max(runs, key=len)
        if len(others) != 1 or not longest:
            return [spine]
        return self.string(others[0], Wanted(StringTest.HAS, longest), spine)

    def substring(self, expr: FunctionCall, wanted: Wanted, spine: Spine) -> list[Spine]:
        """Asks for what a substring shows of the string it is taken from."""
        whole, *places = expr.arguments
        numbers = [constant_of(place) for place in places]
        is_start = numbers[0] is not None and number_of(numbers[0]) == 1.0
        if is_start and len(numbers) == 2 and numbers[1] is not None:
            length = number_of(numbers[1])
            if wanted.test is StringTest.IS and length.is_integer() and length > 0:
                if len(wanted.text) > length:
                    return []
                is_shorter = len(wanted.text) < length
                test = StringTest.IS if is_shorter else StringTest.BEGINS
                return self.string(whole, Wanted(test, wanted.text), spine)
        self.lose("uses substring(), which only the evaluator knows", expr.offset)
        if wanted.test is StringTest.IS_SOMETHING:
            return self.string(whole, SOMETHING, spine)
        is_prefix = is_start and wanted.test is not StringTest.HAS
        test = StringTest.BEGINS if is_prefix else StringTest.HAS
        return self.string(whole, Wanted(test, wanted.text), spine)

    def beside(self, expr: FunctionCall, wanted: Wanted, spine: Spine) -> list[Spine]:
        """Asks for what stands before or after a mark."""
        whole, mark = expr.arguments[0], constant_of(expr.arguments[1])
        between = "" if mark is None else string_of(mark)
        is_before = expr.name == "substring-before"
        text = wanted.text
        if is_before and wanted.test is StringTest.IS and between:
            first = (text + between).find(between)
            if first < len(text):
                return []
            return self.string(whole, Wanted(StringTest.BEGINS, text + between), spine)
        self.lose(f"uses {expr.name}(), which only the evaluator knows", expr.offset)
        if wanted.test is StringTest.IS_SOMETHING:
            return self.string(whole, SOMETHING, spine)
        if is_before:
            test = StringTest.HAS if wanted.test is StringTest.HAS else StringTest.BEGINS
            return self.string(whole, Wanted(test, text), spine)
        if wanted.test is not StringTest.HAS:
            text = between + text
        return self.string(whole, Wanted(StringTest.HAS, text), spine)

    # Names.

    def name(self, function: str, path: Expr, wanted: Wanted, spine: Spine) -> list[Spine]:
        """Asks for a node's name: a node test, where it is known in full."""
        is_here = isinstance(path, LocationPath) and _is_self(path)
        if not is_here:
            if not is_single(path):
                self.lose("reads the name of the first node of several", path.offset)
            return self.named_nodes(path, function, wanted, spine)
        return [
            cursor.spine
            for cursor in self.named(Cursor(spine, spine[-1].key), function, wanted, path.offset)
        ]

    def named_nodes(self, expr: Expr, function: str, wanted: Wanted, spine: Spine) -> list[Spine]:
        """Asks for a node of a node-set with a name as asked."""
        try:
            cursors = self.all_nodes(expr, spine)
            ends = [
                end
                for cursor in cursors
                for named in self.named(cursor, function, wanted, expr.offset)
                for end in self.finish(named, None, expr.offset, is_pending=False)
            ]
        except TooManyError:
            self.lose("has too many ways to be true", expr.offset)
            return [spine]
        return self.joined(ends, spine, expr.offset)

    def named(self, cursor: Cursor, function: str, wanted: Wanted, offset: int) -> list[Cursor]:
        """The cursor if its node may have a name as asked, with that said of it."""
        kind = cursor.node.kind
        if kind in (NodeKind.DOCUMENT, NodeKind.TEXT):
            return []
        if kind is NodeKind.OTHER or wanted.test is not StringTest.IS:
            if kind is NodeKind.OTHER or wanted.test is not StringTest.IS_SOMETHING:
                self.lose(f"{function}() compared with part of a name", offset)
            elif function == "namespace-uri":
                self.lose("asks whether there is a namespace", offset)
            return [cursor]
        if function == "namespace-uri":
            if "{" in wanted.text or "}" in wanted.text:
                self.lose("a namespace URI with braces", offset)
                return [cursor]
            if uri_of(wanted.text) != wanted.text:
                self.lose("a namespace URI with white space that a name test collapses", offset)
                return [cursor]
            return self.narrowed(cursor, normal.AnyIn(wanted.text), offset)
        prefix, colon, local = wanted.text.rpartition(":")
        if function == "local-name" and colon:
            return []
        if not NCNAME_PATTERN.fullmatch(local) or (colon and not NCNAME_PATTERN.fullmatch(prefix)):
            return []
        if function == "name":
            if kind is NodeKind.ATTRIBUTE and not colon:
                return self.narrowed(cursor, normal.Name("", local), offset)
            self.lose("uses name(), which reads prefixes", offset)
        return self.narrowed(cursor, normal.AnyNamespace(local), offset)


def _without_first(expr: Expr) -> Expr:
    """A node-set without `[1]` or `[last()]` at its end: of some nodes, one is the first."""
    while isinstance(expr, FilterExpr):
        last = expr.predicates[-1].expr
        is_last = isinstance(last, FunctionCall) and last.name == "last"
        if not (is_last or (isinstance(last, Number) and last.value == 1.0)):
            break
        left = expr.predicates[:-1]
        expr = replace(expr, predicates=left) if left else expr.primary
    return expr


def _longest_word(wanted: Wanted) -> Wanted:
    """What a string must hold for its normalised form to be as asked."""
    words = wanted.text.split()
    return Wanted(StringTest.HAS, max(words, key=len)) if words else SOMETHING


def self_path(offset: int) -> LocationPath:
    """The path `.`, which a function without an argument stands for."""
    node = NodeTypeTest(NodeType.NODE, None, offset)
    return LocationPath(False, (Step(Axis.SELF, node, (), offset),), offset)


def _is_self(path: LocationPath) -> bool:
    return not path.is_absolute and all(_is_step(step, Axis.SELF) for step in path.steps)


def _is_step(step: Step, axis: Axis) -> bool:
    is_node = isinstance(step.test, NodeTypeTest) and step.test.type is NodeType.NODE
    return is_node and step.axis is axis and not step.predicates


def is_single(expr: Expr) -> bool:
    """Whether a node-set has at most one node whatever the message is.

    Example:
        >>> from pathcast_papers.language.parser import parse
        >>> from pathcast_papers.language.static import resolve
        >>> [is_single(resolve(parse(t), t, {})) for t in (".", "@a", "../@a", "/a/@b", "a", "@*")]
        [True, True, True, True, False, False]
    """
    if not isinstance(expr, LocationPath):
        return False
    steps = list(expr.steps)
    if steps and steps[-1].axis is Axis.ATTRIBUTE:
        test = steps.pop().test
        is_one = isinstance(test, NameTest) and test.prefix is None and test.local != "*"
        if not is_one:
            return False
    if expr.is_absolute and steps and steps[0].axis is Axis.CHILD:
        # There is one root element.
        if not isinstance(steps[0].test, NameTest):
            return False
        del steps[0]
    return all(step.axis in (Axis.SELF, Axis.PARENT) for step in steps)

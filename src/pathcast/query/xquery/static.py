"""Static rules: what kinds of items an expression can give, and where they cannot go.

Three kinds are told apart: nodes of the message, atomic values, and elements that the subscription
builds. From them follow the rules:

- A path begins at nodes of the message; so does `name()` take them, and a union.
- An element that is built can flow to the result - through variables, conditionals, sequences,
  positions, `count`, `exists` and `empty` - but nothing reads its value: it is not navigated,
  compared, made a string or a number, or sorted by. So nobody has to keep it as a tree.
- A subscription whose frame holds no expression would send every message the same constant, and is
  refused (`pathcast.query.xquery.frame`).

Kinds are upper bounds: `if (c) then //a else 1` gives nodes or atomic values, and no path begins
there.

Cost: linear in the tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag
from typing import Final

from pathcast.query.xquery.frame import content_expressions
from pathcast.query.xquery.scanner import TREE_DEPTH_MAX, Scanner
from pathcast.query.xquery.syntax import (
    And,
    Arithmetic,
    Call,
    Comparison,
    Context,
    ContextItem,
    Element,
    Enclosed,
    Expr,
    Filter,
    Flwor,
    For,
    If,
    Literal,
    Negation,
    Or,
    Path,
    Program,
    Quantified,
    Root,
    Sequence,
    Union,
    Variable,
)


class Items(IntFlag):
    """Kinds of items; 0 is the empty sequence."""

    NONE = 0
    NODES = 1
    ATOMS = 2
    BUILT = 4


_COUNTING: Final = frozenset({"count", "exists", "empty"})
_NODE_FUNCTIONS: Final = frozenset({"name", "local-name", "namespace-uri"})
_BUILT: Final = "the value of a constructed element"


def check(program: Program, scanner: Scanner) -> None:
    """Refuses a program that breaks a static rule.

    Args:
        program: As it was parsed.
        scanner: Who makes the errors, and knows the text.

    Raises:
        QuerySyntaxError: A type error (XPTY0004, XPTY0019), a constant, a tree that is too deep.
        UnsupportedQueryError: The value of a constructed element is read.
    """
    _Checker(scanner).items(program.body)
    if not content_expressions(program):
        raise scanner.refusal("subscription.constant", "a constant body", 0)


class _Checker:
    """The walk; `variables` and `context` are what the place knows of them."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.variables: dict[str, Items] = {}
        self.context = Items.NODES
        self.depth = 0

    def items(self, expr: Expr) -> Items:
        """The kinds of items that an expression can give."""
        self.depth += 1
        if self.depth > TREE_DEPTH_MAX:
            raise self.scanner.error(
                "query.too_deep", expr.offset, "nests too deep", maximum=TREE_DEPTH_MAX
            )
        found = self._items(expr)
        self.depth -= 1
        return found

    def _items(self, expr: Expr) -> Items:
        match expr:
            case Path():
                return self.path(expr)
            case Variable(name=name):
                return self.variables[name]
            case Literal():
                return Items.ATOMS
            case Comparison(left=left, right=right) | Arithmetic(left=left, right=right):
                return self.values((left, right))
            case And(operands=operands) | Or(operands=operands):
                return self.values(operands)
            case Negation(operand=operand):
                return self.values((operand,))
            case Call():
                return self.call(expr)
            case Element():
                return self.element(expr)
            case Sequence(items=items):
                return self.together(items)
            case Flwor():
                return self.flwor(expr)
            case Filter(primary=primary):
                found = self.items(primary)
                self.predicates(expr.predicates, found)
                return found
            case Quantified():
                return self.quantified(expr)
            case If():
                self.value(expr.condition)
                return self.together((expr.then, expr.otherwise))
            case Union(operands=operands):
                for operand in operands:
                    self.nodes(operand, "a union is of nodes", "XPTY0004")
                return Items.NODES
            case ContextItem():
                return self.context

    # What an expression is used for.

    def value(self, expr: Expr) -> None:
        """The value of an expression is read."""
        if self.items(expr) & Items.BUILT:
            raise self.built(expr.offset)

    def values(self, exprs: Iterable[Expr]) -> Items:
        """The values of some are read, to compute an atomic value."""
        for expr in exprs:
            self.value(expr)
        return Items.ATOMS

    def nodes(self, expr: Expr, why: str, code: str) -> None:
        """Nodes of the message are needed."""
        self._nodes(self.items(expr), expr.offset, why, code)

    def _nodes(self, found: Items, offset: int, why: str, code: str) -> None:
        if found & Items.BUILT:
            raise self.built(offset)
        if found & Items.ATOMS:
            sometimes = "may be" if found & Items.NODES else "is"
            raise self.scanner.error(code, offset, f"{why}, and this {sometimes} an atomic value")

    def built(self, offset: int) -> Exception:
        """The refusal of a constructed element's value."""
        return self.scanner.unsupported(
            _BUILT, offset, "read the value from the message, and build the element last"
        )

    def together(self, exprs: Iterable[Expr]) -> Items:
        """The kinds that some give together."""
        found = Items.NONE
        for expr in exprs:
            found |= self.items(expr)
        return found

    # Expressions.

    def path(self, expr: Path) -> Items:
        match expr.start:
            case Root():
                pass
            case Context():
                self._nodes(self.context, expr.offset, "a path begins at nodes", "XPTY0020")
            case start:
                self.nodes(start, "a path begins at nodes", "XPTY0019")
        for step in expr.steps:
            if step.predicates:
                self.predicates(step.predicates, Items.NODES)
        return Items.NODES

    def predicates(self, predicates: tuple[Expr, ...], context: Items) -> None:
        """Predicates whose context item is of some kind."""
        outer, self.context = self.context, context
        for predicate in predicates:
            self.value(predicate)
        self.context = outer

    def call(self, expr: Call) -> Items:
        if expr.function in _COUNTING:
            self.together(expr.arguments)
        elif expr.function in _NODE_FUNCTIONS:
            self.nodes(expr.arguments[0], f"{expr.function}() takes a node", "XPTY0004")
        else:
            self.values(expr.arguments)
        return Items.NODES if expr.function == "id" else Items.ATOMS

    def element(self, expr: Element) -> Items:
        for attribute in expr.attributes:
            for part in attribute.parts:
                if isinstance(part, Enclosed):
                    self.value(part.expr)
        for each in expr.content:
            if isinstance(each, Enclosed):
                self.items(each.expr)
            elif isinstance(each, Element):
                self.items(each)
        return Items.BUILT

    def flwor(self, expr: Flwor) -> Items:
        outer = self.variables
        self.variables = dict(outer)
        for clause in expr.clauses:
            if isinstance(clause, For):
                self.bind(clause)
            else:
                self.variables[clause.variable] = self.items(clause.value)
        if expr.where is not None:
            self.value(expr.where)
        for key in expr.order:
            self.value(key.key)
        found = self.items(expr.body)
        self.variables = outer
        return found

    def bind(self, clause: For) -> None:
        self.variables[clause.variable] = self.items(clause.source)
        if clause.position is not None:
            self.variables[clause.position] = Items.ATOMS

    def quantified(self, expr: Quantified) -> Items:
        outer = self.variables
        self.variables = dict(outer)
        for binding in expr.bindings:
            self.bind(binding)
        self.value(expr.condition)
        self.variables = outer
        return Items.ATOMS

"""Static rules: what kinds of items an expression can give, and where they cannot go.

Four kinds are told apart: nodes of the message, booleans, other atomic values, and elements that
the subscription builds. From them follow the rules:

- A path begins at nodes of the message; so does `name()` take them, and a union.
- An element that is built can flow to the result - through variables, conditionals, sequences,
  positions, `count`, `exists` and `empty` - but nothing reads its value: it is not navigated,
  compared, made a string or a number, or sorted by. So nobody has to keep it as a tree.
- A subscription whose frame holds no expression over the message would send every message the same
  constant, and is refused (`pathcast_papers.language.xquery.frame`).
- A result whose place is delivered is a node of the message.
- A result of its own is no boolean: whoever writes a condition means to hear of the messages that
  fulfil it, and not `false` of the others.

Kinds are upper bounds: `if (c) then //a else 1` gives nodes or atomic values, and no path begins
there.

Cost: linear in the tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag
from types import MappingProxyType
from typing import Final

from pathcast_papers.language.xquery.dependence import Dependences
from pathcast_papers.language.xquery.frame import parts
from pathcast_papers.language.xquery.functions import BOOLEAN_FUNCTIONS
from pathcast_papers.language.xquery.scanner import TREE_DEPTH_MAX, Scanner
from pathcast_papers.language.xquery.syntax import (
    And,
    Arithmetic,
    Call,
    Cast,
    Castable,
    Comparison,
    ComputedName,
    Context,
    ContextItem,
    Element,
    Enclosed,
    Expr,
    Filter,
    Flwor,
    For,
    If,
    InstanceOf,
    Intersection,
    Literal,
    Negation,
    Or,
    Path,
    Program,
    Quantified,
    Range,
    Root,
    Sequence,
    SimpleMap,
    Union,
    Variable,
)


class Items(IntFlag):
    """Kinds of items; 0 is the empty sequence."""

    NONE = 0
    NODES = 1
    OTHER_ATOMS = 2
    BUILT = 4
    BOOLEANS = 8
    ATOMS = OTHER_ATOMS | BOOLEANS


_COUNTING: Final = frozenset({"count", "exists", "empty"})
_NODE_FUNCTIONS: Final = frozenset({"name", "local-name", "namespace-uri"})
_GIVEN: Final = MappingProxyType(
    {
        **dict.fromkeys(("head", "remove", "reverse", "subsequence", "tail"), (0,)),
        "insert-before": (0, 2),
    }
)
"""Functions that give items of arguments as they are -> places of these."""
_ATOMS_OF: Final = frozenset({"data", "distinct-values", "min", "max"})
"""Functions that give values of their argument."""
_ONE_ATOM: Final = (BOOLEAN_FUNCTIONS - {"codepoint-equal"}) | frozenset(
    {
        *("concat", "count", "number", "replace", "string", "string-join", "string-length", "sum"),
        *("codepoints-to-string", "current-date", "current-dateTime", "current-time"),
        *("encode-for-uri", "implicit-timezone", "normalize-unicode", "format-number"),
    }
)
"""Functions that give one value whatever they are given."""
_BUILT: Final = "the value of a constructed element"


def check(program: Program, scanner: Scanner, deliver: str | None = None) -> None:
    """Refuses a program that breaks a static rule.

    Args:
        program: As it was parsed.
        scanner: Who makes the errors, and knows the text.
        deliver: What is delivered; None if that is not known.

    Raises:
        QuerySyntaxError: A type error (XPTY0004, XPTY0019, FORG0006), a tree that is too deep.
        UnsupportedQueryError: The value of a constructed element is read, the body is constant, a
            result is a boolean, or no node where its place is delivered.
    """
    checker = _Checker(scanner)
    checker.items(program.body)
    asked = tuple(parts(program, Dependences()))
    if not asked:
        raise scanner.refusal("subscription.constant", "a constant body", 0)
    if deliver == "fragment":
        for part in asked:
            if checker.items(part) & Items.BOOLEANS:
                raise _boolean_result(scanner, part)
    elif deliver == "nodes":
        body = program.body
        for part in body.items if isinstance(body, Sequence) else (body,):
            if checker.items(part) & ~Items.NODES:
                raise _no_node_result(scanner, part)
    elif deliver is not None and len(asked) > 1 and all(map(_is_one_atom, asked[:2])):
        reason = "several values, as this gives whatever the message, are neither true nor false"
        hint = "say how they belong together: (...) and (...)"
        raise scanner.error("FORG0006", asked[1].offset, reason, hint)


def _boolean_result(scanner: Scanner, part: Expr) -> Exception:
    return scanner.refusal(
        "subscription.fragment",
        "fragments of a boolean",
        part.offset,
        "for a result of its own, write if (...) then <hit/> else (), or string(...)",
        found="boolean",
    )


def _no_node_result(scanner: Scanner, part: Expr) -> Exception:
    return scanner.refusal(
        "subscription.nodes",
        "the place of what may be no node of the message",
        part.offset,
        "give the nodes as they are, without a constructor, or deliver something else",
        found="other items than nodes of the message",
    )


def _is_one_atom(expr: Expr) -> bool:
    """Whether an expression gives just one atomic value, whatever the message."""
    match expr:
        case And() | Or() | Quantified() | Castable() | InstanceOf():
            return True
        case Comparison(is_value=is_value):
            return not is_value
        case Call(function=function):
            return function in _ONE_ATOM
    return False


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
                return Items.OTHER_ATOMS
            case Comparison(left=left, right=right):
                return self.booleans((left, right))
            case Arithmetic():
                return self.arithmetic(expr)
            case Cast(to=to, operand=operand):
                self.value(operand)
                return Items.BOOLEANS if to == "boolean" else Items.OTHER_ATOMS
            case Castable(operand=operand):
                return self.booleans((operand,))
            case InstanceOf(operand=operand):
                return self.booleans((operand,))
            case Range(first=first, last=last):
                return self.values((first, last))
            case SimpleMap(source=source, body=body):
                outer, self.context = self.context, self.items(source)
                found = self.items(body)
                self.context = outer
                return found
            case And(operands=operands) | Or(operands=operands):
                return self.booleans(operands)
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
                    self.nodes(operand, "union is of nodes", "XPTY0004")
                return Items.NODES
            case Intersection(is_except=is_except, left=left, right=right):
                word = "except" if is_except else "intersect"
                for operand in (left, right):
                    self.nodes(operand, f"{word} is of nodes", "XPTY0004")
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
        return Items.OTHER_ATOMS

    def arithmetic(self, expr: Arithmetic) -> Items:
        for operand in (expr.left, expr.right):
            if self.items(operand) & Items.BUILT:
                raise self.built(operand.offset)
        return Items.OTHER_ATOMS

    def booleans(self, exprs: Iterable[Expr]) -> Items:
        """The values of some are read, to compute a boolean."""
        self.values(exprs)
        return Items.BOOLEANS

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
        if expr.function in _GIVEN:
            found = Items.NONE
            for place, argument in enumerate(expr.arguments):
                if place in _GIVEN[expr.function]:
                    found |= self.items(argument)
                else:
                    self.value(argument)
            return found
        if expr.function in _COUNTING:
            self.together(expr.arguments)
        elif expr.function in _NODE_FUNCTIONS:
            self.nodes(expr.arguments[0], f"{expr.function}() takes a node", "XPTY0004")
        elif expr.function in _ATOMS_OF:
            found = self.items(expr.arguments[0])
            if found & Items.BUILT:
                raise self.built(expr.arguments[0].offset)
            return found if not found & Items.NODES else found & ~Items.NODES | Items.OTHER_ATOMS
        else:
            self.values(expr.arguments)
        if expr.function == "id":
            return Items.NODES
        return Items.BOOLEANS if expr.function in BOOLEAN_FUNCTIONS else Items.OTHER_ATOMS

    def element(self, expr: Element) -> Items:
        if isinstance(expr.name, ComputedName):
            self.value(expr.name.expr)
        for attribute in expr.attributes:
            if isinstance(attribute.name, ComputedName):
                self.value(attribute.name.expr)
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
            self.variables[clause.position] = Items.OTHER_ATOMS

    def quantified(self, expr: Quantified) -> Items:
        outer = self.variables
        self.variables = dict(outer)
        for binding in expr.bindings:
            self.bind(binding)
        self.value(expr.condition)
        self.variables = outer
        return Items.BOOLEANS

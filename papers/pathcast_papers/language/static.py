"""What can be said of an expression before any message: names, types, static errors.

`resolve` turns the syntax tree of a query into one that stands by itself: prefixes are namespace
URIs, the papers' ways to say "the message" are the document node, paths that only parentheses kept
apart are one path. XPath 1.0 has four types, and as there are no variables, the type of every
expression is known: what needs a node-set and gets something else is refused here.

Example:
    >>> from pathcast_papers.language.parser import parse
    >>> text = "$msg//quote[count('x') > 1]"
    >>> resolve(parse(text), text, {})
    Traceback (most recent call last):
    ...
    pathcast.errors.QuerySyntaxError: XPTY0004: count() takes a node-set, and this is a string
      $msg//quote[count('x') > 1]
                        ^
      string-length() tells how long a string is

Source: XPath 1.0, sections 1 (types), 2.3 (expanded names), 3.2, 3.3, 4.1 (node-sets required).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast_papers.language import suggestions
from pathcast_papers.language.functions import NODE_SET_FUNCTIONS, RESULT_TYPES
from pathcast_papers.language.names import Namespaces, namespace_of, uri_of
from pathcast_papers.language.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    Literal,
    LocationPath,
    NameTest,
    Number,
    PathExpr,
    Predicate,
    Step,
    UnaryExpr,
    VariableReference,
)

MESSAGE_VARIABLE: Final = "msg"
"""The one variable there is: the message, as papers write it."""


class Kind(Enum):
    """The types of XPath 1.0; the value is how errors call them."""

    NODE_SET = "a node-set"
    BOOLEAN = "a boolean"
    NUMBER = "a number"
    STRING = "a string"


_KINDS: Final = MappingProxyType(
    {"nodes": Kind.NODE_SET, "boolean": Kind.BOOLEAN, "number": Kind.NUMBER, "string": Kind.STRING}
)

_DISJUNCTIONS: Final = frozenset({BinaryOperator.OR, BinaryOperator.UNION})

_BOOLEAN_OPERATORS: Final = frozenset(
    {
        BinaryOperator.OR,
        BinaryOperator.AND,
        BinaryOperator.EQ,
        BinaryOperator.NE,
        BinaryOperator.LT,
        BinaryOperator.LE,
        BinaryOperator.GT,
        BinaryOperator.GE,
    }
)


def kind_of(expr: Expr) -> Kind:
    """The type of an expression.

    Example:
        >>> from pathcast_papers.language.parser import parse
        >>> [kind_of(parse(text)).value for text in ("a/b", "a = b", "a + b", "name(a)")]
        ['a node-set', 'a boolean', 'a number', 'a string']
    """
    match expr:
        case LocationPath() | PathExpr() | FilterExpr() | VariableReference():
            return Kind.NODE_SET
        case FunctionCall(name=name):
            return _KINDS[RESULT_TYPES[name]]
        case Literal():
            return Kind.STRING
        case Number() | UnaryExpr():
            return Kind.NUMBER
        case BinaryExpr(operators=(operator, *_)):
            if operator is BinaryOperator.UNION:
                return Kind.NODE_SET
            return Kind.BOOLEAN if operator in _BOOLEAN_OPERATORS else Kind.NUMBER
    raise AssertionError(expr)


def nesting(expr: Expr) -> int:
    """How deep operators, calls and predicates stand within one another.

    Example:
        >>> from pathcast_papers.language.parser import parse
        >>> nesting(parse("a[b = 1 + 2]")), nesting(parse("a/b/c"))
        (3, 0)

    Cost: linear in the tree; it does not recurse.
    """
    return max(depth for _, depth in _parts(expr))


def disjuncts(expr: Expr) -> int:
    """How many disjuncts an expression writes: operands of `or` and of unions.

    Example:
        >>> from pathcast_papers.language.parser import parse
        >>> disjuncts(parse("a[@b = 1 or @b = 2 or @b = 3] | c")), disjuncts(parse("a/b"))
        (4, 1)

    Cost: linear in the tree; it does not recurse.
    """
    return 1 + sum(
        len(each.operands) - 1
        for each, _ in _parts(expr)
        if isinstance(each, BinaryExpr) and each.operators[0] in _DISJUNCTIONS
    )


def _parts(expr: Expr) -> Iterator[tuple[Expr, int]]:
    """An expression and all within it, each with how deep it stands."""
    waiting: list[tuple[Expr, int]] = [(expr, 0)]
    while waiting:
        each, depth = waiting.pop()
        yield each, depth
        inner: tuple[Expr, ...] = ()
        predicates: list[Predicate] = []
        match each:
            case LocationPath(steps=steps):
                predicates = [predicate for step in steps for predicate in step.predicates]
            case PathExpr(start=start, steps=steps):
                waiting.append((start, depth + 1))
                predicates = [predicate for step in steps for predicate in step.predicates]
            case FilterExpr(primary=primary):
                waiting.append((primary, depth + 1))
                predicates = list(each.predicates)
            case FunctionCall(arguments=arguments):
                inner = arguments
            case UnaryExpr(operand=operand):
                inner = (operand,)
            case BinaryExpr(operands=operands):
                inner = operands
        waiting += [(part, depth + 1) for part in inner]
        waiting += [(predicate.expr, depth + 1) for predicate in predicates]


def resolve(expr: Expr, text: str, namespaces: Namespaces) -> Expr:
    """The expression with names resolved and types checked.

    Args:
        expr: The syntax tree of the query.
        text: The query, for errors.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.

    Returns:
        A tree whose name tests have URIs and no prefixes (but for `*:name`), without variables and
        without `doc()`.

    Raises:
        QuerySyntaxError: A prefix or variable is not declared (XPST0081, XPST0008), or a node-set
            is needed where there is none (XPTY0004).
        UnsupportedQueryError: `doc()` of something other than a literal.

    Cost: linear in the tree.
    """
    return _Resolver(text, namespaces).expression(expr)


class _Resolver:
    def __init__(self, text: str, namespaces: Namespaces) -> None:
        self.text = text
        self.namespaces = namespaces

    def error(
        self, code: str, offset: int, reason: str, suggestion: str | None, **params: str
    ) -> QuerySyntaxError:
        return QuerySyntaxError(
            code, query=self.text, offset=offset, reason=reason, suggestion=suggestion, **params
        )

    def unsupported(self, construct: str, offset: int, hint: str | None) -> UnsupportedQueryError:
        return UnsupportedQueryError(
            "query.unsupported",
            query=self.text,
            offset=offset,
            construct=construct,
            reason=f"{construct} is not supported",
            suggestion=hint,
        )

    # Expressions.

    def expression(self, expr: Expr) -> Expr:
        match expr:
            case LocationPath():
                return replace(expr, steps=self.steps(expr.steps))
            case PathExpr():
                return self.path(expr)
            case FilterExpr():
                primary = self.node_set(expr.primary, "a predicate in brackets filters a node-set")
                return replace(expr, primary=primary, predicates=self.predicates(expr.predicates))
            case FunctionCall(name=("doc" | "document")):
                return self.document(expr)
            case FunctionCall():
                return self.call(expr)
            case VariableReference():
                return self.variable(expr)
            case Number() if math.isinf(expr.value):
                # Too many digits for a double; infinity has no literal.
                one, zero = Number(1.0, expr.offset), Number(0.0, expr.offset)
                return BinaryExpr((BinaryOperator.DIV,), (one, zero), expr.offset, expr.offset)
            case UnaryExpr():
                return replace(expr, operand=self.expression(expr.operand))
            case BinaryExpr(operators=(BinaryOperator.UNION, *_)):
                why = "| unites node-sets"
                operands = tuple(self.node_set(each, why) for each in expr.operands)
                return replace(expr, operands=operands)
            case BinaryExpr():
                return replace(
                    expr, operands=tuple(self.expression(each) for each in expr.operands)
                )
            case _:
                return expr

    def path(self, expr: PathExpr) -> Expr:
        start = self.node_set(expr.start, "a path begins at a node-set")
        steps = self.steps(expr.steps)
        if isinstance(start, LocationPath):
            return LocationPath(start.is_absolute, start.steps + steps, start.offset)
        if isinstance(start, PathExpr):
            return replace(start, steps=start.steps + steps)
        return replace(expr, start=start, steps=steps)

    def node_set(self, expr: Expr, why: str) -> Expr:
        resolved = self.expression(expr)
        kind = kind_of(resolved)
        if kind is not Kind.NODE_SET:
            raise self.error("XPTY0004", expr.offset, f"{why}, and this is {kind.value}", None)
        return resolved

    def call(self, expr: FunctionCall) -> FunctionCall:
        if expr.name not in NODE_SET_FUNCTIONS:
            arguments = tuple(self.expression(argument) for argument in expr.arguments)
            return replace(expr, arguments=arguments)
        resolved: list[Expr] = []
        for argument in expr.arguments:
            resolved.append(self.expression(argument))
            kind = kind_of(resolved[-1])
            if kind is not Kind.NODE_SET:
                reason = f"{expr.name}() takes a node-set, and this is {kind.value}"
                hint = suggestions.for_node_set_function(expr.name, is_string=kind is Kind.STRING)
                raise self.error("XPTY0004", argument.offset, reason, hint)
        return replace(expr, arguments=tuple(resolved))

    def variable(self, expr: VariableReference) -> LocationPath:
        if expr.name != MESSAGE_VARIABLE:
            raise self.error(
                "XPST0008",
                expr.offset,
                f"variable ${expr.name} is not declared",
                f"there are no variables; the message is ${MESSAGE_VARIABLE}",
                name=expr.name,
            )
        return LocationPath(True, (), expr.offset)

    def document(self, expr: FunctionCall) -> LocationPath:
        if not isinstance(expr.arguments[0], Literal):
            hint = "the one document is the message: begin the path with /"
            raise self.unsupported(f"{expr.name}() of a computed name", expr.offset, hint)
        return LocationPath(True, (), expr.offset)

    # Steps.

    def steps(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(self.step(step) for step in steps)

    def step(self, step: Step) -> Step:
        test = step.test
        if isinstance(test, NameTest):
            test = self.name_test(test, step.axis)
        return replace(step, test=test, predicates=self.predicates(step.predicates))

    def predicates(self, predicates: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
        return tuple(replace(each, expr=self.expression(each.expr)) for each in predicates)

    def name_test(self, test: NameTest, axis: Axis) -> NameTest:
        if test.prefix == "*" or (test.local == "*" and test.prefix is None and test.uri is None):
            return test
        if test.uri is not None:
            uri = test.uri
        elif test.prefix is not None:
            uri = self.namespace(test)
        else:
            has_default = axis not in (Axis.ATTRIBUTE, Axis.NAMESPACE)
            uri = self.namespaces.get("", "") if has_default else ""
        if uri_of(uri) != uri:
            what = "a namespace URI with white space to be collapsed"
            raise self.unsupported(what, test.offset, None)
        if "{" in uri or "}" in uri:
            raise self.unsupported("a namespace URI with braces", test.offset, None)
        if not uri.isascii() and any("\ud800" <= character <= "\udfff" for character in uri):
            raise self.unsupported("a namespace URI with a lone surrogate", test.offset, None)
        return NameTest(None, test.local, uri, test.offset)

    def namespace(self, test: NameTest) -> str:
        prefix = test.prefix or ""
        uri = namespace_of(prefix, self.namespaces)
        if uri is None:
            bound = sorted({"xml", *self.namespaces} - {""})
            meant = suggestions.nearest(prefix, bound)
            anyhow = "*" if test.local == "*" else f"*:{test.local}"
            bound_so = f'namespaces={{"{prefix}": "..."}} (--namespace {prefix}=...)'
            hint = f"bind it: {bound_so}, or write {anyhow}"
            raise self.error(
                "XPST0081",
                test.offset,
                f"prefix {prefix} is not bound",
                f"did you mean {meant}:?" if meant else hint,
                prefix=prefix,
            )
        return uri

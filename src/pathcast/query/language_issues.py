"""Parts of an XPath that XQuery would read in another way.

Where the subscriber chooses no language, the grammar of XPath 1.0 decides, so one more operator or
function can make an XPath XQuery, where orders compare text, functions take one item, and `&amp;`
in a string is `&`.

Example:
    >>> from pathcast.query.notation import Notation
    >>> from pathcast.query.reader import read_query
    >>> text = "//a[@n > '5' and contains(.//b, 'AT&amp;T')]"
    >>> for issue in language_issues(read_query(text, {}), Notation()):
    ...     print(issue.offset, issue.reason)
    4 `@n>'5'` compares numbers in XPath 1.0 and text in XQuery
    26 `.//b` may be several nodes: contains() reads the first in XPath 1.0, and XQuery refuses them
    32 `&amp;` in a string is 5 characters in XPath 1.0 and one in XQuery

An order with a text that is no number is not among them: it never holds
(`pathcast.query.condition_issues`). Nor are steps to children, which usually find one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pathcast.query.atoms import is_single
from pathcast.query.notation import Notation
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import (
    ADDITIVE,
    MULTIPLICATIVE,
    ORDERS,
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
    Step,
    UnaryExpr,
)
from pathcast.query.values import number_of

_ARITHMETIC: Final = MULTIPLICATIVE | ADDITIVE

_ONE_ITEM: Final = frozenset(
    {
        "string",
        "concat",
        "starts-with",
        "contains",
        "substring-before",
        "substring-after",
        "substring",
        "string-length",
        "normalize-space",
        "translate",
        "number",
        "floor",
        "ceiling",
        "round",
    }
)
"""Functions of one item each, which XPath 1.0 gives the first of several."""

_REFERENCE: Final = re.compile(r"&(?:#x[0-9a-fA-F]+|#[0-9]+|amp|apos|gt|lt|quot);")


_CHOICE: Final = 'or choose: language="xpath1" or, of a Subscription, language="xquery"'


@dataclass(frozen=True, slots=True)
class LanguageIssue:
    """A part of a query whose meaning depends on the language.

    Attributes:
        offset: Where it stands, in characters.
        reason: Both meanings, as the beginning of a sentence.
        fix: What to write for one meaning in both.
    """

    offset: int
    reason: str
    fix: str

    code = "PL204"


def language_issues(expr: Expr, notation: Notation) -> list[LanguageIssue]:
    """The parts of a resolved query that mean something else in XQuery, by place.

    Cost: linear in the query.
    """
    found: list[LanguageIssue] = []
    waiting = [expr]
    while waiting:
        each = waiting.pop()
        found += _issues(each, notation)
        waiting += _parts(each)
    return sorted(found, key=lambda issue: issue.offset)


def _issues(expr: Expr, notation: Notation) -> Iterator[LanguageIssue]:
    match expr:
        case BinaryExpr(operators=(operator,)) if operator in ORDERS:
            yield from _order(expr, operator, notation)
        case BinaryExpr(operators=operators, operands=operands) if operators[0] in _ARITHMETIC:
            for operand in operands:
                yield from _several(operand, "arithmetic", notation)
        case UnaryExpr(operand=operand):
            yield from _several(operand, "arithmetic", notation)
        case FunctionCall(name=name, arguments=arguments) if name in _ONE_ITEM:
            for argument in arguments:
                yield from _several(argument, f"{name}()", notation)
        case Literal(value=value, offset=offset):
            if (written := _REFERENCE.search(value)) is not None:
                reference = written[0]
                yield LanguageIssue(
                    offset,
                    f"`{reference}` in a string is {len(reference)} characters in XPath 1.0 and "
                    "one in XQuery",
                    "write the character itself, as an XPath is not escaped as XML is, " + _CHOICE,
                )


def _order(
    expr: BinaryExpr, operator: BinaryOperator, notation: Notation
) -> Iterator[LanguageIssue]:
    """An order without a number on either side."""
    left, right = expr.operands
    if {kind_of(left), kind_of(right)} & {Kind.BOOLEAN, Kind.NUMBER}:
        return
    constants = [side.value for side in (left, right) if isinstance(side, Literal)]
    if len(constants) == 2 or any(math.isnan(number_of(text)) for text in constants):
        # It is constant, or never holds.
        return
    sides = [notation.expr(side) for side in (left, right)]
    if constants:
        numbers = [
            side.value.strip() if isinstance(side, Literal) else shown
            for side, shown in zip((left, right), sides, strict=True)
        ]
    else:
        numbers = [f"number({shown})" for shown in sides]
    sign = operator.value
    yield LanguageIssue(
        expr.offset,
        f"`{sign.join(sides)}` compares numbers in XPath 1.0 and text in XQuery",
        f"write `{sign.join(numbers)}` for numbers in both, {_CHOICE}",
    )


def _several(operand: Expr, reader: str, notation: Notation) -> Iterator[LanguageIssue]:
    """A node-set that may have several nodes, where one item is read."""
    if kind_of(operand) is not Kind.NODE_SET or not _may_be_several(operand):
        return
    shown = notation.expr(operand)
    yield LanguageIssue(
        operand.offset,
        f"`{shown}` may be several nodes: {reader} reads the first in XPath 1.0, and XQuery "
        "refuses them",
        f"write `({shown})[1]` for the first in both, or a predicate that asks each: "
        f"`{shown}[...]`, {_CHOICE}",
    )


def _may_be_several(expr: Expr) -> bool:
    """Whether a node-set is written so that it usually has several nodes."""
    match expr:
        case FilterExpr(predicates=predicates):
            return not _is_first(predicates[-1])
        case LocationPath(steps=steps) | PathExpr(steps=steps):
            return not is_single(expr) and any(map(_leads_to_several, steps))
    return True


def _is_first(expr: Expr) -> bool:
    is_last = isinstance(expr, FunctionCall) and expr.name == "last"
    return is_last or (isinstance(expr, Number) and expr.value == 1.0)


def _leads_to_several(step: Step) -> bool:
    if step.axis in (Axis.SELF, Axis.PARENT):
        return False
    if step.axis not in (Axis.CHILD, Axis.ATTRIBUTE):
        return True
    return isinstance(step.test, NameTest) and step.test.local is None


def _parts(expr: Expr) -> list[Expr]:
    predicates: tuple[Expr, ...] = ()
    found: list[Expr] = []
    match expr:
        case LocationPath(steps=steps):
            predicates = tuple(each for step in steps for each in step.predicates)
        case PathExpr(start=start, steps=steps):
            found.append(start)
            predicates = tuple(each for step in steps for each in step.predicates)
        case FilterExpr(primary=primary, predicates=predicates):
            found.append(primary)
        case FunctionCall(arguments=arguments):
            found += arguments
        case UnaryExpr(operand=operand):
            found.append(operand)
        case BinaryExpr(operands=operands):
            found += operands
    return [*found, *predicates]

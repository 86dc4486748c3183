"""The class of subscriptions that the paper on customised delivery shares plans for.

    <outer> { for $v in binding path where condition and ... return template } </outer>

with one `for`, a `where` clause that is a conjunction of comparisons of a path relative to the
variable with a constant (or of its existence), and a template whose only expressions are paths
relative to the variable. Paths go down only, by `/` and `//`, over element names and `*`, and end
at elements, at attributes (`/@a`) or at text (`/text()`). The steps of the binding path may have
predicates that are such conditions, relative to the step.

Example:
    >>> from pathcast.query.xquery.reader import parse
    >>> text = "<r>{for $s in //section[@id < 5]/p where $s/b return <s>{$s//title}</s>}</r>"
    >>> [(each.name.local, each.asks_attributes) for each in binding_of(parse(text))]
    [('section', True), ('p', True)]

Source: Diao and Franklin, "Query Processing for High-Volume XML Message Brokering", section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pathcast.query.atoms import COMPARISONS
from pathcast.query.normal import Operator
from pathcast.query.notation import is_double_slash
from pathcast.query.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    ContextItem,
    ElementConstructor,
    Enclosed,
    Expr,
    Flwor,
    For,
    KindTest,
    Literal,
    LocationPath,
    NameTest,
    NodeKind,
    Number,
    PathExpr,
    Program,
    Sequence,
    Step,
    UnaryExpr,
    VariableReference,
)


@dataclass(frozen=True, slots=True)
class BindingStep:
    """A step down of a binding path.

    Attributes:
        is_descendant: Whether `//` stands before it.
        name: Which elements; `NameTest(None, None)` for `*`.
        asks_attributes: Whether all that its predicates ask for are attributes of its elements.
    """

    is_descendant: bool
    name: NameTest
    asks_attributes: bool = True


def binding_of(program: Program) -> tuple[BindingStep, ...] | None:
    """The binding path of a program, from the document node; None if it is not of the class.

    Args:
        program: As it was parsed.

    Cost: linear in the program.
    """
    flwor = framed(program.body)
    if flwor is None or flwor.order or len(flwor.clauses) != 1:
        return None
    clause = flwor.clauses[0]
    if not isinstance(clause, For) or clause.position is not None:
        return None
    if not isinstance(clause.source, LocationPath):
        return None
    variable = VariableReference(clause.variable)
    try:
        found = _steps(clause.source.steps, with_conditions=True)
        if flwor.where is not None:
            _ask_attributes(conjuncts(flwor.where), variable)
        for each in returned(flwor.body):
            _is_own_attribute(each, variable)
    except _OutsideError:
        return None
    return found or None


class _OutsideError(Exception):
    """A part of a program is outside the class."""


def framed(body: Expr) -> Flwor | None:
    """The FLWR that a program is, or has in a frame of constructors with nothing else in it."""
    if isinstance(body, Flwor):
        return body
    found: list[Expr] = []
    waiting: list[ElementConstructor] = [body] if isinstance(body, ElementConstructor) else []
    while waiting:
        element = waiting.pop()
        parts = [part for attribute in element.attributes for part in attribute.parts]
        for each in (*parts, *element.content):
            if isinstance(each, ElementConstructor):
                waiting.append(each)
            elif isinstance(each, Enclosed):
                found.append(each.expr)
    return found[0] if len(found) == 1 and isinstance(found[0], Flwor) else None


def returned(template: Expr) -> Iterator[Expr]:
    """The expressions in a template, in document order, attributes before content."""
    match template:
        case Sequence(items=items):
            for item in items:
                yield from returned(item)
        case ElementConstructor(attributes=attributes, content=content):
            parts = [part for attribute in attributes for part in attribute.parts]
            for each in (*parts, *content):
                if isinstance(each, Enclosed):
                    yield from returned(each.expr)
                elif isinstance(each, ElementConstructor):
                    yield from returned(each)
        case _:
            yield template


def conjuncts(expr: Expr) -> Iterator[Expr]:
    """The conditions that `and` joins."""
    if isinstance(expr, BinaryExpr) and expr.operators[0] is BinaryOperator.AND:
        for operand in expr.operands:
            yield from conjuncts(operand)
    else:
        yield expr


def _steps(steps: tuple[Step, ...], *, with_conditions: bool) -> tuple[BindingStep, ...]:
    """Steps down, `//` joined with the step after it."""
    found: list[BindingStep] = []
    is_descendant = False
    for step in steps:
        if is_double_slash(step) and not is_descendant:
            is_descendant = True
            continue
        if step.axis not in (Axis.CHILD, Axis.DESCENDANT):
            raise _OutsideError
        match step.test:
            case NameTest() as name:
                pass
            case KindTest(kind=NodeKind.ELEMENT):
                name = NameTest(None, None)
            case _:
                raise _OutsideError
        if step.predicates and not with_conditions:
            raise _OutsideError
        conditions = (each for predicate in step.predicates for each in conjuncts(predicate))
        asks_attributes = _ask_attributes(conditions, ContextItem())
        is_descendant = is_descendant or step.axis is Axis.DESCENDANT
        found.append(BindingStep(is_descendant, name, asks_attributes))
        is_descendant = False
    if is_descendant:
        raise _OutsideError
    return tuple(found)


def _ask_attributes(conditions: Iterable[Expr], origin: Expr) -> bool:
    """Whether conditions ask for attributes of a node only."""
    asked = [_asks_attribute(each, origin) for each in conditions]
    return all(asked)


def _asks_attribute(condition: Expr, origin: Expr) -> bool:
    match condition:
        case LocationPath() | PathExpr():
            return _is_own_attribute(condition, origin)
        case BinaryExpr(operators=(sign,), operands=(left, right)) if sign in COMPARISONS:
            is_equal = COMPARISONS[sign] is Operator.EQ
            for path, constant in ((left, right), (right, left)):
                if _is_constant(constant, may_be_list=is_equal):
                    return _is_own_attribute(path, origin)
    raise _OutsideError


def _is_own_attribute(expr: Expr, origin: Expr) -> bool:
    """Whether a path relative to a variable or the context item is an attribute of that node."""
    if expr == origin:
        return False
    if not isinstance(expr, LocationPath | PathExpr) or _start(expr) != origin:
        raise _OutsideError
    before, last = expr.steps[:-1], expr.steps[-1]
    is_attribute = last.axis is Axis.ATTRIBUTE and isinstance(last.test, NameTest)
    is_text = last.axis is Axis.CHILD and last.test == KindTest(NodeKind.TEXT)
    is_end = (is_attribute or is_text) and not last.predicates
    _steps(before if is_end else expr.steps, with_conditions=False)
    return is_attribute and not before


def _start(path: LocationPath | PathExpr) -> Expr | None:
    """The expression at which a path begins; None for the message."""
    if isinstance(path, PathExpr):
        return path.start
    return None if path.is_absolute else ContextItem()


def _is_constant(expr: Expr, *, may_be_list: bool) -> bool:
    """Whether an expression is a literal, or a list of literals of one kind."""
    if isinstance(expr, Sequence) and may_be_list:
        are_strings = {isinstance(item, Literal) for item in expr.items}
        return len(are_strings) == 1 and all(
            _is_constant(item, may_be_list=False) for item in expr.items
        )
    if isinstance(expr, UnaryExpr):
        return isinstance(expr.operand, Number)
    return isinstance(expr, Literal | Number)

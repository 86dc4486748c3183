"""Subscriptions of the class that the paper on customised delivery shares plans for.

    <outer> { for $v in binding path where condition and ... return template } </outer>

with one `for`, a `where` clause that is a conjunction of comparisons of a path relative to the
variable with a constant (or of its existence), and a template whose only expressions are paths
relative to the variable. Paths go down only, by `/` and `//`, over element names and `*`, and end
at elements, at attributes (`/@a`) or at text (`/text()`). The steps of the binding path may have
predicates that are such conditions, relative to the step.

Example:
    >>> from pathcast.query.xquery.reader import parse
    >>> text = "<r>{for $s in //section where 5 > $s/@id return <s>{$s//title}</s>}</r>"
    >>> query = paper_form(parse(text))
    >>> query.predicates[0].operator.value, query.predicates[0].constant
    ('<', 5.0)

Source: Diao and Franklin, "Query Processing for High-Volume XML Message Brokering", section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pathcast.query.atoms import COMPARISONS
from pathcast.query.normal import FLIPPED, Operator
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


class Target(Enum):
    """The kind of node that a path ends at."""

    ELEMENT = "element"
    """The element of the last step; in a comparison, its string value."""
    TEXT = "text()"
    """Its text nodes."""
    ATTRIBUTE = "@"
    """An attribute of it."""


@dataclass(frozen=True, slots=True)
class PaperCondition:
    """A path from an element, and what is asked of its end.

    Attributes:
        steps: Relative to the element that is asked; none where its own text or attribute is.
        target: What is compared.
        attribute: The attribute's name, where `target` is one.
        operator: How, with the path on the left; None for existence.
        constant: A string, or a number (which compares as numbers), or a list of which one must be
            equal; None for existence.
    """

    steps: tuple[PaperStep, ...]
    target: Target
    attribute: NameTest | None
    operator: Operator | None
    constant: str | float | tuple[str, ...] | tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class PaperStep:
    """A step down.

    Attributes:
        is_descendant: Whether `//` stands before it.
        name: Which elements; `NameTest(None, None)` for `*`.
        conditions: Its predicates; in the binding path only.
    """

    is_descendant: bool
    name: NameTest
    conditions: tuple[PaperCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class PaperReturn:
    """A return path.

    Attributes:
        steps: Relative to the variable; none for the variable itself or for its text or attribute.
        target: What is returned.
        attribute: The attribute's name, where `target` is one.
    """

    steps: tuple[PaperStep, ...]
    target: Target
    attribute: NameTest | None


@dataclass(frozen=True, slots=True)
class PaperQuery:
    """A subscription of the paper's class.

    Attributes:
        binding: Steps of the binding path, from the document node.
        predicates: The `where` clause, a conjunction.
        returns: The return paths, in the order in which they stand in the template.
        template: What `return` has: a constructor, a path or a sequence of them. Every path and
            variable met in document order, attributes before content, is the next of `returns`.
        outer: The constructor around the FLWR, which is the one enclosed expression in it, directly
            or in a constructor within; None if there is none.
        variable: The variable's name.
    """

    binding: tuple[PaperStep, ...]
    predicates: tuple[PaperCondition, ...]
    returns: tuple[PaperReturn, ...]
    template: Expr
    outer: ElementConstructor | None
    variable: str


def paper_form(program: Program) -> PaperQuery | None:
    """A program as a query of the paper's class; None if it is not of it.

    Args:
        program: As it was parsed.

    Cost: linear in the program.
    """
    outer, flwor = framed(program.body)
    if flwor is None or flwor.order or len(flwor.clauses) != 1:
        return None
    clause = flwor.clauses[0]
    if not isinstance(clause, For) or clause.position is not None:
        return None
    try:
        if not isinstance(clause.source, LocationPath):
            return None
        binding = _steps(clause.source.steps, with_conditions=True)
        predicates: list[PaperCondition] = []
        if flwor.where is not None:
            predicates = _conjunction(flwor.where, VariableReference(clause.variable))
        returns = _returns(flwor.body, VariableReference(clause.variable))
    except _OutsideError:
        return None
    if not binding:
        return None
    return PaperQuery(
        binding, tuple(predicates), tuple(returns), flwor.body, outer, clause.variable
    )


class _OutsideError(Exception):
    """A part of a program is outside the class."""


def framed(body: Expr) -> tuple[ElementConstructor | None, Flwor | None]:
    """The constructor around a FLWR, and the FLWR; None for both if more stands in the frame."""
    if isinstance(body, Flwor):
        return None, body
    found: list[Expr] = []
    waiting: list[ElementConstructor] = [body] if isinstance(body, ElementConstructor) else []
    while waiting:
        element = waiting.pop()
        for attribute in element.attributes:
            found.extend(part.expr for part in attribute.parts if isinstance(part, Enclosed))
        for each in element.content:
            if isinstance(each, ElementConstructor):
                waiting.append(each)
            elif isinstance(each, Enclosed):
                found.append(each.expr)
    match body, found:
        case ElementConstructor(), [Flwor() as flwor]:
            return body, flwor
    return None, None


def _steps(steps: tuple[Step, ...], *, with_conditions: bool) -> tuple[PaperStep, ...]:
    """Steps down, `//` joined with the step after it."""
    found: list[PaperStep] = []
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
        conditions = tuple(
            condition
            for predicate in step.predicates
            for condition in _conjunction(predicate, ContextItem())
        )
        is_descendant = is_descendant or step.axis is Axis.DESCENDANT
        found.append(PaperStep(is_descendant, name, conditions))
        is_descendant = False
    if is_descendant:
        raise _OutsideError
    return tuple(found)


def _start(path: LocationPath | PathExpr) -> Expr | None:
    """The expression at which a path begins; None for the message."""
    if isinstance(path, PathExpr):
        return path.start
    return None if path.is_absolute else ContextItem()


def _relative(expr: Expr, origin: Expr) -> tuple[tuple[PaperStep, ...], Target, NameTest | None]:
    """A path relative to a variable or the context item."""
    if expr == origin:
        return (), Target.ELEMENT, None
    if not isinstance(expr, LocationPath | PathExpr) or _start(expr) != origin:
        raise _OutsideError
    last = expr.steps[-1]
    if not last.predicates:
        before = expr.steps[:-1]
        match last:
            case Step(axis=Axis.ATTRIBUTE, test=NameTest() as name):
                return _steps(before, with_conditions=False), Target.ATTRIBUTE, name
            case Step(axis=Axis.CHILD, test=KindTest(kind=NodeKind.TEXT)):
                return _steps(before, with_conditions=False), Target.TEXT, None
    return _steps(expr.steps, with_conditions=False), Target.ELEMENT, None


def _conjunction(expr: Expr, origin: Expr) -> list[PaperCondition]:
    """The conditions that `and` joins."""
    match expr:
        case LocationPath() | PathExpr():
            return [PaperCondition(*_relative(expr, origin), None, None)]
        case BinaryExpr(operators=(BinaryOperator.AND, *_), operands=operands):
            return [each for operand in operands for each in _conjunction(operand, origin)]
        case BinaryExpr(operators=(sign,), operands=(left, right)) if sign in COMPARISONS:
            operator, constant = COMPARISONS[sign], _constants(right)
            if constant is None:
                constant, operator, left = _constants(left), FLIPPED[operator], right
            is_list = isinstance(constant, tuple)
            if constant is not None and (operator is Operator.EQ or not is_list):
                return [PaperCondition(*_relative(left, origin), operator, constant)]
    raise _OutsideError


def _constants(expr: Expr) -> str | float | tuple[str, ...] | tuple[float, ...] | None:
    """A literal, or the values of a list of literals of one kind."""
    if not isinstance(expr, Sequence):
        return _constant(expr)
    values = [_constant(item) for item in expr.items]
    strings = tuple(value for value in values if isinstance(value, str))
    numbers = tuple(value for value in values if isinstance(value, float))
    found = strings or numbers
    return found if found and len(found) == len(values) else None


def _constant(expr: Expr) -> str | float | None:
    match expr:
        case Literal(value=text):
            return text
        case Number(value=number):
            return float(number)
        case UnaryExpr(operand=Number(value=number)):
            return -float(number)
    return None


def _returns(template: Expr, origin: VariableReference) -> list[PaperReturn]:
    """The return paths of a template."""
    match template:
        case LocationPath() | PathExpr() | VariableReference():
            return [PaperReturn(*_relative(template, origin))]
        case Sequence(items=items):
            return [each for item in items for each in _returns(item, origin)]
        case ElementConstructor(attributes=attributes, content=content):
            inside: list[Expr] = []
            for attribute in attributes:
                inside += [part.expr for part in attribute.parts if isinstance(part, Enclosed)]
            for part in content:
                if isinstance(part, Enclosed):
                    inside.append(part.expr)
                elif isinstance(part, ElementConstructor):
                    inside.append(part)
            return [each for expr in inside for each in _returns(expr, origin)]
    raise _OutsideError

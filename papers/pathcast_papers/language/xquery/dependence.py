"""What the value of an expression depends on: the message, variables, parts of the focus.

What depends on nothing of the message is constant, however it is written. And a value is kept and
used again where nothing that it depends on has changed, which makes nested predicates polynomial
and lifts out of a loop what the loop does not change.

It is found from where values come from and where they go to, not from what they are: `count(//a) *
0` depends on the message, and `let $a := //a return 1`, which does not use the variable, does not.

Example:
    >>> from pathcast_papers.language.xquery.syntax import Call, ContextItem, Variable
    >>> found = Dependences().of(Call("concat", (Variable("x"), ContextItem())))
    >>> sorted(found.variables), found.is_on_item, found.is_on_message
    (['x'], True, False)

Source: Gottlob, Koch and Pichler, TODS 2005, section 5 ("relevant context"), with variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pathcast_papers.language.xquery import syntax
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
    Let,
    Literal,
    Negation,
    Or,
    Path,
    Quantified,
    Range,
    Root,
    SimpleMap,
    Step,
    Text,
    Union,
    Variable,
)


class Dependence(NamedTuple):
    """What a value depends on.

    Attributes:
        variables: Names of variables that are bound outside the expression.
        is_on_message: Whether on the message, other than by a variable or the focus.
        is_on_item: Whether on the context item.
        is_on_position: Whether on its position.
        is_on_size: Whether on the number of items.
    """

    variables: frozenset[str] = frozenset()
    is_on_message: bool = False
    is_on_item: bool = False
    is_on_position: bool = False
    is_on_size: bool = False

    def __or__(self, other: Dependence) -> Dependence:
        return Dependence(
            self.variables | other.variables,
            self.is_on_message or other.is_on_message,
            self.is_on_item or other.is_on_item,
            self.is_on_position or other.is_on_position,
            self.is_on_size or other.is_on_size,
        )

    def without(self, *names: str | None) -> Dependence:
        """The same with some variables bound inside."""
        return self._replace(variables=self.variables.difference(names))


NOTHING: Final = Dependence()
MESSAGE: Final = Dependence(is_on_message=True)


class Dependences:
    """Dependences of the expressions of a program, each found once.

    Cost: linear in the expression, times its depth at worst; nothing the second time.
    """

    def __init__(self) -> None:
        self._found: dict[int, Dependence] = {}

    def of(self, expr: Expr) -> Dependence:
        """What the value of an expression depends on. The expression must stay alive."""
        found = self._found.get(id(expr))
        if found is None:
            found = self._found[id(expr)] = self._of(expr)
        return found

    def _of(self, expr: Expr) -> Dependence:
        match expr:
            case Literal():
                return NOTHING
            case Variable(name=name):
                return Dependence(frozenset({name}))
            case ContextItem():
                return Dependence(is_on_item=True)
            case Path(start=start, steps=steps):
                return self._of_start(start) | self._of_steps(steps)
            case Filter(primary=primary, predicates=predicates):
                return self.of(primary) | self._of_predicates(predicates)
            case Call(function=function, arguments=arguments):
                own = Dependence(
                    is_on_message=function == "id",
                    is_on_item=function == "lang",
                    is_on_position=function == "position",
                    is_on_size=function == "last",
                )
                return own | self._of_all(arguments)
            case Flwor(clauses=clauses, where=where, order=order, body=body):
                rest = [body, *(key.key for key in order)]
                if where is not None:
                    rest.append(where)
                return self._of_clauses(clauses, rest)
            case Quantified(bindings=bindings, condition=condition):
                return self._of_clauses(bindings, [condition])
            case If(condition=condition, then=then, otherwise=otherwise):
                return self._of_all((condition, then, otherwise))
            case Comparison(left=left, right=right) | Arithmetic(left=left, right=right):
                return self.of(left) | self.of(right)
            case Negation(operand=operand) | Cast(operand=operand) | Castable(operand=operand):
                return self.of(operand)
            case InstanceOf(operand=operand):
                return self.of(operand)
            case Range(first=first, last=last):
                return self.of(first) | self.of(last)
            case Intersection(left=left, right=right):
                return self.of(left) | self.of(right)
            case SimpleMap(source=source, body=body):
                return self.of(source) | self._of_predicates((body,))
            case Element():
                return self._of_element(expr)
            case syntax.Sequence(items=operands) | Or(operands) | And(operands) | Union(operands):
                return self._of_all(operands)
        raise AssertionError(expr)

    def _of_all(self, exprs: Iterable[Expr]) -> Dependence:
        found = NOTHING
        for expr in exprs:
            found |= self.of(expr)
        return found

    def _of_start(self, start: Root | Context | Expr) -> Dependence:
        if isinstance(start, Root):
            return MESSAGE
        return Dependence(is_on_item=True) if isinstance(start, Context) else self.of(start)

    def _of_steps(self, steps: Iterable[Step]) -> Dependence:
        found = NOTHING
        for step in steps:
            found |= self._of_predicates(step.predicates)
        return found

    def _of_predicates(self, predicates: Iterable[Expr]) -> Dependence:
        """Predicates have a focus of their own, which comes from what they are predicates of."""
        found = self._of_all(predicates)
        return Dependence(found.variables, found.is_on_message)

    def _of_clauses(self, clauses: Sequence[For | Let], rest: Iterable[Expr]) -> Dependence:
        """From the last clause up, so that a `let` counts where its variable is used."""
        found = self._of_all(rest)
        for clause in reversed(clauses):
            if isinstance(clause, For):
                found = found.without(clause.variable, clause.position) | self.of(clause.source)
            elif clause.variable in found.variables:
                found = found.without(clause.variable) | self.of(clause.value)
        return found

    def _of_element(self, element: Element) -> Dependence:
        found = NOTHING
        for name in (element.name, *(attribute.name for attribute in element.attributes)):
            if isinstance(name, ComputedName):
                found |= self.of(name.expr)
        parts = [part for attribute in element.attributes for part in attribute.parts]
        for part in (*parts, *element.content):
            match part:
                case Enclosed(expr=expr):
                    found |= self.of(expr)
                case Element():
                    found |= self.of(part)
                case Text():
                    pass
        return found

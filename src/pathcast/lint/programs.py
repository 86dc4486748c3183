"""Names and paths of an XQuery subscription that messages of a kind cannot have.

Every path of the program is followed as those of a query are (`pathcast.lint.paths`), from where
its variable was bound.

Example:
    >>> from pathcast.lint.structure import structure_of_dtd
    >>> from pathcast.query.xquery.reader import parse
    >>> from pathcast.schema import parse_dtd
    >>> checker = PathChecker(structure_of_dtd(parse_dtd("<!ELEMENT a (b)><!ELEMENT b EMPTY>")), {})
    >>> text = "for $x in //a return <r>{$x/bb}</r>"
    >>> for issue in program_issues(parse(text), text, checker):
    ...     print(issue.code, issue.offset, issue.message, issue.fix)
    PL101 28 no element of the DTD is called `bb` did you mean `b`?

It looks at names and paths; values, positions and what conditions say of each other it leaves
alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pathcast.lint.paths import PathChecker, PathIssue, PathWalk
from pathcast.lint.reach import Nodes
from pathcast.lint.structure import DOCUMENT
from pathcast.query.syntax import (
    BinaryExpr,
    BinaryOperator,
    ContextItem,
    Expr,
    FilterExpr,
    Flwor,
    For,
    If,
    InstanceOf,
    Intersection,
    KindTest,
    Let,
    LocationPath,
    NameTest,
    NodeKind,
    PathExpr,
    Program,
    Quantified,
    Sequence,
    SimpleMap,
    Step,
    VariableReference,
)

_BEFORE_TEST: Final = re.compile(r"@[ \t\r\n]*|[a-z-]+[ \t\r\n]*::[ \t\r\n]*")
_NOWHERE: Final[Nodes] = frozenset()


def program_issues(program: Program, text: str, checker: PathChecker) -> list[PathIssue]:
    """The parts of a program that no message can have, in the order of the text.

    Args:
        program: As it was parsed.
        text: What it was parsed from.
        checker: What messages look like.

    Cost: steps of the program times places that they lead to.
    """
    walk = _ProgramWalk(PathWalk(checker), text)
    walk.give(program.body, {}, _NOWHERE)
    return walk.paths.found()


class _ProgramWalk:
    """One program: the nodes that its expressions give, as far as they are nodes of a message."""

    def __init__(self, paths: PathWalk, text: str) -> None:
        self.paths = paths
        self.text = text

    def give(self, expr: Expr, bound: Mapping[str, Nodes], context: Nodes) -> Nodes:
        """The nodes of an expression; none where it gives something else.

        Args:
            expr: The expression.
            bound: Variable -> the nodes that it is bound to.
            context: The nodes that a predicate around it asks.
        """
        match expr:
            case LocationPath(is_absolute, steps):
                return self.path(frozenset({DOCUMENT}) if is_absolute else context, steps, bound)
            case PathExpr(start, steps):
                return self.path(self.give(start, bound, context), steps, bound)
            case FilterExpr(primary, predicates):
                nodes = self.give(primary, bound, context)
                for predicate in predicates:
                    self.give(predicate, bound, nodes)
                return nodes
            case VariableReference(name):
                return bound.get(name, _NOWHERE)
            case ContextItem():
                return context
            case Sequence(items) | BinaryExpr((BinaryOperator.UNION, *_), items):
                return frozenset().union(*(self.give(item, bound, context) for item in items))
            case SimpleMap(source, body):
                return self.give(body, bound, self.give(source, bound, context))
            case Intersection(left=left, right=right):
                self.give(right, bound, context)
                return self.give(left, bound, context)
            case InstanceOf(operand=operand):
                self.give(operand, bound, context)
            case If(condition, then, otherwise):
                self.give(condition, bound, context)
                return self.give(then, bound, context) | self.give(otherwise, bound, context)
            case Quantified(bindings=bindings, condition=condition):
                self.give(condition, self.binding(bindings, bound, context), context)
            case Flwor(clauses, where, order, body):
                bound = self.binding(clauses, bound, context)
                for part in (where, *(key.key for key in order)):
                    if part is not None:
                        self.give(part, bound, context)
                return self.give(body, bound, context)
            case _:
                self.parts(expr, bound, context)
        return _NOWHERE

    def binding(
        self, clauses: tuple[For | Let, ...], bound: Mapping[str, Nodes], context: Nodes
    ) -> Mapping[str, Nodes]:
        """The variables after some clauses."""
        inner = dict(bound)
        for clause in clauses:
            source = clause.source if isinstance(clause, For) else clause.value
            inner[clause.variable] = self.give(source, inner, context)
            if isinstance(clause, For) and clause.position is not None:
                inner[clause.position] = _NOWHERE
        return inner

    def parts(self, part: object, bound: Mapping[str, Nodes], context: Nodes) -> None:
        """The operands of an operator, a call or a constructor."""
        for name in getattr(part, "__slots__", ()):
            inner = getattr(part, name)
            for each in inner if isinstance(inner, tuple) else (inner,):
                if isinstance(each, Expr):
                    self.give(each, bound, context)
                else:
                    self.parts(each, bound, context)

    def path(self, nodes: Nodes, steps: tuple[Step, ...], bound: Mapping[str, Nodes]) -> Nodes:
        written = tuple(self.step(step) for step in steps)
        reached = self.paths.path(written, nodes)
        for number, step in enumerate(steps):
            if step.predicates:
                here = self.paths.quietly(written[: number + 1], nodes)
                for predicate in step.predicates:
                    self.give(predicate, bound, here)
        return reached

    def step(self, step: Step) -> Step:
        """A step without its predicates, whose test begins where the name stands."""
        before = _BEFORE_TEST.match(self.text, step.offset)
        test = replace(step.test, offset=before.end() if before else step.offset)
        if isinstance(test, NameTest) and test.uri is None and test.local is not None:
            test = replace(test, prefix="*")
        if isinstance(test, KindTest) and test.kind in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE):
            test = NameTest(None, None, offset=test.offset)
        return replace(step, test=test, predicates=())

"""Conditions that cannot hold, always hold, or say again what was said.

Looks at the query alone: comparisons of one value that exclude each other (`[@a='x' and @a='y']`),
positions that do not exist (`[0]`), orders of what is no number (`[@a < 'b']`), strings and other
constants that stand where a condition is meant (`['@a']`, `[@a='x' or 'y']`, `[not('@a')]`), `not`
of what was asked for.

Example:
    >>> from pathcast.query.notation import Notation
    >>> from pathcast.query.reader import read_query
    >>> text = "//a[@n < 3 and @n > 5]"
    >>> for issue in condition_issues(read_query(text, {}), Notation()):
    ...     print(issue.truth, issue.offset, issue.reason)
    never 15 `@n>5` and `@n<3` exclude each other

Several nodes are not one value: `[b='x' and b='y']` holds where there are two `b`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pathcast.boundary import native
from pathcast.query.atoms import COMPARISONS, Atom, atom_of, is_single
from pathcast.query.constants import constant_of
from pathcast.query.implication import (
    can_hold,
    can_hold_for_count,
    implies,
)
from pathcast.query.normal import Comparison, Constant, Double, Operator
from pathcast.query.notation import Notation
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import (
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    LocationPath,
    PathExpr,
    Step,
    UnaryExpr,
)
from pathcast.query.truth import (
    OPPOSITE,
    Truth,
    known_truth,
    least_of,
    meant,
    own_truth,
)

EXCLUDING: Final = "steps or conditions of the query exclude each other"
"""Why no path of a query can be found."""


@dataclass(frozen=True, slots=True)
class ConditionIssue:
    """A condition whose truth does not depend on the message.

    Attributes:
        truth: What it is.
        expr: The condition; as good as `true()` or `false()` where it stands.
        reason: Why, as the beginning of a sentence.
        is_decisive: Whether the query as a whole cannot hold because of it.
        fix: What may be meant.
    """

    truth: Truth
    expr: Expr
    reason: str
    is_decisive: bool
    fix: str | None = None

    @property
    def code(self) -> str:
        """The code that lint and warnings have for it; docs/lint.md explains each."""
        return "PL201" if self.truth == "never" else "PL202"

    @property
    def offset(self) -> int:
        """Where it stands, in characters."""
        return self.expr.offset


def condition_issues(expr: Expr, notation: Notation) -> list[ConditionIssue]:
    """The conditions of a resolved query whose truth is known before any message.

    Cost: linear in the query, but for conjunctions, whose members are compared with each other.
    """
    walk = _Walk(notation)
    walk.expression(expr, is_decisive=True)
    return sorted(walk.issues, key=lambda issue: issue.offset)


def query_issues(
    expr: Expr, alternatives: Iterable[native.NormalPath], notation: Notation
) -> list[ConditionIssue]:
    """The conditions whose truth is known, and the query as a whole where it cannot hold.

    Args:
        expr: A resolved query.
        alternatives: The paths that it became.
        notation: Writes its names.
    """
    issues = condition_issues(expr, notation)
    is_told = any(issue.truth == "never" and issue.is_decisive for issue in issues)
    if not is_told and not any(path.can_match for path in alternatives):
        issues.insert(0, ConditionIssue("never", expr, EXCLUDING, is_decisive=True))
    return issues


@dataclass(slots=True)
class _Conjunction:
    """Conditions that must hold together of one node.

    Attributes:
        values: Operand (as text) with one value -> its comparisons.
        counts: Operand that is a whole number -> its comparisons.
        asked: Conditions and operands that must be there, as text.
        denied: What stands in `not(...)`, as text.
        single_from: The predicate that leaves one node at most; None if there is none.
    """

    values: dict[str, list[Atom]] = field(default_factory=dict)
    counts: dict[str, list[Atom]] = field(default_factory=dict)
    asked: dict[str, Expr] = field(default_factory=dict)
    denied: dict[str, Expr] = field(default_factory=dict)
    single_from: str | None = None


class _Walk:
    def __init__(self, notation: Notation) -> None:
        self.notation = notation
        self.issues: list[ConditionIssue] = []

    def say(
        self, truth: Truth, expr: Expr, reason: str, is_decisive: bool, fix: str | None = None
    ) -> None:
        self.issues.append(ConditionIssue(truth, expr, reason, is_decisive, fix))

    # Everything that holds conditions.

    def expression(self, expr: Expr, *, is_decisive: bool) -> None:
        """An expression whose truth is asked for."""
        self.conjunction(expr, "", _Conjunction(), is_decisive)

    def part(self, expr: Expr, *, is_decisive: bool) -> None:
        """An operand or argument.

        Of one that is a boolean the truth is asked for, unless it is a constant: `true()` is a
        value like any other there.
        """
        if kind_of(expr) is Kind.BOOLEAN and constant_of(expr) is None:
            self.expression(expr, is_decisive=False)
        else:
            self.inside(expr, is_decisive=is_decisive)

    def inside(self, expr: Expr, *, is_decisive: bool) -> None:
        """Looks at the parts of an expression whose own truth is not in question."""
        match expr:
            case LocationPath(steps=steps):
                self.steps(steps, is_decisive)
            case PathExpr(start=start, steps=steps):
                self.inside(start, is_decisive=is_decisive)
                self.steps(steps, is_decisive)
            case FilterExpr(primary=primary, predicates=predicates):
                self.inside(primary, is_decisive=is_decisive)
                self.predicates(predicates, is_decisive)
            case BinaryExpr(operands=operands):
                # A comparison of nodes is false without nodes; beside a boolean it need not be,
                # and neither need one of what was calculated from them.
                is_asked = asks_for_nodes(expr)
                for operand in operands:
                    is_needed = is_asked and kind_of(operand) is Kind.NODE_SET
                    self.part(operand, is_decisive=is_decisive and is_needed)
            case UnaryExpr(operand=operand):
                self.part(operand, is_decisive=False)
            case FunctionCall(arguments=arguments):
                for argument in arguments:
                    self.part(argument, is_decisive=False)
            case _:
                pass

    def steps(self, steps: Sequence[Step], is_decisive: bool) -> None:
        for step in steps:
            self.predicates(step.predicates, is_decisive)

    def predicates(self, predicates: Sequence[Expr], is_decisive: bool) -> None:
        found = _Conjunction()
        for number, expr in enumerate(predicates):
            # A position counts in the list that the predicate before has left.
            scope = f"#{number}"
            if kind_of(expr) is Kind.NUMBER:
                self.position(expr, scope, found, is_decisive)
            else:
                self.conjunction(expr, scope, found, is_decisive)

    def position(self, expr: Expr, scope: str, found: _Conjunction, is_decisive: bool) -> None:
        """A predicate that is a number."""
        constant = constant_of(expr)
        if isinstance(expr, FunctionCall) and expr.name == "position":
            reason = "`[position()]`: every node is at its own position"
            self.say("always", expr, reason, is_decisive)
        if not isinstance(constant, float):
            self.inside(expr, is_decisive=False)
            return
        at = [Comparison(Operator.EQ, constant)]
        if not math.isfinite(constant) or not can_hold_for_count(at, least=1):
            reason = f"`[{self.notation.expr(expr)}]`: positions are whole numbers from 1 on"
            self.say("never", expr, reason, is_decisive)
        elif found.single_from is not None and constant != 1.0:
            reason = f"`[{self.notation.expr(expr)}]`: the position before leaves one node at most"
            self.say("never", expr, reason, is_decisive)
        found.single_from = found.single_from or scope

    # Conditions that must hold together.

    def conjunction(self, expr: Expr, scope: str, found: _Conjunction, is_decisive: bool) -> None:
        waiting: list[tuple[Expr, Sequence[Expr]]] = [(expr, ())]
        while waiting:
            part, beside = waiting.pop()
            if isinstance(part, BinaryExpr) and part.operators[0] is BinaryOperator.AND:
                waiting.extend((operand, part.operands) for operand in reversed(part.operands))
            elif (own := own_truth(part, self.notation)) is not None:
                self.say(own[0], part, own[1], is_decisive, meant(part, beside, self.notation))
            else:
                self.conjunct(part, scope, found, is_decisive)

    def conjunct(self, expr: Expr, scope: str, found: _Conjunction, is_decisive: bool) -> None:
        match expr:
            case BinaryExpr(operators=(BinaryOperator.OR, *_)):
                self.disjunction(expr, is_decisive)
            case FunctionCall(name="not", arguments=(inner,)):
                self.denial(expr, inner, scope, found, is_decisive)
            case FunctionCall(name="boolean", arguments=(inner,)):
                self.conjunction(inner, scope, found, is_decisive)
            case _:
                self.inside(expr, is_decisive=is_decisive)
                self.ask(expr, scope, found, is_decisive)

    def denial(
        self, expr: Expr, inner: Expr, scope: str, found: _Conjunction, is_decisive: bool
    ) -> None:
        """`not(inner)`."""
        if own_truth(inner, self.notation) is None:
            self.expression(inner, is_decisive=False)
        known = known_truth(inner, self.notation)
        if known is None:
            self.deny(expr, inner, scope, found, is_decisive)
            return
        truth = OPPOSITE[known[0]]
        fix = meant(inner, (), self.notation)
        self.say(truth, expr, f"`{self.notation.expr(expr)}`: {known[1]}", is_decisive, fix)

    def disjunction(self, expr: BinaryExpr, is_decisive: bool) -> None:
        known = known_truth(expr, self.notation)
        if known is not None and known[0] == "never":
            reason = f"`{self.notation.expr(expr)}`: none of this can hold"
            self.say("never", expr, reason, is_decisive)
        texts: dict[str, Expr] = {}
        excluded: dict[str, Constant | Double] = {}
        for operand in expr.operands:
            own = own_truth(operand, self.notation)
            if own is not None:
                self.say(
                    own[0], operand, own[1], False, meant(operand, expr.operands, self.notation)
                )
                continue
            self.expression(operand, is_decisive=False)
            text = self.notation.expr(operand)
            opposite = text[4:-1] if text.startswith("not(") else f"not({text})"
            if opposite in texts:
                self.say("always", operand, f"`{text}` or its opposite holds", False)
            elif text in texts:
                self.say("implied", operand, f"`{text}` is said twice", False)
            texts[text] = operand
            atom = atom_of(operand)
            if atom is None or atom.compare.operator is not Operator.NE:
                continue
            if not is_single(atom.operand):
                continue
            name = self.notation.expr(atom.operand)
            other = excluded.setdefault(name, atom.compare.constant)
            if other != atom.compare.constant:
                reason = f"`{name}` always differs from one of the two; `and` may be meant"
                self.say("always", operand, reason, False)

    def ask(self, expr: Expr, scope: str, found: _Conjunction, is_decisive: bool) -> None:
        text = self.notation.expr(expr)
        if _depends_on_list(text):
            text += scope
        shown = self.notation.expr(expr)
        if text in found.asked:
            self.say("implied", expr, f"`{shown}` is said twice", False)
            return
        atom = atom_of(expr)
        named = {text: expr}
        if atom is not None and kind_of(atom.operand) is Kind.NODE_SET and _asks(atom):
            named[self.notation.expr(atom.operand)] = expr
        for name in named:
            if name in found.denied:
                reason = f"`{shown}` and `not({name.partition('#')[0]})` exclude each other"
                self.say("never", expr, reason, is_decisive)
                return
        found.asked |= named
        if atom is not None:
            self.compare(atom, scope, found, is_decisive)

    def deny(
        self, expr: Expr, inner: Expr, scope: str, found: _Conjunction, is_decisive: bool
    ) -> None:
        text = self.notation.expr(inner)
        if _depends_on_list(text):
            text += scope
        if text in found.asked:
            asked = self.notation.expr(found.asked[text])
            reason = f"`{asked}` and `{self.notation.expr(expr)}` exclude each other"
            self.say("never", expr, reason, is_decisive)
        found.denied[text] = inner

    def compare(self, atom: Atom, scope: str, found: _Conjunction, is_decisive: bool) -> None:
        """One more comparison of a value that others may have been made of."""
        name = self.notation.expr(atom.operand)
        least = least_of(atom.operand)
        if least is not None:
            is_position = name == "position()"
            if is_position and found.single_from not in (None, scope):
                self.after_position(atom, is_decisive)
            key = name + scope if _depends_on_list(name) else name
            same = found.counts.setdefault(key, [])
            self.among(
                atom,
                same,
                is_decisive,
                lambda compares: can_hold_for_count(compares, least=least),
            )
            if is_position and atom.compare.operator is Operator.EQ:
                found.single_from = found.single_from or scope
        elif is_single(atom.operand) or atom.is_call:
            # A function looks at the first of several nodes, which is one value.
            kind = "" if is_single(atom.operand) else "first "
            key = kind + name + (scope if _depends_on_list(name) else "")
            same = found.values.setdefault(key, [])
            self.among(atom, same, is_decisive, can_hold)
        else:
            # Each comparison asks for one of several nodes: none excludes another one.
            same = found.values.setdefault("some " + name, [])
            self.among(atom, same, is_decisive, lambda _: True)

    def after_position(self, atom: Atom, is_decisive: bool) -> None:
        compares = [Comparison(Operator.EQ, 1.0), atom.compare]
        if not can_hold_for_count(compares, least=1):
            shown = self.notation.expr(atom.expr)
            reason = f"`{shown}`: the position before leaves one node at most"
            self.say("never", atom.expr, reason, is_decisive)

    def among(
        self,
        atom: Atom,
        same: list[Atom],
        is_decisive: bool,
        can: Callable[[list[Comparison]], bool],
    ) -> None:
        """Compares a comparison with others of the same value."""
        shown = self.notation.expr(atom.expr)
        before = [other.compare for other in same]
        if not can([*before, atom.compare]):
            pair = next((one for one in same if not can([one.compare, atom.compare])), None)
            others = "the others" if pair is None else f"`{self.notation.expr(pair.expr)}`"
            self.say("never", atom.expr, f"`{shown}` and {others} exclude each other", is_decisive)
            return
        stronger = next((one for one in same if implies([one.compare], atom.compare)), None)
        weaker = next((one for one in same if implies([atom.compare], one.compare)), None)
        if stronger is not None:
            reason = f"`{shown}` follows from `{self.notation.expr(stronger.expr)}`"
            self.say("implied", atom.expr, reason, False)
        elif weaker is not None:
            reason = f"`{self.notation.expr(weaker.expr)}` follows from `{shown}`"
            self.say("implied", weaker.expr, reason, False)
        same.append(atom)


def asks_for_nodes(expr: BinaryExpr) -> bool:
    """Whether an expression is a comparison that is false where an operand has no nodes."""
    return (
        len(expr.operators) == 1
        and expr.operators[0] in COMPARISONS
        and all(kind_of(operand) is not Kind.BOOLEAN for operand in expr.operands)
    )


def _asks(atom: Atom) -> bool:
    """Whether a comparison of nodes asks for one of them to be there."""
    return not atom.is_call or atom.compare.constant != ""


def _depends_on_list(text: str) -> bool:
    """Whether an expression may ask for its place in a list, which each predicate has anew."""
    return "position()" in text or "last()" in text

"""Conditions whose truth no message changes: one walk for both languages.

Goes through an expression to each condition, says what is known of it by itself, and holds those
together that must hold of one node: what is asked and denied, said twice, or compared with values
that exclude each other. A `ConditionLanguage` says what one condition means: XPath's is in
`pathcast.query.condition_issues`, XQuery's in `pathcast.query.xquery.known_truths`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, Protocol

from pathcast.query.constants import constant_of
from pathcast.query.implication import can_hold_for_count
from pathcast.query.normal import Comparison, Operator
from pathcast.query.syntax import (
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    LocationPath,
    PathExpr,
    Step,
)
from pathcast.query.truth import OPPOSITE, KnownTruth, Truth

_JOINING: Final = (BinaryOperator.AND, BinaryOperator.OR)


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


@dataclass(slots=True)
class Conjunction:
    """Conditions that must hold together of one node.

    Attributes:
        values: Operand (as text) -> what is asked of its one value, as its language has it.
        asked: Conditions and operands that must be there, as text.
        denied: What stands in `not(...)`, as text.
        single_from: The predicate that leaves one node at most; None if there is none.
    """

    values: dict[str, list[Any]] = field(default_factory=dict)
    asked: dict[str, Expr] = field(default_factory=dict)
    denied: dict[str, Expr] = field(default_factory=dict)
    single_from: str | None = None


class ConditionLanguage(Protocol):
    """A language: its judgements on single conditions, and on values that are compared again."""

    def shown(self, expr: Expr) -> str:
        """An expression as text: equal for expressions that are one."""
        ...

    def is_truth(self, expr: Any) -> bool:
        """Whether an expression is a condition wherever it stands, and no constant."""
        ...

    def is_position(self, expr: Expr) -> bool:
        """Whether a predicate is a number."""
        ...

    def is_needed(self, operand: Expr, expr: BinaryExpr) -> bool:
        """Whether an expression is false where an operand of it gives nothing."""
        ...

    def own_truth(self, expr: Expr) -> KnownTruth | None:
        """The truth that a condition has by itself, and why."""
        ...

    def meant(self, expr: Expr, beside: Sequence[Expr]) -> str | None:
        """Advice for a condition that says nothing, among the operands of an `and` or `or`."""
        ...

    def nodes_asked(self, expr: Expr) -> Expr | None:
        """The nodes of which a condition asks for one to be there."""
        ...

    def excluded(self, expr: Expr) -> tuple[str, object] | None:
        """The one value from which a condition differs, and the constant."""
        ...

    def compare(
        self, walk: ConditionWalk, expr: Expr, scope: str, found: Conjunction, is_decisive: bool
    ) -> None:
        """Takes one more condition of a value that others may have been asked of."""
        ...


def known_truth(expr: Expr, language: ConditionLanguage) -> KnownTruth | None:
    """The truth of a condition that does not depend on anything, or on its parts only."""
    own = language.own_truth(expr)
    if own is not None:
        return own
    match expr:
        case FunctionCall(name="boolean", arguments=(inner,)):
            return known_truth(inner, language)
        case FunctionCall(name="not", arguments=(inner,)):
            known = known_truth(inner, language)
            return None if known is None else (OPPOSITE[known[0]], known[1])
        case BinaryExpr(operators=(operator, *_)) if operator in _JOINING:
            # What decides an `and` is one part that never holds; an `or`, one that always does.
            deciding = "never" if operator is BinaryOperator.AND else "always"
            known_parts = [known_truth(operand, language) for operand in expr.operands]
            for part in known_parts:
                if part is not None and part[0] == deciding:
                    return part
            return None if None in known_parts else known_parts[0]
    return None


class ConditionWalk:
    """One expression; `issues` is what is known of its conditions."""

    def __init__(self, language: ConditionLanguage) -> None:
        self.language = language
        self.issues: list[ConditionIssue] = []

    def say(
        self, truth: Truth, expr: Expr, reason: str, is_decisive: bool, fix: str | None = None
    ) -> None:
        """Adds an issue."""
        self.issues.append(ConditionIssue(truth, expr, reason, is_decisive, fix))

    # Everything that holds conditions.

    def expression(self, expr: Expr, *, is_decisive: bool) -> None:
        """An expression whose truth is asked for."""
        self._conjunction(expr, "", Conjunction(), is_decisive)

    def _part(self, expr: Any, *, is_decisive: bool) -> None:
        """An operand or argument.

        Of one that is a boolean the truth is asked for, unless it is a constant: `true()` is a
        value like any other there.
        """
        if self.language.is_truth(expr):
            self.expression(expr, is_decisive=False)
        else:
            self._inside(expr, is_decisive=is_decisive)

    def _inside(self, expr: Any, *, is_decisive: bool) -> None:
        """Looks at the parts of an expression whose own truth is not in question."""
        match expr:
            case LocationPath(steps=steps):
                self._steps(steps, is_decisive)
            case PathExpr(start=start, steps=steps):
                self._inside(start, is_decisive=is_decisive)
                self._steps(steps, is_decisive)
            case FilterExpr(primary=primary, predicates=predicates):
                self._inside(primary, is_decisive=is_decisive)
                self._predicates(predicates, is_decisive)
            case BinaryExpr(operands=operands):
                for operand in operands:
                    is_needed = is_decisive and self.language.is_needed(operand, expr)
                    self._part(operand, is_decisive=is_needed)
            case tuple():
                for each in expr:
                    self._part(each, is_decisive=False)
            case _ if is_dataclass(expr):
                for each in fields(expr):
                    inner = getattr(expr, each.name)
                    if isinstance(inner, tuple) or is_dataclass(inner):
                        self._part(inner, is_decisive=False)

    def _steps(self, steps: Sequence[Step], is_decisive: bool) -> None:
        for step in steps:
            self._predicates(step.predicates, is_decisive)

    def _predicates(self, predicates: Sequence[Expr], is_decisive: bool) -> None:
        found = Conjunction()
        for number, expr in enumerate(predicates):
            # A position counts in the list that the predicate before has left.
            scope = f"#{number}"
            if self.language.is_position(expr):
                self._position(expr, scope, found, is_decisive)
            else:
                self._conjunction(expr, scope, found, is_decisive)

    def _position(self, expr: Expr, scope: str, found: Conjunction, is_decisive: bool) -> None:
        """A predicate that is a number."""
        constant = constant_of(expr)
        if isinstance(expr, FunctionCall) and expr.name == "position":
            reason = "`[position()]`: every node is at its own position"
            self.say("always", expr, reason, is_decisive)
        if isinstance(constant, bool) or not isinstance(constant, float | int):
            self._inside(expr, is_decisive=False)
            return
        # No double holds an integer that is larger.
        place = float(constant) if abs(constant) < 2**1023 else math.inf
        at = [Comparison(Operator.EQ, place)]
        if not math.isfinite(place) or not can_hold_for_count(at, least=1):
            reason = f"`[{self.language.shown(expr)}]`: positions are whole numbers from 1 on"
            self.say("never", expr, reason, is_decisive)
        elif found.single_from is not None and place != 1.0:
            reason = f"`[{self.language.shown(expr)}]`: the position before leaves one node at most"
            self.say("never", expr, reason, is_decisive)
        found.single_from = found.single_from or scope

    # Conditions that must hold together.

    def _conjunction(self, expr: Expr, scope: str, found: Conjunction, is_decisive: bool) -> None:
        waiting: list[tuple[Expr, Sequence[Expr]]] = [(expr, ())]
        while waiting:
            part, beside = waiting.pop()
            if isinstance(part, BinaryExpr) and part.operators[0] is BinaryOperator.AND:
                waiting.extend((operand, part.operands) for operand in reversed(part.operands))
            elif (own := self.language.own_truth(part)) is not None:
                self.say(own[0], part, own[1], is_decisive, self.language.meant(part, beside))
            else:
                self._conjunct(part, scope, found, is_decisive)

    def _conjunct(self, expr: Expr, scope: str, found: Conjunction, is_decisive: bool) -> None:
        match expr:
            case BinaryExpr(operators=(BinaryOperator.OR, *_)):
                self._disjunction(expr, is_decisive)
            case FunctionCall(name="not", arguments=(inner,)):
                self._denial(expr, inner, scope, found, is_decisive)
            case FunctionCall(name="boolean", arguments=(inner,)):
                self._conjunction(inner, scope, found, is_decisive)
            case _:
                self._inside(expr, is_decisive=is_decisive)
                self._ask(expr, scope, found, is_decisive)

    def _denial(
        self, expr: Expr, inner: Expr, scope: str, found: Conjunction, is_decisive: bool
    ) -> None:
        """`not(inner)`."""
        if self.language.own_truth(inner) is None:
            self.expression(inner, is_decisive=False)
        known = known_truth(inner, self.language)
        if known is None:
            self._deny(expr, inner, scope, found, is_decisive)
            return
        truth = OPPOSITE[known[0]]
        fix = self.language.meant(inner, ())
        self.say(truth, expr, f"`{self.language.shown(expr)}`: {known[1]}", is_decisive, fix)

    def _disjunction(self, expr: BinaryExpr, is_decisive: bool) -> None:
        known = known_truth(expr, self.language)
        if known is not None and known[0] == "never":
            reason = f"`{self.language.shown(expr)}`: none of this can hold"
            self.say("never", expr, reason, is_decisive)
        texts: dict[str, Expr] = {}
        excluded: dict[str, object] = {}
        for operand in expr.operands:
            own = self.language.own_truth(operand)
            if own is not None:
                self.say(
                    own[0], operand, own[1], False, self.language.meant(operand, expr.operands)
                )
                continue
            self.expression(operand, is_decisive=False)
            text = self.language.shown(operand)
            opposite = text[4:-1] if text.startswith("not(") else f"not({text})"
            if opposite in texts:
                self.say("always", operand, f"`{text}` or its opposite holds", False)
            elif text in texts:
                self.say("implied", operand, f"`{text}` is said twice", False)
            texts[text] = operand
            differing = self.language.excluded(operand)
            if differing is None:
                continue
            name, constant = differing
            if excluded.setdefault(name, constant) != constant:
                reason = f"`{name}` always differs from one of the two; `and` may be meant"
                self.say("always", operand, reason, False)

    def _ask(self, expr: Expr, scope: str, found: Conjunction, is_decisive: bool) -> None:
        text = self.language.shown(expr)
        if depends_on_list(text):
            text += scope
        shown = self.language.shown(expr)
        if text in found.asked:
            self.say("implied", expr, f"`{shown}` is said twice", False)
            return
        named = {text: expr}
        nodes = self.language.nodes_asked(expr)
        if nodes is not None:
            named[self.language.shown(nodes)] = expr
        for name in named:
            if name in found.denied:
                reason = f"`{shown}` and `not({name.partition('#')[0]})` exclude each other"
                self.say("never", expr, reason, is_decisive)
                return
        found.asked |= named
        self.language.compare(self, expr, scope, found, is_decisive)

    def _deny(
        self, expr: Expr, inner: Expr, scope: str, found: Conjunction, is_decisive: bool
    ) -> None:
        text = self.language.shown(inner)
        if depends_on_list(text):
            text += scope
        if text in found.asked:
            asked = self.language.shown(found.asked[text])
            reason = f"`{asked}` and `{self.language.shown(expr)}` exclude each other"
            self.say("never", expr, reason, is_decisive)
        found.denied[text] = inner


def depends_on_list(text: str) -> bool:
    """Whether an expression may ask for its place in a list, which each predicate has anew."""
    return "position()" in text or "last()" in text

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

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pathcast.boundary import native
from pathcast.query.atoms import COMPARISONS, Atom, atom_of, is_single
from pathcast.query.condition_walk import (
    ConditionIssue,
    ConditionWalk,
    Conjunction,
    depends_on_list,
)
from pathcast.query.constants import constant_of
from pathcast.query.implication import can_hold, can_hold_for_count, implies
from pathcast.query.normal import Comparison, Operator
from pathcast.query.notation import Notation
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import BinaryExpr, Expr
from pathcast.query.truth import KnownTruth, least_of, meant, own_truth

__all__ = ["EXCLUDING", "ConditionIssue", "asks_for_nodes", "condition_issues", "query_issues"]

EXCLUDING: Final = "steps or conditions of the query exclude each other"
"""Why no path of a query can be found."""


def condition_issues(expr: Expr, notation: Notation) -> list[ConditionIssue]:
    """The conditions of a resolved query whose truth is known before any message.

    Cost: linear in the query, but for conjunctions, whose members are compared with each other.
    """
    walk = ConditionWalk(_XPath(notation))
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


class _XPath:
    """The judgements of XPath 1.0 on conditions."""

    def __init__(self, notation: Notation) -> None:
        self.notation = notation

    def shown(self, expr: Expr) -> str:
        return self.notation.expr(expr)

    def is_truth(self, expr: Any) -> bool:
        return (
            not isinstance(expr, tuple)
            and kind_of(expr) is Kind.BOOLEAN
            and constant_of(expr) is None
        )

    def is_position(self, expr: Expr) -> bool:
        return kind_of(expr) is Kind.NUMBER

    def is_needed(self, operand: Expr, expr: BinaryExpr) -> bool:
        # A comparison of nodes is false without nodes; beside a boolean it need not be,
        # and neither need one of what was calculated from them.
        return asks_for_nodes(expr) and kind_of(operand) is Kind.NODE_SET

    def own_truth(self, expr: Expr) -> KnownTruth | None:
        return own_truth(expr, self.notation)

    def meant(self, expr: Expr, beside: Sequence[Expr]) -> str | None:
        return meant(expr, beside, self.notation)

    def nodes_asked(self, expr: Expr) -> Expr | None:
        atom = atom_of(expr)
        is_asked = atom is not None and kind_of(atom.operand) is Kind.NODE_SET and _asks(atom)
        return atom.operand if is_asked and atom is not None else None

    def excluded(self, expr: Expr) -> tuple[str, object] | None:
        atom = atom_of(expr)
        if atom is None or atom.compare.operator is not Operator.NE:
            return None
        if not is_single(atom.operand):
            return None
        return self.shown(atom.operand), atom.compare.constant

    def compare(
        self, walk: ConditionWalk, expr: Expr, scope: str, found: Conjunction, is_decisive: bool
    ) -> None:
        """Takes one more comparison of a value that others may have been made of."""
        atom = atom_of(expr)
        if atom is None:
            return
        name = self.notation.expr(atom.operand)
        least = least_of(atom.operand)
        if least is not None:
            is_position = name == "position()"
            if is_position and found.single_from not in (None, scope):
                self._after_position(walk, atom, is_decisive)
            key = name + scope if depends_on_list(name) else name
            same = found.values.setdefault("count " + key, [])
            self._among(
                walk,
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
            key = kind + name + (scope if depends_on_list(name) else "")
            same = found.values.setdefault(key, [])
            self._among(walk, atom, same, is_decisive, can_hold)
        else:
            # Each comparison asks for one of several nodes: none excludes another one.
            same = found.values.setdefault("some " + name, [])
            self._among(walk, atom, same, is_decisive, lambda _: True)

    def _after_position(self, walk: ConditionWalk, atom: Atom, is_decisive: bool) -> None:
        compares = [Comparison(Operator.EQ, 1.0), atom.compare]
        if not can_hold_for_count(compares, least=1):
            shown = self.notation.expr(atom.expr)
            reason = f"`{shown}`: the position before leaves one node at most"
            walk.say("never", atom.expr, reason, is_decisive)

    def _among(
        self,
        walk: ConditionWalk,
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
            walk.say("never", atom.expr, f"`{shown}` and {others} exclude each other", is_decisive)
            return
        stronger = next((one for one in same if implies([one.compare], atom.compare)), None)
        weaker = next((one for one in same if implies([atom.compare], one.compare)), None)
        if stronger is not None:
            reason = f"`{shown}` follows from `{self.notation.expr(stronger.expr)}`"
            walk.say("implied", atom.expr, reason, False)
        elif weaker is not None:
            reason = f"`{self.notation.expr(weaker.expr)}` follows from `{shown}`"
            walk.say("implied", weaker.expr, reason, False)
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

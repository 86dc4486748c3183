"""What a registered query becomes: paths that are indexed and, where need be, an expression.

    the query holds  <=>  some alternative holds  and  (expression is None or it is true)

Example:
    >>> compile_query("//a[@x = 1]").texts
    ['//a[@x=1]']
    >>> compile_query("//a[last()]/b[@x]").expression
    '/descendant-or-self::node()/child::a[last()]/child::b[attribute::x]'
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from pathcast.errors import QuerySyntaxError
from pathcast_papers.language.alternatives import (
    ANY_MESSAGE,
    NO_MESSAGE,
    alternatives_of,
    conjunctions_of,
)
from pathcast_papers.language.canonical import canonical_text
from pathcast_papers.language.conditions import depth, simplified
from pathcast_papers.language.expression import EXPRESSION_BYTES_MAX, expression_text
from pathcast_papers.language.moving import Loss
from pathcast_papers.language.names import Namespaces
from pathcast_papers.language.normal import NormalQuery
from pathcast_papers.language.parser import (
    DEPTH_MAX,
    NODES_MAX,
    TEXT_BYTES_MAX,
    check_length,
    parse,
)
from pathcast_papers.language.spine import DOCUMENT, Spine
from pathcast_papers.language.static import disjuncts, nesting, resolve
from pathcast_papers.language.syntax import Expr
from pathcast_papers.language.weakening import Weakener

_BRACKETS: Final = re.compile(r"'[^']*'|\"[^\"]*\"|Q\{[^}]*\}|[()\[\]]")

_ANY_MESSAGE: Final = canonical_text(NormalQuery(ANY_MESSAGE))


class CostClass(Enum):
    """What a query costs a message."""

    INDEXED = "indexed"
    """Nothing beyond the shared index: its paths say all of it."""
    CANDIDATE_CHECKED = "candidate-checked"
    """The expression is evaluated for messages in which one of the paths is found."""
    SCAN = "scan"
    """The expression is evaluated for every message: nothing is known that must be there."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a query has an expression.

    Attributes:
        text: A clause: "uses last(), which only the evaluator knows".
        offset: Where in the query, in characters.
    """

    text: str
    offset: int

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query, split into what is indexed and what is evaluated.

    Attributes:
        alternatives: Paths in normal form, one or more, sorted by canonical text, without
            duplicates. If the query holds, one of them does.
        expression: Canonical expression text; None where the alternatives say all of the query.
        cost: What it costs a message.
        reasons: Why there is an expression; empty if there is none.
        patterns: Of the whole message; if the query holds, one of them is there.
    """

    alternatives: tuple[NormalQuery, ...]
    expression: str | None
    cost: CostClass
    reasons: tuple[Reason, ...]
    patterns: tuple[Spine, ...] = field(default=(), repr=False, compare=False)

    @property
    def conjunctions(self) -> tuple[tuple[NormalQuery, ...], ...]:
        """Paths that must all be in a message, one conjunction or more.

        If the query holds, one of the conjunctions does. They say what `alternatives` say of one
        path each, without putting paths together at the root element; none where the query never
        holds.
        """
        return tuple(map(_within_limits, conjunctions_of(self.patterns)))

    @property
    def texts(self) -> list[str]:
        """The canonical texts of the alternatives."""
        return [canonical_text(alternative) for alternative in self.alternatives]


def compile_query(
    text: str,
    namespaces: Namespaces | None = None,
    *,
    bytes_max: int = TEXT_BYTES_MAX,
    nodes_max: int = NODES_MAX,
) -> CompiledQuery:
    """Compiles a query.

    Args:
        text: An XPath 1.0 expression.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.
        bytes_max: Most bytes that the text may have.
        nodes_max: Most syntax nodes that it may have.

    Returns:
        Its alternatives, and its expression if they do not say all of it.

    Raises:
        QuerySyntaxError: It is not XPath 1.0, names something that is not declared, has a type
            error, or is over a limit.
    """
    written = parse(text, bytes_max=bytes_max, nodes_max=nodes_max)
    if nesting(written) > 2 * DEPTH_MAX:
        # Operators of many levels within one another would exhaust the stack.
        raise _too_deep(text)
    return compile_resolved(resolve(written, text, namespaces or {}), text)


def compile_resolved(resolved: Expr, text: str) -> CompiledQuery:
    """As `compile_query`, of what was read and resolved already.

    Args:
        resolved: The query, names resolved.
        text: What it was read from, for errors.

    Raises:
        QuerySyntaxError: It is over a limit.
    """
    weakener = Weakener(disjuncts(resolved))
    spines = weakener.true(resolved, (DOCUMENT,), counts=False)
    alternatives, is_all = alternatives_of(spines, weakener.alternatives_max)
    # Where no path can be found, there is nothing to evaluate.
    is_never = [path.steps for path in alternatives] == [NO_MESSAGE]
    losses = [] if is_never else weakener.losses
    if not is_all:
        losses.append(Loss("asks for several paths together, which are too many ways", 0))
    if not losses:
        _check_paths(alternatives, text)
        return CompiledQuery(tuple(alternatives), None, CostClass.INDEXED, (), tuple(spines))
    expression = expression_text(resolved)
    _check_expression(expression, text)
    paths = _within_limits(alternatives)
    cost = cost_of(map(canonical_text, paths), is_evaluated=True)
    reasons = _reasons(losses, paths, is_scan=cost is CostClass.SCAN)
    return CompiledQuery(paths, expression, cost, reasons, tuple(spines))


def cost_of(paths: Iterable[str], *, is_evaluated: bool) -> CostClass:
    """The cost class of a query, by what it was compiled to.

    Args:
        paths: Canonical texts of its alternatives.
        is_evaluated: Whether anything is evaluated where one of them is found.

    Example:
        >>> cost_of(["//a"], is_evaluated=True).value, cost_of(["/*"], is_evaluated=True).value
        ('candidate-checked', 'scan')
    """
    if not is_evaluated:
        return CostClass.INDEXED
    return CostClass.SCAN if _ANY_MESSAGE in paths else CostClass.CANDIDATE_CHECKED


def _check_paths(paths: list[NormalQuery], text: str) -> None:
    """Refuses a query whose paths are too long or nest too deep."""
    for path in paths:
        check_length(canonical_text(path), text)
        if depth(path.steps) > DEPTH_MAX:
            raise _too_deep(text)


def _check_expression(expression: str, text: str) -> None:
    """Refuses a query whose expression is too long or nests too deep."""
    check_length(expression, text, EXPRESSION_BYTES_MAX)
    deepest = 0
    for part in _BRACKETS.finditer(expression):
        bracket = part[0]
        if bracket in "([":
            deepest += 1
            if deepest > DEPTH_MAX:
                raise _too_deep(text)
        elif bracket in ")]":
            deepest -= 1


def _too_deep(text: str) -> QuerySyntaxError:
    return QuerySyntaxError(
        "query.too_deep", query=text, offset=0, maximum=DEPTH_MAX, reason="nests too deep"
    )


def _within_limits(paths: Iterable[NormalQuery]) -> tuple[NormalQuery, ...]:
    """The paths; without predicates where the limits of a path leave no room for them."""
    kept: dict[str, NormalQuery] = {}
    for path in paths:
        steps = path.steps
        if len(canonical_text(path).encode()) > TEXT_BYTES_MAX or depth(steps) > DEPTH_MAX:
            steps = simplified([replace(step, stages=()) for step in steps], is_main=True)
        if len(canonical_text(NormalQuery(steps)).encode()) > TEXT_BYTES_MAX:
            steps = ANY_MESSAGE
        kept[canonical_text(NormalQuery(steps))] = NormalQuery(steps)
    return tuple(kept[text] for text in sorted(kept))


def _reasons(
    losses: list[Loss], paths: tuple[NormalQuery, ...], *, is_scan: bool
) -> tuple[Reason, ...]:
    first: dict[str, Reason] = {}
    for loss in losses:
        first.setdefault(loss.text, Reason(loss.text, loss.offset))
    if is_scan:
        source = "every message is a candidate: nothing is known that must be in it"
    else:
        shown = ", ".join(canonical_text(path) for path in paths[:3])
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        source = f"candidates come from {shown}{more}"
    return (*first.values(), Reason(source, 0))

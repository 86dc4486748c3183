"""What a registered query becomes: paths that are indexed and, where need be, an expression.

    the query holds  <=>  some alternative holds  and  (expression is None or it is true)

Example:
    >>> compile_query("//a[@x = 1]").texts
    ['//a[@x=1]']
    >>> compile_query("//a[last()]/b[@x]").expression
    '/descendant-or-self::node()/child::a[last()]/child::b[attribute::x]'
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pathcast.errors import UnsupportedQueryError
from pathcast.query import normal
from pathcast.query.canonical import canonical_text
from pathcast.query.expression import expression_text
from pathcast.query.names import Namespaces
from pathcast.query.normal import NormalQuery
from pathcast.query.normaliser import normalise
from pathcast.query.parser import parse
from pathcast.query.static import resolve

ALTERNATIVES_MAX: Final = 16
"""Paths that one query may become."""


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
    """

    alternatives: tuple[NormalQuery, ...]
    expression: str | None
    cost: CostClass
    reasons: tuple[Reason, ...]

    @property
    def texts(self) -> list[str]:
        """The canonical texts of the alternatives."""
        return [canonical_text(alternative) for alternative in self.alternatives]


_ANY: Final = NormalQuery((normal.Step(normal.Axis.CHILD, normal.AnyName()),))


def compile_query(text: str, namespaces: Namespaces | None = None) -> CompiledQuery:
    """Compiles a query.

    Args:
        text: An XPath 1.0 expression.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.

    Returns:
        Its alternatives, and its expression if they do not say all of it.

    Raises:
        QuerySyntaxError: It is not XPath 1.0, names something that is not declared, has a type
            error, or is over a limit.
    """
    resolved = resolve(parse(text), text, namespaces or {})
    try:
        return CompiledQuery((normalise(text, namespaces),), None, CostClass.INDEXED, ())
    except UnsupportedQueryError as error:
        reason = Reason(str(error.params["construct"]), 0)
        return CompiledQuery((_ANY,), expression_text(resolved), CostClass.SCAN, (reason,))

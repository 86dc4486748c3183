"""A registered query as the kernel compiles it: paths to index and, where need be, an expression.

    the query holds  <=>  some alternative holds  and  (expression is None or it is true)

The kernel compiles (`kernel/core/src/language/compile`, which argues for every rule); here its
answer becomes values, and its refusal an error.

Example:
    >>> compile_query("//a[@x = 1]").texts
    ['//a[@x=1]']
    >>> compile_query("//a[last()]/b[@x]").expression
    '/descendant-or-self::node()/child::a[last()]/child::b[attribute::x]'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from pathcast.boundary import native, native_errors
from pathcast.query.names import Namespaces
from pathcast.query.refusals import Refusal, error_of, no_character


class CostClass(Enum):
    """The cost of a query for one message."""

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
        conjunctions: Paths that must all be in a message: if the query holds, one of the
            conjunctions does. They say what `alternatives` say of one path each, without putting
            paths together at the root element; none where the query never holds.
    """

    alternatives: tuple[native.NormalPath, ...]
    expression: str | None
    cost: CostClass
    reasons: tuple[Reason, ...]
    conjunctions: tuple[native.Conjunction, ...]

    @property
    def texts(self) -> list[str]:
        """The canonical texts of the alternatives."""
        return [alternative.text for alternative in self.alternatives]


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

    Cost: some microseconds.
    """
    bindings = dict(namespaces or {})
    try:
        with native_errors():
            answer = native.compile_query(text, bindings)
    except native.QueryRefusal as refusal:
        raise error_of(Refusal(*refusal.args), text, bindings) from None
    except UnicodeEncodeError as error:
        raise no_character(text, error.start) from None
    alternatives, conjunctions, expression, cost, reasons = answer
    return CompiledQuery(
        tuple(alternatives),
        expression,
        CostClass(cost),
        tuple(Reason(*reason) for reason in reasons),
        tuple(conjunctions),
    )


@contextmanager
def query_errors(text: str, namespaces: Namespaces) -> Iterator[None]:
    """Calls that read a query run in this: a refusal becomes an error."""
    try:
        with native_errors():
            yield
    except native.QueryRefusal as error:
        raise error_of(Refusal(*error.args), text, namespaces) from None
    except UnicodeEncodeError as error:
        raise no_character(text, error.start) from None

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

from dataclasses import dataclass
from enum import Enum

from pathcast.boundary import native
from pathcast.errors import UnsupportedQueryError
from pathcast.query.names import Namespaces
from pathcast.query.refusals import query_errors


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

    Cost: linear in the text, times the alternatives.
    """
    bindings = dict(namespaces or {})
    with query_errors(text, bindings):
        answer = native.compile_query(text, bindings)
    alternatives, conjunctions, expression, cost, reasons = answer
    return CompiledQuery(
        tuple(alternatives),
        expression,
        CostClass(cost),
        tuple(Reason(*reason) for reason in reasons),
        tuple(conjunctions),
    )


def normalise(text: str, namespaces: Namespaces | None = None) -> native.NormalPath:
    """The normal form of a query that one path says all of.

    Args:
        text: An XPath 1.0 expression.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.

    Returns:
        The normal form; equal for queries that differ only in notation.

    Raises:
        QuerySyntaxError: As `pathcast.query.compile_query`.
        UnsupportedQueryError: It takes several paths or the evaluator; `compile_query` tells.

    Cost: linear in the text times its depth.

    Example:
        >>> normalise("//a[@b]") == normalise("descendant::a[attribute::b][@b]")
        True
        >>> normalise("//a[@b or @c]")
        Traceback (most recent call last):
        ...
        pathcast.errors.UnsupportedQueryError: not one path in normal form: has 2 alternatives
          //a[@b or @c]
          ^
    """
    compiled = compile_query(text, namespaces)
    reason, offset = f"has {len(compiled.alternatives)} alternatives", 0
    if compiled.expression is None:
        if len(compiled.alternatives) == 1:
            return compiled.alternatives[0]
    else:
        reason, offset = compiled.reasons[0].text, compiled.reasons[0].offset
    raise UnsupportedQueryError(
        "query.not_one_path", query=text, offset=offset, construct=reason, reason=reason
    )


def canonical_form(text: str, namespaces: Namespaces | None = None) -> str:
    """The canonical text of a query that one path says all of.

    Args:
        text: An XPath 1.0 expression.
        namespaces: As in `normalise`.

    Returns:
        A text that parses to the same normal form when no namespaces are bound.

    Raises:
        QuerySyntaxError: As in `normalise`.

    Example:
        >>> canonical_form("$msg/nitf//*/p[10 >= @x][2]")
        '/nitf/*//p[@x<=10][position()=2]'
    """
    return normalise(text, namespaces).text


def conjunction_of(text: str) -> native.Conjunction:
    """The paths that a text asks for together: location paths with `and` between them.

    Args:
        text: An XPath 1.0 expression without prefixes, or canonical texts.

    Raises:
        QuerySyntaxError: It is no query.
        UnsupportedQueryError: More has to be said than that paths are there.

    Cost: linear in the text.

    Example:
        >>> conjunction_of("//b[.='x and y'] and /a").paths
        [NormalPath("//b[.='x and y']"), NormalPath("/a")]
    """
    with query_errors(text, {}):
        found = native.Conjunction.read(text)
    if found is None:
        reason = "asks for more than that paths are there"
        raise UnsupportedQueryError(
            "query.not_one_path", query=text, offset=0, construct=reason, reason=reason
        )
    return found

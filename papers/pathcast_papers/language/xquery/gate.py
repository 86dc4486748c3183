"""The gate of a subscription: paths of which one is in every message that it delivers.

What must be there for a content expression to give an item, or for the query to be true where no
result is wanted (`language.xquery.necessary`), is written as one XPath condition of the
document node and compiled like any query; of that, the paths are kept and the expression is
dropped. So all that is known of necessary paths is known here too.

A gate that is weak costs time, one that is wrong loses a delivery: where a limit is met, the gate
becomes weaker, and in the end `/*`.

Example:
    >>> from pathcast_papers.language.xquery.parser import parse
    >>> text = "<r>{for $a in //a, $b in $a/b where $a/@x = 'y' and $b/c return $b/d}</r>"
    >>> gate_of(parse(text)).alternatives
    ("//a[@x='y']/b[d]/c",)
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pathcast.errors import QuerySyntaxError
from pathcast_papers.language.alternatives import ANY_MESSAGE
from pathcast_papers.language.canonical import canonical_text
from pathcast_papers.language.compiled import Reason, compile_query
from pathcast_papers.language.normal import NormalQuery
from pathcast_papers.language.xquery.dependence import Dependences
from pathcast_papers.language.xquery.formula import ROOT, UNKNOWN, Formula, any_of, implied
from pathcast_papers.language.xquery.frame import content_expressions, parts
from pathcast_papers.language.xquery.items import Node
from pathcast_papers.language.xquery.necessary import Necessary
from pathcast_papers.language.xquery.scanner import NODES_MAX, TEXT_BYTES_MAX
from pathcast_papers.language.xquery.syntax import Comparator, Element, Program

ANY_GATE: Final[tuple[str, ...]] = ("/*",)
"""The alternatives of the gate that every message passes."""

CONDITION_BYTES_MAX: Final = 2 * TEXT_BYTES_MAX
"""Bytes of the condition that is compiled: names are written there with their namespaces."""

CONDITION_NODES_MAX: Final = 4 * NODES_MAX
"""Syntax nodes of it: a comparison with a number is written in five ways."""

_EQUALITY: Final = (Comparator.EQ,)
_SHOWN_MAX: Final = 3


class Gate(NamedTuple):
    """What is known of the messages that a program delivers anything of.

    Attributes:
        paths: One must be there; sorted by canonical text.
        reasons: Why they do not decide.
        conjunctions: Paths that must all be there, of one conjunction at least.
    """

    paths: tuple[NormalQuery, ...]
    reasons: tuple[Reason, ...]
    conjunctions: tuple[tuple[NormalQuery, ...], ...]

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The canonical texts of the paths."""
        return tuple(map(canonical_text, self.paths))


def gate_of(program: Program, *, is_condition: bool = False) -> Gate:
    """The paths that must be there for a message to be delivered, and why they do not decide.

    Args:
        program: As it was parsed.
        is_condition: Whether its effective boolean value decides, not whether it gives a result.

    Cost: linear in the program for usual ones; bounded for all.
    """
    paths: tuple[NormalQuery, ...] = (NormalQuery(ANY_MESSAGE),)
    conjunctions: tuple[tuple[NormalQuery, ...], ...] = (paths,)
    for casts_max in (1, 0):
        condition = condition_of(program, casts_max, is_condition=is_condition)
        if condition is None:
            break
        try:
            compiled = compile_query(
                condition, bytes_max=CONDITION_BYTES_MAX, nodes_max=CONDITION_NODES_MAX
            )
            paths, conjunctions = compiled.alternatives, compiled.conjunctions
        except QuerySyntaxError:
            # Over a limit of conditions, which is none of the subscriber's doing.
            continue
        break
    alternatives = tuple(map(canonical_text, paths))
    if alternatives == ANY_GATE:
        source = "every message is a candidate: nothing is known that must be in it"
    else:
        more = len(alternatives) - _SHOWN_MAX
        shown = ", ".join(alternatives[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
        source = f"candidates come from {shown}"
    decides = "the program decides" + ("" if is_condition else " and makes the result")
    return Gate(paths, (Reason(decides, 0), Reason(source, 0)), conjunctions)


def condition_of(program: Program, casts_max: int = 1, *, is_condition: bool = False) -> str | None:
    """The XPath condition of the document node that a delivered message fulfils.

    Args:
        program: As it was parsed.
        casts_max: How many comparisons with a number are carried over; each makes five ways of one.
        is_condition: As for `gate_of`.

    Returns:
        The condition; None if nothing is known.
    """
    formula: Formula = UNKNOWN
    asked = tuple(parts(program, Dependences()))
    # Several values are true, whatever they are.
    is_value = is_condition and len(asked) == 1 and not isinstance(asked[0], Element)
    for operators in (_EQUALITY, tuple(Comparator)):
        necessary = Necessary(casts_max, operators)
        if is_value:
            formula = necessary.truth(asked[0], {}, Node(ROOT))
        else:
            contents = content_expressions(program)
            formula = any_of(*(necessary.gives(expr, {}, Node(ROOT)) for expr in contents))
        if necessary.casts_left < casts_max:
            # An equality says more than an order, so that it is carried over rather.
            break
    return implied(formula, ROOT)

"""The gate of a subscription: paths of which one is in every message that it delivers.

What must be there for a content expression to give an item, or for the query to be true where no
result is wanted (`pathcast.query.xquery.necessary`), is written as one XPath condition of the
document node and compiled like any query; of that, the paths are kept and the expression is
dropped. So all that is known of necessary paths is known here too.

A gate that is weak costs time, one that is wrong loses a delivery: where a limit is met, the gate
becomes weaker, and in the end `/*`.

Example:
    >>> from pathcast.query.xquery.parser import parse
    >>> text = "<r>{for $a in //a, $b in $a/b where $a/@x = 'y' and $b/c return $b/d}</r>"
    >>> gate_of(parse(text))[0]
    ("//a[@x='y']/b[d]/c",)
"""

from __future__ import annotations

from typing import Final

from pathcast.errors import QuerySyntaxError
from pathcast.query.compiled import Reason, compile_query
from pathcast.query.xquery.dependence import Dependences
from pathcast.query.xquery.formula import ROOT, UNKNOWN, Formula, any_of, implied
from pathcast.query.xquery.frame import content_expressions, parts
from pathcast.query.xquery.items import Node
from pathcast.query.xquery.necessary import Necessary
from pathcast.query.xquery.syntax import Comparator, Element, Program

ANY_MESSAGE: Final[tuple[str, ...]] = ("/*",)
"""The gate that every message passes."""

_EQUALITY: Final = (Comparator.EQ,)
_SHOWN_MAX: Final = 3


def gate_of(
    program: Program, *, is_condition: bool = False
) -> tuple[tuple[str, ...], tuple[Reason, ...]]:
    """The paths of which one must be there for a message to be delivered, and why they decide not.

    Args:
        program: As it was parsed.
        is_condition: Whether its effective boolean value decides, not whether it gives a result.

    Returns:
        Canonical paths, at most as many as a query may have alternatives; the reasons.

    Cost: linear in the program for usual ones; bounded for all.
    """
    alternatives: tuple[str, ...] = ANY_MESSAGE
    for casts_max in (1, 0):
        condition = condition_of(program, casts_max, is_condition=is_condition)
        if condition is None:
            break
        try:
            alternatives = tuple(compile_query(condition).texts)
        except QuerySyntaxError:
            # Over a limit of queries, which is none of the subscriber's doing.
            continue
        break
    if alternatives == ANY_MESSAGE:
        source = "every message is a candidate: nothing is known that must be in it"
    else:
        more = len(alternatives) - _SHOWN_MAX
        shown = ", ".join(alternatives[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
        source = f"candidates come from {shown}"
    decides = "the program decides" + ("" if is_condition else " and makes the result")
    return alternatives, (Reason(decides, 0), Reason(source, 0))


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

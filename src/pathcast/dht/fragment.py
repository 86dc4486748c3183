"""NFA fragments: what one location step adds to the automaton.

`/name` is one transition; `//name` is an epsilon-transition to a //-child state and a transition
from there. A final `//.` is the epsilon-transition alone.

Example:
    >>> fragment(PathAxis.DESCENDANT, Name("", "msrp"))
    (None, ('', 'msrp'))

It makes no states; the combined NFA does.

Source: Diao et al., TODS 2003, section 3.2.2, figure 8.
Differs: `Q{uri}*` and `*:name` are symbols beside `*`, and `//.` is a fragment of its own.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from pathcast.query import AnyIn, AnyName, AnyNamespace, Name, NameTest, PathAxis

Symbol: TypeAlias = tuple[str | None, str | None] | None
"""Label of a transition: namespace URI and local name, each None where the test leaves it open."""

EPSILON: Final[Symbol] = None
"""The transition that needs no input."""


def fragment(axis: PathAxis, test: NameTest) -> tuple[Symbol, ...]:
    """The transitions of a location step, in order."""
    match axis:
        case PathAxis.CHILD:
            return (symbol_of(test),)
        case PathAxis.DESCENDANT:
            return (EPSILON, symbol_of(test))
        case PathAxis.DESCENDANT_OR_SELF:
            return (EPSILON,)


def symbol_of(test: NameTest) -> Symbol:
    """The label that a name test puts on its transition.

    Example:
        >>> symbol_of(AnyNamespace("title"))
        (None, 'title')
    """
    match test:
        case AnyName():
            return (None, None)
        case Name(uri, local):
            return (uri, local)
        case AnyIn(uri):
            return (uri, None)
        case AnyNamespace(local):
            return (None, local)


def matching_symbols(uri: str, local: str) -> tuple[Symbol, ...]:
    """The labels that an element of this name can follow: its name and the three wildcards.

    Example:
        >>> matching_symbols("", "a")
        (('', 'a'), (None, None), ('', None), (None, 'a'))
    """
    return ((uri, local), (None, None), (uri, None), (None, local))

"""Functions that other expressions say as well, and collations in their arguments.

Example:
    >>> from pathcast_papers.language.xquery.syntax import Variable
    >>> written_out("codepoint-equal", (Variable("a"), Variable("b")), 0)
    Comparison(operator=<Comparator.EQ: '='>, is_value=True, left=Cast(to='string', \
operand=Variable(name='a')), right=Cast(to='string', operand=Variable(name='b')))

Source: Functions and Operators 3.1, sections 5.3 and 5.4.
"""

from __future__ import annotations

import string
from typing import Final

from pathcast_papers.language.xquery.functions import CASE_BLIND, CODEPOINT, COLLATIONS
from pathcast_papers.language.xquery.syntax import (
    Call,
    Cast,
    Comparator,
    Comparison,
    ContextItem,
    Expr,
    Flwor,
    If,
    Let,
    Literal,
    LiteralKind,
    SimpleMap,
    Variable,
)

_LOWERED: Final = frozenset({"contains", "starts-with", "ends-with", "contains-token"})


def without_collation(function: str, arguments: tuple[Expr, ...], offset: int) -> tuple[Expr, ...]:
    """The arguments of a call without the collation, which is a known one.

    The case-blind one stays where the function knows it; elsewhere its texts are in lower case.
    """
    place = COLLATIONS.get(function, len(arguments))
    match arguments[place:]:
        case [Literal(value=uri)] if uri == CODEPOINT:
            return arguments[:place]
        case [Literal(value=uri)] if uri == CASE_BLIND and function in _LOWERED:
            return tuple(_lowered(function, each, offset) for each in arguments[:place])
    return arguments


def _lowered(function: str, text: Expr, offset: int) -> Expr:
    if isinstance(text, Literal) and isinstance(text.value, str):
        value = text.value.encode().lower().decode()
        return Literal(value, LiteralKind.STRING, offset)
    letters = [
        Literal(each, LiteralKind.STRING, offset)
        for each in (string.ascii_uppercase, string.ascii_lowercase)
    ]
    if function == "contains-token":
        item = Call("translate", (ContextItem(offset), *letters), offset)
        return SimpleMap(text, item, offset)
    return Call("translate", (text, *letters), offset)


def written_out(function: str, arguments: tuple[Expr, ...], offset: int) -> Expr | None:
    """What a call says, in other words; None of a function that is called."""
    match function, arguments:
        case "codepoint-equal", (left, right):
            casts = [Cast("string", each, offset) for each in (left, right)]
            return Comparison(Comparator.EQ, True, casts[0], casts[1], offset)
        case "contains-token", (texts, token):
            text = Call("normalize-space", (ContextItem(offset),), offset)
            words = SimpleMap(texts, Call("tokenize", (text,), offset), offset)
            wanted = Call("normalize-space", (token,), offset)
            return Comparison(Comparator.EQ, False, words, wanted, offset)
        case "sum", (numbers, zero):
            bound = Variable("sum", offset)
            total, is_some = Call("sum", (bound,), offset), Call("exists", (bound,), offset)
            body = If(is_some, total, zero, offset)
            return Flwor((Let("sum", numbers, offset),), None, (), body, offset)
    return None

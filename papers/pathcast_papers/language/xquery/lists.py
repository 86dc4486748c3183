"""Literals of lists, which count beside the text and the syntax nodes of a subscription.

Example:
    >>> value_bytes("//a[@b = ('A', 'B')]"), value_bytes("f('(1,2)', $x)")
    (9, 8)
"""

from __future__ import annotations

import re
from typing import Final

from pathcast_papers.language.parser import check_length
from pathcast_papers.language.xquery.comments import comment_end
from pathcast_papers.language.xquery.scanner import TEXT_BYTES_MAX, VALUE_BYTES_MAX
from pathcast_papers.language.xquery.syntax import Expr, Literal, Negation

_LITERAL: Final = r"""(?:(?:"[^"]*(?:"|\Z))+|(?:'[^']*(?:'|\Z))+|[-.0-9][-+.eE0-9]*)"""
_BLANKS: Final = r"[ \t\r\n]*"
_PIECE: Final = re.compile(
    rf"(?P<comment>\(:)|(?P<value>[(,]{_BLANKS}{_LITERAL}{_BLANKS})(?=[,)])|{_LITERAL}"
)


def check_size(text: str) -> None:
    """Refuses a text that is too long, the values of its lists not counted.

    Raises:
        QuerySyntaxError: It is too long or has a lone surrogate.
    """
    check_length(text, text, TEXT_BYTES_MAX + VALUE_BYTES_MAX)
    given = len(text.encode())
    if given > TEXT_BYTES_MAX:
        values = value_bytes(text)
        if values > VALUE_BYTES_MAX or given - values > TEXT_BYTES_MAX:
            check_length(text, text, TEXT_BYTES_MAX)


def value_bytes(text: str) -> int:
    """Bytes of literals after a parenthesis or a comma and before another, blanks included.

    Cost: linear in the text.
    """
    found = place = 0
    while (piece := _PIECE.search(text, place)) is not None:
        place = piece.end()
        if piece["comment"] is not None:
            place = comment_end(text, place) or len(text)
        elif piece["value"] is not None:
            found += len(piece["value"].encode())
    return found


def is_value(expr: Expr) -> bool:
    """Whether an item of a list is a literal, with a minus or without."""
    if isinstance(expr, Negation):
        return isinstance(expr.operand, Literal) and not isinstance(expr.operand.value, str)
    return isinstance(expr, Literal)

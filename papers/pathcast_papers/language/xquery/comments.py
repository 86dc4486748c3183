"""Comments of XQuery, in a text of either language.

XPath 1.0 has no comments; a subscription may have them whichever language it is in, and they say
nothing about which that is. So they are blanks before that is asked.
"""

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = re.compile(r"""(?P<kept>"[^"]*"|'[^']*'|Q\{[^{}]*\})|\(:""")
_EDGE: Final = re.compile(r"\(:|:\)")


def without_comments(text: str) -> str:
    """A text with blanks for its comments, so that every offset stays.

    What looks like a comment inside a string or `Q{...}` is none. A comment that does not end is
    left as it is.

    Example:
        >>> without_comments("//a[b = '(: c :)'] (: d (: e :) :)")
        "//a[b = '(: c :)']                "

    Cost: linear in the text.
    """
    if "(:" not in text:
        return text
    kept: list[str] = []
    done = place = 0
    while (piece := _PIECE.search(text, place)) is not None:
        place = piece.end()
        if piece["kept"] is not None:
            continue
        end = comment_end(text, place)
        if end is None:
            break
        kept += (text[done : piece.start()], " " * (end - piece.start()))
        done = place = end
    return "".join((*kept, text[done:]))


def comment_end(text: str, place: int) -> int | None:
    """Where the comment ends whose inside begins at a place."""
    level = 1
    for edge in _EDGE.finditer(text, place):
        level += 1 if edge[0] == "(:" else -1
        if level == 0:
            return edge.end()
    return None

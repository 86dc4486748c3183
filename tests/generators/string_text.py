r"""Strings as queries write them: quoted, joined, computed.

XPath 1.0 has no escapes, so that a string with both kinds of quotes is always computed; any other
may be. What a query says must not depend on how its strings are written.

Example:
    >>> import random
    >>> print(joined_string(random.Random(3), "it's \"so\""))
    concat("it's",' "so"')
    >>> print(written_string(random.Random(6), "so"))
    translate(string(concat("s","#")),"#",'o')

Every random choice comes from the given generator, so a seed, or Hypothesis, replays it.
"""

from __future__ import annotations

from random import Random
from typing import Final

from pathcast.query.canonical import has_literal
from pathcast.query.values import normalize_space

ODD_STRINGS: Final = (
    "'\"",
    '\'"][@y="1',
    "\"'",
    "\"')] | //*[('",
    'it\'s "so"',
    "concat(\"'\",'\"')",
    "'']\"\"",
    "Q{u}a*:b",
    "}{&amp;<>",
    "\t'\r\n\"\u0085\u2028",
    "\U0001f600'\ufffd\"\u00e9",
)
"""Strings that mean something to whatever reads them as text: quotes of both kinds, brackets,
braces, references, white space, characters beyond the Basic Multilingual Plane."""

_ABSENT: Final = "#~|^"
"""Characters that mark a place in a string that has none of them."""


def quoted_string(random: Random, value: str) -> str:
    """A literal, in either kind of quotes where the value leaves the choice.

    Args:
        random: Where choices come from.
        value: A string without quotes of one kind.
    """
    quotes = [quote for quote in "'\"" if quote not in value]
    quote = random.choice(quotes)
    return f"{quote}{value}{quote}"


def joined_string(random: Random, value: str) -> str:
    """A literal, or `concat` of two or more; always of those where no literal can hold the value.

    Args:
        random: Where choices come from.
        value: Any string of characters that XML allows.
    """
    if has_literal(value) and random.randrange(4):
        return quoted_string(random, value)
    pieces: list[str] = []
    start = 0
    while start < len(value):
        end = start + 1 + random.randrange(len(value))
        while not has_literal(value[start:end]):
            end -= 1
        pieces.append(value[start:end])
        start = min(end, len(value))
    pieces += [""] * (2 - len(pieces))
    return f"concat({','.join(quoted_string(random, piece) for piece in pieces)})"


def written_string(random: Random, value: str, depth: int = 2) -> str:
    """An expression of constants alone whose value is a string.

    Args:
        random: Where choices come from.
        value: Any string of characters that XML allows.
        depth: How deep calls may stand within one another.
    """
    absent = next((character for character in _ABSENT if character not in value), None)
    if absent is None or depth <= 0 or random.randrange(3) == 0:
        return joined_string(random, value)

    def write(inner: str) -> str:
        return written_string(random, inner, depth - 1)

    match random.randrange(8):
        case 0:
            return f"string({write(value)})"
        case 1 if value:
            letter = random.choice(value)
            without = value.replace(letter, absent)
            return f'translate({write(without)},"{absent}",{quoted_string(random, letter)})'
        case 2:
            return f"substring({write(random.choice(_ABSENT) + value)},2)"
        case 3:
            return f"substring({write(value + absent)},1,{len(value)})"
        case 4:
            return f"substring-after({write(absent + value)},'{absent}')"
        case 5:
            return f"substring-before({write(value + absent)},'{absent}')"
        case 6 if value == normalize_space(value):
            return f"normalize-space({write(f' {value}  ')})"
        case _:
            cut = random.randrange(len(value) + 1)
            return f"concat({write(value[:cut])},{write(value[cut:])})"

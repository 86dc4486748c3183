"""Did you mean ...? Names and values that are close to one that does not occur.

Example:
    >>> near("tobjct", ["title", "tobject", "p"]), near("UnitPrice", ["unit-price"])
    (['tobject'], ['unit-price'])

It compares spellings only: capitals, signs between words, a plural, a slip of the fingers.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

NEAR_MAX: Final = 3
"""Names suggested at most."""


def near(word: str, known: Iterable[str]) -> list[str]:
    """The known words that are most like a given one, best first.

    Cost: in proportion to the words and their lengths; keep the answer where the same word is
    asked for again.
    """
    by_key: dict[str, list[str]] = {}
    for each in dict.fromkeys(known):
        by_key.setdefault(_key(each), []).append(each)
    key = _key(word)
    # What differs in signs and capitals only comes first, whatever its length.
    found = [key] if key in by_key else []
    # Two of three letters wrong is another word: short ones need a closer look.
    cutoff = 0.72 if len(key) > 3 else 0.66
    found += [
        like
        for like in difflib.get_close_matches(key, by_key, n=NEAR_MAX + 1, cutoff=cutoff)
        if like != key
    ]
    return [each for like in found for each in by_key[like] if each != word][:NEAR_MAX]


def _key(word: str) -> str:
    return "".join(character for character in word.lower() if character not in "-_.: ")

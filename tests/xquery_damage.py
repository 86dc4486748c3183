"""Texts that were subscriptions before something happened to them."""

from __future__ import annotations

import random

from xquery_cases import ACCEPTED, REFUSED, WRONG

TEXTS = [*ACCEPTED, *(text for text, *_ in (*REFUSED, *WRONG))]
PIECES = [piece for text in TEXTS for piece in text.replace("(", " ( ").split(" ")]
CHARACTERS = "<>{}()[]'\"$/@:;,.=!&#x1a \n"


def damaged(rng: random.Random, text: str, times: int) -> str:
    """A text with pieces that were lost, inserted or exchanged."""
    for _ in range(times):
        at = rng.randint(0, len(text))
        match rng.randrange(4):
            case 0:
                text = text[:at] + text[at + rng.randint(1, 4) :]
            case 1:
                text = text[:at] + rng.choice(CHARACTERS) + text[at:]
            case 2:
                text = f"{text[:at]} {rng.choice(PIECES)} {text[at:]}"
            case _:
                other = rng.choice(TEXTS)
                text = text[:at] + other[rng.randint(0, len(other)) :]
    return text

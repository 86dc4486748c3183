"""Texts that are almost queries: queries with slips of the pen, and tokens in any order."""

from __future__ import annotations

import random

_WRITTEN = (
    "/ // . .. :: : @ * ( ) [ ] , | + - = != < <= >= <> ! & ; { } $ $msg $x and or div mod not( "
    "text() comment( processing-instruction( last() count( id( doc( concat( substring( foo( "
    "xs:date( ends-with( 1 2. .5 'x' \"y\" ' \" a b c n:a p:* *:a Q{urn:n}a Q{u}* Q{ zz:a "
    "child:: attribute:: decendant:: namespace:: é 日 \u1680 ≤ “ &lt; && || == eq a: *: % `"
)

TOKENS = tuple(_WRITTEN.split(" "))

CHARACTERS = "abx/@*()[]|=<>!+-.,:'\"$ 01&{}Q\té“\u1680\u0301\x00\U0001f600\U000f0001"


def mutated(random: random.Random, text: str) -> str:
    """The text with one slip to three: characters left out, doubled, swapped or put in."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.choice((1, 1, 2, 5)))
        before, between, after = text[:start], text[start:end], text[end:]
        text = random.choice(
            (
                before + after,
                before + between + between + after,
                before + between[::-1] + after,
                before + random.choice(TOKENS) + between + after,
                before + random.choice(TOKENS) + after,
                before + random.choice(CHARACTERS) + between + after,
                before,
            )
        )
    return text


def random_tokens(random: random.Random) -> str:
    """Up to a dozen tokens, with blanks or without."""
    return random.choice(("", " ")).join(random.choices(TOKENS, k=random.randrange(1, 13)))

"""Families of queries that share a structure and differ in constants, and messages for them.

A family is a path with holes: names, axes, positions and the subjects of conditions are chosen
once, then operators and constants many times. So an index gets what a real one has: many
conditions at one step, on one attribute, with thresholds that meet, and few structures.

Example:
    >>> import random
    >>> for text in random_family(random.Random(50), 3):
    ...     print(text)
    //c/*[@y = 100]/b[. < 0]/*
    //c/*[@y = 6]/b[. < 7]/*
    //c/*[@y = 4.99999999999]/b[. < 5]/*

Every random choice comes from the given generator, so a seed replays it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from generators.string_text import ODD_STRINGS, written_string

VALUES: Final = (
    *("5", "5.0", " 5 ", "05", "4", "6", "4.9", "5.5", "-5", "0", "-0", "0.0", "100", ".5", "5."),
    *(
        "",
        " ",
        "NaN",
        "Infinity",
        "u",
        "us",
        "use",
        "us e",
        "s",
        "é",
        "éa",
        "日本",
        "日本語",
        "5 5",
    ),
    *("\t5\n", "\u00a05", "--5", "5-", "123456789", "1" + "0" * 320, "it's", 'a"b'),
    *ODD_STRINGS[:3],
)
"""Values of attributes and text: numbers in several notations, what only looks like one, strings
that begin and hold each other, white space that counts and white space that does not. Of more
than 15 digits there is none that rounding could bring near a constant: libxml2 rounds otherwise."""

NUMBERS: Final = (
    *("5", "5.0", "05", "4", "6", "4.9", "5.5", "-5", "0", "-0", "100", ".5", "1000000"),
    *("123456789", "123456788.5", "4.99999999999", "1" + "0" * 300),
)
"""Constants that are numbers, as they are written."""

STRINGS: Final = (
    *("5", "5.0", " 5 ", "05", "-0", "0", "", " ", "NaN", "Infinity", "u", "us", "use", "s", "e"),
    *("é", "a", "日", "日本語", "本", "x", "5 5", "4", "it's", 'a"b', "\u00a05"),
    *ODD_STRINGS[:3],
)
"""Constants that are strings."""

_ELEMENTS: Final = ("a", "a", "b", "c")
_ATTRIBUTES: Final = ("x", "x", "y")


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyShape:
    """What a family may look like.

    Attributes:
        steps_max: Location steps of the main path.
        conditions_max: Holes of the main path; nested paths have more.
        nesting_max: Levels of nested paths.
        has_functions: Whether `starts-with` and `contains` occur.
        has_positions: Whether positions occur.
        has_alternatives: Whether `or`, `not()`, unions and other constructs occur that a query
            splits into several paths for, or needs an expression for.
    """

    steps_max: int = 4
    conditions_max: int = 3
    nesting_max: int = 2
    has_functions: bool = True
    has_positions: bool = True
    has_alternatives: bool = False


def random_family(random: Random, count: int, shape: FamilyShape | None = None) -> list[str]:
    """Queries of one structure; some may be equal.

    Args:
        random: Where choices come from.
        count: How many.
        shape: What the structure may look like.
    """
    pieces = _Skeleton(random, shape or FamilyShape()).pieces()
    return [
        "".join(piece if isinstance(piece, str) else piece(random) for piece in pieces)
        for _ in range(count)
    ]


_Piece = str | Callable[[Random], str]
"""Text, or a hole: what writes a condition with its own choice of operator and constant."""


def _constant(random: Random, odds_of_string: int) -> str:
    if random.randrange(100) < odds_of_string:
        return written_string(random, random.choice(STRINGS))
    if random.randrange(4) == 0:
        # Many thresholds, most of them beside a value and some at it.
        return f"{random.randrange(-12, 24) / 2:g}"
    return random.choice(NUMBERS)


def _comparing(subject: str, operators: Sequence[str], odds_of_string: int) -> Callable[..., str]:
    def hole(random: Random) -> str:
        operator, constant = random.choice(operators), _constant(random, odds_of_string)
        if random.randrange(8) == 0:
            flipped = operator.translate(str.maketrans("<>", "><"))
            return f"{constant} {flipped} {subject}"
        return f"{subject} {operator} {constant}"

    return hole


def _calling(subject: str, function: str) -> Callable[[Random], str]:
    def hole(random: Random) -> str:
        return f"{function}({subject}, {written_string(random, random.choice(STRINGS))})"

    return hole


class _Skeleton:
    """Writes one structure, as text with holes."""

    def __init__(self, random: Random, shape: FamilyShape) -> None:
        self.random = random
        self.shape = shape

    def pieces(self) -> list[_Piece]:
        random, shape = self.random, self.shape
        steps = 1 + random.randrange(shape.steps_max)
        # Where conditions stand: leading, middle and trailing steps alike, several at one step too.
        places = [
            random.randrange(steps) for _ in range(1 + random.randrange(shape.conditions_max))
        ]
        pieces: list[_Piece] = []
        for number in range(steps):
            pieces.append(random.choice(("/", "//", "//") if number == 0 else ("/", "/", "//")))
            pieces += self.step(places.count(number), shape.nesting_max)
        pieces += self.end()
        if shape.has_alternatives and random.randrange(8) == 0:
            return [*pieces, " | ", *self.pieces()]
        return pieces

    def step(self, conditions: int, nesting: int) -> list[_Piece]:
        random = self.random
        pieces: list[_Piece] = [random.choice((*_ELEMENTS, "*"))]
        for _ in range(conditions):
            pieces += self.position(12)
            pieces += ["[", *self.condition(nesting), "]"]
        return pieces + self.position(16)

    def end(self) -> list[_Piece]:
        """Sometimes an attribute or text node is asked for, of the last step or below it."""
        random = self.random
        if random.randrange(6):
            return []
        return [random.choice(("/", "//")), random.choice(("@x", "@y", "text()"))]

    def position(self, odds: int) -> list[_Piece]:
        random = self.random
        if not self.shape.has_positions or random.randrange(odds):
            return []
        return [random.choice(("[1]", "[2]", "[position() <= 2]", "[position() > 1]"))]

    def condition(self, nesting: int) -> list[_Piece]:
        random = self.random
        kind = random.randrange(12)
        if nesting and kind < 3:
            return self.nested(nesting - 1)
        if self.shape.has_alternatives and kind in (8, 9):
            return self.alternatives(nesting)
        if kind == 4:
            return [*self.condition(nesting), " and ", *self.condition(0)]
        if kind == 5:
            return [random.choice(("@x", "@y", "text()", "@*", "b"))]
        own = (f"@{random.choice(_ATTRIBUTES)}", "@x", ".", "text()")
        if self.shape.has_functions and kind in (6, 7):
            function = random.choice(("starts-with", "contains"))
            # Of other node-sets only the first node counts: that is no matter of values alone.
            return [_calling(random.choice(("@x", "@y", ".")), function)]
        subject = random.choice((*own, "@*", "b", "b/@x", ".//c", ".//@y", "b/text()", "*"))
        if kind < 9:
            subject = random.choice(own)
        return [self.comparison(subject)]

    def alternatives(self, nesting: int) -> list[_Piece]:
        random = self.random
        match random.randrange(6):
            case 0:
                return ["not(", *self.condition(0), ")"]
            case 1:
                return [f"count({random.choice(('b', '*', './/a', '@*'))}) > 1"]
            case 2:
                return [random.choice(("following-sibling::b", "../b", "ancestor::a", "last()"))]
            case 3:
                return ["(", *self.condition(0), " or ", *self.condition(0), ")"]
            case _:
                return [*self.condition(nesting), " or ", *self.condition(0)]

    def comparison(self, subject: str) -> Callable[..., str]:
        """Comparisons of one kind, mostly: only some families mix operators."""
        operators, odds = self.random.choice(
            [
                (("=",), 50),
                (("=",), 100),
                (("=",), 0),
                (("!=",), 50),
                (("<", "<=", ">", ">="), 0),
                ((">=",), 0),
                (("<",), 20),
                (("=", "=", "!=", "<", "<=", ">", ">="), 40),
            ]
        )
        return _comparing(subject, operators, odds)

    def nested(self, nesting: int) -> list[_Piece]:
        random = self.random
        pieces: list[_Piece] = [random.choice(("", "", ".//"))]
        pieces += self.step(random.randrange(2), nesting)
        if random.randrange(3) == 0:
            pieces.append(random.choice(("/", "//")))
            pieces += self.step(random.randrange(2), nesting)
        return pieces + self.end()


def random_valued_message(random: Random, elements_max: int = 50) -> bytes:
    """One message with values everywhere: recursive, with attributes and text at most elements.

    A message draws from a few values of its own, so that several elements agree and differ.

    Args:
        random: Where choices come from.
        elements_max: Elements at most.
    """
    values = [*random.sample(VALUES, random.randrange(2, 9)), "5"]
    budget = random.choice((1, 5, elements_max, elements_max, elements_max))

    def element(depth: int) -> str:
        nonlocal budget
        budget -= 1
        name = random.choice(_ELEMENTS)
        attributes = "".join(
            f" {attribute}={quoteattr(random.choice(values))}"
            for attribute in ("x", "y")
            if random.randrange(2)
        )
        content = escape(random.choice(values)) if random.randrange(3) else ""
        while budget > 0 and depth < 7 and random.randrange(7):
            content += element(depth + 1)
            if random.randrange(4) == 0:
                content += escape(random.choice(values))
        return f"<{name}{attributes}>{content}</{name}>"

    return element(0).encode()

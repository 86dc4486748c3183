"""Families of queries that give an engine little to share, and messages that meet them.

Example:
    >>> family = ADVERSARIES["values"]
    >>> list(family.queries(2))
    ["/a/b[@id='0']", "/a/b[@id='61803']"]
    >>> [message[:11] for message in family.messages(1, seed=0)]
    [b'<a><b id="5']

Each family is bad for something that an engine might rely on: that structure tells queries apart,
that few queries accept at one element, that a message is shallow. Of every family the first queries
are the same whatever their number, and the messages do not depend on it, so that what grows is the
number of queries alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pathcast.workload.values import Draw

UNIVERSE: Final = 100_000
"""Values that queries and messages choose from; also the most queries of a family."""

DEPTH: Final = 200
"""Levels of the deep messages."""

_STRIDE = 61_803
"""Shares no factor with `UNIVERSE`: its multiples visit every value once, far from the last one."""

_NAMES = tuple("abcdefghijklmnopqrst")

_SYLLABLES = ("ba", "dor", "el", "fin", "gra", "hu", "ka", "lo", "mer", "na", "os", "pel", "qui",
              "ra", "sun", "ter", "ul", "vo", "wen", "zi")  # fmt: skip


@dataclass(frozen=True)
class Adversary:
    """A family of queries and its messages.

    Attributes:
        name: Of the family.
        title: What is bad about it.
        query: Number from 0 to `UNIVERSE` - 1 -> a query; different numbers give different ones.
        message: Draws a message.
    """

    name: str
    title: str
    query: Callable[[int], str]
    message: Callable[[Draw], str]

    def queries(self, count: int) -> Iterator[str]:
        """The first queries, at most `UNIVERSE`."""
        return (self.query(_nth(number)) for number in range(min(count, UNIVERSE)))

    def messages(self, count: int, *, seed: int) -> list[bytes]:
        """Messages, the same ones first whatever the count."""
        draw = Draw(f"adversary/{self.name}/{seed}")
        return [self.message(draw).encode() for _ in range(count)]


def _nth(number: int) -> int:
    """The value of the so-manyth query."""
    return number * _STRIDE % UNIVERSE


def _value(draw: Draw) -> int:
    """Now and then a value of the first queries, so that few queries match something, too."""
    return _nth(draw.whole(0, 99)) if draw.is_lucky(0.02) else draw.whole(0, UNIVERSE - 1)


def _flat(draw: Draw) -> str:
    return "<a>" + "".join(f'<b id="{_value(draw)}"/>' for _ in range(200)) + "</a>"


def _path(number: int) -> str:
    """Four steps of twenty names, half of them at any depth, and then anything below."""
    digits: list[str] = []
    for _ in range(4):
        number, digit = divmod(number, len(_NAMES))
        digits.append(_NAMES[digit])
    first, second, third, fourth = digits
    return f"//{first}/{second}//{third}/{fourth}//*"


def _bushy(draw: Draw) -> str:
    def element(level: int) -> str:
        name = draw.pick(_NAMES)
        if level == 9:
            return f"<{name}/>"
        below = draw.whole(1, 3) if level < 6 else 1
        return f"<{name}>{''.join(element(level + 1) for _ in range(below))}</{name}>"

    return f"<r>{''.join(element(1) for _ in range(4))}</r>"


def _ranged(draw: Draw) -> str:
    # The largest number decides how many queries match: any share of them, from few to all.
    top = _value(draw)
    numbers = (draw.whole(0, top) for _ in range(150))
    return "<r>" + "".join(f'<x n="{number}"/>' for number in numbers) + "</r>"


def _deep(draw: Draw) -> str:
    opened = "".join(f'<a x="{_value(draw)}">' for _ in range(DEPTH))
    return opened + "</a>" * DEPTH


def _orders(draw: Draw) -> str:
    customers = "".join(f"<customer><id>{_value(draw)}</id></customer>" for _ in range(20))
    lines = "".join(
        f"<line><article>{_value(draw)}</article><count>{draw.whole(1, 9)}</count></line>"
        for _ in range(30)
    )
    return f"<order>{customers}{lines}</order>"


def _needle(number: int) -> str:
    """Two words of two syllables and digits: a text that few paragraphs hold."""
    syllables: list[str] = []
    for _ in range(3):
        number, digit = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[digit])
    first, second, third = syllables
    return f"{first}{second} {third}{number}"


def _prose(draw: Draw) -> str:
    def paragraph() -> str:
        return " ".join(_needle(_value(draw)) for _ in range(25))

    return "<text>" + "".join(f"<p>{paragraph()}</p>" for _ in range(15)) + "</text>"


ADVERSARIES: Mapping[str, Adversary] = MappingProxyType(
    {
        family.name: family
        for family in (
            Adversary("values", "one structure, each its value", "/a/b[@id='{}']".format, _flat),
            Adversary("anything", "all end in //*", _path, _bushy),
            Adversary("ranges", "ranges on one attribute", "//x[@n > {}]".format, _ranged),
            Adversary("recursion", "200 levels of one name", "//a//a[@x='{}']//a".format, _deep),
            Adversary(
                "nested",
                "nested paths that differ in a value",
                "/order[customer/id='{}']".format,
                _orders,
            ),
            Adversary(
                "substrings",
                "different strings in one text",
                lambda number: f"//p[contains(., '{_needle(number)}')]",
                _prose,
            ),
        )
    }
)
"""Name -> family."""

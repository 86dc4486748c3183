"""Values of attributes and texts: the paper's integers, or a domain's plausible ones.

Example:
    >>> draw = Draw(7)
    >>> draw.pick(("EUR", "USD", "CHF")) in ("EUR", "USD", "CHF")
    True

Random numbers come from `random.Random.random` alone: its sequence for a seed is the same on every
platform and in every version of Python, which holds for none of the methods built on it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from pathcast.schema import (
    Attribute,
    AttributeDefault,
    AttributeType,
    ElementGraph,
)


class Draw:
    """A seeded source of choices.

    Args:
        seed: Whole number or text; text keeps streams with the same number apart.
    """

    __slots__ = ("_generator", "_ids", "random")

    def __init__(self, seed: int | str) -> None:
        self._generator = random.Random()
        self.random: Callable[[], float] = self._generator.random
        self.restart(seed)

    def restart(self, seed: int | str) -> None:
        """Begins anew, as if made with this seed."""
        self._generator.seed(str(seed))  # Text is hashed with SHA-512, whatever the platform.
        self._ids = 0

    def pick(self, choices: Sequence[str]) -> str:
        """One of the choices, all as likely."""
        return choices[int(self.random() * len(choices))]

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self.random() * (high - low + 1))

    def is_lucky(self, odds: float) -> bool:
        """True with this probability."""
        return self.random() < odds

    def next_id(self) -> str:
        """A name that this source has not given before."""
        self._ids += 1
        return f"n{self._ids}"


Values: TypeAlias = tuple[str, ...] | Callable[[Draw], str]
"""All values that are possible, each as likely; or a function that makes one."""


class ValueSource(Protocol):
    """Where the values of documents and of predicates come from."""

    def text(self, element: str) -> Values:
        """Values of an element's text."""
        ...

    def attribute(self, element: str, attribute: Attribute) -> Values:
        """Values of an attribute."""
        ...

    def attribute_odds(self, element: str, attribute: Attribute) -> float:
        """Probability that the attribute is there."""
        ...


class IntegerValues:
    """The paper's values: each attribute and text takes integers from 1 to a maximum of its own.

    For every attribute the probability that it occurs is drawn between 0 and 1; for every attribute
    and text the number of its values is drawn between 1 and `values_max`. Required and fixed
    attributes always occur, and a fixed one has one value.

    Args:
        graph: The DTD.
        seed: Draws the statistics.
        values_max: Most values of one attribute or text.

    Source: 003, 4.2.1. Differs: the paper draws odds for every attribute; those that the DTD
    demands would then be missing.
    """

    def __init__(self, graph: ElementGraph, seed: int, values_max: int = 20) -> None:
        draw = Draw(f"statistics/{seed}")
        texts: dict[str, int] = {}
        odds: dict[tuple[str, str], float] = {}
        counts: dict[tuple[str, str], int] = {}
        for element in sorted(graph, key=lambda element: element.name):
            texts[element.name] = draw.whole(1, values_max)
            for attribute in sorted(element.attributes, key=lambda attribute: attribute.name):
                key = (element.name, attribute.name)
                drawn = draw.random()
                count = draw.whole(1, values_max)
                is_certain = attribute.default in (
                    AttributeDefault.REQUIRED,
                    AttributeDefault.FIXED,
                )
                odds[key] = 1.0 if is_certain else drawn
                counts[key] = 1 if attribute.default is AttributeDefault.FIXED else count
        self.text_counts: Mapping[str, int] = MappingProxyType(texts)
        self.odds: Mapping[tuple[str, str], float] = MappingProxyType(odds)
        self.attribute_counts: Mapping[tuple[str, str], int] = MappingProxyType(counts)

    def text(self, element: str) -> Values:
        """From 1 to the element's maximum."""
        return _integers(self.text_counts[element])

    def attribute(self, element: str, attribute: Attribute) -> Values:
        """From 1 to the attribute's maximum, whatever type the DTD gives it."""
        return _integers(self.attribute_counts[element, attribute.name])

    def attribute_odds(self, element: str, attribute: Attribute) -> float:
        """The odds as drawn; 1 for attributes that are required."""
        return self.odds[element, attribute.name]


def _integers(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, count + 1))


IMPLIED_ODDS: Final = 0.6
"""Probability of attributes that need not be there."""


class PlausibleValues:
    """Values that a reader of the domain would expect.

    What the table does not name follows from the DTD: enumerations give their own values, an `ID` a
    new name, everything else a few words.

    Args:
        table: Values of texts under the element's name, of attributes under `element/@name` or
            `@name`.
        words: For whatever the table does not name.
    """

    def __init__(self, table: Mapping[str, Values], words: tuple[str, ...]) -> None:
        self._table = dict(table)
        self._words = words

    def text(self, element: str) -> Values:
        """From the table, else words."""
        return self._table.get(element, self._words)

    def attribute(self, element: str, attribute: Attribute) -> Values:
        """From the table, else what the DTD allows."""
        for key in (f"{element}/@{attribute.name}", f"@{attribute.name}"):
            if key in self._table:
                return self._table[key]
        if attribute.default is AttributeDefault.FIXED and attribute.value is not None:
            return (attribute.value,)
        if attribute.enumeration:
            return attribute.enumeration
        if attribute.type is AttributeType.ID:
            return Draw.next_id
        return self._words

    def attribute_odds(self, element: str, attribute: Attribute) -> float:
        """1 for those that must be there."""
        if attribute.default in (AttributeDefault.REQUIRED, AttributeDefault.FIXED):
            return 1.0
        return IMPLIED_ODDS

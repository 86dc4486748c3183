"""Which entries of a growing and shrinking set cover which: an order without circles.

An entry *stands before* another one if it covers it and ranks lower. Rank is read off the text
alone and follows covering (what asks for less ranks lower), so that next to nothing that is covered
is missed, and since it is a total order, entries that cover each other never drop one another, and
what is told is a function of what is there, not of how it came to be.

Example:
    >>> entries = CoveredEntries()
    >>> for text in ("//b", "/a/b[@x]", "//a and //b"):
    ...     entries.add(RankedEntry(text))
    >>> list(entries.before("/a/b[@x]")), list(entries.behind("//b"))
    (['//a and //b', '//b'], ['/a/b[@x]', '//a and //b'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final, TypeAlias, TypeVar

from pathcast.overlay.disjuncts import Disjunct
from pathcast.query import (
    AnyName,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Name,
    NameTest,
    NestedCondition,
    Operator,
    Step,
)
from pathcast.query.covering import Token

_Key = TypeVar("_Key", bound=Token | None)

Rank: TypeAlias = tuple[int, tuple[tuple[float, str], ...], str]

_IsWanted: TypeAlias = Callable[[str], bool]

_FEW: Final = ("=", "begins")
"""Kinds of tokens that few entries have."""

_WEIGHTS: Final = {Operator.EQ: 5, Operator.STARTS_WITH: 3}
"""What a comparison weighs besides existence; two orders make a range, which an equality is in."""


class RankedEntry:
    """An entry, read, with what the search for what it covers needs.

    Raises:
        QuerySyntaxError: It is no entry.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.disjunct = Disjunct.of(text)
        parts = self.disjunct.parts
        self.wanted: frozenset[Token] = frozenset().union(*(part.wanted[0] for part in parts))
        self.offered: frozenset[Token] = frozenset().union(*(part.offered[0] for part in parts))

    @cached_property
    def rank(self) -> Rank:
        """Lower for what asks for less."""
        weight = 0
        constants: list[tuple[float, str]] = []
        for path in self.disjunct.paths:
            weight += weigh(path.steps, constants)
        return weight, tuple(constants), self.text

    def stands_before(self, other: RankedEntry) -> bool:
        """Whether it covers another entry and ranks lower."""
        return (
            self.wanted <= other.offered
            and self.rank < other.rank
            and self.disjunct.covers(other.disjunct)
        )


class CoveredEntries:
    """A set of entries that knows which stand before which."""

    def __init__(self) -> None:
        self._entries: dict[str, RankedEntry] = {}
        self._filed: dict[Token | None, dict[str, None]] = {}
        self._offering: dict[Token, dict[str, None]] = {}

    def add(self, entry: RankedEntry) -> None:
        """Takes an entry in, which is not there yet."""
        self._entries[entry.text] = entry
        self._filed.setdefault(_drawer(entry), {})[entry.text] = None
        for token in _names(entry.offered):
            self._offering.setdefault(token, {})[entry.text] = None

    def discard(self, text: str) -> None:
        """Takes an entry out, which is there."""
        entry = self._entries.pop(text)
        _take_out(self._filed, _drawer(entry), text)
        for token in _names(entry.offered):
            _take_out(self._offering, token, text)

    def before(self, text: str, is_wanted: _IsWanted = lambda _: True) -> Iterator[str]:
        """The entries that stand before one of the set.

        Args:
            text: The entry.
            is_wanted: Asked of each candidate, before it is compared.

        Cost: 20 µs or more a comparison, of which there are few where names and constants differ.
        """
        special = self._entries[text]
        for token in (None, *sorted(special.offered, key=repr)):
            for general in list(self._filed.get(token, ())):
                if is_wanted(general) and self._entries[general].stands_before(special):
                    yield general

    def behind(self, text: str, is_wanted: _IsWanted = lambda _: True) -> Iterator[str]:
        """The entries that one of the set stands before; arguments and cost as of `before`."""
        general = self._entries[text]
        asked = [self._offering.get(token, {}) for token in _names(general.wanted)]
        for special in list(min(asked, key=len) if asked else self._entries):
            if is_wanted(special) and general.stands_before(self._entries[special]):
                yield special


def _drawer(entry: RankedEntry) -> Token | None:
    """The token of an entry that fewest entries likely have; every entry it covers offers it."""
    return min(entry.wanted, key=lambda token: (token[0] not in _FEW, repr(token)), default=None)


def _names(tokens: frozenset[Token]) -> list[Token]:
    """The tokens but for beginnings, of which there are too many to file each."""
    return [token for token in tokens if token[0] != "begins"]


def _take_out(drawers: dict[_Key, dict[str, None]], token: _Key, text: str) -> None:
    drawer = drawers[token]
    del drawer[text]
    if not drawer:
        del drawers[token]


def weigh(steps: tuple[Step, ...], constants: list[tuple[float, str]]) -> int:
    """How much a path asks for; its constants are added to a list, the wider ones lower."""
    weight = 0
    for step in steps:
        weight += 1 + _name_weight(step.test) + (step.axis is Axis.CHILD)
        for part in step.stages:
            weight += 3 * len(part.positions)
            weight += sum(_weigh_condition(each, constants) for each in part.conditions)
    return weight


def _weigh_condition(condition: Condition, constants: list[tuple[float, str]]) -> int:
    if isinstance(condition, NestedCondition):
        return weigh(condition.steps, constants)
    weight = 1
    if isinstance(condition, AttributeCondition):
        weight += _name_weight(condition.test)
    if condition.compare is not None:
        constants.append(_width(condition.compare))
        weight += _WEIGHTS.get(condition.compare.operator, 2)
    return weight


def _name_weight(test: NameTest) -> int:
    if isinstance(test, AnyName):
        return 0
    return 2 if isinstance(test, Name) else 1


def _width(compare: Comparison) -> tuple[float, str]:
    """Lower for a comparison that more values pass, among comparisons of one kind."""
    constant = compare.constant
    if isinstance(constant, str):
        return float(len(constant)), constant
    number = constant if isinstance(constant, float) else constant.number
    is_from_above = compare.operator in (Operator.LT, Operator.LE)
    is_strict = compare.operator in (Operator.LT, Operator.GT)
    return (-number if is_from_above else number), "strict" if is_strict else ""

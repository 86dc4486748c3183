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
    >>> entries.add(RankedEntry("//b/a and //b/c"))
    >>> entries.discard("//b/a and //b/c")
    >>> list(entries.behind("//b"))
    ['/a/b[@x]', '//a and //b']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from pathcast.query import conjunction_of

Token: TypeAlias = int
"""A name or constant that entries ask for."""

_Key = TypeVar("_Key", bound=Token | None)

Rank: TypeAlias = tuple[int, list[tuple[float, str]], str]

_IsWanted: TypeAlias = Callable[[str], bool]


class RankedEntry:
    """An entry, read, with what the search for what it covers needs.

    Raises:
        QuerySyntaxError: It is no entry.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._paths = conjunction_of(text)
        self.wanted = frozenset(self._paths.wanted())
        self.offered = frozenset(self._paths.offered())
        self.drawer, self.filed_wanted, self.filed_offered = self._paths.filing()
        weight, constants = self._paths.rank()
        self.rank: Rank = (weight, constants, text)

    def stands_before(self, other: RankedEntry) -> bool:
        """Whether it covers another entry and ranks lower."""
        return (
            self.wanted <= other.offered
            and self.rank < other.rank
            and self._paths.covers(other._paths)
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
        self._filed.setdefault(entry.drawer, {})[entry.text] = None
        for token in entry.filed_offered:
            self._offering.setdefault(token, {})[entry.text] = None

    def discard(self, text: str) -> None:
        """Takes an entry out, which is there."""
        entry = self._entries.pop(text)
        _take_out(self._filed, entry.drawer, text)
        for token in entry.filed_offered:
            _take_out(self._offering, token, text)

    def before(self, text: str, is_wanted: _IsWanted = lambda _: True) -> Iterator[str]:
        """The entries that stand before one of the set.

        Args:
            text: The entry.
            is_wanted: Asked of each candidate, before it is compared.

        Cost: some microseconds a comparison, few of which are made where names and constants
        differ.
        """
        special = self._entries[text]
        for token in (None, *sorted(special.offered)):
            for general in list(self._filed.get(token, ())):
                if is_wanted(general) and self._entries[general].stands_before(special):
                    yield general

    def behind(self, text: str, is_wanted: _IsWanted = lambda _: True) -> Iterator[str]:
        """The entries that one of the set stands before; arguments and cost as of `before`."""
        general = self._entries[text]
        asked = [self._offering.get(token, {}) for token in general.filed_wanted]
        for special in list(min(asked, key=len) if asked else self._entries):
            if is_wanted(special) and general.stands_before(self._entries[special]):
                yield special


def _take_out(drawers: dict[_Key, dict[str, None]], token: _Key, text: str) -> None:
    drawer = drawers[token]
    del drawer[text]
    if not drawer:
        del drawers[token]

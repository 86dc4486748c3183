"""A map from arcs of the circle to values; a later value replaces an earlier one on its arc.

An arc is (low, high], from after one place up to another; from a place to itself it is the whole
circle.

Example:
    >>> arcs = Arcs[str]()
    >>> arcs.put(10, 40, "a")
    >>> arcs.put(20, 30, "b")
    >>> list(arcs.within(0, 35))
    [(10, 20, 'a'), (20, 30, 'b'), (30, 35, 'a')]
    >>> arcs.at(20), arcs.at(21), arcs.at(41)
    ('a', 'b', None)
    >>> list(arcs.gaps(5, 45))
    [(5, 10), (40, 45)]
    >>> arcs.remove(0, 25)
    >>> list(arcs.within(0, 100))
    [(25, 30, 'b'), (30, 40, 'a')]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from pathcast.dht.identifiers import CIRCLE

Value = TypeVar("Value")


class Arcs(Generic[Value]):
    """Values of arcs that do not overlap.

    Cost: of each operation, O(arcs).
    """

    def __init__(self) -> None:
        # [from, to) in a row of all places, which an arc over place 0 has two of; ascending.
        self._parts: list[tuple[int, int, Value]] = []

    def put(self, low: int, high: int, value: Value) -> None:
        """Give an arc a value."""
        self.remove(low, high)
        self._parts += [(start, end, value) for start, end in _rows(low, high)]
        self._parts.sort(key=lambda part: part[0])

    def remove(self, low: int, high: int) -> None:
        """Know nothing of an arc."""
        for start, end in _rows(low, high):
            kept = []
            for a, b, value in self._parts:
                kept += [(x, y, value) for x, y in ((a, min(b, start)), (max(a, end), b)) if x < y]
            self._parts = kept

    def at(self, place: int) -> Value | None:
        """The value at a place."""
        return next((value for a, b, value in self._parts if a <= place < b), None)

    def within(self, low: int, high: int) -> Iterator[tuple[int, int, Value]]:
        """Arcs in an arc, in their order from its beginning, and their values."""
        for start, end in _rows(low, high):
            for a, b, value in self._parts:
                if max(a, start) < min(b, end):
                    yield (*_arc(max(a, start), min(b, end)), value)

    def gaps(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Arcs in an arc that have no value."""
        for start, end in _rows(low, high):
            for a, b, _ in self._parts:
                if start < min(a, end):
                    yield _arc(start, min(a, end))
                start = max(start, min(b, end))
            if start < end:
                yield _arc(start, end)


def _rows(low: int, high: int) -> list[tuple[int, int]]:
    if low == high:
        return [(0, CIRCLE)]
    if low < high:
        return [(low + 1, high + 1)]
    return [(start, end) for start, end in ((low + 1, CIRCLE), (0, high + 1)) if start < end]


def _arc(start: int, end: int) -> tuple[int, int]:
    return (start - 1) % CIRCLE, end - 1

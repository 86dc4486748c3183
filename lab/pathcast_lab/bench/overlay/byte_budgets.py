"""Levels of entries within budgets of bytes: the axis of the curves of tables.

Example:
    >>> entries = [f"/m/q[@sym='A{n}'] and /m/q/bid[.>{n}]" for n in range(40)]
    >>> generalise = Generalisation({shape_of(entries[0]): "one path"})
    >>> generalise(entries[3]), generalise("/other")
    ("/m/q[@sym='A3']", '/other')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pathcast.overlay.generalisation import EXACTLY, Optimiser, at_level, shape_of

ENTRY_BYTES: Final = 24
"""Bytes of an entry in a table besides its text: where it lies, and whom it leads to."""


@dataclass(frozen=True)
class Generalisation:
    """Which level entries are at.

    Attributes:
        levels: Shape -> level.
    """

    levels: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, entry: str) -> str:
        """The entry that is told in its place."""
        if not self.levels:
            return entry
        return at_level(entry, self.levels.get(shape_of(entry), EXACTLY))


def table_bytes(entries: Iterable[str]) -> int:
    """Bytes of the distinct entries of a table."""
    return sum(ENTRY_BYTES + len(entry.encode()) for entry in set(entries))


def within(optimiser: Optimiser, *budgets_bytes: int) -> list[Generalisation]:
    """For each budget the levels with which the tables of all links together fit it.

    Those of the smallest ones, where none do. Entries of shapes that are new are told as
    they are.
    """
    found: dict[int, Generalisation] = {}
    levels: dict[str, str] = {}
    for point in optimiser.curve():
        if point.shape:
            levels[point.shape] = point.level
        for budget in budgets_bytes:
            if point.table_bytes <= budget and budget not in found:
                found[budget] = Generalisation(dict(levels))
        if len(found) == len(set(budgets_bytes)):
            break
    return [found.get(budget, Generalisation(levels)) for budget in budgets_bytes]

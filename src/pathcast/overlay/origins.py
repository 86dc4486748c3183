"""Entries by origin: those of the broker's own profiles, counted, and those of its neighbours.

Example:
    >>> held = EntriesByOrigin()
    >>> [held.add(LOCAL, "/a"), held.add(LOCAL, "/a"), held.add("east", "/a")]
    [True, True, True]
    >>> [held.discard(LOCAL, "/a"), held.discard("east", "/a"), held.discard("east", "/a")]
    [True, True, False]
    >>> sorted(held.of(LOCAL)), len(held)
    (['/a'], 1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from pathcast.errors import UnknownQueryError
from pathcast.overlay.content import LOCAL


class EntriesByOrigin:
    """Entries, and who asks for each; `LOCAL` once for each profile, a neighbour once."""

    def __init__(self) -> None:
        self._origins: dict[str, dict[str, int]] = {}

    def begin(self, own: Iterable[str]) -> None:
        """Takes in entries of the broker's own profiles; there are none of anybody yet."""
        self._origins = {entry: {LOCAL: count} for entry, count in Counter(own).items()}

    def check(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> None:
        """Refuses to take out more of the own entries than there are.

        Raises:
            UnknownQueryError: One is removed more often than it was added.
        """
        if origin != LOCAL:
            return
        entering = Counter(added)
        for entry, count in Counter(removed).items():
            if count > self._origins.get(entry, {}).get(LOCAL, 0) + entering[entry]:
                raise UnknownQueryError("query.unknown", id=entry)

    def add(self, origin: str, entry: str) -> bool:
        """Takes an entry in; whether anything changed."""
        origins = self._origins.setdefault(entry, {})
        if origin in origins and origin != LOCAL:
            return False
        origins[origin] = origins.get(origin, 0) + 1
        return True

    def discard(self, origin: str, entry: str) -> bool:
        """Takes an entry out, once; whether anything changed."""
        origins = self._origins.get(entry, {})
        if origin not in origins:
            return False
        origins[origin] -= 1
        if not origins[origin]:
            del origins[origin]
            if not origins:
                del self._origins[entry]
        return True

    def origins(self, entry: str) -> Collection[str]:
        """Return the origins of an entry."""
        return self._origins.get(entry, {}).keys()

    def of(self, origin: str) -> frozenset[str]:
        """Return the entries of an origin. Cost: linear in all entries."""
        return frozenset(entry for entry, origins in self._origins.items() if origin in origins)

    def items(self) -> Iterable[tuple[str, Mapping[str, int]]]:
        """Entries and how often each origin asks for them."""
        return self._origins.items()

    def __contains__(self, entry: object) -> bool:
        return entry in self._origins

    def __iter__(self) -> Iterator[str]:
        return iter(self._origins)

    def __len__(self) -> int:
        """Distinct entries."""
        return len(self._origins)

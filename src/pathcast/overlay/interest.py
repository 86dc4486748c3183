"""The entries that a broker tells each neighbour: those of all other origins, minimised.

Entries come from *origins*: the profiles of this broker, and its neighbours, which tell what stands
behind them. Each neighbour is told the entries of all origins but itself (Aggregate: to the
neighbour they are this broker's, whoever had them first), with `covering` without those that others
cover. It is told in deltas. An entry that goes is missed only by those
that nobody else asks for, and what it alone covered is told again; forgetting that is how broker
networks lose routes.

What is told of an entry is one of five things: nothing, to all, to all but one, to one only. So a
change costs the same for two neighbours and for a thousand, and tables for all of them take the
memory of one.

Example:
    >>> interests = Interests(covering=True)
    >>> _ = interests.set_neighbours(["east", "west"])
    >>> interests.update(LOCAL, ["/a/b", "/a/c"], [])["west"]
    Delta(added=('/a/b', '/a/c'), removed=())
    >>> interests.update("east", ["//b"], [])
    {'west': Delta(added=('//b',), removed=('/a/b',))}
    >>> interests.update("east", [], ["//b"])       # what it covered is told again
    {'west': Delta(added=('/a/b',), removed=('//b',))}

It sends nothing and knows no epochs.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1: Collect() and Aggregate(), in deltas.
Differs: one table for each neighbour of a spanning tree in place of one for each root and child.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pathcast.overlay.content import LOCAL, Delta
from pathcast.overlay.covered import CoveredEntries, RankedEntry
from pathcast.overlay.origins import EntriesByOrigin


@dataclass(frozen=True, slots=True)
class _Audience:
    """The neighbours that are told an entry: all but one, one only, all, or none.

    Attributes:
        is_all: Whether all are told.
        other: The neighbour for whom the contrary holds.
    """

    is_all: bool
    other: str | None = None

    def has(self, neighbour: str) -> bool:
        return (neighbour != self.other) == self.is_all


_NOBODY: Final = _Audience(False)
_EVERYBODY: Final = _Audience(True)


class Interests:
    """The interests of a broker and what each neighbour is told of them.

    Args:
        covering: Whether entries that others cover are not told. Without it every distinct entry is
            told, and none is read.
    """

    def __init__(self, *, covering: bool = False) -> None:
        self._neighbours: tuple[str, ...] = ()
        self._entries = EntriesByOrigin()
        self._audiences: dict[str, _Audience] = {}
        self._covered = CoveredEntries() if covering else None
        self._covers: dict[str, tuple[str, ...]] = {}
        self._covering: dict[str, dict[str, None]] = {}
        self._ranked: dict[str, RankedEntry] = {}

    def update(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> dict[str, Delta]:
        """Takes what changes of what an origin asks for.

        Args:
            origin: `LOCAL`, whose entries are counted, one for each profile; or a neighbour, whose
                entries are a set.
            added: Entries that it asks for; a neighbour may name one that it named before.
            removed: Entries that it asks for no longer, after what is added.

        Returns:
            For each neighbour that has to be told something, what changes for it.

        Raises:
            UnknownQueryError: A local entry is removed more often than it was added.
            QuerySyntaxError: It is no entry, which only covering can tell.

            Nothing is changed then.

        Cost: some microseconds an entry. With covering an entry is read, about a millisecond, and
        compared with those that it may cover or be covered by.
        """
        added, removed = list(added), list(removed)
        is_new = not (self._entries or self._neighbours or removed)
        if is_new and origin == LOCAL and self._covered is None:
            # A broker begins, and nobody is told yet: that is most of what a start would cost.
            self._entries.begin(added)
            self._audiences = dict.fromkeys(added, _EVERYBODY)
            added = []
        self._entries.check(origin, added, removed)
        self._read(added)
        touched: dict[str, None] = {}
        for entry in added:
            self._enter(origin, entry, touched)
        for entry in removed:
            self._leave(origin, entry, touched)
        self._ranked.clear()
        return self._deltas(touched)

    def set_neighbours(self, names: Iterable[str]) -> dict[str, Delta]:
        """Says who the neighbours are; the entries of those that are lost are gone.

        Returns:
            For each neighbour that has to be told something, what changes for it; for a new one
            that is everything.
        """
        before = set(self._neighbours)
        self._neighbours = tuple(sorted(set(names)))
        kept = {LOCAL, *self._neighbours}
        touched: dict[str, None] = {}
        for entry, origins in list(self._entries.items()):
            for origin in [each for each in origins if each not in kept]:
                self._leave(origin, entry, touched)
        old = [name for name in self._neighbours if name in before]
        deltas = self._deltas(touched, old)
        for name in self._neighbours:
            if name not in before and (told := self.told(name)):
                deltas[name] = Delta(tuple(sorted(told)))
        return dict(sorted(deltas.items()))

    def told(self, neighbour: str) -> frozenset[str]:
        """All that a neighbour is told. Cost: linear in all entries."""
        return frozenset(
            entry for entry, audience in self._audiences.items() if audience.has(neighbour)
        )

    def entries(self, origin: str) -> frozenset[str]:
        """All that an origin asks for, as it said it. Cost: linear in all entries."""
        return self._entries.of(origin)

    def __len__(self) -> int:
        """Distinct entries, also those that others cover."""
        return len(self._entries)

    def _read(self, added: list[str]) -> None:
        """Reads entries that are new, if there is covering."""
        if self._covered is not None:
            new = [entry for entry in dict.fromkeys(added) if entry not in self._entries]
            self._ranked = {entry: RankedEntry(entry) for entry in new}

    def _enter(self, origin: str, entry: str, touched: dict[str, None]) -> None:
        before = self._seen(entry)
        if self._entries.add(origin, entry):
            self._changed(entry, before, touched)

    def _leave(self, origin: str, entry: str, touched: dict[str, None]) -> None:
        before = self._seen(entry)
        if self._entries.discard(origin, entry):
            self._changed(entry, before, touched)

    def _changed(self, entry: str, before: _Audience, touched: dict[str, None]) -> None:
        """Notes that who asks for an entry has changed."""
        touched[entry] = None
        if self._covered is not None and self._seen(entry) != before:
            self._cover_again(entry, before, touched)

    def _seen(self, entry: str) -> _Audience:
        """Which neighbours somebody else asks for an entry for."""
        origins = self._entries.origins(entry)
        if not origins:
            return _NOBODY
        if len(origins) > 1 or LOCAL in origins:
            return _EVERYBODY
        return _Audience(True, next(iter(origins)))

    def _audience(self, entry: str) -> _Audience:
        """Return the neighbours to tell: those that see the entry and none that covers it."""
        seen = self._seen(entry)
        if not seen.is_all:
            return _NOBODY
        unseen = self._unseen_by(self._covers.get(entry, ()))
        if unseen is None:
            return seen
        return _Audience(False, unseen) if unseen not in (LOCAL, seen.other) else _NOBODY

    def _unseen_by(self, covers: tuple[str, ...]) -> str | None:
        """The one neighbour that sees none of what covers; `LOCAL` for no neighbour.

        None if there is nothing that covers.
        """
        others = {self._seen(each).other for each in covers}
        if not others:
            return None
        only = next(iter(others))
        return LOCAL if len(others) > 1 or only is None else only

    def _cover_again(self, entry: str, before: _Audience, touched: dict[str, None]) -> None:
        """Finds what covers what, after it changed which neighbours see an entry."""
        assert self._covered is not None
        lost = list(self._covering.get(entry, ()))
        if entry not in self._entries:
            self._uncover(entry)
            self._covered.discard(entry)
        elif before == _NOBODY:
            self._covered.add(self._ranked.get(entry) or RankedEntry(entry))
            self._find_covers(entry)
        for special in lost:
            if self._seen(entry) != _EVERYBODY:
                self._find_covers(special)
            touched[special] = None
        if entry in self._entries:

            def gains(special: str) -> bool:
                return self._gains(self._covers.get(special, ()), entry)

            for special in list(self._covered.behind(entry, gains)):
                self._set_covers(special, (*self._covers.get(special, ()), entry))
                touched[special] = None

    def _find_covers(self, entry: str) -> None:
        """Finds one entry that covers it and is seen by all, or two that together are."""
        assert self._covered is not None
        found: tuple[str, ...] = ()

        def gains(general: str) -> bool:
            return self._gains(found, general)

        for general in self._covered.before(entry, gains):
            found = (*found, general)
            if self._unseen_by(found) == LOCAL:
                break
        self._set_covers(entry, found)

    def _gains(self, covers: tuple[str, ...], general: str) -> bool:
        """Whether one more entry that covers something hides it from more neighbours."""
        unseen = self._unseen_by(covers)
        return unseen is None or unseen not in (LOCAL, self._seen(general).other)

    def _set_covers(self, entry: str, found: tuple[str, ...]) -> None:
        self._uncover(entry)
        if found:
            self._covers[entry] = found
            for general in found:
                self._covering.setdefault(general, {})[entry] = None

    def _uncover(self, entry: str) -> None:
        """Forgets what covers an entry."""
        for general in self._covers.pop(entry, ()):
            specials = self._covering[general]
            del specials[entry]
            if not specials:
                del self._covering[general]

    def _deltas(
        self, touched: Iterable[str], neighbours: Iterable[str] | None = None
    ) -> dict[str, Delta]:
        """Says to whom what was touched is told now, and to whom no longer."""
        names = self._neighbours if neighbours is None else tuple(neighbours)
        added: dict[str, list[str]] = {}
        removed: dict[str, list[str]] = {}
        for entry in touched:
            was = self._audiences.get(entry, _NOBODY)
            now = self._audience(entry)
            if now == was:
                continue
            if now == _NOBODY:
                del self._audiences[entry]
            else:
                self._audiences[entry] = now
            for name in _who_may_notice(was, now, names):
                if now.has(name) != was.has(name):
                    (added if now.has(name) else removed).setdefault(name, []).append(entry)
        return {
            name: Delta(tuple(sorted(added.get(name, ()))), tuple(sorted(removed.get(name, ()))))
            for name in names
            if name in added or name in removed
        }


def _who_may_notice(was: _Audience, now: _Audience, names: tuple[str, ...]) -> Iterator[str]:
    if was.is_all != now.is_all:
        return iter(names)
    others = {was.other, now.other}
    return (name for name in names if name in others)

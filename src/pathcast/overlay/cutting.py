"""What brokers tell each other about early projection, and what they make of it on their links.

Every profile says, in an entry beside its routing entries, what would be left of a message that
was cut for it: the offer of `pathcast.overlay.projection`, or that it has to see messages whole.
Entries go up as all others do, in deltas, from neighbour to neighbour; who needs messages whole
makes the rest needless, so a neighbour is told that instead of it.

Example:
    >>> told = ToldCuts()
    >>> _ = told.set_neighbours(["west"])
    >>> one, two = (cut_entry(Subscription("s", "ann", f"/batch/order[{n}]/no")) for n in "xy")
    >>> [len(change.added) for change in told.update(LOCAL, [one, two], []).values()]
    [2]
    >>> told.update(LOCAL, [WHOLE], [])["west"] == Delta((WHOLE,), tuple(sorted([one, two])))
    True
    >>> cuts = LinkCuts()
    >>> cuts.update("east", [one], [])
    >>> batch = b"<batch><order><no>7</no></order><order><x/><no>8</no></order></batch>"
    >>> cuts.cut([batch], {"east": [0], "west": [0]})["east"]
    [b'<batch><order><x/><no>8</no></order></batch>']

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.2. Differs: the paper propagates the query
that all have in common and computes remainders at the parent; here what each asks for goes up, and
what is common is found where messages are cut, so that a profile that goes leaves nothing behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final

import msgspec

from pathcast.customize.selector import Select, Selector
from pathcast.errors import QuerySyntaxError
from pathcast.model import Subscription
from pathcast.overlay.interest import LOCAL, Delta, Interests
from pathcast.overlay.projection import SELECTS_MAX, Offer, Projections, common, offer_of
from pathcast.query.names import NCNAME_PATTERN
from pathcast.query.xquery.syntax import NameTest

__all__ = ["LOCAL", "WHOLE", "LinkCuts", "ToldCuts", "cut_entry", "is_cut_entry", "offer_in"]

TRIAL_MESSAGES: Final = 256
"""Messages of a link after which it is seen whether it pays to cut them."""

PAYS: Final = 1 / 16
"""Share of their bytes that has to have been saved."""

REST_MESSAGES: Final = 4096
"""Messages that a link where it does not pay is sent as they are, before it is tried again."""


class _Whole(msgspec.Struct, frozen=True, tag="whole"):
    """A profile that has to see messages whole."""


class _Units(msgspec.Struct, frozen=True, tag="units"):
    """A profile of which no result changes if units are cut out in which it selects nothing.

    Attributes:
        unit: Names of a path of child steps to the units, as (namespace URI, local name).
        select: Query that selects in them.
        namespaces: Its bindings, as (prefix, URI).
    """

    unit: Annotated[tuple[tuple[str, str], ...], msgspec.Meta(min_length=2, max_length=256)]
    select: str
    namespaces: tuple[tuple[str, str], ...] = ()


_DECODER: Final = msgspec.json.Decoder(_Whole | _Units)

WHOLE: Final = msgspec.json.encode(_Whole()).decode()
"""The entry of a profile that has to see messages whole."""


def is_cut_entry(entry: str) -> bool:
    """Whether an entry is about what may be cut; others are paths."""
    return entry.startswith("{")


def cut_entry(subscription: Subscription) -> str:
    """The entry of a profile.

    Raises:
        QuerySyntaxError: Its query cannot be used.
        UnsupportedQueryError: Likewise.

    Cost: 0.4 ms.
    """
    offer = offer_of(subscription)
    if offer is None:
        return WHOLE
    (select,) = offer.selects
    unit = tuple((name.uri or "", name.local or "") for name in offer.unit)
    return msgspec.json.encode(_Units(unit, select.query, select.namespaces)).decode()


@lru_cache(maxsize=65_536)
def offer_in(entry: str) -> Offer | None:
    """The offer that an entry makes; None if it asks for whole messages.

    Raises:
        QuerySyntaxError: It is no entry.
    """
    try:
        read = _DECODER.decode(entry)
    except (msgspec.DecodeError, RecursionError) as error:
        raise QuerySyntaxError("XPST0003", query=entry, offset=0, reason=str(error)) from None
    if isinstance(read, _Whole):
        return None
    unit = tuple(NameTest(uri, local) for uri, local in read.unit)
    for name in unit:
        if not NCNAME_PATTERN.fullmatch(name.local or ""):
            reason = f"{name.local!r} is no name of an element"
            raise QuerySyntaxError("XPST0003", query=entry, offset=0, reason=reason)
    return Offer(unit, frozenset([Select(read.select, read.namespaces)]))


class ToldCuts:
    """What each neighbour is told of what may be cut; as `pathcast.overlay.interest.Interests`.

    What all others ask for, or `WHOLE` alone if one of them does, or if they are so many that they
    are no offer together.
    """

    def __init__(self) -> None:
        self._all = Interests()
        self._counts: dict[str, int] = {}
        self._is_whole: dict[str, bool] = {}

    def update(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> dict[str, Delta]:
        """As `Interests.update`."""
        return self._as_told(self._all.update(origin, added, removed))

    def set_neighbours(self, names: Iterable[str]) -> dict[str, Delta]:
        """As `Interests.set_neighbours`."""
        names = set(names)
        for name in self._counts.keys() - names:
            del self._counts[name], self._is_whole[name]
        for name in names - self._counts.keys():
            self._counts[name], self._is_whole[name] = 0, False
        return self._as_told(self._all.set_neighbours(names))

    def told(self, neighbour: str) -> frozenset[str]:
        """As `Interests.told`."""
        return _told(self._all.told(neighbour))

    def entries(self, origin: str) -> frozenset[str]:
        """As `Interests.entries`."""
        return self._all.entries(origin)

    def from_scratch(self) -> dict[str, frozenset[str]]:
        """As `Interests.from_scratch`."""
        return {name: _told(entries) for name, entries in self._all.from_scratch().items()}

    def _as_told(self, deltas: Mapping[str, Delta]) -> dict[str, Delta]:
        changes = {}
        for name, delta in deltas.items():
            was_whole = self._is_whole[name] or self._counts[name] > SELECTS_MAX
            self._counts[name] += len(delta.added) - len(delta.removed)
            is_whole = WHOLE not in delta.removed and (self._is_whole[name] or WHOLE in delta.added)
            self._is_whole[name] = is_whole
            is_whole = is_whole or self._counts[name] > SELECTS_MAX
            if is_whole != was_whole:
                now = self._all.told(name)
                before = (now - set(delta.added)) | set(delta.removed)
                was, told = _told(before), _told(now)
                delta = Delta(tuple(sorted(told - was)), tuple(sorted(was - told)))
            elif is_whole:
                continue
            if delta.added or delta.removed:
                changes[name] = delta
        return changes


def _told(entries: frozenset[str]) -> frozenset[str]:
    is_whole = WHOLE in entries or len(entries) > SELECTS_MAX
    return frozenset([WHOLE]) if is_whole else entries


@dataclass(slots=True)
class _Yield:
    """What came of cutting lately on one link."""

    messages: int = 0
    given: int = 0
    sent: int = 0
    rest: int = 0


class LinkCuts:
    """What is cut on the links of a broker, by what neighbours have told.

    On a link where it saves less than `PAYS` it is given up for a while.

    Args:
        engine: "kernel" (default) or "nfa".
        never: Neighbours that are always sent messages as they are.
    """

    def __init__(self, engine: str | None = None, never: Collection[str] = ()) -> None:
        self._never = frozenset(never)
        self._entries: dict[str, set[str]] = {}
        self._changed: set[str] = set()
        self._projections = Projections(engine=engine)
        self._trial = Selector([], engine, threads=1)
        self._yields: dict[str, _Yield] = {}
        self.saved: Counter[str] = Counter()
        """Neighbour -> bytes that it was not sent."""

    def check(self, entries: Iterable[str]) -> None:
        """Raises QuerySyntaxError or UnsupportedQueryError if one is no entry."""
        for entry in entries:
            offer = offer_in(entry)
            if offer is not None:
                selects = dict(enumerate(offer.selects))
                self._trial.add(selects)
                self._trial.remove(selects)

    def update(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> None:
        """Takes what changes of what a neighbour tells; as `Interests.update`."""
        entries = self._entries.setdefault(origin, set())
        entries.update(added)
        entries.difference_update(removed)
        self._changed.add(origin)

    def forget(self, origin: str) -> None:
        """A neighbour is gone, with what it told."""
        self._entries.pop(origin, None)
        self._yields.pop(origin, None)
        self._changed.add(origin)

    def cut(
        self, bodies: Sequence[bytes], wanted: Mapping[str, Sequence[int]]
    ) -> dict[str, list[bytes | None]]:
        """As `pathcast.overlay.content.Interests.cut`."""
        self._take_changes()
        tried = {name: rows for name, rows in wanted.items() if self._is_tried(name, len(rows))}
        sent = self._projections.project_all(bodies, tried)
        for name, rows in wanted.items():
            if name in tried:
                self._count(name, [bodies[row] for row in rows], sent[name])
            else:
                sent[name] = [bodies[row] for row in rows]
        return sent

    def is_cutting(self, name: str) -> bool:
        """As `pathcast.overlay.content.Interests.is_cutting`."""
        self._take_changes()
        return name in self._projections and self._is_tried(name, 0)

    def _take_changes(self) -> None:
        for name in sorted(self._changed):
            entries = self._entries.get(name, set()) if name not in self._never else set()
            self._projections.set(name, common(map(offer_in, entries)))
        self._changed.clear()

    def _is_tried(self, name: str, messages: int) -> bool:
        found = self._yields.setdefault(name, _Yield())
        found.rest = max(0, found.rest - messages)
        return not found.rest

    def _count(self, name: str, given: Sequence[bytes], sent: Sequence[bytes | None]) -> None:
        found = self._yields[name]
        bytes_given, bytes_sent = sum(map(len, given)), sum(len(each) for each in sent if each)
        self.saved[name] += bytes_given - bytes_sent
        found.messages += len(given)
        found.given += bytes_given
        found.sent += bytes_sent
        if found.messages >= TRIAL_MESSAGES:
            pays = found.given - found.sent >= PAYS * found.given
            self._yields[name] = _Yield(rest=0 if pays else REST_MESSAGES)

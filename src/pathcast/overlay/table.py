"""The table that a broker runs: entries of all its neighbours and its own, and who wants a message.

Equal entries are one, whoever asks for them, and who asks is a target of a `RoutingTable`: what
leads only to those that a message has reached is not looked at any more. A routing table does not
change, so there are several, each at least four times as large as the next: what is new is a small
one, and is joined with those that are not much larger before the next message.

Example:
    >>> from pathcast.overlay.content import LOCAL
    >>> table = Table()
    >>> table.set(LOCAL, ["/order/to[.='Bern']"], [])
    >>> table.set("east", ["//item[@sku='A7'] and //to", "/recall"], [])
    >>> messages = [b"<order><item sku='A7'/><to>Bern</to></order>", b"<recall/>", b"<recall"]
    >>> [sorted(origins) for origins in table.route(messages)]
    [['', 'east'], ['east'], []]

It sends nothing, and makes entries no fewer: `interest` does.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1 (one combined network, several targets).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pathcast.engine import Router, RoutingTable
from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.model import RoutingEntry
from pathcast.overlay.arriving_routes import MessageDecisions, Streams
from pathcast.overlay.origins import EntriesByOrigin
from pathcast.query import conjunction_of

GROWTH: Final = 4
"""How many times as large as the next a routing table is at least."""

PARTS_MAX: Final = 16
"""Routing tables that wait for a message to be joined."""

GONE_SHARE: Final = 64
"""One of so many entries that is gone has all of them made anew."""

BUILD: Final = 8.0
"""Microseconds that an entry costs when routing tables are made anew."""

FURTHER: Final = 5.0
"""Microseconds that a message costs for each routing table after the first, of few entries."""

IN_VAIN: Final = 20.0
"""Microseconds that a message may cost which goes to somebody who has just stopped asking."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of the entries, as a routing table."""

    entries: tuple[str, ...]
    router: Router
    streams: Streams


class Table:
    """Entries and who asks for each.

    Args:
        limits: What one message may cost.
    """

    def __init__(self, *, limits: Limits | None = None) -> None:
        self._limits = limits
        self._entries = EntriesByOrigin()
        self._targets: dict[str, int] = {}
        self._asked: Counter[str] = Counter()
        self._parts: list[_Part] = []
        self._gone = 0
        self._paid = 0.0
        self._version = 0

    def set(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> None:
        """Takes what changes of what an origin asks for; as `Interests.update`.

        Raises:
            UnknownQueryError: A local entry is removed more often than it was added.
            QuerySyntaxError: It is no entry. Nothing is changed then.

        Cost: 8 µs an entry that is new, and again each of the few times that tables are joined.
        """
        added, removed = list(added), list(removed)
        self._entries.check(origin, added, removed)
        entering = [each for each in added if origin not in self._entries.origins(each)]
        if entering:
            target = self._targets.setdefault(origin, len(self._targets))
            self._parts.append(self._part(dict.fromkeys(entering, 1 << target)))
            self._asked[origin] += len(self._parts[-1].entries)
        self._version += 1
        for entry in added:
            self._entries.add(origin, entry)
        for entry in removed:
            self._remove(origin, entry)
        is_worn = self._gone * GONE_SHARE > len(self._entries)
        if is_worn or len(self._parts) > PARTS_MAX:
            self._join(is_whole=is_worn)

    def check(self, entries: Iterable[str]) -> None:
        """Refuses what is no entry.

        Raises:
            QuerySyntaxError: A part of it is no path.
            UnsupportedQueryError: It takes more than paths to say it.

        Cost: linear in the text of an entry that is new.
        """
        for entry in entries:
            if entry not in self._entries:
                conjunction_of(entry)

    def entries(self, origin: str) -> frozenset[str]:
        """Return the entries of an origin. Cost: linear in all entries."""
        return self._entries.of(origin)

    def route(self, messages: Sequence[bytes]) -> list[frozenset[str]]:
        """For each message who wants it; nobody, where the door refuses it.

        Who may want it and could not be told within the limits counts as wanting it. So may, for
        some time, who has stopped asking for an entry of very many.

        Cost: a pass over the message for each routing table, one as a rule.
        """
        self._join(is_whole=self._is_paid_by(len(messages)))
        names, nobody = self._names(), frozenset[str]()
        reached = [nobody] * len(messages)
        for part in self._parts:
            for row, targets in enumerate(part.router.route(messages).lists()):
                if targets:
                    reached[row] |= {names[each] for each in targets if each in names}
        return reached

    def decisions(self, size: int) -> MessageDecisions:
        """Begin decisions on an arriving message of so many bytes, by the present entries."""
        self._join(is_whole=self._is_paid_by(1))
        version = self._version
        return MessageDecisions(
            [part.streams for part in self._parts],
            self._names(),
            size,
            lambda: self._version == version,
        )

    def __len__(self) -> int:
        """Distinct entries."""
        return len(self._entries)

    def _names(self) -> dict[int, str]:
        """Target -> origin, of those that ask for something."""
        return {number: name for name, number in self._targets.items() if self._asked[name]}

    def _remove(self, origin: str, entry: str) -> None:
        was_asked = self._entries.discard(origin, entry)
        if was_asked and origin not in self._entries.origins(entry):
            self._asked[origin] -= 1
            self._gone += 1

    def _part(self, targets: dict[str, int]) -> _Part:
        """A routing table of entries, each with its targets as a mask.

        Raises:
            QuerySyntaxError: One is no entry.
        """
        try:
            made = self._routing_table(targets, _paths_as_written)
        except ConfigError:
            made = self._routing_table(targets, _paths_of)
        return _Part(tuple(targets), made.router(threads=1), Streams(made))

    def _routing_table(
        self, targets: Mapping[str, int], paths_of: Callable[[str], tuple[str, ...]]
    ) -> RoutingTable:
        """Raises ConfigError if a path is not in canonical text."""
        rows = [RoutingEntry(paths_of(entry), mask) for entry, mask in targets.items()]
        return RoutingTable(rows, len(self._targets), limits=self._limits)

    def _join(self, *, is_whole: bool) -> None:
        """Joins routing tables until each is large beside the next, or all of them."""
        if is_whole:
            held: list[str] = list(self._entries)
            self._parts = []
            self._gone, self._paid = 0, 0.0
        elif len(self._parts) < 2 or not self._is_small(self._parts[-2], self._parts[-1].entries):
            return
        else:
            held = list(self._parts.pop().entries)
            while self._parts and self._is_small(self._parts[-1], held):
                held += self._parts.pop().entries
        masks = {entry: self._mask(entry) for entry in held if entry in self._entries}
        if masks:
            self._parts.append(self._part(masks))

    def _is_small(self, part: _Part, beside: Sequence[str]) -> bool:
        return len(part.entries) < GROWTH * len(beside)

    def _mask(self, entry: str) -> int:
        return sum(1 << self._targets[origin] for origin in self._entries.origins(entry))

    def _is_paid_by(self, messages: int) -> bool:
        """Whether messages have paid, with these, as much as making all anew costs.

        So, whatever comes, no more than twice of what the best times for it would have cost.
        """
        further = max(0, len(self._parts) - 1)
        self._paid += messages * (FURTHER * further + IN_VAIN * (self._gone > 0))
        return (further > 0 or self._gone > 0) and self._paid >= BUILD * len(self._entries)


def _paths_as_written(entry: str) -> tuple[str, ...]:
    """The paths of an entry; of one path in canonical text it is the text."""
    return _paths_of(entry) if " and " in entry else (entry,)


def _paths_of(entry: str) -> tuple[str, ...]:
    """The paths of an entry in canonical text.

    Raises:
        QuerySyntaxError: It is no entry.
    """
    return tuple(path.text for path in conjunction_of(entry).paths)

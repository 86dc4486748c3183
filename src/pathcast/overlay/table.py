"""The table that a broker runs: entries of all its neighbours and its own, and who wants a message.

Equal entries are one, whoever asks for them, and all of them are one index: what several have in
common is done once. A change counts from the next message on.

Example:
    >>> table = Table(engine="reference")
    >>> table.set(LOCAL, ["/order/to[.='Bern']"], [])
    >>> table.set("east", ["//item[@sku='A7'] and //to", "/recall"], [])
    >>> messages = [b"<order><item sku='A7'/><to>Bern</to></order>", b"<recall/>", b"<recall"]
    >>> [sorted(origins) for origins in table.route(messages)]
    [['', 'east'], ['east'], []]

It sends nothing, and makes entries no fewer: `interest` does.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1 (one combined network, several targets).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pathcast.engine import QueryIndex
from pathcast.engine.messages import Messages
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.overlay.arriving_routes import ArrivingRoutes, MessageDecisions
from pathcast.overlay.origins import LOCAL, EntriesByOrigin

__all__ = ["LOCAL", "RoutedMessages", "Table"]

FIRST_MESSAGE: Final = 0.4
"""Microseconds that the first message after a change costs for each change since the merge."""

EACH_MESSAGE: Final = 0.03
"""Microseconds that every message costs for each change since the merge."""

MERGE: Final = 3.7
"""Microseconds that a merge costs for each entry; all three measured at 100,000 entries."""


@dataclass(frozen=True)
class RoutedMessages:
    """Where the messages of a batch are to go.

    Attributes:
        origins: For each message who wants it; nobody, where it was refused. Who may want it and
            could not be told within the limits counts as wanting it.
        errors: Place in the batch -> why the door refused the message.
    """

    origins: list[frozenset[str]]
    errors: Mapping[int, PathcastError]


class Table:
    """Entries and who asks for each.

    Args:
        engine: As for `QueryIndex`.
        limits: What one message may cost.
    """

    def __init__(self, *, engine: str | None = None, limits: Limits | None = None) -> None:
        self._entries = EntriesByOrigin()
        self._index = _EntryIndex(engine, limits)
        self._arriving = ArrivingRoutes(self._entries, engine, limits)

    def set(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> None:
        """Takes what changes of what an origin asks for; as `Interests.update`.

        Raises:
            UnknownQueryError: A local entry is removed more often than it was added.
            QuerySyntaxError: It is no entry. Nothing is changed then.

        Cost: 20 µs an entry that is new; the first message after it pays for the changes since the
            last merge, and now and then for a merge (`FIRST_MESSAGE`, `MERGE`).
        """
        added, removed = list(added), list(removed)
        self._entries.check(origin, added, removed)
        entering = [entry for entry in dict.fromkeys(added) if entry not in self._entries]
        if entering:
            self._index.change(entering, [])
        self._arriving.changed()
        for entry in added:
            self._entries.add(origin, entry)
        leaving = []
        for entry in removed:
            if self._entries.discard(origin, entry) and entry not in self._entries:
                leaving.append(entry)
        if leaving:
            self._index.change([], leaving)

    def entries(self, origin: str) -> frozenset[str]:
        """What an origin asks for. Cost: linear in all entries."""
        return self._entries.of(origin)

    def route(self, messages: Messages) -> list[frozenset[str]]:
        """For each message who wants it."""
        return self.routed(messages).origins

    def routed(self, messages: Messages) -> RoutedMessages:
        """For each message who wants it, and what was refused.

        Args:
            messages: As for `Matcher.match_batch`.

        Cost: a match, and a look-up for each entry that holds.
        """
        found, errors = self._index.holding(messages)
        origins = self._entries.origins
        return RoutedMessages(
            [frozenset(each for entry in entries for each in origins(entry)) for entries in found],
            errors,
        )

    def decisions(self, size: int) -> MessageDecisions | None:
        """Who wants a message of so many bytes that is arriving; see `ArrivingRoutes`."""
        return self._arriving.decisions(size)

    def __len__(self) -> int:
        """Distinct entries."""
        return len(self._entries)


class _EntryIndex:
    """Entries as queries of an index.

    The index keeps what changed apart from the rest, and messages pay for that until it is merged.
    It is merged when messages have paid as much as a merge costs: so, whatever comes, no more than
    twice of what the best times for merges would have cost.
    """

    def __init__(self, engine: str | None, limits: Limits | None) -> None:
        self._index = QueryIndex(engine=engine, limits=limits)
        self._matcher = self._index.matcher(threads=1)
        self._changes = 0
        self._is_changed = False
        self._paid = 0.0

    def change(self, added: list[str], removed: list[str]) -> None:
        """Takes entries in, or takes some out; if one of the former is none, changes nothing.

        Raises:
            QuerySyntaxError: It is no entry.
        """
        report = self._index.register(Query(entry, entry) for entry in added)
        for error in report.rejected.values():
            self._index.remove([entry for entry in added if entry in self._index])
            raise error
        self._index.remove(removed)
        self._changes += len(added) + len(removed)
        self._is_changed = True

    def holding(self, messages: Messages) -> tuple[list[list[str]], dict[int, PathcastError]]:
        """For each message the entries that hold, or may hold; and what was refused."""
        batch = list(self._matcher.match_batch(messages))
        self._pay(len(batch))
        found = [[*result.query_ids, *result.verdicts] for result in batch]
        return found, {at: each.error for at, each in enumerate(batch) if each.error is not None}

    def _pay(self, messages: int) -> None:
        """Counts what changes have cost, and merges them when that is enough."""
        self._paid += (FIRST_MESSAGE * self._is_changed + EACH_MESSAGE * messages) * self._changes
        self._is_changed = False
        if self._changes and self._paid >= MERGE * len(self._index):
            self._index.compact()
            self._changes, self._paid = 0, 0.0

"""Rows of subscriptions in the registry that answers them.

A query that several subscribers want is compiled once; the same id with another query or other
steps, or delivered in another way, is rejected, since a delivery names the query by its id. All
that check, match or deliver the subscriptions of a file take them up here, and so take and reject
the same.

Example:
    >>> from pathcast.registry.delimited import TextPlace
    >>> rows = [
    ...     Subscription("q1", "ann", "//a", "ids"),
    ...     Subscription("q1", "bob", "//a", "ids"),
    ...     Subscription("q2", "bob", "//a[", "ids"),
    ... ]
    >>> places = [TextPlace("s.tsv", line) for line in (2, 3, 4)]
    >>> engines = SubscriptionEngines(Limits(), {})
    >>> taken = engines.take_up(SubscriptionRows(rows, places, []))
    >>> list(taken.takers), [str(row.place) for row in taken.rejected], len(engines.registry)
    ([('ann', 'q1'), ('bob', 'q1')], ['s.tsv:4'], 1)

Where a row is not valid any more, the last valid version of its subscription can be answered in its
place: `take_up` asks for it, and a rejected row says which it is.

It reads no files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from pathcast.engine.lazy_warnings import LazyWarnings
from pathcast.errors import DuplicateQueryError, PathcastError
from pathcast.limits import Limits
from pathcast.model import QueryWarning, Subscription
from pathcast.registry.delimited import TextPlace
from pathcast.registry.registry import Registry
from pathcast.registry.subscription_rows import (
    RejectedSubscription,
    SubscriptionKey,
    SubscriptionRows,
    WarnedSubscription,
)

LastValid: TypeAlias = Callable[
    [Collection[SubscriptionKey]], Mapping[SubscriptionKey, Subscription]
]
"""Gives the last valid versions of some subscriptions, of those that have one."""


class TakenRows(NamedTuple):
    """The outcome of registering rows.

    Attributes:
        takers: Subscriber and id of the query -> the row and its place, in the order of the rows;
            then the last valid versions that are answered in place of rejected rows.
        rejected: What was not taken up, and why: what was no row first, then in the order of rows.
    """

    takers: Mapping[tuple[str, str], tuple[Subscription, TextPlace]]
    rejected: list[RejectedSubscription]


class SubscriptionEngines:
    """The distinct queries of subscriptions, compiled, changed as the rows change.

    Args:
        limits: What a message may cost.
        namespaces: Prefixes for all queries.
        threads: Threads of one batch; None for all processors.

    Attributes:
        registry: The queries. What is delivered as an id is nobody's there.
    """

    def __init__(
        self,
        limits: Limits,
        namespaces: Mapping[str, str],
        threads: int | None = 1,
    ) -> None:
        self.registry = Registry(limits, namespaces, threads=threads)
        self._namespaces = dict(namespaces)
        # Query id -> what is compiled.
        self._held: dict[str, Subscription] = {}
        # Query id -> its warnings, once somebody has asked for them.
        self._warnings: dict[str, tuple[QueryWarning, ...]] = {}

    def take_up(self, found: SubscriptionRows, last_valid: LastValid | None = None) -> TakenRows:
        """Makes the queries of exactly these rows the ones that are answered.

        Args:
            found: All rows there are, and what is none.
            last_valid: Is asked for what is answered in place of rows that are rejected; None for
                nothing.

        Returns:
            Who takes what, and what was rejected.

        Cost: what came or changed is compiled; the rest is a look-up in a dictionary.
        """
        rejected = list(found.rejected)
        wanted: dict[str, Subscription] = {}
        takers: dict[tuple[str, str], tuple[Subscription, TextPlace]] = {}
        for row, place in zip(found.rows, found.places, strict=True):
            key = row.subscriber, row.id
            first = wanted.setdefault(row.id, row)
            if key in takers or not _is_same(first, row):
                error = DuplicateQueryError("query.duplicate", id=row.id)
                rejected.append(RejectedSubscription(row, error, place))
            else:
                takers[key] = row, place
        faults = self._become(wanted)
        if faults:
            for key, (row, place) in list(takers.items()):
                if row.id in faults:
                    rejected.append(RejectedSubscription(row, faults[row.id], place))
                    del takers[key]
        if last_valid is not None:
            self._keep_last_valid(takers, rejected, last_valid)
        return TakenRows(takers, rejected)

    def _keep_last_valid(
        self,
        takers: dict[SubscriptionKey, tuple[Subscription, TextPlace]],
        rejected: list[RejectedSubscription],
        last_valid: LastValid,
    ) -> None:
        """Takes up last valid versions in place of rejected rows; both arguments are changed.

        One whose id is taken by another query now cannot be answered: it is left out.
        """
        lost = {each.key for each in rejected} - takers.keys() - {None}
        if not lost:
            return
        found = last_valid([key for key in lost if key is not None])
        wanted = dict(self._held)
        kept = {
            key: row
            for key, row in sorted(found.items())
            if _is_same(wanted.setdefault(row.id, row), row)
        }
        faults = self._become(wanted) if kept else {}
        for number, each in enumerate(rejected):
            row = kept.get(each.key) if each.key is not None else None
            if row is not None and row.id not in faults:
                rejected[number] = replace(each, in_force=row)
                takers.setdefault((row.subscriber, row.id), (row, each.place))

    def warnings(self, taken: TakenRows) -> list[WarnedSubscription]:
        """The conditions of queries that never or always hold, by place; of a query once.

        Args:
            taken: What became of the rows that are taken up now.

        Cost: what `pathcast.query.query_warnings` costs, of queries that were not asked for before.
        """
        first: dict[str, tuple[Subscription, TextPlace]] = {}
        for row, place in taken.takers.values():
            first.setdefault(row.id, (row, place))
        fresh = [row for name, (row, _) in first.items() if name not in self._warnings]
        self._warnings |= dict.fromkeys((row.id for row in fresh), ())
        for warning in LazyWarnings(fresh, (), self._namespaces):
            self._warnings[warning.query_id] += (warning,)
        found = [
            WarnedSubscription(row, place, warning)
            for name, (row, place) in first.items()
            for warning in self._warnings[name]
        ]
        return sorted(found, key=lambda each: (each.place.path, each.place.line))

    @property
    def queries(self) -> Mapping[str, Subscription]:
        """Query id -> the query as one of its takers has it."""
        return self._held

    def _become(self, wanted: Mapping[str, Subscription]) -> Mapping[str, PathcastError]:
        """Makes the queries exactly these; gives those that are refused."""
        gone = [name for name, row in self._held.items() if not _is_same(row, wanted.get(name))]
        self.registry.remove(gone)
        for name in gone:
            del self._held[name]
            self._warnings.pop(name, None)
        new = [row for name, row in wanted.items() if name not in self._held]
        asked = [row._replace(subscriber="") if row.deliver == "ids" else row for row in new]
        refused = self.registry.add(asked).rejected
        self._held |= {row.id: row for row in new if row.id not in refused}
        return refused


def _is_same(row: Subscription, other: Subscription | None) -> bool:
    """Whether two rows are one query, whoever takes it."""
    if other is row:
        return True
    if other is None or (row.namespaces or {}) != (other.namespaces or {}):
        return False
    asked = other._replace(subscriber=row.subscriber, namespaces=row.namespaces)
    return row == asked

"""The registry of the reference: filter queries in a YFilter, subscriptions one by one.

It is the oracle of `pathcast.kernel.registry`, whose methods it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from pathcast.errors import DuplicateQueryError, PathcastError, ResultLimitError
from pathcast.limits import Limits
from pathcast.model import (
    MatcherOptions,
    OverBudget,
    Query,
    RegisterReport,
    StepData,
    StoredAnswer,
    StoredDeliveries,
    Subscription,
)
from pathcast_papers.filtering.index import ReferenceIndex
from pathcast_papers.filtering.matcher import ReferenceMatcher
from pathcast_papers.message_broker.set_version import sum_of_digests
from pathcast_papers.message_broker.stepped import SteppedReference

if TYPE_CHECKING:
    from pathcast_papers.message_broker.frozen import FrozenRegistry

_BUDGETS: Final = {"limit.evaluation_steps": False, "limit.message_steps": True}
"""Code of a verdict that is a budget's -> whether it is the message's."""


class ReferenceRegistry:
    """Filter queries and subscriptions that come and go.

    Args:
        limits: What one message may cost, and what its results may.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._index = ReferenceIndex({}, limits)
        # The filter queries as well, once something is delivered.
        self._subscriptions = SteppedReference(limits)

    def register(self, queries: Sequence[Query], namespaces: Mapping[str, str]) -> RegisterReport:
        """Adds filter queries."""
        taken = {row.id for row in queries if self._is_subscription(row.id)}
        fresh = [row for row in queries if row.id not in taken]
        places = [place for place, row in enumerate(queries) if row.id not in taken]
        found = self._index.register(fresh, namespaces).errors
        errors = {places[place]: error for place, error in found.items()}
        for place, row in enumerate(queries):
            if row.id in taken:
                errors[place] = DuplicateQueryError("query.duplicate", id=row.id)
        return RegisterReport.of(queries, errors)

    def register_gates(self, texts: Sequence[str]) -> RegisterReport:
        """Adds gates of the product, which may cast; the id is the text."""
        return self._index.register_gates(texts)

    def subscribe(
        self,
        subscriptions: Sequence[Subscription],
        namespaces: Mapping[str, str],
        steps: Mapping[int, Sequence[StepData]] | None = None,
    ) -> RegisterReport:
        """Adds subscriptions."""
        return self._subscriptions.subscribe(subscriptions, namespaces, steps, self._index)

    def unsubscribe(self, ids: Sequence[str]) -> None:
        """Takes queries and subscriptions out, all or none."""
        for name in ids:
            self.subscription(name)
        self._index.remove([name for name in ids if name in self._index])
        self._subscriptions.unsubscribe([name for name in ids if name in self._subscriptions])

    def subscription(self, subscription_id: str) -> Subscription:
        """The subscription as it was made, with all namespaces it may use."""
        if subscription_id in self._index:
            query = self._index.query(subscription_id)
            return Subscription(query.id, "", query.text, "ids", query.namespaces)
        return self._subscriptions.subscription(subscription_id)

    def ids(self) -> list[str]:
        """The ids of all."""
        return [*self._index.ids(), *self._others()]

    def match(
        self,
        messages: pa.Array | list[bytes | None],
        *,
        encoding: str | None = None,
        times: Sequence[int] = (),
    ) -> StoredAnswer:
        """Which of all hold of each message: a subscription does that is delivered something."""
        matcher = ReferenceMatcher(self._index, self.limits)
        found = matcher.match(messages, encoding=encoding)
        if not self._others():
            return found
        delivered = self._subscriptions.process(messages, encoding=encoding, times=times)
        known = cast("Sequence[str]", found.query_ids)
        first = len(known)
        rows = found.matches.to_pylist()
        ids = [*known, *cast("Sequence[str]", delivered.subscription_ids)]
        columns = (delivered.rows[name].to_pylist() for name in ("message", "subscription"))
        satisfied = set(zip(*columns, strict=True))
        over: list[tuple[int, int, bool]] = []
        others: list[tuple[int, int, PathcastError]] = []
        if found.over_budget is not None:
            over = list(zip(*(column.to_pylist() for column in found.over_budget), strict=True))
        for row, number, error in delivered.verdicts:
            if ids[first + number] in self._index:
                continue
            if isinstance(error, ResultLimitError):
                satisfied.add((row, number))
            elif error.code in _BUDGETS:
                over.append((row, first + number, _BUDGETS[error.code]))
            else:
                others.append((row, first + number, error))
        for row, number in sorted(satisfied):
            if ids[first + number] not in self._index:
                rows[row].append(first + number)
        stats = replace(
            found.stats,
            matches=sum(len(numbers or ()) for numbers in rows),
            steps=found.stats.steps + delivered.stats.steps,
            verdicts=len(over) + len(others),
        )
        types = (pa.int64(), pa.uint32(), pa.bool_())
        made = [
            pa.array([pair[at] for pair in sorted(over)], kind) for at, kind in enumerate(types)
        ]
        over_budget = OverBudget(*made) if over else None
        matches = pa.array(rows, found.matches.type)
        return StoredAnswer(matches, found.refusals, over_budget, stats, ids, others)

    def process(
        self,
        messages: pa.Array | list[bytes | None],
        *,
        encoding: str | None = None,
        done: Sequence[int] = (),
        times: Sequence[int] = (),
    ) -> StoredDeliveries:
        """The results of every message of a batch, to which so many steps were done before."""
        return self._delivering().process(messages, encoding=encoding, done=done, times=times)

    def filters(self) -> list[str]:
        """The ids of the filter queries."""
        return self._index.ids()

    def sum_of(self, ids: Sequence[str]) -> bytes:
        """The digests of some subscriptions, added up."""
        return sum_of_digests(map(self.subscription, ids))

    def steps(self, subscription_id: str) -> Sequence[StepData]:
        """The steps of a subscription, as they were read."""
        return self._subscriptions.steps(subscription_id)

    def freeze(self) -> FrozenRegistry:
        """All as they are now."""
        from pathcast_papers.message_broker.frozen import FrozenRegistry  # which imports this one

        return FrozenRegistry.of(self)

    def matcher(self, options: MatcherOptions) -> ReferenceMatcher:
        """A matcher of filter queries with limits of its own."""
        return self._index.matcher(options)

    def _delivering(self) -> SteppedReference:
        """Those who are delivered something: filter queries are told as subscriptions are."""
        silent = [name for name in self._index.ids() if name not in self._subscriptions]
        self._subscriptions.subscribe([self.subscription(name) for name in silent], {})
        return self._subscriptions

    def _is_subscription(self, name: str) -> bool:
        return name in self._subscriptions and name not in self._index

    def _others(self) -> list[str]:
        return [name for name in self._subscriptions.ids() if name not in self._index]

    def __len__(self) -> int:
        return len(self._index) + len(self._others())

    def __contains__(self, subscription_id: object) -> bool:
        return subscription_id in self._index or subscription_id in self._subscriptions

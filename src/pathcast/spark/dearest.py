"""The subscriptions of a pipeline whose queries take the most work, counted in steps, not in time.

    kernel: the dearest of a batch -> task: TOLD_MAX -> commit: DEAREST_MAX -> metrics, `top`

Each keeps as many as it says. A sum over batches lacks what a query took where it was not among the
dearest, so it is never too large.

Example:
    >>> rows = [DearSubscription("q1", "ann", 1, 5), DearSubscription("q2", None, 3, 7)]
    >>> [(each.subscription_id, each.steps) for each in dearest_of([*rows, rows[0]])]
    [('q1', 10), ('q2', 7)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Final

DEAREST_MAX: Final = 100
"""Subscriptions that a commit, metrics and `pathcast top` tell."""

TOLD_MAX: Final = 200
"""Subscriptions that a task tells the driver, so that sums over tasks have the right hundred."""

SUMMED_MAX: Final = 4096
"""Queries whose steps a task or a run adds up; when there are twice as many, the others go."""


@dataclass(frozen=True, slots=True)
class DearSubscription:
    """A query, and the steps that were its own.

    Attributes:
        subscription_id: Its id.
        subscriber: Who takes it; the first of several, None for nobody.
        takers: How many take it.
        steps: `pathcast.model.SubscriptionWork.steps`, added up.
    """

    subscription_id: str
    subscriber: str | None
    takers: int
    steps: int


def dearest_of(rows: Iterable[DearSubscription], most: int = DEAREST_MAX) -> list[DearSubscription]:
    """The dearest of several lists together, each once, the dearest first."""
    known: dict[str, DearSubscription] = {}
    for row in rows:
        before = known.get(row.subscription_id)
        steps = row.steps if before is None else row.steps + before.steps
        known[row.subscription_id] = replace(row, steps=steps)
    return nsmallest(most, known.values(), key=lambda row: (-row.steps, row.subscription_id))


def add_steps(sums: Counter[int], work: Mapping[int, int]) -> None:
    """Adds the steps of queries, by number, to sums of bounded size."""
    sums.update(work)
    if len(sums) > 2 * SUMMED_MAX:
        kept = sums.most_common(SUMMED_MAX)
        sums.clear()
        sums.update(dict(kept))

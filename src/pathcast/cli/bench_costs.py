"""Cost of standing queries on messages: of all queries, of a class, of a single query.

Two measures: the time of a pass over all messages, and the steps that the engine counts
(`BatchStats.steps`), which are the same on every machine under every load. Steps say which queries
are evaluated most; the time says what that comes to here.

Example:
    >>> from pathcast.registry.delimited import TextPlace
    >>> from pathcast.registry.subscription_rows import SubscriptionRows
    >>> texts = ["//a", "//a[@n = 1]", "//a[last()]", "not(//b)", "for $a in //a return <r/>"]
    >>> rows = [Subscription(f"q{n}", "", text, "ids") for n, text in enumerate(texts)]
    >>> engines = SubscriptionEngines(Limits(), {})
    >>> places = [TextPlace("queries.txt", n + 1) for n in range(len(rows))]
    >>> taken = engines.take_up(SubscriptionRows(rows, places, []))
    >>> [each.query_class.value for each in classified(engines)]
    ['paths', 'paths with conditions', 'candidate-checked', 'scan', 'results, indexed']

It prints nothing.
"""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from math import inf
from operator import attrgetter
from statistics import median
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa

from pathcast.limits import Limits
from pathcast.model import BatchStats, Query, Subscription
from pathcast.query import CostClass, compile_subscription
from pathcast.registry import Registry
from pathcast.registry.subscription_engines import SubscriptionEngines

ROUND_SECONDS_MIN: Final = 0.02
"""Seconds of a round: a pass over few messages is too short for a clock on a busy machine."""

_NAMESPACE: Final = re.compile(r"Q\{[^}]*\}")


class QueryClass(Enum):
    """How a query is answered."""

    PATHS = "paths"
    """By the shared automaton alone."""
    CONDITIONS = "paths with conditions"
    """By the shared automaton and the shared index of conditions."""
    CHECKED = "candidate-checked"
    """An expression is evaluated where one of its paths is found."""
    SCAN = "scan"
    """An expression is evaluated for every message."""
    RESULTS_INDEXED = "results, indexed"
    """Results by a shared plan, or a whole message or a notice by indexed paths."""
    RESULTS_CHECKED = "results, candidate-checked"
    """A program or an expression is evaluated where one of its paths is found."""
    RESULTS_SCAN = "results, scan"
    """A program or an expression is evaluated for every message."""
    AFTER_STEPS = "after steps"
    """Asked of the message after it was changed for this subscription and others like it."""

    @property
    def is_shared(self) -> bool:
        """Whether a query of this class costs nothing that is its own."""
        return self in (QueryClass.PATHS, QueryClass.CONDITIONS, QueryClass.RESULTS_INDEXED)

    @property
    def is_filter(self) -> bool:
        """Whether it is of filter queries, which ids answer."""
        checked = (QueryClass.CHECKED, QueryClass.SCAN)
        return self in (QueryClass.PATHS, QueryClass.CONDITIONS, *checked)


_RESULTS: Final = {
    CostClass.INDEXED: QueryClass.RESULTS_INDEXED,
    CostClass.CANDIDATE_CHECKED: QueryClass.RESULTS_CHECKED,
    CostClass.SCAN: QueryClass.RESULTS_SCAN,
}


class MeasuredQuery(NamedTuple):
    """A query that was taken up.

    Attributes:
        row: The query, with all namespaces it may use.
        query_class: How it is answered.
    """

    row: Subscription
    query_class: QueryClass


def classified(engines: SubscriptionEngines) -> list[MeasuredQuery]:
    """The queries of engines with their classes, in the order in which they were taken up.

    Cost: some microseconds a query in the usual notation or with a shared plan; for any other, as
    registering it.
    """
    registry = engines.registry
    return [MeasuredQuery(row, _class_of(row)) for row in map(registry.get, engines.queries)]


def _class_of(row: Subscription) -> QueryClass:
    if row.steps:
        return QueryClass.AFTER_STEPS
    plan = compile_subscription(row.query, row.namespaces, row.deliver, row.language)
    if row.deliver != "ids" or plan.way != "filtering":
        return _RESULTS[plan.cost]
    if plan.cost is CostClass.INDEXED:
        return _class_of_paths(plan.alternatives)
    return QueryClass.SCAN if plan.cost is CostClass.SCAN else QueryClass.CHECKED


def _class_of_paths(texts: Iterable[str]) -> QueryClass:
    has_conditions = any("[" in _NAMESPACE.sub("", text) for text in texts)
    return QueryClass.CONDITIONS if has_conditions else QueryClass.PATHS


Pass: TypeAlias = Callable[[], BatchStats]
"""Answers all messages once; gives the counters."""


def pass_of(batches: Sequence[pa.Array], registry: Registry, *, is_delivered: bool) -> Pass:
    """A pass over batches of messages.

    Args:
        batches: The messages.
        registry: The queries.
        is_delivered: Whether results are made, or ids are told.
    """

    def run() -> BatchStats:
        answer = registry.deliver if is_delivered else registry.match
        return sum((answer(batch).stats for batch in batches), BatchStats())

    if is_delivered:
        # The first delivery reads the version of the set, which is no part of a pass.
        registry.deliver([])
    return run


@dataclass(frozen=True)
class Measured:
    """Some passes over the same messages.

    Attributes:
        seconds: How long each took.
        stats: Counters of the last.
    """

    seconds: tuple[float, ...]
    stats: BatchStats

    @property
    def median(self) -> float:
        """Seconds of the median pass."""
        return median(self.seconds)

    @property
    def least(self) -> float:
        """Seconds of the quickest pass, which other work on the machine has disturbed least."""
        return min(self.seconds)


def measured(run: Pass, rounds: int = 1, deadline: float = inf) -> Measured:
    """Times passes.

    Args:
        run: A pass.
        rounds: How many times are taken. Of several, each is the mean of as many passes as take
            `ROUND_SECONDS_MIN`.
        deadline: By `time.perf_counter`; after it no pass begins but the first.
    """
    seconds: list[float] = []
    while True:
        spent, stats = _round(run, ROUND_SECONDS_MIN if rounds > 1 else 0.0)
        seconds.append(spent)
        if len(seconds) >= rounds or time.perf_counter() >= deadline:
            return Measured(tuple(seconds), stats)


def _round(run: Pass, seconds_min: float) -> tuple[float, BatchStats]:
    """Mean seconds of as many passes as take so long, one at least, and counters of the last."""
    started = ended = time.perf_counter()
    passes = 0
    while not passes or ended - started < seconds_min:
        stats = run()
        ended = time.perf_counter()
        passes += 1
    return (ended - started) / passes, stats


class CostGauge:
    """Measures what queries cost by themselves, without the others.

    Args:
        limits: What a message may cost.
        threads: Threads of one batch; None for all processors.
        batches: The messages.
        rounds: Passes that are made without any query.

    Attributes:
        nothing: Passes without any query: what reading the messages costs.
    """

    def __init__(
        self,
        limits: Limits,
        threads: int | None,
        batches: Sequence[pa.Array],
        rounds: int,
    ) -> None:
        self._limits = limits
        self._threads = threads
        self._batches = batches
        self._read = self.pass_of(())
        self._read()
        self.nothing = measured(self._read, rounds)

    def pass_of(self, queries: Sequence[MeasuredQuery]) -> Pass:
        """A pass that answers these queries only.

        Args:
            queries: All of shared classes, or none.

        Cost: registers them.
        """
        registry = Registry(self._limits, threads=self._threads)
        filters = [each for each in queries if each.query_class.is_filter]
        registry.add([Query(row.id, row.query, row.namespaces) for row, _ in filters])
        others = [each.row for each in queries if not each.query_class.is_filter]
        registry.add(sorted(others, key=attrgetter("id")))
        return pass_of(self._batches, registry, is_delivered=len(others) > 0)

    def beyond_reading(self, run: Pass, rounds: int, deadline: float) -> float | None:
        """Seconds that a pass takes beyond one without any query.

        Passes of both kinds alternate, so that load which comes and goes disturbs both, and the
        quickest are compared.

        Args:
            run: A pass; it was run before.
            rounds: How many of each kind.
            deadline: By `time.perf_counter`; after it no round begins but the first.

        Returns:
            None where the difference is lost in what the passes differ by anyway.
        """
        reading, answering = inf, inf
        for _ in range(rounds):
            reading = min(reading, _round(self._read, ROUND_SECONDS_MIN)[0])
            answering = min(answering, _round(run, ROUND_SECONDS_MIN)[0])
            if time.perf_counter() >= deadline:
                break
        return answering - reading if answering > reading else None

    def steps_of(self, stats: BatchStats) -> int:
        """Steps that queries have taken on all messages, beyond those of no query."""
        return max(0, stats.steps - self.nothing.stats.steps)


class DearestQueries:
    """Finds the queries that take the most steps, by measuring sets of them and halves of these.

    A set takes at least the steps of each of its queries, so one that takes no more than the last
    of those that were found needs no look inside. The set with the most steps a query is halved
    next, so that a few dear ones among many are found at once.

    Args:
        steps_of: Measures the steps of a set by itself.
        top: How many to find.

    Example:
        >>> rows = [Subscription(str(number), "", "//a") for number in range(100)]
        >>> queries = [MeasuredQuery(row, QueryClass.SCAN) for row in rows]
        >>> def steps_of(queries: Sequence[MeasuredQuery]) -> int:
        ...     return sum(500 if each.row.id in ("7", "70") else 1 for each in queries)
        >>> search = DearestQueries(steps_of, top=2)
        >>> search.add(queries, steps_of(queries))
        >>> search.run(deadline=float("inf"))
        >>> sorted(each.row.id for _, each in search.found), search.unreached
        (['7', '70'], (0, 0))

    Cost: for one dear query among n, three times that of measuring all n; for n that are equally
    dear, 2 n passes.
    """

    def __init__(self, steps_of: Callable[[Sequence[MeasuredQuery]], int], top: int) -> None:
        self._steps_of = steps_of
        self._top = top
        self._order = count()
        self._waiting: list[tuple[float, int, int, Sequence[MeasuredQuery]]] = []
        self._found: list[tuple[int, MeasuredQuery]] = []

    @property
    def found(self) -> list[tuple[int, MeasuredQuery]]:
        """Steps and query, the dearest first."""
        return self._found[: self._top]

    @property
    def unreached(self) -> tuple[int, int]:
        """How many queries that may be among the dearest are still in sets; steps of the sets."""
        waiting = [each for each in self._waiting if each[2] > self._least]
        return sum(len(each[3]) for each in waiting), sum(each[2] for each in waiting)

    @property
    def _least(self) -> int:
        """Steps that a query has to exceed to be among the dearest."""
        return self._found[self._top - 1][0] if len(self._found) >= self._top else 0

    def add(self, queries: Sequence[MeasuredQuery], steps: int) -> None:
        """Adds a set that was measured."""
        if len(queries) == 1 and steps:
            self._found.append((steps, queries[0]))
            self._found.sort(key=lambda each: -each[0])
        elif steps:
            dearness = -steps / len(queries)
            heapq.heappush(self._waiting, (dearness, next(self._order), steps, queries))

    def run(self, deadline: float) -> None:
        """Halves sets until the dearest queries are known.

        Args:
            deadline: By `time.perf_counter`; no set is halved after it.
        """
        while self._waiting and time.perf_counter() < deadline:
            _, _, steps, queries = self._waiting[0]
            halves: list[tuple[Sequence[MeasuredQuery], int]] = []
            if steps > self._least:
                middle = len(queries) // 2
                halves = [
                    (half, self._steps_of(half)) for half in (queries[:middle], queries[middle:])
                ]
            # Once both are measured: an interruption loses no set.
            heapq.heappop(self._waiting)
            for half, taken in halves:
                self.add(half, taken)

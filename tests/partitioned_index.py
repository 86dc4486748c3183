"""Queries in partitions, in one process: an index each, messages go where they can match.

What a cluster does with partitions on many workers, this does with an index a partition; it gives
the answers of one `QueryIndex`, whatever the placement, while queries come and go and move.

A move takes place in three steps. The queries are registered where they go, and do not count there
yet; the *epoch* is switched, and messages that come from now on are sent and counted by the new
placement; when no message of an older epoch is under way, they are taken out where they were. A
match counts in the partition that the query belongs to in the epoch of the message, so that it is
found exactly once at every moment.

Example:
    >>> from pathcast import Query
    >>> from pathcast.partition import HashPlacement
    >>> index = PartitionedIndex(HashPlacement(3), engine="reference")
    >>> report = index.register([Query("q1", "/a"), Query("q2", "//b"), Query("q3", "/a[")])
    >>> report.accepted, index.match_batch([b"<a><b/></a>", b"<b/>"]).query_ids
    (2, [['q1', 'q2'], ['q2']])
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from oracles.engines import made_by
from pathcast.engine import QueryIndex
from pathcast.engine.messages import Messages, joined, message_column
from pathcast.engine.rows import one_or_many, report_on, usable_namespaces, usable_rows
from pathcast.errors import ConfigError, DuplicateQueryError, PathcastError
from pathcast.limits import Limits
from pathcast.model import BatchStats, Query, RegisterReport
from pathcast.partition.assignment import Assignment, Move
from pathcast.partition.placement import Placement, Touched


@dataclass(frozen=True)
class PartitionedResult:
    """What a batch of messages satisfies.

    Attributes:
        query_ids: For each message the ids of the satisfied queries, sorted.
        errors: Place in the batch -> why the door refused the message.
        verdicts: Place in the batch -> query id -> why it could not be decided.
        touched: Where the messages were sent.
        stats: Counters of all partitions together: a message counts in each that it was sent to.
    """

    query_ids: list[list[str]]
    errors: Mapping[int, PathcastError]
    verdicts: Mapping[int, Mapping[str, PathcastError]]
    touched: Touched
    stats: BatchStats


@dataclass(frozen=True)
class Epoch:
    """A time in which the placement is the same.

    Attributes:
        number: From 0 on.
        placement: What messages are sent and counted by.
    """

    number: int
    placement: Placement


@dataclass
class _Transit:
    """Moves that have begun.

    Attributes:
        moves: What moves.
        ids: Id -> its move, of queries that are in two partitions.
        epoch: The first epoch in which they count at the target; None before the switch.
    """

    moves: Sequence[Move]
    ids: dict[str, Move] = field(default_factory=dict)
    epoch: int | None = None


class PartitionedIndex:
    """Standing queries in partitions. May be used from several threads.

    Args:
        placement: Says where queries go and messages are sent.
        engine: As for `QueryIndex`.
        limits: What one message may cost in one partition.
        namespaces: As for `QueryIndex`.
        threads: As for `QueryIndex.matcher`.
    """

    def __init__(
        self,
        placement: Placement,
        *,
        engine: str | None = None,
        limits: Limits | None = None,
        namespaces: Mapping[str, str] | None = None,
        threads: int | None = None,
    ) -> None:
        self._namespaces = usable_namespaces(namespaces)
        self._new = partial(made_by, engine, QueryIndex, limits=limits, namespaces=namespaces)
        self._indexes = [self._new() for _ in range(placement.partitions)]
        self._matchers = [index.matcher(threads=threads) for index in self._indexes]
        self._book = Assignment(placement)
        self._lock = threading.RLock()
        self._epoch = 0
        self._under_way: Counter[int] = Counter()
        self._transit: _Transit | None = None

    @property
    def assignment(self) -> Assignment:
        """The book."""
        return self._book

    @property
    def epoch(self) -> int:
        """Number of the epoch of messages that come now."""
        return self._epoch

    def register(self, queries: Query | Iterable[Query]) -> RegisterReport:
        """Adds one query or many, each to its partition; see `QueryIndex.register`.

        Cost: twice that of `QueryIndex`, as it has to be known what they ask for first.
        """
        with self._lock:
            rows, is_one = one_or_many(queries)
            usable, errors = usable_rows(rows, Query)
            looked_at = self._new()
            report = looked_at.register(usable)
            taken = dict(report.errors)
            for place, query in enumerate(usable):
                if place not in taken and query.id in self._book:
                    # The index of one partition would not know.
                    taken[place] = DuplicateQueryError("query.duplicate", id=query.id)
            looked_at.remove(usable[place].id for place in taken if place not in report.errors)
            placed = self._book.add(looked_at.population())
            into: dict[int, list[Query]] = {}
            for place, query in enumerate(usable):
                if place not in taken:
                    into.setdefault(placed[query.id], []).append(query)
                    self._begin_also(query, into)
            for partition, members in sorted(into.items()):
                self._indexes[partition].register(members)
            report = RegisterReport.of(usable, taken)
            return report_on(rows, errors, report, self._namespaces, is_one=is_one)

    def _begin_also(self, query: Query, into: dict[int, list[Query]]) -> None:
        """A query that comes while its unit moves is put where the unit is and where it goes."""
        transit = self._transit
        if transit is None:
            return
        unit = self._book.unit_of(query.id)
        for move in transit.moves:
            if move.unit == unit:
                here = self._book.partition_of(query.id)
                other = move.source if here == move.target else move.target
                into.setdefault(other, []).append(query)
                transit.ids[query.id] = move

    def remove(self, ids: Iterable[str]) -> None:
        """Takes queries out; all of them or, if one is unknown, none.

        Raises:
            UnknownQueryError: No query has one of the ids.
        """
        with self._lock:
            leaving = list(dict.fromkeys(ids))
            where = {name: self._book.partition_of(name) for name in leaving}
            self._book.remove(leaving)
            from_: dict[int, list[str]] = {}
            for name, partition in where.items():
                move = self._transit.ids.pop(name, None) if self._transit else None
                here = {partition} if move is None else {move.source, move.target}
                for each in here:
                    assert each is not None
                    from_.setdefault(each, []).append(name)
            for each, names in sorted(from_.items()):
                self._indexes[each].remove(names)

    @contextmanager
    def pinned(self) -> Iterator[Epoch]:
        """The epoch of now, which lasts for messages that are matched within."""
        with self._lock:
            epoch = Epoch(self._epoch, self._book.placement)
            self._under_way[epoch.number] += 1
        try:
            yield epoch
        finally:
            with self._lock:
                self._under_way[epoch.number] -= 1

    def match_batch(self, messages: Messages, epoch: Epoch | None = None) -> PartitionedResult:
        """Matches every message in the partitions that it can match.

        Args:
            messages: As for `Matcher.match_batch`.
            epoch: Of the messages, from `pinned`; None for the one of now.
        """
        if epoch is None:
            with self.pinned() as now:
                return self.match_batch(messages, now)
        column = message_column(messages)
        whole = joined(column.chunks)
        touched = epoch.placement.touched(messages)
        count = len(whole)
        found: list[list[str]] = [[] for _ in range(count)]
        errors = {**touched.errors, **column.refusals}
        verdicts: dict[int, dict[str, PathcastError]] = {}
        stats = BatchStats()
        # What was text before is UTF-8 whatever it declares: the matcher is told by the type.
        text = whole if column.encoding is None else whole.cast(pa.large_binary())
        text = text if column.encoding is None else text.view(pa.large_string())
        for partition, matcher in enumerate(self._matchers):
            rows = touched.rows_of(partition)
            if not len(rows):
                continue
            batch = matcher.match_batch(text.take(pa.array(rows)))
            stats += batch.stats
            for row, result in zip(rows.tolist(), batch, strict=True):
                if result.error is not None:
                    errors.setdefault(row, result.error)
                found[row] += self._own(result.query_ids, partition, epoch)
                for name in self._own(result.verdicts, partition, epoch):
                    verdicts.setdefault(row, {})[name] = result.verdicts[name]
        return PartitionedResult(
            [sorted(names) for names in found], errors, verdicts, touched, stats
        )

    def _own(self, names: Iterable[str], partition: int, epoch: Epoch) -> list[str]:
        """Those of the queries that belong into a partition in an epoch."""
        transit = self._transit
        if transit is None or not transit.ids:
            return list(names)
        kept = []
        for name in names:
            move = transit.ids.get(name)
            if move is None or self._counts_at(move, transit, epoch) == partition:
                kept.append(name)
        return kept

    def _counts_at(self, move: Move, transit: _Transit, epoch: Epoch) -> int:
        is_after = transit.epoch is not None and epoch.number >= transit.epoch
        return move.target if is_after else move.source

    def begin_moves(self, moves: Sequence[Move]) -> None:
        """First step: the queries are put where they go, and do not count there yet.

        Raises:
            ConfigError: Other moves have not ended.
        """
        with self._lock:
            if self._transit is not None:
                reason = "moves that have begun have not ended; finish them first"
                raise ConfigError("config.invalid", key="moves", reason=reason)
            transit = _Transit(list(moves))
            copies: dict[int, list[Query]] = {}
            for move in moves:
                for name in move.ids:
                    copies.setdefault(move.target, []).append(
                        self._indexes[move.source].query(name)
                    )
                    transit.ids[name] = move
            # What is there twice has to be known before it is there.
            self._transit = transit
            for partition, queries in sorted(copies.items()):
                self._indexes[partition].register(queries)

    def switch(self) -> None:
        """Second step: messages that come from now on are sent and counted by the new placement."""
        with self._lock:
            transit = self._transit
            if transit is None or transit.epoch is not None:
                reason = "no moves have begun that have not been switched to"
                raise ConfigError("config.invalid", key="moves", reason=reason)
            self._book.switch(transit.moves)
            self._epoch += 1
            transit.epoch = self._epoch

    def finish_moves(self) -> bool:
        """Third step: the queries are taken out where they were.

        Returns:
            Whether they were. Not yet if messages of an older epoch are under way.
        """
        with self._lock:
            transit = self._transit
            if transit is None:
                return True
            if transit.epoch is None:
                return False
            if any(n and epoch < transit.epoch for epoch, n in self._under_way.items()):
                return False
            leaving: dict[int, list[str]] = {}
            for name, move in transit.ids.items():
                leaving.setdefault(move.source, []).append(name)
            for partition, names in sorted(leaving.items()):
                self._indexes[partition].remove(names)
            self._transit = None
            return True

    def rebalance(self, imbalance_max: float = 1.25) -> Sequence[Move]:
        """Evens partitions out, in all three steps; see `Assignment.planned_moves`.

        Messages that are under way keep the queries where they were as well; `finish_moves` takes
        them out later.

        Returns:
            The moves; none if nothing had to be moved.

        Raises:
            ConfigError: Other moves have not ended.
        """
        moves = self._book.planned_moves(imbalance_max)
        if moves:
            self.begin_moves(moves)
            self.switch()
            self.finish_moves()
        return moves

    def __len__(self) -> int:
        return len(self._book)

"""Turns a batch of messages into deliveries, which are columns of numbers.

Where all subscriptions are delivered as an id, the engine gives lists of queries; else results, and
null for those that are delivered as an id. Nothing is text yet: a delivery is the row of a message,
the place of a subscription in the table of the generation, which is sorted by subscriber, and the
number of a result.

    Generation (files) -> Answerer, once a worker -> MicroBatchAnswer, once a batch -> `writing`

This module does not import pyspark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import UnreadableMessageError
from pathcast.limits import Limits
from pathcast.registry import Registry, Snapshot
from pathcast.registry import message_id as digest_of
from pathcast.spark.dearest import TOLD_MAX, DearSubscription
from pathcast.spark.generations import GenerationFiles, ids_of
from pathcast.spark.schemas import LETTERS

if TYPE_CHECKING:
    from pathcast.engine import BatchResult
    from pathcast.registry import DeliveryBatch

NO_FRAGMENT = -1
RESULTS_AT_ONCE = 50_000
"""Results that are made in one call: what a call costs besides is then nothing, and they are still
few megabytes."""


@dataclass(frozen=True, slots=True)
class MicroBatchAnswer:
    """Deliveries, matches and faults of one batch of messages.

    Attributes:
        message_ids: `string`, by row; null where a message has neither id nor bytes.
        sizes: Bytes of each message, by row.
        is_refused: By row: the message was not answered at all.
        rows: For every delivery, the row of its message.
        ranks: For every delivery, the place of its subscription in the table of the generation.
        result_numbers: For every delivery.
        fragments: For every delivery, its place in `values`, or `NO_FRAGMENT`.
        values: Distinct results, `binary` or `large_binary`.
        matches: `list<uint32>` by row, the numbers of the queries that are delivered as an id; None
            where there are none, or nobody wants the lists.
        letters: What was not done, `LETTERS`, and the row of the message of each.
        satisfied: Pairs of message and query.
        work: Number -> steps of the queries that took the most (`pathcast.spark.dearest`).
        all_work: Steps of all of them.
    """

    message_ids: pa.Array
    sizes: pa.Array
    is_refused: np.ndarray
    rows: np.ndarray
    ranks: np.ndarray
    result_numbers: np.ndarray
    fragments: np.ndarray
    values: pa.Array
    matches: pa.ListArray | None
    letters: list[tuple[np.ndarray, pa.Table]]
    satisfied: int
    work: dict[int, int]
    all_work: int

    def __len__(self) -> int:
        """Number of deliveries."""
        return len(self.rows)

    @property
    def undecided(self) -> int:
        """Pairs of message and subscription without an answer."""
        return sum(
            len(table) - table.column("subscription_id").null_count for _, table in self.letters
        )


_Letters: TypeAlias = tuple[np.ndarray, pa.Table]


class Answerer:
    """The engines of a generation, as a worker holds them.

    Args:
        files: The generation.
        limits: Bounds on a message; those that were agreed with the generation when not given.
        threads: Threads of one call.
        cache_bytes_max: Memory for compiled label paths; None for the engine's default.

    Cost:
        The files are mapped; nothing is compiled.
    """

    def __init__(
        self,
        files: GenerationFiles,
        *,
        limits: Limits | None = None,
        threads: int = 1,
        cache_bytes_max: int | None = None,
    ) -> None:
        options: dict[str, Any] = {"threads": threads}
        if cache_bytes_max is not None:
            options["cache_bytes_max"] = cache_bytes_max
        self.table = files.table()
        opened = Snapshot.open(files.queries, limits, **options)
        self.query_ids = ids_of(opened)
        """Ids of the queries, by number."""
        self._takers = self.table.takers_of(self.query_ids)
        self._has_notices = files.has_notices
        self._snapshot = opened if opened.has_filters_only else None
        self._registry = Registry.of(opened, limits, **options)
        self._numbers = (
            {} if self._snapshot else dict(zip(self.query_ids.to_pylist(), count(), strict=False))
        )

    def answer(
        self, batch: pa.RecordBatch, *, with_matches: bool, times: pa.Array | datetime | None = None
    ) -> list[MicroBatchAnswer]:
        """Match the messages of a batch, schema `schemas.SOURCE`.

        Args:
            batch: Messages.
            with_matches: Whether the lists of queries are wanted.
            times: When each was, or all, which is what `current-dateTime()` says; None for now.

        Returns:
            One answer or, where there are many results, several, in the order of the messages.
        """
        if self._snapshot is not None:
            matched = self._snapshot.match(batch.column("message"))
            return [self._notices(batch, matched, with_matches)]
        answers, start, rows = [], 0, 64
        while start < len(batch):
            part = batch.slice(start, rows)
            at = times.slice(start, rows) if isinstance(times, pa.Array) else times
            start += len(part)
            found = self._registry.deliver(
                part.column("message"), part.column("message_id"), times=at
            )
            answers.append(self._results(part, found, with_matches))
            # As many messages at a time as give about so many results.
            rows = max(1, min(len(part) * RESULTS_AT_ONCE // max(len(found), 1), 4 * rows))
        return answers

    def dearest(self, sums: Counter[int]) -> list[DearSubscription]:
        """The queries with the most steps, and who takes them.

        Args:
            sums: Number of a query -> its steps.
        """
        order = sorted(sums.items(), key=lambda each: (-each[1], each[0]))[:TOLD_MAX]
        if not order:
            return []
        numbers = np.array([number for number, _ in order])
        places, ranks = self._takers.expand(numbers)
        counts = np.bincount(np.arange(len(ranks)) if places is None else places)
        firsts = ranks[np.cumsum(counts) - counts]
        takers = self.table.rows(firsts)
        return [
            DearSubscription(name, subscriber, int(count), steps)
            for name, subscriber, count, (_, steps) in zip(
                takers.ids.to_pylist(), takers.subscribers.to_pylist(), counts, order, strict=True
            )
        ]

    def _notices(
        self, batch: pa.RecordBatch, matched: BatchResult, with_matches: bool
    ) -> MicroBatchAnswer:
        """Answers where all is delivered as an id, and the engine gives the lists."""
        numbers, rows = _flat(matched.matches)
        return self._answer(
            batch,
            refusals=refusals_of(matched.errors),
            verdicts=matched.verdicts,
            undecided=matched.verdicts.column("query_number").to_numpy(),
            rows=rows,
            numbers=numbers,
            result_numbers=np.zeros(len(rows), dtype=np.int32),
            fragments=np.full(len(rows), NO_FRAGMENT, dtype=np.int32),
            values=pa.array([], pa.binary()),
            matches=matched.matches if with_matches else None,
            work=dict(matched.work),
            all_work=matched.stats.work,
        )

    def _results(
        self, batch: pa.RecordBatch, found: DeliveryBatch, with_matches: bool
    ) -> MicroBatchAnswer:
        columns = found.numbers
        rows = columns.column("row").to_numpy()
        names = self._numbers_of(found.subscription_ids)
        numbers = names[columns.column("subscription").to_numpy()]
        fragment = columns.column("fragment")
        places = pc.fill_null(fragment.indices, NO_FRAGMENT).to_numpy()
        matches = None
        if with_matches and self._has_notices:
            noticed = places == NO_FRAGMENT
            counts = np.bincount(rows[noticed], minlength=len(found.message_ids))
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            matches = pa.ListArray.from_arrays(pa.array(offsets), pa.array(numbers[noticed]))
        return self._answer(
            batch,
            refusals=found.errors,
            verdicts=found.verdicts,
            undecided=self._numbers_of(found.verdicts.column("subscription_id").to_pylist()),
            rows=rows,
            numbers=numbers,
            result_numbers=columns.column("result_number").to_numpy(),
            fragments=places,
            values=fragment.dictionary,
            matches=matches,
            work={self._numbers[name]: steps for name, steps in found.dearest},
            all_work=found.stats.work,
        )

    def _numbers_of(self, names: Sequence[str]) -> np.ndarray:
        """Numbers of queries."""
        return np.fromiter((self._numbers[name] for name in names), np.uint32, len(names))

    def _answer(
        self,
        batch: pa.RecordBatch,
        *,
        refusals: pa.Table,
        verdicts: pa.Table,
        undecided: np.ndarray,
        rows: np.ndarray,
        numbers: np.ndarray,
        result_numbers: np.ndarray,
        fragments: np.ndarray,
        values: pa.Array,
        matches: pa.ListArray | None,
        work: dict[int, int],
        all_work: int,
    ) -> MicroBatchAnswer:
        """Results of queries (`numbers`), and pairs without an answer, for all who take them."""
        ids, sizes = message_ids_of(batch), sizes_of(batch)
        letters: list[_Letters] = []
        if len(verdicts):
            letters.append(self._undecided(verdicts, undecided, ids, sizes))
        refused, letter = refused_in(batch, ids, refusals)
        if len(letter):
            letters.append((np.flatnonzero(refused), letter))
        satisfied = int(np.count_nonzero(result_numbers == 0))
        taken, ranks = self._takers.expand(numbers)
        if taken is not None:
            rows, result_numbers, fragments = rows[taken], result_numbers[taken], fragments[taken]
        return MicroBatchAnswer(
            message_ids=ids,
            sizes=sizes,
            is_refused=refused,
            rows=rows,
            ranks=ranks,
            result_numbers=result_numbers,
            fragments=fragments,
            values=values,
            matches=matches,
            letters=letters,
            satisfied=satisfied,
            work=work,
            all_work=all_work,
        )

    def _undecided(
        self, verdicts: pa.Table, numbers: np.ndarray, ids: pa.Array, sizes: pa.Array
    ) -> _Letters:
        """Letters for pairs of message and query, one for everybody who takes it."""
        taken, ranks = self._takers.expand(numbers)
        chosen = verdicts if taken is None else verdicts.take(pa.array(taken))
        rows = chosen.column("row").combine_chunks()
        columns = {
            "message_id": ids.take(rows),
            "subscription_id": self.table.ids.take(pa.array(ranks)),
            "subscriber": self.table.subscribers.take(pa.array(ranks)),
            "code": chosen.column("code").cast(pa.string()).combine_chunks(),
            "message": chosen.column("message").cast(pa.string()).combine_chunks(),
            "bytes": sizes.take(rows),
        }
        return rows.to_numpy(), _letters(len(chosen), columns)


def _flat(lists: pa.ListArray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all rows in one array, and the row of each."""
    offsets = lists.offsets.to_numpy()
    numbers = lists.values.to_numpy()[offsets[0] : offsets[-1]]
    rows = np.repeat(np.arange(len(lists), dtype=np.int32), np.diff(offsets))
    return numbers, rows


def sizes_of(batch: pa.RecordBatch) -> pa.Array:
    """Bytes of each message, those included that were not read for being too many.

    A source that does not say how many those are (no column `bytes`, or null) has them count 0.
    """
    messages = batch.column("message")
    sizes = pc.cast(pc.coalesce(pc.binary_length(messages), 0), pa.int64())
    if messages.null_count and "bytes" in batch.schema.names:
        told = pc.fill_null(batch.column("bytes"), 0)
        sizes = pc.if_else(messages.is_null(), told, sizes)
    return sizes


def message_ids_of(batch: pa.RecordBatch) -> pa.Array:
    """The ids as given; digests where one is missing."""
    ids = batch.column("message_id").cast(pa.string())
    if not ids.null_count:
        return ids
    messages = batch.column("message")
    texts = ids.to_pylist()
    for row in np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False)).tolist():
        if messages[row].is_valid:
            texts[row] = digest_of(memoryview(messages[row].as_buffer()))
    return pa.array(texts, pa.string())


def refusals_of(errors: pa.StructArray) -> pa.Table:
    """Refusals by row, as `DeliveryBatch.errors` has them."""
    if errors.null_count == len(errors):
        return pa.table({"row": pa.array([], pa.int64())})
    rows = np.flatnonzero(errors.is_valid().to_numpy(zero_copy_only=False))
    table = pa.Table.from_struct_array(errors.take(pa.array(rows)))
    return table.append_column("row", pa.array(rows))


def refused_in(
    batch: pa.RecordBatch, ids: pa.Array, refusals: pa.Table
) -> tuple[np.ndarray, pa.Table]:
    """Which messages were not answered, and a letter for each."""
    messages = batch.column("message")
    refused = messages.is_null().to_numpy(zero_copy_only=False).copy()
    refused[refusals.column("row").to_numpy()] = True
    rows = np.flatnonzero(refused)
    if not len(rows):
        return refused, _letters(0, {})
    places = np.full(len(batch), -1)
    places[refusals.column("row").to_numpy()] = np.arange(len(refusals))
    places = pa.array(places[rows], mask=places[rows] < 0)
    columns: dict[str, pa.Array] = {
        "message_id": ids.take(pa.array(rows)),
        "bytes": sizes_of(batch).take(pa.array(rows)),
    }
    # The door never saw what is missing: the source says why or, if it does not, it was null.
    unread = UnreadableMessageError(
        "message.unreadable", path="the message", reason="its value is null"
    )
    told = {"code": ("code", unread.code), "message": ("reason", unread.message)}
    for name in ("code", "message", "line", "column", "offset"):
        found = pa.nulls(len(rows), LETTERS.field(name).type)
        if len(refusals):
            found = refusals.column(name).combine_chunks().take(places).cast(found.type)
        if name in told:
            given, fallback = told[name]
            if given in batch.schema.names:
                found = pc.coalesce(found, batch.column(given).take(pa.array(rows)))
            found = pc.fill_null(found, fallback)
        if name == "offset" and name in batch.schema.names:
            found = pc.coalesce(found, batch.column(name).take(pa.array(rows)))
        columns[name] = found
    return refused, _letters(len(rows), columns)


def _letters(count: int, columns: dict[str, pa.Array]) -> pa.Table:
    """Rows of `LETTERS`; columns that are not given are null."""
    arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in LETTERS]
    return pa.table(arrays, schema=LETTERS)

"""Turns a batch of messages into deliveries, which are columns of numbers.

A filter query is a subscription that is delivered as an id. So there is one answer, whoever found
it: the snapshot of the filter queries, the registry of the subscriptions that want results, or
both. Nothing is text yet: a delivery is the row of a message, the place of a subscription in the
table of the generation, which is sorted by subscriber, and the number of a result.

    Generation (files) -> Answerer, once a worker -> MicroBatchAnswer, once a batch -> `writing`

This module does not import pyspark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import UnreadableMessageError
from pathcast.limits import Limits
from pathcast.registry import Registry, Snapshot
from pathcast.registry import message_id as digest_of
from pathcast.spark.generations import GenerationFiles, Takers, ids_of
from pathcast.spark.schemas import LETTERS

if TYPE_CHECKING:
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
        matches: `list<uint32>` by row, the numbers of the filter queries; None for none.
        letters: What was not done, `LETTERS`, and the row of the message of each.
        satisfied: Pairs of message and query.
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
        options: dict[str, Any] = {}
        if cache_bytes_max is not None:
            options["cache_bytes_max"] = cache_bytes_max
        self.table = files.table()
        self._snapshot: Snapshot | None = None
        self._registry: Registry | None = None
        self.query_ids = pa.array([], pa.string())
        """Ids of the filter queries, by number."""
        if files.notices is not None:
            self._snapshot = Snapshot.open(files.notices, limits, threads=threads, **options)
            self.query_ids = ids_of(self._snapshot)
            self._notices = self.table.takers_of(self.query_ids)
        if files.results is not None:
            subscriptions = Snapshot.open(files.results)
            self._registry = Registry.of(subscriptions, limits, threads=threads, **options)
            ids = ids_of(subscriptions)
            self._results = _ResultTakers(ids.to_pylist(), self.table.takers_of(ids))

    def answer(self, batch: pa.RecordBatch, *, with_matches: bool) -> list[MicroBatchAnswer]:
        """Match the messages of a batch, schema `schemas.SOURCE`.

        Args:
            batch: Messages.
            with_matches: Whether the lists of filter queries are wanted.

        Returns:
            One answer or, where there are many results, several, in the order of the messages.
        """
        if self._registry is None:
            return [self._answer(batch, None, with_matches)]
        answers, start, rows = [], 0, 64
        while start < len(batch):
            part = batch.slice(start, rows)
            start += len(part)
            found = self._registry.deliver(part.column("message"), part.column("message_id"))
            answers.append(self._answer(part, found, with_matches))
            # As many messages at a time as give about so many results.
            rows = max(1, min(len(part) * RESULTS_AT_ONCE // max(len(found), 1), 4 * rows))
        return answers

    def _answer(
        self, batch: pa.RecordBatch, found: DeliveryBatch | None, with_matches: bool
    ) -> MicroBatchAnswer:
        messages = batch.column("message")
        deliveries = _Deliveries()
        ids, sizes = message_ids_of(batch), sizes_of(batch)
        letters: list[_Letters] = []
        matches = None
        satisfied = 0
        refusals: pa.Table | None = None
        if self._snapshot is not None:
            matched = self._snapshot.match(messages)
            satisfied += matched.stats.matches
            refusals = refusals_of(matched.errors)
            numbers, rows = _flat(matched.matches)
            deliveries.add_notices(rows, *self._notices.expand(numbers))
            if len(matched.verdicts):
                letters.append(self._undecided_notices(matched.verdicts, ids, sizes))
            matches = matched.matches if with_matches else None
        if found is not None:
            refusals = found.errors if refusals is None else refusals
            satisfied += self._results.add(found, deliveries)
            if len(found.verdicts):
                letters.append(self._undecided_results(found.verdicts, ids, sizes))
        if refusals is None:
            refusals = refusals_of(pa.nulls(len(batch), pa.struct([])))
        refused, letter = refused_in(batch, ids, refusals)
        if len(letter):
            letters.append((np.flatnonzero(refused), letter))
        return MicroBatchAnswer(
            message_ids=ids,
            sizes=sizes,
            is_refused=refused,
            matches=matches,
            letters=letters,
            satisfied=satisfied,
            **deliveries.columns(),
        )

    def _undecided_notices(self, verdicts: pa.Table, ids: pa.Array, sizes: pa.Array) -> _Letters:
        """Letters for pairs of message and filter query, one for everybody who takes it."""
        numbers = verdicts.column("query_number").to_numpy()
        return self._undecided(verdicts, ids, sizes, *self._notices.expand(numbers))

    def _undecided_results(self, verdicts: pa.Table, ids: pa.Array, sizes: pa.Array) -> _Letters:
        """Return the undecided rows of subscriptions that want results."""
        numbers = self._results.numbers(verdicts.column("subscription_id").to_pylist())
        return self._undecided(verdicts, ids, sizes, *self._results.takers.expand(numbers))

    def _undecided(
        self,
        verdicts: pa.Table,
        ids: pa.Array,
        sizes: pa.Array,
        taken: np.ndarray | None,
        ranks: np.ndarray,
    ) -> _Letters:
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


class _Deliveries:
    """Columns of deliveries, as they come together."""

    def __init__(self) -> None:
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._values: list[pa.Array] = []

    def add_notices(self, rows: np.ndarray, taken: np.ndarray | None, ranks: np.ndarray) -> None:
        """Deliveries without a fragment; `taken` repeats rows where several take one query."""
        rows = rows if taken is None else rows[taken]
        zeros = np.zeros(len(rows), dtype=np.int32)
        self._parts.append((rows, ranks, zeros, np.full(len(rows), NO_FRAGMENT, dtype=np.int32)))

    def add_results(
        self,
        rows: np.ndarray,
        ranks: np.ndarray,
        numbers: np.ndarray,
        fragments: np.ndarray,
        values: pa.Array,
    ) -> None:
        """Deliveries with their places in `values`. At most once."""
        self._parts.append((rows, ranks, numbers, fragments))
        self._values.append(values)

    def columns(self) -> dict[str, np.ndarray | pa.Array]:
        """Return the columns that a `MicroBatchAnswer` is made of."""
        names = ("rows", "ranks", "result_numbers", "fragments")
        parts = self._parts or [tuple(np.zeros(0, dtype=np.int32) for _ in names)]
        columns = (
            parts[0] if len(parts) == 1 else [np.concatenate(c) for c in zip(*parts, strict=True)]
        )
        values = self._values[0] if self._values else pa.array([], pa.binary())
        return {**dict(zip(names, columns, strict=True)), "values": values}


class _ResultTakers:
    """From the deliveries of a registry to places in the table of the generation."""

    def __init__(self, ids: Sequence[str], takers: Takers) -> None:
        self.takers = takers
        self._numbers = {name: number for number, name in enumerate(ids)}

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """Numbers of subscriptions of the registry, as `takers` counts them."""
        return np.fromiter((self._numbers[name] for name in names), np.uint32, len(names))

    def add(self, found: DeliveryBatch, deliveries: _Deliveries) -> int:
        """Adds the deliveries; gives the pairs of message and subscription."""
        numbers = found.numbers
        names = self.numbers(found.subscription_ids)
        rows = numbers.column("row").to_numpy()
        results = numbers.column("result_number").to_numpy()
        fragment = numbers.column("fragment")
        places = pc.fill_null(fragment.indices, NO_FRAGMENT).to_numpy()
        taken, ranks = self.takers.expand(names[numbers.column("subscription").to_numpy()])
        if taken is not None:
            rows, results, places = rows[taken], results[taken], places[taken]
        deliveries.add_results(rows, ranks, results, places, fragment.dictionary)
        return int(np.count_nonzero(results == 0))


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

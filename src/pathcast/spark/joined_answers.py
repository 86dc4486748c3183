"""Deliveries of several answers as columns, in any order: rows of inboxes, and of `deliver`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.registry.identity import delivery_ids
from pathcast.spark.answering import NO_FRAGMENT, MicroBatchAnswer

if TYPE_CHECKING:
    from pathcast.spark.generations import TakerTable


class JoinedAnswers:
    """The deliveries of several answers as one."""

    def __init__(self, answers: Sequence[MicroBatchAnswer]) -> None:
        starts = np.cumsum([0, *(len(answer.message_ids) for answer in answers)])
        self.rows = np.concatenate(
            [
                answer.rows.astype(np.int64) + start
                for answer, start in zip(answers, starts[:-1], strict=True)
            ]
        )
        self.ranks = np.concatenate([answer.ranks for answer in answers])
        self.result_numbers = np.concatenate([answer.result_numbers for answer in answers])
        ids = [answer.message_ids for answer in answers]
        self.message_ids = pa.chunked_array(ids).combine_chunks()
        ends = np.cumsum([0, *(len(answer.values) for answer in answers)])
        self._fragments = np.concatenate(
            [
                np.where(answer.fragments == NO_FRAGMENT, NO_FRAGMENT, answer.fragments + end)
                for answer, end in zip(answers, ends[:-1], strict=True)
            ]
        )
        values = [answer.values.cast(pa.large_binary()) for answer in answers]
        self._values = pa.chunked_array(values)

    def _fragments_of(self, order: np.ndarray) -> pa.Array:
        """The results of some deliveries; equal ones of a message are one value."""
        places = self._fragments[order]
        has_none = places == NO_FRAGMENT
        if has_none.all():
            nothing = pa.nulls(len(order), pa.int32())
            return pa.DictionaryArray.from_arrays(nothing, pa.array([], pa.binary()))
        distinct, numbers = np.unique(places, return_inverse=True)
        skipped = int(has_none.any())
        values = self._values.take(pa.array(distinct[skipped:])).combine_chunks()
        indices = pa.array((numbers - skipped).astype(np.int32), mask=has_none)
        return pa.DictionaryArray.from_arrays(indices, values.cast(pa.binary()))

    def by_rank(self) -> np.ndarray:
        """Places of deliveries, by subscription and then in the order of messages."""
        # One sort of 64-bit integers, no text.
        keys = self.ranks.astype(np.uint64) << np.uint64(32)
        keys |= np.arange(len(keys), dtype=np.uint64)
        keys.sort()
        return (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)

    def fragment_bytes(self, order: np.ndarray) -> np.ndarray:
        """Bytes of the result of each of some deliveries."""
        lengths = pc.binary_length(self._values).to_numpy(zero_copy_only=False)
        # The last one is that of no fragment.
        found: np.ndarray = np.append(lengths, 0)[self._fragments[order]]
        return found

    def deliveries(self, order: np.ndarray, table: TakerTable) -> list[pa.Array]:
        """Columns of some deliveries, each with a dictionary of its own.

        Returns:
            Subscriber, subscription id, message id, result number, fragment and delivery id.
        """
        ranks = self.ranks[order]
        is_new = np.concatenate([[True], ranks[1:] != ranks[:-1]])
        places = (np.cumsum(is_new) - 1).astype(np.int32)
        takers = table.rows(ranks[is_new])
        subscribers = takers.subscribers.dictionary_encode()
        rows, messages = _distinct(self.rows[order], len(self.message_ids))
        message_ids = self.message_ids.take(pa.array(rows))
        numbers = self.result_numbers[order]
        ids = delivery_ids(
            takers.versions,
            pa.array(places.astype(np.uint32)),
            pc.fill_null(message_ids, "").to_pylist(),
            pa.array(messages.astype(np.uint32)),
            pa.array(numbers.astype(np.uint32)),
        )
        return [
            pa.DictionaryArray.from_arrays(
                subscribers.indices.take(pa.array(places)), subscribers.dictionary
            ),
            pa.DictionaryArray.from_arrays(pa.array(places), takers.ids),
            pa.DictionaryArray.from_arrays(pa.array(messages), message_ids),
            pa.array(numbers.astype(np.int32)),
            self._fragments_of(order),
            ids,
        ]


def _distinct(numbers: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that occur, ascending, and for every row its place among them; no sort."""
    occurs = np.zeros(count, dtype=bool)
    occurs[numbers] = True
    places = (np.cumsum(occurs) - 1).astype(np.int32)
    return np.flatnonzero(occurs), places[numbers]

"""One answer of several: subscriptions of one batch that several engines have answered.

Subscriptions are numbered anew, those of the first engine as they were, then the others.

It answers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from pathcast.engine.results import take_ids
from pathcast.errors import PathcastError
from pathcast.model import BatchStats, DeliveryAnswer

_NO_FRAGMENT: Final = -1


class PartAnswer(NamedTuple):
    """The deliveries of some subscriptions for some messages of a batch.

    Attributes:
        answer: Of an engine that was given these messages.
        places: Where each of them stands in the batch.
        undecided: Verdicts besides: place in the batch, id of the subscription, error.
    """

    answer: DeliveryAnswer
    places: Sequence[int]
    undecided: Sequence[tuple[int, str, PathcastError]]


def merged(
    first: DeliveryAnswer, parts: Sequence[PartAnswer], order: Mapping[str, int]
) -> DeliveryAnswer:
    """The answer for all subscriptions.

    Args:
        first: Of the engine that the whole batch was given to, which says what was refused.
        parts: Of others, for other subscriptions.
        order: Ids of these, and numbers in the order in which they came.

    Cost: a sort of the deliveries.
    """
    answers = [first, *(part.answer for part in parts)]
    held = [_ids(answer) for answer in answers]
    further = {name for names in held[1:] for name in names.values()}
    further |= {name for part in parts for _, name, _ in part.undecided}
    ids = [*held[0].values(), *sorted(further, key=order.__getitem__)]
    numbers = {name: number for number, name in enumerate(ids)}
    ours = [{old: numbers[name] for old, name in names.items()} for names in held]
    columns = [_columns(first, ours[0])]
    verdicts = [(row, ours[0][old], error) for row, old, error in first.verdicts]
    fragments = len(first.fragments)
    for part, own in zip(parts, ours[1:], strict=True):
        rows, names, results, made = _columns(part.answer, own)
        made = np.where(made == _NO_FRAGMENT, made, made + fragments)
        columns.append(np.stack([np.array(part.places, np.int64)[rows], names, results, made]))
        verdicts += [
            (part.places[row], own[old], error) for row, old, error in part.answer.verdicts
        ]
        verdicts += [(row, numbers[name], error) for row, name, error in part.undecided]
        fragments += len(part.answer.fragments)
    return DeliveryAnswer(
        rows=_rows(np.concatenate(columns, axis=1), first.rows.schema),
        fragments=pa.concat_arrays([answer.fragments for answer in answers]),
        refusals=first.refusals,
        verdicts=sorted(verdicts, key=lambda each: each[:2]),
        stats=_stats(first.stats, parts),
        subscription_ids=ids,
    )


def _ids(answer: DeliveryAnswer) -> dict[int, str]:
    """Number -> id, ascending, of the subscriptions that an answer speaks of."""
    told = [number for _, number, _ in answer.verdicts]
    numbers = np.unique([*np.unique(answer.rows.column("subscription").to_numpy()), *told])
    distinct = [int(number) for number in numbers]
    return dict(zip(distinct, take_ids(answer.subscription_ids, distinct), strict=True))


def _columns(answer: DeliveryAnswer, numbers: Mapping[int, int]) -> np.ndarray:
    """Message, subscription by its new number, result, and fragment or none of each delivery."""
    rows = answer.rows
    old = np.array(list(numbers), np.int64)
    new = np.array(list(numbers.values()), np.int64)
    names = rows.column("subscription").to_numpy().astype(np.int64)
    made = rows.column("fragment").cast(pa.int64()).fill_null(_NO_FRAGMENT)
    return np.stack(
        [
            rows.column("message").to_numpy().astype(np.int64),
            new[np.searchsorted(old, names)],
            rows.column("result").to_numpy().astype(np.int64),
            made.to_numpy(),
        ]
    )


def _rows(columns: np.ndarray, schema: pa.Schema) -> pa.RecordBatch:
    """Deliveries, ascending by message, subscription and result."""
    messages, names, results, made = columns[:, np.lexsort(columns[2::-1])]
    arrays = [pa.array(column, pa.uint32()) for column in (messages, names, results)]
    is_none = made == _NO_FRAGMENT
    arrays.append(pa.array(np.where(is_none, 0, made), pa.uint32(), mask=is_none))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _stats(first: BatchStats, parts: Sequence[PartAnswer]) -> BatchStats:
    """The counters of a batch: what messages are is said by the engine that was given all."""
    total = reduce(add, (part.answer.stats for part in parts), first)
    return replace(
        total,
        messages=first.messages,
        bytes=first.bytes,
        refused=first.refused,
        nodes=first.nodes,
        verdicts=total.verdicts + sum(len(part.undecided) for part in parts),
    )

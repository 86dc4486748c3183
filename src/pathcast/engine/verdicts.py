"""Verdicts: pairs of message and query that could not be decided within their steps.

An exact evaluation may take `Limits.evaluation_steps_max` steps, and a message
`Limits.message_steps_max` over all queries. A query that is undecided when either is used up is
neither satisfied nor not satisfied by the message: that pair gets a verdict, and everything else of
the batch is answered as usual.

Example:
    >>> pairs = OverBudget(pa.array([3]), pa.array([7], pa.uint32()), pa.array([False]))
    >>> found = verdict_table([pairs], [0], Limits())
    >>> found.select(["row", "query_number", "code"]).to_pylist()
    [{'row': 3, 'query_number': 7, 'code': 'limit.evaluation_steps'}]

Engines find them; this module gives them their shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import EvaluationBudgetError, MessageBudgetError
from pathcast.limits import Limits
from pathcast.model import IdsByNumber, OverBudget

VERDICTS_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("query_number", pa.uint32(), nullable=False),
        pa.field("code", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("message", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    ]
)
"""One row a verdict, ascending: place of the message in the batch, number of the query, code and
sentence of the error."""


class Verdicts(Mapping[str, EvaluationBudgetError]):
    """Query id -> verdict, for one message; sorted by id. Pickled and copied as a `dict`.

    Cost: nothing until the first read; the length costs nothing.
    """

    __slots__ = ("_errors", "_found", "_limits", "_names")

    def __init__(self, found: OverBudget | None, names: IdsByNumber, limits: Limits) -> None:
        self._found = found
        self._names = names
        self._limits = limits
        self._errors: dict[str, EvaluationBudgetError] | None = None

    def __len__(self) -> int:
        return 0 if self._found is None else len(self._found.query_numbers)

    def __getitem__(self, query_id: str) -> EvaluationBudgetError:
        return self._by_id()[query_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id())

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (self._by_id(),)

    def __repr__(self) -> str:
        return f"Verdicts({list(self)!r})"

    def _by_id(self) -> dict[str, EvaluationBudgetError]:
        if self._errors is None:
            found = self._found
            numbers = [] if found is None else found.query_numbers.to_pylist()
            by_messages = [] if found is None else found.by_message.to_pylist()
            pairs = sorted(zip(map(self._names.__getitem__, numbers), by_messages, strict=True))
            self._errors = {
                query_id: _error(query_id, self._limits, by_message=by_message)
                for query_id, by_message in pairs
            }
        return self._errors


def undecided_at(found: OverBudget, row: int) -> OverBudget:
    """The pairs of one message; slices, not copies."""
    start, stop = np.searchsorted(found.rows.to_numpy(), [row, row + 1])
    return OverBudget(*(column.slice(start, stop - start) for column in found))


def verdict_table(
    found: Sequence[OverBudget | None], firsts: Sequence[int], limits: Limits
) -> pa.Table:
    """Verdicts as a table of `VERDICTS_SCHEMA`.

    Args:
        found: What each chunk of the batch gave; None for nothing.
        firsts: Place in the batch of the first message of each chunk.
        limits: Those that were exceeded.

    Cost: no Python object a verdict.
    """
    errors = [_error("", limits, by_message=by_message) for by_message in (False, True)]
    codes, messages = [error.code for error in errors], [error.message for error in errors]
    batches = [
        pa.record_batch(
            [
                pc.add(pairs.rows, pa.scalar(first, pa.int64())),
                pairs.query_numbers,
                _chosen(pairs.by_message, codes),
                _chosen(pairs.by_message, messages),
            ],
            schema=VERDICTS_SCHEMA,
        )
        for pairs, first in zip(found, firsts, strict=True)
        if pairs is not None
    ]
    return pa.Table.from_batches(batches, VERDICTS_SCHEMA)


def _chosen(is_second: pa.Array, texts: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(is_second.cast(pa.int8()), texts)


def _error(query_id: str, limits: Limits, *, by_message: bool) -> EvaluationBudgetError:
    if by_message:
        maximum, limit = limits.message_steps_max, "message_steps_max"
        return MessageBudgetError("limit.message_steps", limit=limit, maximum=maximum, id=query_id)
    maximum, limit = limits.evaluation_steps_max, "evaluation_steps_max"
    return EvaluationBudgetError(
        "limit.evaluation_steps", limit=limit, maximum=maximum, id=query_id
    )

"""Verdicts: pairs of message and query that could not be decided within their steps.

An exact evaluation may take `Limits.evaluation_steps_max` steps. A query that needs more on some
message is neither satisfied nor not satisfied by it: that pair gets a verdict, and everything else
of the batch is answered as usual.

Example:
    >>> found = verdict_table([OverBudget(pa.array([3]), pa.array([7], pa.uint32()))], [0], 1000)
    >>> found.select(["row", "query_number", "code"]).to_pylist()
    [{'row': 3, 'query_number': 7, 'code': 'limit.evaluation_steps'}]

Engines find them; this module gives them their shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import EvaluationBudgetError
from pathcast.model import OverBudget

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
    """Query id -> verdict, for one message; sorted by id.

    Cost: nothing until the first read; the length costs nothing.
    """

    __slots__ = ("_errors", "_names", "_numbers", "_steps_max")

    def __init__(self, numbers: pa.Array, names: Sequence[str], steps_max: int) -> None:
        self._numbers = numbers
        self._names = names
        self._steps_max = steps_max
        self._errors: dict[str, EvaluationBudgetError] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, query_id: str) -> EvaluationBudgetError:
        return self._by_id()[query_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id())

    def __repr__(self) -> str:
        return f"Verdicts({list(self)!r})"

    def _by_id(self) -> dict[str, EvaluationBudgetError]:
        if self._errors is None:
            ids = sorted(self._names[number] for number in self._numbers.to_pylist())
            self._errors = {query_id: _error(query_id, self._steps_max) for query_id in ids}
        return self._errors


def numbers_at(found: OverBudget, row: int) -> pa.Array:
    """Numbers of the queries that went over budget on one message; a slice, not a copy."""
    if not len(found.rows):
        return found.query_numbers
    start, stop = np.searchsorted(found.rows.to_numpy(), [row, row + 1])
    return found.query_numbers.slice(start, stop - start)


def verdict_table(found: Sequence[OverBudget], firsts: Sequence[int], steps_max: int) -> pa.Table:
    """Verdicts as a table of `VERDICTS_SCHEMA`.

    Args:
        found: What each chunk of the batch gave.
        firsts: Place in the batch of the first message of each chunk.
        steps_max: The limit that was exceeded.

    Cost: no Python object a verdict.
    """
    error = _error("", steps_max)
    batches = [
        pa.record_batch(
            [
                pc.add(rows, pa.scalar(first, pa.int64())),
                queries,
                _repeated(error.code, len(rows)),
                _repeated(error.message, len(rows)),
            ],
            schema=VERDICTS_SCHEMA,
        )
        for (rows, queries), first in zip(found, firsts, strict=True)
        if len(rows)
    ]
    return pa.Table.from_batches(batches, VERDICTS_SCHEMA)


def _repeated(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), count), [text])


def _error(query_id: str, steps_max: int) -> EvaluationBudgetError:
    limit = "evaluation_steps_max"
    return EvaluationBudgetError(
        "limit.evaluation_steps", limit=limit, maximum=steps_max, id=query_id
    )

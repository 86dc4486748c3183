"""Verdicts: pairs of message and query that could not be decided.

An exact evaluation may take `Limits.evaluation_steps_max` steps, and a message
`Limits.message_steps_max` over all queries. A query that is undecided when either is used up is
neither satisfied nor not satisfied by the message: that pair gets a verdict, and everything else of
the batch is answered as usual. So does a subscription whose steps cannot be done to the message, or
that would make no XML of it.

Example:
    >>> from pathcast.model import BatchStats, StoredAnswer
    >>> pairs = OverBudget(pa.array([3]), pa.array([7], pa.uint32()), pa.array([False]))
    >>> answer = StoredAnswer(pa.array([[]] * 4), (), pairs, BatchStats(), {7: "q7"})
    >>> found = verdict_table([answer], [0], Limits())
    >>> found.select(["row", "query_number", "code"]).to_pylist()
    [{'row': 3, 'query_number': 7, 'code': 'limit.evaluation_steps'}]

Engines find them; this module gives them their shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import EvaluationBudgetError, MessageBudgetError, PathcastError
from pathcast.kernel.matcher import BatchAnswer
from pathcast.limits import Limits
from pathcast.model import OverBudget

VERDICTS_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("query_number", pa.uint32(), nullable=False),
        pa.field("code", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("message", pa.dictionary(pa.int32(), pa.string()), nullable=False),
    ]
)
"""One row a verdict, ascending: place of the message in the batch, number of the query, code and
sentence of the error."""


class Verdicts(Mapping[str, PathcastError]):
    """Query id -> verdict, for one message; sorted by id. Pickled and copied as a `dict`.

    Cost: nothing until the first read; the length costs nothing.
    """

    __slots__ = ("_answer", "_errors", "_limits", "_others", "_over_budget")

    def __init__(self, answer: BatchAnswer, row: int, limits: Limits) -> None:
        found = answer.over_budget
        self._answer = answer
        self._over_budget = None if found is None else undecided_at(found, row)
        self._others = [each for each in answer.verdicts if each[0] == row]
        self._limits = limits
        self._errors: dict[str, PathcastError] | None = None

    def __len__(self) -> int:
        found = self._over_budget
        return len(self._others) + (0 if found is None else len(found.query_numbers))

    def __getitem__(self, query_id: str) -> PathcastError:
        return self._by_id()[query_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id())

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (self._by_id(),)

    def __repr__(self) -> str:
        return f"Verdicts({list(self)!r})"

    def _by_id(self) -> dict[str, PathcastError]:
        if self._errors is None:
            names, found = self._answer.query_ids, self._over_budget
            errors = {names[number]: error for _, number, error in self._others}
            numbers = [] if found is None else found.query_numbers.to_pylist()
            by_messages = [] if found is None else found.by_message.to_pylist()
            for number, by_message in zip(numbers, by_messages, strict=True):
                name = names[number]
                errors[name] = _error(name, self._limits, by_message=by_message)
            self._errors = dict(sorted(errors.items()))
        return self._errors


def undecided_at(found: OverBudget, row: int) -> OverBudget:
    """The pairs of one message; slices, not copies."""
    start, stop = np.searchsorted(found.rows.to_numpy(), [row, row + 1])
    return OverBudget(*(column.slice(start, stop - start) for column in found))


def verdict_table(
    answers: Sequence[BatchAnswer], firsts: Sequence[int], limits: Limits
) -> pa.Table:
    """Verdicts as a table of `VERDICTS_SCHEMA`.

    Args:
        answers: Of each chunk of the batch.
        firsts: Place in the batch of the first message of each chunk.
        limits: Those that were exceeded.

    Cost: no Python object a verdict of a budget.
    """
    errors = [_error("", limits, by_message=by_message) for by_message in (False, True)]
    codes, messages = [error.code for error in errors], [error.message for error in errors]
    batches: list[pa.RecordBatch] = []
    for answer, first in zip(answers, firsts, strict=True):
        pairs, others = answer.over_budget, answer.verdicts
        parts: list[list[pa.Array]] = []
        if pairs is not None:
            told = [_chosen(pairs.by_message, codes), _chosen(pairs.by_message, messages)]
            parts.append([pairs.rows, pairs.query_numbers, *told])
        if others:
            rows, numbers, found = zip(*others, strict=True)
            told = [
                pa.array([getattr(error, name) for error in found]).dictionary_encode()
                for name in ("code", "message")
            ]
            parts.append([pa.array(rows, pa.int64()), pa.array(numbers, pa.uint32()), *told])
        for rows_of, *columns in parts:
            placed = pc.add(rows_of, pa.scalar(first, pa.int64()))
            batches.append(pa.record_batch([placed, *columns], schema=VERDICTS_SCHEMA))
    table = pa.Table.from_batches(batches, VERDICTS_SCHEMA)
    if any(answer.verdicts for answer in answers):
        order = [("row", "ascending"), ("query_number", "ascending")]
        table = table.unify_dictionaries().combine_chunks().sort_by(order)
    return table


def _chosen(is_second: pa.Array, texts: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(is_second.cast(pa.int32()), texts)


def _error(query_id: str, limits: Limits, *, by_message: bool) -> EvaluationBudgetError:
    if by_message:
        maximum, limit = limits.message_steps_max, "message_steps_max"
        return MessageBudgetError("limit.message_steps", limit=limit, maximum=maximum, id=query_id)
    maximum, limit = limits.evaluation_steps_max, "evaluation_steps_max"
    return EvaluationBudgetError(
        "limit.evaluation_steps", limit=limit, maximum=maximum, id=query_id
    )

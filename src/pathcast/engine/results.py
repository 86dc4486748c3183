"""Results of a batch, as slices of Arrow arrays.

No Python object is made for a match unless somebody asks for it: a `MatchResult` knows where its
numbers lie, its ids are looked up and sorted when they are first read.

Results pickle without the engine that gave them: a process that has no kernel can read them. A
result of one message pickles with the ids of its own queries only, however many others there are.

Example:
    >>> ids = QueryIds(pa.array([0, 1], pa.uint32()), ["q9", "q1"])
    >>> len(ids), list(ids), "q9" in ids
    (2, ['q1', 'q9'], True)

It matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import overload

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.engine.verdicts import Verdicts, undecided_at
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.model import BatchAnswer, BatchStats, IdsByNumber

ERROR_TYPE = pa.struct(
    [
        ("code", pa.string()),
        ("message", pa.string()),
        ("line", pa.int64()),
        ("column", pa.int64()),
        ("offset", pa.int64()),
    ]
)
"""An error of a message as a row: line and column from 1, offset in bytes from 0; null where the
error has no place."""

MATCHES_TYPE = pa.list_(pa.uint32())
"""Numbers of the satisfied queries of a message, ascending."""


class QueryNumbers(Sequence[int]):
    """The numbers of the queries that a message satisfies, ascending.

    Attributes:
        array: The same as a `uint32` Arrow array.
    """

    __slots__ = ("array",)

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...

    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            numbers: list[int] = self.array.to_pylist()[index]
            return numbers
        number: int = self.array[index].as_py()
        return number

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.to_pylist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[object, ...]:
        return QueryNumbers, (without_neighbours(self.array),)

    def __repr__(self) -> str:
        return f"QueryNumbers({list(self)!r})"


class QueryIds(Sequence[str]):
    """The ids of the queries that a message satisfies, in sorted order.

    Cost: nothing until the first read, then one look-up an id and a sort. The length costs nothing.
    """

    __slots__ = ("_ids", "_names", "_numbers")

    def __init__(self, numbers: pa.Array, names: IdsByNumber) -> None:
        self._numbers = numbers
        self._names = names
        self._ids: list[str] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._sorted()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sorted())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[object, ...]:
        numbers = without_neighbours(self._numbers)
        return QueryIds, (numbers, some_ids(self._names, numbers))

    def __repr__(self) -> str:
        return f"QueryIds({list(self)!r})"

    def _sorted(self) -> list[str]:
        if self._ids is None:
            names = self._names
            self._ids = sorted(names[number] for number in self._numbers.to_pylist())
        return self._ids


class MatchResult:
    """The result for one message.

    Attributes:
        error: Why the door refused the message; None where it did not.
        verdicts: Query id -> `EvaluationBudgetError`, for the queries that could not be decided on
            this message within `Limits.evaluation_steps_max`, or (`MessageBudgetError`) were
            undecided when the message had used up `Limits.message_steps_max`; they are not among
            the satisfied ones. Empty as a rule.
    """

    __slots__ = ("_names", "_numbers", "error", "verdicts")

    def __init__(
        self,
        numbers: pa.Array,
        names: IdsByNumber,
        error: PathcastError | None,
        verdicts: Verdicts,
    ) -> None:
        self._numbers = numbers
        self._names = names
        self.error = error
        self.verdicts = verdicts

    @property
    def query_numbers(self) -> QueryNumbers:
        """Numbers of the satisfied queries, ascending; empty for a refused or missing message."""
        return QueryNumbers(self._numbers)

    @property
    def query_ids(self) -> QueryIds:
        """Ids of the satisfied queries, sorted; empty for a refused or missing message."""
        return QueryIds(self._numbers, self._names)

    def __reduce__(self) -> tuple[object, ...]:
        numbers = without_neighbours(self._numbers)
        names = some_ids(self._names, numbers)
        return MatchResult, (numbers, names, self.error, self.verdicts)

    def __repr__(self) -> str:
        if self.error is not None:
            return f"MatchResult(error={self.error!r})"
        undecided = f", {len(self.verdicts)} undecided" if self.verdicts else ""
        return f"MatchResult({len(self._numbers)} queries{undecided})"


class BatchResult(Sequence[MatchResult]):
    """The results of a batch, in the order of its messages.

    Attributes:
        stats: Counters of the batch.
    """

    def __init__(
        self,
        answers: Sequence[BatchAnswer],
        limits: Limits,
        names: Sequence[IdsByNumber] | None = None,
    ) -> None:
        self._answers = answers
        self._limits = limits
        self._names = [answer.query_ids for answer in answers] if names is None else names
        self._errors = _errors_by_position(answers)
        self.stats = total_stats(answers)

    def __len__(self) -> int:
        return sum(len(answer.matches) for answer in self._answers)

    @overload
    def __getitem__(self, index: int) -> MatchResult: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[MatchResult]: ...

    def __getitem__(self, index: int | slice) -> MatchResult | Sequence[MatchResult]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        local = position
        for answer, names in zip(self._answers, self._names, strict=True):
            if 0 <= local < len(answer.matches):
                undecided = undecided_at(answer.over_budget, local)
                return MatchResult(
                    _numbers_at(answer.matches, local),
                    names,
                    self._errors.get(position),
                    Verdicts(undecided, names, self._limits),
                )
            local -= len(answer.matches)
        raise IndexError(f"no message {index} in a batch of {len(self)}")

    def __reduce__(self) -> tuple[object, ...]:
        answers = [replace(answer, query_ids=()) for answer in self._answers]
        names = [
            some_ids(
                known,
                pa.concat_arrays([answer.matches.flatten(), answer.over_budget.query_numbers]),
            )
            for answer, known in zip(self._answers, self._names, strict=True)
        ]
        return BatchResult, (answers, self._limits, names)

    def __repr__(self) -> str:
        return f"BatchResult({len(self)} messages, {self.stats.matches} matches)"


@dataclass(frozen=True, slots=True)
class ArrowBatch:
    """The results of a batch as Arrow columns, one row a message.

    Attributes:
        matches: `list<uint32>`: numbers of the satisfied queries, ascending; empty for a message
            that was refused, null for a missing one. Chunked as the messages were.
        errors: `ERROR_TYPE` rows, null where the message was not refused. Chunked likewise.
        verdicts: `VERDICTS_SCHEMA` rows: the pairs of message and query that could not be decided
            within `Limits.evaluation_steps_max`, or before the message had used up
            `Limits.message_steps_max`. Empty as a rule.
        stats: Counters of the batch.
        query_ids: Number of a query -> its id. Pickled, it is a tuple of all ids: send `matches`
            alone where the receiver has the snapshot.
    """

    matches: pa.Array | pa.ChunkedArray
    errors: pa.Array | pa.ChunkedArray
    verdicts: pa.Table
    stats: BatchStats
    query_ids: Sequence[str]


def take_ids(ids: IdsByNumber, numbers: list[int]) -> list[str]:
    """Ids of many numbers; the kernel looks them up in one call."""
    take = getattr(ids, "take", None)
    found: list[str] = take(numbers) if take is not None else [ids[number] for number in numbers]
    return found


def some_ids(ids: IdsByNumber, numbers: pa.Array) -> dict[int, str]:
    """The ids of these numbers, each once, to be sent without the others."""
    distinct: list[int] = pc.unique(numbers).to_pylist()
    return dict(zip(distinct, take_ids(ids, distinct), strict=True))


def without_neighbours(column: pa.Array) -> pa.Array:
    """The same values in buffers of their own: Arrow pickles a slice with all that it is cut from.

    Example:
        >>> len(without_neighbours(pa.array(range(1000)).slice(0, 2)).buffers()[1]) < 1000
        True
    """
    return column.take(pa.array(range(len(column)), pa.int64()))


def error_array(length: int, refusals: Sequence[tuple[int, PathcastError]]) -> pa.StructArray:
    """Refusals as a column of `ERROR_TYPE`.

    Cost: O(1) where nothing was refused.
    """
    if not refusals:
        return pa.nulls(length, ERROR_TYPE)
    rows: list[Mapping[str, object] | None] = [None] * length
    for position, error in refusals:
        rows[position] = error.to_dict()
    return pa.array(rows, ERROR_TYPE)


def total_stats(answers: Sequence[BatchAnswer]) -> BatchStats:
    """The counters of several answers, added up."""
    return sum((answer.stats for answer in answers), BatchStats())


def first_rows(answers: Sequence[BatchAnswer]) -> list[int]:
    """Place in the batch of the first message of each answer."""
    return list(accumulate((len(answer.matches) for answer in answers[:-1]), initial=0))


def _numbers_at(matches: pa.ListArray, position: int) -> pa.Array:
    """The numbers of one message; a slice, not a copy."""
    numbers = matches[position].values
    return pa.array([], pa.uint32()) if numbers is None else numbers


def _errors_by_position(answers: Sequence[BatchAnswer]) -> dict[int, PathcastError]:
    errors: dict[int, PathcastError] = {}
    for answer, first in zip(answers, first_rows(answers), strict=True):
        errors |= {first + position: error for position, error in answer.refusals}
    return errors

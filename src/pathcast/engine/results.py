"""Results of a batch, as views of what an engine answered.

No Python object is made for a match unless somebody asks for it: a `MatchResult` knows its row, its
ids are looked up and sorted when they are first read, columns are made when they are asked for.

Results pickle without the engine that gave them: a process that has no kernel can read them. A
result of one message pickles with the ids of its own queries only, however many others there are.

Example:
    >>> matches = pa.array([[0, 1]], MATCHES_TYPE)
    >>> ids = QueryIds(StoredAnswer(matches, (), None, BatchStats(), ["q9", "q1"]), 0)
    >>> len(ids), list(ids), "q9" in ids
    (2, ['q1', 'q9'], True)

It matches nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import TypeVar, overload

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.engine.notebook import html_table
from pathcast.engine.verdicts import Verdicts, undecided_at, verdict_table
from pathcast.errors import PathcastError
from pathcast.kernel.matcher import BatchAnswer
from pathcast.limits import Limits
from pathcast.model import BatchStats, IdsByNumber, StoredAnswer, SubscriptionWork

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

_IDS_SHOWN = 5
"""Ids of a message that a notebook shows."""

_Item = TypeVar("_Item", int, str)


class _RowView(Sequence[_Item]):
    """The part of an answer that is about one message, read when it is first asked for."""

    __slots__ = ("_answer", "_found", "_row")

    def __init__(self, answer: BatchAnswer, row: int) -> None:
        self._answer = answer
        self._row = row
        self._found: list[_Item] | None = None

    @abstractmethod
    def _read(self) -> list[_Item]: ...

    def _items(self) -> list[_Item]:
        if self._found is None:
            self._found = self._read()
        return self._found

    def __len__(self) -> int:
        return self._answer.count(self._row)

    @overload
    def __getitem__(self, index: int) -> _Item: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[_Item]: ...

    def __getitem__(self, index: int | slice) -> _Item | Sequence[_Item]:
        return self._items()[index]

    def __iter__(self) -> Iterator[_Item]:
        return iter(self._items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (stored_row(self._answer, self._row), 0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"


class QueryNumbers(_RowView[int]):
    """The numbers of the queries that a message satisfies, ascending."""

    __slots__ = ()

    @property
    def array(self) -> pa.Array:
        """Return them as a `uint32` Arrow array."""
        return _numbers_at(self._answer, self._row)

    def _read(self) -> list[int]:
        return self._answer.numbers(self._row)


class QueryIds(_RowView[str]):
    """The ids of the queries that a message satisfies, in sorted order.

    Cost: nothing until the first read, then one look-up an id and a sort. The length costs nothing.
    """

    __slots__ = ()

    def _read(self) -> list[str]:
        return sorted(take_ids(self._answer.query_ids, self._answer.numbers(self._row)))


class MatchResult:
    """The result for one message.

    Attributes:
        error: Why the door refused the message; None where it did not.
    """

    __slots__ = ("_answer", "_limits", "_row", "error")

    def __init__(
        self, answer: BatchAnswer, row: int, error: PathcastError | None, limits: Limits
    ) -> None:
        self._answer = answer
        self._row = row
        self._limits = limits
        self.error = error

    @property
    def query_numbers(self) -> QueryNumbers:
        """Numbers of the satisfied queries, ascending; empty for a refused or missing message."""
        return QueryNumbers(self._answer, self._row)

    @property
    def query_ids(self) -> QueryIds:
        """Ids of the satisfied queries, sorted; empty for a refused or missing message."""
        return QueryIds(self._answer, self._row)

    @property
    def verdicts(self) -> Verdicts:
        """Query id -> why it is undecided; such a query is not among the satisfied ones.

        `EvaluationBudgetError`: not decided on this message within `Limits.evaluation_steps_max`;
        `MessageBudgetError`: not before the message had used up `Limits.message_steps_max`. Another
        error says why the steps of a subscription cannot be done. Empty as a rule.
        """
        return Verdicts(self._answer, self._row, self._limits)

    def __reduce__(self) -> tuple[object, ...]:
        return MatchResult, (stored_row(self._answer, self._row), 0, self.error, self._limits)

    def __repr__(self) -> str:
        if self.error is not None:
            return f"MatchResult(error={self.error!r})"
        undecided = f", {len(self.verdicts)} undecided" if self.verdicts else ""
        return f"MatchResult({self._answer.count(self._row)} queries{undecided})"


class BatchResult(Sequence[MatchResult]):
    """The results of a batch, in the order of its messages: one by one, or as columns.

    Args:
        answers: Of an engine, one a chunk of the messages, at least one.
        limits: What one message could cost.
        is_chunked: Whether columns are chunked as the messages were.
    """

    def __init__(
        self, answers: Sequence[BatchAnswer], limits: Limits, *, is_chunked: bool = False
    ) -> None:
        self._answers = answers
        self._limits = limits
        self._is_chunked = is_chunked

    @cached_property
    def stats(self) -> BatchStats:
        """Counters of the batch."""
        return sum((answer.stats for answer in self._answers), BatchStats())

    @cached_property
    def dearest(self) -> Sequence[SubscriptionWork]:
        """The queries that took the most steps by themselves, the dearest first; a few hundred.

        `stats.work` is what all took so. Of a chunked batch, the dearest of its chunks.
        """
        return works_of(self.work, self.query_ids)

    @property
    def work(self) -> Mapping[int, int]:
        """`dearest` as steps by number of the query."""
        work: Counter[int] = Counter()
        for answer in self._answers:
            work.update(dict(answer.work))
        return work

    @cached_property
    def matches(self) -> pa.Array | pa.ChunkedArray:
        """`list<uint32>`, one row a message: numbers of the satisfied queries, ascending.

        Empty for a message that was refused, null for a missing one. Chunked as the messages were.
        """
        matches = [answer.matches for answer in self._answers]
        return pa.chunked_array(matches, MATCHES_TYPE) if self._is_chunked else matches[0]

    @cached_property
    def errors(self) -> pa.Array | pa.ChunkedArray:
        """`ERROR_TYPE` rows, null where the message was not refused. Chunked as `matches`."""
        errors = [error_array(len(answer), answer.refusals) for answer in self._answers]
        return pa.chunked_array(errors, ERROR_TYPE) if self._is_chunked else errors[0]

    @cached_property
    def verdicts(self) -> pa.Table:
        """`VERDICTS_SCHEMA` rows: the pairs of message and query that could not be decided.

        Why is said as by `MatchResult.verdicts`. Empty as a rule.
        """
        return verdict_table(self._answers, first_rows(self._answers), self._limits)

    @cached_property
    def table(self) -> pa.Table:
        """The columns `matches` and `errors`, one row a message."""
        return pa.table({"matches": self.matches, "errors": self.errors})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """`table` as a stream, for polars, DuckDB and all that read Arrow."""
        return self.table.__arrow_c_stream__(requested_schema)

    @property
    def query_ids(self) -> IdsByNumber:
        """Number of a query -> its id. Pickled, the ids of the satisfied queries alone."""
        return self._answers[0].query_ids

    @cached_property
    def refusals(self) -> dict[int, PathcastError]:
        """Position of a message -> why it was refused, ascending; empty as a rule."""
        refusals: dict[int, PathcastError] = {}
        for answer, first in zip(self._answers, first_rows(self._answers), strict=True):
            refusals |= {first + position: error for position, error in answer.refusals}
        return refusals

    def lists(self) -> Iterator[list[int]]:
        """The numbers of each message; none for one that is missing."""
        return (answer.numbers(row) for answer in self._answers for row in range(len(answer)))

    def __len__(self) -> int:
        return sum(map(len, self._answers))

    @overload
    def __getitem__(self, index: int) -> MatchResult: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[MatchResult]: ...

    def __getitem__(self, index: int | slice) -> MatchResult | Sequence[MatchResult]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        row = position
        for answer in self._answers:
            if 0 <= row < len(answer):
                return MatchResult(answer, row, self.refusals.get(position), self._limits)
            row -= len(answer)
        raise IndexError(f"no message {index} in a batch of {len(self)}")

    def __iter__(self) -> Iterator[MatchResult]:
        position = 0
        for answer in self._answers:
            for row in range(len(answer)):
                yield MatchResult(answer, row, self.refusals.get(position), self._limits)
                position += 1

    def __reduce__(self) -> tuple[object, ...]:
        ids: dict[int, str] = {}
        for answer in self._answers:
            ids |= _own_ids(answer)
        answers = [stored(answer, ids) for answer in self._answers]
        return partial(BatchResult, is_chunked=self._is_chunked), (answers, self._limits)

    def __repr__(self) -> str:
        return f"BatchResult({len(self)} messages, {self.stats.matches} matches)"

    def _repr_html_(self) -> str:
        rows = (
            (place, len(result.query_ids), ", ".join(result.query_ids[:_IDS_SHOWN]), result.error)
            for place, result in enumerate(self)
        )
        return html_table(repr(self), ("row", "queries", "first ids", "error"), rows, len(self))


def works_of(work: Mapping[int, int], ids: IdsByNumber) -> Sequence[SubscriptionWork]:
    """Steps by number as steps by id, the dearest first."""
    found = sorted(work.items(), key=lambda each: (-each[1], each[0]))
    names = take_ids(ids, [number for number, _ in found])
    pairs = zip(names, found, strict=True)
    return [SubscriptionWork(name, steps) for name, (_, steps) in pairs]


def stored(answer: BatchAnswer, ids: IdsByNumber | None = None) -> StoredAnswer:
    """An answer without its engine; with the ids of its own queries, if no others are given."""
    ids = _own_ids(answer) if ids is None else ids
    return StoredAnswer(
        answer.matches,
        answer.refusals,
        answer.over_budget,
        answer.stats,
        ids,
        answer.verdicts,
        answer.work,
    )


def _own_ids(answer: BatchAnswer) -> dict[int, str]:
    """The ids of the queries that some message satisfies, or may satisfy."""
    numbers = answer.matches.flatten()
    if answer.over_budget is not None:
        numbers = pa.concat_arrays([numbers, answer.over_budget.query_numbers])
    if answer.verdicts:
        others = pa.array([number for _, number, _ in answer.verdicts], pa.uint32())
        numbers = pa.concat_arrays([numbers, others])
    if answer.work:
        dear = pa.array([number for number, _ in answer.work], pa.uint32())
        numbers = pa.concat_arrays([numbers, dear])
    return some_ids(answer.query_ids, numbers)


def stored_row(answer: BatchAnswer, row: int) -> StoredAnswer:
    """One message of an answer, by itself."""
    over_budget = answer.over_budget
    if over_budget is not None:
        over_budget = undecided_at(over_budget, row)
        rows = pa.array([0] * len(over_budget.rows), pa.int64())
        over_budget = over_budget._replace(rows=rows) if len(rows) else None
    matches = pa.array([answer.numbers(row)], MATCHES_TYPE)
    others = [(0, number, error) for at, number, error in answer.verdicts if at == row]
    one = StoredAnswer(matches, (), over_budget, BatchStats(), answer.query_ids, others)
    return stored(one)


def take_ids(ids: IdsByNumber, numbers: list[int]) -> list[str]:
    """Ids of many numbers; the kernel looks them up in one call."""
    take = getattr(ids, "take", None)
    found: list[str] = take(numbers) if take is not None else [ids[number] for number in numbers]
    return found


def some_ids(ids: IdsByNumber, numbers: pa.Array) -> dict[int, str]:
    """The ids of these numbers, each once, to be sent without the others."""
    distinct: list[int] = pc.unique(numbers).to_pylist()
    return dict(zip(distinct, take_ids(ids, distinct), strict=True))


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


def first_rows(answers: Sequence[BatchAnswer]) -> list[int]:
    """Place in the batch of the first message of each answer."""
    return list(accumulate(map(len, answers[:-1]), initial=0))


def _numbers_at(answer: BatchAnswer, row: int) -> pa.Array:
    """The numbers of one message; a slice, not a copy."""
    numbers = answer.matches[row].values
    return pa.array([], pa.uint32()) if numbers is None else numbers

"""Batches of messages handed to the kernel, and what comes back.

Nothing is copied but what Python reads: numbers stay in the Arrow array that the kernel has made,
and an id is decoded when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from pathcast.boundary import cache_bytes, native, native_errors
from pathcast.errors import PathcastError, error_for
from pathcast.model import BatchStats, MatcherOptions, OverBudget, StoredAnswer

if TYPE_CHECKING:
    import pyarrow as pa


class KernelMatcher:
    """Matches batches and keeps its caches between them; may be called from several threads."""

    def __init__(
        self,
        source: native.Snapshot | native.RoutingTable,
        options: MatcherOptions,
    ) -> None:
        with native_errors():
            self._matcher = source.matcher(
                options.limits, options.threads, cache_bytes(options.cache_bytes_max)
            )

    def match(
        self, messages: pa.Array | list[bytes | None], *, encoding: str | None = None
    ) -> KernelAnswer:
        """Matches every message of a `binary` or `large_binary` array or a list, where it lies."""
        with native_errors():
            return KernelAnswer(self._matcher.match(messages, encoding))


class KernelAnswer:
    """The kernel's answer to one batch; nothing of it is made before it is asked for.

    Of refusals there are few, and each reading makes them anew.

    Attributes:
        count: Gives how many queries a message satisfies, by its place in the batch.
        numbers: Gives the numbers of these queries, ascending.
    """

    def __init__(self, answer: native.Answer) -> None:
        self._answer = answer
        self.count = answer.count
        self.numbers = answer.numbers

    def __len__(self) -> int:
        return len(self._answer)

    @cached_property
    def matches(self) -> pa.Array:
        """`list<uint32>`: queries by message; null for a missing one, empty for a refused one."""
        with native_errors():
            return self._answer.matches()

    @property
    def refusals(self) -> list[tuple[int, PathcastError]]:
        """Position in the batch and error, ascending by position."""
        return [(row, error_for(code, params)) for row, code, params in self._answer.refusals()]

    @cached_property
    def over_budget(self) -> OverBudget | None:
        """Pairs that could not be decided; their queries are not in `matches`. None: no pair."""
        return OverBudget(*self._answer.undecided()) if self._answer.undecided_count else None

    @cached_property
    def verdicts(self) -> list[tuple[int, int, PathcastError]]:
        """Message, number and error of each subscription that is undecided for another reason.

        Its steps cannot be done to the message, or what it makes is no XML.
        """
        return verdicts_of(self._answer.verdicts(), self._answer.entries())

    @cached_property
    def work(self) -> list[tuple[int, int]]:
        """Number and steps of the queries that took the most, dearest first; a few hundred at most.

        `pathcast.model.SubscriptionWork` says which steps.
        """
        return self._answer.work()

    @cached_property
    def stats(self) -> BatchStats:
        """Counters of the batch."""
        return BatchStats(**self._answer.stats())

    @cached_property
    def query_ids(self) -> KernelIds:
        """Number of a query -> its id. Does not change after it was handed out."""
        return KernelIds(self._answer.entries())


BatchAnswer: TypeAlias = KernelAnswer | StoredAnswer
"""An answer to one batch, as the kernel gave it or as it is kept."""


def verdicts_of(
    verdicts: Sequence[tuple[int, int, str, dict[str, Any]]], entries: native.EntryTable
) -> list[tuple[int, int, PathcastError]]:
    """Message, number and error of what the kernel could not decide."""
    if not verdicts:
        return []
    names = entries.take([number for _, number, _, _ in verdicts])
    found = []
    for (row, number, code, params), name in zip(verdicts, names, strict=True):
        found.append((row, number, error_for(code, {**params, "id": name})))
    return found


class KernelIds(Sequence[str]):
    """Number of a query or a subscription -> its id. Nothing is decoded before it is read.

    Pickled and copied as a tuple of all ids.
    """

    def __init__(self, entries: native.EntryTable) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        numbers = range(len(self))[index]
        if isinstance(numbers, int):
            return self._entries.take([numbers])[0]
        return self._entries.take(list(numbers))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries.take(list(range(len(self)))))

    def __reduce__(self) -> tuple[object, ...]:
        return tuple, (list(self),)

    def take(self, numbers: Sequence[int]) -> list[str]:
        """The ids of many numbers in one call."""
        return self._entries.take(list(numbers))

    def to_arrow(self) -> pa.Array:
        """All ids as a `large_string` array, by number."""
        return self._entries.to_arrow()

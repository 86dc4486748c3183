"""Right answers first: what a benchmark checks before it reports a time.

Three questions. Does the plain NFA report the same queries for the same messages? Does the
reference engine, on a sample of queries and messages? And does every timed call give as many
matches as the call that was checked?

Example:
    >>> truth = Truth("small", counts=(1, 2))
    >>> truth.confirm(3, 2)
    >>> truth.confirm(4, 2)
    Traceback (most recent call last):
    ...
    pathcast_lab.bench.wrong_count.WrongCountError: small: 4 matches, 3 by \
the checked pass; no time is reported

It measures nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from pathcast.engine import BatchResult
from pathcast.model import Query
from pathcast.registry import Registry, Snapshot
from pathcast_lab.bench.wrong_count import WrongCountError
from pathcast_papers import answered, instead_of_the_kernel

THREADS = 1
"""Everything but `threads` and `pipeline` is measured on one."""


@dataclass(frozen=True)
class Checks:
    """What was compared, and with what outcome: agreement, for else there is no result.

    Attributes:
        inputs: Digest of queries and messages.
        matches: Matches of all messages.
        nfa_messages: Messages whose lists of queries the plain NFA gave too.
        nfa_matches: Their matches.
        reference_messages: Messages that the reference engine was asked about.
        reference_queries: Queries that it was asked about.
        reference_matches: Matches among them, the same pairs as the kernel's.
        is_expected: Whether `matches` is the count of the definition; None if it has none for
            these inputs.
    """

    inputs: str
    matches: int
    nfa_messages: int
    nfa_matches: int
    reference_messages: int
    reference_queries: int
    reference_matches: int
    is_expected: bool | None = None

    def __str__(self) -> str:
        known = "as known" if self.is_expected else "no known count for these inputs"
        return (
            f"{self.matches:,} matches ({known}); "
            f"plain NFA: the same {self.nfa_matches:,} in {self.nfa_messages} messages; "
            f"reference engine: the same {self.reference_matches:,} of {self.reference_queries:,} "
            f"queries in {self.reference_messages} messages"
        )


class Truth:
    """Numbers of matches that were checked, by message.

    Args:
        case: What errors call it.
        counts: Matches of each message.
    """

    def __init__(self, case: str, counts: Sequence[int]) -> None:
        self.case = case
        self._totals = [0, *accumulate(counts)]

    def confirm(self, found: int, stop: int, start: int = 0) -> None:
        """Compares the matches of the messages from `start` to `stop`.

        Raises:
            WrongCountError: There are more or fewer.
        """
        expected = self._totals[stop] - self._totals[start]
        if found != expected:
            raise wrong_count(self.case, found, expected, "the checked pass")


def lists(batch: BatchResult) -> list[list[int]]:
    """Query numbers of each message.

    Raises:
        WrongCountError: A message was refused: its time is no time of matching.
    """
    if batch.stats.refused:
        taken = batch.stats.messages - batch.stats.refused
        raise WrongCountError(
            case="messages taken by the door",
            found=taken,
            expected=batch.stats.messages,
            oracle="the yardstick",
        )
    found: list[list[int]] = batch.matches.to_pylist()
    return found


def counts(batch: BatchResult) -> list[int]:
    """Matches of each message, without a Python object a match."""
    if batch.stats.refused:
        lists(batch)
    lengths: list[int] = batch.matches.value_lengths().to_pylist()
    return lengths


def check_nfa(case: str, snapshot: Snapshot, plain: Snapshot, messages: pa.Array) -> int:
    """Compares two engines list by list; the matches, if they agree.

    Args:
        case: What errors call it.
        snapshot: As it is measured.
        plain: The same file, answered by the plain NFA.
        messages: Messages that both answer.

    Raises:
        WrongCountError: A message's lists differ.
    """
    measured = snapshot.match(messages)
    other = plain.match(messages)
    if not measured.matches.equals(other.matches):
        raise _difference(case, lists(measured), lists(other), "the plain NFA")
    return sum(counts(measured))


def check_reference(
    case: str, snapshot: Snapshot, sample: Sequence[Query], messages: pa.Array
) -> int:
    """Compares with the reference engine on a sample of the queries; the matches among them.

    Raises:
        WrongCountError: A message's queries differ.
    """
    index = answered(instead_of_the_kernel, Registry)
    for error in index.add(sample).rejected.values():
        raise error
    answers = index.match(messages)
    expected = [sorted(answer.query_ids) for answer in answers]
    wanted = {query.id for query in sample}
    ids = {number: id for number, id in enumerate(snapshot.query_ids) if id in wanted}
    batch = snapshot.match(messages)
    found = [sorted(ids[n] for n in numbers if n in ids) for numbers in lists(batch)]
    if found != expected:
        raise _difference(case, found, expected, "the reference engine")
    return sum(map(len, expected))


def spread_sample(queries: Sequence[Query], count: int) -> list[Query]:
    """Every so-many-th query, so that all of the list is seen."""
    step = max(1, len(queries) // count)
    return list(queries[::step][:count])


def wrong_count(case: str, found: int, expected: int, oracle: str) -> WrongCountError:
    """The error that voids a benchmark."""
    return WrongCountError(case=case, found=found, expected=expected, oracle=oracle)


def _difference(
    case: str, found: Sequence[Sequence[object]], expected: Sequence[Sequence[object]], oracle: str
) -> WrongCountError:
    """The first message whose queries differ; where only they do and not their number, both."""
    for number, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        if list(mine) != list(theirs):
            place = f"{case}, message {number}, {len(set(mine) ^ set(theirs))} queries differ"
            return wrong_count(place, len(mine), len(theirs), oracle)
    return wrong_count(case, len(found), len(expected), oracle)

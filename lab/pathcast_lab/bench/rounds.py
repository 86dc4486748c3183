"""Timed passes of a matcher over messages, each beside a pass of the yardstick.

Example:
    >>> one = Round(
    ...     messages=10, bytes=40_000, total_ns=200_000, parsing_ns=80_000, matching_ns=20_000,
    ...     collecting_ns=60_000, cache_misses=0, yardstick_ns=400_000,
    ... )
    >>> one.ratio, one.microseconds("total"), one.megabytes_per_second("total")
    (0.5, 20.0, 200.0)

A round whose matches are not those that were checked before is an error, not a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias

import pyarrow as pa

from pathcast import Registry, Snapshot
from pathcast.engine import BatchResult
from pathcast_lab.bench.checking import Truth, counts
from pathcast_lab.bench.timing import Spread, elapsed_ns, undisturbed

Part: TypeAlias = Literal["total", "parsing", "matching", "collecting", "rest", "yardstick"]
"""What of a round: the wall time of the call, what the engine says of it, what it does not say
(making the batch, its Arrow columns and its counters), or the yardstick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One pass over messages.

    Attributes:
        messages: How many.
        bytes: Of them all.
        total_ns: Wall time of `match`, from the Arrow array of messages to that of numbers.
        parsing_ns: The engine's own account of the door.
        matching_ns: Of path matching and conditions.
        collecting_ns: Of collecting and writing query numbers.
        cache_misses: Elements whose label path was new to the matcher.
        yardstick_ns: `lxml.etree.fromstring` over the same messages.
    """

    messages: int
    bytes: int
    total_ns: int
    parsing_ns: int
    matching_ns: int
    collecting_ns: int
    cache_misses: int
    yardstick_ns: int

    def nanoseconds(self, part: Part) -> int:
        """Time of a part."""
        if part == "rest":
            return self.total_ns - self.parsing_ns - self.matching_ns - self.collecting_ns
        time_ns: int = getattr(self, f"{part}_ns")
        return time_ns

    def microseconds(self, part: Part) -> float:
        """Time of a part for one message."""
        return self.nanoseconds(part) / self.messages / 1e3

    def megabytes_per_second(self, part: Part) -> float:
        """Throughput of a part, in 10^6 bytes."""
        return self.bytes / self.nanoseconds(part) * 1e3

    def ratio_of(self, part: Part) -> float:
        """Time of a part as a multiple of the yardstick's."""
        return self.nanoseconds(part) / self.yardstick_ns

    @property
    def ratio(self) -> float:
        """Wall time as a multiple of the yardstick's."""
        return self.ratio_of("total")


Rounds: TypeAlias = tuple[Round, ...]


def joined(rounds: Sequence[Round]) -> Round:
    """Several passes over different messages as one."""
    return Round(
        **{part.name: sum(getattr(one, part.name) for one in rounds) for part in fields(Round)}
    )


def spread(rounds: Sequence[Round], value: Callable[[Round], float]) -> Spread:
    """Spread of a figure over rounds."""
    return Spread.of([value(one) for one in rounds])


def timed_round(
    matcher: Registry | Snapshot,
    messages: pa.Array,
    parse: Callable[[], None],
    *,
    parse_first: bool = False,
) -> tuple[Round, BatchResult]:
    """One pass of both, and what the matcher found. To be called while `undisturbed`."""
    before = elapsed_ns(parse) if parse_first else 0
    started = time.perf_counter_ns()
    batch = matcher.match(messages)
    # The array of numbers is made when it is asked for.
    assert len(batch.matches) == len(messages)
    total = time.perf_counter_ns() - started
    stats = batch.stats
    one = Round(
        messages=stats.messages,
        bytes=stats.bytes,
        total_ns=total,
        parsing_ns=stats.parsing_ns,
        matching_ns=stats.matching_ns,
        collecting_ns=stats.collecting_ns,
        cache_misses=stats.cache_misses,
        yardstick_ns=before if parse_first else elapsed_ns(parse),
    )
    return one, batch


def warm_rounds(
    matcher: Registry | Snapshot,
    messages: pa.Array,
    parse: Callable[[], None],
    rounds: int,
    truth: Truth,
) -> Rounds:
    """Passes of a matcher that has seen the messages; two more, not timed, come first.

    Raises:
        WrongCountError: A pass found another number of matches than was checked.
    """
    for _ in range(2):
        matcher.match(messages)
        parse()
    timed: list[Round] = []
    with undisturbed():
        for number in range(rounds):
            one, batch = timed_round(matcher, messages, parse, parse_first=bool(number % 2))
            truth.confirm(sum(counts(batch)), len(messages))
            timed.append(one)
    return tuple(timed)


def fresh_rounds(
    matcher: Callable[[], Registry | Snapshot],
    messages: pa.Array,
    parse: Callable[[], None],
    rounds: int,
    truth: Truth,
) -> Rounds:
    """First passes, each of a matcher made for it; making it is part of the time.

    Raises:
        WrongCountError: A pass found another number of matches than was checked.
    """
    parse()
    timed: list[Round] = []
    for number in range(rounds):
        with undisturbed():
            started = time.perf_counter_ns()
            fresh = matcher()
            making = time.perf_counter_ns() - started
            one, batch = timed_round(fresh, messages, parse, parse_first=bool(number % 2))
        truth.confirm(sum(counts(batch)), len(messages))
        timed.append(replace(one, total_ns=one.total_ns + making))
    return tuple(timed)


def binary_array(messages: Sequence[bytes]) -> pa.Array:
    """Messages as the Arrow array that `match` takes."""
    return pa.array(messages, pa.binary())

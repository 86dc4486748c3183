"""`threads`: one batch call on one thread and on several, in turns.

Messages and queries are those of `filter`, warm; a batch holds each message several times, so that
every thread has enough to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from pathcast.registry import Registry, Snapshot
from pathcast_lab.bench.checking import Truth, counts
from pathcast_lab.bench.definitions import FilterDefinition, ThreadsDefinition, ThreadsSet
from pathcast_lab.bench.inputs import Source, standing_queries
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.rounds import binary_array
from pathcast_lab.bench.timing import Spread, undisturbed


@dataclass(frozen=True)
class ThreadsResult:
    """Wall times of the same batch; `one_ns[i]` and `several_ns[i]` were taken in one round."""

    case: str
    queries: int
    threads: int
    messages: int
    bytes: int
    matches: int
    one_ns: tuple[int, ...]
    several_ns: tuple[int, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures."""

        def figure(name: str, unit: str, values: list[float]) -> Measure:
            return Measure("threads", self.case, name, unit, Spread.of(values), self.queries)

        yield figure("1 thread", "MB/s", [self.bytes / ns * 1e3 for ns in self.one_ns])
        several = [self.bytes / ns * 1e3 for ns in self.several_ns]
        yield figure(f"{self.threads} threads", "MB/s", several)
        gains = [
            100 * one / several / self.threads
            for one, several in zip(self.one_ns, self.several_ns, strict=True)
        ]
        yield figure("scaling", f"% of {self.threads}x", gains)


def run_threads(
    definition: ThreadsDefinition,
    chosen: ThreadsSet,
    queries: FilterDefinition,
    source: Source,
    say: Callable[[str], None],
) -> Iterator[ThreadsResult]:
    """The one case.

    Args:
        definition: What is measured.
        chosen: How much of it.
        queries: How queries are drawn: as in `filter`.
        source: Queries and messages.
        say: Takes progress.

    Raises:
        WrongCountError: The number of threads changed the answer.
    """
    case = f"{source.name} Q={chosen.queries:,}"
    say(case)
    texts = source.queries(
        chosen.queries,
        seed=queries.seed,
        wildcard=queries.wildcard,
        descendant=queries.descendant,
    )
    registry = Registry()
    registry.add(standing_queries(texts))
    frozen = registry.freeze()
    messages = source.messages(chosen.messages, seed=definition.seed) * chosen.repeats
    array = binary_array(messages)
    with TemporaryDirectory() as folder:
        file = Path(folder, "threads.snapshot")
        frozen.save(file)
        matchers = [Snapshot.open(file, threads=number) for number in (1, definition.threads)]
    found = counts(matchers[0].match(array))
    truth = Truth(case, found)
    timed: list[list[int]] = [[], []]
    for number in range(-1, chosen.rounds):
        for at in (0, 1) if number % 2 else (1, 0):
            time_ns = _timed(matchers[at], array, truth)
            if number >= 0:  # The round before the first one warms up.
                timed[at].append(time_ns)
    yield ThreadsResult(
        case=case,
        queries=chosen.queries,
        threads=definition.threads,
        messages=len(messages),
        bytes=sum(map(len, messages)),
        matches=sum(found),
        one_ns=tuple(timed[0]),
        several_ns=tuple(timed[1]),
    )


def _timed(matcher: Registry | Snapshot, messages: pa.Array, truth: Truth) -> int:
    with undisturbed():
        started = time.perf_counter_ns()
        batch = matcher.match(messages)
        # The array of numbers is made when it is asked for.
        assert len(batch.matches) == len(messages)
        time_ns = time.perf_counter_ns() - started
    truth.confirm(sum(counts(batch)), len(messages))
    return time_ns

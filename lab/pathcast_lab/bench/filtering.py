"""`filter`: many linear queries, and everything that happens to them; `mixed` asks the same.

One case a number of queries: build, open, register later, and then messages in three states of the
matcher's cache: cold (a matcher that has seen nothing), warm (it has seen these messages), unseen
(it has seen others of their kind).

Source: measurements of this project: 003, 4.2.2 measures the same against the number of queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import pyarrow as pa

from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry, Snapshot
from pathcast_lab.bench.checking import (
    THREADS,
    Checks,
    Truth,
    check_nfa,
    check_reference,
    counts,
    lists,
    spread_sample,
    wrong_count,
)
from pathcast_lab.bench.definitions import Expected, FilterDefinition, FilterSet
from pathcast_lab.bench.inputs import Source, inputs_digest, standing_queries
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.memory import matcher_bytes
from pathcast_lab.bench.rounds import (
    Round,
    Rounds,
    binary_array,
    fresh_rounds,
    joined,
    spread,
    timed_round,
    warm_rounds,
)
from pathcast_lab.bench.timing import Spread, elapsed_ns, undisturbed, yardstick
from pathcast_papers import answered, plain_nfa

ENGINE: Final = "kernel"

Figure: TypeAlias = Callable[[str, str, Spread], Measure]
"""Makes a measure of its name, its unit and its spread."""

OPENINGS = 21
"""How often a snapshot is opened; the first opening is not counted."""

QUARTERS = 4

CLOCKS = 10
"""How many rows of later registrations are timed, each as a whole."""


@dataclass(frozen=True)
class Build:
    """What the queries cost before the first message.

    Attributes:
        register_ns: All of them in one call, by build.
        freeze_ns: The snapshot of them, by build.
        delta_bytes: What the index holds for them before it is frozen.
        file_bytes: Size of the snapshot file.
        open_ns: Opening that file, by opening.
    """

    register_ns: tuple[int, ...]
    freeze_ns: tuple[int, ...]
    delta_bytes: int
    file_bytes: int
    open_ns: tuple[int, ...]


@dataclass(frozen=True)
class Later:
    """Queries registered one by one while messages flow.

    Attributes:
        in_a_row: How many with no message in between, by clock.
        in_a_row_ns: So many in a row.
        between_ns: One query each, right after a message.
        message_ns: The message right after each.
        message_before_ns: The same message, when no query had been registered since the last one.
    """

    in_a_row: int
    in_a_row_ns: tuple[int, ...]
    between_ns: tuple[int, ...]
    message_ns: tuple[int, ...]
    message_before_ns: tuple[int, ...]


@dataclass(frozen=True)
class UnseenRound:
    """One matcher, warmed with other messages: quarters of unseen messages, and the same seen."""

    quarters: Rounds
    seen: Rounds


@dataclass(frozen=True)
class FilterResult:
    """One number of queries."""

    case: str
    queries: int
    message_bytes: float
    matches_a_message: float
    checks: Checks
    build: Build
    later: Later
    cold: Rounds
    warm: Rounds
    unseen: tuple[UnseenRound, ...]
    matcher_bytes: int | None = None
    benchmark: str = "filter"

    def measures(self) -> Iterator[Measure]:
        """Its figures, in the order of a message's life."""

        def figure(name: str, unit: str, value: Spread) -> Measure:
            return Measure(self.benchmark, self.case, name, unit, value, self.queries)

        later = self.later
        yield figure("matches", "1/message", single(self.matches_a_message))
        yield from build_measures(figure, self.build, self.queries)
        if self.matcher_bytes is not None:
            yield figure("memory", "MB", single(self.matcher_bytes / 1e6))
        in_a_row = Spread.of(later.in_a_row_ns).scaled(1e-3 / later.in_a_row)
        yield figure("register later", "us/query", in_a_row)
        yield figure("register between", "us/query", Spread.of(later.between_ns).scaled(1e-3))
        yield figure("next message", "us", Spread.of(later.message_ns).scaled(1e-3))
        yield figure("message before", "us", Spread.of(later.message_before_ns).scaled(1e-3))
        yield from cold_measures(figure, self.cold)
        yield from warm_measures(figure, self.warm)
        unseen = [joined(one.quarters) for one in self.unseen]
        seen = [joined(one.seen) for one in self.unseen]
        pairs = list(zip(unseen, seen, strict=True))
        yield figure(
            "unseen total", "us/message", spread(unseen, lambda u: u.microseconds("total"))
        )
        yield figure("unseen by lxml", "x lxml", spread(unseen, lambda one: one.ratio))
        yield figure(
            "unseen by warm", "x warm", Spread.of([u.total_ns / s.total_ns for u, s in pairs])
        )
        for quarter in range(QUARTERS):
            part = [one.quarters[quarter] for one in self.unseen]
            name = f"unseen {quarter + 1}/{QUARTERS}"
            yield figure(name, "x lxml", spread(part, lambda one: one.ratio))
        yield figure(
            "misses", "1/message", Spread.of([u.cache_misses / u.messages for u in unseen])
        )
        costs = [
            (unknown.total_ns - known.total_ns) / unknown.cache_misses
            for unknown, known in pairs
            if unknown.cache_misses
        ]
        if costs:
            yield figure("cost of a miss", "us", Spread.of(costs).scaled(1e-3))


def build_measures(figure: Figure, build: Build, queries: int) -> Iterator[Measure]:
    """The figures of building an index and opening its snapshot."""
    yield figure("register", "s", Spread.of(build.register_ns).scaled(1e-9))
    yield figure("freeze", "s", Spread.of(build.freeze_ns).scaled(1e-9))
    yield figure("index size", "B/query", single(build.delta_bytes / queries))
    yield figure("snapshot size", "B/query", single(build.file_bytes / queries))
    yield figure("open", "ms", Spread.of(build.open_ns).scaled(1e-6))


def cold_measures(figure: Figure, rounds: Rounds) -> Iterator[Measure]:
    """The figures of first passes."""
    yield figure("cold pass", "s", spread(rounds, lambda one: one.total_ns / 1e9))
    yield figure("cold by lxml", "x lxml", spread(rounds, lambda one: one.ratio))


def warm_measures(figure: Figure, rounds: Rounds) -> Iterator[Measure]:
    """The figures of warm rounds."""
    for part in ("parsing", "matching", "collecting", "rest", "total", "yardstick"):
        value = spread(rounds, lambda one, part=part: one.microseconds(part))  # type: ignore[misc]
        yield figure("lxml" if part == "yardstick" else f"warm {part}", "us/message", value)
    yield figure("warm by lxml", "x lxml", spread(rounds, lambda one: one.ratio))


def run_filter(
    definition: FilterDefinition,
    chosen: FilterSet,
    source: Source,
    say: Callable[[str], None],
) -> Iterator[FilterResult]:
    """The cases, from few queries to many.

    Raises:
        WrongCountError: Engines disagree.
    """
    sizes = sorted(chosen.queries)
    # The last queries of the list are in no case: they are registered later.
    say(f"queries: {sizes[-1]:,} distinct linear ones of {source.name}")
    texts = source.queries(
        sizes[-1] + chosen.later,
        seed=definition.seed,
        wildcard=definition.wildcard,
        descendant=definition.descendant,
    )
    queries = standing_queries(texts)
    needed = max(chosen.warm_up + chosen.unseen, chosen.cold)
    messages = source.messages(needed, seed=definition.seed)
    for size in sizes:
        case = f"{source.name} Q={size:,}"
        say(case)
        yield FilterCase(
            case, queries[:size], queries[sizes[-1] :], messages, chosen, definition.expected
        ).run()


class FilterCase:
    """One number of queries, step by step.

    Args:
        case: Its name.
        queries: The queries.
        later: Further ones.
        messages: Enough of them; the first ones warm up.
        chosen: How much is done.
        expected: Known counts.
        benchmark: Name of the benchmark.
    """

    def __init__(
        self,
        case: str,
        queries: Sequence[Query],
        later: Sequence[Query],
        messages: Sequence[bytes],
        chosen: FilterSet,
        expected: Sequence[Expected],
        benchmark: str = "filter",
    ) -> None:
        self._benchmark = benchmark
        self._case, self._queries, self._later = case, list(queries), list(later)
        self._chosen, self._expected = chosen, expected
        self._warm_up, self._unseen = split(messages, chosen)
        self._messages = self._warm_up + self._unseen
        self._cold = self._messages[: chosen.cold]

    def run(self) -> FilterResult:
        """Everything: builds, then checks, then times."""
        with TemporaryDirectory(prefix="pathcast-bench-") as directory:
            file = Path(directory) / "queries.snapshot"
            index, build = build_index(self._queries, file, self._chosen.builds)
            snapshot = Snapshot.open(file, threads=THREADS)
            checks, truth = check_case(
                self._case,
                file,
                self._queries,
                self._messages,
                self._chosen,
                self._expected,
            )
            warm_up = binary_array(self._warm_up)
            warm = warm_rounds(
                snapshot, warm_up, yardstick(self._warm_up), self._chosen.rounds, truth
            )
            return FilterResult(
                case=self._case,
                queries=len(self._queries),
                message_bytes=sum(map(len, self._messages)) / len(self._messages),
                matches_a_message=checks.matches / len(self._messages),
                checks=checks,
                build=build,
                later=self._register_later(index),
                cold=self._cold_rounds(file, truth),
                warm=warm,
                unseen=tuple(
                    self._unseen_round(Snapshot.open(file, threads=THREADS), truth)
                    for _ in range(self._chosen.fresh_rounds)
                ),
                matcher_bytes=matcher_bytes(file, binary_array(self._messages)),
                benchmark=self._benchmark,
            )

    def _cold_rounds(self, file: Path, truth: Truth) -> Rounds:
        return fresh_rounds(
            lambda: Snapshot.open(file, threads=THREADS),
            binary_array(self._cold),
            yardstick(self._cold),
            self._chosen.fresh_rounds,
            truth,
        )

    def _unseen_round(self, snapshot: Snapshot, truth: Truth) -> UnseenRound:
        warm_up = binary_array(self._warm_up)
        for _ in range(2):
            snapshot.match(warm_up)
        first, size = len(self._warm_up), len(self._unseen) // QUARTERS
        parts = [self._unseen[start : start + size] for start in range(0, size * QUARTERS, size)]
        arrays = [binary_array(part) for part in parts]
        quarters: list[Round] = []
        seen: list[Round] = []
        with undisturbed():
            for number, (part, array) in enumerate(zip(parts, arrays, strict=True)):
                parse = yardstick(part)
                # The same messages right after: a busy machine then slows down both figures.
                for rounds in (quarters, seen):
                    one, batch = timed_round(snapshot, array, parse, parse_first=bool(number % 2))
                    start = first + number * size
                    truth.confirm(sum(counts(batch)), start + size, start)
                    rounds.append(one)
                    snapshot.match(array)
        return UnseenRound(tuple(quarters), tuple(seen))

    def _register_later(self, index: Registry) -> Later:
        """Queries one by one into a registry that was frozen, which must see each at once."""
        message = binary_array(self._warm_up[:1])
        index.match(binary_array(self._warm_up))
        size = max(1, len(self._later) // 2 // CLOCKS)
        rest = self._later[size * CLOCKS :]
        in_a_row: list[int] = []
        between: list[int] = []
        after: list[int] = []
        before: list[int] = []
        with undisturbed():
            for first in range(0, size * CLOCKS, size):
                started = time.perf_counter_ns()
                for query in self._later[first : first + size]:
                    index.add([query])
                in_a_row.append(time.perf_counter_ns() - started)
                index.match(message)
            for query in rest:
                before.append(elapsed_ns(lambda: index.match(message).matches))
                between.append(elapsed_ns(lambda query=query: index.add([query])))  # type: ignore[misc]
                after.append(elapsed_ns(lambda: index.match(message).matches))
        self._check_later(index)
        return Later(size, tuple(in_a_row), tuple(between), tuple(after), tuple(before))

    def _check_later(self, index: Registry) -> None:
        """A registry answers as a snapshot of its queries, and a new one counts at once."""
        messages = binary_array(self._warm_up)
        found = sum(counts(index.match(messages)))
        index.add([Query("anything", "/*")])
        more = sum(counts(index.match(messages)))
        if more != found + len(self._warm_up):
            raise wrong_count(self._case, more, found + len(self._warm_up), "a query added later")
        frozen = sum(counts(index.freeze().match(messages)))
        if frozen != more:
            raise wrong_count(self._case, more, frozen, "a snapshot of the changed index")


def split(messages: Sequence[bytes], chosen: FilterSet) -> tuple[list[bytes], list[bytes]]:
    """Messages to warm up with, and unseen ones; halves where there are too few."""
    border = min(chosen.warm_up, len(messages) // 2)
    unseen = messages[border : border + chosen.unseen]
    return list(messages[:border]), list(unseen[: len(unseen) // QUARTERS * QUARTERS])


def build_index(queries: list[Query], file: Path, builds: int) -> tuple[Registry, Build]:
    """Builds several times; the last index, frozen and saved to `file`."""
    register_ns: list[int] = []
    freeze_ns: list[int] = []
    for _ in range(builds):
        index = Registry(threads=THREADS)
        with undisturbed():
            started = time.perf_counter_ns()
            report = index.add(queries)
            register_ns.append(time.perf_counter_ns() - started)
            started = time.perf_counter_ns()
            snapshot = index.freeze()
            freeze_ns.append(time.perf_counter_ns() - started)
        if report.rejected:
            raise next(iter(report.rejected.values()))
    snapshot.save(file)
    # The facade does not say what it holds, so the same queries go into the engine once more. It
    # is imported here: where the kernel is missing, the rest of this module can still be read.
    from pathcast.boundary import native

    bare = native.Dissemination(Limits(), 1, 0)
    bare.register(list(queries), {})
    delta_bytes = bare.memory()
    del bare
    with undisturbed():
        open_ns = [
            elapsed_ns(lambda: Snapshot.open(file, threads=THREADS)) for _ in range(OPENINGS)
        ]
    build = Build(
        tuple(register_ns), tuple(freeze_ns), delta_bytes, file.stat().st_size, tuple(open_ns[1:])
    )
    return index, build


def check_case(
    case: str,
    file: Path,
    queries: Sequence[Query],
    messages: Sequence[bytes],
    chosen: FilterSet,
    expected: Sequence[Expected],
) -> tuple[Checks, Truth]:
    """What must be right before anything is timed.

    Raises:
        WrongCountError: It is not.
    """
    snapshot = Snapshot.open(file, threads=THREADS)
    plain = answered(plain_nfa, Snapshot.open, file)
    few = binary_array(spread_messages(messages, chosen.check_messages))
    nfa_matches = check_nfa(case, snapshot, plain, few)
    some: pa.Array = binary_array(spread_messages(messages, chosen.check_sample))
    sample = reference_sample(snapshot, queries, some, chosen.check_queries)
    reference_matches = check_reference(case, snapshot, sample, some)
    found = counts(snapshot.match(binary_array(messages)))
    truth = Truth(case, found)
    digest = inputs_digest([query.text for query in queries], messages)
    known = next((e for e in expected if e.case == case and e.inputs == digest), None)
    if known is not None:
        truth.confirm(known.matches, len(messages))
    checks = Checks(
        inputs=digest,
        matches=sum(found),
        nfa_messages=len(few),
        nfa_matches=nfa_matches,
        reference_messages=len(some),
        reference_queries=len(sample),
        reference_matches=reference_matches,
        is_expected=None if known is None else True,
    )
    return checks, truth


def reference_sample(
    snapshot: Snapshot, queries: Sequence[Query], messages: pa.Array, count: int
) -> list[Query]:
    """Queries of all the list, and of those that match: where few do, the former say little."""
    found = lists(snapshot.match(messages))
    ids = snapshot.query_ids
    matched = {ids[number] for numbers in found for number in numbers}
    some = spread_sample([query for query in queries if query.id in matched], count // 2)
    chosen = {query.id for query in some}
    rest = [query for query in queries if query.id not in chosen]
    return [*some, *spread_sample(rest, count - len(some))]


def spread_messages(messages: Sequence[bytes], count: int) -> list[bytes]:
    """Every so-many-th message."""
    step = max(1, len(messages) // count)
    return list(messages[::step][:count])


def single(value: float) -> Spread:
    """The spread of what was measured once."""
    return Spread(value, value, value)

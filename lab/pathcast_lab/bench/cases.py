"""One set of standing queries over some messages: checked, then built, cold and warm, with memory.

`conditions` and `adversarial` are made of such cases; `filter` and `mixed` ask for more
(`filtering`). Which queries and which messages is for the benchmark to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pathcast.model import QueryLanguage
from pathcast.registry import Snapshot
from pathcast_lab.bench.checking import THREADS, Checks
from pathcast_lab.bench.definitions import Expected, FilterSet
from pathcast_lab.bench.filtering import (
    Build,
    build_index,
    build_measures,
    check_case,
    cold_measures,
    single,
    warm_measures,
)
from pathcast_lab.bench.inputs import standing_queries
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.memory import matcher_bytes
from pathcast_lab.bench.rounds import Rounds, binary_array, fresh_rounds, warm_rounds
from pathcast_lab.bench.timing import Spread, yardstick


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """What one case gave.

    Attributes:
        benchmark: Name of the benchmark.
        case: Its own name.
        queries: Q.
        message_bytes: Of a message.
        matches_a_message: Queries that a message satisfies.
        checks: What was compared.
        build: What the queries cost before the first message.
        matcher_bytes: Memory of a matcher that has seen the messages; None if unknown.
        cold: First passes, each of a new matcher.
        warm: Passes of a matcher that has seen the messages.
    """

    benchmark: str
    case: str
    queries: int
    message_bytes: float
    matches_a_message: float
    checks: Checks
    build: Build
    matcher_bytes: int | None
    cold: Rounds
    warm: Rounds

    def measures(self) -> Iterator[Measure]:
        """Its figures."""

        def figure(name: str, unit: str, value: Spread) -> Measure:
            return Measure(self.benchmark, self.case, name, unit, value, self.queries)

        yield figure("matches", "1/message", single(self.matches_a_message))
        yield from build_measures(figure, self.build, self.queries)
        if self.matcher_bytes is not None:
            yield figure("memory", "MB", single(self.matcher_bytes / 1e6))
        yield from cold_measures(figure, self.cold)
        yield from warm_measures(figure, self.warm)


def run_case(
    benchmark: str,
    case: str,
    texts: Sequence[str],
    messages: Sequence[bytes],
    chosen: FilterSet,
    expected: Sequence[Expected] = (),
    language: QueryLanguage | None = None,
) -> CaseResult:
    """Builds, checks, and then measures.

    Args:
        benchmark: Name of the benchmark.
        case: Name of the case.
        texts: The queries.
        messages: The first `chosen.cold` are those of the cold passes.
        chosen: How much is done; `unseen` and `later` are not.
        expected: Known counts.
        language: Of the queries.

    Raises:
        WrongCountError: Engines disagree.
    """
    queries = standing_queries(texts, language=language)
    with TemporaryDirectory(prefix="pathcast-bench-") as directory:
        file = Path(directory) / "queries.snapshot"
        _, build = build_index(queries, file, chosen.builds)
        checks, truth = check_case(case, file, queries, messages, chosen, expected)
        array = binary_array(messages)
        memory = matcher_bytes(file, array)
        snapshot = Snapshot.open(file, threads=THREADS)
        first = list(messages[: chosen.cold])
        cold = fresh_rounds(
            lambda: Snapshot.open(file, threads=THREADS),
            binary_array(first),
            yardstick(first),
            chosen.fresh_rounds,
            truth,
        )
        warm = warm_rounds(snapshot, array, yardstick(messages), chosen.rounds, truth)
    return CaseResult(
        benchmark=benchmark,
        case=case,
        queries=len(queries),
        message_bytes=sum(map(len, messages)) / len(messages),
        matches_a_message=checks.matches / len(messages),
        checks=checks,
        build=build,
        matcher_bytes=memory,
        cold=cold,
        warm=warm,
    )

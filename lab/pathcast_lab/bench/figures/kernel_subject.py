"""The kernel under the clock, at sizes where only a sample of its answers can be compared.

MQPT is what `match` takes beyond parsing: matching, collecting, and making the Arrow result.
It is measured on messages that the matcher has seen, and in the first pass of a matcher that has
seen none, since a label path is compiled when it is first met.

It is not the paper's: it stands beside the reference algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from pathcast.model import Query
from pathcast.registry import Registry, Snapshot
from pathcast_lab.bench.checking import (
    THREADS,
    Truth,
    check_nfa,
    check_reference,
    counts,
    lists,
    spread_sample,
)
from pathcast_lab.bench.figures.definition import FiguresDefinition
from pathcast_lab.bench.filtering import spread_messages
from pathcast_lab.bench.inputs import standing_queries
from pathcast_lab.bench.rounds import Round, Rounds, binary_array, timed_round
from pathcast_lab.bench.timing import elapsed_ns, undisturbed, yardstick
from pathcast_papers import answered, plain_nfa


def kernel_snapshot(queries: Sequence[Query]) -> tuple[Snapshot, int]:
    """A snapshot of some queries, and the time of registering and freezing them in ns.

    Raises:
        PathcastError: A query was rejected.
    """
    index = Registry(threads=THREADS)
    made: list[Snapshot] = []

    def build() -> None:
        report = index.add(queries)
        if report.rejected:
            raise next(iter(report.rejected.values()))
        made.append(index.freeze())

    with undisturbed():
        took = elapsed_ns(build)
    return made[0], took


def kernel_answers(texts: Sequence[str], messages: Sequence[bytes]) -> list[list[int]]:
    """Numbers of the satisfied queries of each message, ascending, in the order of registration."""
    snapshot, _ = kernel_snapshot(standing_queries(texts))
    numbers = [int(query_id[1:]) for query_id in snapshot.query_ids]
    batch = snapshot.match(binary_array(messages))
    return [sorted(numbers[found] for found in row) for row in lists(batch)]


@dataclass(frozen=True)
class KernelRun:
    """What was measured of the kernel at one point.

    Attributes:
        queries: Q.
        matches: Matches of all messages.
        build_ns: Registering and freezing.
        snapshot_bytes: Size of the snapshot file.
        first: The first pass.
        warm: Later passes, at least one.
        checked: What was compared.
    """

    queries: int
    matches: int
    build_ns: int
    snapshot_bytes: int
    first: Round
    warm: Rounds
    checked: str


def measure_kernel(
    case: str,
    texts: Sequence[str],
    messages: Sequence[bytes],
    definition: FiguresDefinition,
    *,
    rounds: int,
    seconds_max: float,
    say: Callable[[str], None],
) -> KernelRun:
    """Builds, checks, then measures.

    Args:
        case: What errors call it.
        texts: The queries.
        messages: The messages.
        definition: How much is checked.
        rounds: Passes over the messages, if time allows; one at least.
        seconds_max: Roughly, for the passes.
        say: Takes a line when rounds are left out.

    Raises:
        WrongCountError: The kernel disagrees with the plain NFA, the reference engine or itself.
    """
    queries = standing_queries(texts)
    snapshot, build_ns = kernel_snapshot(queries)
    with TemporaryDirectory(prefix="pathcast-figures-") as directory:
        file = Path(directory) / "queries.snapshot"
        snapshot.save(file)
        snapshot_bytes = file.stat().st_size
        checked = _check(case, snapshot, file, queries, messages, definition)
    array = binary_array(messages)
    parse = yardstick(messages)
    parse()
    with undisturbed():
        first, batch = timed_round(snapshot, array, parse)
    truth = Truth(case, counts(batch))
    warm: list[Round] = []
    affordable = max(1, min(rounds, int(seconds_max * 1e9 / max(1, first.total_ns))))
    if affordable < rounds:
        say(f"{case}: {affordable} instead of {rounds} rounds, a pass is slow")
    else:
        # One more pass that is not counted: the second builds what the first one only noted.
        snapshot.match(array)
    with undisturbed():
        for number in range(affordable):
            one, batch = timed_round(snapshot, array, parse, parse_first=bool(number % 2))
            truth.confirm(sum(counts(batch)), len(messages))
            warm.append(one)
    return KernelRun(
        queries=len(queries),
        matches=sum(counts(batch)),
        build_ns=build_ns,
        snapshot_bytes=snapshot_bytes,
        first=first,
        warm=tuple(warm),
        checked=checked,
    )


def _check(
    case: str,
    snapshot: Snapshot,
    file: Path,
    queries: Sequence[Query],
    messages: Sequence[bytes],
    definition: FiguresDefinition,
) -> str:
    few: pa.Array = binary_array(spread_messages(messages, definition.check_messages))
    nfa = check_nfa(case, snapshot, answered(plain_nfa, Snapshot.open, file), few)
    sample = spread_sample(queries, definition.check_queries)
    some: pa.Array = binary_array(spread_messages(messages, definition.check_sample))
    # A snapshot numbers its queries anew; the check goes by ids.
    by_reference = check_reference(case, snapshot, sample, some)
    return (
        f"plain NFA: the same {nfa:,} matches in {len(few)} messages; reference engine: the same "
        f"{by_reference:,} of {len(sample):,} queries in {len(some)} messages"
    )

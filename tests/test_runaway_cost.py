"""The search for messages and queries that cost more than they may.

The ordinary tests prove that the search works: genomes are replayed, changes stay within bounds,
and on candidates all engines agree. The nightly test searches, and fails with the genome of a
candidate that runs away. If that fails, one message can hold up everybody else's;
PATHCAST_COST_SECONDS makes it search for longer, and PATHCAST_COST_SEED elsewhere.
"""

from __future__ import annotations

import os
import time
from itertools import islice
from random import Random

import pytest

from oracles import missing_reason
from oracles.engines import EngineName, made_by
from pathcast import Registry
from pathcast.limits import Limits
from pathcast.message.canonical import canonical

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

from cost import (
    STARTS,
    Candidate,
    Cost,
    Gauge,
    climbed,
    is_runaway,
    mutated,
    random_candidate,
    replay_command,
    starts,
    suspects,
)

KERNEL_MISSING = missing_reason("kernel")
needs_kernel = pytest.mark.skipif(bool(KERNEL_MISSING), reason=str(KERNEL_MISSING))

SEED = 20


def some_candidates(count: int) -> list[Candidate]:
    """The known ones, random ones, and what a few changes make of them."""
    random = Random(SEED)
    found = [*STARTS.values(), *(random_candidate(random) for _ in range(count))]
    changed = []
    for candidate in found:
        for _ in range(random.randint(1, 20)):
            candidate = mutated(candidate, random)
        changed.append(candidate)
    return [*found, *changed]


def test_a_genome_gives_the_same_message_and_queries() -> None:
    for candidate in some_candidates(50):
        genome = candidate.model_dump_json(exclude_defaults=True)
        again = Candidate.model_validate_json(genome)
        assert again == candidate
        assert again.shape.message(2_000) == candidate.shape.message(2_000)
        assert again.queries(20) == candidate.queries(20)
        assert genome in replay_command(candidate)


def test_candidates_stay_within_the_bounds() -> None:
    for candidate in some_candidates(50):
        texts = candidate.queries(30)
        assert 1 <= len(texts) <= 30
        for size in (200, 20_000):
            message = candidate.shape.message(size)
            # What is open has to be closed, and one element at each level may pass the end.
            assert size <= len(message) < 3 * size + 12_000


def test_the_search_is_repeated_from_its_seed() -> None:
    """With a measure that does not depend on the clock."""

    def height(candidate: Candidate) -> float:
        return len(candidate.shape.message(500)) + len("".join(candidate.queries(20)))

    def ends() -> list[Candidate]:
        few = islice(starts(SEED), len(STARTS) + 6)
        return [climbed(candidate, random, height, 30) for _, candidate, random in few]

    first = ends()
    assert first == ends()
    heights = [height(candidate) for _, candidate, _ in islice(starts(SEED), len(first))]
    assert all(height(end) >= start for end, start in zip(first, heights, strict=True))
    assert sum(height(end) > start for end, start in zip(first, heights, strict=True)) > 10


def answers(candidate: Candidate, message: bytes, engine: EngineName) -> tuple[list[str], ...]:
    """What an engine answers, by the candidate's way: ids refused, undecided and satisfied."""
    if candidate.way == "broker":
        # Engines write an empty element in their own ways, and count the bytes of that.
        limits = Limits(result_ratio_max=1_000, result_bytes_max=2**30)
        registry = made_by(engine, Registry, limits=limits, threads=1)
        report = registry.add(candidate.subscriptions(4))
        deliveries = registry.deliver(message)
        assert deliveries.error is None
        found = [f"{one.subscription_id} {canonical(one.fragment or b'')!r}" for one in deliveries]
        return sorted(report.rejected), sorted(deliveries.verdicts), found
    index = made_by(engine, Registry)
    report = index.add(candidate.standing(4))
    asked = index if candidate.way == "live" else index.freeze()
    [result] = asked.match([message])
    assert result.error is None
    return sorted(report.rejected), sorted(result.verdicts), sorted(result.query_ids)


@needs_kernel
def test_engines_agree_on_candidates() -> None:
    answered = 0
    for candidate in some_candidates(15):
        message = candidate.shape.message(400)
        expected = answers(candidate, message, "reference")
        for engine in ("kernel", "nfa"):
            found = answers(candidate, message, engine)
            assert found == expected, (engine, replay_command(candidate))
        answered += bool(expected[2])
    assert answered > 10, "most candidates say nothing about agreement"


@needs_kernel
def test_a_gauge_measures_and_gives_up() -> None:
    candidate = STARTS["values that nothing has"]
    with Gauge(seconds_max=30) as gauge:
        cost = gauge.measured(candidate, 3_000, 1, 10)
        assert (cost.queries, cost.failure) == (10, "")
        assert cost.message_bytes == len(candidate.shape.message(3_000))
        assert cost.seconds > 0
        assert cost.lxml_seconds > 0
    with Gauge(seconds_max=0.0) as gauge:
        late = gauge.measured(candidate, 1_000_000, 50, 300)
        assert late.failure.startswith("more than")
        assert is_runaway(late)
        again = gauge.measured(candidate, 400, 1, 1)
        assert again.queries == 1, "another process answers"


def test_what_runs_away() -> None:
    def cost(seconds: float, lxml: float, queries: int = 1_000, memory: int = 0) -> Cost:
        return Cost(
            message_bytes=1,
            queries=queries,
            seconds=seconds,
            lxml_seconds=lxml,
            memory_bytes=memory,
        )

    assert not is_runaway(cost(0.9, 0.0001))
    assert is_runaway(cost(1.1, 0.0001))
    assert not is_runaway(cost(1.9, 0.04))
    assert is_runaway(cost(2.1, 0.04))
    assert is_runaway(cost(2.1, 0.2, queries=1))
    assert not is_runaway(cost(1.9, 0.2, queries=1))
    assert is_runaway(cost(0.1, 0.04, memory=201 << 20))


@needs_kernel
@pytest.mark.nightly
@pytest.mark.parametrize("engine", ["kernel", "nfa"])
def test_nothing_runs_away(engine: str) -> None:
    seconds = float(os.environ.get("PATHCAST_COST_SECONDS", "600"))
    seed = int(os.environ.get("PATHCAST_COST_SEED", str(int(time.time()) // 86_400)))
    found = list(suspects(seed, seconds, engine=engine))
    assert len(found) > len(STARTS)
    faults = [str(one) for one in found if is_runaway(one.cost)]
    assert not faults, f"seed {seed}\n" + "\n".join(faults)

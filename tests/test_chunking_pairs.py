"""Pairs of chunk and partition together answer what one process answers that
cuts and places nothing.

If one of these fails, a large message loses a delivery because its queries were shared out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from oracles.engines import made_by, population_of

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

from generators.chunking_cases import Case
from pathcast import Query, Registry
from pathcast.chunking import (
    ChunkEvaluator,
    Cut,
    clean,
    merged,
)
from pathcast.errors import ConfigError, PathcastError, QuerySyntaxError
from pathcast.limits import Limits
from pathcast.partition import PepPlacement
from pathcast_lab.bench.chunking.inputs import element_sizes
from pathcast_lab.bench.chunking.optimal import Sizes
from pathcast_lab.bench.chunking.pairs import PlacedChunking, pair_tasks
from pathcast_lab.bench.placement.cost import CostPlacement
from pathcast_lab.bench.placement.hashed import HashPlacement
from pathcast_lab.bench.placement.placing import Placement
from pathcast_lab.bench.placement.prefix import PrefixPlacement
from pathcast_papers.chunking.plain import cut_plainly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 200))]
CASES_A_SEED = 6


def placements_of(random: Random, queries: Sequence[Query]) -> list[Placement]:
    """Of every kind, made for the queries."""
    population = population_of(queries)
    count = random.randrange(1, 5)
    engine = "reference"
    return [
        HashPlacement(count),
        made_by(engine, PepPlacement.of, population, count, gain_min=0.0),
        made_by(engine, PrefixPlacement.of, population, count),
        CostPlacement.of(population, np.ones(len(population)), count),
    ]


def registered(case: Case, count: int) -> tuple[Registry, list[Query]]:
    """Queries that can be registered, some texts there twice; half of them ask for values."""
    index = made_by("reference", Registry, namespaces=case.namespaces)
    random, queries = case.random, []
    for number in range(count):
        text = case.query()
        if random.randrange(2):
            place = random.choice(("/*", "//*", "/*/*", f"//{case.names[1]}"))
            text = f"{place}[@{random.choice('xy')} = '{random.choice('12u')}']"
        try:
            clean(text, case.paths, case.namespaces)
        except PathcastError:
            continue
        again = [f"{number}"] if random.randrange(4) else [f"{number}", f"{number} again"]
        fresh = [Query(name, text) for name in again]
        if not index.add(fresh).rejected:
            queries += fresh
    return index, queries


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_answer_what_one_process_answers(seed: int) -> None:
    looked: Counter[str] = Counter()
    for number in range(CASES_A_SEED):
        random = Random(7_000 + seed * CASES_A_SEED + number)
        case = Case(random, has_namespaces=number % 3 == 0)
        index, queries = registered(case, 24)
        placements = placements_of(random, queries)
        chosen = random.sample(placements, random.randrange(1, 5))
        paths = case.paths if random.randrange(4) else None
        placed = made_by(
            "kernel",
            PlacedChunking,
            chosen,
            paths,
            chunks_max=random.randrange(1, 6),
            namespaces=case.namespaces,
        )
        half = len(queries) // 2
        placed.register(queries[:half])
        placed.register(queries[half:])
        plan = placed.plan(element_sizes(case.message()), bytes_max=random.choice((1, 10**9)))
        assert plan.placement in chosen
        evaluator = made_by("reference", ChunkEvaluator)
        for _ in range(3):
            message = case.message()
            cut = cut_plainly(plan.scheme, message)
            if random.randrange(5) == 0:
                cut = Cut((), (), "not as the schema says")
            tasks = list(pair_tasks(plan, message, cut))
            answer = merged(map(evaluator.evaluate, tasks))
            expected = index.match([message])[0]
            assert placed.ids_of(answer.query_ids) == expected.query_ids, (message, chosen)
            looked["matches"] += len(expected.query_ids)
            looked["pairs"] += len(tasks)
            looked["left out"] += len(plan.whole if cut.fault else plan.pairs) - len(tasks)
    assert looked["matches"] > 20
    assert looked["pairs"] > 20
    assert looked["left out"]


def two_parts(count: int) -> list[Query]:
    """Queries of two parts of a message, with a value each."""
    half = [f"/m/{part}/i[@v = {n}]" for part in ("left", "right") for n in range(count)]
    return [Query(f"q{n}", text) for n, text in enumerate(half)]


def made_for(queries: list[Query], buckets: int) -> PlacedChunking:
    pep = made_by("reference", PepPlacement.of, population_of(queries), buckets, gain_min=0.0)
    placed = made_by("kernel", PlacedChunking, [HashPlacement(buckets), pep])
    placed.register(queries)
    return placed


def sizes(whole: int, left: int, right: int) -> Sizes:
    m, a, b = ("", "m"), ("", "left"), ("", "right")
    i = ("", "i")
    subtrees = {(m,): whole, (m, a): left, (m, a, i): left, (m, b): right, (m, b, i): right}
    return Sizes(whole, subtrees)


def test_a_pair_holds_its_chunk_and_its_queries_and_no_more() -> None:
    queries = two_parts(40)
    placed = made_for(queries, 4)
    plan = placed.plan(sizes(100_000, 60_000, 40_000), bytes_max=400_000)
    assert plan.cost.memory <= 400_000
    assert [chunk.prefix[1][1] for chunk in plan.scheme.chunks] == ["left", "right"]
    assert sum(len(pair.queries) for pair in plan.pairs) == len(queries)
    assert max(len(pair.queries) for pair in plan.pairs) < len(queries) / 2
    # All of it in one piece, with the same partitions, needs more.
    assert max(pair.memory for pair in plan.whole) > 400_000


def test_values_of_a_chunk_leave_partitions_out() -> None:
    queries = two_parts(40)
    placed = made_for(queries, 4)
    plan = placed.plan(sizes(1_000_000, 600_000, 400_000), bytes_max=10**9)
    assert isinstance(plan.placement, (PepPlacement, HashPlacement))
    message = b"<m><left><i v='3'/></left><right><i v='3'/><i v='39'/></right></m>"
    tasks = list(pair_tasks(plan, message, cut_plainly(plan.scheme, message)))
    evaluator = made_by("reference", ChunkEvaluator)
    assert placed.ids_of(merged(map(evaluator.evaluate, tasks)).query_ids) == ["q3", "q43", "q79"]
    if isinstance(plan.placement, PepPlacement):
        assert len(tasks) < len(plan.pairs)


def test_a_budget_that_nothing_fits_gets_the_least_memory() -> None:
    placed = made_for(two_parts(40), 4)
    tight = placed.plan(sizes(100_000, 60_000, 40_000), bytes_max=1)
    wide = placed.plan(sizes(100_000, 60_000, 40_000), bytes_max=10**9)
    assert tight.cost.memory <= wide.cost.memory
    assert wide.cost.total <= tight.cost.total


def test_a_chunk_that_is_refused_is_told_by_every_query() -> None:
    placed = made_for(two_parts(3), 2)
    plan = placed.plan(sizes(100, 60, 40), bytes_max=10**9)
    message = b"<m><left><i v='1'/></left><right><i/></right></m>"
    cut = cut_plainly(plan.scheme, message)
    evaluator = made_by("reference", ChunkEvaluator, limits=Limits(elements_max=2))
    broken = Cut(tuple(chunk[:-3] for chunk in cut.chunks), cut.elements)
    answer = merged(map(evaluator.evaluate, pair_tasks(plan, message, broken)))
    assert placed.ids_of(answer.undecided) == [f"q{n}" for n in range(6)]


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(ConfigError, match="placements"):
        PlacedChunking([])
    with pytest.raises(ConfigError, match="chunks"):
        PlacedChunking([HashPlacement(1)], chunks_max=0)
    with pytest.raises(QuerySyntaxError):
        made_by("kernel", PlacedChunking, [HashPlacement(1)]).register([Query("q", "/a[")])


@pytest.mark.spark
def test_spark_evaluates_pairs(spark: SparkSession) -> None:
    placed = made_for(two_parts(30), 3)
    plan = placed.plan(sizes(100, 60, 40), bytes_max=1)
    items = "".join(f"<i v='{n}'/>" for n in range(0, 30, 7))
    message = f"<m><left>{items}</left><right>{items}</right></m>".encode()
    tasks = list(pair_tasks(plan, message, cut_plainly(plan.scheme, message)))
    here = merged(map(ChunkEvaluator().evaluate, tasks))
    executors = spark.sparkContext.parallelize(tasks, len(tasks))
    assert merged(executors.map(ChunkEvaluator().evaluate).collect()) == here
    assert len(placed.ids_of(here.query_ids)) == 10

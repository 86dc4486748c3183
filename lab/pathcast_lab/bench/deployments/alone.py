"""One process with all subscriptions, new, so that its memory is its own."""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_lab.bench.deployments.definition import DeploymentSet, DeploymentTable
from pathcast_lab.bench.deployments.inputs import Load
from pathcast_lab.bench.deployments.measured import Measured
from pathcast_lab.bench.memory import peak_bytes

AT_ONCE = 256
"""Messages of a call."""


def run_alone(table: DeploymentTable, chosen: DeploymentSet, load: Load) -> Measured:
    """Matches the messages on all cores, then some of them one by one.

    Raises:
        WrongCountError: A match is lost, doubled or foreign.
    """
    count = chosen.messages["one"]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        work = pool.submit(_match, load, count, chosen.single, table.cores)
        measured, found = work.result()
    load.check("one process", found, range(count))
    return measured


def _match(
    load: Load, count: int, single: int, threads: int
) -> tuple[Measured, Counter[tuple[str, int]]]:
    began = time.monotonic()
    index = Registry(threads=threads)
    index.add([Query(id, text) for id, text in load.queries.items()])
    matcher = index.freeze()
    ready = time.monotonic() - began
    found: Counter[tuple[str, int]] = Counter()
    seconds = 0.0
    for start in range(0, count, AT_ONCE):
        numbers = range(start, min(count, start + AT_ONCE))
        bodies = [load.body(number) for number in numbers]
        began = time.monotonic()
        results = matcher.match(bodies)
        answers = [result.query_ids for result in results]
        seconds += time.monotonic() - began
        for number, ids in zip(numbers, answers, strict=True):
            found.update((id, number) for id in ids)
    latencies = []
    for number in range(single):
        began = time.monotonic()
        matcher.match([load.body(number)])
        latencies.append(time.monotonic() - began)
    peak = peak_bytes(os.getpid())
    measured = Measured(
        nodes=1,
        messages=count,
        seconds=seconds,
        latencies=latencies,
        sent_bytes=0.0,
        memory_bytes=() if peak is None else (peak,),
        ready_seconds=ready,
    )
    return measured, found

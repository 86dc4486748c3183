"""A pipeline on Spark, every worker with all subscriptions."""

from __future__ import annotations

import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pathcast.spark import files_of
from pathcast.spark.settings import PipelineSettings
from pathcast.workload.documents import GeneratedMessage
from pathcast.workload.packing import write_subscriptions
from pathcast.workload.subscriptions import GeneratedSubscription as Row
from pathcast_lab.bench.deployments.definition import DeploymentSet, DeploymentTable
from pathcast_lab.bench.deployments.inputs import Load
from pathcast_lab.bench.deployments.measured import Measured
from pathcast_lab.bench.memory import resident_bytes
from pathcast_lab.bench.pipeline.inputs import write_parts
from pathcast_lab.bench.pipeline.runner import Runner

SECONDS_BETWEEN_LOOKS = 0.2
"""At the memory of all processes."""


def run_spark(
    table: DeploymentTable,
    chosen: DeploymentSet,
    load: Load,
    folder: Path,
) -> Measured:
    """A run from files to inboxes, in several micro-batches.

    Raises:
        WrongCountError: A delivery is lost, doubled or foreign.
        JavaMissingError: There is no Java that Spark can run on.
        MissingDependencyError: PySpark is not installed.
    """
    runner, count, cores = Runner(), chosen.messages["spark"], table.cores
    messages = (GeneratedMessage(str(n), load.body(n), None) for n in range(count))
    source = write_parts(messages, count, folder / "messages", chosen.batches * cores)
    rows = [Row("all", id, text) for id, text in load.queries.items()]
    sections: dict[str, Any] = {
        "source": {"kind": "parquet", "path": source},
        "subscriptions": {"path": write_subscriptions(rows, folder / "subscriptions.tsv")},
        "output": {"path": folder / "output", "matches": "none"},
        "spark": {"master": f"local[{cores}]"},
        "mode": {"files_per_batch_max": cores},
    }
    with _watched() as memory:
        run = runner.run(PipelineSettings(**sections))
    found: Counter[tuple[str, int]] = Counter()
    for file in files_of(folder / "output", "inboxes"):
        rows_read = pq.read_table(file, columns=["subscription_id", "message_id"]).to_pydict()
        ids, numbers = rows_read["subscription_id"], rows_read["message_id"]
        found.update(zip(ids, map(int, numbers), strict=True))
    load.check("spark", found, range(count))
    return Measured(
        nodes=cores,
        messages=count,
        seconds=run.seconds,
        latencies=[batch.seconds for batch in run.batches],
        sent_bytes=None,
        memory_bytes=memory,
        ready_seconds=run.whole_seconds - run.seconds,
    )


@contextmanager
def _watched() -> Iterator[list[int]]:
    """The most that processes begun inside have at a time; nothing where there is no `/proc`."""
    found: list[int] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            together = sum(resident_bytes(process) or 0 for process in _descendants(os.getpid()))
            found[:] = [max([together, *found])] if together else found

    thread = threading.Thread(target=look, name="memory", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _descendants(process: int) -> list[int]:
    """Processes that it began, and those that they began."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text("ascii", "replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children[parent].append(int(entry.parent.name))
    found = [process]
    for each in found:
        found += children[each]
    return found[1:]

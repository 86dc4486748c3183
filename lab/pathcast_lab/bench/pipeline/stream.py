"""A stream: files come at a rate, and each is followed from its last byte to its commit.

Nobody asks the pipeline when it was done: the journal says which micro-batch a file belongs to, and
the time of that micro-batch's commit is the moment from which readers see its deliveries.

Example:
    >>> percentile([0.1, 0.2, 0.3, 0.4], 50), percentile([0.1, 0.2, 0.3, 0.4], 99)
    (0.2, 0.4)
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathcast.spark.journal import Journal
from pathcast.spark.ledger import COMMITS, committed_batches
from pathcast.spark.settings import PipelineSettings
from pathcast.workload.documents import GeneratedMessage
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.pipeline.cases import figures_of
from pathcast_lab.bench.wrong_count import WrongCountError

TICK_SECONDS = 0.02
"""So often the writer writes what is due."""

PATIENCE_SECONDS = 120.0
"""A stream that has not committed anything new for so long is not waited for."""


@dataclass(frozen=True, kw_only=True)
class StreamCase:
    """Latencies of the files of a stream, in the order of their micro-batches.

    Attributes:
        case: Its name.
        queries: Subscriptions.
        rate: Messages a second that were written; what was wanted is in the case's name.
        batches: Micro-batches that they went in.
        latencies: Seconds from the last byte of a file to the commit that names its deliveries.
    """

    case: str
    queries: int
    rate: float
    batches: int
    latencies: tuple[float, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures."""
        figure = figures_of(self.case, self.queries, len(self.latencies))
        yield figure("rate", "messages/s", [self.rate])
        yield figure("messages a micro-batch", "", [len(self.latencies) / self.batches])
        for share in (50, 99):
            seconds = percentile(self.latencies, share)
            yield figure(f"file to inbox, p{share}", "s", [seconds])
        yield figure("file to inbox, most", "s", [max(self.latencies)])


def write_stream(
    messages: Iterable[GeneratedMessage], folder: Path, *, rate: int, seconds: float
) -> float:
    """Writes messages as files, so many a second; the rate that was reached."""
    source, started, count = iter(messages), time.perf_counter(), 0
    while (passed := time.perf_counter() - started) < seconds:
        while count < passed * rate:
            write_file(next(source), folder)
            count += 1
        time.sleep(TICK_SECONDS)
    return count / (time.perf_counter() - started)


def write_file(message: GeneratedMessage, folder: Path) -> None:
    """One file, seen as a whole or not at all."""
    part = folder / f".{message.id}.part"
    part.write_bytes(message.message)
    part.replace(folder / f"{message.id}.xml")


def wait_for(settings: PipelineSettings, files: int) -> None:
    """Returns when so many files are delivered.

    Raises:
        WrongCountError: Nothing comes any more.
    """
    done = last = -1
    since = time.monotonic()
    while done < files:
        done = len(latencies_of(settings))
        if done != last:
            last, since = done, time.monotonic()
        if time.monotonic() - since > PATIENCE_SECONDS:
            raise WrongCountError(case="stream", found=done, expected=files, oracle="the writer")
        time.sleep(0.25)


def latencies_of(settings: PipelineSettings, *, after: int = 0) -> list[tuple[int, float]]:
    """Micro-batch and seconds from file to commit, of each file that is delivered.

    Args:
        settings: Of the stream, which may be running.
        after: Only of later micro-batches than this one.
    """
    output, journal = settings.output.storage, Journal(settings.checkpoint)
    found = []
    for batch_id in committed_batches(output):
        if batch_id > after:
            committed = (output.folder / COMMITS / f"{batch_id}.json").stat().st_mtime_ns
            for file in journal.entry(batch_id):
                found.append((batch_id, (committed - file.modified_ns) / 1e9))
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that so many per cent of all do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share / 100) - 1)]

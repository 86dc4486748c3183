"""`records`: a large file cut into messages, on one thread and on several, beside the door.

The file holds generated messages below one root element. What the door takes is its own account
(`parsing_ns`) for the messages that were cut, so each ratio is of one round.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from pathcast import Registry, Snapshot
from pathcast.records import split_records
from pathcast_lab.bench.checking import THREADS, wrong_count
from pathcast_lab.bench.definitions import RecordsDefinition, RecordsSet
from pathcast_lab.bench.door import idle_matcher
from pathcast_lab.bench.inputs import Source
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.timing import Spread, elapsed_ns, undisturbed


@dataclass(frozen=True)
class RecordsResult:
    """Wall times of the same file; the three of one place were taken in one round."""

    case: str
    records: int
    threads: int
    bytes: int
    one_ns: tuple[int, ...]
    several_ns: tuple[int, ...]
    door_ns: tuple[int, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures."""

        def figure(name: str, unit: str, values: list[float]) -> Measure:
            return Measure("records", self.case, name, unit, Spread.of(values))

        several = f"{self.threads} threads"
        for name, times in (("1 thread", self.one_ns), (several, self.several_ns)):
            yield figure(name, "MB/s", [self.bytes / ns * 1e3 for ns in times])
            speeds = [door / ns for door, ns in zip(self.door_ns, times, strict=True)]
            yield figure(f"{name} by door", "x door's speed", speeds)


def run_records(
    definition: RecordsDefinition, chosen: RecordsSet, source: Source, say: Callable[[str], None]
) -> Iterator[RecordsResult]:
    """The one case.

    Raises:
        WrongCountError: Other records were cut than were written, or they are no messages.
    """
    case = f"{source.name} generated"
    say(case)
    messages = [
        message[_root_of(message) :]
        for message in source.messages(chosen.messages, seed=definition.seed)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.xml"
        with path.open("wb") as file:
            file.write(b"<file>\n")
            for _ in range(chosen.repeats):
                file.write(b"\n".join(messages))
            file.write(b"</file>")
        records = len(messages) * chosen.repeats
        matcher = idle_matcher()
        times: list[tuple[int, int, int]] = []
        for number in range(-1, chosen.rounds):
            one, batches = _cut(path, 1, case, records)
            several, _ = _cut(path, definition.threads, case, records)
            door = _door_ns(matcher, batches, case, records)
            if number >= 0:  # The round before the first one warms up.
                times.append((one, several, door))
        one_ns, several_ns, door_ns = zip(*times, strict=True)
        size = path.stat().st_size
    yield RecordsResult(case, records, definition.threads, size, one_ns, several_ns, door_ns)


def _root_of(message: bytes) -> int:
    found = re.search(rb"<[^?!]", message)
    assert found is not None
    return found.start()


def _cut(path: Path, threads: int, case: str, records: int) -> tuple[int, Sequence[pa.RecordBatch]]:
    batches: list[pa.RecordBatch] = []

    def cut() -> None:
        batches.extend(split_records(path, record="/file/*", threads=threads))

    with undisturbed():
        time_ns = elapsed_ns(cut)
    found = sum(len(batch) - batch.column("message").null_count for batch in batches)
    if found != records:
        raise wrong_count(case, found, records, "what was written (records)")
    return time_ns, batches


def _door_ns(
    matcher: Registry | Snapshot, batches: Sequence[pa.RecordBatch], case: str, records: int
) -> int:
    time_ns = taken = 0
    with undisturbed():
        for batch in batches:
            answer = matcher.match(batch.column("message"))
            time_ns += answer.stats.parsing_ns
            taken += answer.errors.null_count
    if taken != records:
        raise wrong_count(case, taken, records, f"the door on {THREADS} thread (messages)")
    return time_ns

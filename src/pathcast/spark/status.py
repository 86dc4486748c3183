"""How a pipeline is doing, from what it has written: no process has to be asked.

Example:
    >>> watch = OutputWatch(Storage("delivered"), checkpoint)               # doctest: +SKIP
    >>> watch.look().messages_per_second                                    # doctest: +SKIP
    1203.5

It reads no message and writes nothing.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from pathcast.errors import SnapshotFormatError
from pathcast.spark.dearest import DearSubscription, dearest_of
from pathcast.spark.generations import DESCRIPTION, SNAPSHOTS, Generation
from pathcast.spark.journal import entry_of
from pathcast.spark.ledger import COMMITS, BatchLedger, Commit, committed_batches
from pathcast.spark.listing import file_at
from pathcast.spark.outputs import layout_of
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary

BATCHES_MAX: Final = 1000
"""Micro-batches of a window that are looked at, the last ones."""


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """The state of a pipeline, and the micro-batches that ended within a window of time.

    Attributes:
        at: When this was looked at, in seconds since 1970.
        window_seconds: Length of the window; rates are over all of it, or since the first commit.
        counted: Its complete micro-batches, as a summary counts those of a run.
        batch_id: The last complete micro-batch; None where there is none.
        committed_at: When it was complete, in seconds since 1970.
        running: A later micro-batch that was begun, and since when; None where there is none.
        seconds: Time of the micro-batches of the window.
        stages: Stage -> seconds of all tasks.
        dearest: The subscriptions that took the most work in the window, the dearest first;
            `counted.work` is the work of all.
        lag_seconds: From when the oldest file of the last micro-batch was written to its commit;
            None where messages are no files.
        generation: The subscriptions of the last micro-batch; None where their files are gone.
        generation_at: When these were taken up first, in seconds since 1970.
    """

    at: float
    window_seconds: float
    counted: Summary
    batch_id: int | None = None
    committed_at: float = 0.0
    running: tuple[int, float] | None = None
    seconds: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)
    dearest: Sequence[DearSubscription] = ()
    lag_seconds: float | None = None
    generation: Generation | None = None
    generation_at: float | None = None

    @property
    def messages_per_second(self) -> float:
        """Messages over the window."""
        return self.counted.messages / self.window_seconds


class OutputWatch:
    """Looks at an output again and again.

    Args:
        output: Output of a pipeline, which may be running.
        checkpoint: Of the pipeline.
        window_seconds: How far back counts go.

    Raises:
        ConfigError: The place is no output.

    Cost:
        A look lists commits and pins, and reads the commits that it has not seen: at first those of
        the window.
    """

    def __init__(self, output: Storage, checkpoint: Storage, window_seconds: float = 60.0) -> None:
        layout_of(output)
        self._output = output
        self._checkpoint = checkpoint
        self._window_seconds = window_seconds
        # Commits of the window, each with the time at which it was written.
        self._recent: deque[tuple[float, Commit]] = deque(maxlen=BATCHES_MAX)

    def look(self) -> PipelineStatus:
        """The state now."""
        self._read()
        now = time.time()
        while len(self._recent) > 1 and self._recent[0][0] < now - self._window_seconds:
            self._recent.popleft()
        nothing = Summary(str(self._output))
        if not self._recent:
            return PipelineStatus(now, self._window_seconds, nothing, running=self._running(0))
        at, last = self._recent[-1]
        inside = [commit for each, commit in self._recent if each >= now - self._window_seconds]
        stages = Counter[str]()
        for commit in inside:
            stages.update(commit.stages)
        generation, taken_up_at = generation_of(self._output, last)
        return PipelineStatus(
            at=now,
            window_seconds=self._window_seconds,
            counted=reduce(Summary.with_commit, inside, nothing),
            batch_id=last.batch_id,
            committed_at=at,
            running=self._running(last.batch_id),
            seconds=sum(commit.seconds for commit in inside),
            stages=dict(stages),
            dearest=dearest_of(row for commit in inside for row in commit.dearest),
            lag_seconds=lag_of(self._checkpoint, last, at),
            generation=generation,
            generation_at=taken_up_at,
        )

    def _read(self) -> None:
        """Reads the commits that came, from the last one back to the beginning of the window."""
        seen = self._recent[-1][1].batch_id if self._recent else 0
        fresh: list[tuple[float, Commit]] = []
        for number in reversed(committed_batches(self._output)):
            if number <= seen or len(fresh) == BATCHES_MAX:
                break
            at = committed_at(self._output, self._checkpoint, number)
            fresh.append((at, Commit.read(self._output, number)))
            if at < time.time() - self._window_seconds:
                break
        self._recent.extend(reversed(fresh))

    def _running(self, after: int) -> tuple[int, float] | None:
        pin = BatchLedger(self._output, self._checkpoint).last_pin()
        if pin is None or pin.batch_id <= after:
            return None
        return pin.batch_id, pin.begun_us / 1e6


def committed_at(output: Storage, checkpoint: Storage, number: int) -> float:
    """When a commit was written, in seconds since 1970; when it was begun, if nobody tells that."""
    file = file_at(output, f"{COMMITS}/{number}.json")
    if file is not None and file.modified_ns:
        return file.modified_ns / 1e9
    return BatchLedger(output, checkpoint).begun_us(number) / 1e6


def lag_of(checkpoint: Storage, commit: Commit, at: float) -> float | None:
    """Seconds from when the oldest file of a micro-batch was written to its commit.

    Args:
        checkpoint: Of the pipeline.
        commit: Of the micro-batch.
        at: When that was written, in seconds since 1970.

    Returns:
        None where the micro-batch is not of files.

    Cost: reads the names of its files.
    """
    try:
        files = entry_of(checkpoint, commit.batch_id)
    except FileNotFoundError:
        return None
    oldest = min((file.modified_ns for file in files if file.modified_ns > 0), default=None)
    return None if oldest is None else max(0.0, at - oldest / 1e9)


def generation_of(output: Storage, commit: Commit) -> tuple[Generation | None, float | None]:
    """The subscriptions of a micro-batch, and when they were taken up, in seconds since 1970."""
    version = commit.snapshot_version
    with suppress(OSError, SnapshotFormatError):
        file = file_at(output, f"{SNAPSHOTS}/{version}/{DESCRIPTION}")
        found = Generation.read(output, version)
        return found, None if file is None else file.modified_ns / 1e9 or None
    return None, None

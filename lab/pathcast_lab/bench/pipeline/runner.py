"""A pipeline in a process of its own, as people run it, and what came of it.

Example:
    >>> times = Runner().run(settings)                                      # doctest: +SKIP
    >>> times.batch_seconds < times.whole_seconds                           # doctest: +SKIP
    True

All that is known of a run lies in its summary, its journal and its commits; nothing looks over its
shoulder.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from pathcast.errors import MissingDependencyError, UnreadableMessageError
from pathcast.spark import files_of, find_java
from pathcast.spark.journal import Journal
from pathcast.spark.ledger import BatchLedger
from pathcast.spark.settings import PipelineSettings

if TYPE_CHECKING:
    from pathcast_lab.bench.pipeline.floor import FloorTimes

_FLOOR = "from pathcast_lab.bench.pipeline.floor import main; main()"
"""Not `-m`: workers have to find the tasks under the module's own name."""


@dataclass(frozen=True, kw_only=True)
class BatchTimes:
    """One micro-batch.

    Attributes:
        seconds: Wall time.
        tasks: Tasks that ran side by side.
        files: Files of the source.
        messages: Messages.
        bytes: Of these.
        matches: Pairs of message and query.
        deliveries: Rows of the inboxes.
        stages: Stage -> seconds of all tasks together.
        written_files: Files that were written.
        written_bytes: Their size.
    """

    seconds: float
    tasks: int
    files: int
    messages: int
    bytes: int
    matches: int
    deliveries: int
    stages: Mapping[str, float]
    written_files: int
    written_bytes: int


@dataclass(frozen=True)
class RunTimes:
    """One run.

    Attributes:
        cores: Of its session.
        whole_seconds: From the start of the command to its end.
        seconds: From the first look at the source to the last commit, and the summary.
        batches: Its micro-batches, in order.
    """

    cores: int
    whole_seconds: float
    seconds: float
    batches: tuple[BatchTimes, ...]

    def total(self, name: str) -> float:
        """Sum of an attribute over the micro-batches."""
        return float(sum(getattr(batch, name) for batch in self.batches))

    def stage(self, name: str) -> float:
        """Seconds of a stage, all tasks together."""
        return sum(batch.stages.get(name, 0.0) for batch in self.batches)

    @property
    def batch_seconds(self) -> float:
        """Wall time of the micro-batches."""
        return self.total("seconds")

    @property
    def outside_tasks(self) -> float:
        """What is left of the micro-batches if all tasks of one took as long."""
        tasks = sum(sum(batch.stages.values()) / batch.tasks for batch in self.batches)
        return self.batch_seconds - tasks


class Runner:
    """Starts commands. Raises `MissingDependencyError` or `JavaMissingError` when it is made."""

    def __init__(self) -> None:
        if find_spec("pyspark") is None:
            raise MissingDependencyError(
                "dependency.missing",
                purpose="pathcast-lab bench pipeline",
                module="pyspark",
                extra="spark",
            )
        find_java()

    def run(self, settings: PipelineSettings) -> RunTimes:
        """A pipeline from its start to its end."""
        started = time.perf_counter()
        printed = output_of([*_RUN, written_settings(settings), "--json"])
        return times_of(settings, time.perf_counter() - started, json.loads(printed))

    def floor(self, settings: PipelineSettings) -> FloorTimes:
        """The same job with tasks that do nothing but read."""
        from pathcast_lab.bench.pipeline.floor import FloorTimes

        found = json.loads(output_of([sys.executable, "-c", _FLOOR, written_settings(settings)]))
        dispatch = tuple((int(tasks), float(seconds)) for tasks, seconds in found.pop("dispatch"))
        return FloorTimes(**found, dispatch=dispatch)

    @contextmanager
    def streaming(self, settings: PipelineSettings) -> Iterator[None]:
        """A stream that runs while inside, and has stopped after."""
        file = written_settings(settings)
        with Path(file).with_suffix(".log").open("w+") as log:
            process = subprocess.Popen([*_RUN, file], stdout=log, stderr=log)
            try:
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                code = process.wait()
                log.seek(0)
                told = log.read()
        _check(code, [*_RUN, file], told)


_RUN = (sys.executable, "-m", "pathcast", "run")


def times_of(
    settings: PipelineSettings, whole_seconds: float, summary: Mapping[str, Any]
) -> RunTimes:
    """What a run left behind.

    Args:
        settings: Its settings.
        whole_seconds: Wall time of the command.
        summary: As `Summary.to_dict` gives it.

    Raises:
        UnreadableMessageError: It could not read a file.
    """
    checkpoint, output = settings.checkpoint, settings.output.storage
    journal = Journal(checkpoint)
    cores, batches = cores_of(settings), []
    for commit in BatchLedger(output, checkpoint).commits():
        for entry in commit.unread:
            raise UnreadableMessageError(
                "message.unreadable", path=entry.name, reason=entry.message
            )
        written = [file for files in commit.files.values() for file in files]
        batches.append(
            BatchTimes(
                seconds=commit.seconds,
                # Each task writes a file of matches, and as many run as there are cores.
                tasks=max(1, min(cores, len(commit.files.get("matches", ())))),
                files=len(journal.entry(commit.batch_id)),
                messages=commit.messages,
                bytes=commit.bytes,
                matches=commit.matches,
                deliveries=commit.deliveries,
                stages=dict(commit.stages),
                written_files=len(written),
                written_bytes=sum(file.bytes for file in written),
            )
        )
    return RunTimes(cores, whole_seconds, summary["seconds"], tuple(batches))


def cores_of(settings: PipelineSettings) -> int:
    """Cores of `local[N]`."""
    return int(settings.spark.master.removeprefix("local[").removesuffix("]"))


def written_settings(settings: PipelineSettings) -> str:
    """The settings as a file beside the output; its path."""
    lines = []
    for section, values in settings.model_dump(mode="json", exclude_defaults=True).items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    file = settings.output.storage.folder.with_suffix(".toml")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def rows_written(settings: PipelineSettings) -> dict[str, int]:
    """Rows that a reader finds, by output: not what the commits say, but what the files hold."""
    out, found = settings.output, {}
    for name, is_written in (("matches", out.matches != "none"), ("inboxes", out.inboxes)):
        if is_written:
            files = files_of(out.path, name)  # type: ignore[arg-type]
            found[name] = sum(pq.read_metadata(file).num_rows for file in files)
    return found


def output_of(command: Sequence[str]) -> str:
    """What a command prints.

    Raises:
        CalledProcessError: It failed; its last words are in the notes.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    _check(done.returncode, command, done.stderr)
    return done.stdout


def _check(code: int, command: Sequence[str], told: str) -> None:
    if code:
        error = subprocess.CalledProcessError(code, command)
        error.add_note(told[-4000:])
        raise error

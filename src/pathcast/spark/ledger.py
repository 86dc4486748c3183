"""What has to survive a kill: small files that are there as a whole or not at all.

Two of them carry the promise that nothing is lost and nothing comes twice. Before a micro-batch is
processed, its *pin* says which snapshot and which subscriptions it uses, so that a replay uses
the same. After all its output is in place, its *commit* says so, and what came of it; a replay
of a committed batch does nothing.

This module knows files, not Spark.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pathcast.errors import ConfigError

COMMITS = "_commits"
PINS = "_pins"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that other processes see as a whole, on disk before this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make renames and new names inside a directory survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Pin:
    """What a micro-batch runs with.

    Attributes:
        batch_id: Number of the micro-batch.
        snapshot_version: Version of the snapshot, which is also the name of its file.
        subscriptions: Digest of the subscriptions, which is also the name of their file.
        query_count: Number of queries.
        subscription_count: Number of subscriptions.
    """

    batch_id: int
    snapshot_version: str
    subscriptions: str
    query_count: int = 0
    subscription_count: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """What came of a micro-batch.

    Attributes:
        batch_id: Number of the micro-batch.
        stream: Id of the checkpoint that numbers the batches.
        snapshot_version: Snapshot that it ran with.
        messages: Messages that arrived.
        bytes: Bytes of these messages.
        matches: Pairs of message and query.
        deliveries: Rows of the inboxes.
        refused: Error code -> number of messages.
        seconds: Wall-clock time of the batch.
        undecided: Pairs of message and query that used up their steps.
        unread: Files of the source that could not be read, by their message ids: they are not
            booked as processed.
    """

    batch_id: int
    stream: str
    snapshot_version: str
    messages: int
    bytes: int
    matches: int
    deliveries: int
    refused: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    undecided: int = 0
    unread: Sequence[str] = ()


class Ledger:
    """Pins and commits of one output directory.

    Args:
        output: Output directory; commits lie in `_commits`, where readers look for them.
        checkpoint: Checkpoint directory; pins lie in `_pins`.
    """

    def __init__(self, output: Path, checkpoint: Path) -> None:
        self.output = output
        self._pins = checkpoint / PINS
        self._commits = output / COMMITS

    def pin(self, batch_id: int) -> Pin | None:
        """What a micro-batch was pinned to, if it was begun before."""
        found = _read(self._pins / f"{batch_id}.json")
        return None if found is None else Pin(**found)

    def last_pin(self) -> Pin | None:
        """The pin of the newest micro-batch that was begun."""
        found = _numbers(self._pins)
        return self.pin(found[-1]) if found else None

    def write_pin(self, pin: Pin) -> None:
        """Pin a micro-batch; to be called before anything of it is processed."""
        write_atomically(self._pins / f"{pin.batch_id}.json", _dump(asdict(pin)))

    def commit(self, batch_id: int) -> Commit | None:
        """What came of a micro-batch, if all its output is in place."""
        return read_commit(self._commits, batch_id)

    def write_commit(self, commit: Commit) -> None:
        """Declare a micro-batch complete; to be called after everything else of it."""
        write_atomically(self._commits / f"{commit.batch_id}.json", _dump(asdict(commit)))

    def commits(self) -> Iterator[Commit]:
        """All commits, in the order of their batches."""
        for batch_id in committed_batches(self.output):
            found = self.commit(batch_id)
            if found is not None:
                yield found

    def check_stream(self, stream: str) -> None:
        """Make sure that the checkpoint is the one that the output was written with.

        Raises:
            ConfigError: It is another one: its batch numbers begin anew, and batches of new
                messages would be taken for replays of old ones.
        """
        strange = next((c for c in self.commits() if c.stream != stream), None)
        if strange is not None:
            raise ConfigError(
                "config.invalid",
                key="mode.checkpoint",
                reason=f"batch {strange.batch_id} in {self.output} was written with another "
                "checkpoint; restore that one, or choose a new output directory",
            )


def read_commit(commits: Path, batch_id: int) -> Commit | None:
    """The commit of a micro-batch, if there is one in the directory of commits."""
    found = _read(commits / f"{batch_id}.json")
    if found is None:
        return None
    return Commit(**{**found, "unread": tuple(found.get("unread", ()))})


def committed_batches(output: str | os.PathLike[str]) -> list[int]:
    """Numbers of the micro-batches whose output is complete, ascending.

    Cost:
        One listing of a directory.
    """
    return _numbers(Path(output, COMMITS))


def _numbers(directory: Path) -> list[int]:
    """The micro-batches that have a file in a directory, ascending."""
    names = directory.glob("[0-9]*.json")
    return sorted(int(path.stem) for path in names if path.stem.isdecimal())


@contextmanager
def sole_writer(output: Path) -> Iterator[None]:
    """Keep a second pipeline from writing to the same output while this one runs.

    The lock belongs to the process and ends with it, however it ends.

    Raises:
        ConfigError: Another pipeline holds it.
    """
    output.mkdir(parents=True, exist_ok=True)
    with (output / "_lock").open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(
                "config.invalid",
                key="output.path",
                reason=f"another pipeline is writing to {output}",
            ) from error
        yield


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return found


def _dump(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, sort_keys=True) + "\n").encode()

"""The state that survives a kill: small files that are there whole or not at all.

Before a micro-batch is processed, its *pin* says which subscriptions it uses, so that doing it
again uses the same. After all its files are written, its *commit* names them, and says what came of
it; a micro-batch with a commit is not done again, and a file that no commit names is none. That is
all that a reader needs to know: nothing is ever renamed, so a place without atomic rename will do.

    _commits/N.json         micro-batch N: its files and counters
    _compactions/K.json     all files of micro-batches up to N, rewritten as fewer
    commit_sums/N.json      in the checkpoint: what all micro-batches up to N came to

A start reads the last sum and the commits after it. Sums are made of commits and can be lost.

This module knows files, not Spark.
"""

from __future__ import annotations

import fcntl
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from typing import Final

from pathcast.errors import ConfigError, invalid_setting
from pathcast.spark.dearest import DearSubscription
from pathcast.spark.files import FoundFile
from pathcast.spark.schemas import DAY, OUTPUTS, OutputName
from pathcast.spark.storage import Storage
from pathcast.spark.unwritable import writing
from pathcast.spark.writing import WrittenFile

COMMITS: Final = "_commits"
COMPACTIONS: Final = "_compactions"
PINS: Final = "_pins"
IN_FORCE: Final = "_in_force.json"
SUMS: Final = "commit_sums"
CHECKPOINT_ID: Final = "_checkpoint_id"
SOURCE: Final = "_source.json"

SUM_COMMITS: Final = 256
"""Commits after which what all came to is written down."""

COUNTED: Final = ("messages", "bytes", "matches", "undecided", "tombstones", "work")
"""Counters of tasks, commits and summaries."""

Files = Mapping[OutputName, list[WrittenFile]]


@dataclass(frozen=True, slots=True)
class Unread(FoundFile):
    """A file of the source that a micro-batch could not read, as it was then, and the error.

    Nothing of it was processed.
    """

    code: str = field(kw_only=True)
    message: str = field(kw_only=True)

    @property
    def file(self) -> FoundFile:
        """The file, with its size and time when the source found it."""
        return FoundFile(**{each.name: getattr(self, each.name) for each in fields(FoundFile)})


@dataclass(frozen=True, slots=True)
class Pin:
    """The subscriptions that a micro-batch runs with, and when it was begun.

    Attributes:
        snapshot_version: The subscriptions, and with them what a message may cost.
        position: Position of the log of changes that they are the state at; 0 where there is none.
        begun_us: When it was begun, in microseconds since 1970, UTC.
    """

    batch_id: int
    snapshot_version: str
    position: int
    begun_us: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Files and counters of a complete micro-batch.

    Attributes:
        batch_id: Number of the micro-batch.
        checkpoint: Id of the checkpoint that numbers the batches.
        snapshot_version: Subscriptions that it ran with.
        messages: Messages that arrived.
        bytes: Bytes of these messages.
        matches: Pairs of message and query.
        deliveries: Rows of the inboxes.
        refused: Error code -> number of messages.
        seconds: Wall-clock time of the batch.
        undecided: Pairs of message and subscription without an answer.
        tombstones: Rows of the source that are no messages.
        stages: Stage -> seconds, of all tasks together.
        files: Output -> what was written.
        unread: Files of the source that could not be read; they are not processed.
        offsets: Where a streaming source ends, as Spark says it; empty for files.
        skipped: Offsets of Kafka that gave no record, where those that are gone are passed over.
        work: Steps that single queries took.
        dearest: The queries that took the most of these, the dearest first.
    """

    batch_id: int
    checkpoint: str
    snapshot_version: str
    messages: int = 0
    bytes: int = 0
    matches: int = 0
    deliveries: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    undecided: int = 0
    tombstones: int = 0
    stages: Mapping[str, float] = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    offsets: str = ""
    skipped: int = 0
    work: int = 0
    dearest: tuple[DearSubscription, ...] = ()

    @classmethod
    def read(cls, output: Storage, batch_id: int) -> Commit:
        """Read the commit of a micro-batch.

        Raises:
            FileNotFoundError: It is not complete.
            DiskError: Its commit cannot be read.
        """
        return output.read_as(f"{COMMITS}/{batch_id}.json", cls)


class CommitFollower(ABC):
    """Publishes what commits say, in their order.

    Attributes:
        through: The last micro-batch that was published, as far as it is known.
        published: Messages that this object has published.
    """

    through = 0
    published = 0

    def check(self) -> None:  # noqa: B027
        """Raises what can be seen beforehand to keep it from publishing."""

    @abstractmethod
    def publish(self, commit: Commit) -> bool:
        """Publishes a micro-batch; False if it was told to stop before the end."""


@dataclass(frozen=True, slots=True)
class History:
    """Totals of all micro-batches of an output.

    Attributes:
        through: Number of the last one.
        commits: How many there are.
        messages: Messages that arrived.
        unread: Name of a file -> the last micro-batch that could not read it, and why.
    """

    through: int = 0
    commits: int = 0
    messages: int = 0
    unread: Mapping[str, tuple[int, Unread]] = field(default_factory=dict)

    def with_commit(self, commit: Commit) -> History:
        """And that of the next one."""
        unread = {entry.name: (commit.batch_id, entry) for entry in commit.unread}
        return History(
            commit.batch_id,
            self.commits + 1,
            self.messages + commit.messages,
            {**self.unread, **unread} if unread else self.unread,
        )

    def still_unread(self, last_entry: Callable[[str], int | None]) -> History:
        """Without the files that were handed on again since.

        Args:
            last_entry: The last micro-batch that a file was in.
        """
        left = {
            name: (batch_id, entry)
            for name, (batch_id, entry) in self.unread.items()
            if last_entry(name) == batch_id
        }
        return replace(self, unread=left)


@dataclass(frozen=True, slots=True)
class CheckpointSource:
    """The source whose files a checkpoint counts, as in the settings."""

    kind: str
    path: str


def source_of(checkpoint: Storage) -> CheckpointSource:
    """The source of a checkpoint.

    Raises:
        ConfigError: The place is no checkpoint.
        DiskError: What it says of its source cannot be read.
    """
    found = checkpoint.find_as(SOURCE, CheckpointSource)
    if found is None:
        reason = f"{checkpoint} is not the checkpoint of a pipeline"
        raise invalid_setting("mode.checkpoint", reason)
    return found


class BatchLedger:
    """Pins and commits of one output.

    Args:
        output: Commits lie in `_commits`, where readers look for them.
        checkpoint: Pins lie in `_pins`.
    """

    def __init__(self, output: Storage, checkpoint: Storage) -> None:
        self._output = output
        self._checkpoint = checkpoint

    def pin(self, batch_id: int) -> Pin | None:
        """Return the pin of a micro-batch; None where it was never begun."""
        return self._checkpoint.find_as(f"{PINS}/{batch_id}.json", Pin)

    def begun_us(self, batch_id: int) -> int:
        """When a micro-batch was begun, in microseconds since 1970, UTC; 0 where nobody knows."""
        pin = self.pin(batch_id)
        return 0 if pin is None else pin.begun_us

    def write_pin(self, pin: Pin) -> None:
        """Pin a micro-batch; to be called before anything of it is processed."""
        self._checkpoint.write_json(f"{PINS}/{pin.batch_id}.json", pin)

    def last_pin(self) -> Pin | None:
        """Return the pin of the last micro-batch that was begun."""
        numbers = numbers_in(self._checkpoint, PINS)
        return self.pin(numbers[-1]) if numbers else None

    def write_in_force(self, version: str) -> None:
        """Remember the subscriptions that were taken up, whether or not a message comes."""
        self._checkpoint.write_json(IN_FORCE, {"snapshot_version": version})

    def in_force(self) -> str | None:
        """The version of the subscriptions that were taken up last; None where none ever were."""
        with suppress(FileNotFoundError):
            return self._checkpoint.read_json(IN_FORCE, lambda row: str(row["snapshot_version"]))
        pin = self.last_pin()
        return None if pin is None else pin.snapshot_version

    def commit(self, batch_id: int) -> Commit | None:
        """Return the commit of a micro-batch; None where it is not complete."""
        return self._output.find_as(f"{COMMITS}/{batch_id}.json", Commit)

    def write_commit(self, commit: Commit) -> None:
        """Declare a micro-batch complete; to be called after everything else of it."""
        self._output.write_json(f"{COMMITS}/{commit.batch_id}.json", commit)

    def commits(self, after: int = 0) -> Iterator[Commit]:
        """The commits after one, in the order of their batches."""
        for batch_id in committed_batches(self._output):
            found = self.commit(batch_id) if batch_id > after else None
            if found is not None:
                yield found

    def history(self) -> History:
        """Return the totals of all commits.

        Cost: reads the last sum and the commits after it, `SUM_COMMITS` as a rule.
        """
        # Another process may have written a newer one and taken an older one out.
        sums = reversed(numbers_in(self._checkpoint, SUMS))
        found = (self._checkpoint.find_as(f"{SUMS}/{number}.json", History) for number in sums)
        history = next(filter(None, found), History())
        for commit in self.commits(after=history.through):
            history = history.with_commit(commit)
        return history

    def summed(self) -> int:
        """The last micro-batch whose commit is in a sum; 0 for none."""
        return max(numbers_in(self._checkpoint, SUMS), default=0)

    def sum_up(self, history: History) -> None:
        """Writes down what all commits up to now came to, now and then.

        A sum stands for all commits up to its number: where one has been taken out, none is made.
        """
        if history.through % SUM_COMMITS or history.through != history.commits:
            return
        earlier = numbers_in(self._checkpoint, SUMS)
        self._checkpoint.write_json(f"{SUMS}/{history.through}.json", history)
        self._checkpoint.delete(
            f"{SUMS}/{number}.json" for number in earlier if number < history.through
        )

    def claim_checkpoint(self, source: CheckpointSource) -> str:
        """The id of the checkpoint, made if it is new.

        Args:
            source: What it counts the files of.

        Raises:
            ConfigError: The output was written with another one: its batch numbers begin anew, and
                batches of new messages would be taken for ones that are done. Or it counts the
                files of another kind of source.
        """
        try:
            found = self._checkpoint.read(CHECKPOINT_ID).decode()
        except FileNotFoundError:
            found = ""
        numbers = committed_batches(self._output)
        first = self.commit(numbers[0]) if numbers else None
        if first is not None and first.checkpoint != found:
            raise invalid_setting(
                "mode.checkpoint",
                f"batch {first.batch_id} in {self._output} was written with another "
                "checkpoint; restore that one, or choose a new output directory",
            )
        if not found:
            found = uuid.uuid4().hex
            # In this order: a checkpoint that has an id says what it counts, wherever a kill came.
            self._checkpoint.write_json(SOURCE, source)
            self._checkpoint.write(CHECKPOINT_ID, found.encode())
        elif (known := source_of(self._checkpoint)).kind != source.kind:
            raise not_its_own(f"it is that of a source of kind {known.kind}, not {source.kind}")
        elif source.kind == "spark" and known.path != source.path:
            # Whose batches have the same numbers, and other messages.
            raise not_its_own(f"it counts the batches of {known.path}, not of {source.path}")
        self._checkpoint.write_json(SOURCE, source)
        return found


def not_its_own(reason: str) -> ConfigError:
    """Returns the error of a checkpoint and an output that do not belong together."""
    fix = "restore the checkpoint that belongs to the output, or choose a new output directory"
    return invalid_setting("mode.checkpoint", f"{reason}; {fix}")


@dataclass(frozen=True, slots=True)
class Compaction:
    """Files rewritten as fewer, the same rows.

    Attributes:
        through: Last micro-batch whose rows these files hold, with those of all before it.
        files: Output -> all its files up to then.
        replaced: Names of files that these stand for.
        written_at: When, in seconds since 1970.
    """

    through: int
    files: Files
    replaced: tuple[str, ...] = ()
    written_at: float = 0.0


def committed_batches(output: Storage) -> list[int]:
    """Numbers of the micro-batches whose output is complete, ascending.

    Cost:
        One listing of a directory.
    """
    return numbers_in(output, COMMITS)


def last_compaction(output: Storage) -> Compaction | None:
    """The newest compaction of an output."""
    return next(_compactions(output), None)


def _compactions(output: Storage) -> Iterator[Compaction]:
    """The compactions that are kept, newest first."""
    for number in reversed(numbers_in(output, COMPACTIONS)):
        found = output.find_as(f"{COMPACTIONS}/{number}.json", Compaction)
        if found is not None:
            yield found


def write_compaction(output: Storage, compaction: Compaction) -> None:
    """From now on readers take these files for all micro-batches up to `through`."""
    number = max(numbers_in(output, COMPACTIONS), default=0) + 1
    output.write_json(f"{COMPACTIONS}/{number}.json", compaction)


def live_files(output: Storage, name: OutputName) -> list[WrittenFile]:
    """The files of an output that count, each micro-batch once, oldest first.

    Cost:
        A small file read for each micro-batch since the last compaction.
    """
    compaction, commits = uncompacted(output)
    files = [] if compaction is None else list(compaction.files.get(name, ()))
    for commit in commits:
        files += commit.files.get(name, ())
    return files


def uncompacted(
    output: Storage, *, through: int | None = None
) -> tuple[Compaction | None, list[Commit]]:
    """The last compaction of an output, and the commits after it."""
    compaction = last_compaction(output)
    after = -1 if compaction is None else compaction.through
    numbers = [
        n for n in committed_batches(output) if n > after and (through is None or n <= through)
    ]
    return compaction, [Commit.read(output, number) for number in numbers]


def remove_strays(output: Storage) -> int:
    """Takes out files of outputs that nothing names: of attempts that were killed.

    To be called by the sole writer before it writes. Returns how many there were.
    """
    last, commits = uncompacted(output)
    counting = [commit.files for commit in commits] + ([last.files] if last else [])
    named = {file.name for files in counting for found in files.values() for file in found}
    for compaction in _compactions(output):
        named.update(compaction.replaced)
    folders = {folder for name in OUTPUTS for folder in (name, *days_of(output, name))}
    strays = [
        f"{folder}/{file}"
        for folder in folders
        for file in output.names(folder)
        if f"{folder}/{file}" not in named and f"{folder}/{file}" not in folders
    ]
    output.delete(strays)
    return len(strays)


def days_of(output: Storage, name: OutputName) -> list[str]:
    """The folders of days of an output, ascending."""
    return [f"{name}/{each}" for each in output.names(name) if each.startswith(f"{DAY}=")]


def remove_replaced(output: Storage, *, keep_seconds: float) -> int:
    """Takes out what compactions have replaced longer ago than this; how many files.

    A reader that has begun with such a file has so much time to end with it.
    """
    numbers = numbers_in(output, COMPACTIONS)
    count = 0
    for number in numbers:
        name = f"{COMPACTIONS}/{number}.json"
        compaction = output.read_as(name, Compaction)
        if time.time() - compaction.written_at < keep_seconds:
            break
        output.delete(compaction.replaced)
        count += len(compaction.replaced)
        if number != numbers[-1]:
            # The newest one says what counts; an older one only what it had replaced.
            output.delete([name])
    return count


@contextmanager
def sole_writer(output: Storage) -> Iterator[None]:
    """Keep a second pipeline of this machine from writing to the same output while this one runs.

    The lock belongs to the process and ends with it, however it ends. Places that are no directory
    have no locks; there, whoever starts pipelines has to see to it.

    Raises:
        ConfigError: Another pipeline holds it.
        DiskError: The output cannot be written.
    """
    if not output.is_local:
        yield
        return
    with writing(str(output)):
        output.folder.mkdir(parents=True, exist_ok=True)
        handle = (output.folder / "_lock").open("a")
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise invalid_setting(
                "output.path", f"another pipeline is writing to {output}"
            ) from error
        yield


def numbers_in(storage: Storage, folder: str) -> list[int]:
    """Numbers of the files of a folder that are named by one, ascending."""
    stems = (name.removesuffix(".json") for name in storage.names(folder) if ".json" in name)
    return sorted(int(stem) for stem in stems if stem.isdecimal())

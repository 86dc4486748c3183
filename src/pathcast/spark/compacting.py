"""Small files become few, while readers read.

A micro-batch leaves a file a task. Files that are small are read, sorted together and written as
one; then a compaction names what counts from now on (`pathcast.spark.ledger`). What it replaces
stays for a while, for readers that have begun with it, and is taken out later.

Rows are those that were there, in another order: by subscriber and subscription, for inboxes.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.limits import MIB
from pathcast.spark.delta import DeltaTables
from pathcast.spark.ledger import (
    SUM_COMMITS,
    Compaction,
    Files,
    remove_replaced,
    uncompacted,
    write_compaction,
)
from pathcast.spark.schemas import OUTPUTS, OutputName
from pathcast.spark.storage import Storage
from pathcast.spark.writing import (
    ROWS_A_GROUP,
    FileFormat,
    ParquetSink,
    WrittenFile,
    batches_of_name,
    new_name,
)

SMALL_BYTES: Final = 32 * MIB
"""A file below this is worth merging."""

NAMES_A_COMMIT: Final = 16
"""Names of files that are written again for each commit, at most, where nothing is merged."""

MERGED_BYTES: Final = 128 * MIB
"""Files that are merged are no larger together: what is held in memory is a few times that."""


def compact(
    output: Storage,
    format: FileFormat,
    *,
    small_bytes: int = SMALL_BYTES,
    through: int | None = None,
    first: int = 0,
) -> Compaction | None:
    """Merges the small files of an output that is complete up to its last commit.

    Args:
        output: The output. Others may read it, and one may add micro-batches to it.
        format: Format of its files.
        small_bytes: Files below this are merged.
        through: Only those of micro-batches up to this one; None for all.
        first: Rows of micro-batches before it go.

    Returns:
        What was written; None where there was nothing to merge, nor so many commits that one list
        of their files spares readers and starts reading each.

    Cost:
        About 1 s for 100 MB on one core; a few hundred MB of memory.
    """
    last, commits = uncompacted(output, through=through)
    if not commits and (last is None or not first):
        return None
    through = commits[-1].batch_id if commits or last is None else last.through
    files: dict[OutputName, list[WrittenFile]] = {}
    replaced: list[str] = []
    for name in OUTPUTS:
        kept: list[WrittenFile] = []
        live = [] if last is None else list(last.files.get(name, ()))
        live += [file for commit in commits for file in commit.files.get(name, ())]
        old = [file for file in live if batches_of_name(file.name)[1] < first]
        replaced += [file.name for file in old]
        for bin in _bins([file for file in live if file not in old], small_bytes):
            begins = min(batches_of_name(file.name)[0] for file in bin)
            ends = max(batches_of_name(file.name)[1] for file in bin)
            if len(bin) == 1 and begins >= first:
                kept += bin
            else:
                kept.append(_merge(output, name, bin, (max(begins, first), ends), format))
                replaced += [file.name for file in bin]
        files[name] = kept
    count = sum(len(kept) for kept in files.values())
    if not replaced and len(commits) < max(SUM_COMMITS, count // NAMES_A_COMMIT):
        return None
    compaction = Compaction(through, files, tuple(replaced), time.time())
    write_compaction(output, compaction)
    return compaction


class BackgroundCompaction:
    """Compacts an output beside a run, when enough small files or old rows have come together.

    Args:
        output: The output.
        format: Format of its files.
        files: Small files that are enough.
        keep_seconds: How long what is replaced stays.
        delta: The tables of the output, where it has any: they compact themselves.
        through: Gives the last micro-batch whose files nobody needs as they are; None for all.
    """

    def __init__(
        self,
        output: Storage,
        format: FileFormat,
        *,
        files: int,
        keep_seconds: float,
        delta: DeltaTables | None = None,
        through: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._delta = delta
        self._through = through
        self._output = output
        self._format = format
        self._files = files
        self._keep_seconds = keep_seconds
        self._thread: threading.Thread | None = None
        self._new: int | None = None
        self._commits = 0
        self.first_kept = 0
        """Number of the first micro-batch whose rows stay."""
        self.first_day: str | None = None
        """The day on which that one was begun, where rows go by whole days."""
        self.forgot = 0
        """Rows of micro-batches before this one are gone."""
        self.error: Exception | None = None
        """What went wrong the last time; the output is as it was."""

    def wrote(self, files: Files) -> None:
        """Tells of the files of a commit; starts a compaction where there are enough.

        Cost: the first time, those of earlier runs are counted: a run a minute makes few by itself.
        """
        is_old = self.first_kept > self.forgot
        if self._files == 0 and not is_old:
            return
        if self._new is None:
            self._new = self._waiting()
        else:
            self._new += _small(files)
            self._commits += 1
        is_due = is_old or self._new >= self._files or self._commits >= SUM_COMMITS
        if is_due and (self._thread is None or not self._thread.is_alive()):
            self._new = self._commits = 0
            self._thread = threading.Thread(target=self._run, name="compaction", daemon=True)
            self._thread.start()

    def _waiting(self) -> int:
        """Small files that are there."""
        if self._delta is not None:
            return self._delta.small_files(SMALL_BYTES)
        commits = uncompacted(self._output)[1]
        self._commits = len(commits)
        return sum(_small(commit.files) for commit in commits)

    def wait(self) -> None:
        """Until the one that runs has ended, and one more if enough has come meanwhile."""
        if self._thread is not None:
            self._thread.join()
            self.wrote({})
            self._thread.join()

    def _run(self) -> None:
        first, day = self.first_kept, self.first_day
        try:
            if self._delta is not None:
                if first > self.forgot:
                    self._delta.forget(first, day)
                self._delta.compact(self._keep_seconds / 3600)
            else:
                compact(
                    self._output,
                    self._format,
                    small_bytes=SMALL_BYTES if self._files else 0,
                    through=self._through(),
                    first=first,
                )
                remove_replaced(self._output, keep_seconds=self._keep_seconds)
            self.forgot, self.error = first, None
        except Exception as error:  # told, and tried again: deliveries do not depend on it
            self.error = error


def _small(files: Files) -> int:
    return sum(file.bytes < SMALL_BYTES for written in files.values() for file in written)


def _bins(files: Sequence[WrittenFile], small_bytes: int) -> Iterator[list[WrittenFile]]:
    """Large files by themselves, small ones of a folder in groups of at most `MERGED_BYTES`."""
    group: list[WrittenFile] = []
    size = 0
    for file in files:
        if file.bytes >= small_bytes:
            yield [file]
            continue
        is_full = group and size + file.bytes > MERGED_BYTES
        if is_full or (group and _folder(file) != _folder(group[0])):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.bytes
    if group:
        yield group


def _folder(file: WrittenFile) -> str:
    return file.name.rpartition("/")[0]


def _merge(
    output: Storage,
    name: OutputName,
    files: Sequence[WrittenFile],
    batches: tuple[int, int],
    format: FileFormat,
) -> WrittenFile:
    """The rows of some micro-batches in files, as one file."""
    target, rows, first = new_name(_folder(files[0]), batches, format), 0, batches[0]
    is_cut = any(batches_of_name(file.name)[0] < first for file in files)
    with output.create(target) as handle:
        if format == "jsonl":
            for line in _lines(output, files):
                if not is_cut or json.loads(line)["batch_id"] >= first:
                    handle.write(line)
                    rows += 1
        else:
            table = _sorted(name, pa.concat_tables(_read(output, files), promote_options="default"))
            table = table.filter(pc.field("batch_id") >= first) if is_cut else table
            sink = ParquetSink(handle, table.schema)
            for start in range(0, len(table), ROWS_A_GROUP):
                sink.write(table.slice(start, ROWS_A_GROUP))
            sink.close()
            rows = len(table)
        handle.flush()
        size = handle.tell()
    return WrittenFile(
        target,
        rows=rows,
        bytes=size,
        first=min((file.first for file in files if file.first is not None), default=None),
        last=max((file.last for file in files if file.last is not None), default=None),
    )


def _lines(output: Storage, files: Sequence[WrittenFile]) -> Iterator[bytes]:
    for file in files:
        with output.open(file.name) as handle:
            yield from handle


def _read(output: Storage, files: Sequence[WrittenFile]) -> Iterator[pa.Table]:
    for file in files:
        with output.open(file.name) as handle, pq.ParquetFile(handle) as opened:
            yield opened.read()


def _sorted(name: OutputName, table: pa.Table) -> pa.Table:
    if name != "inboxes":
        return table
    keys = ("subscriber", "subscription_id", "batch_id")
    return table.sort_by([(key, "ascending") for key in keys])

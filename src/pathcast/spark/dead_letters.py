"""The dead letters of an output, what became of them since, and taking them up again.

A file that could not be read is taken up by the source as soon as it has changed. Some can be read
without having changed (a limit was raised, a disk is back), and a message that was refused is read
and delivered once somebody has mended it: both are asked for here. Nothing of such a file was
delivered, so that taking it up delivers it once. What cannot be taken up is a row of a Parquet
file, whose other rows were delivered, and a query that could not be decided on a message that was.

It starts no Spark; the next run, or the stream that is running, takes up what was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow.dataset as ds

from pathcast.spark.directory import stat_file
from pathcast.spark.journal import (
    JOURNAL,
    SOURCE,
    FoundFile,
    Journal,
    message_id_of,
)
from pathcast.spark.ledger import COMMITS, committed_batches
from pathcast.spark.outputs import layout_of

State = Literal["unread", "refused", "asked for", "taken up", "final"]
"""What became of a dead letter.

- "unread": a file that could not be read and waits until it changes or is asked for;
- "refused": a message that was read and refused; it can be asked for once it is mended;
- "asked for": the next run, or the running stream, takes it up;
- "taken up": it was handed on again in a later micro-batch;
- "final": it cannot be taken up.
"""

WHOLE_FILE = "file.unreadable"
"""Code of the dead letter that stands for a whole Parquet file."""


class DeadLetter(NamedTuple):
    """A dead letter.

    Attributes:
        batch_id: Micro-batch that it is of.
        message_id: The message or, where it could not be read, the file.
        query_id: The query, or the subscription, that could not be decided; None for a message.
        code: Code of the error.
        reason: What is wrong.
        state: What became of it.
    """

    batch_id: int
    message_id: str | None
    query_id: str | None
    code: str
    reason: str
    state: State


class DeadLetterBox:
    """The dead letters of one output.

    Args:
        output: Output directory of a pipeline, which may be running.
        checkpoint: Its checkpoint; `_checkpoint` in the output when not given.

    Raises:
        ConfigError: The directory is not the output of a pipeline.
    """

    def __init__(self, output: Path, checkpoint: Path | None = None) -> None:
        self._output = output
        self._layout = layout_of(output)
        path = (checkpoint or output / "_checkpoint") / JOURNAL
        self._journal = Journal(path, output / COMMITS)
        self._journal.refresh()
        self._source: dict[str, str] = json.loads((path / SOURCE).read_bytes())

    def letters(self) -> Iterator[DeadLetter]:
        """All dead letters of complete micro-batches, in their order.

        Cost:
            Reads the dead letters, and the journal entries of micro-batches that have any.
        """
        kind = "json" if self._layout.format == "jsonl" else "parquet"
        query = "query_id" if self._layout.content == "matches" else "subscription_id"
        columns = ["message_id", query, "code", "message"]
        for batch_id in committed_batches(self._output):
            folder = self._output / "dead_letters" / f"batch_id={batch_id}"
            if not folder.is_dir():
                continue
            files = self._files(batch_id)
            schema = ds.dataset(folder, format=kind).schema
            there = [name for name in columns if name in schema.names]
            for batch in ds.dataset(folder, format=kind).to_batches(columns=there):
                for row in batch.to_pylist():
                    told = (row["message_id"], row.get(query), row["code"], row["message"])
                    yield DeadLetter(batch_id, *told, self._state(batch_id, *told[:3], files))

    def ask_for(self, message_ids: Collection[str] = ()) -> list[str]:
        """Ask for files to be taken up again.

        Args:
            message_ids: Which; when not given, all that could not be read, and all that were
                refused and have changed since.

        Returns:
            Their message ids; those that cannot be taken up are left out.
        """
        found: dict[str, str] = {}
        for letter in self.letters():
            if letter.state not in ("unread", "refused") or letter.message_id is None:
                continue
            if message_ids and letter.message_id not in message_ids:
                continue
            file = self._files(letter.batch_id)[letter.message_id]
            if message_ids or letter.state == "unread" or self._has_changed(file):
                found[letter.message_id] = file.name
        if found:
            self._journal.request(found.values())
        return sorted(found)

    def _files(self, batch_id: int) -> dict[str, FoundFile]:
        """Message id -> file, of the journal entry of a micro-batch."""
        return {message_id_of(file.name): file for file in self._journal.entry(batch_id + 1)}

    def _state(
        self,
        batch_id: int,
        message_id: str | None,
        query_id: str | None,
        code: str,
        files: dict[str, FoundFile],
    ) -> State:
        is_file = self._source["kind"] == "directory" or code == WHOLE_FILE
        if query_id is not None or not is_file or message_id not in files:
            return "final"
        name = files[message_id].name
        if self._journal.last_entry(name) != batch_id + 1:
            return "taken up"
        if self._journal.is_requested(name):
            return "asked for"
        return "unread" if self._journal.is_unread(name) else "refused"

    def _has_changed(self, file: FoundFile) -> bool:
        try:
            return stat_file(Path(self._source["path"]), file.name) != file
        except OSError:
            return False  # it has gone


def count_states(letters: Iterable[DeadLetter]) -> dict[str, int]:
    """State -> number of letters, sorted."""
    counts: dict[str, int] = {}
    for letter in letters:
        counts[letter.state] = counts.get(letter.state, 0) + 1
    return dict(sorted(counts.items()))

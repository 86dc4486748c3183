"""The dead letters of an output, what became of them since, and taking them up again.

A file that could not be read is taken up by the source as soon as it has changed. Some can be read
without having changed (a limit was raised, a disk is back), and a message that was refused is read
and delivered once somebody has mended it: both are asked for here. Nothing of such a file was
delivered, so that taking it up delivers it once. What cannot be taken up is a row of a file of many
messages, whose other rows were delivered, and a query that could not be decided on a message that
was.

It starts no Spark; the next run, or the stream that is running, takes up what was asked for.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from pathcast.spark.journal import Journal
from pathcast.spark.ledger import BatchLedger, source_of
from pathcast.spark.listing import file_at
from pathcast.spark.outputs import read_output
from pathcast.spark.storage import Storage, as_storage

State: TypeAlias = Literal["unread", "refused", "asked for", "taken up", "final"]
"""What became of a dead letter.

- "unread": a file that could not be read and waits until it changes or is asked for;
- "refused": a message that was read and refused; it can be asked for once it is mended;
- "asked for": the next run, or the running stream, takes it up;
- "taken up": it was handed on again in a later micro-batch;
- "final": it cannot be taken up.
"""


class PipelineDeadLetter(NamedTuple):
    """A dead letter.

    Attributes:
        message_id: The message or, where it could not be read, the file.
        subscription_id: The subscription that has no answer; None for a message or a file.
    """

    batch_id: int
    message_id: str | None
    subscription_id: str | None
    subscriber: str | None
    code: str
    reason: str
    state: State


class DeadLetterBox:
    """The dead letters of one output.

    Args:
        output: Output of a pipeline, which may be running; a `Storage` where it needs options.
        checkpoint: Its checkpoint; `_checkpoint` in the output when not given.
        source: Its source; without options, where it is said to lie, when not given.

    Raises:
        ConfigError: The place is not the output of a pipeline.
    """

    def __init__(
        self,
        output: str | os.PathLike[str] | Storage,
        checkpoint: str | os.PathLike[str] | Storage | None = None,
        source: Storage | None = None,
    ) -> None:
        self._output = as_storage(output)
        place = as_storage(checkpoint) if checkpoint else self._output.below("_checkpoint")
        self._rows = read_output(self._output, "dead_letters")
        self._journal = Journal(place)
        self._journal.read_requests()
        told = source_of(place)
        self._kind = told.kind
        self._source = source or Storage(told.path)
        history = BatchLedger(self._output, place).history()
        self._unread = {(batch_id, name) for name, (batch_id, _) in history.unread.items()}

    def letters(self) -> Iterator[PipelineDeadLetter]:
        """All dead letters of complete micro-batches, in their order."""
        for row in self._rows.sort_by("batch_id").to_pylist():
            name = row["message_id"] or row["file"]
            state = self._state(row["batch_id"], row["message_id"], row["subscription_id"], name)
            yield PipelineDeadLetter(
                row["batch_id"],
                name,
                row["subscription_id"],
                row["subscriber"],
                row["code"],
                row["message"],
                state,
            )

    def ask_for(self, message_ids: Collection[str] = ()) -> list[str]:
        """Ask for files to be taken up again.

        Args:
            message_ids: Which; when not given, all that could not be read, and all that were
                refused and have changed since.

        Returns:
            Their message ids; those that cannot be taken up are left out.
        """
        found: set[str] = set()
        for letter in self.letters():
            if letter.state not in ("unread", "refused") or letter.message_id is None:
                continue
            if message_ids and letter.message_id not in message_ids:
                continue
            if message_ids or letter.state == "unread" or self._has_changed(letter):
                found.add(letter.message_id)
        if found:
            self._journal.request(found)
        return sorted(found)

    def _state(
        self, batch_id: int, message_id: str | None, subscription_id: str | None, name: str | None
    ) -> State:
        is_file = message_id is None or self._kind == "directory"
        if subscription_id is not None or not is_file or name is None:
            return "final"
        last = self._journal.last_entry(name)
        if last is None:
            return "final"
        if last != batch_id:
            return "taken up"
        if self._journal.is_requested(name):
            return "asked for"
        return "unread" if (batch_id, name) in self._unread else "refused"

    def _has_changed(self, letter: PipelineDeadLetter) -> bool:
        assert letter.message_id is not None
        before = {file.name: file for file in self._journal.entry(letter.batch_id)}
        now = file_at(self._source, letter.message_id)
        return now is not None and now != before[letter.message_id]


def count_states(letters: Iterable[PipelineDeadLetter]) -> dict[str, int]:
    """State -> number of letters, sorted."""
    return dict(sorted(Counter(letter.state for letter in letters).items()))

"""Progress of a run: one line a micro-batch, on standard error or to a logger.

Lines go to standard error: standard output belongs to the summary, which may be piped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

if TYPE_CHECKING:
    from pathcast.spark.ledger import Commit


class ProgressReport(Protocol):
    """Receives the progress of a run."""

    def begin(self, text: str) -> None:
        """The first micro-batch is about to run.

        Args:
            text: What runs.
        """

    def batch(self, commit: Commit) -> None:
        """A micro-batch is complete."""

    def lag(self, offsets: int) -> None:
        """So many offsets of the source are there that were not read."""

    def note(self, text: str) -> None:
        """Something that the user should know, such as rejected queries."""


class LineProgress:
    """A line a micro-batch.

    Args:
        say: Writes the line of a run or a micro-batch.
        warn: Writes a note.
    """

    def __init__(self, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
        self.begin = self._say = say
        self.note = warn

    def batch(self, commit: Commit) -> None:
        """Write a line of a micro-batch."""
        self._say(describe(commit))

    def lag(self, offsets: int) -> None:
        """Write nothing: metrics show it (`mode.metrics`)."""


class LoggedProgress(LineProgress):
    """Hands what a run says to the logger "pathcast.spark"."""

    def __init__(self) -> None:
        logger = logging.getLogger("pathcast.spark")
        super().__init__(logger.info, logger.warning)


def progress_on(console: Console | None = None) -> ProgressReport:
    """Returns lines, on standard error unless a console is given."""
    console = console or Console(stderr=True)
    line = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    return LineProgress(line, line)


def describe(commit: Commit) -> str:
    """A micro-batch in one line."""
    refused = sum(commit.refused.values())
    rate = commit.bytes / 1e6 / commit.seconds if commit.seconds else 0.0
    undecided = f"{commit.undecided:,} undecided, " if commit.undecided else ""
    tombstones = f"{commit.tombstones:,} tombstones, " if commit.tombstones else ""
    return (
        f"batch {commit.batch_id}: {commit.messages:,} messages, {commit.matches:,} matches, "
        f"{refused:,} refused, {undecided}{tombstones}{commit.seconds:.2f} s, {rate:.1f} MB/s, "
        f"snapshot {commit.snapshot_version[:12]}"
    )

"""Progress of a run: a bar on a terminal, one line a micro-batch elsewhere, or a logger.

Bar and lines go to standard error: standard output belongs to the summary, which may be piped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

if TYPE_CHECKING:
    from pathcast.spark.ledger import Commit


class ProgressReport(Protocol):
    """Receives the progress of a run."""

    def begin(self, text: str, messages: int | None) -> None:
        """The first micro-batch is about to run.

        Args:
            text: What runs.
            messages: How many messages there are; None when that is not known.
        """

    def batch(self, commit: Commit) -> None:
        """A micro-batch is complete."""

    def note(self, text: str) -> None:
        """Something that the user should know, such as rejected queries."""

    def end(self) -> None:
        """Nothing more comes."""


class LineProgress:
    """A line a micro-batch.

    Args:
        say: Writes the line of a run or a micro-batch.
        warn: Writes a note.
    """

    def __init__(self, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
        self._say = say
        self.note = warn

    def begin(self, text: str, messages: int | None) -> None:
        """Write the line that describes the run."""
        self._say(text if messages is None else f"{text}, {messages:,} messages")

    def batch(self, commit: Commit) -> None:
        """Write a line of a micro-batch."""
        self._say(describe(commit))

    def end(self) -> None:
        """Write nothing: a log needs no end."""


class LoggedProgress(LineProgress):
    """Hands what a run says to the logger "pathcast.spark"."""

    def __init__(self) -> None:
        logger = logging.getLogger("pathcast.spark")
        super().__init__(logger.info, logger.warning)


class BarProgress:
    """A bar that fills, or a spinner while the number of messages is not known."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[last]}"),
            console=console,
        )
        self._task: TaskID | None = None

    def begin(self, text: str, messages: int | None) -> None:
        """Show the bar, below the line that describes the run."""
        self._progress.start()
        # On a line of its own: next to the bar it would leave no room for it.
        self.note(text)
        self._task = self._progress.add_task("messages", total=messages, last="")

    def batch(self, commit: Commit) -> None:
        """Advance the bar by a micro-batch."""
        if self._task is not None:
            rate = f"{commit.messages / commit.seconds:,.0f} messages/s" if commit.seconds else ""
            self._progress.update(self._task, advance=commit.messages, last=rate)

    def note(self, text: str) -> None:
        """Write a note above the bar."""
        self._progress.console.print(text, markup=False, highlight=False)

    def end(self) -> None:
        """Take the bar away."""
        self._progress.stop()


def progress_on(console: Console | None = None) -> ProgressReport:
    """The bar on a terminal, lines elsewhere; on standard error unless a console is given."""
    console = console or Console(stderr=True)
    if console.is_terminal:
        return BarProgress(console)
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

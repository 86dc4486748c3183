"""A progress report that nobody reads, for runs whose output is what a test looks at."""

from __future__ import annotations


class Silent:
    """Nobody listens."""

    def begin(self, text: str) -> None:
        """See `ProgressReport`."""

    def batch(self, commit: object) -> None:
        """See `ProgressReport`."""

    def lag(self, offsets: int) -> None:
        """See `ProgressReport`."""

    def note(self, text: str) -> None:
        """See `ProgressReport`."""

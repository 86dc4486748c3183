"""Which subscriptions a micro-batch runs with.

A new one takes the newest, and is pinned to them before anything is done of it; one that was begun
before goes on with what it was begun with. Where the newest cannot be read, or are fewer than is
believed, the earlier ones stay, and that is said once. A subscription whose row is not valid any
more stays as it was last valid, and that is said for each change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from pathcast.errors import ConfigError, invalid_setting
from pathcast.registry.subscription_rows import RejectedSubscription
from pathcast.spark.book import SubscriptionBook, TakenUp, too_few
from pathcast.spark.generations import Generation
from pathcast.spark.ledger import BatchLedger, Pin
from pathcast.spark.outputs import KEPT, Layout, write_rejected
from pathcast.spark.storage import Storage

if TYPE_CHECKING:
    from pathcast.spark.settings import SubscriptionSettings


NAMED_MAX: Final = 5
"""Subscriptions that stay as they were and are named, at one look."""


class Pinning:
    """Of one run.

    Attributes:
        generation: What new micro-batches run with; there once `begin` has returned.
        rejected: Rows of it that are no subscriptions.
        kept: Why the newest are not taken up; empty if they are.
    """

    def __init__(
        self,
        settings: SubscriptionSettings,
        book: SubscriptionBook,
        ledger: BatchLedger,
        output: Storage,
        layout: Layout,
        note: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._book = book
        self._ledger = ledger
        self._output = output
        self._layout = layout
        self._note = note
        self.generation: Generation
        self.rejected: Sequence[RejectedSubscription] = ()
        self.kept = ""
        # When the generation was the newest.
        self._believed_us = 0

    def pin(self, batch_id: int) -> tuple[Generation, int]:
        """Return the generation that a batch was begun with; for a new batch, the newest.

        Returns:
            Also when it was begun, in microseconds since 1970, UTC.
        """
        pin = self._ledger.pin(batch_id)
        if pin is not None:
            return self._book.pinned(pin.snapshot_version), pin.begun_us
        # Before the look: what this moment is in the period of is what it runs with.
        now = _now_us()
        self.look(now)
        position = 0 if self.kept else self._book.place.position
        self._ledger.write_pin(Pin(batch_id, self.generation.version, position, now))
        return self.generation, now

    def look(self, at_us: int | None = None) -> None:
        """Takes up the newest subscriptions, and says what has become of them since the last look.

        Args:
            at_us: As for `SubscriptionPlace.state`.

        Cost: `SubscriptionBook.current`.
        """
        found = self._believed(self.generation, _now_us() if at_us is None else at_us)
        if found is None:
            return
        before = self.generation
        if found.generation == before and _known(found.rejected) == _known(self.rejected):
            return
        was_rejected = bool(self.rejected)
        self.generation = self._take_up(found)
        if self.generation != before:
            at = f", position {self._book.place.position:,}" if self._book.place.position else ""
            count = f"{before.subscriptions:,} -> {self.generation.subscriptions:,}"
            self._note(f"subscriptions taken up: {count}{at}")
        if was_rejected and not self.rejected:
            self._note("no subscription is rejected any more")

    def begin(self) -> None:
        """Takes up what the run begins with: the newest, or, not believed, the last run's.

        Raises:
            ConfigError: They cannot be read, or too many of them are rejected.
        """
        version = self._ledger.in_force()
        earlier = None if version is None else self._book.pinned(version)
        now, last = _now_us(), self._ledger.last_pin()
        self._believed_us = now if last is None else last.begun_us
        self._check_rejected(earlier)
        if earlier is None or not self._book.place.exists():
            self.generation = self._take_up(self._current(earlier))
        else:
            found = self._believed(earlier, now)
            self.generation = earlier if found is None else self._take_up(found)
        if not self.generation.queries:
            self._note("no query is in force: every message will be read, none delivered")

    def _current(self, earlier: Generation | None, at_us: int | None = None) -> TakenUp:
        kept = earlier if self._settings.invalid == "keep" else None
        return self._book.current(kept, at_us)

    def _check_rejected(self, earlier: Generation | None) -> None:
        """Refuse to start where more rows are rejected than may be.

        Raises:
            ConfigError: There are; the message names the first.
        """
        allowed = self._settings.rejected_max
        if allowed == 1:
            return
        taken = self._current(earlier)
        bad = len(taken.rejected)
        kept = sum(each.in_force is not None for each in taken.rejected)
        if bad > allowed * (bad - kept + taken.generation.subscriptions):
            first = taken.rejected[0]
            raise invalid_setting(
                "subscriptions.rejected_max",
                f"{bad:,} rows are rejected, more than {allowed:.0%}; the first is "
                f"{first.place}: {first.reason}; pathcast check lists all",
            )

    def _believed(self, earlier: Generation, at_us: int) -> TakenUp | None:
        """The subscriptions as they are now; None, and said so, where the earlier ones stay."""
        try:
            found = self._current(earlier, at_us)
        except ConfigError as error:
            # Someone is at work on the file: messages go on with the last good state of it.
            self._keep(str(error))
            return None
        place, since_us = self._book.place, self._believed_us
        ended = partial(place.ended_since, since_us)
        if reason := too_few(earlier.subscriptions, found, self._settings.shrink_max, ended):
            self._keep(f"{place.name}: {reason}")
            return None
        self.kept = ""
        self._believed_us = at_us
        return found

    def _keep(self, reason: str) -> None:
        """Say, once, that the earlier subscriptions stay."""
        if reason != self.kept:
            self._note(f"subscriptions not taken up, the earlier ones stay: {reason}")
        self.kept = reason

    def _take_up(self, taken: TakenUp) -> Generation:
        version = taken.generation.version
        rows = self.rejected = tuple(taken.rejected)
        path = write_rejected(self._output, self._layout, rows, version)
        if path is not None:
            self._note(f"{len(rows):,} subscriptions were rejected: see {path}")
        if taken.warnings:
            first = taken.warnings[0]
            self._note(
                f"{len(taken.warnings):,} conditions of subscriptions never or always hold; the "
                f"first is {first.place}: {first.row.id}: {first.warning.message}; pathcast check "
                "lists all"
            )
        kept = [each for each in rows if each.in_force is not None]
        for each in kept[:NAMED_MAX]:
            told = f"{each.place}: {each.reason.partition(chr(10))[0]}"
            self._note(f"{each.row.subscriber} {each.row.id}: {KEPT}: {told}")
        if len(kept) > NAMED_MAX:
            self._note(f"{len(kept) - NAMED_MAX:,} more subscriptions: {KEPT}")
        self._ledger.write_in_force(version)
        return taken.generation


def _now_us() -> int:
    return time.time_ns() // 1000


def _known(rejected: Sequence[RejectedSubscription]) -> list[tuple[object, ...]]:
    """Rejections that can be compared: errors are equal to none but themselves."""
    return [(each.row, each.place, each.reason, each.in_force) for each in rejected]

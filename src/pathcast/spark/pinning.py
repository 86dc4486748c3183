"""Which subscriptions a micro-batch runs with.

A new one takes the newest, and is pinned to them before anything is done of it; one that was begun
before goes on with what it was begun with. Where the newest cannot be read, or are fewer than is
believed, the earlier ones stay, and that is said once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pathcast.customize.subscription_rows import RejectedSubscription
from pathcast.errors import ConfigError
from pathcast.spark.book import SubscriptionBook, TakenUp, rejected_table, too_few
from pathcast.spark.generations import Generation
from pathcast.spark.ledger import Ledger, Pin
from pathcast.spark.outputs import Layout, write_rejected
from pathcast.spark.storage import Storage

if TYPE_CHECKING:
    from pathcast.spark.settings import SubscriptionSettings


class Pinning:
    """Of one run.

    Args:
        settings: Of its subscriptions.
        book: Generations of them.
        ledger: Where micro-batches are pinned.
        output: Where rejected subscriptions are written.
        layout: In which way.
        note: Is told what somebody should know.

    Attributes:
        generation: What new micro-batches run with; there once `begin` has returned.
        rejected: Rows of it that are no subscriptions.
        kept: Why the newest are not taken up; empty if they are.
    """

    def __init__(
        self,
        settings: SubscriptionSettings,
        book: SubscriptionBook,
        ledger: Ledger,
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

    def pin(self, batch_id: int) -> Generation:
        """What the batch runs with: what it was begun with or, for a new one, the newest."""
        pin = self._ledger.pin(batch_id)
        if pin is not None:
            return self._book.pinned(pin.snapshot_version)
        found = self._believed(self.generation.subscriptions)
        if found is not None and found.generation != self.generation:
            before = self.generation.subscriptions
            self.generation = self._take_up(found)
            after = self.generation.subscriptions
            at = f", position {self._book.place.position:,}" if self._book.place.position else ""
            self._note(f"subscriptions taken up: {before:,} -> {after:,}{at}")
        position = 0 if self.kept else self._book.place.position
        self._ledger.write_pin(Pin(batch_id, self.generation.version, position))
        return self.generation

    def begin(self) -> None:
        """Takes up what the run begins with: the newest, or, not believed, the last run's.

        Raises:
            ConfigError: They cannot be read, or too many of them are rejected.
        """
        self._check_rejected()
        pin = self._ledger.last_pin()
        if pin is None or not self._book.place.exists():
            self.generation = self._take_up(self._book.current())
            return
        earlier = self._book.pinned(pin.snapshot_version)
        found = self._believed(earlier.subscriptions)
        self.generation = earlier if found is None else self._take_up(found)

    def _check_rejected(self) -> None:
        """Refuse to start where more rows are rejected than may be.

        Raises:
            ConfigError: There are; the message names the first.
        """
        allowed = self._settings.rejected_max
        if allowed == 1:
            return
        taken = self._book.current()
        bad = len(taken.rejected)
        if bad > allowed * (bad + taken.generation.subscriptions):
            first = taken.rejected[0]
            raise ConfigError(
                "config.invalid",
                key="subscriptions.rejected_max",
                reason=f"{bad:,} rows are rejected, more than {allowed:.0%}; the first is "
                f"{first.place}: {first.reason}; pathcast check lists all",
            )

    def _believed(self, earlier: int) -> TakenUp | None:
        """The subscriptions as they are now; None, and said so, where the earlier ones stay."""
        try:
            found = self._book.current()
        except ConfigError as error:
            # Someone is at work on the file: messages go on with the last good state of it.
            self._keep(str(error))
            return None
        if reason := too_few(earlier, found, self._settings.shrink_max):
            self._keep(f"{self._book.place.name}: {reason}")
            return None
        self.kept = ""
        return found

    def _keep(self, reason: str) -> None:
        """Say, once, that the earlier subscriptions stay."""
        if reason != self.kept:
            self._note(f"subscriptions not taken up, the earlier ones stay: {reason}")
        self.kept = reason

    def _take_up(self, taken: TakenUp) -> Generation:
        version = taken.generation.version
        rows = self.rejected = tuple(taken.rejected)
        table = rejected_table(rows, version)
        path = write_rejected(self._output, self._layout, rows, version, table)
        if path is not None:
            self._note(f"{len(rows):,} subscriptions were rejected: see {path}")
        if taken.warnings:
            first = taken.warnings[0]
            self._note(
                f"{len(taken.warnings):,} conditions of subscriptions never or always hold; the "
                f"first is {first.place}: {first.row.id}: {first.warning.message}; pathcast check "
                "lists all"
            )
        return taken.generation

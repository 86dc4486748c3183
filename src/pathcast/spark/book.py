"""The subscriptions of a pipeline, taken up anew when they change where they are kept.

Rows (subscriber, query id, query, what is delivered) come from a place (`subscription_places`);
`pathcast.registry.subscription_engines` compiles them. Here they become a generation.

It delivers nothing and knows nothing of Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pathcast.limits import Limits
from pathcast.model import DeliverMode, Subscription
from pathcast.registry.subscription_engines import SubscriptionEngines
from pathcast.registry.subscription_rows import RejectedSubscription, WarnedSubscription
from pathcast.spark.generations import DESCRIPTION, QUERIES, TAKERS, Generation
from pathcast.spark.last_valid import LastValidVersions
from pathcast.spark.taking_up import (
    TakerVersions,
    collector_paused,
    save_into,
    write_ipc,
)

if TYPE_CHECKING:
    from pathcast.spark.storage import Storage
    from pathcast.spark.subscription_places import SubscriptionPlace


@dataclass(frozen=True, slots=True)
class TakenUp:
    """A generation of subscriptions, and the rows that were refused.

    Attributes:
        generation: What can be delivered.
        rejected: What cannot, and why.
        warnings: Conditions in it that never or always hold, by place.
    """

    generation: Generation
    rejected: Sequence[RejectedSubscription] = field(default=(), repr=False)
    warnings: Sequence[WarnedSubscription] = field(default=(), repr=False)


class SubscriptionBook:
    """The subscriptions of a pipeline."""

    def __init__(
        self,
        place: SubscriptionPlace,
        output: Storage,
        *,
        deliver: DeliverMode = "ids",
        namespaces: Mapping[str, str] | None = None,
        limits: Mapping[str, int | str] | None = None,
    ) -> None:
        self._limits = dict(limits or {})
        self.place = place
        self._output = output
        self._deliver: DeliverMode = deliver
        self._namespaces = dict(namespaces or {})
        self._state: Hashable = None
        self._current: TakenUp | None = None
        self._engines: SubscriptionEngines | None = None
        self._versions = TakerVersions(self._message_limits(), namespaces)

    def current(self, earlier: Generation | None = None) -> TakenUp:
        """The generation of the subscriptions as they are now.

        Args:
            earlier: Has the last valid version of a subscription whose row is not valid any more.
                None: such a subscription ends.

        Raises:
            ConfigError: They cannot be read.

        Cost:
            A look at the place when nothing changed; else the rows are read, what came or changed
            is compiled, and all of it written.
        """
        state = self.place.state()
        if self._current is None or state != self._state:
            with collector_paused():
                self._current = self._taken_up(self._last_valid(earlier))
            # Only now: a file that could not be read is looked at again, not taken for known.
            self._state = state
        return self._current

    def pinned(self, version: str) -> Generation:
        """An earlier generation, from its files."""
        current = self._current
        if current is not None and current.generation.version == version:
            return current.generation
        return Generation.read(self._output, version)

    def _last_valid(self, earlier: Generation | None) -> LastValidVersions | None:
        if earlier is None:
            return None
        return LastValidVersions(self._output, earlier, self._namespaces)

    def _taken_up(self, last_valid: LastValidVersions | None) -> TakenUp:
        rows = self.place.rows(self._deliver)
        # Whoever is interrupted from here on leaves engines that nobody knows the state of.
        engines, self._engines = self._engines, None
        if engines is None:
            engines = SubscriptionEngines(self._message_limits(), self._namespaces)
        taken = engines.take_up(rows, last_valid)
        self._engines = engines
        written = self._write(engines, {key: row for key, (row, _) in taken.takers.items()})
        return TakenUp(written, tuple(taken.rejected), tuple(engines.warnings(taken)))

    def _message_limits(self) -> Limits:
        return Limits(**self._limits)  # type: ignore[arg-type]

    def _write(
        self, engines: SubscriptionEngines, takers: Mapping[tuple[str, str], Subscription]
    ) -> Generation:
        """The files of a generation; those of a version that is there are left as they are."""
        self._versions.become(takers)
        version = self._versions.text
        generation = Generation(
            version,
            queries=len({name for _, name in takers}),
            subscriptions=len(takers),
            has_notices=any(row.deliver == "ids" for row in takers.values()),
            written=uuid.uuid4().hex,
            limits=tuple(sorted(self._limits.items())),
        )
        output, folder = self._output, generation.folder
        if all(output.exists(f"{folder}/{name}") for name in (QUERIES, DESCRIPTION)):
            return Generation.read(output, version)
        write_ipc(output, f"{folder}/{TAKERS}", self._versions.table())
        save_into(output, f"{folder}/{QUERIES}", engines.registry.freeze().save)
        output.write(f"{folder}/{DESCRIPTION}", generation.to_json())
        return generation


def too_few(earlier: int, found: TakenUp, shrink_max: float) -> str | None:
    """Why a state of the subscriptions is not believed: more of them have gone than may at once."""
    count = found.generation.subscriptions
    if count >= earlier * (1 - shrink_max):
        return None
    rejected = f" and {len(found.rejected):,} that were rejected" if found.rejected else ""
    return (
        f"there are {count:,}{rejected}, and were {earlier:,}: more than {shrink_max:.0%} have "
        "gone; if that is meant, run with subscriptions.shrink_max=1"
    )

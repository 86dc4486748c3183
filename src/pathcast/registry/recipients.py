"""Whom the results of subscriptions go to, and the version of the set that they are.

Most subscriptions of a large registry get nothing of most messages, and not every batch is asked
whom it goes to: a subscription is read when somebody asks that of a delivery to it, or before the
next change, and what has come is counted when the version is asked for.

Example:
    >>> from pathcast.model import Query
    >>> registry = KernelRegistry(Limits(), threads=1, cache_bytes_max=1 << 20)
    >>> recipients = Recipients(registry, Limits(), Turns())
    >>> report = registry.register([Query("q1", "//a")], {})
    >>> recipients.of("q1").version.hex() == subscription_version(registry.subscription("q1"))
    True

It registers nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from weakref import WeakSet

from pathcast.engine.results import take_ids
from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import DeliveryAnswer, Subscription
from pathcast.registry.deliveries import KnownRecipients, Recipient
from pathcast.registry.identity import SetVersion, subscription_version
from pathcast.registry.turns import Turns


class Recipients:
    """Recipients of the subscriptions of a registry, by id.

    Args:
        registry: The registry.
        limits: What one message may cost, and what its results may.
        turns: The lock under which the registry changes.
        version: Version of the subscriptions that are in it; None where it has to be counted.
    """

    def __init__(
        self,
        registry: KernelRegistry,
        limits: Limits,
        turns: Turns,
        version: SetVersion | None = None,
    ) -> None:
        self._registry = registry
        self._limits = limits
        self._turns = turns
        self._unread: WeakSet[RecipientsOfBatch] = WeakSet()
        self._known: dict[str, Recipient] = {}
        self._version = version
        self._lock = threading.Lock()
        # Ids of those that came since it was counted.
        self._uncounted: dict[str, None] = {}

    def came(self, ids: Iterable[str]) -> None:
        """Subscriptions are in the registry now."""
        if self._version is not None:
            self._uncounted.update(dict.fromkeys(ids))

    def left(self, subscription: Subscription) -> None:
        """A subscription, as it was, is not in the registry any more."""
        self._known.pop(subscription.id, None)
        if subscription.id in self._uncounted:
            del self._uncounted[subscription.id]
        elif self._version is not None:
            self._version.remove(subscription)

    def counted(self, version: SetVersion | None) -> None:
        """This is the version; None where all has to be read and counted anew."""
        with self._lock:
            self._version, self._uncounted = version, {}
            if version is None:
                self._known = {}

    def of_batch(self, answer: DeliveryAnswer) -> RecipientsOfBatch:
        """Whom the deliveries of a batch go to; the caller shares the registry's turn."""
        made = RecipientsOfBatch(self, answer)
        self._unread.add(made)
        return made

    def read(self, batch: RecipientsOfBatch) -> KnownRecipients:
        """The recipients of a batch that nobody has read before."""
        with self._turns.shared():
            # A change may have read them.
            return batch.known or self._read(batch)

    def settle(self) -> None:
        """Reads whom the batches go to that somebody still has; the registry changes next.

        The caller is alone.
        """
        for batch in list(self._unread):
            self._read(batch)

    def _read(self, batch: RecipientsOfBatch) -> KnownRecipients:
        answer = batch.answer
        numbers = {*answer.subscribed(), *(number for _, number, _ in answer.verdicts)}
        names = take_ids(answer.subscription_ids, list(numbers))
        batch.known = KnownRecipients({name: self.of(name) for name in names}, self.version)
        self._unread.discard(batch)
        return batch.known

    def of(self, subscription_id: str) -> Recipient:
        """Whom the results of a subscription go to.

        Cost: about 8 µs, once.
        """
        found = self._known.get(subscription_id)
        if found is None:
            read = self._registry.subscription(subscription_id)
            found = Recipient(read.subscriber, bytes.fromhex(subscription_version(read)))
            self._known[subscription_id] = found
        return found

    @property
    def version(self) -> str:
        """Version of the set: a digest of the subscriptions and of the limits.

        Cost: about 1 µs for each that came since it was asked for.
        """
        with self._lock:
            if self._version is None:
                ids = self._registry.ids()
                self._version = SetVersion(self._limits, self._registry.sum_of(ids), len(ids))
            elif self._uncounted:
                ids = list(self._uncounted)
                self._version.add_all(self._registry.sum_of(ids), len(ids))
                self._uncounted = {}
            return self._version.text


class RecipientsOfBatch:
    """`BatchRecipients`: read when they are asked for, at the latest before the registry changes.

    Attributes:
        answer: The deliveries.
        known: What was read.
    """

    def __init__(self, registry: Recipients, answer: DeliveryAnswer) -> None:
        self._registry = registry
        self.answer = answer
        self.known: KnownRecipients | None = None

    @property
    def by_id(self) -> Mapping[str, Recipient]:
        """Implement `BatchRecipients.by_id`."""
        return (self.known or self._registry.read(self)).by_id

    @property
    def version(self) -> str:
        """Implement `BatchRecipients.version`."""
        return (self.known or self._registry.read(self)).version

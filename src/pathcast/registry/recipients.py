"""Whom the results of subscriptions go to, and the version of the set that they are.

Most subscriptions of a large registry get nothing of most messages: one is read when something is
delivered to it, and what has come is counted when the version is asked for.

Example:
    >>> from pathcast.model import Query
    >>> registry = KernelRegistry(Limits(), threads=1, cache_bytes_max=1 << 20)
    >>> recipients = Recipients(registry, Limits())
    >>> report = registry.register([Query("q1", "//a")], {})
    >>> recipients.of("q1").version.hex() == subscription_version(registry.subscription("q1"))
    True

It registers nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.registry.deliveries import Recipient
from pathcast.registry.identity import SetVersion, subscription_version


class Recipients:
    """Recipients of the subscriptions of a registry, by id.

    Args:
        registry: The registry.
        limits: What one message may cost, and what its results may.
        version: Version of the subscriptions that are in it; None where it has to be counted.
    """

    def __init__(
        self, registry: KernelRegistry, limits: Limits, version: SetVersion | None = None
    ) -> None:
        self._registry = registry
        self._limits = limits
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

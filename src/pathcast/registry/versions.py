"""The version of the set of subscriptions of a registry, and the one that a batch was answered by.

Not every batch is asked for it: what has come is counted when somebody asks, or before the next
change while an answer still lives.

Example:
    >>> from pathcast.model import Query
    >>> registry = KernelRegistry(Limits(), threads=1, cache_bytes_max=1 << 20)
    >>> version = RegistryVersion(registry, Limits(), Turns())
    >>> before = version.of_batch()
    >>> version.settle()
    >>> report = registry.register([Query("q1", "//a")], {})
    >>> version.came(["q1"])
    >>> str(before) == version.text
    False

It registers nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from weakref import WeakSet

from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.registry.identity import SetVersion
from pathcast.registry.turns import Turns


class RegistryVersion:
    """The version of what a registry has.

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
        self._unread: WeakSet[BatchVersion] = WeakSet()
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
        if subscription.id in self._uncounted:
            del self._uncounted[subscription.id]
        elif self._version is not None:
            self._version.remove(subscription)

    def counted(self, version: SetVersion | None) -> None:
        """This is the version; None where all has to be read and counted anew."""
        with self._lock:
            self._version, self._uncounted = version, {}

    def of_batch(self) -> BatchVersion:
        """The version that a batch is answered by; the caller shares the registry's turn."""
        made = BatchVersion(self)
        self._unread.add(made)
        return made

    def read(self, batch: BatchVersion) -> str:
        """The version of a batch that nobody has asked for before."""
        with self._turns.shared():
            # A change may have read it.
            return batch.known or self._read(batch)

    def settle(self) -> None:
        """Reads the versions of the batches that somebody still has; the registry changes next.

        The caller is alone.
        """
        for batch in list(self._unread):
            self._read(batch)

    def _read(self, batch: BatchVersion) -> str:
        batch.known = self.text
        self._unread.discard(batch)
        return batch.known

    @property
    def text(self) -> str:
        """A digest of the subscriptions and of the limits.

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


class BatchVersion:
    """The version of the set that answered a batch, as `str` gives it.

    It is counted when it is asked for, at the latest before the registry changes.

    Attributes:
        known: The version, once it was read.
    """

    def __init__(self, registry: RegistryVersion) -> None:
        self._registry = registry
        self.known: str | None = None

    def __str__(self) -> str:
        return self.known or self._registry.read(self)

"""One node of several does a thing: the one that holds its lease in the store.

The others try to take the lease now and then. A holder that could not renew its lease in time stops
by itself; one that does not notice (its clock stands still) writes nothing any more, since the
store compares tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pathcast.errors import PathcastError, StoreError
from pathcast.overlay.registration_messages import NotLeading, RegistrationRefused
from pathcast.protocol import Effect, Send
from pathcast.store import Lease, Store


class Leadership:
    """Whether this node does the thing now.

    Args:
        records: The store.
        name: Of the lease.
        holder: Name of this node.
        seconds: The lease expires after so many.

    Attributes:
        until: Time until which the lease is held, if it is; what is renewed later is a new one.
        failure: Why the store did not answer the last attempt; None: it did.
    """

    def __init__(self, records: Store, name: str, holder: str, seconds: float) -> None:
        self._records = records
        self._name = name
        self._holder = holder
        self.seconds = seconds
        self.lease: Lease | None = None
        self.until = 0.0
        self.failure: StoreError | None = None

    def attempt(self, now: float) -> bool:
        """Takes or renews the lease; says whether it has just been taken."""
        held = self.lease if self.is_held(now) else None
        try:
            self.lease = self._records.take(self._name, self._holder, self.seconds, held)
        except StoreError as error:
            # The lease may still be held; it counts until its time is over.
            self.failure = error
            return False
        self.failure = None
        self.until = now + self.seconds
        return self.lease is not None and self.lease != held

    def is_held(self, now: float) -> bool:
        """Whether the lease is held, as far as this node can know."""
        if self.lease is not None and now >= self.until:
            self.lease = None
        return self.lease is not None

    def answered(
        self, sender: str, request: str, work: Callable[[], Sequence[Effect]], now: float
    ) -> Sequence[Effect]:
        """Return the effects of a request, or the reason why it is refused."""
        if not self.is_held(now):
            return [Send(sender, NotLeading(request))]
        try:
            return work()
        except StoreError as error:
            if error.code == "store.deposed":
                self.lease = None
                return [Send(sender, NotLeading(request))]
            # Somebody else changed the record between: what is asked is decided anew.
            retry = error.retry or error.code in ("store.conflict", "store.requested")
            return [Send(sender, RegistrationRefused(request, error.code, error.message, retry))]
        except PathcastError as error:
            return [Send(sender, RegistrationRefused(request, error.code, error.message))]

"""One node of several does a thing: the one that holds its lease in the store.

The others try to take the lease now and then. A holder that could not renew its lease in time stops
by itself; one that does not notice (its clock stands still) writes nothing any more, since the
store compares tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from pathcast.errors import PathcastError, StoreError
from pathcast.overlay.registration_messages import NotLeading, RegistrationRefused
from pathcast.protocol import Effect, Send
from pathcast.store import (
    BrokerRecord,
    CatalogRecord,
    ChangeRecord,
    Lease,
    PlacementRecord,
    ProfileRecord,
    Record,
    Removal,
    SampleRecord,
    SourceRecord,
)

_Record = TypeVar(
    "_Record",
    ProfileRecord,
    SourceRecord,
    CatalogRecord,
    BrokerRecord,
    PlacementRecord,
    SampleRecord,
)


class LeaseStore(Protocol):
    """The methods of `Store` and `MemoryStore` that a node uses."""

    def write(
        self,
        changes: Iterable[Record | Removal],
        *,
        check: bool = False,
        lease: Lease | None = None,
        request: str | None = None,
    ) -> int:
        """Write records and removals together (`Store.write`)."""

    def done(self, request: str) -> tuple[str, str] | None:
        """Return what a request has written (`Store.done`)."""

    def get(self, kind: type[_Record], id: str) -> _Record | None:
        """Return one record (`Store.get`)."""

    def state(self, kind: type[_Record], **fields: object) -> tuple[int, list[_Record]]:
        """Return all records of a kind and their position (`Store.state`)."""

    def page(self, kind: type[_Record], after: str, limit: int) -> list[_Record]:
        """Return the next records of a kind by id (`Store.page`)."""

    def changes(self, after: int, limit: int = ...) -> list[ChangeRecord]:
        """Return the changes after a position (`Store.changes`)."""

    def take(
        self, name: str, holder: str, seconds: float, held: Lease | None = None
    ) -> Lease | None:
        """Take or renew a lease (`Store.take`)."""


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

    def __init__(self, records: LeaseStore, name: str, holder: str, seconds: float) -> None:
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

"""A store without a database, for worlds whose time is given and whose states are copied.

It does what `Store` does, with the same errors; `test_store.py` holds it to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from pathcast.errors import StoreError
from pathcast.store import Store
from pathcast.store.leases import Lease
from pathcast.store.records import (
    ChangeRecord,
    Record,
    Removal,
    SomeRecord,
    check_short,
    checked_changes,
    kind_of,
)


class MemoryStore(Store):
    """See the module.

    Args:
        clock: Seconds; decides when a lease expires.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._records: dict[tuple[str, str], Record] = {}
        self._log: list[ChangeRecord] = []
        self._requests: dict[str, tuple[str, str]] = {}
        self._held: dict[str, tuple[Lease, float]] = {}

    @property
    def position(self) -> int:
        """As for `Store`."""
        return len(self._log)

    def write(
        self,
        changes: Iterable[Record | Removal],
        *,
        check: bool = False,
        lease: Lease | None = None,
        request: str | None = None,
    ) -> int:
        """As for `Store`."""
        wanted = checked_changes(changes, request)
        if lease is not None:
            found = self._held.get(lease.name)
            if found is None or found[0].token != lease.token:
                token = None if found is None else found[0].token
                raise StoreError("store.deposed", name=lease.name, found=token, token=lease.token)
        for change in wanted if check else ():
            if isinstance(change, Removal):
                continue
            kept = self._records.get((kind_of(change), change.id))
            version = 0 if kept is None else kept.version
            if version != change.version:
                raise StoreError(
                    "store.conflict",
                    kind=kind_of(change),
                    id=change.id,
                    found=version,
                    expected=change.version,
                )
        if request is not None:
            if request in self._requests:
                raise StoreError("store.requested", request=request, position=None)
            self._requests[request] = (kind_of(wanted[0]), wanted[0].id)
        for change in wanted:
            self._change(change)
        return self.position

    def done(self, request: str) -> tuple[str, str] | None:
        """As for `Store`."""
        check_short(request, "request")
        return self._requests.get(request)

    def get(self, kind: type[SomeRecord], id: str) -> SomeRecord | None:
        """As for `Store`."""
        check_short(id, "id")
        found = self._records.get((str(kind.__struct_config__.tag), id))
        return found if isinstance(found, kind) else None

    def state(self, kind: type[SomeRecord], **fields: object) -> tuple[int, list[SomeRecord]]:
        """As for `Store`."""
        found = [
            record
            for record in self._records.values()
            if isinstance(record, kind)
            and all(getattr(record, name) == value for name, value in fields.items())
        ]
        return self.position, sorted(found, key=lambda record: record.id)

    def page(self, kind: type[SomeRecord], after: str, limit: int) -> list[SomeRecord]:
        """As for `Store`."""
        return [each for each in self.state(kind)[1] if each.id > after][:limit]

    def changes(self, after: int, limit: int = 10_000) -> list[ChangeRecord]:
        """As for `Store`."""
        if after > self.position:
            raise StoreError("store.ahead", after=after, end=self.position)
        return self._log[after : after + limit]

    def take(
        self, name: str, holder: str, seconds: float, held: Lease | None = None
    ) -> Lease | None:
        """As for `Store`."""
        check_short(name, "name of the lease")
        check_short(holder, "holder of the lease")
        now = self._clock()
        free = (Lease(name, "", 0), 0.0)
        current, expires = self._held.get(name, free)
        if held is not None and held.token == current.token:
            token = held.token
        elif expires <= now:
            token = current.token + 1
        else:
            return None
        lease = Lease(name, holder, token)
        self._held[name] = (lease, now + seconds)
        return lease

    def give_back(self, lease: Lease) -> None:
        """As for `Store`."""
        current, _ = self._held[lease.name]
        if current.token == lease.token:
            self._held[lease.name] = (current, 0.0)

    def _change(self, change: Record | Removal) -> None:
        kind = kind_of(change)
        position = self.position + 1
        if isinstance(change, Removal):
            if self._records.pop((kind, change.id), None) is not None:
                self._log.append(ChangeRecord(position, kind, change.id, None))
            return
        made = msgspec.structs.replace(change, version=position)
        self._records[kind, change.id] = made
        self._log.append(ChangeRecord(position, kind, change.id, made))

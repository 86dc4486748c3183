"""The store: records as they are, the log of their changes, requests that were done, leases.

Every write takes the row of `head` first and holds it until it is committed, and takes its
positions from there. Who waits for that row is shown what was committed before; so positions are
given in the order of commits and become visible in it, a write that fails gives its positions back,
and a reader that has seen position n has seen all below n. A sequence of the database does neither:
of two numbers that it gave out the later one can be committed first, and a reader that went on from
there would never see the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from sqlalchemy import Connection, Row, Select, Table, delete, exists, func, or_, select, update

from pathcast.errors import StoreError
from pathcast.store.database import WAIT_SECONDS, Database
from pathcast.store.leases import Lease, Leases, check_lease
from pathcast.store.migrating import bring_up_to_date
from pathcast.store.records import (
    KINDS,
    ChangeRecord,
    Record,
    Removal,
    SomeRecord,
    check_short,
    checked_changes,
    kind_of,
)
from pathcast.store.tables import RECORDS, head, log, requests

CHANGES_MAX: Final = 10_000
"""Changes of one call, where the caller does not say."""

_AT_ONCE: Final = 500
"""Ids of one statement."""

_decode: Final = msgspec.json.Decoder(Record).decode
_encode: Final = msgspec.json.Encoder().encode


class Store:
    """A database of profiles, sources, brokers and leases. See the module.

    May be used by several threads; leases by one at a time. A process that forks opens its own.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._leases = Leases(database)

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        migrate: bool = True,
        create: bool = True,
        wait_seconds: float = WAIT_SECONDS,
    ) -> Self:
        """Opens a database; an empty one gets its tables, unless `create` says otherwise.

        Args:
            url: "sqlite:///PATH", "postgresql://USER@HOST/NAME", or the path of a SQLite file.
            migrate: Whether the schema of an older Pathcast is brought up to date.
            create: Whether a database that is not there, or empty, is made; else "store.absent".
            wait_seconds: How long a write waits for others.

        Raises:
            ConfigError: The URL is none of these.
            MissingDependencyError: The driver of PostgreSQL is not installed.
            StoreError: It cannot be opened, or its schema is newer, or older and not to be changed.
        """
        database = Database(url, wait_seconds=wait_seconds)
        if not create and database.is_missing:
            raise StoreError("store.absent", url=database.shown)
        try:
            bring_up_to_date(database, migrate=migrate, create=create)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def close(self) -> None:
        """Gives back connections and the advisory locks of leases."""
        self._leases.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(
        self,
        changes: Iterable[Record | Removal],
        *,
        check: bool = False,
        lease: Lease | None = None,
        request: str | None = None,
    ) -> int:
        """Writes records and removals, all or none; when it returns, they are on disk.

        Args:
            changes: Records, each as it shall be from now on, and removals; of one id at most one.
                A record's own `version` is not kept, it gets the position of its change.
            check: Whether a record's `version` must be that of the one in the database, 0 where
                there is none: who changes what it has read, changes nothing that it has not.
            lease: What must be held by the writer.
            request: Name of the request that this does, so that it is never done twice. The first
                change says what was made of it: see `done`.

        Returns:
            Position of the last change; that of the head if nothing changed.

        Raises:
            UnusableRowError: A record cannot be kept.
            StoreError: "store.conflict", "store.requested", "store.deposed", or what the database
                says. After "store.away" it may have been done: ask again under the same request.

        Cost: a commit, and 45 µs of processor time a change in SQLite.
        """
        wanted = checked_changes(changes, request)
        with self._database.writing() as connection:
            position = _locked_head(connection)
            if lease is not None:
                check_lease(connection, lease)
            if check:
                _check_versions(connection, wanted)
            if request is not None:
                self._remember(connection, request, wanted[0], position + 1)
            return self._apply(connection, wanted, position)

    def done(self, request: str) -> tuple[str, str] | None:
        """Kind and id of what a request made, even if that was removed since; None if not done."""
        check_short(request, "request")
        wanted = select(requests.c.kind, requests.c.id).where(requests.c.request == request)
        with self._database.reading() as connection:
            row = connection.execute(wanted).first()
        return None if row is None else (row.kind, row.id)

    def get(self, kind: type[SomeRecord], id: str) -> SomeRecord | None:
        """One record; None if there is none of this id.

        Raises:
            UnusableRowError: It cannot be an id.
            StoreError: What the database says.
        """
        check_short(id, "id")
        table = _table(kind)
        with self._database.reading() as connection:
            row = connection.execute(select(table).where(table.c.id == id)).first()
        return None if row is None else _record(kind, row)

    def find(
        self, kind: type[SomeRecord], *, labels: dict[str, str] | None = None, **fields: object
    ) -> list[SomeRecord]:
        """The records that have these values in their fields, by id.

        Args:
            kind: Their class.
            labels: Name of a label -> value that a profile must have.
            **fields: Name of a field -> its value.

        Cost: an index for `owner` and `host` of profiles and `source` of catalogs, else a scan.
        """
        table = _table(kind)
        wanted = _selected(table, fields)
        for name, value in (labels or {}).items():
            check_short(name, "labels")
            check_short(value, "labels")
            wanted = wanted.where(table.c.labels[name].as_string() == value)
        with self._database.reading() as connection:
            return [_record(kind, row) for row in connection.execute(wanted)]

    def state(self, kind: type[SomeRecord], **fields: object) -> tuple[int, list[SomeRecord]]:
        """A checkpoint: all records of a kind, and the position that they are the state at.

        Args:
            kind: Their class.
            **fields: As for `find`.
        """
        wanted = _selected(_table(kind), fields)
        with self._database.reading() as connection:
            position = connection.execute(select(head.c.position)).scalar_one()
            return position, [_record(kind, row) for row in connection.execute(wanted)]

    def page(self, kind: type[SomeRecord], after: str, limit: int) -> list[SomeRecord]:
        """The next records of a kind by id: those after an id, at most so many.

        Args:
            kind: Their class.
            after: The id; "" for the first.
            limit: How many at most; fewer are all there are.
        """
        table = _table(kind)
        wanted = _selected(table, {}).where(table.c.id > after).limit(limit)
        with self._database.reading() as connection:
            return [_record(kind, row) for row in connection.execute(wanted)]

    def count(self, kind: type[Record], *by: str) -> dict[tuple[str, ...], int]:
        """Records of a kind, by the values of fields: no fields, one entry for all."""
        table = _table(kind)
        fields = [table.c[name] for name in by]
        wanted = select(*fields, func.count()).select_from(table)
        with self._database.reading() as connection:
            rows = connection.execute(wanted.group_by(*fields) if fields else wanted).all()
        return {tuple(row[:-1]): row[-1] for row in rows}

    @property
    def position(self) -> int:
        """Of the last change."""
        with self._database.reading() as connection:
            position: int = connection.execute(select(head.c.position)).scalar_one()
            return position

    def changes(self, after: int, limit: int = CHANGES_MAX) -> list[ChangeRecord]:
        """The changes that follow a position, ascending and without a gap.

        Args:
            after: The last position that the reader has; 0 for all.
            limit: At most so many; fewer are all there are.

        Raises:
            StoreError: "store.compacted" or "store.ahead": read the state and go on from there; or
                what the database says.
        """
        wanted = select(log).where(log.c.position > after).order_by(log.c.position).limit(limit)
        with self._database.reading() as connection:
            ends = connection.execute(select(head.c.position, head.c.start)).one()
            if after < ends.start:
                raise StoreError("store.compacted", after=after, start=ends.start)
            if after > ends.position:
                raise StoreError("store.ahead", after=after, end=ends.position)
            return [_change(row) for row in connection.execute(wanted)]

    def history(
        self, kind: type[Record], id: str, limit: int = CHANGES_MAX
    ) -> list[tuple[int, ChangeRecord]]:
        """The changes of one record that the log has, the last first.

        Args:
            kind: Its class.
            id: Which.
            limit: At most so many.

        Returns:
            When each was made, in microseconds since 1970 by the clock of the writer (0: not
            known), and the change.

        Raises:
            UnusableRowError: It cannot be an id.
            StoreError: What the database says.

        Cost: an index gives them.
        """
        check_short(id, "id")
        own = (log.c.id == id) & (log.c.kind == str(kind.__struct_config__.tag))
        wanted = select(log).where(own).order_by(log.c.position.desc()).limit(limit)
        with self._database.reading() as connection:
            return [(row.at, _change(row)) for row in connection.execute(wanted)]

    def compact(self, upto: int) -> None:
        """Drops the changes up to a position, and requests whose record was gone by then.

        Readers that have not come so far begin again with the state; a request that comes again
        after that is done again.

        Raises:
            StoreError: "store.ahead", or what the database says.
        """
        with self._database.writing() as connection:
            position = _locked_head(connection)
            if upto > position:
                raise StoreError("store.ahead", after=upto, end=position)
            connection.execute(delete(log).where(log.c.position <= upto))
            stays = or_(
                *(
                    (requests.c.kind == kind) & exists().where(table.c.id == requests.c.id)
                    for kind, table in RECORDS.items()
                )
            )
            connection.execute(delete(requests).where(requests.c.position <= upto, ~stays))
            start = func.max if self._database.is_sqlite else func.greatest
            connection.execute(update(head).values(start=start(head.c.start, upto)))

    def take(
        self, name: str, holder: str, seconds: float, held: Lease | None = None
    ) -> Lease | None:
        """Takes a lease, or renews the one that is held; None if another has it.

        Args:
            name: Of what.
            holder: Who takes it.
            seconds: It expires after so many without a renewal.
            held: What an earlier call of this process gave.
        """
        return self._leases.take(name, holder, seconds, held)

    def give_back(self, lease: Lease) -> None:
        """Lets others have a lease at once."""
        self._leases.give_back(lease)

    def _apply(
        self, connection: Connection, wanted: Sequence[Record | Removal], position: int
    ) -> int:
        removals = _present(connection, wanted)
        rows: dict[str, list[dict[str, Any]]] = {}
        entries: list[dict[str, Any]] = []
        now = time.time_ns() // 1000
        for change in wanted:
            kind = kind_of(change)
            if isinstance(change, Removal):
                if (kind, change.id) not in removals:
                    continue
                content = None
                position += 1
            else:
                position += 1
                made = msgspec.structs.replace(change, version=position)
                rows.setdefault(kind, []).append(msgspec.structs.asdict(made))
                content = _encode(made).decode()
            entries.append(
                {
                    "position": position,
                    "kind": kind,
                    "id": change.id,
                    "content": content,
                    "at": now,
                }
            )
        for kind, made_rows in rows.items():
            connection.execute(self._database.insert_or_replace(RECORDS[kind], ["id"]), made_rows)
        for kind, ids in _by_kind(removals).items():
            for part in _parts(ids):
                table = RECORDS[kind]
                connection.execute(delete(table).where(table.c.id.in_(part)))
        if entries:
            connection.execute(log.insert(), entries)
            connection.execute(update(head).values(position=position))
        return position

    def _remember(
        self, connection: Connection, request: str, change: Record | Removal, position: int
    ) -> None:
        found = select(requests.c.position).where(requests.c.request == request)
        before = connection.execute(found).scalar_one_or_none()
        if before is not None:
            raise StoreError("store.requested", request=request, position=before)
        row = {"request": request, "kind": kind_of(change), "id": change.id, "position": position}
        connection.execute(requests.insert(), [row])


def _locked_head(connection: Connection) -> int:
    """The last position; nobody else gives out positions until the transaction ends."""
    position: int = connection.execute(select(head.c.position).with_for_update()).scalar_one()
    return position


def _check_versions(connection: Connection, changes: Sequence[Record | Removal]) -> None:
    records = [change for change in changes if not isinstance(change, Removal)]
    found: dict[tuple[str, str], int] = {}
    for kind, ids in _by_kind((kind_of(record), record.id) for record in records).items():
        table = RECORDS[kind]
        for part in _parts(ids):
            rows = connection.execute(
                select(table.c.id, table.c.version).where(table.c.id.in_(part))
            )
            found.update({(kind, row.id): row.version for row in rows})
    for record in records:
        version = found.get((kind_of(record), record.id), 0)
        if version != record.version:
            raise StoreError(
                "store.conflict",
                kind=kind_of(record),
                id=record.id,
                found=version,
                expected=record.version,
            )


def _present(
    connection: Connection, changes: Sequence[Record | Removal]
) -> dict[tuple[str, str], None]:
    """The removals whose record is there."""
    leaving = ((each.kind, each.id) for each in changes if isinstance(each, Removal))
    found: dict[tuple[str, str], None] = {}
    for kind, ids in _by_kind(leaving).items():
        table = RECORDS[kind]
        for part in _parts(ids):
            rows = connection.execute(select(table.c.id).where(table.c.id.in_(part)))
            found.update({(kind, row.id): None for row in rows})
    return found


def _by_kind(keys: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, id in keys:
        found.setdefault(kind, []).append(id)
    return found


def _parts(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[at : at + _AT_ONCE] for at in range(0, len(ids), _AT_ONCE))


def _selected(table: Table, fields: Mapping[str, object]) -> Select[Any]:
    """The records that have these values in their fields, by id."""
    wanted = select(table).order_by(table.c.id)
    for name, value in fields.items():
        if isinstance(value, str):
            check_short(value, name)
        wanted = wanted.where(table.c[name] == value)
    return wanted


def _table(kind: type[msgspec.Struct]) -> Table:
    return RECORDS[str(kind.__struct_config__.tag)]


def _record(kind: type[SomeRecord], row: Row[Any]) -> SomeRecord:
    return msgspec.convert(dict(zip(kind.__struct_fields__, row, strict=True)), kind)


def _change(row: Row[Any]) -> ChangeRecord:
    record = None if row.content is None else _decode(row.content)
    assert row.kind in KINDS
    return ChangeRecord(row.position, row.kind, row.id, record)

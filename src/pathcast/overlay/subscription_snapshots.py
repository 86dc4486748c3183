"""The snapshot of a host's subscriptions, and which of them have changed since it was made.

A host that begins again opens its snapshot and looks at what has changed since: the records of its
subscriptions stay the truth, and are read when somebody asks for one. Beside the file, which the
local plan keeps, there are two kinds of records: what the file does not say of its profiles, and of
each subscription that has changed since, the entries that the file was counted with.

A snapshot is made in another thread, from the one before and the changes since; what changes
meanwhile is counted as changed since. What cannot be used is left aside, and one is made anew.

Source: none; ARIES and its kind: a checkpoint, and a log from there on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from pathcast.errors import PathcastError, SnapshotFormatError
from pathcast.overlay.content import DeliveryProfile, Profiles, ProfileSnapshots
from pathcast.overlay.outcome import EventEffects
from pathcast.overlay.subscriptions import (
    Entries,
    HostedSubscriptions,
    KeptSubscription,
    record_key,
)
from pathcast.protocol import Save, records_under

SNAPSHOT: Final = "snapshot"
CHANGED: Final = "changed/"
FOLLOWING: Final = "following"
"""When the last life began that noted what changed since the snapshot."""

CHANGES_MIN: Final = 1_000
"""Changes before a snapshot is made: as many subscriptions are restored in a few hundredths of a
second without."""

CHANGES_SHARE: Final = 16
"""Of so many subscriptions one has to have changed. To make a snapshot takes about 10 µs for each
subscription, to apply a change at a start 30 µs."""


def changed_key(name: str) -> str:
    """The key under which the entries are kept that a snapshot was counted with."""
    return f"{CHANGED}{name}"


class KeptSnapshot(msgspec.Struct, frozen=True):
    """The record that is kept beside the file of a snapshot.

    Attributes:
        version: Of the file.
        entries_by: As of `KeptSubscription`.
        entries: How many of its subscriptions ask for each entry.
        waiting: Ids of those that were not in force.
    """

    version: str
    entries_by: str
    entries: dict[str, int]
    waiting: tuple[str, ...]


@dataclass(frozen=True)
class SnapshotReview:
    """The input of a snapshot, from which any thread can make it.

    Attributes:
        snapshots: Makes it.
        base: Version of the one before; "" for none.
        changed: Id -> profile, or None of one that has left; all, where there is none before.
        entries_by: As of `KeptSnapshot`.
        entries: Likewise.
        waiting: Likewise.
    """

    snapshots: ProfileSnapshots
    base: str
    changed: Mapping[str, DeliveryProfile | None]
    entries_by: str
    entries: dict[str, int]
    waiting: tuple[str, ...]

    def make(self) -> tuple[str, bytes]:
        """Write the file; gives its version, and the record to keep beside it.

        Raises:
            PathcastError: The one before cannot be read any more.
            OSError: It cannot be written, or the one before is gone.
        """
        version = self.snapshots.make(self.base, self.changed)
        kept = KeptSnapshot(version, self.entries_by, self.entries, self.waiting)
        return version, msgspec.msgpack.encode(kept)


class SubscriptionSnapshots:
    """The snapshot of the subscriptions of one host.

    Args:
        subscriptions: None yet.
        profiles: Answers them.
        disk: What was saved by a former life.
        outcome: Takes what is to be kept.
    """

    def __init__(
        self,
        subscriptions: HostedSubscriptions,
        profiles: Profiles,
        disk: Mapping[str, bytes],
        outcome: EventEffects,
    ) -> None:
        self._subscriptions = subscriptions
        self._profiles = profiles
        self._disk = disk
        self._outcome = outcome
        self._base = ""
        # Id -> entries that the snapshot was counted with, of those that have changed since; and
        # of those that had when one began that is being made.
        self._changed: dict[str, Entries] = {}
        self._made_from: dict[str, Entries] | None = None

    @property
    def is_kept(self) -> bool:
        """Whether a former life has kept one, and this one can open it."""
        return SNAPSHOT in self._disk and self._profiles.snapshots is not None

    def open(self) -> list[KeptSubscription]:
        """Restore the subscriptions of the snapshot, and take out those that changed since.

        Returns:
            Those that changed since and are not answered, for whatever reason.

        Raises:
            PathcastError: It is damaged, or is not of these subscriptions: nothing is restored.
            OSError: Likewise.
        """
        assert self._profiles.snapshots is not None
        kept = msgspec.msgpack.decode(self._disk[SNAPSHOT], type=KeptSnapshot)
        if self._disk.get(FOLLOWING) != self._disk.get("began"):
            raise _not_of_these("another version of Pathcast has run since")
        if kept.entries_by != self._profiles.entries_by:
            raise _not_of_these("it was made by another version, or under other settings")
        changed = {
            key.removeprefix(CHANGED): msgspec.msgpack.decode(value, type=Entries)
            for key, value in records_under(self._disk, CHANGED)
        }
        records = {name: self._disk.get(record_key(name)) for name in changed}
        now = {
            name: None if row is None else msgspec.msgpack.decode(row, type=KeptSubscription)
            for name, row in records.items()
        }
        asked = {name: None if one is None else one.profile for name, one in now.items()}
        names = self._profiles.snapshots.open(kept.version, asked)
        unchanged = [name for name in names if name not in changed]
        waiting = set(kept.waiting).difference(changed)
        self._subscriptions.restore_snapshot(unchanged, kept.entries, waiting, self._disk)
        for entries in changed.values():
            self._subscriptions.discount(entries)
        there = [one for one in now.values() if one is not None]
        for one in there:
            if one.name in names:
                self._subscriptions.restore(one, is_answered=True)
        self._base, self._changed = kept.version, changed
        return [one for one in there if one.name not in names]

    def forget(self) -> None:
        """There is no snapshot that can be used: neither it nor what changed since is kept."""
        for key in [SNAPSHOT, *(key for key, _ in records_under(self._disk, CHANGED))]:
            if key in self._disk:
                self._outcome.forget(key)

    def follow(self, began: int) -> None:
        """A life begins that notes what changes."""
        if self._profiles.snapshots is not None:
            self._outcome.save(FOLLOWING, began)

    def note(self, name: str, entries: Entries) -> None:
        """A subscription changes that had these entries; none if it was not there."""
        if self._profiles.snapshots is None or name in self._changed:
            return
        self._changed[name] = entries
        if self._base and not (self._made_from and name in self._made_from):
            self._outcome.save(changed_key(name), entries)

    def review(self, *, is_last: bool) -> SnapshotReview | None:
        """Begins a review if a snapshot is due; None if none is, or one is being made.

        Args:
            is_last: Whether the process ends.

        Cost: some hundredths of a microsecond for each subscription; about 2 µs for each, once,
            where there is no snapshot before.
        """
        snapshots, held = self._profiles.snapshots, len(self._subscriptions)
        least = max(CHANGES_MIN, 0 if is_last else held // CHANGES_SHARE)
        changes = len(self._changed) if self._base else held
        if snapshots is None or self._made_from is not None or changes < least:
            return None
        names = self._changed if self._base else self._subscriptions.names()
        found = {name: self._subscriptions.get(name) for name in names}
        changed = {name: None if one is None else one.profile for name, one in found.items()}
        self._made_from, self._changed = self._changed, {}
        return SnapshotReview(
            snapshots,
            self._base,
            changed,
            self._profiles.entries_by,
            self._subscriptions.counts(),
            tuple(self._subscriptions.waiting()),
        )

    def adopt(self, made: tuple[str, bytes] | None, *, is_base_lost: bool = False) -> None:
        """End a review: keep what it gave, from which changes count now.

        Args:
            made: From `SnapshotReview.make`; None if it failed.
            is_base_lost: Whether the snapshot before cannot be read any more.
        """
        assert self._made_from is not None
        before, self._made_from = self._made_from, None
        if made is None:
            self._changed |= before
            if self._base and is_base_lost:
                self._base = ""
                self._outcome.forget(SNAPSHOT)
            return
        self._base, record = made
        self._outcome.effects.append(Save(SNAPSHOT, record))
        for name in before.keys() - self._changed.keys():
            self._outcome.forget(changed_key(name))
        for name, entries in self._changed.items():
            self._outcome.save(changed_key(name), entries)


def _not_of_these(reason: str) -> PathcastError:
    return SnapshotFormatError("snapshot.other", path="the snapshot of profiles", reason=reason)

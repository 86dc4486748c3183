"""Where the subscriptions of a pipeline are kept: files, or a profile database.

A place is looked at before each micro-batch; only if its *state* is another one are rows read.

    FilePlace     a table, a `.xq` file, or a folder of them; its state: names, times and sizes
    StorePlace    profiles of `pathcast.store`; its state: the position of the last change of one,
                  and the last moment from which one is valid, or is not any more

A `StorePlace` reads all profiles once, and then what the log of the database says has changed
since, by position. Profiles that are paused, not valid at the moment, or were not asked for, are as
if they were not there.

Example:
    >>> place = place_of(load_settings("pipeline.toml").subscriptions)      # doctest: +SKIP
    >>> state, found = place.state(), place.rows("ids")                     # doctest: +SKIP

It compiles nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pathcast.errors import ConfigError, StoreError, invalid_setting
from pathcast.moments import LONG_AGO_US, NEVER_US
from pathcast.registry import files_below, rows_with_values
from pathcast.registry.delimited import TextPlace
from pathcast.registry.subscription_files import files_of
from pathcast.registry.subscription_rows import SubscriptionRows, read_rows

if TYPE_CHECKING:
    from pathcast.model import DeliverMode, QueryLanguage, Subscription
    from pathcast.spark.settings import SubscriptionSettings
    from pathcast.store import ChangeRecord, ProfileRecord, Store


class SubscriptionPlace(Protocol):
    """Subscriptions that may change while a pipeline runs."""

    @property
    def name(self) -> str:
        """Return the name that places of rows begin with."""

    @property
    def position(self) -> int:
        """Position of the last change that `state` has seen; 0 where changes have none."""

    def exists(self) -> bool:
        """Whether there is something to read."""

    def state(self, at_us: int | None = None) -> Hashable:
        """Return a value that differs when subscriptions have changed.

        Args:
            at_us: Microseconds since 1970: what is valid then counts. Default: now.

        Raises:
            ConfigError: They cannot be looked at.
        """

    def rows(self, deliver: DeliverMode) -> SubscriptionRows:
        """All of them as they were when `state` was asked for, or later.

        Args:
            deliver: What is delivered where a row does not say.

        Raises:
            ConfigError: They cannot be read.
        """

    def ended_since(self, after_us: int) -> int:
        """Subscriptions that have ended, by their own words, between a moment and that of `state`.

        Args:
            after_us: Microseconds since 1970.
        """

    def close(self) -> None:
        """Nothing more is asked."""


class FilePlace:
    """A table, a `.xq` file, or a folder of them.

    Args:
        path: The file or folder.
        language: Of subscriptions that choose none.
        only: Ids of the subscriptions that count; empty for all.
        values: Folder of the lists that queries name.
    """

    position = 0

    def __init__(
        self,
        path: Path,
        language: QueryLanguage | None = None,
        only: Collection[str] = (),
        values: Path | None = None,
    ) -> None:
        self._path = path
        self._values = values
        self._language = language
        self._only = frozenset(only)
        self.name = str(path)

    def exists(self) -> bool:
        """Return whether there is such a file."""
        return self._path.exists()

    def state(self, at_us: int | None = None) -> Hashable:
        """Name, time, size and inode of every file. Cost: a `stat` a file."""
        path = self._path
        try:
            files = [*files_of(path)] if path.is_dir() else [path]
            if self._values is not None:
                files += files_below(self._values)
            found = []
            for file in files:
                status = file.stat()
                found.append((str(file), status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError as error:
            raise _unusable("path", f"{path}: {error.strerror or error}") from error
        return tuple(found)

    def rows(self, deliver: DeliverMode) -> SubscriptionRows:
        """Return the subscriptions of the file."""
        with self._named():
            read = read_rows(self._path, deliver, self._language)
            found = rows_with_values(read, self._values)
        if not self._only:
            return found
        pairs = zip(found.rows, found.places, strict=True)
        chosen = [(row, place) for row, place in pairs if row.id in self._only]
        rejected = [each for each in found.rejected if each.row.id in self._only]
        return SubscriptionRows(
            [row for row, _ in chosen], [place for _, place in chosen], rejected
        )

    def ended_since(self, after_us: int) -> int:
        """Return 0: files say of no subscription when it ends."""
        return 0

    def close(self) -> None:
        """Nothing: files are opened where they are read."""

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Report a fault of the file as one of the setting that names it."""
        try:
            yield
        except ConfigError as error:
            raise _unusable("path", error.message) from error


class _KnownProfile(NamedTuple):
    """A profile that is answered while it is valid."""

    row: Subscription
    version: int
    starts_us: int
    ends_us: int


class StorePlace:
    """Profiles of a database that are to be answered.

    Args:
        url: The database, as `Store.open` takes it; it has to be there.
        labels: Labels that a profile has to have.
        host: Host broker that it has to have; None for any.
        only: As for `FilePlace`.
    """

    def __init__(
        self,
        url: str,
        *,
        labels: Mapping[str, str] | None = None,
        host: str | None = None,
        only: Collection[str] = (),
    ) -> None:
        self._url = url
        self._labels = dict(labels or {})
        self._host = host
        self._only = frozenset(only)
        self._store: Store | None = None
        self._profiles: dict[str, _KnownProfile] | None = None
        self._changed = 0
        # Moments to come, a heap; of profiles that have gone or changed too.
        self._moments: list[int] = []
        self._at_us = LONG_AGO_US
        self._passed_us = LONG_AGO_US
        self.position = 0

    @property
    def name(self) -> str:
        """The URL, without a password."""
        from pathcast.store import shown_url

        return shown_url(self._url)

    def exists(self) -> bool:
        """Return True: a read finds out whether the database can be reached."""
        return True

    def state(self, at_us: int | None = None) -> Hashable:
        """Position of the last change of a profile that is answered, or was; last moment of one.

        A moment that is earlier than one that was asked for is taken for the latter.

        Cost: a query that gives what has changed since the last time; the first one reads all.
        """
        with self._told():
            self._follow(self._opened())
        self._at_us = max(self._at_us, time.time_ns() // 1000 if at_us is None else at_us)
        while self._moments and self._moments[0] <= self._at_us:
            self._passed_us = heappop(self._moments)
        return self._changed, self._passed_us

    def rows(self, deliver: DeliverMode) -> SubscriptionRows:
        """Return the profiles, each with its own way of delivery; its line is its version."""
        if self._profiles is None:
            self.state()
        found = SubscriptionRows([], [], [])
        name = self.name
        for _, known in sorted((self._profiles or {}).items()):
            if known.starts_us <= self._at_us < known.ends_us:
                found.rows.append(known.row)
                found.places.append(TextPlace(name, known.version, None))
        return found

    def ended_since(self, after_us: int) -> int:
        """Return how many profiles have expired since. Cost: 0.1 µs a profile."""
        profiles = (self._profiles or {}).values()
        return sum(after_us < each.ends_us <= self._at_us for each in profiles)

    def close(self) -> None:
        """Closes the database."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _opened(self) -> Store:
        from pathcast.store import Store

        if self._store is None:
            self._store = Store.open(self._url, create=False)
        return self._store

    def _follow(self, store: Store) -> None:
        """Takes in what has changed; all, where the log does not reach back to what is known."""
        if self._profiles is None:
            self._read_all(store)
            return
        try:
            while found := store.changes(self.position):
                for change in found:
                    self._take_in(change)
        except StoreError as error:
            if error.code not in ("store.compacted", "store.ahead"):
                raise
            self._read_all(store)

    def _read_all(self, store: Store) -> None:
        from pathcast.store import ProfileRecord

        self.position, found = store.state(ProfileRecord)
        self._profiles = {}
        self._moments.clear()
        for each in found:
            self._keep(each)
        self._changed = self.position

    def _take_in(self, change: ChangeRecord) -> None:
        from pathcast.store import ProfileRecord

        assert self._profiles is not None
        self.position = change.position
        if change.kind != "profile":
            return
        before = self._profiles.pop(change.id, None)
        profile = change.record
        if isinstance(profile, ProfileRecord):
            self._keep(profile)
        if before is not None or change.id in self._profiles:
            self._changed = change.position

    def _keep(self, profile: ProfileRecord) -> None:
        """Keeps a profile that is answered, now or at some moment."""
        if not self._is_wanted(profile):
            return
        assert self._profiles is not None
        period = profile.period_us()
        known = _KnownProfile(profile.subscription(), profile.version, *period)
        self._profiles[profile.id] = known
        for moment in period:
            if self._at_us < moment < NEVER_US:
                heappush(self._moments, moment)

    def _is_wanted(self, profile: ProfileRecord) -> bool:
        if profile.state != "active" or self._host not in (None, profile.host):
            return False
        if self._only and profile.id not in self._only:
            return False
        return self._labels.items() <= profile.labels.items()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Report a fault of the database as one of the setting that names it."""
        try:
            yield
        except (StoreError, ConfigError) as error:
            raise _unusable("store", error.message) from error


def place_of(wanted: SubscriptionSettings) -> SubscriptionPlace:
    """Where the subscriptions of a pipeline are."""
    if wanted.store is not None:
        return StorePlace(wanted.store, labels=wanted.labels, host=wanted.host, only=wanted.only)
    assert wanted.path is not None, "settings have one of the two"
    return FilePlace(wanted.path, wanted.language, wanted.only, wanted.values)


def _unusable(key: str, reason: str) -> ConfigError:
    return invalid_setting(f"subscriptions.{key}", reason)

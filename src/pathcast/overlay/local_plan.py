"""The local plan of a host in XML: its profiles, each answered exactly.

It is a registry (`pathcast.registry.Registry`), which does the steps of profiles, but
for those that were done to a message on the way.

Example:
    >>> profiles = XmlProfiles()
    >>> steps = ("drop //image", "rename //ol list")
    >>> profiles.add("s", DeliveryProfile("//list", "fragment", steps=steps))
    >>> profiles.answers([b"<n><ol><image/></ol></n>", b"<n><ol/></n>"], done=[0, 1])
    [{'s': (b'<list></list>',)}, {'s': (b'<list/>',)}]

Source: 001, section 5 (local plan) and 4.2.2 (what is left to do after early restructuring).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from secrets import token_hex
from typing import Final

import pyarrow as pa

from pathcast.engine import carried_mode
from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.overlay.content import DeliveryProfile, Results, Verdict
from pathcast.overlay.cutting import WHOLE, cut_entry
from pathcast.overlay.disjuncts import entries_of
from pathcast.registry import Registry, Snapshot
from pathcast.registry.steps import parse_steps

ROWS_AT_ONCE: Final = 256
"""Profiles that a registry takes with one call, during which no other thread runs."""

_MICROSECONDS: Final = pa.timestamp("us", "UTC")

Answers = dict[str, Results | Verdict]


class XmlProfiles:
    """`pathcast.overlay.content.Profiles`: the local plan, exact.

    Args:
        limits: What one message may cost.
        projection: As for `xml_content`.
        directory: Of snapshots; None: there are none.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        projection: bool = True,
        directory: Path | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._projection = projection
        self._directory = directory
        # The few messages of a batch cost twice as much on two threads.
        self._registry = Registry(self._limits, threads=1)
        self._names: dict[str, None] = {}

    @property
    def entries_by(self) -> str:
        """Implement `Profiles.entries_by`."""
        return f"{_version()} {self._projection}"

    def entries(self, profile: DeliveryProfile) -> tuple[str, ...]:
        """Implement `Profiles.entries`."""
        return _entries(profile, self._projection)

    @property
    def snapshots(self) -> XmlProfiles | None:
        """Implement `Profiles.snapshots`."""
        return None if self._directory is None else self

    def open(self, version: str, changed: Mapping[str, DeliveryProfile | None]) -> Collection[str]:
        """Implement `ProfileSnapshots.open`.

        Cost: some milliseconds, 0.2 µs a profile, and 20 µs for each that has changed.
        """
        snapshot = self._snapshot(version)
        self._registry = _changed(Registry.of(snapshot, self._limits, threads=1), changed)
        self._names = dict.fromkeys(name for name in snapshot.query_ids if name not in changed)
        self._names |= dict.fromkeys(name for name in changed if name in self._registry)
        return self._names.keys()

    def make(self, base: str, changed: Mapping[str, DeliveryProfile | None]) -> str:
        """Implement `ProfileSnapshots.make`.

        Cost: 10 µs a profile, and 20 µs for each that has changed; memory of a second registry.
        """
        for file in self._file("*").parent.glob(self._file("*").name):
            if file != self._file(base):
                file.unlink(missing_ok=True)
        registry = Registry(self._limits, threads=1)
        if base:
            registry = Registry.of(self._snapshot(base), self._limits, threads=1)
        frozen = _changed(registry, changed).freeze()
        frozen.save(file := self._file(frozen.version))
        file.chmod(0o600)
        return frozen.version

    def _file(self, version: str) -> Path:
        assert self._directory is not None
        return self._directory / f"profiles-{version}.snapshot"

    def _snapshot(self, version: str) -> Snapshot:
        file = self._file(version)
        found = Snapshot.open(file, self._limits, threads=1)
        if found.version != version:
            reason = f"it is version {found.version} of its profiles"
            raise SnapshotFormatError("snapshot.other", path=str(file), reason=reason)
        return found

    def add(self, subscription: str, profile: DeliveryProfile) -> None:
        """Implement `Profiles.add`."""
        for error in self._registry.add(_asked(profile, subscription)).errors.values():
            raise error
        self._names[subscription] = None

    def remove(self, subscription: str) -> None:
        """Implement `Profiles.remove`."""
        self._registry.remove(subscription)
        del self._names[subscription]

    def answers(
        self, bodies: Sequence[bytes], done: Sequence[int] = (), times: Sequence[int] = ()
    ) -> list[Answers]:
        """Implement `Profiles.answers`.

        A message that is refused here, whatever its root has let in, is undecided for all.
        """
        when = pa.array(times, _MICROSECONDS) if times else None
        batch = self._registry.deliver(bodies, done=done, times=when)
        results: dict[tuple[int, str], list[bytes]] = {}
        for row, name, _, result in batch.results:
            given = results.setdefault((row, name), [])
            if result is not None:
                given.append(result)
        found: list[Answers] = [{} for _ in bodies]
        for (row, name), given in results.items():
            found[row][name] = tuple(given)
        for row, name, error in batch.undecided:
            found[row][name] = Verdict(error.code, error.message)
        for row, error in batch.refusals:
            found[row] = dict.fromkeys(self._names, Verdict(error.code, error.message))
        return [one if len(one) < 2 else dict(sorted(one.items())) for one in found]


def _changed(registry: Registry, changed: Mapping[str, DeliveryProfile | None]) -> Registry:
    """A registry, after changes: id -> profile, or None of one that has left."""
    registry.remove([name for name in changed if name in registry])
    rows = [_asked(profile, name) for name, profile in changed.items() if profile is not None]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        registry.add(rows[start : start + ROWS_AT_ONCE])
    return registry


@cache
def _version() -> str:
    """Of Pathcast; where it is not installed, one that no other process has."""
    try:
        return metadata.version("pathcast")
    except metadata.PackageNotFoundError:
        return token_hex(8)


@lru_cache(maxsize=100_000)
def _entries(profile: DeliveryProfile, projection: bool) -> tuple[str, ...]:
    """Popular profiles are asked for at many hosts, and again when a broker starts.

    Cost: as `entries_of`, and that of `cut_entry`.
    """
    asked = _asked(profile)
    steps = parse_steps(asked.steps, asked.namespaces)
    return (*entries_of(asked), cut_entry(asked, steps) if projection else WHOLE)


def _asked(profile: DeliveryProfile, id: str = "") -> Subscription:
    bound, language = dict(profile.namespaces), profile.language
    deliver = carried_mode(profile.deliver)
    return Subscription(id, id, profile.query, deliver, bound, profile.steps, language)

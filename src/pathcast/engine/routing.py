"""The routing table: entries that lead to targets, asked which targets a message reaches.

An entry is a conjunction of paths and has a set of targets; a target is reached where one of its
entries holds. What leads only to targets that a message has reached is not looked at any more, and
the message is done when all are reached or no other can be.

Example:
    >>> from pathcast.engine import RoutingTable
    >>> from pathcast.model import RoutingEntry
    >>> entries = [
    ...     RoutingEntry(("/nitf/head[@n=1]", "/nitf//series"), 0b01),
    ...     RoutingEntry(("//series",), 0b10),
    ... ]
    >>> router = RoutingTable(entries, targets=2, engine="reference").router()
    >>> messages = [b"<nitf><head n='1'/><series/></nitf>", b"<series/>", b"<nitf/>", b"<nitf"]
    >>> router.route(pa.array(messages)).targets.to_pylist()
    [[0, 1], [1], [], []]

It does not change; where entries come and go, a new one is made.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from pathcast.engine.matcher import Matcher, matcher_options
from pathcast.engine.selection import select_engine
from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX, BatchStats, EngineName, RoutingEntry

TARGETS_MAX = 1 << 20
"""Targets of a table."""


@dataclass(frozen=True, slots=True)
class Routed:
    """The targets of the messages of a batch.

    Attributes:
        targets: `list<uint32>` by row, ascending; empty for a refused message, null for a missing
            one. Chunked if the input was. What has not been decided within
            `Limits.message_steps_max` counts as reached.
        errors: `pathcast.engine.results.ERROR_TYPE` by row; null where nothing was refused.
        stats: Counters of the pass; `matches` counts targets.
    """

    targets: pa.ListArray | pa.ChunkedArray
    errors: pa.StructArray | pa.ChunkedArray
    stats: BatchStats


class RoutingTable:
    """Entries that lead to targets.

    Args:
        entries: Paths in canonical text, and targets below `targets`.
        targets: How many targets there are.
        engine: "kernel" (default), "nfa" or "reference"; None asks `PATHCAST_ENGINE` first.
        limits: What one message may cost.

    Raises:
        ConfigError: An entry has no path, a path that is not in canonical text, or a target that
            is not there; or there is no engine of this name.
        KernelMissingError: The kernel is meant and not installed.

    Cost: by the kernel some microseconds a distinct path.
    """

    def __init__(
        self,
        entries: Iterable[RoutingEntry],
        targets: int,
        *,
        engine: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._engine, module = select_engine(engine)
        self.entries = tuple(entries)
        self.targets = _usable(self.entries, targets)
        self.limits = limits or Limits()
        self._backend = module.new_routing_table(self.entries, targets)

    @property
    def engine(self) -> EngineName:
        """The engine that answers."""
        return self._engine

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, about."""
        return self._backend.nbytes

    def router(
        self, *, threads: int | None = None, cache_bytes_max: int = CACHE_BYTES_MAX
    ) -> Router:
        """What routes messages.

        Args:
            threads: Threads of one batch call; None for all processors.
            cache_bytes_max: Bytes that compiled label paths may take.

        Raises:
            ConfigError: A value cannot be used.
        """
        options = matcher_options(self._engine, self.limits, threads, cache_bytes_max)
        return Router(Matcher(self._backend.matcher(options), options))

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.entries)


class Router:
    """Routes batches of messages. May be called from several threads."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    def route(self, messages: pa.Array | pa.ChunkedArray) -> Routed:
        """The targets of every message.

        Args:
            messages: As for `Matcher.match_arrow`.

        Raises:
            TypeError: `messages` is nothing of this kind.
        """
        found = self._matcher.match_arrow(messages)
        return Routed(found.matches, found.errors, found.stats)


def _usable(entries: tuple[RoutingEntry, ...], targets: int) -> int:
    if not 0 <= targets <= TARGETS_MAX:
        reason = f"{targets} is not from 0 to {TARGETS_MAX}"
        raise ConfigError("config.invalid", key="targets", reason=reason)
    for entry in entries:
        if not entry.paths:
            raise ConfigError("config.invalid", key="entries", reason="an entry has no path")
        if entry.targets < 0 or entry.targets >> targets:
            reason = f"{entry.paths[0]!r} leads to a target beyond the {targets} that there are"
            raise ConfigError("config.invalid", key="entries", reason=reason)
    return targets

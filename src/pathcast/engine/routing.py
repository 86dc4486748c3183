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
    >>> router = RoutingTable(entries, targets=2).router()
    >>> messages = [b"<nitf><head n='1'/><series/></nitf>", b"<series/>", b"<nitf/>", b"<nitf"]
    >>> list(router.route(messages).lists())
    [[0, 1], [1], [], []]

It does not change; where entries come and go, a new one is made.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from pathcast.boundary import native, native_errors
from pathcast.engine.matcher import matched, matcher_options
from pathcast.engine.messages import Messages
from pathcast.engine.results import BatchResult
from pathcast.errors import ConfigError, NotPicklableError
from pathcast.kernel.matcher import KernelMatcher
from pathcast.kernel.routing import KernelRoutingTable
from pathcast.kernel.streams import check_refusal
from pathcast.limits import Limits, StreamBounds
from pathcast.model import CACHE_BYTES_MAX, RoutingEntry

TARGETS_MAX = 1 << 20
"""Targets of a table."""


class RoutingTable:
    """Entries that lead to targets.

    Args:
        entries: Paths in canonical text, and targets below `targets`.
        targets: How many targets there are.
        limits: What one message may cost.

    Raises:
        ConfigError: An entry has no path, a path that is not in canonical text, or a target that
            is not there.
        KernelMissingError: The kernel is not installed.

    Cost: by the kernel some microseconds a distinct path.
    """

    def __init__(
        self,
        entries: Iterable[RoutingEntry],
        targets: int,
        *,
        limits: Limits | None = None,
    ) -> None:
        self.entries = tuple(entries)
        self.targets = _usable(self.entries, targets)
        self.limits = limits or Limits()
        self._backend = KernelRoutingTable(self.entries, targets)

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, about."""
        return self._backend.nbytes

    def router(
        self, *, threads: int | None = None, cache_bytes_max: int = CACHE_BYTES_MAX
    ) -> Router:
        """Make a router of messages.

        Args:
            threads: Threads of one batch call; None for all processors.
            cache_bytes_max: Bytes that compiled label paths may take.

        Raises:
            ConfigError: A value cannot be used.
        """
        options = matcher_options(self.limits, threads, cache_bytes_max)
        return Router(self._backend.matcher(options), self.limits)

    def stream(
        self, bounds: StreamBounds | None = None, *, cache_bytes_max: int = CACHE_BYTES_MAX
    ) -> RoutingStream:
        """Make a router that reads one message after another while it arrives.

        Args:
            bounds: How long a message may be. What of it has to be held is bounded by
                `Limits.message_bytes_max` and `Limits.elements_max`, as a whole message is.
            cache_bytes_max: Bytes that compiled label paths may take.

        Raises:
            ConfigError: A value cannot be used.
        """
        options = matcher_options(self.limits, 1, cache_bytes_max)
        return RoutingStream(self._backend.stream(options, bounds or StreamBounds()))

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="RoutingTable",
            instead="send its entries and the number of targets, and make a RoutingTable of them",
        )

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.entries)


class Router:
    """Routes batches of messages. May be called from several threads."""

    def __init__(self, matcher: KernelMatcher, limits: Limits) -> None:
        self._matcher = matcher
        self._limits = limits

    def route(self, messages: Messages) -> BatchResult:
        """The targets of every message, in the place of queries.

        They are ascending; empty for a refused message, null for a missing one. What has not been
        decided within `Limits.message_steps_max` counts as reached.

        Args:
            messages: Many, as for `Registry.match`.

        Raises:
            TypeError: `messages` is nothing of this kind.
        """
        found = matched(self._matcher.match, messages, self._limits, is_live=False)
        assert isinstance(found, BatchResult), "a message by itself is not many"
        return found

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="Router",
            instead="send the entries of its RoutingTable, and make a table and a router of them",
        )


class RoutingStream:
    """Routes messages as they arrive, one after another.

    A decision is final when all targets are reached, or nothing that can still come or is held
    leads to another: the message can go on its way then, while the rest of it is checked. Targets
    never go away; at the end they are those of `Router.route`.

    Memory: that of the push parser, the start tags of the open elements, and the outermost element
    whose content some path looks into that has a target left to reach.

    Example:
        >>> from pathcast.engine import RoutingTable
        >>> from pathcast.model import RoutingEntry
        >>> table = RoutingTable([RoutingEntry(("/a/b",), 0b1)], 1)
        >>> stream = table.stream()
        >>> stream.begin()
        >>> for block in (b"<a><b", b"/></a>"):
        ...     stream.feed(block)
        >>> stream.finish()
        [0]
        >>> stream.decided_at
        11

    Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1, for what is not looked at; deciding
    before the end of the message is ours.
    """

    def __init__(self, stream: native.RoutingStream) -> None:
        self._native = stream
        self._is_open = False

    def begin(self, encoding: str | None = None) -> None:
        """A message begins, whatever has become of the one before.

        Args:
            encoding: What the caller knows of its encoding; goes before mark and declaration.
        """
        with native_errors():
            self._native.begin(encoding)
        self._is_open = True

    def feed(self, block: bytes) -> None:
        """Takes in the next bytes of the message.

        Raises:
            MessageError: The message is refused, or more of it would have to be held than may be.
                So is all that is fed after it.
            ValueError: No message has begun, or it has been finished.
        """
        if not self._is_open:
            raise ValueError("no message has begun: begin comes first")
        with native_errors():
            check_refusal(self._native.feed(block))

    def finish(self) -> list[int]:
        """The message ends here; its targets, ascending.

        Raises:
            MessageError: The message is refused.
            ValueError: No message has begun, or it has been finished.
        """
        if not self._is_open:
            raise ValueError("no message has begun: begin comes first")
        with native_errors():
            check_refusal(self._native.finish())
        self._is_open = False
        return self.targets

    @property
    def targets(self) -> list[int]:
        """The targets reached so far, ascending."""
        with native_errors():
            return self._native.targets()

    @property
    def is_final(self) -> bool:
        """Whether no other target can be reached."""
        return self.decided_at is not None

    @property
    def decided_at(self) -> int | None:
        """Bytes that had arrived when the decision was final; None while it is not."""
        with native_errors():
            return self._native.decided_at()

    @property
    def memory(self) -> int:
        """Bytes of memory held for the message, about."""
        with native_errors():
            return self._native.memory()

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="RoutingStream",
            instead="send the message, and feed it to a stream of a RoutingTable where it arrives",
        )


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

"""Routing tables in the kernel: targets as the numbers of an automaton.

What leads only to targets that have been reached is not looked at any more.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast.model import MatcherOptions, RoutingEntry
    >>> table = KernelRoutingTable([RoutingEntry(("/a/b[@x=1]",), 0b1)], 1)
    >>> options = MatcherOptions(
    ...     limits=Limits(), threads=1, cache_bytes_max=1 << 20
    ... )
    >>> stream = table.stream(options, StreamBounds())
    >>> stream.feed(b"<a><b x='1'/><c>")
    >>> stream.targets(), stream.decided_at()
    ([0], 16)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pathcast.boundary import native, native_errors
from pathcast.errors import ConfigError
from pathcast.kernel.matcher import KernelMatcher
from pathcast.kernel.streams import UNBOUNDED
from pathcast.limits import StreamBounds

if TYPE_CHECKING:
    from pathcast.model import MatcherOptions, RoutingEntry

_WORD_BITS = 64


class KernelRoutingTable:
    """Entries that do not change.

    Args:
        entries: Their fields were looked at (`pathcast.engine.routing`).
        targets: How many targets there are.
        prunes: False looks at everything to the end, for comparison.

    Raises:
        ConfigError: A path is not in canonical text.
    """

    def __init__(
        self, entries: Sequence[RoutingEntry], targets: int, *, prunes: bool = True
    ) -> None:
        numbers: dict[str, int] = {}
        rows = [
            [numbers.setdefault(path, len(numbers)) for path in entry.paths] for entry in entries
        ]
        width = max(1, -(-targets // _WORD_BITS)) * 8
        masks = b"".join(entry.targets.to_bytes(width, "little") for entry in entries)
        paths = list(numbers)
        try:
            with native_errors():
                self._table = native.RoutingTable(targets, paths, rows, masks, prunes)
        except KeyError as error:
            reason = f"{paths[error.args[0]]!r} is no path in canonical text"
            raise ConfigError("config.invalid", key="entries", reason=reason) from None

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies."""
        held: int = self._table.memory()
        return held

    def matcher(self, options: MatcherOptions) -> KernelMatcher:
        """A matcher whose numbers are targets."""
        return KernelMatcher(self._table, options)

    def stream(self, options: MatcherOptions, bounds: StreamBounds) -> native.RoutingStream:
        """A router that reads one message after another as it arrives, on the lazy DFA."""
        with native_errors():
            return self._table.stream(
                options.limits,
                options.cache_bytes_max,
                bounds.message_bytes_max or UNBOUNDED,
                bounds.elements_max or UNBOUNDED,
                bounds.held_bytes_max,
            )

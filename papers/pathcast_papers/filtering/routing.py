"""The routing table of the reference engine: which paths hold, then where that leads.

Everything is looked at to the end, and targets are united afterwards: the oracle of tables that
stop when they know enough.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast.model import RoutingEntry
    >>> entries = [RoutingEntry(("/a/b", "/a/c"), 0b01), RoutingEntry(("//b",), 0b10)]
    >>> table = ReferenceRoutingTable(entries, 2)
    >>> found, _ = table.match([parse_message(b"<a><b/></a>")], Limits())
    >>> found[0].numbers
    [1]
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pathcast.errors import ConfigError, QuerySyntaxError
from pathcast.limits import Limits, StreamBounds
from pathcast.message import MessageTree
from pathcast.model import MatcherOptions, RoutingEntry
from pathcast_papers.filtering.matcher import ReferenceMatcher
from pathcast_papers.filtering.query_table import QueryTable, Satisfied
from pathcast_papers.filtering.yfilter import YFilter
from pathcast_papers.language import CompiledQuery, compile_query


class ReferenceRoutingTable:
    """Entries that do not change.

    Raises:
        ConfigError: A path is not in canonical text.
    """

    def __init__(self, entries: Sequence[RoutingEntry], targets: int) -> None:
        del targets
        numbers: dict[str, int] = {}
        self._entries = [
            (
                frozenset(numbers.setdefault(path, len(numbers)) for path in entry.paths),
                entry.targets,
            )
            for entry in entries
        ]
        self._table = QueryTable(YFilter())
        for path, number in numbers.items():
            self._table.insert(_compiled(path), number)
        self._bytes = sum(map(len, numbers))

    @property
    def nbytes(self) -> int:
        """Bytes of the texts."""
        return self._bytes

    def matcher(self, options: MatcherOptions) -> ReferenceMatcher:
        """A matcher whose numbers are targets."""
        return ReferenceMatcher(self, options.limits)

    def stream(self, options: MatcherOptions, bounds: StreamBounds) -> ReferenceRoutingStream:
        """What routes one message after another, each when it is there."""
        return ReferenceRoutingStream(self, options, bounds)

    def match(
        self, trees: Sequence[MessageTree], limits: Limits
    ) -> tuple[list[Satisfied], Sequence[str]]:
        """The targets of each message; they have no ids."""
        return [self._targets(self._table.match(tree, limits)) for tree in trees], ()

    def _targets(self, found: Satisfied) -> Satisfied:
        # What has not been decided may hold.
        holds = {*found.numbers, *found.over_budget, *found.undecided}
        reached = 0
        for paths, targets in self._entries:
            if paths <= holds:
                reached |= targets
        numbers = [at for at in range(reached.bit_length()) if reached >> at & 1]
        return found._replace(numbers=numbers, over_budget=[], undecided=[])


class ReferenceRoutingStream:
    """Gathers a message and routes it when it has ended: nothing is decided earlier.

    Beyond `Limits.message_bytes_max` a message is refused, whatever `bounds` would allow.
    """

    def __init__(
        self, table: ReferenceRoutingTable, options: MatcherOptions, bounds: StreamBounds
    ) -> None:
        self._matcher = table.matcher(options)
        self._bytes_max = bounds.message_bytes_max or options.limits.message_bytes_max
        self.begin(None)

    def begin(self, encoding: str | None) -> None:
        """A message begins, whatever has become of the one before."""
        self._encoding = encoding
        self._message = bytearray()
        self._targets: list[int] = []
        self._decided_at: int | None = None

    def feed(self, block: bytes) -> None:
        """Takes in the next bytes of the message."""
        # One byte too much is enough for the door to refuse it.
        self._message += block[: self._bytes_max + 1 - len(self._message)]

    def finish(self) -> None:
        """The message ends here.

        Raises:
            MessageError: It is refused.
        """
        message = pa.array([bytes(self._message)], pa.binary())
        answer = self._matcher.match(message, encoding=self._encoding)
        for _, error in answer.refusals:
            raise error
        self._targets = answer.matches[0].as_py()
        self._decided_at = len(self._message)

    def targets(self) -> list[int]:
        """The targets of the message, once it has ended."""
        return self._targets

    def decided_at(self) -> int | None:
        """Its length, once it has ended."""
        return self._decided_at

    def memory(self) -> int:
        """Bytes of the message."""
        return len(self._message)


def _compiled(path: str) -> CompiledQuery:
    try:
        compiled = compile_query(path, is_canonical=True)
    except QuerySyntaxError:
        compiled = None
    if compiled is None or compiled.path is None or compiled.text != path:
        reason = f"{path!r} is no path in canonical text"
        raise ConfigError("config.invalid", key="entries", reason=reason)
    return compiled

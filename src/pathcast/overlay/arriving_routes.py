"""Decide which neighbours want a message while it arrives, by a broker's routing tables.

Each table reads the message on its own. What they hold is that of the moment when the message
began: where entries come and go meanwhile, they still say who wants it and no more who does not. An
entry that is gone sends one that nobody wants any more, which is allowed, and what entries are new
say is found when the message is here.

Example:
    >>> from pathcast.model import RoutingEntry
    >>> table = RoutingTable([RoutingEntry(("/order//to",), 0b1)], 1)
    >>> decisions = MessageDecisions([Streams(table)], {0: "east"}, 22, lambda: True)
    >>> decisions.feed(b"<order><to/>")
    >>> decisions.feed(b"  </order>")
    >>> decisions.wanted, decisions.decided
    (frozenset({'east'}), frozenset({'east'}))

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1; deciding before the end is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pathcast.engine import RoutingStream, RoutingTable
from pathcast.errors import MessageError
from pathcast.limits import StreamBounds


class Streams:
    """The streams of a routing table, each for one message at a time.

    Args:
        table: The table.
    """

    def __init__(self, table: RoutingTable) -> None:
        self._table = table
        self._bounds = StreamBounds(
            message_bytes_max=table.limits.message_bytes_max,
            elements_max=table.limits.elements_max,
        )
        self._idle: list[RoutingStream] = []

    def take(self) -> RoutingStream:
        """One that reads no message, as far as there is one: it knows what it read before."""
        return self._idle.pop() if self._idle else self._table.stream(self._bounds)

    def give_back(self, stream: RoutingStream) -> None:
        """A stream that has read its message can read another."""
        self._idle.append(stream)


class MessageDecisions:
    """`pathcast.overlay.content.RoutingDecision` of one message.

    Args:
        tables: All that may lead to somebody.
        names: Target -> who that is.
        size: Bytes of the message.
        is_current: Whether the tables are still all that somebody asks for.
    """

    def __init__(
        self,
        tables: Sequence[Streams],
        names: Mapping[int, str],
        size: int,
        is_current: Callable[[], bool],
    ) -> None:
        self._reading = [(table, table.take()) for table in tables]
        self._names = names
        self._left = size
        self._is_current = is_current
        self._is_message = True
        self.wanted: frozenset[str] = frozenset()
        for _, stream in self._reading:
            stream.begin()

    def feed(self, part: bytes) -> None:
        """Implement `Decisions.feed`; a block that comes after the last decision is not read.

        Cost: for each table that of the push parser, and of the paths that may still lead to
            somebody.
        """
        self._left -= len(part)
        try:
            still = [pair for pair in self._reading if not self._read(*pair, part)]
        except MessageError:
            # Why it is refused, and what that means, is found when all of it is here.
            self._is_message, still = False, []
        for table, stream in self._reading:
            if (table, stream) not in still:
                table.give_back(stream)
        self._reading = still

    def _read(self, table: Streams, stream: RoutingStream, part: bytes) -> bool:
        """Reads some more with one table. Returns whether it has nothing more to say."""
        stream.feed(part)
        targets = stream.targets if self._left else stream.finish()
        self.wanted |= {self._names[target] for target in targets if target in self._names}
        return stream.is_final

    @property
    def decided(self) -> frozenset[str] | None:
        """Implement `Decisions.decided`."""
        is_final = self._is_message and not self._reading
        return self.wanted if is_final and self._is_current() else None

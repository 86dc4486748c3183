"""Who wants a message, decided by a broker's table while the message arrives.

The entries of a table are a `pathcast.engine.RoutingTable`, whose targets are those who ask, and
which does not change: where entries come and go it is made anew, which costs. Until then the one
of before goes on deciding, who wants a message and not who does not: an entry that is gone sends
one that nobody wants any more, which is allowed, and what entries are new say is found when the
message is here. It is made when messages that arrived under an old one have paid for it.

Example:
    >>> entries = EntriesByOrigin()
    >>> _ = entries.add("east", "/order and //to[.='Bern']"), entries.add("west", "//recall")
    >>> routes = ArrivingRoutes(entries, engine="kernel")  # doctest: +SKIP
    >>> decisions = routes.decisions(2_000_000)            # doctest: +SKIP
    >>> decisions.feed(b"<order><to>Bern</to>")            # doctest: +SKIP
    >>> decisions.wanted                                   # doctest: +SKIP
    frozenset({'east'})

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1; deciding before the end is ours.
"""

from __future__ import annotations

from typing import Final

from pathcast.engine import RoutingStream, RoutingTable
from pathcast.errors import MessageError
from pathcast.limits import Limits, StreamBounds
from pathcast.model import RoutingEntry
from pathcast.overlay.disjuncts import paths_of
from pathcast.overlay.origins import EntriesByOrigin

__all__ = ["ArrivingRoutes", "MessageDecisions"]

BUILD: Final = 5.5
"""Microseconds that a table costs for each entry; measured at 100,000 entries."""

EACH_BYTE: Final = 0.0045
"""Microseconds that a message costs for each byte when it is read once more at its end."""


class ArrivingRoutes:
    """The table as it was when it was last made.

    Args:
        entries: Of the table; read when it is made.
        engine: As for `RoutingTable`. The reference engine decides at the end of a message.
        limits: What one message may cost.
    """

    def __init__(
        self, entries: EntriesByOrigin, engine: str | None = None, limits: Limits | None = None
    ) -> None:
        self._entries = entries
        self._engine = engine
        self._limits = limits or Limits()
        self._table: RoutingTable | None = None
        self._origins: tuple[str, ...] = ()
        self._idle: list[RoutingStream] = []
        self._paid = 0.0
        self.version = 0
        """Grows with each change of the entries."""
        self._made_of = -1

    def changed(self) -> None:
        """The entries are others now."""
        self.version += 1

    def decisions(self, size: int) -> MessageDecisions | None:
        """For a message that is arriving; None while there is no table, not even an old one.

        Args:
            size: Its bytes.

        Cost: now and then that of a table (`BUILD`).
        """
        if self._made_of != self.version:
            self._paid += size * EACH_BYTE
            if self._paid >= BUILD * len(self._entries):
                self._make()
        if self._table is None:
            return None
        stream = self._idle.pop() if self._idle else self._table.stream(self._bounds)
        return MessageDecisions(self, stream, self._origins, self._made_of, size)

    @property
    def _bounds(self) -> StreamBounds:
        return StreamBounds(
            message_bytes_max=self._limits.message_bytes_max,
            elements_max=self._limits.elements_max,
        )

    def _make(self) -> None:
        numbers: dict[str, int] = {}
        made = [
            RoutingEntry(
                paths_of(entry),
                sum(1 << numbers.setdefault(origin, len(numbers)) for origin in origins),
            )
            for entry, origins in self._entries.items()
        ]
        self._table = RoutingTable(made, len(numbers), engine=self._engine, limits=self._limits)
        self._origins = tuple(numbers)
        self._made_of, self._paid = self.version, 0.0
        self._idle.clear()

    def give_back(self, stream: RoutingStream, made_of: int) -> None:
        """A stream that has read its message can read another."""
        if made_of == self._made_of:
            self._idle.append(stream)


class MessageDecisions:
    """`pathcast.overlay.content.Decisions` of one message."""

    def __init__(
        self,
        routes: ArrivingRoutes,
        stream: RoutingStream,
        origins: tuple[str, ...],
        made_of: int,
        size: int,
    ) -> None:
        self._routes = routes
        self._stream: RoutingStream | None = stream
        self._origins = origins
        self._made_of = made_of
        self._left = size
        self._is_final = False
        self.wanted: frozenset[str] = frozenset()
        stream.begin()

    def feed(self, part: bytes) -> None:
        """As `Decisions.feed`; what comes after the last decision is not read.

        Cost: that of the push parser, and of the paths that may still lead to somebody.
        """
        stream = self._stream
        if stream is None:
            return
        self._left -= len(part)
        try:
            stream.feed(part)
            targets = stream.targets if self._left else stream.finish()
            self._is_final = stream.is_final
        except MessageError:
            # Why it is refused, and what that means, is found when all of it is here.
            self._end(stream)
            return
        self.wanted = frozenset(self._origins[at] for at in targets)
        if self._is_final:
            self._end(stream)

    def _end(self, stream: RoutingStream) -> None:
        self._stream = None
        self._routes.give_back(stream, self._made_of)

    @property
    def decided(self) -> frozenset[str] | None:
        """As `Decisions.decided`."""
        is_now = self._made_of == self._routes.version
        return self.wanted if self._is_final and is_now else None

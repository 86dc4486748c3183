"""How long a root keeps messages for members that have not had them.

A root keeps a message until every member has had it, and no longer than `retention_seconds`. Its
log has bounds as well, in messages and bytes. When it is full, the root waits for members that come
forward, by refusing publishers; it does not wait for a member that has had nothing new for
`lag_seconds`. For such a member the oldest messages are given up, as many as make room, and when it
follows again it is told which positions are not kept any more (`pathcast.overlay.streams`).

So a member that is slow slows publishers down and loses nothing; one that is away, or stands still,
stops nobody.

Example:
    >>> from pathcast.overlay.broker_settings import ProtocolSettings
    >>> retention = Retention(ProtocolSettings(lag_seconds=30.0))
    >>> retention.watch({"a": 7, "b": 3}, end=7, now=100.0)
    >>> retention.watch({"a": 7, "b": 3}, end=7, now=131.0)
    >>> retention.lags({"a": 7, "b": 3}, start=4, end=7)
    [Lag(member='b', behind=4, missed=1, seconds=31.0, is_waited_for=False)]

It has no clock: it is told the time at ticks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.messages import StreamMessage

ROOM_SHARE: Final = 16
"""A full log is emptied by one part in so many of its bounds: the fewer parts, the more rarely."""


class Lag(NamedTuple):
    """A member that has not had all that is in a log.

    Attributes:
        member: Its name.
        behind: Positions that it has not had.
        missed: Those of them that are not kept any more.
        seconds: For so long it has had nothing new.
        is_waited_for: Whether a full log has publishers wait for it.
    """

    member: str
    behind: int
    missed: int
    seconds: float
    is_waited_for: bool


class Retention:
    """The progress of a root's members through its log.

    Args:
        settings: Bounds of the log.
    """

    def __init__(self, settings: ProtocolSettings) -> None:
        self._settings = settings
        self._now = 0.0
        # Member -> the position that it had, and when it was seen there first.
        self._seen: dict[str, tuple[int, float]] = {}

    def watch(self, positions: Mapping[str, int], end: int, now: float) -> None:
        """Looks where members are.

        Args:
            positions: Member -> position up to which it has had everything; of all members. In
                another stream they begin anew, which is no standstill.
            end: Last position of the stream. Who is there has nothing to come forward to.
            now: The time, seconds.
        """
        self._now = now
        self._seen = {
            name: self._seen[name]
            if position < end and position == self._seen.get(name, (-1, 0.0))[0]
            else (position, now)
            for name, position in positions.items()
        }

    def is_stalled(self, member: str) -> bool:
        """Whether it has had nothing new for `lag_seconds`, though there is something."""
        return self._seconds(member) > self._settings.lag_seconds

    def _seconds(self, member: str) -> float:
        return self._now - self._seen.get(member, (0, self._now))[1]

    def lags(self, positions: Mapping[str, int], start: int, end: int) -> list[Lag]:
        """Members that have not had everything, those that are furthest behind first.

        Args:
            positions: As of `watch`.
            start: Position that the log begins after.
            end: Last position of the stream.
        """
        lags = [
            Lag(
                name,
                end - position,
                max(0, start - position),
                self._seconds(name),
                not self.is_stalled(name),
            )
            for name, position in positions.items()
            if position < end
        ]
        return sorted(lags, key=lambda lag: (-lag.behind, lag.member))

    def has_room(self, messages: int, size: int) -> bool:
        """Whether a log may hold so many messages of so many bytes."""
        settings = self._settings
        return messages <= settings.log_messages_max and size <= settings.log_bytes_max

    def room_at(
        self,
        held: Sequence[StreamMessage],
        held_bytes: int,
        fresh: Sequence[int],
        waited_for: int,
    ) -> int | None:
        """Position up to which a full log has to be given up, so that messages find room.

        Args:
            held: The log.
            held_bytes: Bytes of its messages.
            fresh: Bytes of each message that is to come.
            waited_for: Position up to which all have had everything that are waited for.

        Returns:
            The position; None if giving up all that may be given up makes no room.
        """
        settings = self._settings
        messages, size = len(held) + len(fresh), held_bytes + sum(fresh)
        messages_aim = settings.log_messages_max - settings.log_messages_max // ROOM_SHARE
        bytes_aim = settings.log_bytes_max - settings.log_bytes_max // ROOM_SHARE
        position = None
        for one in takewhile(lambda one: one.position <= waited_for, held):
            messages, size = messages - 1, size - len(one.body)
            if self.has_room(messages, size):
                position = one.position
                if messages <= messages_aim and size <= bytes_aim:
                    break
        return position

"""How fast a link is, from when what was sent over it is acknowledged.

A frame is acknowledged after the link's delay, and after all that was under way before it and
itself have gone over the link: seconds = delay + bytes under way / bandwidth. Delay and bandwidth
are the line that fits what was seen best, older frames counting less. A frame that was sent
again tells nothing, since it cannot be known which of the two was acknowledged.

Example:
    >>> speed, now = LinkSpeed(), 0.0
    >>> for number in range(1, 60):
    ...     size = 1000 * (number % 7 + 1)
    ...     speed.sent(number, size, now)
    ...     now += 0.02 + size / 1e5
    ...     speed.acknowledged(number, now)
    ...     now += 1.0
    >>> round(speed.bandwidth), round(speed.delay, 3)
    (100000, 0.02)

Source: linear regression; that resent frames are left out is Karn's algorithm.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LinkSpeed"]

FORGETTING: Final = 0.98
"""Weight of a frame after another one has come."""

FRAMES_MIN: Final = 16
"""Frames before anything is said, and frames under way that are remembered, times 16."""


class LinkSpeed:
    """See the module."""

    def __init__(self) -> None:
        self._under_way: dict[int, tuple[float, int, int]] = {}
        self._bytes = 0
        self._count = 0
        self._weight = self._x = self._y = self._xx = self._xy = 0.0

    def restart(self) -> None:
        """A new session: numbers begin anew, and what was under way is not acknowledged."""
        self._under_way.clear()
        self._bytes = 0

    def sent(self, number: int, size: int, now: float) -> None:
        """A frame is sent, or sent again."""
        if number in self._under_way:
            _, _, before = self._under_way[number]
            self._under_way[number] = (-1.0, 0, before)
        elif len(self._under_way) < 16 * FRAMES_MIN:
            self._bytes += size
            self._under_way[number] = (now, self._bytes, size)

    def acknowledged(self, number: int, now: float) -> None:
        """All frames up to this one have come."""
        due = [each for each in self._under_way if each <= number]
        for each in due:
            at, ahead, size = self._under_way.pop(each)
            self._bytes -= size
            # Of those that are acknowledged together the last one was waited for.
            if each == due[-1] and at >= 0.0:
                self._take(float(ahead), now - at)

    def _take(self, x: float, y: float) -> None:
        self._count += 1
        self._weight = self._weight * FORGETTING + 1.0
        self._x = self._x * FORGETTING + x
        self._y = self._y * FORGETTING + y
        self._xx = self._xx * FORGETTING + x * x
        self._xy = self._xy * FORGETTING + x * y

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second; None while that cannot be said: frames were few, or all of one size.

        Where more bytes did not take longer, it is infinite.
        """
        spread = self._weight * self._xx - self._x * self._x
        if self._count < FRAMES_MIN or spread <= 1e-9 * self._weight * self._xx:
            return None
        slope = (self._weight * self._xy - self._x * self._y) / spread
        return 1.0 / slope if slope > 0.0 else float("inf")

    @property
    def delay(self) -> float | None:
        """Seconds that a frame without bytes takes to be acknowledged; None as for `bandwidth`."""
        bandwidth = self.bandwidth
        if bandwidth is None:
            return None
        return (self._y - self._x / bandwidth) / self._weight

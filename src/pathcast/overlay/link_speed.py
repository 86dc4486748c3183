"""How fast a link is, from when what was sent over it is acknowledged.

A frame is acknowledged after the link's delay, and after all that was under way before it and
itself have gone over the link: seconds = delay + bytes under way / bandwidth, or more, where the
other end was busy or waited for its disk. So delay and bandwidth are the line that lies below all
that was seen and is nearest to it: an edge of the lower convex hull. A frame that is sent again
counts from when it was sent first: if that was lost, it lies above the line, as if the other end
had been busy.

Example:
    >>> speed, now = LinkSpeed(), 0.0
    >>> for number in range(1, 60):
    ...     size, busy = 1000 * (number % 7 + 1), 0.3 * (number % 3)
    ...     speed.sent(number, size, now)
    ...     now += 0.02 + size / 1e5 + busy
    ...     speed.acknowledged(number, now)
    >>> round(speed.bandwidth), round(speed.delay, 3)
    (100000, 0.02)

Source: the line below all delays is that of Moon, Skelly and Towsley (INFOCOM 1999) for the skew of
clocks.
"""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["LinkSpeed"]

WINDOW: Final = 256
"""Frames that are looked at, the last ones; and frames under way that are remembered."""

FRAMES_MIN: Final = 16
"""Frames before anything is said, and frames after which the line is drawn anew."""

SPREAD_MIN: Final = 0.25
"""Share of the most bytes under way by which the fewest have to be less."""


class LinkSpeed:
    """See the module."""

    def __init__(self) -> None:
        self._under_way: dict[int, tuple[float, int, int]] = {}
        self._bytes = 0
        self._seen: deque[tuple[float, float]] = deque(maxlen=WINDOW)
        self._fresh = 0
        self._line: tuple[float, float] | None = None

    def restart(self) -> None:
        """A new session: numbers begin anew, and what was under way is not acknowledged."""
        self._under_way.clear()
        self._bytes = 0

    def sent(self, number: int, size: int, now: float) -> None:
        """A frame is sent, or sent again."""
        if number in self._under_way:
            self._bytes += size
            at, ahead, before = self._under_way[number]
            self._under_way[number] = (at, ahead, before + size)
        elif len(self._under_way) < WINDOW:
            self._bytes += size
            self._under_way[number] = (now, self._bytes, size)

    def acknowledged(self, number: int, now: float) -> None:
        """All frames up to this one have come."""
        due = [each for each in self._under_way if each <= number]
        for each in due:
            at, ahead, size = self._under_way.pop(each)
            self._bytes -= size
            # Of those that are acknowledged together the last one was waited for.
            if each == due[-1]:
                self._seen.append((float(ahead), now - at))
                self._fresh += 1
        if self._fresh >= FRAMES_MIN:
            self._fresh = 0
            self._line = _line_below(list(self._seen))

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second; None while that cannot be said: frames were few, or all of one size.

        Where more bytes did not take longer, it is infinite.
        """
        if self._line is None:
            return None
        slope, _ = self._line
        return 1.0 / slope if slope > 0.0 else float("inf")

    @property
    def delay(self) -> float | None:
        """Seconds that a frame without bytes takes to be acknowledged; None as for `bandwidth`."""
        return None if self._line is None else self._line[1]


def _line_below(seen: list[tuple[float, float]]) -> tuple[float, float] | None:
    """Slope, and value at 0, of the line below all points whose distances add up to the least.

    It is the edge of the lower convex hull under the mean. None where points are above each other.
    """
    hull: list[tuple[float, float]] = []
    for x, y in sorted(seen):
        if hull and hull[-1][0] == x:
            continue  # above the one that is there
        while len(hull) > 1 and _turns_right(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    if hull[-1][0] - hull[0][0] <= SPREAD_MIN * hull[-1][0]:
        return None
    mean = sum(x for x, _ in seen) / len(seen)
    after = next(place for place, (x, _) in enumerate(hull) if x >= mean)
    (x1, y1), (x2, y2) = hull[max(after - 1, 0)], hull[max(after, 1)]
    slope = (y2 - y1) / (x2 - x1)
    return slope, y1 - slope * x1


def _turns_right(
    one: tuple[float, float], other: tuple[float, float], next: tuple[float, float]
) -> bool:
    """Whether the middle point does not lie below the line through the others."""
    return (other[1] - one[1]) * (next[0] - one[0]) >= (next[1] - one[1]) * (other[0] - one[0])

"""Measured costs of links: round trips in milliseconds, with hysteresis.

A cost is replaced if for `STEADY_SECONDS` on end every round trip was more than `FACTOR` times
greater than it, or every one less; the least of them is the cost then. So neither a burst of
traffic nor a link that stands still for a moment changes a tree, and a link that gets dear or cheap
for good changes it once. Round trips are not smoothed: a smoothed one tells of a single great one
for long.

Example:
    >>> cost = MeasuredCost()
    >>> cost.see(0.004, 0.0), cost.see(0.007, 1.0), cost.see(0.007, 99.0)  # less than twice as dear
    (4, 4, 4)
    >>> cost.see(0.020, 100.0), cost.see(0.030, 129.0), cost.see(0.030, 130.0)
    (4, 4, 20)
    >>> cost.see(0.004, 131.0), cost.see(0.020, 150.0), cost.see(0.004, 162.0)  # not on end
    (20, 20, 20)

Source: 001, 3.2, leaves the costs of links open.
"""

from __future__ import annotations

from math import ceil
from typing import Final

FACTOR: Final = 2.0
"""A cost that is between the announced one divided by this and multiplied by this is no news."""

STEADY_SECONDS: Final = 30.0
"""So long another cost has to be measured before it is announced."""

PROBE_SECONDS: Final = 5.0
"""How often something is sent over a link that is measured: outside the tree nothing else is."""

COST_MAX: Final = 1_000_000


class MeasuredCost:
    """The cost of one link; 1 until something is measured.

    Attributes:
        cost: As it is announced.
    """

    def __init__(self) -> None:
        self.cost = 1
        self._is_measured = False
        # Since when all are dearer, or all cheaper, and the least of them.
        self._others: tuple[float, int] | None = None
        self._probe_due = float("-inf")

    def is_probe_due(self, now: float) -> bool:
        """Whether something is to be sent over the link now."""
        if now < self._probe_due:
            return False
        self._probe_due = now + PROBE_SECONDS
        return True

    def begin_anew(self) -> None:
        """Nothing can be measured now: what was seen before and after that is not on end."""
        self._others = None

    def see(self, round_trip: float, now: float) -> int:
        """The cost to announce, after a round trip of so many seconds."""
        found = min(max(ceil(round_trip * 1000), 1), COST_MAX)
        if not self._is_measured:
            self._is_measured, self.cost = True, found
        elif self.cost <= FACTOR * found and found <= FACTOR * self.cost:
            self._others = None
        elif self._others is None or (found > self.cost) != (self._others[1] > self.cost):
            self._others = now, found
        else:
            since, least = self._others
            self._others = since, min(least, found)
            if now - since >= STEADY_SECONDS:
                self.cost, self._others = self._others[1], None
        return self.cost

"""How full an inbox may become, and what is known of what it did not take.

A full inbox keeps what it has and takes nothing more, until a quarter of it is free again. What it
does not take has a position all the same, and the id by which a double is known, but no body. So
positions have no holes, and a position behind the cursor without a body *is* what says that a
delivery was dropped: there is no second record of it that a crash could part from the first.
Whoever reads the inbox is told of a `Gap` in its place.

Example:
    >>> bounds = InboxBounds(deliveries_max=4)
    >>> state = InboxState()
    >>> taken, state = state.with_deliveries([10, 10, 10, 10, 10], bounds)
    >>> taken, state.last, state.waiting, state.dropped, state.is_full
    (4, 5, 4, 1, True)
    >>> state = state.with_acknowledgement(1, 1, 10)
    >>> taken, state = state.with_deliveries([10], bounds)  # three quarters are held
    >>> taken, state.waiting, state.dropped, state.is_full
    (1, 4, 1, False)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

DELIVERIES_MAX: Final = 1_000_000
BYTES_MAX: Final = 1 << 30
DEAD_LETTERS_MAX: Final = 10_000

FREE_SHARE: Final = 0.25
"""Part of an inbox that has to be free before a full one takes anything again: gaps are few and
large rather than many and small, and small deliveries do not get in where large ones do not."""


@dataclass(frozen=True, slots=True)
class InboxBounds:
    """Of each subscriber's inbox.

    Attributes:
        deliveries_max: Deliveries that wait.
        bytes_max: Bytes of their bodies. One delivery fits into an empty inbox, whatever it has.
        dead_letters_max: Dead letters of its webhook; their bytes are bounded as those of the
            inbox.
    """

    deliveries_max: int = DELIVERIES_MAX
    bytes_max: int = BYTES_MAX
    dead_letters_max: int = DEAD_LETTERS_MAX


DEFAULT: Final = InboxBounds()


class Gap(NamedTuple):
    """Deliveries that a full inbox did not take, in the place of them.

    Attributes:
        first: Position of the first one.
        last: ... and of the last one.
    """

    first: int
    last: int


class InboxState(NamedTuple):
    """The size of an inbox: deliveries, bytes and positions.

    Attributes:
        last: Position of the last delivery that came, taken or not.
        cursor: Position up to which everything is acknowledged.
        waiting: Deliveries that wait.
        bytes: Of their bodies.
        is_full: The last delivery that came was not taken.
    """

    last: int = 0
    cursor: int = 0
    waiting: int = 0
    bytes: int = 0
    is_full: bool = False

    @property
    def dropped(self) -> int:
        """Deliveries that were not taken, and that the subscriber has not acknowledged yet."""
        return self.last - self.cursor - self.waiting

    def with_deliveries(self, sizes: Sequence[int], bounds: InboxBounds) -> tuple[int, InboxState]:
        """How many of these are taken, the first ones, and the inbox with all of them."""
        count, held, taken = self.waiting, self.bytes, 0
        for size in sizes if self._takes_any(bounds) else ():
            if count and (count >= bounds.deliveries_max or held + size > bounds.bytes_max):
                break
            count, held, taken = count + 1, held + size, taken + 1
        last = self.last + len(sizes)
        return taken, InboxState(last, self.cursor, count, held, taken < len(sizes))

    def _takes_any(self, bounds: InboxBounds) -> bool:
        """Whether anything is taken; see `FREE_SHARE`."""
        most = 1.0 - FREE_SHARE
        return not self.is_full or (
            self.waiting <= most * bounds.deliveries_max and self.bytes <= most * bounds.bytes_max
        )

    def with_acknowledgement(self, cursor: int, count: int, size: int) -> InboxState:
        """With a cursor that has moved on, over so many deliveries that waited, and bytes."""
        is_full = self.is_full and cursor < self.last
        return InboxState(self.last, cursor, self.waiting - count, self.bytes - size, is_full)

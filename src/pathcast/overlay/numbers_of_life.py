"""Numbers that no other life of a node gives: of sessions, and of versions of subscriptions.

A node is begun with an incarnation, 53 bits that no life of it had before. Counting from there
needs nothing on a disk, so a disk that is lost, or that an operator has put back from a copy, does
not make a node give a number again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pathcast.overlay.messages import NUMBER_MAX


@dataclass(slots=True)
class NumbersOfLife(Iterator[int]):
    """Numbers from 1 to `NUMBER_MAX`, growing by one.

    Two lives that are drawn at random and give a million numbers each have one in common with a
    probability of 2 in 10**10.

    Args:
        last: The incarnation of this life, at least 0; then the number that was given last.

    Example:
        >>> numbers = NumbersOfLife(41)
        >>> next(numbers), next(numbers)
        (42, 43)
    """

    last: int

    def __next__(self) -> int:
        self.last = self.last % (NUMBER_MAX - 1) + 1
        return self.last

"""A memory of what came of late, bounded by time and by number.

A peer has to remember what it has told, taken and seen, so that nothing is done again because a
message comes late or twice. That is over when nobody can send it any more. So its memory does not
grow with what has ever come.

Example:
    >>> seconds = [0.0]
    >>> recent = Recent[str, int](60.0, 1_000, now=lambda: seconds[0])
    >>> recent.put("first", 1)
    >>> seconds[0] = 61.0
    >>> recent.put("second", 2)
    >>> len(recent), recent.get("first"), recent.get("second")
    (1, None, 2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Values by keys; the oldest are forgotten first.

    Args:
        seconds: How long one is remembered at least, while there is room.
        count: How many there is room for.
        now: The time, in seconds.
    """

    def __init__(self, seconds: float, count: int, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._count = count
        self._now = now
        self._held: dict[Key, tuple[float, Value]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: Key) -> bool:
        return key in self._held

    def get(self, key: Key) -> Value | None:
        """The value that is remembered of a key."""
        found = self._held.get(key)
        return None if found is None else found[1]

    def put(self, key: Key, value: Value) -> None:
        """Remember a value, and forget what is too old, or has no room."""
        now = self._now()
        self._held.pop(key, None)
        while self._held:
            first = next(iter(self._held))
            is_old = self._held[first][0] < now - self._seconds
            if not is_old and len(self._held) < self._count:
                break
            del self._held[first]
        self._held[key] = now, value

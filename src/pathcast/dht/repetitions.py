"""Which questions have been taken before, as long as there is room to remember them.

Without this one that is put again on each of its ways, because answers are late, would be done so
many times the number of its ways.

Example:
    >>> repetitions = Repetitions()
    >>> repetitions.is_one("index", "r1", 3), repetitions.is_one("index", "r1", 3)
    (False, True)
"""

from __future__ import annotations

__all__ = ["Repetitions"]

_TAKEN_MAX = 20_000


class Repetitions:
    """The latest questions of one peer."""

    def __init__(self) -> None:
        self._taken: dict[tuple[object, ...], None] = {}

    def is_one(self, *question: object) -> bool:
        """Whether a question has been taken before; it has been from now on."""
        if question in self._taken:
            return True
        if len(self._taken) >= _TAKEN_MAX:
            del self._taken[next(iter(self._taken))]
        self._taken[question] = None
        return False

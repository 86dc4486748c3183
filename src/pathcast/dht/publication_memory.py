"""A peer's memory of recent publications, bounded by time and by room.

Example:
    >>> seconds = [0.0]
    >>> memory = PublicationMemory(now=lambda: seconds[0])
    >>> memory.of("first", "publisher").body = b"<a/>"
    >>> seconds[0] = 700.0
    >>> _ = memory.of("second", "publisher")
    >>> len(memory), memory.of("first", "publisher").body
    (1, None)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pathcast.dht.piece_messages import Problem, Ran, Visit

__all__ = ["PublicationMemory", "RememberedPublication"]

_PUBLICATIONS_MAX = 4096
_AGE_SECONDS = 600.0
"""No visit of a publication is asked for so long after its first."""

Settled = Callable[[Problem | None], None]


@dataclass(slots=True)
class RememberedPublication:
    """One publication at one peer.

    Attributes:
        name: Of the publication.
        publisher: The peer it comes from.
        began: When it was first seen, in seconds.
        runs: Where pieces were entered here, and what came of it; None until that is known.
        body: The message, once it was needed.
        waiting_for_body: Who needs it.
        settled: By registration, what was decided and told: None, or why not.
        settling: The same, where that is under way: who waits for it.
    """

    name: str
    publisher: str
    began: float
    runs: dict[Visit, Ran | None] = field(default_factory=dict)
    body: bytes | None = None
    waiting_for_body: list[Callable[[bytes | None], None]] = field(default_factory=list)
    settled: dict[str, Problem | None] = field(default_factory=dict)
    settling: dict[str, list[Settled]] = field(default_factory=dict)


class PublicationMemory:
    """The latest publications that a peer has seen.

    Args:
        now: The time, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._publications: dict[tuple[str, str], RememberedPublication] = {}

    def __len__(self) -> int:
        return len(self._publications)

    def of(self, name: str, publisher: str) -> RememberedPublication:
        """A publication, new or remembered."""
        found = self._publications.get((name, publisher))
        if found is None:
            self._forget_old()
            found = RememberedPublication(name, publisher, self._now())
            self._publications[name, publisher] = found
        return found

    def _forget_old(self) -> None:
        """Make room for one more; the oldest come first."""
        since = self._now() - _AGE_SECONDS
        while self._publications:
            first = next(iter(self._publications))
            is_old = self._publications[first].began < since
            if not is_old and len(self._publications) < _PUBLICATIONS_MAX:
                return
            del self._publications[first]

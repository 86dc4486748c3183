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
from pathcast.dht.recent import Recent

_PUBLICATIONS_MAX = 4096
AGE_SECONDS = 600.0
"""No visit of a publication is asked for so long after its first."""

Settled = Callable[[Problem | None], None]


@dataclass(slots=True)
class RememberedPublication:
    """One publication at one peer.

    Attributes:
        name: Of the publication.
        publisher: The peer it comes from.
        runs: Where pieces were entered here, and what came of it; None until that is known.
        body: The message, while something is decided or told.
        waiting_for_body: Who needs it.
        settled: By registration, what was decided and told: None, or why not.
        settling: The same, where that is under way: who waits for it.
    """

    name: str
    publisher: str
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
        self._publications = Recent[tuple[str, str], RememberedPublication](
            AGE_SECONDS, _PUBLICATIONS_MAX, now
        )

    def __len__(self) -> int:
        return len(self._publications)

    def of(self, name: str, publisher: str) -> RememberedPublication:
        """A publication, new or remembered."""
        found = self._publications.get((name, publisher))
        if found is None:
            found = RememberedPublication(name, publisher)
            self._publications.put((name, publisher), found)
        return found

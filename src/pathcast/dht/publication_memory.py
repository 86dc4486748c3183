"""What a peer remembers of publications that have come by, as long as there is room for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pathcast.dht.state_messages import DoneVisit, Problem, Ran, Visit

__all__ = ["Publication", "PublicationMemory"]

_PUBLICATIONS_MAX = 4096

Settled = Callable[[Problem | None], None]


@dataclass(slots=True)
class Publication:
    """One publication at one peer.

    Attributes:
        name: Of the publication.
        publisher: The peer it comes from.
        visits: Those that were begun here; None until they are done.
        runs: Where pieces were entered here, and what came of it; None until that is known.
        reached: States of this peer that it has reached.
        reports: Done, and not yet told to the publisher.
        body: The message, once it was needed.
        waiting_for_body: Who needs it.
        settled: By subscriber and subscription, what was decided and told: None, or why not.
        settling: The same, where that is under way: who waits for it.
    """

    name: str
    publisher: str
    visits: dict[Visit, DoneVisit | None] = field(default_factory=dict)
    runs: dict[Visit, Ran | None] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    reports: list[DoneVisit] = field(default_factory=list)
    body: bytes | None = None
    waiting_for_body: list[Callable[[bytes | None], None]] = field(default_factory=list)
    settled: dict[tuple[str, str], Problem | None] = field(default_factory=dict)
    settling: dict[tuple[str, str], list[Settled]] = field(default_factory=dict)


class PublicationMemory:
    """The latest publications that a peer has seen."""

    def __init__(self) -> None:
        self._publications: dict[tuple[str, str], Publication] = {}

    def of(self, name: str, publisher: str) -> Publication:
        """A publication, new or remembered."""
        found = self._publications.get((name, publisher))
        if found is None:
            if len(self._publications) >= _PUBLICATIONS_MAX:
                del self._publications[next(iter(self._publications))]
            found = self._publications[name, publisher] = Publication(name, publisher)
        return found

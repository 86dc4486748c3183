"""The states of a piece, found in a part of a message: `pathcast.engine.PathFinder`, by keys.

Keys of a version that has gone stay until they are many: what is found of them says nothing, and
what has been compiled of the others stays with them.

Example:
    >>> from pathcast.dht.events import Events
    >>> from pathcast.dht.piece_records import NOTHING, PieceLink
    >>> from pathcast.kernel import parse
    >>> from pathcast.limits import Limits
    >>> finder = PieceFinder()
    >>> finder.follow(PieceRecord(links={"start/a/b": PieceLink("start/a/b", NOTHING)}))
    >>> message = EventTree(Events.of(parse(b"<a><b/><c/><b/></a>", Limits())))
    >>> finder.find(message, {"start/a": [1]})
    ([('start/a/b', 2), ('start/a/b', 6)], 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pathcast.dht.events import EventTree
from pathcast.dht.identifiers import state_path
from pathcast.dht.piece_records import PieceRecord
from pathcast.engine import PathFinder

__all__ = ["PieceFinder"]

_STALE_MIN = 1_000


class PieceFinder:
    """Where the states of one piece are active."""

    def __init__(self) -> None:
        self._record: PieceRecord | None = None
        # In the order of the record, so that what is found has an order too.
        self._wanted: dict[str, None] = {}
        self._begin()

    def _begin(self) -> None:
        self._finder = PathFinder()
        self._numbers: dict[str, int] = {}
        self._keys: list[str] = []

    def follow(self, record: PieceRecord) -> None:
        """Look for the accepting states and links of a version, and for nothing else."""
        if record is self._record:
            return
        self._record = record
        self._wanted = dict.fromkeys((*record.entries, *record.links))
        if len(self._keys) > 2 * len(self._wanted) + _STALE_MIN:
            self._begin()
        for key in self._wanted:
            self._number(key)

    def find(
        self, message: EventTree, entered: Mapping[str, Iterable[int]]
    ) -> tuple[list[tuple[str, int]], int]:
        """Run the piece.

        Args:
            message: A part of it.
            entered: States and the elements at which they are active.

        Returns:
            Keys that were looked for, and the elements at which their states are active; and at
            how many elements something was.
        """
        entries = [
            (self._number(key), message.place(element))
            for key, elements in entered.items()
            for element in elements
        ]
        events = message.events
        found = self._finder.find(events.names, events.name, events.depth, entries)
        ends = [
            (key, events.left[place] if place >= 0 else 0)
            for number, place in found.ends
            if (key := self._keys[number]) in self._wanted
        ]
        return ends, found.steps

    def _number(self, key: str) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._finder.number(state_path(key))
            assert number == len(self._keys), "different keys are of different paths"
            self._numbers[key] = number
            self._keys.append(key)
        return number

"""The states of a piece, found in a part of a message: `pathcast.engine.PathFinder`, by keys.

Keys of a version that has gone stay until they are many: what is found of them says nothing, and
what has been compiled of the others stays with them. Of a bin, the states are found that the names
of elements lead to, whether a piece has them or not.

Example:
    >>> from pathcast.dht.events import Events
    >>> from pathcast.dht.piece_records import NOTHING, PieceLink
    >>> from pathcast.kernel import parse
    >>> from pathcast.limits import Limits
    >>> finder = PieceFinder()
    >>> finder.follow(PieceRecord(links={"start/a/b": PieceLink("start/a/b", NOTHING)}))
    >>> message = EventTree(Events.of(parse(b"<a><b/><c/><b/></a>", Limits())))
    >>> finder.find([(message, {"start/a": [1]}), (message, {})])
    [[('start/a/b', 2), ('start/a/b', 6)], []]
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from pathcast.dht.events import EventTree
from pathcast.dht.identifiers import label_text, state_path
from pathcast.dht.piece_records import PieceRecord, bin_state, covering
from pathcast.engine import PathFinder
from pathcast.message import ExpandedName

_STALE_MIN = 100
_DOCUMENT = ("", "")
"""No element has this name."""


class PieceFinder:
    """Where the states of one piece are active."""

    def __init__(self) -> None:
        self._record: PieceRecord | None = None
        # In the order of the record, so that what is found has an order too.
        self._wanted: dict[str, None] = {}
        self._bins: set[str] = set()
        # By the key of any state behind one that bins are behind, the beginning of their keys.
        self._behind: dict[str, str] = {}
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
        states = {key: bin_state(key) for key in record.links}
        links = [key for key, state in states.items() if state is None]
        self._wanted = dict.fromkeys((*record.entries, *links))
        self._bins = record.links.keys() - links
        self._behind = {f"{state}/*": f"{state}/" for state in states.values() if state is not None}
        if len(self._keys) > 2 * len(self._wanted) + _STALE_MIN:
            self._begin()
        for key in (*self._wanted, *self._behind):
            self._number(key)

    def find(
        self, entered: Sequence[tuple[EventTree, Mapping[str, Iterable[int]]]]
    ) -> list[list[tuple[str, int]]]:
        """Run the piece over parts of messages, all in one pass.

        Args:
            entered: A part each; states, and the elements at which they are active.

        Returns:
            For each, keys that were looked for, or of states in bins that were, and the elements at
            which their states are active.
        """
        names: list[ExpandedName] = []
        name: list[int] = []
        depth: list[int] = []
        entries: list[tuple[int, int]] = []
        starts = []
        for message, its in entered:
            # The document of each is an element here, so that none lies in what another one is in.
            start, known, events = len(name), len(names), message.events
            starts.append(start)
            names += (_DOCUMENT, *events.names)
            name += (known, *(known + 1 + number for number in events.name))
            depth += (1, *(1 + each for each in events.depth))
            entries += [
                (self._number(key), start + 1 + message.place(element))
                for key, elements in its.items()
                for element in elements
            ]
        found: list[list[tuple[str, int]]] = [[] for _ in entered]
        at, following = -1, -1
        for number, place in self._finder.find(names, name, depth, entries).ends:
            if place > following:
                at = bisect_right(starts, place) - 1
                following = starts[at + 1] - 1 if at + 1 < len(starts) else len(name)
            key, events, inside = self._keys[number], entered[at][0].events, place - starts[at]
            if key in self._wanted:
                found[at].append((key, events.left[inside - 1] if inside else 0))
            if key in self._behind:
                label = label_text(events.names[events.name[inside - 1]])
                if covering(state := self._behind[key] + label, self._bins) is not None:
                    found[at].append((state, events.left[inside - 1]))
        return found

    def _number(self, key: str) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._finder.number(state_path(key))
            assert number == len(self._keys), "different keys are of different paths"
            self._numbers[key] = number
            self._keys.append(key)
        return number

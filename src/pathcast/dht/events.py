"""Parsing events, enriched: each element with (L:R, D).

L and R count the tags from the beginning of the message to the element's own, D is its depth; the
document has L = 0 and D = 0, the root element L = 1 and D = 1. An element is inside another if its
L and R lie between the other's, and its child if it is one deeper as well. So a part of a message
can travel, and what lies how in it is known without the rest. Elements are called by their L.

Example:
    >>> from pathcast.dht.piece_records import NOTHING
    >>> from pathcast.kernel import parse
    >>> from pathcast.limits import Limits
    >>> events = Events.of(parse(b"<a><b><c/></b><b/></a>", Limits()))
    >>> events.left, events.right, events.depth
    ((1, 2, 3, 6), (8, 5, 4, 7), (1, 2, 3, 2))
    >>> part = EventTree(events).projected([(6, NOTHING)])
    >>> part.left, [part.names[name] for name in part.name]
    ((1, 6), [('', 'a'), ('', 'b')])

Source: 000, section 5.2; Consens and Milo, SIGMOD 1994. Differs: columns, and no end events, which
R says.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from pathcast.dht.fragment import EPSILON, Symbol, matching_symbols
from pathcast.dht.gates import Path
from pathcast.dht.identifiers import label_of
from pathcast.dht.piece_records import Reads
from pathcast.errors import PeerError
from pathcast.message import ExpandedName, MessageTree

ELEMENTS_MAX = 1_000_000
"""Elements of a message that travels."""

_NAMES_MAX = 1_000

_Number = Annotated[int, Meta(ge=0, lt=2**40)]
_Column = Annotated[tuple[_Number, ...], Meta(max_length=ELEMENTS_MAX)]
_Name = Annotated[str, Meta(max_length=65_536)]


class Events(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Elements of a message in document order; with each, those it is in.

    Attributes:
        names: Different names: namespace and local name.
        name: Of each element, as a place in `names`.
        left: L of each.
        right: R of each.
        depth: D of each.
    """

    names: Annotated[tuple[tuple[_Name, _Name], ...], Meta(max_length=65_536)]
    name: _Column
    left: _Column
    right: _Column
    depth: _Column

    @classmethod
    def of(cls, tree: MessageTree) -> Self:
        """All elements of a message."""
        names = {name: place for place, name in enumerate(dict.fromkeys(tree.name))}
        left = tuple(2 * element - depth + 1 for element, depth in enumerate(tree.depth))
        inside = (end - element for element, end in enumerate(tree.element_end))
        right = tuple(place + 2 * count - 1 for place, count in zip(left, inside, strict=True))
        name = tuple(names[name] for name in tree.name)
        depth = tuple(depth + 1 for depth in tree.depth)
        return cls(tuple(names), name, left, right, depth)


class EventTree:
    """Events that were checked, with what lies in what.

    Args:
        events: From anywhere.

    Attributes:
        events: The same.

    Raises:
        PeerError: "dht.events"; they are of no message.
    """

    def __init__(self, events: Events) -> None:
        self.events = events
        self._parent: dict[int, int] = {}
        self._place = {left: place for place, left in enumerate(events.left)}
        columns = (events.name, events.left, events.right, events.depth)
        lengths = {len(column) for column in columns}
        if len(lengths) != 1:
            raise PeerError("dht.events", reason="columns of different lengths")
        if events.name and max(events.name) >= len(events.names):
            raise PeerError("dht.events", reason="a name that is not among the names")
        if events.names and len(events.names) > len(events.name):
            raise PeerError("dht.events", reason="names of no element")
        open_ = [(0, 1 << 62)]
        last = 0
        for place, (left, right, depth) in enumerate(zip(*columns[1:], strict=True)):
            while open_[-1][1] < left:
                last = open_.pop()[1]
            parent, end = open_[-1]
            if not (last < left < right < end and depth == len(open_)):
                reason = f"({left}:{right}, {depth}) does not lie in what is open"
                raise PeerError("dht.events", reason=f"element {place}: {reason}")
            if parent == 0 and place:
                raise PeerError("dht.events", reason="several root elements")
            last = left
            self._parent[left] = parent
            open_.append((left, right))

    def __contains__(self, element: int) -> bool:
        return element == 0 or element in self._place

    def projected(self, entries: Iterable[tuple[int, Reads]]) -> Events:
        """Some elements, what is read in them, and what all these are in.

        Args:
            entries: Elements, and what is read of those in them.

        Cost: O(what is given back, and what lies in the elements as deep as is read).
        """
        events, kept = self.events, set[int]()
        ends: dict[Reads, int] = {}
        for element, reads in sorted(entries, key=itemgetter(0)):
            start, end = self.place(element), len(events.left)
            if element:
                self._keep(start, kept)
                end = bisect_left(events.left, events.right[start])
            if reads.levels is None:
                # What lies in one that all was read of has been looked at.
                start = max(start, ends.get(reads, 0) - 1)
                ends[reads] = max(ends.get(reads, 0), end)
            deepest = 1 << 62 if reads.levels is None else self.depth(element) + reads.levels
            read = _read_names(reads.labels)
            is_read = [read[name] for name in events.names]
            for place in range(start + 1, end):
                if is_read[events.name[place]] and events.depth[place] <= deepest:
                    self._keep(place, kept)
        return _part(events, sorted(kept))

    def _keep(self, place: int, kept: set[int]) -> None:
        """Add a place, and those that it is in."""
        while place not in kept:
            kept.add(place)
            parent = self._parent[self.events.left[place]]
            if parent == 0:
                break
            place = self._place[parent]

    def place(self, element: int) -> int:
        """Which of the elements one is, counted from 0; -1 for the document.

        Raises:
            KeyError: It is none of them.
        """
        return self._place[element] if element else -1

    def depth(self, element: int) -> int:
        """D of an element; 0 of the document."""
        return self.events.depth[self._place[element]] if element else 0

    def is_reached(self, path: Path, element: int) -> bool:
        """Whether the labels of a state lead to an element, over those that it is in."""
        events, names = self.events, []
        while element:
            names.append(events.names[events.name[self._place[element]]])
            element = self._parent[element]
        return _leads(path, tuple(reversed(names)))


def _part(events: Events, places: Sequence[int]) -> Events:
    used = {n: place for place, n in enumerate(dict.fromkeys(events.name[p] for p in places))}
    return Events(
        tuple(events.names[name] for name in used),
        tuple(used[events.name[place]] for place in places),
        tuple(events.left[place] for place in places),
        tuple(events.right[place] for place in places),
        tuple(events.depth[place] for place in places),
    )


class _ReadNames(dict[ExpandedName, bool]):
    """Of names that were met, whether they can follow one of some labels."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = frozenset(map(label_of, labels))

    def __missing__(self, name: ExpandedName) -> bool:
        if len(self) >= _NAMES_MAX:
            self.clear()
        found = self[name] = not self._labels.isdisjoint(_symbols(name))
        return found


@lru_cache(maxsize=256)
def _read_names(labels: tuple[str, ...]) -> _ReadNames:
    return _ReadNames(labels)


@lru_cache(maxsize=8_192)
def _leads(path: Path, names: tuple[ExpandedName, ...]) -> bool:
    """Whether the labels of a state lead over elements of these names to the last of them."""
    # Places in the path at which the elements so far can be; epsilon loops.
    places = _over_epsilon(path, {0})
    for name in names:
        symbols = _symbols(name)
        after = {at + 1 for at in places if at < len(path) and path[at] in symbols}
        after |= {at for at in places if at and path[at - 1] is EPSILON}
        places = _over_epsilon(path, after)
    return len(path) in places


def _over_epsilon(path: Path, places: set[int]) -> set[int]:
    return places | {at + 1 for at in places if at < len(path) and path[at] is EPSILON}


@lru_cache(maxsize=8_192)
def _symbols(name: ExpandedName) -> Sequence[Symbol]:
    return matching_symbols(*name)

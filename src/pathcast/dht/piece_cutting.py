"""A piece that has grown over its measured load is cut in two.

Its peer counts its queries, and the states that publications find in it: what has to be decided and
told, or handed on. (The elements that it looks at would be the same for a part of it.) What is cut
off is about half the cost, which is half by queries and half by what was found: whole subtrees,
neighbours together; where very many labels part, bins of them (`piece_records`). The piece of the
start state, which all publishers run, gives away everything but what is too heavy to be a part.

The new piece gets the key of one of its states. That state never leaves it, so no key is given to
two pieces. One change of the record puts links in the place of what was cut off, and keeps that in
`PieceRecord.leaving` until the new piece has been stored. In the meantime whoever comes to the new
piece is told to come later. Who comes to the old one, with a link from before the cut, is passed
on; whoever has such a link is told of the new piece in the end, so that the next comes straight.

If the peer dies on the way, the next one that reads the record goes on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from pathcast.dht.courier import Courier
from pathcast.dht.messages import Done, Reply, RequestRefused
from pathcast.dht.piece_messages import Relink, TakePiece
from pathcast.dht.piece_records import (
    START_PIECE,
    PieceRecord,
    bin_state,
    covering,
    is_smallest_bin,
    moved,
    prefixes,
)
from pathcast.dht.piece_store import PieceStore

_TOP_PART: Final = 1 / 8
"""What costs more than this part of the start state's piece is not cut off as a whole."""

_LOADS_MAX: Final = 1_000
_STALE_MIN: Final = 100

_LEAST: Final = 0.1
"""Less than this part of a piece is not worth a cut."""

_LABELS_MAX: Final = 512
"""Where more labels part in a piece, they are not cut off one by one, but a bin at a time."""

_ALL: Final = 0.999
"""Of the cost of a piece: more of it is all of it, but for rounding."""


@dataclass(frozen=True, slots=True)
class PieceSettings:
    """When a piece is cut or shared, and how long a copy of it is used.

    Attributes:
        queries_max: Queries of a piece.
        found_max: States that a publication finds in it on average: accepting ones and links, each
            at every element.
        publications_min: Before so many publications the latter is not known.
        copy_seconds: How long a copy of a piece, as every publisher has of the start state's, is
            used before it is asked for again. Acknowledgements wait for it.
        work_max: States that publications find in a piece in a second, and ten for each of them,
            before other peers share it.
    """

    queries_max: int = 1_000
    found_max: float = 100_000.0
    publications_min: int = 10
    copy_seconds: float = 1.0
    work_max: float = 5_000.0


@dataclass(slots=True)
class _Load:
    """The work of publications at a piece since it was cut."""

    publications: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    vain_at: int = 0
    """So many queries it had when it could not be cut."""


class Cutting:
    """Keeps the pieces of a peer small by cutting them.

    Args:
        courier: For what is sent.
        store: Its pieces.
        settings: The same for all.
        name: Of this life of the peer; no other has it.

    Attributes:
        cuts: Pieces that were cut off here.
    """

    def __init__(
        self, courier: Courier, store: PieceStore, settings: PieceSettings, name: str
    ) -> None:
        self.cuts = 0
        self._courier = courier
        self._store = store
        self._settings = settings
        self._loads: dict[str, _Load] = {}
        self._busy: set[str] = set()
        self._name = name
        self._taken: set[str] = set()

    def ran(
        self, piece: str, record: PieceRecord, publications: int, hits: Mapping[str, int]
    ) -> None:
        """So many publications have been run: how often each key was found."""
        load = self._load(piece)
        load.publications += publications
        load.hits.update(hits)
        if len(load.hits) > 2 * (len(record.entries) + len(record.links)) + _STALE_MIN:
            # Of states that it has no more.
            there = record.entries.keys() | record.links.keys()
            load.hits = Counter({key: its for key, its in load.hits.items() if key in there})
        self.look(piece, record)

    def look(self, piece: str, record: PieceRecord) -> None:
        """Cut a piece if it has to be, and go on with a cut that somebody has begun."""
        if piece in self._busy:
            return
        if record.leaving:
            self._busy.add(piece)
            self._hand_over(piece, record)
            return
        load = self._load(piece)
        settings = self._settings
        queries = sum(map(len, record.entries.values()))
        is_large = queries > settings.queries_max
        is_costly = (
            load.publications >= settings.publications_min
            and load.hits.total() > settings.found_max * load.publications
        )
        # What could not be cut is tried again when it has changed.
        if (is_large or is_costly) and not load.vain_at <= queries <= 1.1 * load.vain_at:
            self._cut(piece, record, queries)

    def _load(self, piece: str) -> _Load:
        if len(self._loads) >= _LOADS_MAX and piece not in self._loads:
            # Perhaps of one that is somebody else's by now.
            del self._loads[next(iter(self._loads))]
        return self._loads.setdefault(piece, _Load())

    def _cut(self, piece: str, before: PieceRecord, queries: int) -> None:
        self._busy.add(piece)
        hits = self._load(piece).hits

        def change(record: PieceRecord) -> PieceRecord:
            roots = [] if record.leaving else part_of(record, piece, hits)
            if into not in roots:
                return record
            return moved(record, roots, into, f"{self.cuts} {self._name}")

        def changed(record: PieceRecord | None) -> None:
            if record is None or not record.leaving:
                self._busy.discard(piece)
                if record is not None:
                    self._load(piece).vain_at = queries
                return
            self.cuts += 1
            self._hand_over(piece, record)

        free = [root for root in part_of(before, piece, hits) if root not in self._taken]
        if not free:
            self._busy.discard(piece)
            self._load(piece).vain_at = queries
            return
        into = free[0]

        def is_free(reply: Reply | None) -> None:
            if isinstance(reply, Done):
                self._store.change(piece, change, changed, first=True)
                return
            if isinstance(reply, RequestRefused):
                # A piece of that name is left of a time before something was lost.
                self._taken.add(into)
            self._busy.discard(piece)

        self._courier.to_owner(into, TakePiece(into, PieceRecord(is_there=False)), is_free)

    def _hand_over(self, piece: str, record: PieceRecord) -> None:
        """Give what leaves to the peer of its new piece, until that has it."""
        into, leaving = next(iter(record.leaving.items()))

        def taken(reply: Reply | None) -> None:
            if not isinstance(reply, Done):
                # Whoever looks at the piece again begins again.
                self._busy.discard(piece)
                return
            self._store.change(piece, without, changed, first=True)

        def without(now: PieceRecord) -> PieceRecord:
            rest = {key: value for key, value in now.leaving.items() if key != into}
            return now if len(rest) == len(now.leaving) else replace(now, leaving=rest)

        def changed(now: PieceRecord | None) -> None:
            self._busy.discard(piece)
            self._loads.pop(piece, None)
            if now is None:
                return
            for key, link in now.links.items():
                if link.piece == into and piece != START_PIECE:
                    self._courier.to_owner(START_PIECE, Relink(START_PIECE, key, piece, into))
            self.look(piece, now)

        self._courier.to_owner(into, TakePiece(into, leaving), taken)


def part_of(record: PieceRecord, piece: str, hits: Mapping[str, int]) -> list[str]:
    """Which states to cut off a piece, with all that lies behind them.

    Args:
        record: The piece.
        piece: Its key; the state of that key stays.
        hits: How often publications have found each key.

    Returns:
        Keys of states and bins, none of which is in another; none if there is nothing to gain. Half
        the cost, of the start state's piece all that comes in small parts.

    Cost: O(keys x their length).
    """
    queries = sum(map(len, record.entries.values()))
    found = sum(hits.get(key, 0) for key in record.entries)
    below: defaultdict[str, float] = defaultdict(float)
    children: defaultdict[str, set[str]] = defaultdict(set)
    for key, entries in record.entries.items():
        cost = len(entries) / max(queries, 1) + hits.get(key, 0) / max(found, 1)
        above = ""
        for prefix in prefixes(key):
            below[prefix] += cost
            children[above].add(prefix)
            above = prefix
    behind = _labels_behind(record)
    are_in_bins = {bin_state(key) for key in (*record.roots, *record.links)}
    total = below[START_PIECE]
    most = total * (_TOP_PART if piece == START_PIECE else 1 / 2)
    parts: list[str] = []
    waiting = sorted((root for root in record.roots if below[root]), reverse=True)
    while waiting:
        key = waiting.pop()
        # A state that is reached without an element goes with its source.
        is_fixed = key.endswith("/$") or _is_behind(piece, key)
        is_whole = piece != START_PIECE and below[key] > _ALL * total
        is_small = below[key] <= most or (is_smallest_bin(key) and not is_whole)
        if not is_fixed and is_small:
            parts.append(key)
        elif key in are_in_bins or len(behind[key]) > _LABELS_MAX or bin_state(key) is not None:
            waiting.extend(sorted(children[key], reverse=True))
        else:
            waiting.extend(sorted((each for each in behind[key] if each in below), reverse=True))
    if piece != START_PIECE:
        parts = _half(parts, below, total / 2)
    return parts if sum(below[key] for key in parts) >= _LEAST * total else []


def _labels_behind(record: PieceRecord) -> Mapping[str, set[str]]:
    """For each state the states that are a label behind it, on the way to what a piece has."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for key in (*record.entries, *record.links):
        for prefix in prefixes(key):
            if bin_state(prefix) is None:
                found[prefix.rpartition("/")[0]].add(prefix)
    return found


def _is_behind(key: str, state: str) -> bool:
    """Whether a key is that of a state or bin, or of one behind it."""
    return covering(key, {state}) is not None


def _half(parts: list[str], cost: Mapping[str, float], wanted: float) -> list[str]:
    """The first of some parts that cost about so much together."""
    taken: list[str] = []
    total = 0.0
    for part in parts:
        if taken and total + cost[part] > wanted:
            break
        taken.append(part)
        total += cost[part]
    return taken

"""Pieces at their peers: run over the part of a message that came, and what leaves them handed on.

One message has all pieces of a peer that a publication enters at once. Each is run as one automaton
(`piece_finder`); its accepting states are settled as everywhere (`matching`), and where it comes to
a link, the piece that the link names is entered, with what is read there of the part that is at
hand. What was done, and where others are entered, is told to the publisher.

Where a piece is entered in a state that it has given away, it passes that on: somebody had a link
from before the cut. That is not told: it is the same credit.

Publishers run the piece of the start state themselves. What it accepts is told to its peer, which
has the queries, and does not run it again.

Not the paper's: 000, section 5.2, has a message for each state and element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from pathcast.dht.courier import Courier
from pathcast.dht.events import EventTree
from pathcast.dht.identifiers import state_path
from pathcast.dht.matching import Matching
from pathcast.dht.messages import Done, Later, Reply
from pathcast.dht.piece_cutting import Cutting
from pathcast.dht.piece_finder import PieceFinder
from pathcast.dht.piece_messages import Elements, Problem, Ran, RunPieces, Visit
from pathcast.dht.piece_records import START_PIECE, Entry, PieceRecord, Reads, covering
from pathcast.dht.piece_store import PieceStore
from pathcast.dht.publication_memory import PublicationMemory, RememberedPublication
from pathcast.dht.substrate import Substrate
from pathcast.errors import PeerError

__all__ = ["Entered", "PieceRunning", "checked_visits", "enter"]

_FINDERS_MAX = 1_000


class Entered:
    """Where pieces are entered, and what is read there."""

    def __init__(self) -> None:
        self.pieces: dict[str, dict[str, list[int]]] = {}
        self._reads: dict[str, Reads] = {}

    def add(self, piece: str, key: str, elements: Iterable[int], reads: Reads) -> None:
        """A state of a piece is active at some more elements."""
        self.pieces.setdefault(piece, {}).setdefault(key, []).extend(elements)
        self._reads[key] = reads

    def visits(self) -> Elements:
        """States and elements, whatever the piece."""
        return _frozen(*self.pieces.values())

    def question(self, message: EventTree, pieces: Sequence[str], base: RunPieces) -> RunPieces:
        """The message to the peer of some pieces.

        Args:
            message: What is projected.
            pieces: Which.
            base: Says all else.
        """
        chosen = {piece: _frozen(self.pieces[piece]) for piece in pieces}
        read = [
            (element, self._reads[key])
            for entered in chosen.values()
            for key, elements in entered.items()
            for element in elements
        ]
        return replace(base, pieces=chosen, events=message.projected(read))


def enter(
    courier: Courier,
    message: EventTree,
    entered: Entered,
    base: RunPieces,
    tries: int | None = None,
) -> None:
    """Enter pieces: one message for each peer that has some.

    Args:
        courier: Sends it.
        message: What is projected.
        entered: Where.
        base: Says all else; how long the way was that led here.
        tries: As for `Courier.to_owners`.
    """

    def question(pieces: Sequence[str], hops: int) -> RunPieces:
        longer = replace(base, hops=base.hops + (hops > 0), way=base.way + hops)
        return entered.question(message, pieces, longer)

    courier.to_owners(list(entered.pieces), question, tries)


class PieceRunning:
    """Runs publications through a peer's pieces.

    Args:
        substrate: For the keys that are its own.
        courier: For what is sent.
        store: Its pieces.
        memory: Of publications.
        matching: For what is accepted.
        cutting: Is told what pieces cost.
        retry_seconds: Before it looks again whether a piece is there.
        tries: How often.

    Attributes:
        done: Pieces that were run.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        store: PieceStore,
        memory: PublicationMemory,
        matching: Matching,
        cutting: Cutting,
        retry_seconds: float,
        tries: int,
    ) -> None:
        self.done = 0
        self._substrate = substrate
        self._courier = courier
        self._store = store
        self._memory = memory
        self._matching = matching
        self._cutting = cutting
        self._retry_seconds = retry_seconds
        self._tries = tries
        self._finders: dict[str, PieceFinder] = {}

    def run(self, sender: str, asked: RunPieces, answer: Callable[[Reply], None]) -> None:
        """Run those of the pieces that this peer owns; the others are passed on.

        Raises:
            PeerError: "dht.events", "dht.key", "dht.claim"; what is said cannot be.
        """
        own = {piece: its for piece, its in asked.pieces.items() if self._substrate.owns(piece)}
        if not own:
            answer(Later())
            return
        message = EventTree(asked.events)
        for elements in asked.pieces.values():
            checked_visits(message, elements)
        answer(Done())
        for piece, elements in asked.pieces.items():
            if piece not in own:
                self._courier.to_owner(piece, replace(asked, pieces={piece: elements}))
        publication = self._memory.of(asked.publication, asked.publisher)
        new = {}
        for piece, elements in own.items():
            left = _without(elements, publication.runs)
            if left:
                new[piece] = left
                publication.runs.update(dict.fromkeys(_visits(left)))
        if new:
            self._read(replace(asked, pieces=new), message, publication, self._tries)
            return
        if sender == asked.publisher:
            # The publisher asks again: it does not know.
            reports = (publication.runs[v] for its in own.values() for v in _visits(its))
            for report in {id(report): report for report in reports}.values():
                if report is not None:
                    self._courier.to_peer(publication.publisher, report)

    def _read(
        self, asked: RunPieces, message: EventTree, publication: RememberedPublication, left: int
    ) -> None:
        """Read the pieces, and go on with those that are there."""
        records: dict[str, PieceRecord | None] = {}

        def has_read(piece: str, record: PieceRecord | None) -> None:
            records[piece] = record
            if len(records) == len(asked.pieces):
                go_on()

        def go_on() -> None:
            there = {}
            for piece, record in records.items():
                alone = replace(asked, pieces={piece: asked.pieces[piece]})
                if record is not None and record.is_there:
                    there[piece] = record
                elif record is not None and left:
                    again = partial(self._read, alone, message, publication, left - 1)
                    self._courier.after(self._retry_seconds, again)
                else:
                    for visit in _visits(asked.pieces[piece]):
                        del publication.runs[visit]
                    if record is None and not self._substrate.owns(piece):
                        # It has become somebody else's.
                        self._courier.to_owner(piece, alone)
            if there:
                self._run(asked, message, publication, there)

        for piece in asked.pieces:
            self._store.read(piece, partial(has_read, piece))

    def _run(
        self,
        asked: RunPieces,
        message: EventTree,
        publication: RememberedPublication,
        records: Mapping[str, PieceRecord],
    ) -> None:
        accepted: dict[Entry, None] = {}
        own: list[Mapping[str, Sequence[int]]] = []
        handed, passed = Entered(), Entered()
        for piece, record in records.items():
            entered = {}
            for key, elements in asked.pieces[piece].items():
                covers = covering(key, record.links)
                if covers is None:
                    entered[key] = elements
                else:
                    link = record.links[covers]
                    passed.add(link.piece, key, elements, link.reads)
            own.append(entered)
            for key, element in self._found(piece, record, entered, message):
                if key in record.entries:
                    accepted.update(dict.fromkeys(record.entries[key].values()))
                elif key in record.links:
                    link = record.links[key]
                    handed.add(link.piece, key, [element], link.reads)
        for visit in _visits(passed.visits()):
            del publication.runs[visit]
        enter(self._courier, message, passed, asked)
        enter(self._courier, message, handed, asked)
        done = _frozen(*own)

        def settled(problems: tuple[Problem, ...]) -> None:
            report = Ran(publication.name, done, handed.visits(), asked.hops, asked.way, problems)
            publication.runs.update(dict.fromkeys(_visits(done), report))
            self._courier.to_peer(publication.publisher, report)

        if done:
            self._matching.settle(publication, accepted, settled)

    def _found(
        self,
        piece: str,
        record: PieceRecord,
        entered: Mapping[str, Sequence[int]],
        message: EventTree,
    ) -> list[tuple[str, int]]:
        """Run a piece on the elements; the piece of the start state from where it is entered."""
        self.done += bool(entered)
        if piece == START_PIECE:
            found = [(visit.key, visit.element) for visit in _visits(entered)]
        else:
            if len(self._finders) >= _FINDERS_MAX and piece not in self._finders:
                del self._finders[next(iter(self._finders))]
            finder = self._finders.setdefault(piece, PieceFinder())
            finder.follow(record)
            found, _ = finder.find(message, entered)
        self._cutting.ran(piece, record, Counter(key for key, _ in found))
        return found


def checked_visits(message: EventTree, elements: Elements) -> list[Visit]:
    """States and the elements at which they are active.

    Raises:
        PeerError: "dht.key", "dht.claim"; there is no such state, or it is not active there.
    """
    found = []
    for key, its in elements.items():
        path = state_path(key)
        for element in its:
            if (element and element not in message) or not message.is_reached(path, element):
                raise PeerError("dht.claim", claim=f"{key} is active at element {element}")
            found.append(Visit(key, element))
    return found


def _visits(elements: Mapping[str, Iterable[int]]) -> list[Visit]:
    return [Visit(key, element) for key, its in elements.items() for element in its]


def _without(elements: Elements, known: Mapping[Visit, Ran | None]) -> Elements:
    """Remove the elements that are known."""
    left = {
        key: tuple(element for element in its if Visit(key, element) not in known)
        for key, its in elements.items()
    }
    return {key: its for key, its in left.items() if its}


def _frozen(*parts: Mapping[str, Iterable[int]]) -> Elements:
    """Elements of several parts, in order."""
    found: dict[str, set[int]] = {}
    for part in parts:
        for key, elements in part.items():
            found.setdefault(key, set()).update(elements)
    return {key: tuple(sorted(elements)) for key, elements in found.items()}

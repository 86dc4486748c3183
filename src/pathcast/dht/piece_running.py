"""Pieces at their peers: run over the part of a message that came, and what leaves them handed on.

A question has all pieces of a peer that a publication enters at once, and a message has the
questions of many publications (`gathering`). Each piece is read once for all that enter it then,
and run over all of them in one pass (`piece_finder`). Its accepting states are settled as
everywhere (`matching`), and where it comes to a link, the piece that the link names is entered,
with what is read there of the part that is at hand. What was done, and where others are entered, is
told to the publisher. A peer that shares a piece with its owner runs a copy of it, in the same way.

Where a piece is entered in a state that it has given away, it passes that on: somebody had a link
from before the cut. That is not told: it is the same credit.

Publishers run the piece of the start state themselves. What it accepts is told to its peer, which
has the queries, and does not run it again.

Not the paper's: 000, section 5.2, has a message for each state and element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from pathcast.dht.courier import Courier
from pathcast.dht.events import EventTree
from pathcast.dht.identifiers import state_path
from pathcast.dht.matching import Matching
from pathcast.dht.messages import Done, Later, Member, Reply, Shared
from pathcast.dht.piece_cutting import Cutting
from pathcast.dht.piece_finder import PieceFinder
from pathcast.dht.piece_leases import PieceLeases
from pathcast.dht.piece_messages import Elements, Problem, Ran, RunPieces, Visit
from pathcast.dht.piece_records import START_PIECE, Entry, PieceRecord, Reads, covering
from pathcast.dht.piece_sharing import KnownSharers, PieceSharing
from pathcast.dht.piece_store import PieceStore
from pathcast.dht.publication_memory import PublicationMemory, RememberedPublication
from pathcast.dht.substrate import Substrate
from pathcast.errors import PeerError

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


class PieceEntering:
    """Sends publications into pieces.

    Args:
        me: This peer.
        courier: For what is sent.
        known: Who else than their owners runs pieces.
    """

    def __init__(self, me: Callable[[], Member], courier: Courier, known: KnownSharers) -> None:
        self._me = me
        self._courier = courier
        self._known = known

    def enter(
        self,
        message: EventTree,
        entered: Entered,
        base: RunPieces,
        tries: int | None = None,
        *,
        by_owners: bool = False,
    ) -> None:
        """Enter pieces: one message for each peer that is to run some.

        Args:
            message: What is projected.
            entered: Where.
            base: Says all else; how long the way was that led here.
            tries: As for `Courier.to_owners`.
            by_owners: Whether nobody else is chosen.
        """

        def question(pieces: Sequence[str], hops: int) -> RunPieces:
            longer = replace(base, hops=base.hops + (hops > 0), way=base.way + hops)
            return entered.question(message, pieces, longer)

        def ask_owners(pieces: Sequence[str]) -> None:
            self._courier.to_owners(pieces, question, self._known.learn, tries)

        def ask(member: Member, pieces: Sequence[str]) -> None:
            def answered(reply: Reply | None) -> None:
                if reply is None or isinstance(reply, Later):
                    self._known.has_failed(member)
                    ask_owners(pieces)

            asked = replace(question(pieces, int(member != self._me())), is_shared=True)
            self._courier.to_peer(member, asked, answered)

        chosen: dict[Member | None, list[str]] = {}
        for piece in entered.pieces:
            member = None if by_owners else self._known.choose(piece, base.publication)
            chosen.setdefault(member, []).append(piece)
        for member, pieces in chosen.items():
            if member is None:
                ask_owners(pieces)
            else:
                ask(member, pieces)


@dataclass(slots=True, eq=False)
class _Run:
    """A publication at pieces that it enters here, until all of them were run.

    Attributes:
        asked: Its pieces are those of this peer that were not run before.
        message: The part of it that came.
        publication: What is remembered of it.
        tries: How often a piece that is not there is looked for again.
        left: Pieces that were not read yet.
        own: Where pieces were run.
        accepted: Queries at accepting states that were found.
        handed: Where other pieces are entered.
        passed: The same for states that were given away before it came.
    """

    asked: RunPieces
    message: EventTree
    publication: RememberedPublication
    tries: int
    left: int = field(init=False)
    own: list[Mapping[str, Sequence[int]]] = field(default_factory=list)
    accepted: dict[Entry, None] = field(default_factory=dict)
    handed: Entered = field(default_factory=Entered)
    passed: Entered = field(default_factory=Entered)

    def __post_init__(self) -> None:
        self.left = len(self.asked.pieces)


class PieceRunning:
    """Runs publications through a peer's pieces.

    Args:
        substrate: For the keys that are its own.
        courier: For what is sent.
        store: Its pieces.
        memory: Of publications.
        matching: For what is accepted.
        cutting: Is told what pieces cost.
        sharing: The same, and says who else runs them.
        leases: Has copies of pieces that this peer shares.
        entering: For pieces that are entered from here.
        retry_seconds: Before it looks again whether a piece is there.
        tries: How often.

    Attributes:
        done: Pieces that were run.
        shared: Of these, those that other peers own.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        store: PieceStore,
        memory: PublicationMemory,
        matching: Matching,
        cutting: Cutting,
        sharing: PieceSharing,
        leases: PieceLeases,
        entering: PieceEntering,
        retry_seconds: float,
        tries: int,
    ) -> None:
        self.done = self.shared = 0
        self._substrate = substrate
        self._courier = courier
        self._store = store
        self._memory = memory
        self._matching = matching
        self._cutting = cutting
        self._sharing = sharing
        self._leases = leases
        self._entering = entering
        self._retry_seconds = retry_seconds
        self._tries = tries
        self._finders: dict[str, PieceFinder] = {}
        self._begun: list[_Run] = []

    def run(self, sender: str, asked: RunPieces, answer: Callable[[Reply], None]) -> None:
        """Run those of the pieces that this peer owns or shares; the others are passed on.

        Raises:
            PeerError: "dht.events", "dht.key", "dht.claim"; what is said cannot be.
        """
        are_own = {piece: self._substrate.owns(piece) for piece in asked.pieces}
        # Whether it shares them is the owner's to say, when the copy is asked for.
        own = {
            piece: its for piece, its in asked.pieces.items() if asked.is_shared or are_own[piece]
        }
        if not own:
            answer(Later())
            return
        message = EventTree(asked.events)
        for elements in asked.pieces.values():
            checked_visits(message, elements)
        sharers = {piece: self._sharing.sharers(piece) for piece in own if are_own[piece]}
        shared = {piece: members for piece, members in sharers.items() if members}
        answer(Shared(shared) if shared else Done())
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
            self._begin(_Run(replace(asked, pieces=new), message, publication, self._tries))
            return
        if sender == asked.publisher:
            # The publisher asks again: it does not know.
            reports = (publication.runs[v] for its in own.values() for v in _visits(its))
            for report in {id(report): report for report in reports}.values():
                if report is not None:
                    self._courier.to_peer(publication.publisher, report)

    def _begin(self, run: _Run) -> None:
        """Run a publication when the event is over, with all others that came in it."""
        if not self._begun:
            self._courier.at_end(self._read)
        self._begun.append(run)

    def _read(self) -> None:
        """Read the pieces, each once for all publications that enter it."""
        begun, self._begun = self._begun, []
        entering: dict[str, list[_Run]] = {}
        for run in begun:
            for piece in run.asked.pieces:
                entering.setdefault(piece, []).append(run)
        for piece, runs in entering.items():
            if self._substrate.owns(piece):
                self._store.read(piece, partial(self._has_read, piece, runs))
            else:
                self._read_copy(piece, runs)

    def _read_copy(self, piece: str, runs: Sequence[_Run]) -> None:
        """Read a piece of another peer; without a copy of it, its owner runs the publications."""

        def has_read(record: PieceRecord | None, _: int) -> None:
            self._has_read(piece, runs, record)

        self._leases.read(
            piece,
            runs[0],
            has_read,
            with_queries=True,
            work=partial(self._sharing.work_of, piece),
            tries=1,
        )

    def _has_read(self, piece: str, runs: Sequence[_Run], record: PieceRecord | None) -> None:
        if record is not None and record.is_there:
            self._run(piece, record, runs)
        else:
            for run in runs:
                self._miss(piece, run, is_read=record is not None)
        for run in runs:
            run.left -= 1
            if not run.left:
                self._report(run)

    def _miss(self, piece: str, run: _Run, *, is_read: bool) -> None:
        """A publication goes on without a piece that is not there."""
        alone = replace(run.asked, pieces={piece: run.asked.pieces[piece]}, is_shared=False)
        if is_read and run.tries:
            again = _Run(alone, run.message, run.publication, run.tries - 1)
            self._courier.after(self._retry_seconds, partial(self._begin, again))
            return
        for visit in _visits(run.asked.pieces[piece]):
            del run.publication.runs[visit]
        if not is_read and not self._substrate.owns(piece):
            # It has become somebody else's, or is not shared any more.
            self._courier.to_owner(piece, alone)

    def _run(self, piece: str, record: PieceRecord, runs: Sequence[_Run]) -> None:
        """Run a piece over the publications; the piece of the start state where it is entered."""
        is_own = self._substrate.owns(piece)
        entered: list[tuple[EventTree, dict[str, Sequence[int]]]] = []
        for run in runs:
            here: dict[str, Sequence[int]] = {}
            for key, elements in run.asked.pieces[piece].items():
                covers = covering(key, record.links)
                if covers is None:
                    here[key] = elements
                else:
                    link = record.links[covers]
                    run.passed.add(link.piece, key, elements, link.reads)
            entered.append((run.message, here))
            run.own.append(here)
            self.done += bool(here)
            self.shared += bool(here) and not is_own
        if piece == START_PIECE:
            found = [[(v.key, v.element) for v in _visits(here)] for _, here in entered]
        else:
            finder = self._finder(piece)
            finder.follow(record)
            found = finder.find(entered)
        for run, its in zip(runs, found, strict=True):
            for key, element in its:
                if key in record.entries:
                    run.accepted.update(dict.fromkeys(record.entries[key].values()))
                elif (covers := covering(key, record.links)) is not None:
                    link = record.links[covers]
                    run.handed.add(link.piece, key, [element], link.reads)
        hits = Counter(key for its in found for key, _ in its)
        reached = sum(len(record.entries.get(key, ())) for key in hits)
        self._sharing.ran(piece, len(runs), hits.total() + reached)
        if is_own:
            self._cutting.ran(piece, record, len(runs), hits)

    def _finder(self, piece: str) -> PieceFinder:
        if len(self._finders) >= _FINDERS_MAX and piece not in self._finders:
            del self._finders[next(iter(self._finders))]
        return self._finders.setdefault(piece, PieceFinder())

    def _report(self, run: _Run) -> None:
        """All pieces were run: enter others, settle what is accepted, and tell the publisher."""
        asked, publication = run.asked, run.publication
        for visit in _visits(run.passed.visits()):
            del publication.runs[visit]
        # Where others had a link from before a cut, the owner takes it in any case.
        base = replace(asked, is_shared=False)
        self._entering.enter(run.message, run.passed, base, by_owners=True)
        self._entering.enter(run.message, run.handed, base)
        done = _frozen(*run.own)

        def settled(problems: tuple[Problem, ...]) -> None:
            handed = run.handed.visits()
            report = Ran(publication.name, done, handed, asked.hops, asked.way, problems)
            publication.runs.update(dict.fromkeys(_visits(done), report))
            self._courier.to_peer(publication.publisher, report)

        if done:
            self._matching.settle(publication, run.accepted, settled)


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

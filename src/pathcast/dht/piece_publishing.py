"""A publisher's way into the pieces: it runs the top, and enters the pieces that it meets.

The *top* is the piece of the start state without its queries: states that accept, and links. Every
publisher has a copy of it (`piece_leases`). A subscription is acknowledged as much later as a copy
is used, so what is published then meets it, by links that are old but lead there (`piece_records`).

When the start state's piece is lost and restored, links of the former top are gone: their queries
may lie in the top again. Nobody else runs the top, so the publisher runs a new one from each
missing credit that no link covers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pathcast.dht.credit import Ledger
from pathcast.dht.events import Events, EventTree
from pathcast.dht.piece_finder import PieceFinder
from pathcast.dht.piece_leases import PieceLeases
from pathcast.dht.piece_messages import Problem, RunPieces, Visit
from pathcast.dht.piece_records import NOTHING, START_PIECE, PieceRecord, covering
from pathcast.dht.piece_running import Entered, PieceEntering

_NO_EVENTS = Events((), (), (), (), ())


@dataclass(slots=True)
class Execution:
    """A publication that has no outcome yet.

    Attributes:
        publication: Its name.
        to: Whom the outcome is for.
        body: The message.
        message: The same, as events.
        ledger: Its credits.
        problems: What could not be decided or told.
        hops: Messages in the longest chain so far.
        way: The same with the hops of look-ups.
        top: The top that was run last; None: it has not begun.
        is_moving: Whether a credit has come back since something was asked for last.
        tries: How often something was asked for since.
        timer: After which what is missing is asked for again.
    """

    publication: str
    to: str
    body: bytes
    message: EventTree
    ledger: Ledger
    problems: set[Problem] = field(default_factory=set)
    hops: int = 0
    way: int = 0
    top: PieceRecord | None = None
    is_moving: bool = False
    tries: int = 0
    timer: str = ""


class PieceWay:
    """Asks the peers of pieces for the credits of an execution that are missing.

    Args:
        publisher: Name of the peer.
        leases: Has the top.
        entering: For what is sent.
    """

    def __init__(self, publisher: str, leases: PieceLeases, entering: PieceEntering) -> None:
        self._publisher = publisher
        self._leases = leases
        self._entering = entering
        self._finder = PieceFinder()

    def ask(self, execution: Execution, is_over: Callable[[], None]) -> None:
        """Ask for all credits of an execution that are missing.

        Args:
            execution: Its ledger may be changed.
            is_over: Called if the ledger was changed.
        """

        def with_top(top: PieceRecord | None, farthest: int) -> None:
            # If it is not to be had, the start is missing, and asked for again.
            if top is None:
                return
            # There and back.
            hops, way = 2 * (farthest > 0), farthest + (farthest > 0)
            if execution.top is not top:
                self._run_top(execution, top)
                execution.hops = max(execution.hops, hops)
                execution.way = max(execution.way, way)
                is_over()
            self._enter(execution, top, hops, way)

        self._leases.read(START_PIECE, execution.publication, with_top)

    def _run_top(self, execution: Execution, top: PieceRecord) -> None:
        """Run the top from each missing credit that is not behind a link; it finds new credits."""
        execution.top = top
        ledger = execution.ledger
        here = [visit for visit in ledger.missing if covering(visit.key, top.links) is None]
        entered: dict[str, list[int]] = {}
        for visit in here:
            entered.setdefault(visit.key, []).append(visit.element)
        self._finder.follow(top)
        [found] = self._finder.find([(execution.message, entered)])
        visits: dict[Visit, None] = {}
        accepted: set[str] = set()
        for key, element in found:
            # Of a state that accepts, one element is enough.
            if key not in top.entries or key not in accepted:
                accepted.add(key)
                visits[Visit(key, element)] = None
        ledger.give_out(visits)
        for visit in here:
            if visit not in visits:
                ledger.came_back(visit, ())

    def _enter(self, execution: Execution, top: PieceRecord, hops: int, way: int) -> None:
        entered = Entered()
        links = top.links
        for visit in execution.ledger.missing:
            link = covering(visit.key, links)
            piece = START_PIECE if link is None else links[link].piece
            reads = NOTHING if link is None else links[link].reads
            entered.add(piece, visit.key, [visit.element], reads)
        base = RunPieces(execution.publication, self._publisher, {}, _NO_EVENTS, hops, way)
        is_first = execution.tries == 1
        self._entering.enter(execution.message, entered, base, tries=1, by_owners=not is_first)

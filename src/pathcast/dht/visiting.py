"""Procedures 3 and 4, at the peers of states: visits are done, and handed on.

A visit that comes twice, from two sources or because an answer was lost, is done once. What was
done is told to the publisher (`Visited`), several visits in one message: this is the credit that
comes back, and names those that were given out in its stead.

Source: 000, section 5.2, procedures 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable

from pathcast.dht.automaton import HeldState, Path, Run, run
from pathcast.dht.courier import Courier
from pathcast.dht.events import Events, Message
from pathcast.dht.guards import is_passed
from pathcast.dht.identifiers import state_key, state_path
from pathcast.dht.matching import Matching
from pathcast.dht.messages import Done, Later, Reply
from pathcast.dht.publication_memory import Publication, PublicationMemory
from pathcast.dht.shedding import Shedding
from pathcast.dht.state_messages import (
    DoneVisit,
    Expanded,
    ExpandState,
    Problem,
    RecExpandState,
    Visit,
    Visited,
)
from pathcast.dht.state_store import StateStore
from pathcast.dht.states import Entry, Held, StateRecord
from pathcast.dht.substrate import Substrate
from pathcast.errors import PeerError
from pathcast.evaluation.fragment import Symbol

__all__ = ["Visiting"]

_GATHER_SECONDS = 0.02
_REPORTS_MAX = 4096


class Visiting:
    """What a peer does for publications that reach its states.

    Args:
        substrate: For the keys that are its own.
        courier: For what is sent.
        store: Its states.
        memory: Of publications.
        matching: For what is accepted.
        shedding: Knows of replicas.
        length: l, the same at all peers.

    Attributes:
        done: Visits that were done.
        pruned: Visits that came again.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        store: StateStore[StateRecord, Held],
        memory: PublicationMemory,
        matching: Matching,
        shedding: Shedding,
        length: int,
    ) -> None:
        self.done = 0
        self.pruned = 0
        self._substrate = substrate
        self._courier = courier
        self._store = store
        self._memory = memory
        self._matching = matching
        self._shedding = shedding
        self._length = length
        self._last: Message | None = None

    def visit(self, sender: str, asked: RecExpandState, answer: Callable[[Reply], None]) -> None:
        """Procedure 4: do a visit, and hand on what comes of it."""
        is_owner = self._substrate.owns(asked.visit.key)
        if not is_owner and not self._shedding.holds(asked.visit.key):
            answer(Later())
            return
        publication = self._memory.of(asked.publication, asked.publisher)
        if asked.visit in publication.visits:
            self.pruned += 1
            answer(Done())
            report = publication.visits[asked.visit]
            if report is not None and sender == asked.publisher:
                # The publisher asks again: it does not know.
                self._report(publication, report)
            return
        path, message = _checked(asked.visit, self._message(asked.events))
        documents = asked.documents
        if is_owner:
            if asked.visit.key not in publication.reached:
                publication.reached.add(asked.visit.key)
                documents = self._shedding.reached(asked)
            answer(self._shedding.answer(asked.visit.key))
        else:
            answer(Done())
        publication.visits[asked.visit] = None
        if asked.body is not None:
            publication.body = asked.body

        def has_read(held: Held | None) -> None:
            if held is None:
                del publication.visits[asked.visit]
                if not (is_owner and self._substrate.owns(asked.visit.key)):
                    # It has become somebody else's.
                    self._courier.to_owner(asked.visit.key, asked)
                # Else nobody can say, and the publisher asks again.
                return
            self.done += 1
            done = run(
                path, held, asked.visit.element, message.children, self._length, _admits(message)
            )
            handed = self._hand_on(asked, message, done, documents)

            def settled(problems: tuple[Problem, ...]) -> None:
                report = DoneVisit(asked.visit, handed, asked.hops, asked.way, problems)
                publication.visits[asked.visit] = report
                self._report(publication, report)

            self._matching.settle(publication, _accepted(done), settled)

        (self._store if is_owner else self._shedding).read(asked.visit.key, has_read)

    def _message(self, events: Events) -> Message:
        """Events that were checked; of visits that came together they are the same."""
        if self._last is None or self._last.events is not events:
            self._last = Message(events)
        return self._last

    def expand(self, asked: ExpandState, answer: Callable[[Reply], None]) -> None:
        """Procedure 3: say what comes of a visit."""
        if not self._substrate.owns(asked.visit.key):
            answer(Later())
            return
        path, message = _checked(asked.visit, Message(asked.events))

        def has_read(held: Held | None) -> None:
            if held is None:
                answer(Later())
                return
            self.done += 1
            done = run(
                path, held, asked.visit.element, message.children, self._length, _admits(message)
            )
            handed = tuple(
                Visit(state_key(target)[len(asked.visit.key) :], element)
                for target, element in done.handed
            )
            answer(Expanded(handed, _accepted(done)))

        self._store.read(asked.visit.key, has_read)

    def _hand_on(
        self, asked: RecExpandState, message: Message, done: Run, documents: int
    ) -> tuple[Visit, ...]:
        handed = []
        # What is gathered is cut to what all of it can see.
        is_whole = asked.body is not None or self._courier.gathers
        for path, element in done.handed:
            visit = Visit(state_key(path), element)
            handed.append(Visit(visit.key[len(asked.visit.key) :], element))
            # All of the message travels, or what the visit can see of it.
            events = message.events if is_whole else message.around(element)

            def question(
                hops: int, visit: Visit = visit, events: Events = events
            ) -> RecExpandState:
                return RecExpandState(
                    asked.publication,
                    asked.publisher,
                    visit,
                    events,
                    asked.hops + (hops > 0),
                    asked.way + hops,
                    documents,
                    asked.body,
                )

            self._shedding.send(visit.key, asked.publication, question)
        return tuple(handed)

    def _report(self, publication: Publication, report: DoneVisit) -> None:
        publication.reports.append(report)
        if len(publication.reports) == 1:
            self._courier.after(_GATHER_SECONDS, lambda: self._send_reports(publication))

    def _send_reports(self, publication: Publication) -> None:
        reports = tuple(publication.reports[:_REPORTS_MAX])
        del publication.reports[:_REPORTS_MAX]
        visited = Visited(publication.name, reports)
        self._courier.to_peer(publication.publisher, visited)
        if publication.reports:
            self._courier.after(_GATHER_SECONDS, lambda: self._send_reports(publication))


def _admits(message: Message) -> Callable[[HeldState, Symbol, int], bool] | None:
    """Whether some query behind a transition may hold; None if attributes do not travel."""
    if not message.events.attributes:
        return None

    def admits(state: HeldState, symbol: Symbol, element: int) -> bool:
        assert isinstance(state, Held)
        guards = state.guards.get(symbol)
        attributes = message.attributes(element)
        if guards is None or attributes is None:
            return True
        return any(is_passed(guard, attributes) for guard in guards)

    return admits


def _accepted(done: Run) -> tuple[Entry, ...]:
    found: dict[Entry, None] = {}
    for _, held, _ in done.active:
        assert isinstance(held, Held)
        found.update(dict.fromkeys(held.accepted()))
    return tuple(found)


def _checked(visit: Visit, message: Message) -> tuple[Path, Message]:
    """The labels of the state, which must lead to the element.

    Raises:
        PeerError: "dht.key", "dht.claim"; there is no such state, or it is not active there.
    """
    path = state_path(visit.key)
    if visit.element and visit.element not in message:
        raise PeerError("dht.claim", claim=f"there is an element {visit.element}")
    if not message.is_reached(path, visit.element):
        raise PeerError("dht.claim", claim=f"{visit.key} is active at element {visit.element}")
    return path, message

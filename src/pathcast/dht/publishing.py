"""A publisher's part in a recursive execution: it begins it, and knows when it is over.

What is missing when nothing has come back for a while is asked for again, by name. If that is in
vain, the outcome says which visits nobody has done: it is never silent.

Source: 000, section 5.2. Differs: the paper's publisher does not know the end (`credit`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import msgspec

from pathcast.dht.courier import Courier
from pathcast.dht.credit import Ledger
from pathcast.dht.events import Events, Message
from pathcast.dht.identifiers import state_path
from pathcast.dht.messages import Done, Reply
from pathcast.dht.safeguards import ALL_SAFEGUARDS, Safeguards
from pathcast.dht.shedding import Shedding
from pathcast.dht.state_messages import (
    Body,
    DoneVisit,
    Elements,
    FetchBody,
    Problem,
    Ran,
    RecExpandState,
    Visit,
    Visited,
)
from pathcast.errors import PeerError
from pathcast.limits import Limits
from pathcast.message import parse_message
from pathcast.protocol import Deliver, Effect

__all__ = [
    "START",
    "Execution",
    "Published",
    "Publishing",
    "StateWay",
    "Way",
    "checked_visits",
]

START = Visit("start", 0)
"""The visit that every execution begins with."""


class Published(msgspec.Struct, frozen=True, tag=True):
    """What became of a publication.

    Attributes:
        publication: Its name.
        unproved: Visits of which nobody said that they were done; what lies behind them may have
            been missed.
        problems: Subscriptions that could not be decided or told.
        hops: Messages in the longest chain.
        way: The same with the hops of look-ups, as if each message had gone over them.
        visits: Visits that were done.
    """

    publication: str
    unproved: tuple[Visit, ...]
    problems: tuple[Problem, ...]
    hops: int
    way: int
    visits: int

    @property
    def is_proved(self) -> bool:
        """Whether everybody has been told who had to be."""
        return not self.unproved and not self.problems


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
        is_begun: Whether the top has been run, where there are pieces.
        is_moving: Whether a credit has come back since something was asked for last.
        tries: How often something was asked for since.
    """

    publication: str
    to: str
    body: bytes
    message: Message
    ledger: Ledger
    problems: set[Problem] = field(default_factory=set)
    hops: int = 0
    way: int = 0
    is_begun: bool = False
    is_moving: bool = False
    tries: int = 0


class Way(Protocol):
    """How what is missing of an execution is asked for."""

    def ask(self, execution: Execution, is_over: Callable[[], None]) -> None:
        """Ask for all credits of an execution that are missing.

        Args:
            execution: Its ledger may be changed.
            is_over: To be called if the ledger was changed.
        """


class StateWay:
    """The way of states: each visit goes to the peer of its state.

    Args:
        publisher: Name of the peer.
        shedding: Knows of replicas.
        whole: Whether all of a message travels with every visit, or only what the visit can see.
    """

    def __init__(self, publisher: str, shedding: Shedding, *, whole: bool) -> None:
        self._publisher = publisher
        self._shedding = shedding
        self._whole = whole

    def ask(self, execution: Execution, is_over: Callable[[], None]) -> None:
        """As `Way.ask`."""
        for visit in execution.ledger.missing:
            question = partial(self._question, execution, visit)
            self._shedding.send(visit.key, execution.publication, question, 1)

    def _question(self, execution: Execution, visit: Visit, hops: int) -> RecExpandState:
        message = execution.message
        # What is gathered is cut to what all of it can see.
        is_whole = self._whole or self._shedding.gathers
        return RecExpandState(
            execution.publication,
            self._publisher,
            visit,
            message.events if is_whole else message.around(visit.element),
            int(hops > 0),
            hops,
            0,
            execution.body if self._whole else None,
        )


class Publishing:
    """Publications of those who stand behind a peer.

    Args:
        name: Of the peer.
        life: A number that no life of it had before.
        courier: For what is sent.
        way: How visits are asked for.
        out: Where effects go.
        limits: What a message may cost.
        attributes: Whether attributes travel.
        patience_seconds: Without news, before what is missing is asked for again.
        tries: How often, without news in between.
        safeguards: Only tests give others.
    """

    def __init__(
        self,
        name: str,
        life: int,
        courier: Courier,
        way: Way,
        out: list[Effect],
        limits: Limits,
        *,
        attributes: bool,
        patience_seconds: float,
        tries: int,
        safeguards: Safeguards = ALL_SAFEGUARDS,
    ) -> None:
        self._name = name
        self._life = life
        self._courier = courier
        self._way = way
        self._out = out
        self._limits = limits
        self._attributes = attributes
        self._patience_seconds = patience_seconds
        self._tries = tries
        self._safeguards = safeguards
        self._count = 0
        self._open: dict[str, Execution] = {}
        self.bodies: dict[str, bytes] = {}

    def new_name(self) -> str:
        """A name for a publication that no other has."""
        self._count += 1
        return f"{self._life} {self._count} {self._name}"

    def publish(self, body: bytes, to: str) -> str:
        """Publish a message; `Published` is delivered when it is known what became of it.

        Args:
            body: The message.
            to: Whom the outcome is for.

        Returns:
            The name of the publication.

        Raises:
            MessageError: The door refuses the message.
        """
        message = Message(Events.of(parse_message(body, self._limits), attributes=self._attributes))
        name = self.new_name()
        self._open[name] = Execution(name, to, body, message, Ledger(START))
        self.bodies[name] = body
        self._ask_for_missing(name)
        return name

    def visited(self, sender: str, asked: Visited, answer: Callable[[Reply], None]) -> None:
        """Credits came back.

        Raises:
            PeerError: "dht.claim", "dht.key"; what is said is of no visit of the message.
        """
        execution = self._open.get(asked.publication)
        if execution is None:
            answer(Done())
            return
        given_out = [self._handed(execution.message, done) for done in asked.visits]
        answer(Done())
        for done, visits in zip(asked.visits, given_out, strict=True):
            _came_back(execution, [done.visit], visits, done)
        self._check_end(asked.publication)

    def ran(self, sender: str, asked: Ran, answer: Callable[[Reply], None]) -> None:
        """Credits of pieces came back.

        Raises:
            PeerError: "dht.claim", "dht.key"; what is said is of no visit of the message.
        """
        execution = self._open.get(asked.publication)
        if execution is None:
            answer(Done())
            return
        done, handed = (
            checked_visits(execution.message, elements) for elements in (asked.done, asked.handed)
        )
        answer(Done())
        _came_back(execution, done, handed, asked)
        self._check_end(asked.publication)

    def is_open(self, publication: str) -> bool:
        """Whether a publication has no outcome yet."""
        return publication in self._open

    def fetch(self, asked: FetchBody, answer: Callable[[Reply], None]) -> None:
        """Give the message to a peer that has to decide on it."""
        answer(Body(self.bodies.get(asked.publication)))

    def _ask_for_missing(self, name: str) -> None:
        execution = self._open.get(name)
        if execution is None:
            return
        execution.tries = 1 if execution.is_moving else execution.tries + 1
        execution.is_moving = False
        if execution.tries > self._tries:
            self._end(name)
            return
        self._way.ask(execution, lambda: self._check_end(name))
        self._courier.after(self._patience_seconds, lambda: self._ask_for_missing(name))

    @property
    def under_way(self) -> int:
        """Publications that have no outcome yet."""
        return len(self._open)

    def _handed(self, message: Message, done: DoneVisit) -> list[Visit]:
        found = []
        for visit in (done.visit, *(Visit(done.visit.key + v.key, v.element) for v in done.handed)):
            path = state_path(visit.key)
            if visit.element not in message or not message.is_reached(path, visit.element):
                claim = f"{visit.key} is active at element {visit.element}"
                raise PeerError("dht.claim", claim=claim)
            found.append(visit)
        if any(not message.is_inside(visit.element, done.visit.element) for visit in found[1:]):
            raise PeerError("dht.claim", claim=f"{done.visit.key} leads to where it does not")
        return found[1:]

    def _check_end(self, name: str) -> None:
        execution = self._open.get(name)
        if execution is not None and (
            execution.ledger.is_over or not self._safeguards.counts_credits
        ):
            self._end(name)

    def _end(self, name: str) -> None:
        execution = self._open.pop(name)
        del self.bodies[name]
        is_counted = self._safeguards.counts_credits
        unproved = tuple(sorted(execution.ledger.missing)) if is_counted else ()
        self._out.append(
            Deliver(
                execution.to,
                Published(
                    name,
                    unproved,
                    tuple(sorted(execution.problems)),
                    execution.hops,
                    execution.way,
                    len(execution.ledger.back),
                ),
            )
        )


def _came_back(
    execution: Execution, done: Iterable[Visit], given_out: Iterable[Visit], report: DoneVisit | Ran
) -> None:
    for visit in done:
        if execution.ledger.came_back(visit, given_out):
            execution.is_moving = True
        given_out = ()
    execution.problems.update(report.problems)
    execution.hops = max(execution.hops, report.hops)
    execution.way = max(execution.way, report.way)


def checked_visits(message: Message, elements: Elements) -> list[Visit]:
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

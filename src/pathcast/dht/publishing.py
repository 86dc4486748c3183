"""A publisher's part in an execution: it begins it, and knows when it is over.

What is missing when nothing has come back for a while is asked for again, by name. If that is in
vain, the outcome says which visits nobody has done: it is never silent.

Source: 000, section 5.2. Differs: the paper's publisher does not know the end (`credit`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from pathcast.dht.courier import Courier
from pathcast.dht.credit import Ledger
from pathcast.dht.events import Events, EventTree
from pathcast.dht.messages import Done, Reply
from pathcast.dht.piece_messages import Body, FetchBody, Problem, Ran, Visit
from pathcast.dht.piece_publishing import Execution, PieceWay
from pathcast.dht.piece_running import checked_visits
from pathcast.kernel import parse
from pathcast.limits import Limits
from pathcast.protocol import Deliver, Effect

START = Visit("start", 0)
"""The visit that every execution begins with."""


class PublicationOutcome(msgspec.Struct, frozen=True, tag="Published"):
    """The outcome of a publication.

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


class Publishing:
    """Publications of those who stand behind a peer.

    Args:
        name: Of the peer.
        life: A number that no life of it had before.
        courier: For what is sent.
        way: How visits are asked for.
        out: Where effects go.
        limits: What a message may cost.
        patience_seconds: Without news, before what is missing is asked for again.
        tries: How often, without news in between.
    """

    def __init__(
        self,
        name: str,
        life: int,
        courier: Courier,
        way: PieceWay,
        out: list[Effect],
        limits: Limits,
        *,
        patience_seconds: float,
        tries: int,
    ) -> None:
        self._name = name
        self._life = life
        self._courier = courier
        self._way = way
        self._out = out
        self._limits = limits
        self._patience_seconds = patience_seconds
        self._tries = tries
        self._count = 0
        self._open: dict[str, Execution] = {}
        self.bodies: dict[str, bytes] = {}

    def publish(self, body: bytes, to: str) -> str:
        """Publish a message; `PublicationOutcome` is delivered when it is known what became of it.

        Args:
            body: The message.
            to: Whom the outcome is for.

        Returns:
            The name of the publication.

        Raises:
            MessageError: The door refuses the message.
        """
        message = EventTree(Events.of(parse(body, self._limits)))
        self._count += 1
        name = f"{self._life} {self._count} {self._name}"
        self._open[name] = Execution(name, to, body, message, Ledger(START))
        self.bodies[name] = body
        # In an event that tells the time: copies are used by it.
        self._courier.at_end(partial(self._ask_for_missing, name))
        return name

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
        if name in self._open:
            again = partial(self._ask_for_missing, name)
            execution.timer = self._courier.after(self._patience_seconds, again)

    @property
    def under_way(self) -> int:
        """Publications that have no outcome yet."""
        return len(self._open)

    def _check_end(self, name: str) -> None:
        execution = self._open.get(name)
        if execution is not None and execution.ledger.is_over:
            self._end(name)

    def _end(self, name: str) -> None:
        execution = self._open.pop(name)
        self._courier.cancel(execution.timer)
        del self.bodies[name]
        self._out.append(
            Deliver(
                execution.to,
                PublicationOutcome(
                    name,
                    tuple(sorted(execution.ledger.missing)),
                    tuple(sorted(execution.problems)),
                    execution.hops,
                    execution.way,
                    len(execution.ledger.back),
                ),
            )
        )


def _came_back(
    execution: Execution, done: Iterable[Visit], given_out: Iterable[Visit], report: Ran
) -> None:
    for visit in done:
        if execution.ledger.came_back(visit, given_out):
            execution.is_moving = True
        given_out = ()
    execution.problems.update(report.problems)
    execution.hops = max(execution.hops, report.hops)
    execution.way = max(execution.way, report.way)

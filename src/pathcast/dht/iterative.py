"""Procedures 2 and 3: the publisher keeps the run-time stack, asks for each visit, and notifies.

For each start of an element the states that are active there are asked what they lead to; what
comes back for the elements below waits on the stack, under the element that it is for, until its
start comes. At the end of an element its entry is popped and nothing is pushed: Procedure 2 pushes
the empty set of targets there (lines 12 to 16), after which nothing would be active at the next
sibling. States that are active at one element are asked together, elements come one after another.

Source: 000, section 5.2, procedures 2 and 3. Differs: the end event; an accepting state is asked
also where no element follows (the procedure adds its queries only with the next start event); the
publisher decides conditions on the whole message, which it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from pathcast.dht.courier import Courier
from pathcast.dht.events import Message
from pathcast.dht.identifiers import state_path
from pathcast.dht.matching import Matching
from pathcast.dht.messages import Reply
from pathcast.dht.publication_memory import PublicationMemory
from pathcast.dht.publishing import START, Published
from pathcast.dht.state_messages import Expanded, ExpandState, Problem, Visit
from pathcast.dht.states import Entry
from pathcast.errors import PeerError
from pathcast.protocol import Deliver, Effect

__all__ = ["Iterating"]


@dataclass(slots=True)
class _Stack:
    """One execution.

    Attributes:
        active: By element, states that are active there and were not asked.
        accepted: Entries that were reached.
        waiting: Answers that are outstanding for the element that is being done.
    """

    name: str
    to: str
    body: bytes
    message: Message
    active: dict[int, list[str]]
    accepted: dict[Entry, None] = field(default_factory=dict)
    unproved: list[Visit] = field(default_factory=list)
    waiting: int = 0
    visits: int = 0
    hops: int = 0
    way: int = 0
    farthest: int = 0


class Iterating:
    """Executions that the publisher drives.

    Args:
        name: Of the peer.
        courier: For what is sent.
        out: Where effects go.
        memory: Of publications.
        matching: For what is accepted.
    """

    def __init__(
        self,
        name: str,
        courier: Courier,
        out: list[Effect],
        memory: PublicationMemory,
        matching: Matching,
    ) -> None:
        self._name = name
        self._courier = courier
        self._out = out
        self._memory = memory
        self._matching = matching
        self._open: set[str] = set()

    def is_open(self, publication: str) -> bool:
        """Whether a publication has no outcome yet."""
        return publication in self._open

    def publish(self, name: str, body: bytes, message: Message, to: str) -> None:
        """Procedure 2; `Published` is delivered at the end.

        Args:
            name: Of the publication; new.
            body: The message.
            message: The same, as events.
            to: Whom the outcome is for.
        """
        self._open.add(name)
        self._next(_Stack(name, to, body, message, {START.element: [START.key]}))

    def _next(self, stack: _Stack) -> None:
        """Go on with the first element in document order at which something is active."""
        if not stack.active:
            self._notify(stack)
            return
        element = min(stack.active)
        states = stack.active.pop(element)
        stack.waiting, stack.farthest = len(states), 0
        events = stack.message.around(element)
        for key in states:
            visit = Visit(key, element)
            question = partial(self._question, stack, ExpandState(visit, events))
            self._courier.to_owner(key, question, partial(self._expanded, stack, visit))

    def _question(self, stack: _Stack, asked: ExpandState, hops: int) -> ExpandState:
        stack.farthest = max(stack.farthest, hops)
        return asked

    def _expanded(self, stack: _Stack, visit: Visit, reply: Reply | None) -> None:
        stack.waiting -= 1
        if isinstance(reply, Expanded):
            stack.visits += 1
            stack.accepted.update(dict.fromkeys(reply.accepted))
            for handed in reply.handed:
                key = visit.key + handed.key
                self._check(stack.message, visit, Visit(key, handed.element))
                states = stack.active.setdefault(handed.element, [])
                if key not in states:
                    states.append(key)
        else:
            stack.unproved.append(visit)
        if not stack.waiting:
            # There and back.
            stack.hops += 2 * (stack.farthest > 0)
            stack.way += stack.farthest + (stack.farthest > 0)
            self._next(stack)

    def _check(self, message: Message, visit: Visit, target: Visit) -> None:
        path = state_path(target.key)
        if not (
            message.is_inside(target.element, visit.element)
            and target.element in message
            and message.is_reached(path, target.element)
        ):
            raise PeerError("dht.claim", claim=f"{target.key} is active at {target.element}")

    def _notify(self, stack: _Stack) -> None:
        publication = self._memory.of(stack.name, self._name)
        publication.body = stack.body

        def settled(problems: tuple[Problem, ...]) -> None:
            outcome = Published(
                stack.name,
                tuple(sorted(stack.unproved)),
                problems,
                stack.hops,
                stack.way,
                stack.visits,
            )
            self._open.discard(stack.name)
            self._out.append(Deliver(stack.to, outcome))

        self._matching.settle(publication, tuple(stack.accepted), settled)

"""Questions to one peer that leave together, and their answers.

A peer that passes a thousand queries on, or hands on the visits of a publication, sends most of it
to the same few peers. What is asked of one within `gather_seconds`, and until the last such message
is answered, is one message: `Together`. So the busier a peer is, the more it is asked at once. The
visits of a publication are one question in it (`Visits`), with the elements that they see, each
once. Each question is taken as if it had come alone, and has an answer of its own (`Replies`), so
nothing that holds of a question depends on whether it has travelled alone.

Only questions are gathered that are answered at once: nobody waits for an answer that another
question of the same message keeps back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from pathcast.dht.asking import Asking, Then
from pathcast.dht.batches import in_batches
from pathcast.dht.events import around_all
from pathcast.dht.messages import Later, Member, Replies, Reply, SingleReply
from pathcast.dht.state_messages import (
    IndexQuery,
    RecExpandState,
    SingleQuestion,
    Together,
    Visited,
    Visits,
)

__all__ = ["Gathering", "answer_together"]

Do = Callable[[SingleQuestion, Callable[[Reply], None]], None]
_VISITS = 1024


class _Part(NamedTuple):
    """What is one question of the message, and who waits for its answers."""

    question: SingleQuestion | Visits
    then: tuple[Then, ...]


class Gathering:
    """Questions of one peer that wait to leave.

    Args:
        asking: Puts what was gathered.
        after: Does something later.
        seconds: How long the first waits for others.
    """

    def __init__(
        self,
        asking: Asking,
        after: Callable[[float, Callable[[], None]], None],
        seconds: float,
    ) -> None:
        self._asking = asking
        self._after = after
        self._seconds = seconds
        self._waiting: dict[Member | str, list[tuple[SingleQuestion, Then]]] = {}
        self._ready: dict[Member | str, list[Sequence[_Part]]] = {}
        self._open: set[Member | str] = set()
        self._is_set = False

    def add(self, to: Member | str, question: SingleQuestion, then: Then) -> None:
        """Ask a peer, with whatever else it is asked."""
        self._waiting.setdefault(to, []).append((question, then))
        if not self._is_set and to not in self._open:
            self._is_set = True
            self._after(self._seconds, self._send)

    def _send(self) -> None:
        self._is_set = False
        for to in [each for each in self._waiting if each not in self._open]:
            self._send_to(to)

    def _send_to(self, to: Member | str) -> None:
        """Send one message, if there is something; what has no room in it goes with the next."""
        asked = self._waiting.pop(to, [])
        ready = self._ready.setdefault(to, [])
        ready += in_batches(_parts(asked), _size)
        if ready:
            self._open.add(to)
            self._ask(to, ready.pop(0))
        else:
            del self._ready[to]

    def _ask(self, to: Member | str, parts: Sequence[_Part]) -> None:
        waiting = list(chain.from_iterable(part.then for part in parts))

        def answered(reply: Reply | None) -> None:
            self._open.discard(to)
            replies: Sequence[SingleReply] = ()
            if isinstance(reply, Replies) and len(reply.replies) == len(waiting):
                replies = reply.replies
            elif reply is not None:
                replies = [Later()] * len(waiting)
            else:
                # Whoever waits to be asked would wait as long, and in vain.
                waiting.extend(chain.from_iterable(p.then for p in chain(*self._ready.pop(to, []))))
                waiting.extend(then for _, then in self._waiting.pop(to, []))
            for then, its in zip_longest(waiting, replies):
                then(its)
            if to not in self._open:
                self._send_to(to)

        self._asking.ask(to, Together(tuple(part.question for part in parts)), answered)


def answer_together(asked: Together, do: Do, answer: Callable[[Reply], None]) -> None:
    """Do what was asked together; `answer` is called when all is answered.

    Raises:
        PeerError: One cannot be; those before it are taken.
    """
    questions = list(chain.from_iterable(map(_singles, asked.questions)))
    replies: list[SingleReply | None] = [None] * len(questions)
    left = len(questions)

    def answered(place: int, reply: Reply) -> None:
        nonlocal left
        assert isinstance(reply, SingleReply), reply
        left -= replies[place] is None
        replies[place] = reply
        if not left:
            answer(Replies(tuple(each for each in replies if each is not None)))

    if not questions:
        answer(Replies(()))
    for place, question in enumerate(questions):
        do(question, lambda reply, place=place: answered(place, reply))  # type: ignore[misc]


def _parts(asked: Sequence[tuple[SingleQuestion, Then]]) -> list[_Part]:
    """Each question, but the visits that go with the same events as one."""
    parts = []
    visits: dict[tuple[str, str, int], list[tuple[RecExpandState, Then]]] = {}
    for question, then in asked:
        if isinstance(question, RecExpandState):
            of_it = (question.publication, question.publisher, id(question.events))
            visits.setdefault(of_it, []).append((question, then))
        else:
            parts.append(_Part(question, (then,)))
    for rows in visits.values():
        for start in range(0, len(rows), _VISITS):
            some = rows[start : start + _VISITS]
            one = some[0][0]
            elements = [each.visit.element for each, _ in some]
            # All of the message travels, or what the visits can see of it.
            events = one.events if one.body is not None else around_all(one.events, elements)
            together = Visits(
                one.publication,
                one.publisher,
                tuple(each.visit for each, _ in some),
                tuple(each.hops for each, _ in some),
                tuple(each.way for each, _ in some),
                events,
                max(each.documents for each, _ in some),
                one.body,
            )
            parts.append(_Part(together, tuple(then for _, then in some)))
    return parts


def _singles(question: SingleQuestion | Visits) -> Iterator[SingleQuestion]:
    if not isinstance(question, Visits):
        yield question
        return
    rows = zip(question.visits, question.hops, question.way, strict=False)
    for visit, hops, way in rows:
        yield RecExpandState(
            question.publication,
            question.publisher,
            visit,
            question.events,
            hops,
            way,
            question.documents,
            question.body,
        )


def _size(part: _Part) -> int:
    """Bytes on its way, about."""
    match part.question:
        case Visits(visits=visits, events=events, body=body):
            return 100 * len(visits) + 30 * len(events.left) + len(body or b"")
        case IndexQuery(key=key, entry=entry):
            return 200 + len(key) + len(entry.query)
        case Visited(visits=done):
            return 100 + sum(100 + 40 * len(each.handed) for each in done)
    return 200

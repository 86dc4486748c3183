"""Questions to one peer that leave together, and their answers.

A peer that publishes, passes on or is told of many messages, and has many queries on their way,
asks the same peers again and again. What is asked of one within `gather_seconds`, and until the
last such message is answered, is one message, `Together`, of a megabyte at most: publications that
enter pieces, their credits, matches and queries. It has one answer, `Replies`. So the busier a peer
is, the more it is asked at once, and whoever runs pieces runs each over many publications.
Each question is taken as if it had come alone, and has a place of its own in the answer, so nothing
that holds of a question depends on whether it has travelled alone.

Only questions are gathered that are answered at once: nobody waits for an answer that another
question of the same message keeps back.

Differs: in 000 each visit of a publication is a message of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, zip_longest

from pathcast.dht.asking import Asking, Then
from pathcast.dht.batches import in_batches
from pathcast.dht.messages import Later, Member, Replies, Reply, SingleReply
from pathcast.dht.piece_messages import IndexQuery, Ran, RunPieces, SingleQuestion, Together

Do = Callable[[SingleQuestion, Callable[[Reply], None]], None]
_Asked = tuple[SingleQuestion, Then]


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
        after: Callable[[float, Callable[[], None]], object],
        seconds: float,
    ) -> None:
        self._asking = asking
        self._after = after
        self._seconds = seconds
        self._waiting: dict[Member | str, list[_Asked]] = {}
        self._ready: dict[Member | str, list[Sequence[_Asked]]] = {}
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
        ready += in_batches(asked, _size)
        if ready:
            self._open.add(to)
            self._ask(to, ready.pop(0))
        else:
            del self._ready[to]

    def _ask(self, to: Member | str, asked: Sequence[_Asked]) -> None:
        waiting = [then for _, then in asked]

        def answered(reply: Reply | None) -> None:
            self._open.discard(to)
            replies: Sequence[SingleReply] = ()
            if isinstance(reply, Replies) and len(reply.replies) == len(waiting):
                replies = reply.replies
            elif reply is not None:
                replies = [Later()] * len(waiting)
            else:
                # Whoever waits to be asked would wait as long, and in vain.
                waiting.extend(then for _, then in chain(*self._ready.pop(to, [])))
                waiting.extend(then for _, then in self._waiting.pop(to, []))
            for then, its in zip_longest(waiting, replies):
                then(its)
            if to not in self._open:
                self._send_to(to)

        self._asking.ask(to, Together(tuple(question for question, _ in asked)), answered)


def answer_together(asked: Together, do: Do, answer: Callable[[Reply], None]) -> None:
    """Do what was asked together; `answer` is called when all is answered.

    Raises:
        PeerError: One cannot be; those before it are taken.
    """
    replies: list[SingleReply | None] = [None] * len(asked.questions)
    left = len(asked.questions)

    def answered(place: int, reply: Reply) -> None:
        nonlocal left
        assert isinstance(reply, SingleReply), reply
        left -= replies[place] is None
        replies[place] = reply
        if not left:
            answer(Replies(tuple(each for each in replies if each is not None)))

    if not asked.questions:
        answer(Replies(()))
    for place, question in enumerate(asked.questions):
        do(question, lambda reply, place=place: answered(place, reply))  # type: ignore[misc]


def _size(asked: _Asked) -> int:
    """Bytes on its way, about."""
    match asked[0]:
        case IndexQuery(key=key, entry=entry):
            return 200 + len(key) + len(entry.query)
        case RunPieces(events=events):
            return 500 + 16 * len(events.name)
        case Ran(done=done, handed=handed):
            return 200 + 100 * (len(done) + len(handed))
        case _:
            return 200

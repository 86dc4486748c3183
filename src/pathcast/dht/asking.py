"""Questions to other members: each is put until it is answered, or nobody can be there to answer.

The proof of the ring's operations wants a failure detector that is right: who is said to be dead is
dead. A question is put `attempts` times, `patience_seconds` apart; that is right if a message takes
less than half of that and not all attempts are lost. A peer that is there but is no member (of that
life) says `Absent`, which counts as dead at once; so does a life whose process is known to have
ended (`ended`). Members of the base have one life, and may come back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pathcast.dht.hosting import host_of
from pathcast.dht.messages import (
    Absent,
    Answer,
    Ask,
    Get,
    Member,
    Put,
    Question,
    Reply,
    RingQuestion,
)
from pathcast.protocol import Cancel, Effect, Send, Wake

__all__ = ["Asking", "Then"]

Then = Callable[[Reply | None], None]
"""Gets the answer, or None of a dead member."""

_TIMER = "ask "
_DEAD_MAX = 4096


@dataclass(slots=True)
class _Open:
    to: str
    ask: Ask
    left: int
    then: Then


class Asking:
    """The open questions of a member.

    Args:
        out: Where effects go.
        patience_seconds: Before a question is put again.
        attempts: How often it is put.
        first: Questions are numbered from here; lives of one peer are not to use the same numbers.
        died: Called when a member was found dead.
    """

    def __init__(
        self,
        out: list[Effect],
        patience_seconds: float,
        attempts: int,
        first: int = 0,
        died: Callable[[Member], None] = lambda _: None,
    ) -> None:
        self._out = out
        self._patience = patience_seconds
        self._attempts = attempts
        self._number = first
        self._open: dict[int, _Open] = {}
        self._ended: set[str] = set()
        self._died = died
        self._dead: dict[str, int] = {}

    def ask(self, to: Member | str, what: Question, then: Then) -> None:
        """Put a question to a life of a peer, or to whichever it has; `then` is called once."""
        self._number += 1
        name, life = (to, None) if isinstance(to, str) else (to.name, to.life)
        opened = _Open(name, Ask(self._number, life, what), self._attempts, then)
        self._open[self._number] = opened
        if life and host_of(name) in self._ended:
            self._give_up(opened)
        else:
            self._put(opened)

    def reached(self, name: str) -> None:
        """There is a connection to a host now: what was asked there before may not have come."""
        self._ended.discard(name)
        for opened in self._open.values():
            if host_of(opened.to) == name:
                self._out.append(Send(opened.to, opened.ask))

    def ended(self, name: str) -> None:
        """The process of a host is not there any more, nor are the lives of its members."""
        self._ended.add(name)
        for opened in self._open.values():
            if host_of(opened.to) == name and opened.ask.life:
                self._give_up(opened)

    def answered(self, sender: str, answer: Answer) -> None:
        """An answer came; one that nobody waits for is dropped."""
        opened = self._open.get(answer.number)
        if opened is None or opened.to != sender:
            return
        del self._open[answer.number]
        self._out.append(Cancel(f"{_TIMER}{answer.number}"))
        if isinstance(answer.what, Absent):
            self._is_silent(opened)
        else:
            opened.then(answer.what)

    def wake(self, timer: str) -> bool:
        """Whether the timer was one of these, and is dealt with."""
        if not timer.startswith(_TIMER):
            return False
        opened = self._open.get(int(timer.removeprefix(_TIMER)))
        if opened is None:
            # Answered while it went off.
            pass
        elif opened.left:
            self._put(opened)
        else:
            del self._open[opened.ask.number]
            self._is_silent(opened)
        return True

    def _give_up(self, opened: _Open) -> None:
        """Its answer is that there is none, in an event of its own."""
        opened.left = 0
        self._out.append(Wake(f"{_TIMER}{opened.ask.number}", 0.0))

    def heard(self, sender: str) -> None:
        """A peer has said something: it is not dead, in some life."""
        self._dead.pop(sender, None)

    def is_dead(self, member: Member) -> bool:
        """Whether a life of a peer was found dead, and nothing was heard of the peer since."""
        return self._dead.get(member.name) == member.life

    def _is_silent(self, opened: _Open) -> None:
        # What is not answered at once may be silent because others are.
        life = opened.ask.life
        is_certain = isinstance(opened.ask.what, RingQuestion) and not isinstance(
            opened.ask.what, Get | Put
        )
        if life is not None and is_certain:
            if len(self._dead) >= _DEAD_MAX:
                del self._dead[next(iter(self._dead))]
            self._dead[opened.to] = life
        opened.then(None)
        if life is not None and is_certain:
            self._died(Member(opened.to, life))

    def _put(self, opened: _Open) -> None:
        opened.left -= 1
        self._out.append(Send(opened.to, opened.ask))
        self._out.append(Wake(f"{_TIMER}{opened.ask.number}", self._patience))

"""Questions to other members: each is put until it is answered, or nobody can be there to answer.

The proof of the ring's operations wants a failure detector that is right: who is said to be dead is
dead. A question is put `attempts` times, `patience_seconds` apart. A member that answers none of
them is silent, and is judged (`pathcast.dht.membership`). Questions whose answer the ring cannot do
without are put on until the member answers or is dead (`bury`), however long that takes; all others
have no answer.

A peer that is there but is no member (of that life) says `Absent`, which counts as dead at once; so
does a life whose process is known to have ended (`ended`). Members that stay are never dead.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Final, Protocol

from pathcast.dht.hosting import host_of
from pathcast.dht.messages import (
    Absent,
    Answer,
    Ask,
    Claims,
    Copy,
    ExpelMember,
    Fetch,
    Hold,
    Member,
    Missing,
    Question,
    Range,
    Read,
    Reply,
)
from pathcast.protocol import Cancel, Effect, Send, Wake

Then = Callable[[Reply | None], None]
"""Gets the answer, or None of a dead member."""

_TIMER = "ask "
_DEAD_MAX = 4096
_NEEDED: Final = Read | Fetch | Range | Copy | Claims | Hold | ExpelMember | Missing
"""Questions that are put until somebody has judged who does not answer them."""


class Questions(Protocol):
    """How a part of a member asks others."""

    def ask(self, to: Member | str, what: Question, then: Then) -> None:
        """Put a question to a life of a peer, or to whichever it has; `then` is called once."""

    def is_dead(self, member: Member) -> bool:
        """Whether a life of a peer is over."""


@dataclass(slots=True)
class _Open:
    to: str
    ask: Ask
    left: int
    then: Then
    is_hopeless: bool = False


class Asking:
    """The open questions of a peer.

    Args:
        out: Where effects go.
        patience_seconds: Before a question is put again.
        attempts: How often it is put.
        judge: Called with a silent member, again and again.
        first: Questions are numbered from here; lives of one peer are not to use the same numbers.
        died: Called when a member was found dead.
        stays: Members that are never dead.
    """

    def __init__(
        self,
        out: list[Effect],
        patience_seconds: float,
        attempts: int,
        judge: Callable[[Member], None],
        first: int = 0,
        died: Callable[[Member], None] = lambda _: None,
        stays: Container[Member] = (),
    ) -> None:
        self._out = out
        self._patience = patience_seconds
        self._attempts = attempts
        self._number = first
        self._open: dict[int, _Open] = {}
        self._ended: set[str] = set()
        self._died = died
        self._judge = judge
        self._stays = stays
        self._dead: dict[Member, None] = {}
        self._lives: dict[str, Member] = {}

    def ask(self, to: Member | str, what: Question, then: Then) -> None:
        """Implement `Questions.ask`."""
        self.put(to, what, then)

    def put(self, to: Member | str, what: Question, then: Then) -> int:
        """As `Questions.ask`; returns the number of the question."""
        self._number += 1
        name, life = (to, None) if isinstance(to, str) else (to.name, to.life)
        opened = _Open(name, Ask(self._number, life, what), self._attempts, then)
        self._open[self._number] = opened
        member = self._member(opened)
        if member is not None and member in self._dead:
            self._give_up(opened)
        else:
            self._put(opened)
        if member is not None:
            self._remember(member)
        return self._number

    def drop(self, number: int) -> None:
        """Put a question no more; nobody wants its answer."""
        if self._open.pop(number, None) is not None:
            self._out.append(Cancel(f"{_TIMER}{number}"))

    def reached(self, name: str) -> None:
        """There is a connection to a host now: what was asked there before may not have come."""
        self._ended.discard(name)
        for opened in self._open.values():
            if host_of(opened.to) == name:
                self._out.append(Send(opened.to, opened.ask))

    def ended(self, name: str) -> None:
        """The process of a host is not there any more, nor are the lives that its members had.

        A life that nobody has asked yet may be that of the next process.
        """
        self._ended.add(name)
        for member in [each for each in self._lives.values() if host_of(each.name) == name]:
            self.bury(member)

    def has_ended(self, name: str) -> bool:
        """Whether the process of a peer is known to have ended, and none has been reached since."""
        return host_of(name) in self._ended

    def answered(self, sender: str, answer: Answer) -> None:
        """An answer came; one that nobody waits for is dropped."""
        opened = self._open.get(answer.number)
        if opened is None or opened.to != sender:
            return
        self.drop(answer.number)
        if isinstance(answer.what, Absent):
            self._has_no_answer(opened, is_over=True)
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
        elif opened.is_hopeless:
            del self._open[opened.ask.number]
            self._has_no_answer(opened, is_over=True)
        elif opened.left:
            self._put(opened)
        elif isinstance(opened.ask.what, _NEEDED):
            self._put(opened)
            if (member := self._member(opened)) is not None:
                self._judge(member)
        else:
            del self._open[opened.ask.number]
            self._has_no_answer(opened, is_over=False)
        return True

    def heard(self, sender: str) -> None:
        """A peer has said something: the process of its host is there."""
        self._ended.discard(host_of(sender))

    def bury(self, member: Member) -> None:
        """A life is over, as was judged."""
        if self._is_new_death(member):
            self._died(member)

    def is_dead(self, member: Member) -> bool:
        """Implement `Questions.is_dead`."""
        return member in self._dead

    def _remember(self, member: Member) -> None:
        """Which life of a peer was asked last."""
        if member.name not in self._lives and len(self._lives) >= _DEAD_MAX:
            del self._lives[next(iter(self._lives))]
        self._lives[member.name] = member

    def _give_up(self, opened: _Open) -> None:
        """Its answer is that there is none, in an event of its own."""
        opened.is_hopeless = True
        self._out.append(Wake(f"{_TIMER}{opened.ask.number}", 0.0))

    def _has_no_answer(self, opened: _Open, *, is_over: bool) -> None:
        member = self._member(opened)
        is_new = is_over and member is not None and self._is_new_death(member)
        opened.then(None)
        if is_new and member is not None:
            self._died(member)

    def _is_new_death(self, member: Member) -> bool:
        """Whether a life was not known to be over, as it is from now on."""
        if member in self._dead or member in self._stays:
            return False
        if len(self._dead) >= _DEAD_MAX:
            del self._dead[next(iter(self._dead))]
        self._dead[member] = None
        for opened in self._open.values():
            if self._member(opened) == member:
                self._give_up(opened)
        return True

    def _member(self, opened: _Open) -> Member | None:
        life = opened.ask.life
        return None if life is None else Member(opened.to, life)

    def _put(self, opened: _Open) -> None:
        opened.left = max(opened.left - 1, 0)
        self._out.append(Send(opened.to, opened.ask))
        self._out.append(Wake(f"{_TIMER}{opened.ask.number}", self._patience))


class LifeAsking:
    """The questions of one life of a peer: when it is over, they have no answers any more.

    Args:
        asking: Puts them.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._open: dict[int, Then] = {}
        self._is_over = False

    def ask(self, to: Member | str, what: Question, then: Then) -> None:
        """Implement `Questions.ask`."""
        if self._is_over:
            then(None)
            return
        number = 0

        def answered(reply: Reply | None) -> None:
            del self._open[number]
            then(reply)

        # It is answered in a later event.
        number = self._asking.put(to, what, answered)
        self._open[number] = then

    def is_dead(self, member: Member) -> bool:
        """Implement `Questions.is_dead`."""
        return self._asking.is_dead(member)

    def end(self) -> None:
        """The life is over."""
        self._is_over = True
        opened, self._open = self._open, {}
        for number, then in opened.items():
            self._asking.drop(number)
            then(None)

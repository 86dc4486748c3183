"""A peer of the ring, as a `pathcast.protocol.Node`: pointers, records, and what is asked of it.

What is asked (`look_up`, `get`, `put`, `remove`, `leave`) is answered by a `Deliver` to whom it is
asked for, with an `Outcome`.

Example:
    >>> from pathcast.sim import Network
    >>> base = ("a", "b", "c", "d")
    >>> network = Network(seed=1)
    >>> for name in base:
    ...     network.add(name, lambda disk, life, name=name: Peer(name, life, base))
    >>> network.run(until=2.0)
    >>> _ = network.call("b", lambda peer, now: peer.put("start/dblp", b"1", 0, "me"))
    >>> network.run(until=3.0)
    >>> network.delivered
    [('b', Deliver(to='me', what=Outcome(key='start/dblp', reply=Stored(version=1))))]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pathcast.dht.asking import Asking
from pathcast.dht.identifiers import identifier
from pathcast.dht.messages import (
    Absent,
    Answer,
    Ask,
    Conflict,
    Done,
    Get,
    Leaving,
    Member,
    Put,
    Rectify,
    Reply,
    Stored,
    Value,
)
from pathcast.dht.records import RecordStore
from pathcast.dht.ring import CORRECT, Found, Operations, Ring
from pathcast.errors import PeerError
from pathcast.protocol import Deliver, Effect, Send, Wake

__all__ = ["Outcome", "Peer", "Settings"]

_TICK = "tick"
_RETRY = "retry "
_ATTEMPTS = 40


@dataclass(frozen=True, slots=True)
class Settings:
    """What all peers of a ring agree on.

    Attributes:
        successors: Length of successor lists (r); the base has one peer more, or more than that.
        copies: Members that hold a record.
        tick_seconds: Between two rounds of stabilisation.
        patience_seconds: Before a question is put again; more than twice a message's way.
        attempts: After so many a member is dead.
        operations: Only tests give others.
    """

    successors: int = 3
    copies: int = 3
    tick_seconds: float = 0.5
    patience_seconds: float = 0.1
    attempts: int = 3
    operations: Operations = CORRECT


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request.

    Attributes:
        key: What it was about.
        reply: None if it could not be said in time whether it was done; to repeat it is safe.
    """

    key: str
    reply: Value | Stored | Conflict | Found | Done | None


class Peer:
    """One life of a peer.

    Args:
        name: Of the peer.
        life: A number that no life of it had before. Members of the base have one life, 0.
        base: Names of the stable base, the same for all; at least `settings.successors` + 1.
        settings: The same for all.

    Attributes:
        me: This life.
        ring: Its pointers.
        records: What it holds.
        has_left: Whether it is to leave; it is no member any more when it has.
    """

    def __init__(
        self, name: str, life: int, base: Sequence[str], settings: Settings | None = None
    ) -> None:
        settings = settings or Settings()
        self.me = Member(name, 0 if name in base else life)
        self._base = [Member(other, 0) for other in base]
        self._settings = settings
        self._out: list[Effect] = []
        self._asking = Asking(self._out, settings.patience_seconds, settings.attempts)
        self.ring = Ring(
            self.me, self._asking, settings.successors, self._mend, settings.operations
        )
        self.records = RecordStore(self.ring, self._asking, settings.copies)
        self.has_left = False
        self._requests = 0
        self._retries: dict[str, Callable[[], None]] = {}
        self._contact = self.me.identifier % len(base)

    # As a node.

    def start(self, now: float) -> list[Effect]:
        """Be of the base, or begin to join."""
        if self.me in self._base:
            self.ring.begin(self._base)
        # Not all at once.
        self._out.append(Wake(_TICK, self._settings.tick_seconds * (self.me.identifier % 97) / 97))
        return self._effects()

    def receive(self, sender: str, message: object, now: float) -> list[Effect]:
        """A question or an answer.

        Raises:
            PeerError: "dht.sender"; it speaks for somebody else, or is no message of the ring.
        """
        if isinstance(message, Answer):
            self._asking.answered(sender, message)
        elif isinstance(message, Ask):
            self._asked(sender, message)
        else:
            raise PeerError("dht.sender", peer=sender, given=type(message).__name__)
        return self._effects()

    def wake(self, timer: str, now: float) -> list[Effect]:
        """A round, a question or request to be repeated."""
        if timer == _TICK:
            self._round()
        elif timer.startswith(_RETRY):
            self._retries.pop(timer)()
        else:
            self._asking.wake(timer)
        return self._effects()

    def neighbour(self, name: str, up: bool, now: float) -> list[Effect]:
        """Nothing: everybody can reach everybody, and who is dead is found by asking."""
        return []

    # What is asked of it.

    def look_up(self, key: str, to: str) -> list[Effect]:
        """Who owns a key; the outcome has `Found`."""
        self.ring.find(identifier(key), lambda found: self._deliver(to, Outcome(key, found)))
        return self._effects()

    def get(self, key: str, to: str) -> list[Effect]:
        """What is under a key; the outcome has `Value`."""
        self._request(Get(key), to, _ATTEMPTS)
        return self._effects()

    def put(self, key: str, value: bytes | None, based_on: int, to: str) -> list[Effect]:
        """Change what is under a key; the outcome has `Stored` or `Conflict`.

        Args:
            key: Any text.
            value: The new value; None removes it.
            based_on: The version that is changed; 0 if there was never anything.
            to: Whom the outcome is for.
        """
        self._requests += 1
        write = f"{self.me.life} {self._requests} {self.me.name}"
        self._request(Put(key, value, based_on, write), to, _ATTEMPTS)
        return self._effects()

    def remove(self, key: str, based_on: int, to: str) -> list[Effect]:
        """`put` without a value."""
        return self.put(key, None, based_on, to)

    def leave(self, to: str) -> list[Effect]:
        """Hand over and go; the outcome has `Done`. Members of the base do not leave."""

        def left() -> None:
            self.ring.leave()
            self._deliver(to, Outcome(self.me.name, Done()))

        if self.me not in self._base and not self.has_left:
            self.has_left = True
            if self.ring.is_member:
                self.records.hand_over(left)
            else:
                left()
        return self._effects()

    # Inside.

    def _effects(self) -> list[Effect]:
        effects = list(self._out)
        self._out.clear()
        return effects

    def _mend(self) -> None:
        self.records.repair()

    def _round(self) -> None:
        self._out.append(Wake(_TICK, self._settings.tick_seconds))
        if self.ring.is_member:
            self.ring.stabilise()
            self.ring.fix_finger()
            self.records.repair()
        elif not self.has_left:
            self._contact = (self._contact + 1) % len(self._base)
            self.ring.join(self._base[self._contact])

    def _asked(self, sender: str, ask: Ask) -> None:
        def answer(reply: Reply) -> None:
            self._out.append(Send(sender, Answer(ask.number, reply)))

        if ask.life != self.me.life or not self.ring.is_member:
            answer(Absent())
            return
        if isinstance(ask.what, Rectify | Leaving) and ask.what.member.name != sender:
            raise PeerError("dht.sender", peer=sender, given=ask.what.member.name)
        reply = self.ring.answer(ask.what)
        if reply is not None:
            answer(reply)
        else:
            self.records.answer(ask.what, answer)

    def _request(self, what: Get | Put, to: str, left: int) -> None:
        def found(where: Found | None) -> None:
            if where is None:
                replied(None)
            elif where.owner == self.me:
                self.records.answer(what, replied)
            else:
                self._asking.ask(where.owner, what, replied)

        def replied(reply: Reply | None) -> None:
            if isinstance(reply, Value | Stored | Conflict):
                self._deliver(to, Outcome(what.key, reply))
            elif left:
                self._requests += 1
                timer = f"{_RETRY}{self._requests}"
                self._retries[timer] = lambda: self._request(what, to, left - 1)
                self._out.append(Wake(timer, self._settings.patience_seconds))
            else:
                self._deliver(to, Outcome(what.key, None))

        self.ring.find(identifier(what.key), found)

    def _deliver(self, to: str, outcome: Outcome) -> None:
        self._out.append(Deliver(to, outcome))

"""Questions to whoever owns a key: looked up, put, and looked up again if it was not taken.

What a peer asks of itself is no message; it is done after the event in which it was asked, so that
a chain of such questions is no deep recursion.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial

from pathcast.dht.asking import Then
from pathcast.dht.gathering import Gathering
from pathcast.dht.messages import Later, Member, Reply
from pathcast.dht.piece_messages import PieceQuestion, SingleQuestion
from pathcast.dht.substrate import Asked, Location, Substrate
from pathcast.protocol import Cancel, Wake

_TIMER = "state "


class Courier:
    """Sends a peer's messages to owners of keys and to peers, and keeps its timers.

    Args:
        substrate: Its part of the structured overlay.
        asked: What it is asked by itself.
        retry_seconds: Before a key is looked up again.
        tries: How often it is.
        gather_seconds: How long a question waits for others to the same peer, to travel with them.

    Attributes:
        sent: Questions to others by the name of their type, not counting repetitions.
        kept: Questions that this peer was itself the owner for.
        hops: Hops of the look-ups for what was sent.
    """

    def __init__(
        self,
        substrate: Substrate,
        asked: Asked,
        retry_seconds: float,
        tries: int,
        gather_seconds: float,
    ) -> None:
        self.sent: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.hops: Counter[str] = Counter()
        self._substrate = substrate
        self._asked = asked
        self._retry_seconds = retry_seconds
        self._tries = tries
        self._ends: list[Callable[[], None]] = []
        self._own: deque[tuple[PieceQuestion, Callable[[Reply], None]]] = deque()
        self._timers: dict[str, Callable[[], None]] = {}
        self._count = 0
        self._gathering = Gathering(substrate.asking, self.after, gather_seconds)

    def to_owner(
        self,
        key: str,
        question: Callable[[int], PieceQuestion] | PieceQuestion,
        then: Callable[[Reply | None], None] = lambda _: None,
        tries: int | None = None,
    ) -> None:
        """Ask the owner of a key.

        Args:
            key: Any text.
            question: Perhaps made from the hops of the look-up (0: it is this peer).
            then: Gets the answer, or None if no owner took it in time.
            tries: How often it is looked up at most.
        """
        left = self._tries if tries is None else tries

        def found(location: Location | None) -> None:
            if location is None:
                replied(None)
                return
            is_own = location.owner == self._substrate.me
            asked = question(0 if is_own else location.hops) if callable(question) else question
            if is_own:
                self.kept[type(asked).__name__] += 1
                self._own.append((asked, replied))
            else:
                self.sent[type(asked).__name__] += 1
                self.hops[type(asked).__name__] += location.hops
                self._ask(location.owner, asked, partial(replied_by, location.owner))

        def replied_by(owner: Member, reply: Reply | None) -> None:
            if reply is None or isinstance(reply, Later):
                self._substrate.forget(owner)
            replied(reply)

        def replied(reply: Reply | None) -> None:
            if reply is not None and not isinstance(reply, Later):
                then(reply)
            elif left > 1:
                self.after(
                    self._retry_seconds, lambda: self.to_owner(key, question, then, left - 1)
                )
            else:
                then(None)

        self._substrate.find(key, found)

    def to_owners(
        self,
        keys: Sequence[str],
        question: Callable[[Sequence[str], int], PieceQuestion],
        then: Callable[[Sequence[str], Reply], None],
        tries: int | None = None,
    ) -> None:
        """Ask the owners of keys, each once; for a key that is not taken, as `to_owner`.

        Args:
            keys: Any texts.
            question: Made from the keys of one owner, and the longest of their look-ups.
            then: Gets the keys of one owner, and its answer; not for keys that nobody took.
            tries: How often a key is looked up at most.
        """
        found: dict[str, Location | None] = {}

        def one_by_one(left: Sequence[str]) -> None:
            for key in left:
                self.to_owner(key, partial(_of_one, question, key), partial(one, key), tries)

        def one(key: str, reply: Reply | None) -> None:
            if reply is not None:
                then([key], reply)

        def are_found() -> None:
            owners: dict[Member, list[str]] = {}
            for key in keys:
                location = found[key]
                if location is None:
                    one_by_one([key])
                else:
                    owners.setdefault(location.owner, []).append(key)
            for owner, its in owners.items():
                hops = [location.hops for key in its if (location := found[key]) is not None]
                is_own = owner == self._substrate.me
                asked = question(its, 0 if is_own else max(hops))
                if not is_own:
                    self.hops[type(asked).__name__] += sum(hops)
                self.to_peer(owner, asked, partial(replied, owner, its))

        def replied(owner: Member, its: Sequence[str], reply: Reply | None) -> None:
            if reply is None or isinstance(reply, Later):
                self._substrate.forget(owner)
                self.after(self._retry_seconds, lambda: one_by_one(its))
            else:
                then(its, reply)

        def has_found(key: str, location: Location | None) -> None:
            found[key] = location
            if len(found) == len(keys):
                are_found()

        for key in keys:
            self._substrate.find(key, partial(has_found, key))

    def to_peer(
        self,
        peer: Member | str,
        question: PieceQuestion,
        then: Callable[[Reply | None], None] = lambda _: None,
    ) -> None:
        """Ask a peer, in its life or in whichever; `then` gets None if it does not answer."""
        me = self._substrate.me
        if peer in (me, me.name):
            self.kept[type(question).__name__] += 1
            self._own.append((question, then))
        else:
            self.sent[type(question).__name__] += 1
            self._ask(peer, question, then)

    def to_peer_again(self, peer: str, question: PieceQuestion) -> None:
        """Tell a peer something, again as often as a key is looked up, until it has answered."""

        def tell(left: int) -> None:
            def answered(reply: Reply | None) -> None:
                if reply is None and left > 1:
                    self.after(self._retry_seconds, lambda: tell(left - 1))

            self.to_peer(peer, question, answered)

        tell(self._tries)

    def after(self, seconds: float, then: Callable[[], None]) -> str:
        """Do something later; returns what `cancel` takes."""
        self._count += 1
        timer = f"{_TIMER}{self._count}"
        self._timers[timer] = then
        self._substrate.out.append(Wake(timer, seconds))
        return timer

    def cancel(self, timer: str) -> None:
        """Do not do it, if it is not done."""
        if self._timers.pop(timer, None) is not None:
            self._substrate.out.append(Cancel(timer))

    def wake(self, timer: str) -> None:
        """A timer went off; nothing if it is none of these."""
        then = self._timers.pop(timer, None)
        if then is not None:
            then()

    def _ask(self, to: Member | str, question: PieceQuestion, then: Then) -> None:
        if isinstance(question, SingleQuestion):
            self._gathering.add(to, question, then)
        else:
            self._substrate.asking.ask(to, question, then)

    def at_end(self, then: Callable[[], None]) -> None:
        """Do something when the event is over, and what this peer has asked itself is done."""
        self._ends.append(then)

    @property
    def has_own(self) -> bool:
        """Whether this peer has asked itself something that is not done."""
        return bool(self._own or self._ends)

    def do_own(self) -> None:
        """Do what this peer has asked itself, until there is nothing left."""
        while self.has_own:
            while self._own:
                question, then = self._own.popleft()
                self._asked(self._substrate.me.name, question, then)
            ends, self._ends = self._ends, []
            for end in ends:
                end()


def _of_one(
    question: Callable[[Sequence[str], int], PieceQuestion], key: str, hops: int
) -> PieceQuestion:
    return question([key], hops)

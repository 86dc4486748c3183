"""A ring that never changes and knows all its members: look-ups without messages.

For large rings without faults, and to see what of a run is the automaton's own: nothing is sent but
what the automaton sends. Owners and hops are those of Chord with all fingers right.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pathcast.dht.asking import Asking
from pathcast.dht.identifiers import identifier
from pathcast.dht.messages import Answer, Ask, Later, Member, Reply, Value
from pathcast.dht.piece_messages import PieceQuestion
from pathcast.dht.substrate import Asked, Location
from pathcast.errors import PeerError
from pathcast.protocol import Effect, Send
from pathcast_lab.sim.hops import Fingers

__all__ = ["StaticPeer", "StaticRing"]

_PATIENCE_SECONDS = 0.1
_ATTEMPTS = 8


class StaticRing:
    """All members of a ring, in order.

    Args:
        names: Of the peers; two or more.
        successors: Length of successor lists, for hops.
        records: What is there from the beginning, by key.
    """

    def __init__(
        self,
        names: Sequence[str],
        successors: int = 3,
        records: Mapping[str, bytes] | None = None,
    ) -> None:
        self.records = dict(records or {})
        self._members = sorted((Member(name, 0) for name in names), key=lambda m: m.identifier)
        self._places = [member.identifier for member in self._members]
        places = np.array([place >> 96 for place in self._places], np.uint64)
        self._fingers = Fingers(places, successors)
        self._position = {member.name: n for n, member in enumerate(self._members)}

    def owner(self, key: str) -> Member:
        """Whom a key belongs to."""
        at = bisect_left(self._places, identifier(key))
        return self._members[at % len(self._members)]

    def hops(self, name: str, key: str) -> int:
        """Of a look-up by a peer."""
        place = np.array([identifier(key) >> 96], np.uint64)
        return int(self._fingers.hops(np.array([self._position[name]]), place)[0])


class StaticPeer:
    """A member of a `StaticRing`, as a `pathcast.dht.substrate.Substrate`.

    Args:
        name: Of the peer.
        ring: The same for all.
        asked: Gets questions about pieces.

    Attributes:
        held: Version and value by key.
    """

    settle_seconds = 0.0

    def __init__(self, name: str, ring: StaticRing, asked: Asked) -> None:
        self.me = Member(name, 0)
        self.out: list[Effect] = []
        # Nobody is judged: no question here has to have an answer.
        self.asking = Asking(self.out, _PATIENCE_SECONDS, _ATTEMPTS, lambda _: None)
        self._ring = ring
        self.held = {key: (value, 1) for key, value in ring.records.items() if self.owns(key)}
        self._asked = asked

    def start(self, now: float) -> list[Effect]:
        """Nothing."""
        return self.effects()

    def receive(self, sender: str, message: object, now: float) -> list[Effect]:
        """A question or an answer.

        Raises:
            PeerError: "dht.sender"; it is no message of the ring.
        """
        if isinstance(message, Answer):
            self.asking.answered(sender, message)
        elif isinstance(message, Ask):
            ask = message

            def answer(reply: Reply) -> None:
                self.out.append(Send(sender, Answer(ask.number, reply)))

            if isinstance(ask.what, PieceQuestion):
                self._asked(sender, ask.what, answer)
            else:
                answer(Later())
        else:
            raise PeerError("dht.sender", peer=sender, given=type(message).__name__)
        return self.effects()

    def wake(self, timer: str, now: float) -> list[Effect]:
        """A question to be repeated."""
        self.asking.wake(timer)
        return self.effects()

    def neighbour(self, name: str, up: bool, now: float) -> list[Effect]:
        """Nothing."""
        return self.effects()

    def effects(self) -> list[Effect]:
        """As of the protocol."""
        effects = list(self.out)
        self.out.clear()
        return effects

    def find(self, key: str, then: Callable[[Location | None], None]) -> None:
        """As of the protocol."""
        then(Location(self._ring.owner(key), self._ring.hops(self.me.name, key)))

    def forget(self, owner: Member) -> None:
        """As of the protocol; nothing is remembered."""

    def owns(self, key: str) -> bool:
        """As of the protocol."""
        return self._ring.owner(key) == self.me

    def read(self, key: str, then: Callable[[Value | None], None]) -> None:
        """As of the protocol."""
        then(self.kept(key))

    def is_whole(self, key: str) -> bool:
        """As of the protocol: what a peer holds is lost with it, and nobody else answers."""
        return True

    def own_keys(self) -> list[str]:
        """As of the protocol."""
        return [key for key in sorted(self.held) if self.owns(key)]

    @property
    def is_complete(self) -> bool:
        """As of the protocol."""
        return True

    def kept(self, key: str) -> Value | None:
        """As of the protocol."""
        value, version = self.held.get(key, (None, 0))
        return Value(value, version) if self.owns(key) else None

    def write(self, key: str, value: bytes, based_on: int, then: Callable[[bool], None]) -> None:
        """As of the protocol."""
        _, version = self.held.get(key, (b"", 0))
        if version == based_on:
            self.held[key] = value, version + 1
        then(version == based_on)

"""The interface of the structured overlay on which the automaton lies.

Chord (`pathcast.dht.peer.RingPeer`), Kademlia and a ring that never changes all give it; the
automaton does not know which.

Source: 000, section 2.3: "any DHT that offers the standard lookup operation".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pathcast.dht.asking import Asking
from pathcast.dht.messages import Member, Reply, Value
from pathcast.dht.piece_messages import PieceQuestion
from pathcast.protocol import Effect, Node

Asked: TypeAlias = Callable[[str, PieceQuestion, Callable[[Reply], None]], None]
"""Gets questions about pieces: the sender, the question, and the taker of the one answer."""

CLOCK_RATES = 1.1
"""How much faster one clock may run than another."""


@dataclass(frozen=True, slots=True)
class Location:
    """Whom a key belongs to.

    Attributes:
        owner: The peer.
        hops: Messages to different peers on the way to it, the one to it included; 0 to itself.
    """

    owner: Member
    hops: int


class Substrate(Node, Protocol):
    """One peer's part of a structured overlay.

    Effects that come of what is asked here are in `out`, which every event of the node gives back.
    """

    @property
    def me(self) -> Member:
        """This peer."""

    @property
    def out(self) -> list[Effect]:
        """Effects that were not given back yet."""

    @property
    def asking(self) -> Asking:
        """Questions to other peers."""

    @property
    def settle_seconds(self) -> float:
        """After `write` so long until every read, by whichever owner, sees it."""

    def effects(self) -> list[Effect]:
        """Empty `out`."""

    def find(self, key: str, then: Callable[[Location | None], None]) -> None:
        """Look up a key; None if the way was lost, which a later try may find."""

    def forget(self, owner: Member) -> None:
        """A peer that was found has not taken what belongs there: find it anew the next time."""

    def owns(self, key: str) -> bool:
        """Whether a key is this peer's, as far as it knows."""

    def read(self, key: str, then: Callable[[Value | None], None]) -> None:
        """Return the value of an own key: all changes stored `settle_seconds` before.

        None if it does not own it, or cannot tell now.
        """

    def is_whole(self, key: str) -> bool:
        """Whether what is read under a key of its own is all that was stored.

        It is not where everybody is dead who held it; then it is read only to be changed.
        """

    def own_keys(self) -> list[str]:
        """Keys of its own under which it has something."""

    @property
    def is_complete(self) -> bool:
        """Whether it has what is under all keys of its own, and no other peer has it."""

    def kept(self, key: str) -> Value | None:
        """Return this peer's value of an own key; other holders may have a newer one.

        A change that is based on it is refused then. None if it does not own the key.
        """

    def write(self, key: str, value: bytes, based_on: int, then: Callable[[bool], None]) -> None:
        """Change a key of its own that has a version; says whether it is stored, with its copies.

        If not, it may be stored all the same, or not.
        """

"""Load shedding: a state that too many publications reach is held by other peers as well.

The owner counts the publications that reach a state; the peer of the start state, which sees them
all, says how many there have been (`documents`). Over the threshold it asks others to hold a
replica, and tells whoever sends it a visit, in the answer to it (`Replicated`). They choose one of
the holders at random, by publication and state: so all who know of the replicas send the visits of
a publication to the same one, which does each once. Who does not know goes to the owner.

A replica is read for `replica_seconds`, then asked for again; a subscription is acknowledged that
much later (`pathcast.dht.indexing`), so what is published then meets it at every holder.

Source: 000, section 6.4. Differs: the notice goes with answers, to those who need it; the paper's
goes to all other peers, n - 1 messages each, which it does not count.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pathcast.dht.courier import Courier
from pathcast.dht.identifiers import state_path
from pathcast.dht.messages import Done, Later, Member, Replicated, Reply, Value
from pathcast.dht.state_messages import FetchState, HoldReplica, RecExpandState
from pathcast.dht.states import Held, decoded_state
from pathcast.dht.substrate import Location, Substrate

__all__ = ["Shedding", "SheddingSettings"]


@dataclass(frozen=True, slots=True)
class SheddingSettings:
    """When a state is replicated.

    Attributes:
        share: Of the publications that reach it.
        replicas: How many are made.
        documents_min: Before so many publications nothing is done.
        replica_seconds: How long a replica is used before it is read again.
    """

    share: float = 0.1
    replicas: int = 10
    documents_min: int = 10
    replica_seconds: float = 1.0


@dataclass(slots=True)
class _Replica:
    held: Held | None = None
    until: float = 0.0


class Shedding:
    """What one peer knows of replicas.

    Args:
        substrate: For keys.
        courier: For what is sent.
        settings: The same for all; None: nothing is replicated.
        now: The time.

    Attributes:
        notices: Answers in which somebody was told of replicas.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        settings: SheddingSettings | None,
        now: Callable[[], float],
    ) -> None:
        self.notices = 0
        self._substrate = substrate
        self._courier = courier
        self._settings = settings
        self._now = now
        self._hits: Counter[str] = Counter()
        self._documents = 0
        self._mine: dict[str, tuple[Member, ...]] = {}
        self._known: dict[str, tuple[Member, ...]] = {}
        self._replicas: dict[str, _Replica] = {}

    @property
    def gathers(self) -> bool:
        """Whether visits travel together."""
        return self._courier.gathers

    # Where visits go.

    def send(
        self,
        key: str,
        publication: str,
        question: Callable[[int], RecExpandState],
        tries: int | None = None,
    ) -> None:
        """Send a visit to one of the peers that hold its state."""
        holders = self._known.get(key, ())
        choice = random.Random(f"{publication} {key}").randrange(len(holders) + 1)
        if choice == 0:
            self._courier.to_owner(key, question, lambda reply: self._told(key, reply), tries)
            return

        def answered(reply: Reply | None) -> None:
            if reply is None or isinstance(reply, Later):
                self._known.pop(key, None)
                self._courier.to_owner(key, question, lambda reply: self._told(key, reply), tries)

        holder = holders[choice - 1]
        self._courier.to_peer(holder, question(int(holder != self._substrate.me)), answered)

    # At the owner.

    def reached(self, asked: RecExpandState) -> int:
        """A publication has reached a state of this peer for the first time.

        Returns:
            How many publications there have been, as far as is known.
        """
        key = asked.visit.key
        self._hits[key] += 1
        documents = asked.documents
        if key == "start":
            self._documents += 1
            documents = self._documents * (1 + len(self._mine.get(key, ())))
        settings = self._settings
        if (
            settings is not None
            and key not in self._mine
            and key not in self._replicas
            and documents >= settings.documents_min
            and self._hits[key] > settings.share * documents
        ):
            self._mine[key] = ()
            for number in range(settings.replicas):
                self._substrate.find(f"{key} {number}", lambda found: self._ask_to_hold(key, found))
        return documents

    def answer(self, key: str) -> Reply:
        """The answer to a visit that is taken: who else may be asked the next time."""
        holders = self._mine.get(key)
        if not holders:
            return Done()
        self.notices += 1
        return Replicated(holders)

    def fetch(self, asked: FetchState, answer: Callable[[Reply], None]) -> None:
        """Give a state of this peer to the holder of a replica."""

        def has_read(value: Value | None) -> None:
            is_whole = self._substrate.is_whole(asked.key)
            answer(value if value is not None and is_whole else Later())

        self._substrate.read(asked.key, has_read)

    # At the holder of a replica.

    def hold(self, asked: HoldReplica, answer: Callable[[Reply], None]) -> None:
        """Hold a replica of a state."""
        state_path(asked.key)
        self._replicas.setdefault(asked.key, _Replica())
        answer(Done())

    def holds(self, key: str) -> bool:
        """Whether this peer has been asked to hold a replica."""
        return key in self._replicas

    def read(self, key: str, then: Callable[[Held | None], None]) -> None:
        """The state of a replica; None if its owner cannot be read."""
        replica = self._replicas[key]
        assert self._settings is not None
        until = self._now() + self._settings.replica_seconds
        if self._now() < replica.until:
            then(replica.held)
            return

        def fetched(reply: Reply | None) -> None:
            if isinstance(reply, Value):
                replica.held = Held.of(state_path(key), decoded_state(reply.value))
                replica.until = until
            then(replica.held if isinstance(reply, Value) else None)

        self._courier.to_owner(key, FetchState(key), fetched)

    def _ask_to_hold(self, key: str, found: Location | None) -> None:
        if found is None or found.owner in (*self._mine[key], self._substrate.me):
            return

        def holds(reply: Reply | None) -> None:
            if isinstance(reply, Done):
                self._mine[key] = (*self._mine[key], found.owner)

        self._courier.to_peer(found.owner, HoldReplica(key), holds)

    def _told(self, key: str, reply: Reply | None) -> None:
        if isinstance(reply, Replicated):
            self._known[key] = reply.holders

"""Filtering peers on a structured overlay, with subscriptions, publications and what must come.

What must come of a publication is what one process with all subscriptions says of the message:
those that were acknowledged before it was published and not taken back before its outcome. Nothing
else may come: only subscriptions that were there, or on their way in or out, and that the message
satisfies. An id may be used again, with the same query or another one, once the subscription that
had it is gone or its peer has lost its disk; each use is a life of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.hosting import PeerHost, disk_of, host_of, virtual_names
from pathcast.dht.peer import Settings
from pathcast.dht.publishing import PublicationOutcome
from pathcast.dht.subscriptions import Matched, NotAcknowledged, Subscribed, Unsubscribed
from pathcast.dht.substrate import Asked, Substrate
from pathcast.model import Query
from pathcast.protocol import Deliver, Effect, Node
from pathcast.registry import Registry
from pathcast_lab.sim.counting import CountedMessages
from pathcast_lab.sim.faults import NO_FAULTS, Faults
from pathcast_lab.sim.kademlia import KademliaPeer
from pathcast_lab.sim.network import Network
from pathcast_lab.sim.ring_world import RingWorld
from pathcast_lab.sim.static_ring import StaticPeer, StaticRing
from pathcast_papers import answered, instead_of_the_kernel

__all__ = ["FilteringWorld", "LostMatch"]


def _filtering(
    below: Callable[[Asked], Substrate],
    settings: FilteringSettings | None,
    disk: Mapping[str, bytes],
    life: int,
) -> Node:
    return FilteringPeer(below, life, disk, settings)


def _hosted(
    host: str,
    below: Mapping[str, Callable[[Asked], Substrate]],
    settings: FilteringSettings | None,
    disk: Mapping[str, bytes],
    life: int,
) -> Node:
    members = {
        name: FilteringPeer(its, life, disk_of(disk, name), settings) for name, its in below.items()
    }
    return PeerHost(host, members)


class LostMatch(AssertionError):
    """What was delivered is not what it has to be; says what, and how it was published."""


@dataclass(slots=True, eq=False)
class _Standing:
    """One life of a subscription id."""

    name: str
    peer: str
    query: str
    asked: float
    acknowledged: float | None = None
    left: float | None = None
    gone: float | None = None


@dataclass(slots=True)
class _Publication:
    message: bytes
    at: float
    matches: list[str] = field(default_factory=list)
    outcome: PublicationOutcome | None = None
    until: float | None = None


class FilteringWorld:
    """Peers that filter, and what was asked of them.

    Made by `on_chord` or `on_static_ring`.

    Attributes:
        network: In which they are.
        names: Of the peers.
        counted: What was sent.
        standing: The latest life of each subscription id.
        past: Lives of ids that were used again.
        publications: In the order in which they were published.
    """

    def __init__(self, namespaces: Mapping[str, str] | None = None) -> None:
        self.namespaces = dict(namespaces or {})
        self.names: list[str] = []
        self.standing: dict[str, _Standing] = {}
        self.past: list[_Standing] = []
        self.publications: list[_Publication] = []
        self._matched: dict[str, list[_Standing]] = {}

    @classmethod
    def on_chord(
        cls,
        seed: int,
        peers: int,
        filtering: FilteringSettings | None = None,
        ring: Settings | None = None,
        faults: Faults = NO_FAULTS,
        namespaces: Mapping[str, str] | None = None,
    ) -> FilteringWorld:
        """On Chord, whose invariant is checked after every event; `ring` is the ring of it.

        Args:
            seed: Of all that is drawn.
            peers: How many, those of the base, which come first, included.
            filtering: Of all peers.
            ring: Of all peers.
            faults: Of the network.
            namespaces: Of all queries.
        """
        world = cls(namespaces)
        world.ring = RingWorld(
            seed,
            ring,
            faults,
            in_bytes=True,
            on_deliver=world._take,
            on_end=world._end,
            above=lambda life, disk, below: FilteringPeer(below, life, disk, filtering),
        )
        world.network, world.counted, world._ask = (
            world.ring.network,
            world.ring.counted,
            world.ring.ask,
        )
        world.names = list(world.ring.base)
        for number in range(peers - len(world.names)):
            # Churn calls newcomers p1, p2, ...
            world.names.append(f"f{number}")
            world.ring.add(world.names[-1])
        return world

    @classmethod
    def on_static_ring(
        cls,
        seed: int,
        peers: int,
        filtering: FilteringSettings | None = None,
        faults: Faults = NO_FAULTS,
        namespaces: Mapping[str, str] | None = None,
        *,
        virtual: int = 0,
        records: Mapping[str, bytes] | None = None,
    ) -> FilteringWorld:
        """On a ring that never changes, where look-ups cost nothing; as `on_chord`.

        Args:
            seed: Of all that is drawn.
            peers: How many.
            filtering: Of all peers.
            faults: Of the network.
            namespaces: Of all queries.
            virtual: So many members each peer has; 0: it is one itself.
            records: What is there from the beginning, by key.
        """
        world = cls(namespaces)
        hosts = [f"p{number}" for number in range(peers)]
        names = [name for host in hosts for name in virtual_names(host, virtual)]
        world.names = names or hosts
        world.counted = CountedMessages()
        world.network = Network(
            seed, faults, through=world.counted, on_deliver=world._take, on_end=world._end
        )
        ring = StaticRing(world.names, records=records)
        for host in hosts:
            below = {name: partial(StaticPeer, name, ring) for name in virtual_names(host, virtual)}
            if virtual:
                world.network.add(host, partial(_hosted, host, below, filtering))
            else:
                alone = partial(StaticPeer, host, ring)
                world.network.add(host, partial(_filtering, alone, filtering))
        world._ask = world._ask_directly
        return world

    @classmethod
    def on_kademlia(
        cls,
        seed: int,
        peers: int,
        filtering: FilteringSettings | None = None,
        faults: Faults = NO_FAULTS,
        namespaces: Mapping[str, str] | None = None,
    ) -> FilteringWorld:
        """On Kademlia, whose first four peers are its base; as `on_chord`."""
        world = cls(namespaces)
        world.names = [f"p{number}" for number in range(peers)]
        world.counted = CountedMessages()
        world.network = Network(
            seed, faults, through=world.counted, on_deliver=world._take, on_end=world._end
        )
        for name in world.names:

            def begin(disk: Mapping[str, bytes], life: int, name: str = name) -> Node:
                below = partial(KademliaPeer, name, life, world.names[:4])
                return FilteringPeer(below, life, disk, filtering)

            world.network.add(name, begin)
        world._ask = world._ask_directly
        return world

    network: Network
    counted: CountedMessages
    ring: RingWorld
    _ask: Callable[[str, Callable[[FilteringPeer], Sequence[Effect]]], bool]

    def _ask_directly(
        self, name: str, request: Callable[[FilteringPeer], Sequence[Effect]]
    ) -> bool:
        def of(node: Node, now: float) -> Sequence[Effect]:
            if isinstance(node, PeerHost):
                return node.ask(name, of_member, now)
            return of_member(node)

        def of_member(node: Node) -> Sequence[Effect]:
            assert isinstance(node, FilteringPeer)
            return request(node)

        return self.network.call(host_of(name), of)

    # What is done.

    def run(self, seconds: float) -> None:
        """Let time go on."""
        self.network.run(self.network.now + seconds)

    def run_until_told(self, seconds_max: float = 600.0) -> None:
        """Let time go on until every publication has an outcome, or for so long."""
        end = self.network.now + seconds_max
        while self.network.now < end and any(one.outcome is None for one in self.publications):
            self.run(1.0)

    def subscribe(self, peer: str, subscription: str, query: str) -> None:
        """Subscribe at a peer that runs, by a new id or one that nobody uses any more."""
        before = self.standing.get(subscription)
        if before is not None:
            assert before.gone is not None, f"{subscription} is in use"
            self.past.append(before)
        self.standing[subscription] = _Standing(subscription, peer, query, self.network.now)
        self._ask(peer, lambda node: node.subscribe(subscription, query, "client", self.namespaces))

    def _end(self, peer: str, disk_survives: bool) -> None:
        """The subscriptions of a peer that has lost its disk are gone, and told to nobody."""
        if disk_survives:
            return
        for standing in self.standing.values():
            if host_of(standing.peer) == peer and standing.gone is None:
                standing.left = standing.left or self.network.now
                standing.gone = self.network.now

    def unused(self) -> list[str]:
        """Ids whose subscriptions are gone, so that they can be used again."""
        return [name for name, standing in self.standing.items() if standing.gone is not None]

    def unsubscribe(self, subscription: str) -> None:
        """Take a subscription back."""
        standing = self.standing[subscription]
        standing.left = self.network.now
        self._ask(standing.peer, lambda node: node.unsubscribe(subscription))

    def publish(self, peer: str, message: bytes) -> None:
        """Publish at a peer that runs."""
        to = f"publisher {len(self.publications)}"
        self.publications.append(_Publication(message, self.network.now))
        self._ask(peer, lambda node: node.publish(message, to))

    # What must come of it.

    def not_in_force(self) -> list[str]:
        """Subscriptions that are not acknowledged, or not gone that were taken back."""
        return [
            name
            for name, standing in self.standing.items()
            if (standing.acknowledged if standing.left is None else standing.gone) is None
        ]

    def check(self) -> int:
        """Whether what came is what had to.

        Returns:
            How many matches had to come of publications that were proved.

        Raises:
            LostMatch: It is not.
        """
        index = answered(instead_of_the_kernel, Registry, namespaces=self.namespaces)
        lives = {
            str(number): life for number, life in enumerate([*self.past, *self.standing.values()])
        }
        index.add(Query(number, life.query) for number, life in lives.items())
        messages = [publication.message for publication in self.publications]
        answers = index.match(messages)
        return sum(
            self._check(place, publication, [lives[number] for number in answer.query_ids])
            for place, (publication, answer) in enumerate(
                zip(self.publications, answers, strict=True)
            )
        )

    def _check(self, place: int, publication: _Publication, satisfied: list[_Standing]) -> int:
        outcome, until = publication.outcome, publication.until
        if outcome is None or until is None:
            raise LostMatch(f"publication {place} has no outcome")
        found = self._matched.get(outcome.publication, [])
        must: set[_Standing] = set()
        may: set[_Standing] = set()
        for one in satisfied:
            if one.asked <= until and (one.gone is None or one.gone > publication.at):
                may.add(one)
            is_in_force = one.acknowledged is not None and one.acknowledged <= publication.at
            if is_in_force and (one.left is None or one.left > until):
                must.add(one)
        if len(set(found)) != len(found):
            raise LostMatch(f"publication {place} was told twice: {found}")
        if not set(found) <= may:
            raise LostMatch(f"publication {place} matched {set(found) - may}, wrongly")
        if outcome.is_proved and not must <= set(found):
            missed = must - set(found)
            raise LostMatch(
                f"publication {place} at {publication.at} missed {missed}: {publication}"
            )
        return len(must) if outcome.is_proved else 0

    def _take(self, peer: str, given: Deliver) -> None:
        now = self.network.now
        match given.what:
            case Subscribed(subscription):
                standing = self.standing[subscription]
                standing.acknowledged = standing.acknowledged or now
            case Unsubscribed(subscription):
                self.standing[subscription].gone = now
            case Matched(subscription, publication):
                self._matched.setdefault(publication, []).append(self.standing[subscription])
            case PublicationOutcome():
                of_it = self.publications[int(given.to.split()[1])]
                of_it.outcome, of_it.until = given.what, now
            case NotAcknowledged():
                pass

"""A ring of peers under churn, with the invariant checked after every event.

An event that changes no list and no membership cannot break it, so nothing is computed then.
Crashes and leavings keep to the operating assumption of the proof: nobody may be left without a
live successor, in the list that it has or in one that is on its way to it (`may_go`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathcast.dht.messages import Answer, Member, RouteReply, State
from pathcast.dht.peer import RingPeer, Settings
from pathcast.dht.ring import Ring
from pathcast.dht.substrate import Asked
from pathcast.protocol import Deliver, Effect, Node, Send
from pathcast_lab.sim.counting import CountedMessages
from pathcast_lab.sim.faults import NO_FAULTS, Faults
from pathcast_lab.sim.invariant import broken, not_ideal
from pathcast_lab.sim.network import Network

__all__ = ["Above", "BrokenRing", "RingWorld"]

Above = Callable[[int, Mapping[str, bytes], Callable[[Asked], RingPeer]], Node]
"""Makes a node from a life, a disk, and what makes the peer that it lies on."""


class BrokenRing(AssertionError):
    """The invariant does not hold; says since when, what, and the last lines of the trace."""


@dataclass(frozen=True, slots=True)
class _OnItsWay:
    """Successors that somebody may have tomorrow."""

    since: float
    to: str
    successors: tuple[Member, ...]


class _Watched:
    """A node with a peer in it whose every event is followed by the check."""

    def __init__(self, node: Node, peer: RingPeer, world: RingWorld) -> None:
        self.node = node
        self.peer = peer
        self._world = world

    def start(self, now: float) -> Sequence[Effect]:
        return self._after(lambda: self.node.start(now))

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        return self._after(lambda: self.node.receive(sender, message, now))

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        return self._after(lambda: self.node.wake(timer, now))

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        return self._after(lambda: self.node.neighbour(name, up, now))

    def asked(self, request: Callable[[Any], Sequence[Effect]]) -> Sequence[Effect]:
        return self._after(lambda: request(self.node))

    def _after(self, event: Callable[[], Sequence[Effect]]) -> Sequence[Effect]:
        before = self.peer.ring.successors
        effects = event()
        self._world.sends(self.peer, effects)
        if before != self.peer.ring.successors:
            self._world.check()
        return effects


class RingWorld:
    """A network of peers with a stable base.

    Args:
        seed: Of the network and of `churn`.
        settings: Of all peers.
        faults: Of the network.
        base: How many peers never go; None: one more than successors.
        in_bytes: Whether messages are encoded and decoded on the way.
        above: Makes the node that a peer is part of, given name, life, disk and what makes the
            peer; None: the peer is the node.
        on_deliver: As for `Network`.
        on_end: As for `Network`.

    Attributes:
        network: The network.
        base: Names of the base.
        checks: How often the invariant was computed.
        counted: What was sent, if it is encoded.
    """

    def __init__(
        self,
        seed: int,
        settings: Settings | None = None,
        faults: Faults = NO_FAULTS,
        *,
        base: int | None = None,
        in_bytes: bool = False,
        above: Above | None = None,
        on_deliver: Callable[[str, Deliver], None] | None = None,
        on_end: Callable[[str, bool], None] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.counted = CountedMessages()
        self._above = above
        through = self.counted if in_bytes else None
        self.network = Network(seed, faults, through=through, on_deliver=on_deliver, on_end=on_end)
        self.checks = 0
        self._way_seconds = faults.delay_seconds[1] * (faults.slow_factor if faults.slow else 1) + (
            faults.reorder_seconds if faults.reorder else 0
        )
        self._on_their_way: list[_OnItsWay] = []
        self._random = random.Random(f"churn {seed}")
        self._peers = 0
        self._fallback: frozenset[Member] = frozenset()
        # All of the base are there from the first moment.
        self._is_complete = False
        self.base = tuple(f"b{number}" for number in range(base or self.settings.successors + 1))
        for name in self.base:
            self.add(name)
        self._is_complete = True
        self.check()

    # What is done to it.

    def add(self, name: str) -> None:
        """Begin a peer, which joins by way of the base."""
        self.network.add(name, lambda disk, life: self._node(name, life, disk))

    def ask(self, name: str, request: Callable[[Any], Sequence[Effect]]) -> bool:
        """Ask something of a peer (`put`, `leave`, ...)."""
        return self.network.call(name, lambda node, _: _watched(node).asked(request))

    def crash(self, name: str) -> None:
        """End a peer, with all it has; the check follows."""
        self.network.crash(name, disk=False)
        self.check()

    def split(self, *sides: Sequence[str]) -> None:
        """Split the network as `Network.split` does; whole successor lists can be expelled then."""
        self._fallback = frozenset(Member(name, 0) for name in self.base)
        self.network.split(*sides)

    def churn(
        self, until: float, changes: int, peers_max: int = 14, spared: Sequence[str] = ()
    ) -> None:
        """Let so many joins, crashes, leavings and restarts happen until then, at random times."""
        start = self.network.now
        for _ in range(changes):
            at = self._random.uniform(start, until)
            self.network.at(at, lambda: self._change(peers_max, spared))
        self.network.run(until)

    def settle(self, seconds: float = 30.0) -> None:
        """Let nothing happen until the ring is ideal.

        Raises:
            BrokenRing: It is not, after that time.
        """
        end = self.network.now + seconds
        while (why := not_ideal(self.rings(), self.settings.successors)) is not None:
            if self.network.now >= end:
                raise BrokenRing(f"not ideal after {seconds} s: {why}\n{self.network.trace()}")
            self.network.run(self.network.now + self.settings.tick_seconds)

    # What is seen of it.

    def peer(self, name: str) -> RingPeer:
        """A peer that runs."""
        return _watched(self.network.nodes[name]).peer

    def rings(self) -> list[Ring]:
        """Pointers of all peers that run and have not left."""
        return [peer.ring for peer in self._running() if peer.ring.is_member or not peer.has_left]

    def may_go(self, name: str) -> bool:
        """Whether a peer may fail under the operating assumption."""
        if name in self.base or name not in self.network.nodes:
            return False
        others = [peer for peer in self._running() if peer.ring.is_member and peer.me.name != name]
        # Who is about to leave stays for nobody.
        live = {peer.me for peer in others if not peer.has_left}
        since = self.network.now - self._way_seconds
        self._on_their_way = [way for way in self._on_their_way if way.since >= since]
        lists = [peer.ring.successors for peer in others]
        lists += [way.successors for way in self._on_their_way if way.to != name]
        return all(any(member in live for member in successors) for successors in lists)

    def check(self) -> None:
        """Check the invariant.

        Raises:
            BrokenRing: It does not hold.
        """
        if not self._is_complete:
            return
        self.checks += 1
        why = broken(self.rings(), self.settings.successors, self._fallback)
        if why is not None:
            raise BrokenRing(f"at {self.network.now:.4f}: {why}\n{self.network.trace()}")

    def sends(self, peer: RingPeer, effects: Sequence[Effect]) -> None:
        """Remember lists of successors that are sent."""
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Answer):
                what = effect.message.what
                if isinstance(what, State):
                    successors = (peer.me, *what.successors)[: self.settings.successors]
                elif isinstance(what, RouteReply) and what.done:
                    successors = what.members
                else:
                    continue
                self._on_their_way.append(_OnItsWay(self.network.now, effect.to, successors))

    def _running(self) -> list[RingPeer]:
        return [_watched(node).peer for node in self.network.nodes.values()]

    def _node(self, name: str, life: int, disk: Mapping[str, bytes]) -> Node:
        made: list[RingPeer] = []

        def peer(asked: Asked | None = None) -> RingPeer:
            made.append(RingPeer(name, life, self.base, self.settings, asked))
            return made[0]

        node = self._above(life, disk, peer) if self._above is not None else peer()
        return _Watched(node, made[0], self)

    def _change(self, peers_max: int, spared: Sequence[str]) -> None:
        running = sorted(set(self.network.nodes).difference(self.base, spared))
        if len(self.network.nodes) < peers_max and (not running or self._draw(0.5)):
            gone = sorted(set(self.network.disks) - set(self.network.nodes))
            if gone and self._draw(0.5):
                self.network.restart(self._random.choice(gone))
            else:
                self._peers += 1
                self.add(f"p{self._peers}")
        elif running:
            name = self._random.choice(running)
            if self.peer(name).has_left:
                self.network.crash(name, disk=False)
            elif self.may_go(name):
                if self._draw(0.3):
                    leaving = self.peer(name)
                    self.ask(name, lambda _: leaving.leave("operator"))
                else:
                    self.crash(name)

    def _draw(self, share: float) -> bool:
        return self._random.random() < share


def _watched(node: object) -> _Watched:
    assert isinstance(node, _Watched)
    return node

"""A few brokers over perfect links, every order of whose messages can be followed.

The links are those that `pathcast.overlay.link` makes of the real ones: in order and once, until a
session ends, which may happen at any moment as well (`resets`). What is asked of brokers (`todo`)
happens at any moment, in any order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from pathcast.overlay.broker import BrokerState
from pathcast.overlay.broker_settings import ProtocolSettings, Trees
from pathcast.overlay.content import Content, DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery, InForce
from pathcast.overlay.messages import Payload, SourceEntry
from pathcast.protocol import Deliver
from pathcast_lab.sim.from_scratch import from_scratch
from pathcast_lab.sim.toy_content import TOY, results

__all__ = ["BrokerModel", "Publish", "Subscribe"]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A subscription is asked for."""

    host: str
    name: str
    profile: str


@dataclass(frozen=True, slots=True)
class Publish:
    """A message is published."""

    root: str
    body: bytes


@dataclass(frozen=True, slots=True)
class _Arrive:
    sender: str
    to: str


@dataclass(frozen=True, slots=True)
class _Reset:
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class _Work:
    """A broker runs its local queries."""

    broker: str


Move = Subscribe | Publish | _Arrive | _Reset | _Work


@dataclass
class BrokerModel:
    """Brokers, what is on the way between them, and what is still to be asked.

    Args:
        links: Between which brokers.
        todo: Subscriptions and messages.
        resets: Links whose session may end once, at any moment, with all that is on the way.
        trees: See `ProtocolSettings`.
        defers: Local queries are run at any moment; else as soon as there is something to be run.
        part_bytes: See there.
        is_reduced: Orders that make no difference are followed once: what has come to a broker with
            one neighbour arrives at once, if nothing else can happen to this broker before and
            nobody looks at it (a persistent set of one move; Godefroid, Partial-Order Methods,
            LNCS 1032, 1996). What comes of it is the same.
    """

    links: tuple[tuple[str, str], ...]
    todo: list[Subscribe | Publish]
    resets: list[tuple[str, str]] = field(default_factory=list)
    trees: Trees = "spanning"
    defers: bool = False
    part_bytes: int = ProtocolSettings().part_bytes
    content: Content = TOY
    is_reduced: bool = False
    brokers: dict[str, BrokerState] = field(default_factory=dict)
    on_the_way: dict[tuple[str, str], deque[Payload]] = field(default_factory=dict)
    asked: dict[str, set[str]] = field(default_factory=dict)
    in_force: dict[str, Subscribe] = field(default_factory=dict)
    due: dict[str, list[str]] = field(default_factory=dict)
    delivered: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = sorted({name for link in self.links for name in link})
        for n, name in enumerate(names, 1):
            near = {b if a == name else a: 1 for a, b in self.links if name in (a, b)}
            self.brokers[name] = BrokerState(
                name,
                near,
                self.content,
                {},
                n,
                partial(self._send, name),
                partial(self._has_room, name),
                names,
                ProtocolSettings(self.trees, part_bytes=self.part_bytes),
            )
        self.on_the_way = {pair: deque() for a, b in self.links for pair in ((a, b), (b, a))}
        for broker in self.brokers.values():
            broker.start(0.0)
        for a, b in self.links:
            self.brokers[a].session_began(b)
            self.brokers[b].session_began(a)
        for root in sorted({one.root for one in self.todo if isinstance(one, Publish)}):
            self.brokers[root].register_source("source", SourceEntry())
        self._calm()

    def moves(self) -> Sequence[Move]:
        """What can happen next."""
        alone = self._alone() if self.is_reduced and not self.defers else None
        if alone is not None:
            return [alone]
        return [
            *(_Arrive(a, b) for (a, b), payloads in sorted(self.on_the_way.items()) if payloads),
            *self.todo,
            *(_Reset(a, b) for a, b in self.resets),
            *(_Work(name) for name, one in sorted(self.brokers.items()) if one.local.has_work),
        ]

    def _alone(self) -> _Arrive | None:
        """What happens to a broker whatever the others do first, and is seen by none of them."""
        asked = {one.host if isinstance(one, Subscribe) else one.root for one in self.todo}
        is_published = not any(isinstance(one, Publish) for one in self.todo)
        for (sender, to), payloads in sorted(self.on_the_way.items()):
            ends = [link for link in self.links if to in link]
            # A message is due to whoever is in force when it is published.
            is_seen = not is_published and self.asked.get(to, set()) - self.in_force.keys()
            is_open = to in asked or is_seen or any(to in reset for reset in self.resets)
            if payloads and len(ends) == 1 and not is_open:
                return _Arrive(sender, to)
        return None

    def do(self, move: object) -> None:
        """It happens."""
        match move:
            case _Arrive(sender, to):
                payload = self.on_the_way[sender, to].popleft()
                self.brokers[to].hear(sender, payload)
            case Subscribe(host, name, profile):
                self.todo.remove(move)
                self.asked.setdefault(host, set()).add(name)
                self.brokers[host].subscribe(name, name, DeliveryProfile(profile))
            case Publish(root, body):
                self.todo.remove(move)
                message = body.decode()
                self.due[message] = [
                    name for name, one in self.in_force.items() if results(body, one.profile)
                ]
                self.brokers[root].publish("source", message, body)
            case _Reset(a, b):
                self.resets.remove((a, b))
                self.on_the_way[a, b].clear()
                self.on_the_way[b, a].clear()
                self.brokers[a].session_began(b)
                self.brokers[b].session_began(a)
            case _Work(name):
                self.brokers[name].local.work()
        self._after()

    def check_end(self) -> None:
        """Nothing lost, nothing stale, nobody stands still."""
        self.defers = False
        self._calm()
        for message, names in self.due.items():
            for name in names:
                assert message in self.delivered.get(name, []), f"{message} is lost to {name}"
        for name, broker in self.brokers.items():
            for plane in broker.planes.values():
                for peer, told in from_scratch(plane.interests).items():
                    assert plane.interests.told(peer) == told, f"{name} told {peer} what is stale"
            for root, stream in broker.streams.items():
                assert stream.cursor == self.brokers[root].streams[root].at, f"{name} stands still"
            assert broker.subscriptions.names() == [
                one for one, asked in sorted(self.in_force.items()) if asked.host == name
            ], f"not all of {name} is in force"

    def _send(self, sender: str, to: str, payload: Payload) -> None:
        self.on_the_way[sender, to].append(payload)

    def _has_room(self, sender: str, to: str) -> bool:
        return True

    def _after(self) -> None:
        for name, broker in self.brokers.items():
            broker.rewind()
            broker.finish()
            while broker.local.has_work and not self.defers:
                broker.local.work()
            _, given = broker.outcome.taken()
            for one in given:
                if isinstance(one, Deliver):
                    self._take(name, one)

    def _take(self, host: str, given: Deliver) -> None:
        match given.what:
            case InForce(name):
                subscriptions = self.brokers[host].subscriptions
                self.in_force[name] = Subscribe(host, name, subscriptions.kept(name).profile.query)
            case InboxDelivery() as one:
                got = self.delivered.setdefault(one.subscription, [])
                assert one.message not in got, f"{one.message} came twice to {one.subscription}"
                profile = self.brokers[host].subscriptions.kept(one.subscription).profile.query
                whole = results(one.message.encode(), profile)
                assert one.results == whole, f"{one.subscription} is given {one.results} of {whole}"
                got.append(one.message)

    def _calm(self) -> None:
        """Whatever is on the way arrives, and time passes, until nothing changes."""
        for _ in range(4):
            while any(self.on_the_way.values()):
                for (a, b), payloads in sorted(self.on_the_way.items()):
                    if payloads:
                        self.brokers[b].hear(a, payloads.popleft())
                        self._after()
            for broker in self.brokers.values():
                broker.tick(0.0)
            self._after()

"""A registration service, brokers and a client, and every order in which things can happen to them.

A world is a value: it is copied, something happens to the copy, and what must always be true is
looked at. `explored` tries all of it within a number of faults.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from memory_store import MemoryStore
from pathcast.overlay.hosting import Hosting
from pathcast.overlay.registration import RegistrationNode
from pathcast.overlay.registration_messages import (
    HostKnows,
    InterestRegistered,
    RootKnows,
    SourceRegistered,
    TellHost,
    TellRoot,
)
from pathcast.protocol import Cancel, Deliver, Effect, Send, Wake
from pathcast.store import BrokerRecord, ProfileRecord, SourceRecord
from registrant import Registrant

PART = BrokerRecord("b", "", "eu", 1e6, 10)
LEASE_SECONDS = 10.0


@dataclass
class Clock:
    """Time that passes when it is told to."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


Node = RegistrationNode | Hosting | Registrant


class ImmediateHosting(Hosting):
    """A part whose profiles are in force as soon as it has them: here is no network."""

    def _is_awaited(self, profile: ProfileRecord) -> bool:
        return False


@dataclass
class World:
    """Nodes, what is under way between them, and what was seen.

    Attributes:
        told: What the root or host was told, and has said that it knows.
        answers: What the client got, by the name of its request.
    """

    clock: Clock = field(default_factory=Clock)
    nodes: dict[str, Node] = field(default_factory=dict)
    flying: list[tuple[str, str, object]] = field(default_factory=list)
    timers: dict[tuple[str, str], None] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    answers: dict[str, object] = field(default_factory=dict)
    planes: dict[str, list[object]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)

    def add(self, name: str, node: Node) -> None:
        """A node begins."""
        self.nodes[name] = node
        self.do(name, node.start(self.clock.now))

    def do(self, name: str, effects: object) -> None:
        """What a node wants done."""
        assert isinstance(effects, (list, tuple))
        for effect in effects:
            self._do(name, effect)

    def _do(self, name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            message = effect.message
            if isinstance(message, SourceRegistered):
                assert message.source in self.known, "(3) went before (2) was known"
            elif isinstance(message, InterestRegistered):
                assert message.profile in self.known, "(7) went before (6) was known"
            elif isinstance(message, RootKnows):
                self.known.add(message.source)
            elif isinstance(message, HostKnows):
                self.known.add(message.profile)
            self.flying.append((name, effect.to, message))
        elif isinstance(effect, Wake):
            self.timers[name, effect.timer] = None
        elif isinstance(effect, Deliver):
            if isinstance(self.nodes[name], Registrant):
                assert self.answers.get(effect.to, effect.what) == effect.what
                self.answers[effect.to] = effect.what
            else:
                self.planes.setdefault(name, []).append(effect.what)
        else:
            assert not isinstance(effect, Cancel)

    def arrive(self, place: int, *, copy: bool = False, then_crash: bool = False) -> None:
        """A message on its way arrives; its node may stop after it has written, and say nothing."""
        sender, to, message = self.flying[place] if copy else self.flying.pop(place)
        node = self.nodes.get(to)
        if node is None:
            return
        if isinstance(message, (TellRoot, TellHost)):
            record = message.source if isinstance(message, TellRoot) else message.profile
            self.told.add(record.id)
        effects = node.receive(sender, message, self.clock.now)
        if then_crash:
            self.crash(to)
        else:
            self.do(to, effects)

    def crash(self, name: str) -> None:
        """A node is gone, with its timers and what it was about to be told."""
        del self.nodes[name]
        self.lost.add(name)
        self.timers = {key: None for key in self.timers if key[0] != name}
        self.flying = [each for each in self.flying if each[1] != name]

    def fire(self, key: tuple[str, str]) -> None:
        """A timer goes off."""
        del self.timers[key]
        self.do(key[0], self.nodes[key[0]].wake(key[1], self.clock.now))

    def settle(self, rounds: int = 12) -> None:
        """No more faults: everything arrives, timers go off, leases of the dead expire."""
        for _ in range(rounds):
            while self.flying:
                self.arrive(0)
            self.clock.now += LEASE_SECONDS / 2
            for key in list(self.timers):
                if key in self.timers:
                    self.fire(key)
        while self.flying:
            self.arrive(0)

    def serving(self) -> list[Hosting]:
        """The nodes that believe that they play the part."""
        nodes = [node for node in self.nodes.values() if isinstance(node, Hosting)]
        return [node for node in nodes if node.leadership.is_held(self.clock.now)]

    def check(self) -> None:
        """What is true in every state."""
        sources, profiles = self.store.state(SourceRecord)[1], self.store.state(ProfileRecord)[1]
        assert len(sources) <= 1, "a source was registered twice"
        assert len(profiles) <= 1, "a profile was registered twice"
        records: list[SourceRecord | ProfileRecord] = [*sources, *profiles]
        for record in records:
            assert record.pending or record.id in self.known
        tokens = [node.leadership.lease.token for node in self.serving() if node.leadership.lease]
        assert len(set(tokens)) == len(tokens), "two nodes hold one lease under one token"


def new_world() -> World:
    """Two nodes of the service, two that can play a broker, and a client."""
    world = World()
    world.add("r1", RegistrationNode("r1", world.store, lease_seconds=LEASE_SECONDS))
    world.add("r2", RegistrationNode("r2", world.store, lease_seconds=LEASE_SECONDS))
    world.add("n1", ImmediateHosting("n1", PART, world.store, lease_seconds=LEASE_SECONDS))
    world.add("n2", ImmediateHosting("n2", PART, world.store, lease_seconds=LEASE_SECONDS))
    world.add("u", Registrant(["r1", "r2"], 1))
    return world


Move = tuple[str, int, Callable[[World], None]]
"""Its name, how many faults it is, and what it does."""


def moves(world: World) -> Iterator[Move]:
    """Everything that can happen next."""
    seen: set[str] = set()
    for place, (_, to, message) in enumerate(world.flying):
        name = f"{to} {message!r}"
        if name in seen:
            continue
        seen.add(name)
        yield f"arrive {name}", 0, lambda w, p=place: w.arrive(p)  # type: ignore[misc]
        yield f"lose {name}", 1, lambda w, p=place: w.flying.pop(p) and None  # type: ignore[misc]
        yield f"double {name}", 1, lambda w, p=place: w.arrive(p, copy=True)  # type: ignore[misc]
        if to != "u" and not world.lost:
            crash = f"crash after {name}"
            yield crash, 1, lambda w, p=place: w.arrive(p, then_crash=True)  # type: ignore[misc]
    for key in world.timers:
        # A timer that goes off while nothing is under way is no fault.
        yield f"fire {key}", int(bool(world.flying)), lambda w, k=key: w.fire(k)  # type: ignore[misc]
    if not world.lost:
        for victim in [name for name in ("r1", "n1") if name in world.nodes]:
            yield f"crash {victim}", 1, lambda w, v=victim: w.crash(v)  # type: ignore[misc]
    yield "hang", 1, _hang


def _hang(world: World) -> None:
    """So much time passes that every lease has expired, and nobody has renewed his."""
    world.clock.now += LEASE_SECONDS


def explored(
    begin: World, faults: int, depth: int, every: int, end: Callable[[World], None]
) -> int:
    """Tries all orders of what can happen, with so many faults; gives the number of states.

    Args:
        begin: Where to begin.
        faults: At most so many of all.
        depth: At most so many steps.
        every: From one state of so many, faults end and `end` is called on what comes of it.
        end: Says what must be true at the end.
    """
    stack: list[tuple[bytes, int, int, tuple[str, ...]]] = [(pickle.dumps(begin), 0, 0, ())]
    best: dict[int, int] = {}
    count = 0
    while stack:
        content, spent, steps, trace = stack.pop()
        world: World = pickle.loads(content)
        count += 1
        if count % every == 0:
            try:
                world.settle()
                end(world)
            except BaseException as error:
                raise AssertionError(f"after {trace}: {error!r}") from error
            world = pickle.loads(content)
        if steps == depth:
            continue
        for name, cost, act in moves(world):
            if spent + cost > faults:
                continue
            after: World = pickle.loads(content)
            try:
                act(after)
                after.check()
            except BaseException as error:
                raise AssertionError(f"after {(*trace, name)}: {error!r}") from error
            packed = pickle.dumps(after)
            key = hash(packed)
            if best.get(key, faults + 1) <= spent + cost:
                continue
            best[key] = spent + cost
            stack.append((packed, spent + cost, steps + 1, (*trace, name)))
    return count

"""Rings of peers that filter, with what happens to them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from generators.alphabet import ALPHABET
from generators.message_text import random_message
from generators.query_text import random_query
from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.peer import Settings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast_lab.sim import Faults
from pathcast_lab.sim.filtering_world import FilteringWorld, LostMatch

UNKIND = Faults(duplicate=0.05, reorder=0.2, reorder_seconds=0.02, skew=0.01)
LOSSY = replace(UNKIND, loss=0.05)
LATE = Faults(duplicate=0.15, reorder=0.5, reorder_seconds=0.4)
SMALL = PieceSettings(queries_max=4, found_max=5.0, publications_min=3)
"""Pieces that are cut all the time."""
HEALED_SECONDS = 30.0
"""After a split, until everything is as if there had been none."""
SAME_QUERY = 0.5
"""Share of ids that come back with the query that they had."""
QUERIES = ["/a", "/a/b", "/a//b", "//b", "//b/c", "/a/b/c", "//a//b/c", "/a/b//@x", "//*[@x]/c"]
MESSAGES = [b"<a><b><c/></b></a>", b"<a x='1'><c><b x='2'/></c></a>", b"<b><c/></b>"]


def filled(world: FilteringWorld, seed: int, count: int, seconds: float = 3.0) -> FilteringWorld:
    """A world with random subscriptions, all in force."""
    draw = random.Random(f"filled {seed}")
    for number in range(count):
        query = draw.choice([random_query(draw), draw.choice(QUERIES)])
        world.subscribe(draw.choice(world.names), f"s{number}", query)
    world.run(seconds)
    assert world.not_in_force() == []
    return world


def published(world: FilteringWorld, seed: int, count: int, seconds: float = 6.0) -> int:
    """How many matches had to come of random messages; all are proved."""
    draw = random.Random(f"published {seed}")
    for _ in range(count):
        message = draw.choice([random_message(draw), draw.choice(MESSAGES)])
        world.publish(draw.choice(world.names), message)
    world.run(seconds)
    assert all(one.outcome and one.outcome.is_proved for one in world.publications)
    return world.check()


class Subscribers:
    """Those who subscribe and withdraw in a world; they use their ids again, at once and later.

    Args:
        world: Where.
        draw: Draws what they do.
        queries: Draws a query.
    """

    def __init__(
        self, world: FilteringWorld, draw: random.Random, queries: Callable[[], str]
    ) -> None:
        self._world = world
        self._draw = draw
        self._queries = queries
        self._ids = 0

    def subscribe(self, peer: str) -> None:
        """Subscribe by a new id, or one of the peer's that is not used any more."""
        standing = self._world.standing
        unused = [name for name in self._world.unused() if standing[name].peer == peer]
        if unused and self._draw.random() < 0.5:
            self._subscribe_again(self._draw.choice(unused))
        else:
            self._ids += 1
            self._world.subscribe(peer, f"s{self._ids}", self._queries())

    def withdraw(self) -> None:
        """Withdraw a subscription, if there is one; its id may be used again as soon as it can."""
        live = [
            name
            for name, standing in self._world.standing.items()
            if standing.left is None and standing.peer in self._world.network.nodes
        ]
        if live:
            name = self._draw.choice(live)
            self._world.unsubscribe(name)
            if self._draw.random() < 0.3:
                self._when_unused(name)

    def lose_disk(self, peer: str) -> None:
        """End a peer with all that it has, begin it anew, and use its ids again."""
        standing = self._world.standing
        its = [name for name in standing if standing[name].peer == peer]
        self._world.ring.crash(peer)
        self._world.network.restart(peer)
        for name in its:
            if self._draw.random() < 0.7:
                self._subscribe_again(name)

    def _when_unused(self, name: str) -> None:
        standing = self._world.standing[name]
        if standing.left is None or standing.peer not in self._world.network.nodes:
            return
        if standing.gone is not None:
            self._subscribe_again(name)
        else:
            self._world.network.at(self._world.network.now + 0.01, partial(self._when_unused, name))

    def _subscribe_again(self, name: str) -> None:
        """An id comes back with the query that it had, or another one."""
        before = self._world.standing[name]
        is_same = self._draw.random() < SAME_QUERY
        self._world.subscribe(before.peer, name, before.query if is_same else self._queries())


def churned(seed: int, settings: FilteringSettings, copies: int = 3) -> FilteringWorld:
    """A ring where peers join, leave and crash while others subscribe and publish."""
    draw = random.Random(f"churned {seed}")
    # With loss, so many that nobody is wrongly taken for dead.
    known = 5.0 if settings.gather_seconds else 0.0
    ring = Settings(copies=copies, attempts=10 if seed % 2 else 3, known_seconds=known)
    world = FilteringWorld.on_chord(
        seed, 12, settings, ring, LOSSY if seed % 2 else UNKIND, ALPHABET.namespaces
    )
    world.ring.settle()
    subscribers = Subscribers(world, draw, lambda: draw.choice([*QUERIES, random_query(draw)]))
    forgetful = ["f0", "f1"]

    def act() -> None:
        # Publishers are of the base, which stays. Subscribers lose their disks, and come back.
        peer, kind = draw.choice(world.ring.base), draw.random()
        may_go = [name for name in forgetful if world.ring.may_go(name)]
        if kind < 0.4:
            subscribers.subscribe(draw.choice([peer, peer, *forgetful]))
        elif kind < 0.55:
            subscribers.withdraw()
        elif kind < 0.6 and may_go:
            subscribers.lose_disk(draw.choice(may_go))
        else:
            message = draw.choice([*MESSAGES, random_message(draw)])
            world.publish(peer, message)

    start = world.network.now
    for _ in range(50):
        world.network.at(draw.uniform(start, start + 12), act)
    world.ring.churn(start + 12, changes=12, peers_max=14, spared=forgetful)
    world.run(20)
    world.run_until_told()
    return world


def raced(seed: int, settings: FilteringSettings, faults: Faults = LATE) -> FilteringWorld:
    """Few different queries that come and go all the time, and messages late and twice."""
    draw = random.Random(f"raced {seed}")
    settings = replace(settings, patience_seconds=1.0)
    world = FilteringWorld.on_static_ring(seed, 5, settings, faults)
    subscribers = Subscribers(world, draw, lambda: draw.choice(QUERIES))

    def act() -> None:
        kind = draw.random()
        if kind < 0.45:
            subscribers.subscribe(draw.choice(world.names))
        elif kind < 0.85:
            subscribers.withdraw()
        else:
            world.publish(draw.choice(world.names), draw.choice(MESSAGES))

    for _ in range(50):
        world.network.at(draw.uniform(0, 8), act)
    world.run(16)
    for message in MESSAGES:
        world.publish("p0", message)
    world.run(6)
    return world


def is_missed(seed: int, settings: FilteringSettings) -> bool:
    """Whether a world of queries that come and go loses a match."""
    try:
        raced(seed, settings).check()
    except LostMatch:
        return True
    return False


def peers_of(world: FilteringWorld) -> list[FilteringPeer]:
    """Those that run."""
    # On Chord each is in a node that checks the ring.
    nodes = [getattr(node, "node", node) for node in world.network.nodes.values()]
    return [node for node in nodes if isinstance(node, FilteringPeer)]


def split_world(seed: int, settings: FilteringSettings) -> FilteringWorld:
    """A ring whose network is split for 5 to 60 s, and healed, while it is used all the time.

    By the seed, the sides are halves, the base and all others, one peer and all others, or three.
    Some peers crash or join meanwhile. `HEALED_SECONDS` later each of its last publications, by
    way of any peer, has an outcome.
    """
    draw = random.Random(f"split {seed}")
    ring = Settings(known_seconds=5.0, absent_seconds=120.0)
    world = FilteringWorld.on_chord(seed, 14, settings, ring, UNKIND, ALPHABET.namespaces)
    world.ring.settle()
    stay, others = world.names[:11], world.names[11:]
    subscribers = Subscribers(world, draw, lambda: draw.choice([*QUERIES, random_query(draw)]))

    def act() -> None:
        kind = draw.random()
        if kind < 0.3:
            subscribers.subscribe(draw.choice(stay))
        elif kind < 0.4:
            subscribers.withdraw()
        else:
            message = draw.choice([*MESSAGES, random_message(draw)])
            world.publish(draw.choice(stay), message)

    def happen(count: int, seconds: float) -> None:
        for _ in range(count):
            world.network.at(world.network.now + draw.uniform(0, seconds), act)

    happen(20, 5)
    world.run(10)
    seconds = draw.uniform(5, 60)
    happen(60, seconds + HEALED_SECONDS)
    for _ in range(draw.randrange(3)):
        gone = draw.choice(others)
        at = world.network.now + draw.uniform(0, seconds)
        world.network.at(at, partial(_crash, world, gone))
        world.network.at(at + draw.uniform(0, 20), partial(world.network.restart, gone))
    world.ring.split(*_sides(draw, world))
    world.run(seconds)
    world.network.heal()
    world.run(HEALED_SECONDS)
    for name in stay:
        world.publish(name, draw.choice(MESSAGES))
    world.run_until_told()
    world.run(10)
    return world


def _crash(world: FilteringWorld, name: str) -> None:
    if world.ring.may_go(name):
        world.ring.crash(name)


def _sides(draw: random.Random, world: FilteringWorld) -> list[list[str]]:
    """Who is cut off from whom; the rest is a side of its own."""
    names = world.names
    match draw.randrange(4):
        case 0:
            return [draw.sample(names, len(names) // 2)]
        case 1:
            away = [name for name in names if name not in world.ring.base]
            return [draw.sample(away, draw.randint(4, len(away)))]
        case 2:
            return [[draw.choice(names)]]
    shuffled = draw.sample(names, len(names))
    return [shuffled[:4], shuffled[4:9]]


SHARED = replace(SMALL, queries_max=8, found_max=1e9, copy_seconds=0.3, work_max=5.0)
"""Pieces that others share as soon as they are run once a second, in windows of half a second."""


def busy(seed: int, settings: FilteringSettings, *, churns: bool = False) -> FilteringWorld:
    """Publications all the time, while queries come and go and pieces are cut.

    Args:
        seed: Of all that is drawn.
        settings: Of all peers.
        churns: On Chord, where peers join, leave and crash; else messages are late and come twice.
    """
    draw = random.Random(f"busy {seed}")
    settings = replace(settings, patience_seconds=1.0)
    if churns:
        ring = Settings(attempts=10 if seed % 2 else 3, known_seconds=5.0)
        faults = LOSSY if seed % 2 else UNKIND
        world = FilteringWorld.on_chord(seed, 12, settings, ring, faults)
        world.ring.settle()
    else:
        world = FilteringWorld.on_static_ring(seed, 8, settings, LATE)
    stay = world.ring.base if churns else world.names
    subscribers = Subscribers(world, draw, lambda: draw.choice(QUERIES))

    def act() -> None:
        kind = draw.random()
        if kind < 0.25:
            subscribers.subscribe(draw.choice(stay))
        elif kind < 0.4:
            subscribers.withdraw()
        else:
            world.publish(draw.choice(stay), draw.choice(MESSAGES))

    start = world.network.now
    for _ in range(150):
        world.network.at(draw.uniform(start, start + 12), act)
    if churns:
        world.ring.churn(start + 12, changes=8, peers_max=14)
    world.run(20)
    world.run_until_told()
    return world

"""The ring under churn: the invariant of the correct operations holds after every event."""

from __future__ import annotations

import math
import random
from functools import partial

import numpy as np
import pytest

pytest.importorskip("msgspec")

from pathcast.dht.identifiers import identifier
from pathcast.dht.messages import Ask, Member, Rectify, decoded
from pathcast.dht.peer import RequestOutcome, RingPeer, Settings
from pathcast.dht.ring import Found
from pathcast.errors import PeerError
from pathcast.protocol import Deliver
from pathcast_lab.sim import Faults
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.hops import Fingers
from pathcast_lab.sim.ring_world import BrokenRing, RingWorld

UNKIND = Faults(duplicate=0.05, reorder=0.2, reorder_seconds=0.02, skew=0.01)
LOSSY = Faults(loss=0.05, duplicate=0.05, reorder=0.2, reorder_seconds=0.02, skew=0.01)


def outcome(given: Deliver) -> RequestOutcome:
    """What was delivered."""
    assert isinstance(given.what, RequestOutcome)
    return given.what


def churned(seed: int) -> RingWorld:
    """A ring that 20 changes in twelve seconds have happened to, and that is ideal again."""
    settings = Settings(successors=2 + seed % 3)
    world = RingWorld(seed, settings, UNKIND)
    world.churn(until=12.0, changes=20)
    world.settle()
    return world


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_no_event_breaks_the_invariant(first: int) -> None:
    worlds = [churned(seed) for seed in range(first, first + 50)]
    # It was looked at, and there was something to see.
    assert min(world.checks for world in worlds) > 10
    assert sum(world.checks for world in worlds) > 50 * 40


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 6000, 100))
def test_no_event_breaks_the_invariant_in_many_seeds(first: int) -> None:
    for seed in range(first, first + 100):
        churned(seed)


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(1000, 2000), marks=pytest.mark.nightly)]
)
def test_lost_messages_are_asked_for_again(seeds: range) -> None:
    for seed in seeds:
        world = RingWorld(seed, Settings(attempts=6), LOSSY, in_bytes=True)
        world.churn(until=12.0, changes=20)
        world.settle()


@pytest.mark.parametrize(
    ("missing", "what"),
    [
        (("whole_list", "live_only", "ask_predecessor"), "OneLiveSuccessor"),
        # A newcomer with one successor is alone when that one fails.
        (("whole_list",), "OneLiveSuccessor"),
        # A dead predecessor of the successor is taken again and again.
        (("live_only",), "not ideal"),
        # It stays the predecessor for ever.
        (("ask_predecessor",), "not ideal"),
    ],
    ids=["as published", "one successor", "dead ones taken", "predecessor not asked"],
)
def test_published_operations_break_the_ring(missing: tuple[str, ...], what: str) -> None:
    """Under the same churn and operating assumption, with one thing or all as published."""

    def breaks(seed: int) -> bool:
        try:
            churned(seed)
        except BrokenRing as error:
            return what in str(error).partition("\n")[0]
        return False

    with without(*missing):
        assert any(breaks(seed) for seed in range(20))


def test_the_base_finds_its_way_from_everywhere_and_hops_are_as_reckoned() -> None:
    """60 peers with all fingers: look-ups take the ways that the arithmetic of `hops` takes."""
    world = RingWorld(1, Settings(tick_seconds=0.2), base=60)
    world.network.run(12.0)
    world.settle()
    rings = sorted(world.rings(), key=lambda ring: ring.me.identifier)
    fingers = Fingers(np.array([r.me.identifier >> 96 for r in rings], np.uint64), successors=3)
    draw = random.Random(5)
    keys = [f"key {n}" for n in range(300)]
    start = [draw.randrange(len(rings)) for _ in keys]
    for at, key in zip(start, keys, strict=True):
        world.ask(rings[at].me.name, partial(RingPeer.look_up, key=key, to="me"))
    world.network.run(world.network.now + 3)
    outcomes = [outcome(given) for _, given in world.network.delivered]
    found = {o.key: o.reply for o in outcomes}
    places = np.array([identifier(key) >> 96 for key in keys], np.uint64)
    owners, hops = fingers.owners(places), fingers.hops(np.array(start), places)
    assert max(hops) <= 2 * math.log2(60)
    for key, owner, reckoned in zip(keys, owners, hops, strict=True):
        where = found[key]
        assert isinstance(where, Found)
        assert (where.owner, where.hops) == (rings[owner].me, reckoned)


def test_look_ups_find_the_owner_while_peers_are_dead() -> None:
    """Fingers that point to the dead cost time, not answers."""
    world = RingWorld(2)
    for n in range(20):
        world.add(f"p{n}")
    world.settle()
    world.network.run(world.network.now + 10)
    for n in (3, 9):
        world.crash(f"p{n}")
    for n in range(40):
        world.ask("b0", partial(RingPeer.look_up, key=f"key {n}", to="me"))
    world.settle()
    for n in range(40):
        world.ask("b1", partial(RingPeer.look_up, key=f"key {n}", to="me"))
    world.network.run(world.network.now + 5)
    outcomes = [outcome(given) for _, given in world.network.delivered]
    assert len(outcomes) == 80
    owners = sorted(world.rings(), key=lambda ring: ring.me.identifier)
    for given in outcomes[40:]:
        place = identifier(given.key)
        right = next((r for r in owners if r.me.identifier >= place), owners[0])
        assert isinstance(given.reply, Found)
        assert given.reply.owner == right.me


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(PeerError, match="cannot be read"):
        decoded(b"\x93\xa3Ask\x01")
    peer = RingPeer("a", 0, ("a", "b", "c", "d"))
    peer.start(0.0)
    with pytest.raises(PeerError, match="speaks as 'c'"):
        peer.receive("b", Ask(1, 0, Rectify(Member("c", 0))), 0.0)
    with pytest.raises(PeerError, match="speaks as 'str'"):
        peer.receive("b", "hello", 0.0)


def test_a_seed_gives_the_same_run_again() -> None:
    def run() -> list[object]:
        world = churned(11)
        return [world.network.sent, world.checks, sorted(ring.me for ring in world.rings())]

    assert run() == run()

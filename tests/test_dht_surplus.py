"""Copies that a member does not hold are dropped, and nobody counts on what was dropped."""

from __future__ import annotations

import random
from functools import partial

import pytest

pytest.importorskip("msgspec")

import msgspec

from filtering_worlds import UNKIND
from generators.alphabet import ALPHABET
from generators.query_text import random_query
from pathcast.dht.custody import Custodian
from pathcast.dht.filtering import FilteringSettings
from pathcast.dht.identifiers import identifier
from pathcast.dht.messages import (
    Claimed,
    Claims,
    Custody,
    Done,
    Hold,
    Holders,
    Later,
    RingRecord,
)
from pathcast.dht.peer import RingPeer, Settings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast_lab.sim import Faults
from pathcast_lab.sim.filtering_world import FilteringWorld
from pathcast_lab.sim.ring_world import RingWorld
from test_dht_records import KEYS, Clients

SLOW = Faults(
    duplicate=0.05, reorder=0.3, reorder_seconds=0.2, delay_seconds=(0.001, 0.1), skew=0.01
)
ROUNDS = 6
DROPPING_SECONDS = 100.0
DROP_SECONDS = 0.01


class Dropping:
    """A ring where a peer crashes and some join in each round, while keys change.

    A member drops copies of arcs that it never agreed to hold at any time, and all others that it
    may drop in each tick.

    Args:
        seed: Of all that is drawn.
        copies: Members that hold a record.

    Attributes:
        lost: Keys of which something acknowledged is not found.
        unknown: Keys of which nobody says anything.
    """

    def __init__(self, seed: int, copies: int) -> None:
        settings = Settings(copies=copies, patience_seconds=0.5, surplus_seconds=0.0)
        self.world = RingWorld(seed, settings, SLOW)
        self._draw = random.Random(f"harsh {seed}")
        for number in range(6):
            self.world.add(f"p{number}")
        self.world.settle(60)
        self._clients = Clients(self.world, seed)
        for step in range(int(DROPPING_SECONDS / DROP_SECONDS)):
            self.world.network.at(self.world.network.now + step * DROP_SECONDS, self._drop)
        self.lost: list[str] = []
        self.unknown: list[str] = []
        for round_ in range(ROUNDS):
            if not self.lost and not self.unknown:
                self._run(round_)

    @property
    def peers(self) -> list[RingPeer]:
        """Those that run."""
        return [self.world.peer(name) for name in sorted(self.world.network.nodes)]

    def _run(self, round_: int) -> None:
        network, draw, clients = self.world.network, self._draw, self._clients
        for number in range(draw.randint(1, 3)):
            join = partial(self.world.add, f"n{round_} {number}")
            network.at(network.now + draw.uniform(0, 2), join)
        start = network.now
        network.at(start + draw.uniform(0, 4), self._crash)
        for step in range(8):
            network.run(start + step / 2)
            clients.change(draw.sample(KEYS, 8))
        self.world.settle(60)
        network.run(network.now + 8)
        clients.take()
        clients.unsure.update(clients.asked)
        clients.asked.clear()
        self.lost += clients.lost()
        if clients.unknown:  # of an arc in doubt nobody ever says anything; other answers are late
            clients.unknown.clear()
            network.run(network.now + 20)
            self.lost += clients.lost()
        self.unknown += clients.unknown

    def _crash(self) -> None:
        others = [each for each in self.peers if each.ring.is_member and not each.is_base]
        name = self._draw.choice(others).me.name
        if self.world.may_go(name):
            self.world.crash(name)

    def _drop(self) -> None:
        peer = self._draw.choice([each for each in self.peers if each.ring.is_member])
        for arc in list(peer.custody._known.gaps(0, 0)):
            peer.records.drop(*arc)


@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(1000, 1150), marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("copies", [2, 3])
def test_nothing_acknowledged_is_lost_while_copies_are_dropped(seeds: range, copies: int) -> None:
    for seed in seeds:
        found = Dropping(seed, copies)
        assert found.lost == [], seed
        # A crash while custody changes may leave an arc of two copies in doubt.
        assert copies == 2 or found.unknown == [], seed
        assert sum(peer.records.droppings for peer in found.peers) > 0


def test_who_proposes_by_an_older_custody_does_not_forget_that_it_holds_an_arc() -> None:
    """Two members that had been told of an older custody propose, after they became holders.

    If their proposals took the place of what they had agreed to, nobody would hold the arc when its
    owner crashes.
    """
    found = Dropping(1043, copies=3)
    assert (found.lost, found.unknown) == ([], [])


def test_who_holds_what_it_has_dropped_loses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member agrees to hold an arc, whatever it has dropped since it was given its records."""
    monkeypatch.setattr(Custodian, "_is_holder", lambda *_: True)
    assert any(Dropping(seed, copies=2).lost for seed in (3, 2))


def custody_of(peer: RingPeer) -> Custody:
    """The custody that a peer has of its range."""
    reply = peer.custody.answer(Holders())
    assert isinstance(reply, Claimed)
    [custody] = reply.custodies
    return custody


def settled_ring() -> tuple[RingWorld, RingPeer, RingPeer]:
    """A ring of the base, one of its members, and the one that holds nothing of its range."""
    world = RingWorld(1)
    world.network.run(1.0)
    ranges = {name: world.peer(name).custody.range or (0, 0) for name in world.base}
    # Not the one over place 0.
    owner = world.peer(next(name for name, (low, high) in ranges.items() if low < high))
    holders = custody_of(owner).holders
    [other] = [world.peer(name) for name in world.base if world.peer(name).me not in holders]
    return world, owner, other


def test_who_has_dropped_copies_since_it_was_given_them_does_not_hold_them() -> None:
    _, owner, other = settled_ring()
    mine = custody_of(owner)
    holders = (owner.me, other.me)
    low, high = (int.from_bytes(place) for place in (mine.low, mine.high))

    def asked(number: int, given_at: int) -> object:
        proposed = msgspec.structs.replace(
            mine, number=number, holders=holders, given_at=((other.me, given_at),)
        )
        return other.custody.answer(Hold(proposed, based_on=number))

    key = next(key for key in KEYS if owner.ring.owns(identifier(key)))
    other.records.held[key] = msgspec.convert((key, b"x", 1, "w"), RingRecord)
    other.records.drop(low, high)
    assert key not in other.records.held
    assert asked(8, given_at=0) == Later()
    # It has agreed to a custody without it, so it does not say that it holds the arc.
    claimed = other.custody.answer(Claims(mine.low, mine.high))
    assert isinstance(claimed, Claimed)
    assert [one.holders for one in claimed.custodies] == [(owner.me,)]
    assert asked(9, given_at=1) == Done()
    # Now it is a holder, and drops nothing of it; so what others were given does not matter.
    assert asked(10, given_at=0) == Done()


def test_copies_are_dropped_by_the_word_of_an_owner_alone() -> None:
    _, owner, other = settled_ring()
    mine = custody_of(owner)
    arc = int.from_bytes(mine.low), int.from_bytes(mine.high)
    elsewhere = msgspec.structs.replace(mine, number=7, owner=mine.holders[1], holders=())
    assert other.custody.answer(Hold(elsewhere, based_on=7)) == Done()
    # An owner's custody that is older than what it has agreed to.
    assert other.custody.released([mine]) == []
    assert other.custody.released([msgspec.structs.replace(mine, number=7)]) == [arc]
    # Who holds an arc is released by no older custody, and by none that names it.
    holder = msgspec.structs.replace(mine, number=8, holders=(other.me,), given_at=((other.me, 0),))
    assert other.custody.answer(Hold(holder, based_on=8)) == Done()
    assert other.custody.released([msgspec.structs.replace(mine, number=9)]) == []


def soaked(total: int, live: int = 100) -> tuple[int, list[int], int]:
    """Subscriptions come and go at a constant number, on a ring whose peers come and go.

    Returns:
        Keys, records of each peer, and copies that no holder has.
    """
    draw = random.Random(f"soaked {total}")
    ring = Settings(known_seconds=5.0, surplus_seconds=1.0)
    settings = FilteringSettings(pieces=PieceSettings(queries_max=10))
    world = FilteringWorld.on_chord(3, 8, settings, ring, UNKIND, ALPHABET.namespaces)
    world.ring.settle()
    for made in range(0, total, live // 2):
        for number in range(made, made + live // 2):
            query = random_query(draw)
            world.subscribe(draw.choice(world.ring.base), f"s{number}", query)
        world.ring.churn(world.network.now + 2, changes=1, peers_max=12)
        world.run(4)
        for number in range(made - live // 2, made):
            if number >= 0:
                world.unsubscribe(f"s{number}")
        world.run(4)
    world.run(20)
    assert world.not_in_force() == []
    peers = [world.ring.peer(name) for name in world.network.nodes]
    keys = {key for peer in peers for key in peer.records.held}
    held = [len(peer.records.held) for peer in peers]
    return len(keys), held, sum(len(peer.surplus.keys) for peer in peers)


@pytest.mark.parametrize("total", [300, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_peers_hold_no_more_while_subscriptions_come_and_go(total: int) -> None:
    """There are keys for the paths that are in use, and hardly more copies than there have to be.

    A member that has agreed to a custody in vain keeps its copies until a newer one is agreed to.
    """
    keys, held, surplus = soaked(total)
    assert surplus == 0
    assert 3 * keys <= sum(held) <= 4 * keys
    assert 5 < keys <= 100

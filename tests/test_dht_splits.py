"""A ring whose network was split is one ring again, and nothing was missed silently meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

pytest.importorskip("msgspec")

from filtering_worlds import HEALED_SECONDS, SMALL, UNKIND, split_world
from pathcast.dht.asking import Asking
from pathcast.dht.filtering import FilteringSettings
from pathcast.dht.messages import Answer, Done, ExpelMember, Member, Missing, Read, Renew
from pathcast.dht.peer import Settings
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.filtering_world import FilteringWorld, LostMatch
from pathcast_lab.sim.ring_world import BrokenRing, RingWorld


def settings_of(seed: int) -> FilteringSettings:
    """Pieces that are cut all the time, or hardly ever."""
    return FilteringSettings() if seed % 2 else FilteringSettings(SMALL)


def is_healed(world: FilteringWorld) -> bool:
    """Whether the last publications, by way of all peers that stay, are proved, and all queries in.

    Raises:
        LostMatch: A publication that was proved has missed something.
    """
    world.check()
    last = world.publications[-11:]
    are_proved = all(one.outcome is not None and one.outcome.is_proved for one in last)
    return are_proved and world.not_in_force() == []


@pytest.mark.parametrize(
    "seeds",
    [
        range(4),
        *(
            pytest.param(range(first, first + 20), marks=pytest.mark.nightly)
            for first in range(1000, 1200, 20)
        ),
    ],
)
def test_a_ring_that_was_split_is_one_again_and_has_missed_nothing(seeds: Sequence[int]) -> None:
    """The invariant of one ring in order is checked after every event, also during the split."""
    unproved = 0
    for seed in seeds:
        world = split_world(seed, settings_of(seed))
        assert is_healed(world), seed
        assert world.check() > 20
        unproved += sum(
            one.outcome is not None and not one.outcome.is_proved for one in world.publications
        )
    # The split was noticed.
    assert unproved > len(seeds)


def test_a_split_is_not_survived_where_who_is_silent_is_dead() -> None:
    def is_survived(seed: int) -> bool:
        try:
            return is_healed(split_world(seed, settings_of(seed)))
        except (LostMatch, BrokenRing):
            return False

    with without("ask_base"):
        assert not all(is_survived(seed) for seed in range(4))


def ring_of(count: int, settings: Settings | None = None) -> RingWorld:
    """A ring of the base and so many others, which have all found their places."""
    world = RingWorld(5, settings, UNKIND)
    for number in range(count):
        world.add(f"p{number}")
    world.settle()
    return world


def test_nobody_is_dead_while_one_of_the_base_is_away() -> None:
    """Halves with some of the base in each keep all pointers, and go on as one ring."""
    world = ring_of(8)
    pointers = {ring.me: (ring.predecessor, ring.successors) for ring in world.rings()}
    world.split(["b0", "p0", "p1", "p2", "p3"])
    world.network.run(world.network.now + 40)
    assert {r.me: (r.predecessor, r.successors) for r in world.rings()} == pointers
    world.network.heal()
    world.network.run(world.network.now + 5)
    assert {r.me: (r.predecessor, r.successors) for r in world.rings()} == pointers


def test_who_was_away_while_all_of_the_base_was_there_comes_back_as_another_member() -> None:
    world = ring_of(8)
    away = ["p0", "p1", "p2", "p3", "p4"]
    before = {name: world.peer(name).me for name in away}
    world.split(away)
    world.network.run(world.network.now + 30)
    for name in away:
        assert not world.peer(name).membership.has_lease
        assert world.peer(name).me == before[name]
    live = {ring.me for ring in world.rings()} - set(before.values())
    for ring in world.rings():
        if ring.me in live:
            assert live.issuperset(ring.successors)
    world.network.heal()
    world.settle(HEALED_SECONDS)
    for name in away:
        assert world.peer(name).me.name == name
        assert world.peer(name).me.life != before[name].life
        assert world.peer(name).custody.is_complete


def test_a_crash_is_found_out_when_the_base_is_there_again() -> None:
    world = ring_of(8)
    world.split(["b0"])
    world.crash("p0")
    world.network.run(world.network.now + 20)
    world.network.heal()
    world.settle(HEALED_SECONDS)


def test_the_base_keeps_who_was_expelled_and_never_one_of_its_own() -> None:
    world = ring_of(1, Settings(absent_seconds=10.0))
    base = world.peer("b0").membership
    life, other = Member("x", 7), Member("x", 8)
    assert type(base.answer(Renew(life))).__name__ == "Done"
    base.answer(ExpelMember(life))
    base.answer(ExpelMember(Member("b1", 0)))
    assert type(base.answer(Renew(life))).__name__ == "RequestRefused"
    assert type(base.answer(Renew(other))).__name__ == "Done"
    assert type(base.answer(Renew(Member("b1", 0)))).__name__ == "Done"
    names = getattr(base.answer(Missing()), "names", None)
    assert names == ("x",)
    world.network.run(world.network.now + 20)
    world.ask("b0", lambda peer: peer.look_up("k", "me"))
    world.network.run(world.network.now + 1)
    assert getattr(base.answer(Missing()), "names", None) == ()


def test_a_process_that_ended_takes_along_the_lives_that_were_asked_and_no_other() -> None:
    """The next process of a peer is asked before there is a connection to it."""
    judged: list[Member] = []
    replies: list[object] = []
    asking = Asking([], 0.1, 1, judged.append, stays={Member("base", 0)})
    old, new = Member("x", 7), Member("x", 8)
    for member in (old, Member("base", 0)):
        asking.ask(member, Read(), replies.append)
    asking.ended("x")
    asking.ended("base")
    assert asking.is_dead(old)
    assert not asking.is_dead(Member("base", 0))
    asking.ask(new, Read(), replies.append)
    for number in (1, 2, 3):
        asking.wake(f"ask {number}")
    assert replies == [None]
    assert judged == [Member("base", 0), new]
    assert not asking.is_dead(new)
    asking.answered("x", Answer(3, Done()))
    assert replies == [None, Done()]

"""Filtering on a ring: answers are those of one process, and never silently less."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("msgspec")


from filtering_worlds import (
    MESSAGES,
    QUERIES,
    SMALL,
    churned,
    filled,
    peers_of,
    published,
    raced,
)
from generators.alphabet import ALPHABET
from generators.query_text import random_query
from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.messages import Ask, Member
from pathcast.dht.peer import RingPeer, Settings
from pathcast.dht.piece_messages import Lost, Match, Visit
from pathcast.dht.piece_records import PieceLink, PieceRecord, Reads, decoded_piece, encoded_piece
from pathcast.dht.restoring import Restoring
from pathcast_lab.sim import Faults
from pathcast_lab.sim.ablations import AUTOMATON, without
from pathcast_lab.sim.filtering_world import FilteringWorld, LostMatch
from pathcast_lab.sim.static_ring import StaticPeer, StaticRing


def static(seed: int, peers: int, settings: FilteringSettings, virtual: int = 0) -> FilteringWorld:
    return FilteringWorld.on_static_ring(
        seed, peers, settings, namespaces=ALPHABET.namespaces, virtual=virtual
    )


def test_answers_are_those_of_one_process_with_virtual_nodes_and_on_kademlia() -> None:
    world = filled(static(3, 8, FilteringSettings(SMALL), virtual=3), 3, 20)
    assert len(world.names) == 24
    assert published(world, 3, 4) > 4
    world = FilteringWorld.on_kademlia(
        4, 12, FilteringSettings(SMALL), namespaces=ALPHABET.namespaces
    )
    world.run(2.0)
    assert published(filled(world, 4, 15, 6.0), 4, 4) > 4


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 140))
def test_answers_are_those_of_one_process_in_many_seeds(seed: int) -> None:
    draw = random.Random(seed)
    settings = FilteringSettings(SMALL, gather_seconds=draw.choice([0.0, 0.01]))
    peers = draw.randint(20, 60)
    published(filled(static(seed, peers, settings, draw.choice([0, 0, 3])), seed, 60), seed, 20)


def test_queries_are_soon_in_force_while_patient_peers_join() -> None:
    """Nothing is lost, so nobody may have to wait until patience is over (64 s)."""
    patient = FilteringSettings(
        SMALL, gather_seconds=0.05, patience_seconds=16.0, acknowledge_seconds=64.0
    )
    ring = Settings(tick_seconds=1.0, patience_seconds=4.0, known_seconds=60.0, lease_seconds=3.0)
    for seed in range(2):
        world = FilteringWorld.on_chord(seed, 8, patient, ring, namespaces=ALPHABET.namespaces)
        draw = random.Random(f"patient {seed}")
        for number in range(60):
            query = draw.choice([*QUERIES, random_query(draw)])
            ask = partial(world.subscribe, world.names[number % 8], f"s{number}", query)
            world.network.at(draw.uniform(0, 3), ask)
        world.run(40)
        assert world.not_in_force() == []


@pytest.mark.parametrize(
    "seeds", [(0, 1, 1051), pytest.param(range(1000, 1100), marks=pytest.mark.nightly)]
)
def test_what_nobody_holds_any_more_is_not_proved_and_then_restored(
    seeds: Sequence[int],
) -> None:
    lost = matches = 0
    for seed in seeds:
        world = churned(seed, FilteringSettings(SMALL), copies=1)
        below = [peer.substrate for peer in peers_of(world)]
        lost += sum(peer.restoring.lost for peer in below if isinstance(peer, RingPeer))
        world.check()
        # Once nobody comes or goes any more, all is as it was, in time.
        assert any(is_restored(world) for _ in range(12)), seed
        matches += world.check()
    assert lost > len(seeds)
    assert matches > 5 * len(seeds)


def is_restored(world: FilteringWorld) -> bool:
    """Whether 20 s later all that is published is proved."""
    world.run(20)
    for message in MESSAGES:
        world.publish("b0", message)
    world.run_until_told()
    last = world.publications[-len(MESSAGES) :]
    return all(one.outcome is not None and one.outcome.is_proved for one in last)


def test_a_publication_meets_what_a_lost_link_led_to_in_the_restored_start_piece() -> None:
    """Its publisher alone runs the start piece: the restored one has the query behind no link."""
    link = PieceLink("start/a/b", Reads(("c",), 1))
    records = {
        "start": encoded_piece(PieceRecord(links={"start/a/b": link})),
        "start/a/b": encoded_piece(PieceRecord(("start/a/b",))),
    }
    settings = FilteringSettings(patience_seconds=0.5)
    world = FilteringWorld.on_static_ring(1, 8, settings, records=records)
    ring = StaticRing(world.names)
    start, gone = (ring.owner(key).name for key in records)
    assert start != gone
    publisher = next(name for name in world.names if name not in (start, gone))
    world.subscribe(publisher, "s", "/a/b/c")
    world.run(3)
    assert world.not_in_force() == []
    held = {key: piece for peer in peers_of(world) for key, piece in pieces_of(peer).items()}
    assert held["start/a/b"].entries
    world.network.crash(gone)
    world.publish(publisher, b"<a><b><c/></b></a>")
    world.run(1)
    assert world.publications[0].outcome is None
    # The piece of the start state is lost and restored: the query is in it, and the link is not.
    [below] = [peer.substrate for peer in peers_of(world) if peer.substrate.owns("start")]
    assert isinstance(below, StaticPeer)
    restored = encoded_piece(PieceRecord(entries=held["start/a/b"].entries))
    below.held["start"] = restored, below.held["start"][1] + 1
    world.run_until_told()
    [publication] = world.publications
    assert publication.outcome is not None
    assert publication.outcome.is_proved
    assert world.check() == 1


def test_an_arc_that_two_owners_lose_is_lost_twice() -> None:
    """Else subscribers would say of the second loss that they have put their queries back."""
    told: list[Lost] = []

    def tell(owner: str, greatest: int) -> None:
        def asked(_: str, ask: object, __: object) -> None:
            assert isinstance(ask, Lost)
            told.append(ask)

        ring = SimpleNamespace(me=Member(owner, 1), is_member=True)
        custody = SimpleNamespace(doubtful=[], in_doubt=[(1, 5)], greatest=greatest)
        parts: list[Any] = [ring, None, custody, None, None, asked]
        Restoring(*parts).round()

    for owner, greatest in (("a", 3), ("b", 3), ("a", 4)):
        tell(owner, greatest)
    assert len({(lost.low, lost.high) for lost in told}) == 1
    assert len({lost.number for lost in told}) == 3


def test_what_is_lost_is_missed_silently_where_it_is_taken_for_empty() -> None:
    def is_lost(seed: int) -> bool:
        try:
            churned(seed, FilteringSettings(SMALL, gather_seconds=0.0), copies=1).check()
        except LostMatch:
            return True
        return False

    with without("keeps_doubt"):
        assert any(is_lost(seed) for seed in (67, 35, 0, 1, 2))


def test_a_peer_that_was_idle_publishes_by_what_is_there_now() -> None:
    """Its clock is not told with a request: what it has read long ago is not taken for new."""
    world = FilteringWorld.on_static_ring(1, 8)
    for name in ("a", "b"):
        world.subscribe("p1", name, f"/{name}")
        world.run(10.0)
        for seconds in (0.3, 20.0):
            for peer in world.names:
                world.publish(peer, f"<{name}/>".encode())
            world.run(seconds)
    assert world.check() == 32


@pytest.mark.parametrize("is_on", [True, False])
def test_a_query_that_is_new_meets_no_publication_that_is_over(is_on: bool) -> None:
    """A visit that is done late finds the query, and cannot know that it was asked since."""
    world = FilteringWorld.on_static_ring(1, 6, FilteringSettings())
    world.publish("p0", MESSAGES[0])
    world.run(3)
    world.subscribe("p1", "s", "/a/b")
    world.run(3)
    assert world.not_in_force() == []
    [publication] = world.publications
    assert publication.outcome is not None
    [registration] = [
        registration
        for peer in peers_of(world)
        for record in pieces_of(peer).values()
        for entries in record.entries.values()
        for registration in entries
    ]
    late = Match(publication.outcome.publication, registration, "p0")
    with without(*([] if is_on else ["asks_publisher"])):
        world.network.call(
            "p1", lambda peer, now: peer.receive("p2", Ask(1 << 40, None, late), now)
        )
        world.run(3)
    if is_on:
        world.check()
    else:
        with pytest.raises(LostMatch, match="wrongly"):
            world.check()


@pytest.mark.parametrize("keeps_disk", [True, False])
def test_an_id_that_is_used_again_gets_no_match_of_the_query_it_had(keeps_disk: bool) -> None:
    """The entry of the earlier life stays in its piece when the disk of its peer is lost."""
    world = FilteringWorld.on_static_ring(1, 8, FilteringSettings())
    owner = StaticRing(world.names).owner("start").name
    peer, publisher = [name for name in world.names if name != owner][:2]
    world.subscribe(peer, "s", "/a/c")
    world.run(3)
    if keeps_disk:
        world.unsubscribe("s")
        world.run(3)
    else:
        world.network.crash(peer, disk=False)
        world.network.restart(peer)
    world.subscribe(peer, "s", "/a/b")
    world.run(3)
    assert world.not_in_force() == []
    for message in (b"<a><c/></a>", b"<a><b/></a>", b"<a><b/><c/></a>"):
        world.publish(publisher, message)
    world.run(3)
    assert all(one.outcome and one.outcome.is_proved for one in world.publications)
    assert world.check() == 2


def test_an_id_that_is_used_again_for_the_same_query_is_told_by_its_new_entry() -> None:
    """The old and the new entry are found together; that the old one is refused is not enough."""
    world = FilteringWorld.on_static_ring(1, 8, FilteringSettings())
    owner = StaticRing(world.names).owner("start").name
    peer, publisher = [name for name in world.names if name != owner][:2]
    for _ in range(2):
        world.subscribe(peer, "s", "/a")
        world.run(3)
        world.publish(publisher, b"<a/>")
        world.run(3)
        world.network.crash(peer, disk=False)
        world.network.restart(peer)
    assert world.check() == 2


def test_no_query_is_left_of_those_that_are_gone() -> None:
    world = raced(9, FilteringSettings(SMALL), faults=Faults())
    for name, standing in world.standing.items():
        if standing.left is None:
            world.unsubscribe(name)
    world.run(5)
    assert world.not_in_force() == []
    pieces = [piece for peer in peers_of(world) for piece in pieces_of(peer).values()]
    assert len(pieces) > 1
    assert not any(piece.entries or piece.leaving for piece in pieces)


def pieces_of(peer: FilteringPeer) -> dict[str, PieceRecord]:
    """The pieces of a peer on a ring that never changes, by key."""
    assert isinstance(peer.substrate, StaticPeer)
    return {key: decoded_piece(key, value) for key, (value, _) in peer.substrate.held.items()}


@pytest.mark.parametrize("is_on", [True, False])
def test_what_a_dead_peer_held_is_reported_as_not_proved(is_on: bool) -> None:
    """Nothing is copied on a ring that never changes: what is lost must have a name."""
    settings = FilteringSettings(patience_seconds=0.5, patience_tries=3, tries=3)
    link = PieceLink("start/a/b", Reads((), 0))
    records = {
        "start": encoded_piece(PieceRecord(links={"start/a/b": link})),
        "start/a/b": encoded_piece(PieceRecord(("start/a/b",))),
    }
    world = FilteringWorld.on_static_ring(1, 8, settings, records=records)
    ring = StaticRing(world.names)
    dead = ring.owner("start/a/b").name
    assert ring.owner("start").name != dead
    alive = next(name for name in world.names if name != dead)
    for query in QUERIES[:3]:
        world.subscribe(alive, query, query)
    world.run(4)
    assert world.not_in_force() == []
    world.network.crash(dead)
    with without(*([] if is_on else ["counts_credits"])):
        world.publish(alive, MESSAGES[0])
        world.run(20)
    if is_on:
        world.check()
        for one in world.publications:
            assert one.outcome is not None
            assert Visit("start/a/b", 2) in one.outcome.unproved
    else:
        with pytest.raises(LostMatch):
            world.check()


def test_every_safeguard_is_among_those_that_are_missed() -> None:
    here = Path(__file__)
    names = ("test_dht_pieces.py", "test_dht_sharing.py")
    tests = here.read_text() + "".join(here.with_name(name).read_text() for name in names)
    for name in AUTOMATON:
        assert f'"{name}"' in tests

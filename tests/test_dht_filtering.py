"""The automaton on a ring: answers are those of one process, and never silently less."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("msgspec")

import msgspec

from filtering_worlds import (
    MESSAGES,
    QUERIES,
    churned,
    filled,
    is_missed,
    peers_of,
    published,
    raced,
)
from generators.alphabet import ALPHABET
from generators.message_text import random_message
from generators.query_text import random_query
from pathcast.dht.automaton import visits
from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.identifiers import state_key
from pathcast.dht.messages import Ask
from pathcast.dht.peer import Peer, Settings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.dht.safeguards import Safeguards
from pathcast.dht.shedding import SheddingSettings
from pathcast.dht.state_messages import IndexQuery, Match, RemoveQuery, StateQuestion, Visit
from pathcast.dht.states import Entry, StateRecord, decoded_state
from pathcast.message import parse_message
from pathcast.query import compile_query
from pathcast_lab.sim import Faults
from pathcast_lab.sim.filtering_world import FilteringWorld, LostMatch
from pathcast_lab.sim.static_ring import StaticPeer, StaticRing
from pathcast_papers.filtering.nfa import CombinedNFA


def static(seed: int, peers: int, settings: FilteringSettings, virtual: int = 0) -> FilteringWorld:
    return FilteringWorld.on_static_ring(
        seed, peers, settings, namespaces=ALPHABET.namespaces, virtual=virtual
    )


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_answers_are_those_of_one_process(length: int) -> None:
    matches = 0
    for seed in range(2):
        gather = [None, 0.01][(seed + length) % 2]
        settings = FilteringSettings(
            length, bool(seed % 2), gather_seconds=gather, on_the_way=seed == 1
        )
        matches += published(filled(static(seed, 20, settings), seed, 30), seed, 6)
    assert matches > 20


def test_answers_are_those_of_one_process_with_virtual_nodes_and_on_kademlia() -> None:
    world = filled(static(3, 8, FilteringSettings(), virtual=3), 3, 20)
    assert len(world.names) == 24
    assert published(world, 3, 4) > 4
    world = FilteringWorld.on_kademlia(4, 12, namespaces=ALPHABET.namespaces)
    world.run(2.0)
    assert published(filled(world, 4, 15, 6.0), 4, 4) > 4


@pytest.mark.parametrize("length", [0, 2])
def test_predicates_on_the_way_give_the_same_with_fewer_visits(length: int) -> None:
    """Each world has the same queries and messages."""
    queries = ["/a[@x=1]//c", "/a[@x]/b[@x > 1]", "//b[@x=2]/c", "//*[@y]/c", "/a[@y=1]/*"]
    visits_done = []
    for on_the_way in (False, True):
        world = static(21, 12, FilteringSettings(length, on_the_way=on_the_way))
        for number, query in enumerate([*queries, *queries[:2]]):
            world.subscribe(world.names[number], f"s{number}", query)
        world.run(3)
        # What has gone leaves guards behind, which let more pass, not less.
        world.unsubscribe("s5")
        world.run(3)
        assert world.not_in_force() == []
        assert published(world, 21, 12) > 4
        outcomes = [one.outcome for one in world.publications if one.outcome]
        visits_done.append(sum(outcome.visits for outcome in outcomes))
    assert visits_done[1] < visits_done[0]


@pytest.mark.parametrize("length", range(4))
def test_messages_are_as_many_as_the_definition_says(length: int) -> None:
    """What is traced once by `visits` and mapped to peers is what the protocol sends."""
    world = filled(static(11, 20, FilteringSettings(length)), 11, 25)
    ring, nfa = StaticRing(world.names), CombinedNFA()
    for standing in world.standing.values():
        for alternative in compile_query(standing.query, ALPHABET.namespaces).alternatives:
            nfa.insert(alternative.steps)
    draw = random.Random(11)
    expected = visited = 0
    for _ in range(8):
        message = random_message(draw)
        publisher = draw.choice(world.names)
        world.publish(publisher, message)
        found = list(visits(nfa.initial, parse_message(message), length))
        visited += len({(visit.path, visit.element) for visit in found})
        for visit in found:
            source = publisher if visit.source is None else ring.owner(state_key(visit.source)).name
            expected += source != ring.owner(state_key(visit.path)).name
    world.run(6)
    peers = peers_of(world)
    assert sum(peer.courier.sent["RecExpandState"] for peer in peers) == expected > 20
    assert world.counted.messages["RecExpandState"] == expected
    assert sum(peer.visiting.done for peer in peers) == visited
    assert sum(one.outcome.visits for one in world.publications if one.outcome) == visited


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 140))
def test_answers_are_those_of_one_process_in_many_seeds(seed: int) -> None:
    draw = random.Random(seed)
    settings = FilteringSettings(
        seed % 4, whole=draw.random() < 0.5, on_the_way=draw.random() < 0.5
    )
    peers = draw.randint(20, 60)
    published(filled(static(seed, peers, settings, draw.choice([0, 0, 3])), seed, 60), seed, 20)


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(1000, 2000), marks=pytest.mark.nightly)]
)
def test_no_match_is_lost_while_peers_come_and_go(seeds: Sequence[int]) -> None:
    matches = proved = publications = 0
    for seed in seeds:
        world = churned(
            seed, FilteringSettings(seed % 3, gather_seconds=[None, 0.01][seed // 2 % 2])
        )
        matches += world.check()
        publications += len(world.publications)
        proved += sum(
            one.outcome is not None and one.outcome.is_proved for one in world.publications
        )
    assert matches > 5 * len(seeds)
    assert proved > 0.95 * publications


@pytest.mark.parametrize("pieces", [None, PieceSettings(4, 5.0, 3)])
def test_queries_are_soon_in_force_while_patient_peers_join(pieces: PieceSettings | None) -> None:
    """Nothing is lost, so nobody may have to wait until patience is over (64 s)."""
    patient = FilteringSettings(
        0 if pieces else 2,
        gather_seconds=0.05,
        patience_seconds=16.0,
        acknowledge_seconds=64.0,
        pieces=pieces,
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


def lossy(seed: int, is_on: bool, *, are_pieces: bool) -> FilteringSettings:
    """For worlds in which a record has one holder, who leaves or crashes."""
    safeguards = Safeguards(keeps_doubt=is_on)
    if are_pieces:
        return FilteringSettings(pieces=PieceSettings(4, 5.0, 3), safeguards=safeguards)
    return FilteringSettings(seed % 3, safeguards=safeguards)


@pytest.mark.parametrize("are_pieces", [False, True])
@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(1000, 1100), marks=pytest.mark.nightly)]
)
def test_what_nobody_holds_any_more_is_not_proved_and_then_restored(
    seeds: Sequence[int], are_pieces: bool
) -> None:
    lost = matches = 0
    for seed in seeds:
        world = churned(seed, lossy(seed, True, are_pieces=are_pieces), copies=1)
        below = [peer.substrate for peer in peers_of(world)]
        lost += sum(peer.restoring.lost for peer in below if isinstance(peer, Peer))
        world.check()
        # Once nobody comes or goes any more, all is as it was.
        world.run(20)
        for message in MESSAGES:
            world.publish("b0", message)
        world.run_until_told()
        assert all(one.outcome and one.outcome.is_proved for one in world.publications[-3:])
        matches += world.check()
    assert lost > len(seeds)
    assert matches > 5 * len(seeds)


def test_what_is_lost_is_missed_silently_where_it_is_taken_for_empty() -> None:
    def is_lost(seed: int) -> bool:
        try:
            churned(seed, lossy(seed, False, are_pieces=False), copies=1).check()
        except LostMatch:
            return True
        return False

    assert any(is_lost(seed) for seed in (4, 5, 0, 1, 2, 3))


@pytest.mark.parametrize("is_on", [True, False])
def test_a_query_that_is_new_meets_no_publication_that_is_over(is_on: bool) -> None:
    """A visit that is done late finds the query, and cannot know that it was asked since."""
    world = FilteringWorld.on_static_ring(
        1, 6, FilteringSettings(safeguards=Safeguards(asks_publisher=is_on))
    )
    world.publish("p0", MESSAGES[0])
    world.run(3)
    world.subscribe("p1", "s", "/a/b")
    world.run(3)
    assert world.not_in_force() == []
    [publication] = world.publications
    assert publication.outcome is not None
    [state] = [
        state
        for peer in peers_of(world)
        if isinstance(peer.substrate, StaticPeer)
        for value, _ in peer.substrate.held.values()
        if (state := decoded_state(value)).entries
    ]
    late = Match(publication.outcome.publication, next(iter(state.entries)), "p0")
    world.network.call("p1", lambda peer, now: peer.receive("p2", Ask(1 << 40, None, late), now))
    world.run(3)
    if is_on:
        world.check()
    else:
        with pytest.raises(LostMatch, match="wrongly"):
            world.check()


@pytest.mark.parametrize("keeps_disk", [True, False])
def test_an_id_that_is_used_again_gets_no_match_of_the_query_it_had(keeps_disk: bool) -> None:
    """The entry of the earlier life stays at its state when the disk of its peer is lost."""
    world = FilteringWorld.on_static_ring(1, 8, FilteringSettings())
    owners = {StaticRing(world.names).owner(key).name for key in ("start", "start/a")}
    owners |= {StaticRing(world.names).owner(f"start/a/{label}").name for label in "bc"}
    peer, publisher = [name for name in world.names if name not in owners][:2]
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
    """The old and the new entry are met by one visit; that the old one is refused is not enough."""
    world = FilteringWorld.on_static_ring(1, 8, FilteringSettings())
    owners = {StaticRing(world.names).owner(key).name for key in ("start", "start/a")}
    peer, publisher = [name for name in world.names if name not in owners][:2]
    for _ in range(2):
        world.subscribe(peer, "s", "/a")
        world.run(3)
        world.publish(publisher, b"<a/>")
        world.run(3)
        world.network.crash(peer, disk=False)
        world.network.restart(peer)
    assert world.check() == 2


def racing(seed: int, safeguards: Safeguards | None = None) -> FilteringSettings:
    return FilteringSettings(
        seed % 3,
        gather_seconds=[None, 0.02][seed // 2 % 2],
        on_the_way=seed % 2 == 1,
        safeguards=safeguards or Safeguards(),
    )


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(1000, 1300), marks=pytest.mark.nightly)]
)
def test_no_match_is_lost_while_queries_come_and_go(seeds: Sequence[int]) -> None:
    for seed in seeds:
        world = raced(seed, racing(seed))
        assert world.not_in_force() == []
        assert world.check() > 0


def test_nothing_is_left_of_queries_that_are_gone() -> None:
    world = raced(7, racing(7), faults=Faults())
    for name, standing in world.standing.items():
        if standing.left is None:
            world.unsubscribe(name)
    world.run(5)
    assert world.not_in_force() == []
    states = 0
    for node in world.network.nodes.values():
        assert isinstance(node, FilteringPeer)
        assert isinstance(node.substrate, StaticPeer)
        for value, _ in node.substrate.held.values():
            states += 1
            assert decoded_state(value).is_empty
    assert states > 5


@pytest.mark.parametrize("safeguard", ["keeps_passed_edges", "tells_once"])
def test_a_safeguard_is_missed_when_queries_come_and_go(safeguard: str) -> None:
    safeguards = replace(Safeguards(), **{safeguard: False})
    assert any(is_missed(seed, racing(seed, safeguards)) for seed in range(40))


@pytest.mark.parametrize("is_on", [True, False])
def test_a_query_that_comes_late_to_a_state_that_was_given_up_begins_anew(is_on: bool) -> None:
    peer = alone(Safeguards(late_begin_anew=is_on))
    entry = Entry("early", "s", "p", "/a/b", (), True)
    ask(peer, IndexQuery("start/a/b", 0, entry, {}, 1))
    ask(peer, RemoveQuery("start/a/b", 0, "early", "p", 1))
    assert kept(peer, "start").is_empty
    # This one passed before the state was given up.
    ask(peer, IndexQuery("start/a/b", 1, replace_registration(entry, "late"), {0: 1}, 1))
    assert list(kept(peer, "start/a/b").entries) == ["late"]
    assert list(kept(peer, "start").edges) == (["a"] if is_on else [])


@pytest.mark.parametrize("is_on", [True, False])
def test_a_query_that_was_removed_does_not_come_back(is_on: bool) -> None:
    peer = alone(Safeguards(remembers_removals=is_on))
    asked = IndexQuery("start/a", 0, Entry("r", "s", "p", "/a", (), True), {}, 1)
    ask(peer, asked)
    ask(peer, RemoveQuery("start/a", 0, "r", "p", 2))
    # An earlier try, held up.
    ask(peer, msgspec.structs.replace(asked, attempt=0))
    assert list(kept(peer, "start/a").entries) == ([] if is_on else ["r"])


def alone(safeguards: Safeguards) -> FilteringPeer:
    """A peer that owns every key."""
    ring = StaticRing(["p", "p"])
    settings = FilteringSettings(safeguards=safeguards)
    return FilteringPeer(lambda asked: StaticPeer("p", ring, asked), 1, {}, settings)


def replace_registration(entry: Entry, registration: str) -> Entry:
    return msgspec.structs.replace(entry, registration=registration)


def ask(peer: FilteringPeer, asked: StateQuestion) -> None:
    peer.receive("q", Ask(1, None, asked), 0.0)


def kept(peer: FilteringPeer, key: str) -> StateRecord:
    assert isinstance(peer.substrate, StaticPeer)
    return decoded_state(peer.substrate.held[key][0])


@pytest.mark.parametrize("is_on", [True, False])
def test_what_a_dead_peer_held_is_reported_as_not_proved(is_on: bool) -> None:
    """Nothing is copied on a ring that never changes: what is lost must have a name."""
    settings = FilteringSettings(
        patience_seconds=0.5,
        patience_tries=3,
        tries=3,
        safeguards=Safeguards(counts_credits=is_on),
    )
    world = FilteringWorld.on_static_ring(1, 8, settings)
    ring = StaticRing(world.names)
    dead = ring.owner("start/a/b").name
    alive = next(name for name in world.names if name != dead)
    assert ring.owner("start").name != dead != ring.owner("start/a").name
    for query in QUERIES[:3]:
        world.subscribe(alive, query, query)
    world.run(2)
    assert world.not_in_force() == []
    world.network.crash(dead)
    for iteratively in (False, True) if is_on else (False,):
        world.publish(alive, MESSAGES[0], iteratively=iteratively)
    world.run(20)
    if is_on:
        world.check()
        for one in world.publications:
            assert one.outcome is not None
            assert Visit("start/a/b", 2) in one.outcome.unproved
    else:
        with pytest.raises(LostMatch):
            world.check()


@pytest.mark.parametrize("is_on", [True, False])
def test_states_that_many_messages_reach_are_held_by_others_and_stay_exact(is_on: bool) -> None:
    """A replica that is not read anew in time would miss what was subscribed since."""
    settings = FilteringSettings(
        shedding=SheddingSettings(documents_min=3, replica_seconds=2.0),
        safeguards=Safeguards(waits_for_readers=is_on),
    )
    world = FilteringWorld.on_static_ring(5, 30, settings)
    world.subscribe("p0", "first", "//c")
    world.run(4)
    for number in range(40):
        publish = partial(world.publish, "p1", MESSAGES[number % 3])
        world.network.at(4 + number / 10, publish)
    world.run(4)
    world.subscribe("p2", "second", "//b")
    seen: list[float] = []
    for _ in range(50):
        world.run(0.1)
        if not world.not_in_force():
            seen.append(world.network.now)
            world.publish("p3", MESSAGES[len(seen) % 3])
    world.run(5)
    peers = peers_of(world)
    assert sum(peer.shedding.notices for peer in peers) > 10
    assert sum(peer.shedding.holds("start") for peer in peers) >= 7
    assert len(seen) > 5
    if is_on:
        assert world.check() > 40
    else:
        with pytest.raises(LostMatch):
            world.check()


def test_every_safeguard_is_among_those_that_are_missed() -> None:
    here = Path(__file__)
    tests = here.read_text() + here.with_name("test_dht_pieces.py").read_text()
    for field in fields(Safeguards):
        assert f"{field.name}=is_on" in tests or f'"{field.name}"' in tests

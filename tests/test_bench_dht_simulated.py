"""Arithmetic over a trace counts what simulated peers send, each kind of message for itself.

If these fail, figures of thousands of peers are not figures of the protocol.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("msgspec")

from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.messages import Member
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.dht.piece_records import decoded_piece
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast.schema import parse_dtd
from pathcast.workload import (
    DocumentParameters,
    QueryParameters,
    domain_graph,
    generate_documents,
    generate_queries,
)
from pathcast_lab.bench.dht.documents import Documents
from pathcast_lab.bench.dht.peer_cuts import cut_by_peers
from pathcast_lab.bench.dht.pieces import cut
from pathcast_lab.bench.dht.replay import Replay
from pathcast_lab.bench.dht.ring import Ring
from pathcast_lab.bench.dht.savings import in_pieces, load_and_hits
from pathcast_lab.bench.dht.state_table import StateTable
from pathcast_lab.bench.dht.trace import Trace
from pathcast_lab.sim.filtering_world import FilteringWorld
from pathcast_lab.sim.static_ring import StaticRing
from pathcast_papers.dht.state_ring import StateRing

RECURSIVE = parse_dtd("<!ELEMENT a (b|c)*><!ELEMENT b (a|b|c)*><!ELEMENT c (b*)>")


@pytest.mark.parametrize(
    ("length", "peers", "is_recursive"),
    [(0, 50, True), (1, 100, True), (2, 50, True), (0, 200, False)],
)
def test_replay_counts_what_peers_send(length: int, peers: int, is_recursive: bool) -> None:
    graph = RECURSIVE if is_recursive else domain_graph("alerts")
    queries = list(
        generate_queries(
            graph,
            QueryParameters(
                count=200 if is_recursive else 80,
                seed=length,
                depth_max=6,
                wildcard=0.2,
                descendant=0.3,
            ),
        )
    )
    documents = DocumentParameters(count=6, seed=peers, depth_max=4, repeats_max=2, elements_max=40)
    messages = list(generate_documents(graph, documents))

    members = sorted((Member(f"p{n}", 0) for n in range(peers)), key=lambda m: m.identifier)
    places = np.array([member.identifier >> 96 for member in members], np.uint64)
    table = StateTable.of(queries)
    trace = Trace.of(table, Documents.of(messages, table.labels), length)
    replay = Replay(trace, Ring(places, np.arange(peers), peers), publishers=4)

    names = [f"p{number}" for number in range(peers)]
    ring = StateRing(names, StaticRing(names), length)
    for number, query in enumerate(queries):
        ring.subscribe(names[number % peers], f"s{number}", query)
    assert ring.sent["IndexQuery"] > 0
    index = Registry()
    index.add(Query(f"s{number}", query) for number, query in enumerate(queries))
    answers = index.freeze().match(messages)
    for iteratively in (False, True):
        traffic = replay.iterative() if iteratively else replay.recursive()
        kind = "ExpandState" if iteratively else "RecExpandState"
        publish = ring.publish_iteratively if iteratively else ring.publish
        for document, message in enumerate(messages):
            before, hops_before = ring.sent[kind], ring.hops[kind]
            found = publish(members[document % 4].name, message)
            assert found.matched == set(answers[document].query_ids)
            asked, way = ring.sent[kind] - before, ring.hops[kind] - hops_before
            # An iterative question has an answer, which is counted with it.
            replies = asked if iteratively else 0
            assert traffic.messages[document] == asked + replies
            assert traffic.looked_up[document] == way + replies
            if iteratively:
                assert found.hops == traffic.chain[document]
                assert found.way == traffic.chain_looked_up[document]
            else:
                # Who comes first is not always who has come the longest way.
                assert 0 < found.hops <= traffic.chain[document]
                assert 0 < found.way <= traffic.chain_looked_up[document]
            occurs = trace.documents.counts[trace.documents.pair_document == document]
            nodes = trace.documents.pair_node[trace.documents.pair_document == document]
            done = np.bincount(trace.node[trace.is_done], minlength=len(trace.documents.above))
            assert found.visits == (occurs * done[nodes]).sum()
    assert any(answer.query_ids for answer in answers)


@pytest.mark.parametrize(("count", "peers"), [(6, 50), (25, 20)])
def test_replay_counts_what_peers_of_pieces_send(count: int, peers: int) -> None:
    graph = domain_graph("news")
    queries = list(generate_queries(graph, QueryParameters(count=150, seed=3, descendant=0.3)))
    messages = list(generate_documents(graph, DocumentParameters(count=9, seed=1, elements_max=60)))
    members = sorted((Member(f"p{n}", 0) for n in range(peers)), key=lambda m: m.identifier)
    places = np.array([member.identifier >> 96 for member in members], np.uint64)
    ring = Ring(places, np.arange(peers), peers)
    table = StateTable.of(queries)
    trace = Trace.of(table, Documents.of(messages, table.labels))
    pieces = cut(table, *load_and_hits(trace, range(3)), count)
    found = in_pieces(trace, pieces, ring, range(3, len(messages)))

    never = PieceSettings(queries_max=1_000_000, found_max=float("inf"))
    world = FilteringWorld.on_static_ring(
        1, peers, FilteringSettings(pieces=never), records=pieces.records()
    )
    for number, query in enumerate(queries):
        world.subscribe(world.names[number % peers], f"s{number}", query)
    world.run(5.0)
    assert world.not_in_force() == []
    before = told(world)
    for document, message in enumerate(messages[3:]):
        world.publish(members[document % 4].name, message)
        world.run(2.0)
    assert world.check() > 0
    assert all(one.outcome and one.outcome.is_proved for one in world.publications)
    after = told(world)
    sent = after["RunPieces"] - before["RunPieces"]
    # The peer of the start state gets one message, if it has pieces as well.
    start = ring.owners(table.places(np.zeros(1, np.intp)))[0]
    shared = start in ring.owners(table.places(pieces.root))
    expected = round(found.messages * len(messages[3:]))
    assert expected - shared * len(messages[3:]) <= sent <= expected
    assert shared or sent == expected
    # A credit for each, and for those that only pass by none.
    assert after["Ran"] - before["Ran"] == sent


def told(world: FilteringWorld) -> Counter[str]:
    """Questions by kind, to others and to oneself."""
    found = Counter[str]()
    for node in world.network.nodes.values():
        assert isinstance(node, FilteringPeer)
        found.update(node.courier.sent)
        found.update(node.courier.kept)
    return found


def test_pieces_are_those_that_peers_cut() -> None:
    parameters = QueryParameters(count=150, seed=1, wildcard=0.2, descendant=0.2)
    queries = list(generate_queries(domain_graph("alerts"), parameters))
    settings = FilteringSettings(PieceSettings(queries_max=12), gather_seconds=0.0)
    world = FilteringWorld.on_static_ring(1, 12, settings)
    for number, query in enumerate(queries):
        world.subscribe(f"p{number % 12}", f"s{number}", query)
        world.run(1.0)
    held = set()
    for node in world.network.nodes.values():
        assert isinstance(node, FilteringPeer)
        for key in node.substrate.own_keys():
            value = node.substrate.kept(key)
            if value is not None and decoded_piece(key, value.value).is_there:
                held.add(key)
    table = StateTable.of(queries)
    pieces = cut_by_peers(table, queries_max=12)
    assert held == {"start", *(table.key(int(root)) for root in pieces.root)}
    assert len(held) > 5

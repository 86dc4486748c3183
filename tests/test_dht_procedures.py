"""Procedures 1 to 4 of the paper: answers of one process, and as many messages as by definition.

If these fail, figures of the paper's method are not figures of what the paper says.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

pytest.importorskip("msgspec")

from filtering_worlds import MESSAGES, QUERIES
from generators.alphabet import ALPHABET
from generators.message_text import random_message
from generators.query_text import random_query
from oracles.engines import made_by
from oracles.paths import of_papers
from pathcast.dht.identifiers import state_key
from pathcast.model import Query
from pathcast.query import compile_query
from pathcast.registry import Registry
from pathcast_lab.sim.static_ring import StaticRing
from pathcast_papers.dht.automaton import visits
from pathcast_papers.dht.state_ring import Replicating, StateRing
from pathcast_papers.filtering.nfa import CombinedNFA
from pathcast_papers.message import parse_message


def drawn_queries(draw: random.Random, count: int) -> dict[str, str]:
    return {f"s{n}": draw.choice([random_query(draw), draw.choice(QUERIES)]) for n in range(count)}


def ring_of(
    names: Sequence[str],
    queries: dict[str, str],
    length: int,
    *,
    whole: bool = True,
    replicating: Replicating | None = None,
) -> StateRing:
    """A ring with queries in it, subscribed by all peers in turn."""
    ring = StateRing(
        names,
        StaticRing(names),
        length,
        whole=whole,
        replicating=replicating,
        namespaces=ALPHABET.namespaces,
    )
    for number, (name, query) in enumerate(queries.items()):
        ring.subscribe(names[number % len(names)], name, query)
    return ring


def answers(queries: dict[str, str], messages: Sequence[bytes]) -> list[set[str]]:
    """Queries that each message satisfies, as one process says."""
    index = made_by("reference", Registry, namespaces=ALPHABET.namespaces)
    index.add(Query(name, query) for name, query in queries.items())
    return [set(found.query_ids) for found in index.match(messages)]


def check(seed: int, peers: int, length: int, queries: int, messages: int) -> int:
    """Publish in both ways; how many matches there were."""
    draw = random.Random(f"procedures {seed}")
    subscribed = drawn_queries(draw, queries)
    names = [f"p{number}" for number in range(peers)]
    ring = ring_of(names, subscribed, length, whole=bool(seed % 2))
    stream = [draw.choice([random_message(draw), draw.choice(MESSAGES)]) for _ in range(messages)]
    for message, expected in zip(stream, answers(subscribed, stream), strict=True):
        publisher = draw.choice(names)
        assert ring.publish(publisher, message).matched == expected
        assert ring.publish_iteratively(publisher, message).matched == expected
    return sum(map(len, answers(subscribed, stream)))


@pytest.mark.parametrize("length", range(4))
def test_answers_of_both_methods_are_those_of_one_process(length: int) -> None:
    assert sum(check(seed, 20, length, 30, 6) for seed in range(2)) > 20


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 140))
def test_answers_are_those_of_one_process_in_many_seeds(seed: int) -> None:
    assert check(seed, random.Random(seed).randint(20, 60), seed % 4, 60, 20) > 0


@pytest.mark.parametrize("length", range(4))
def test_messages_are_as_many_as_the_definition_says(length: int) -> None:
    """The definition is traced once by `visits`, and each visit is mapped to its peers."""
    draw = random.Random(11)
    queries = drawn_queries(draw, 25)
    names = [f"p{number}" for number in range(20)]
    ring, nfa = ring_of(names, queries, length), CombinedNFA()
    owners = StaticRing(names)
    for query in queries.values():
        for alternative in compile_query(query, ALPHABET.namespaces).alternatives:
            nfa.insert(of_papers(alternative).steps)
    expected = visited = done = 0
    for _ in range(8):
        message, publisher = random_message(draw), draw.choice(names)
        done += ring.publish(publisher, message).visits
        found = list(visits(nfa.initial, parse_message(message), length))
        visited += len({(visit.path, visit.element) for visit in found})
        for visit in found:
            source = (
                publisher if visit.source is None else owners.owner(state_key(visit.source)).name
            )
            expected += source != owners.owner(state_key(visit.path)).name
    assert ring.sent["RecExpandState"] == expected > 20
    assert sum(ring.done.values()) == visited == done


def test_replicas_take_visits_of_states_that_many_messages_reach_and_stay_exact() -> None:
    names = [f"p{number}" for number in range(30)]
    queries = dict(zip("stuv", QUERIES, strict=False))
    stream = [MESSAGES[number % 3] for number in range(60)]
    most, notices = [], []
    for replicating in (None, Replicating(documents_min=3)):
        ring = ring_of(names, queries, 0, replicating=replicating)
        for message, expected in zip(stream, answers(queries, stream), strict=True):
            assert ring.publish("p0", message).matched == expected
        most.append(max(ring.done.values()))
        notices.append(ring.notices)
    assert most[1] < most[0] / 2
    assert notices[0] == 0
    assert notices[1] % 29 == 0 < notices[1]

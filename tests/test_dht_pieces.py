"""The automaton in pieces on a ring: answers are those of one process, whatever is cut meanwhile."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

pytest.importorskip("msgspec")

from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.peer import Settings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.dht.safeguards import Safeguards
from pathcast.sim import Faults
from pathcast.sim.filtering_world import FilteringWorld, LostMatch
from pathcast.testing.alphabet import ALPHABET
from pathcast.testing.message_text import random_message
from pathcast.testing.query_text import random_query

UNKIND = Faults(duplicate=0.05, reorder=0.2, reorder_seconds=0.02, skew=0.01)
LOSSY = replace(UNKIND, loss=0.05)
LATE = Faults(duplicate=0.15, reorder=0.5, reorder_seconds=0.4)
QUERIES = ["/a", "/a/b", "/a//b", "//b", "//b/c", "/a/b/c", "//a//b/c", "/a/b//@x", "//*[@x]/c"]
MESSAGES = [b"<a><b><c/></b></a>", b"<a x='1'><c><b x='2'/></c></a>", b"<b><c/></b>"]

SMALL = PieceSettings(queries_max=4, steps_max=30.0, publications_min=3)


def settings(pieces: PieceSettings = SMALL, safeguards: Safeguards | None = None) -> FilteringSettings:
    return FilteringSettings(pieces=pieces, safeguards=safeguards or Safeguards())


def peers_of(world: FilteringWorld) -> list[FilteringPeer]:
    return [node for node in world.network.nodes.values() if isinstance(node, FilteringPeer)]


def cuts(world: FilteringWorld) -> int:
    return sum(peer.pieces.cutting.cuts for peer in peers_of(world) if peer.pieces)


def filled(world: FilteringWorld, seed: int, count: int, seconds: float = 4.0) -> FilteringWorld:
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


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_one_process(seed: int) -> None:
    world = FilteringWorld.on_static_ring(seed, 20, settings(), namespaces=ALPHABET.namespaces)
    assert published(filled(world, seed, 60), seed, 20) > 20
    assert cuts(world) > 3

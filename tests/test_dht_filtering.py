"""The automaton on a ring: answers are those of one process, and never silently less."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("msgspec")

from pathcast.dht.filtering import FilteringSettings
from pathcast.sim.filtering_world import FilteringWorld
from pathcast.testing.alphabet import ALPHABET
from pathcast.testing.message_text import random_message
from pathcast.testing.query_text import random_query


def _subscribed(seed: int, peers: int, count: int, settings: FilteringSettings) -> FilteringWorld:
    draw = random.Random(f"filtering {seed}")
    world = FilteringWorld.on_static_ring(seed, peers, settings, namespaces=ALPHABET.namespaces)
    for number in range(count):
        world.subscribe(draw.choice(world.names), f"s{number}", random_query(draw))
    world.run(3.0)
    assert world.not_in_force() == []
    return world


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_answers_are_those_of_one_process(length: int) -> None:
    matches = 0
    for seed in range(3):
        draw = random.Random(f"messages {seed}")
        world = _subscribed(seed, 20, 30, FilteringSettings(length, whole=bool(seed % 2)))
        for _ in range(8):
            message = random_message(draw)
            for iteratively in (False, True):
                world.publish(draw.choice(world.names), message, iteratively=iteratively)
        world.run(10.0)
        assert all(p.outcome and p.outcome.is_proved for p in world.publications)
        matches += world.check()
    assert matches > 50

"""The automaton in pieces on a ring: answers are those of one process, whatever is cut meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

pytest.importorskip("msgspec")

from pathcast.dht.filtering import FilteringSettings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.dht.safeguards import Safeguards
from pathcast.errors import ConfigError
from pathcast.sim.filtering_world import FilteringWorld
from pathcast.testing.alphabet import ALPHABET
from filtering_worlds import churned, filled, is_missed, peers_of, published, raced

SMALL = PieceSettings(queries_max=4, steps_max=30.0, publications_min=3)


def in_pieces(safeguards: Safeguards | None = None) -> FilteringSettings:
    return FilteringSettings(pieces=SMALL, safeguards=safeguards or Safeguards())


def cuts(world: FilteringWorld) -> int:
    return sum(peer.pieces.cutting.cuts for peer in peers_of(world) if peer.pieces)


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_one_process(seed: int) -> None:
    world = FilteringWorld.on_static_ring(seed, 20, in_pieces(), namespaces=ALPHABET.namespaces)
    filled(world, seed, 60, seconds=4.0)
    assert published(world, seed, 20, ways=[False]) > 20
    assert cuts(world) > 3


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(1000, 1200), marks=pytest.mark.nightly)]
)
def test_no_match_is_lost_while_peers_come_and_go(seeds: Sequence[int]) -> None:
    matches = proved = publications = cut = 0
    for seed in seeds:
        world = churned(seed, in_pieces())
        matches += world.check()
        cut += cuts(world)
        publications += len(world.publications)
        proved += sum(
            one.outcome is not None and one.outcome.is_proved for one in world.publications
        )
    assert matches > 5 * len(seeds)
    assert cut > len(seeds)
    assert proved > 0.95 * publications


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(1000, 1300), marks=pytest.mark.nightly)]
)
def test_no_match_is_lost_while_queries_come_and_go(seeds: Sequence[int]) -> None:
    for seed in seeds:
        world = raced(seed, in_pieces())
        assert world.not_in_force() == []
        assert world.check() > 0


@pytest.mark.parametrize(
    "safeguard", ["passes_on", "waits_for_pieces", "waits_for_readers", "remembers_removals"]
)
def test_a_safeguard_is_missed(safeguard: str) -> None:
    safeguards = replace(Safeguards(), **{safeguard: False})
    assert any(is_missed(seed, in_pieces(safeguards)) for seed in range(40))


@pytest.mark.parametrize("given", [{"length": 1}, {"whole": True}, {"on_the_way": True}])
def test_what_is_about_states_is_refused_with_pieces(given: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="about states"):
        FilteringSettings(pieces=SMALL, **given)

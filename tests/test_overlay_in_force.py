"""`InForce` is true of the life of a subscription that it names, also where ids are used again."""

from __future__ import annotations

import random
from functools import partial

import pytest

pytest.importorskip("msgspec")

from pathcast.overlay.broker_settings import Trees
from pathcast_lab.sim import Faults, Step
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.broker_scenarios import random_scenario
from pathcast_lab.sim.broker_world import BrokerWorld, Scenario, Violation

LINE = (("a", "b"), ("b", "c"))
TREES = pytest.mark.parametrize("trees", ["spanning", "broadcast"])
SLOW = Faults(delay_seconds=(1.0, 1.0))


def changes_its_mind(again: float, query: str, trees: Trees = "spanning") -> Scenario:
    """One id at one end of a slow line, withdrawn and asked for again; messages at the other end.

    A change is known at `c` after two seconds, and settled at `a` after two more.
    """
    steps = [
        Step(0.0, "source", ("c",)),
        Step(4.0, "become", (SLOW,)),
        Step(5.0, "subscribe", ("a", "s", "a1")),
        Step(5.4, "unsubscribe", ("s",)),
        Step(again, "subscribe", ("a", "s", query)),
        *(Step(5.5 + n / 10, "publish", ("c", f"1 2 m{n}")) for n in range(110)),
    ]
    steps.sort(key=lambda step: step.at)
    return Scenario(("a", "b", "c"), LINE, tuple(steps), trees=trees)


@TREES
@pytest.mark.parametrize("query", ["a1", "a2"])
@pytest.mark.parametrize("again", [5.4, 6.0, 7.5, 8.8, 9.2, 11.0])
def test_an_id_that_comes_back_is_in_force_when_its_own_change_is_settled(
    again: float, query: str, trees: Trees
) -> None:
    world = BrokerWorld(changes_its_mind(again, query, trees), 1).run()
    known = world.subscriptions["s"]
    assert known.in_force_at is not None
    if again > 5.4:  # else the tables were never without it
        assert known.in_force_at >= again + 4
    assert known.delivered[-1] == "m109"


def test_an_acknowledgement_of_a_former_life_is_missed() -> None:
    """The change of the first life is settled at 9 s; the second reaches the root after that."""
    lost = pytest.raises(Violation, match=r"m\d+ .* was not delivered for s ")
    with without("tickets"), lost:
        BrokerWorld(changes_its_mind(8.8, "a1"), 1).run()


def test_changes_that_nobody_is_told_of_are_not_remembered_one_by_one() -> None:
    """The only neighbour of a broker is told nothing of its own changes, however many there are."""
    steps = [Step(0.0, "source", ("b",))]
    for number in range(30):
        steps.append(Step(2.0 + number / 2, "subscribe", ("a", "s", f"a{number}")))
    world = BrokerWorld(Scenario(("a", "b"), (("a", "b"),), tuple(steps)), 1).run()
    (plane,) = world.node("b").broker.planes.values()
    assert plane._heard_number["a"] > 30
    assert [len(plane._history[origin]) for origin in plane._history if origin == "a"] == [1]


def wavering_scenario(seed: int) -> Scenario:
    """Every query stands alone, links are slow, and subscribers change their mind."""
    return random_scenario(
        seed,
        brokers=(3, 4),
        steps_a_second=8.0,
        disasters=0.0,
        profile=lambda draw: f"a{draw.randrange(20)}",
        body=half_of_the_numbers,
        faults=lambda draw: Faults(delay_seconds=(0.3, 1.5)),
    )


def half_of_the_numbers(draw: random.Random) -> str:
    return " ".join(map(str, draw.sample(range(20), 10)))


def lost(seeds: range) -> bool:
    for seed in seeds:
        try:
            BrokerWorld(wavering_scenario(seed), seed).run()
        except Violation:
            return True
    return False


def test_subscribers_who_change_their_mind_miss_nothing() -> None:
    assert not lost(range(20))
    with without("tickets"):
        assert lost(range(20)), "the seeds do not reach it"


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 3000, 500))
def test_subscribers_who_change_their_mind_miss_nothing_at_length(first: int) -> None:
    assert not lost(range(first, first + 500))


def test_a_version_is_given_once_whatever_becomes_of_the_disk() -> None:
    asked = partial(Step, action="subscribe", args=("a", "s", "a1"))
    steps = [
        Step(0.0, "source", ("c",)),
        asked(3.0),
        Step(4.0, "unsubscribe", ("s",)),
        asked(5.0),
        Step(6.0, "crash", ("a", True)),
        Step(6.5, "restart", ("a",)),
        asked(8.0),
        Step(9.0, "unsubscribe", ("s",)),
        Step(9.5, "crash", ("a", True)),
        Step(10.0, "restart", ("a",)),
        asked(11.0),
        Step(12.0, "crash", ("a", False)),
        Step(12.5, "restart", ("a",)),
        asked(15.0),
    ]
    world = BrokerWorld(Scenario(("a", "b", "c"), LINE, tuple(steps)), 1).run()
    # The world refuses a version that comes twice; it has to have seen all of them.
    assert len(world.versions["s"]) == 5

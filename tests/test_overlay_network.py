"""Brokers in the simulated network equal one process with all subscriptions, whatever happens."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("msgspec")

from pathcast.model import Query
from pathcast.overlay.broker import Trees
from pathcast.overlay.content import Content
from pathcast.overlay.interest import EXACT, Policy
from pathcast.overlay.messages import Frame, Hello, decoded, encoded
from pathcast.overlay.safeguards import ALL, Safeguards
from pathcast.overlay.xml_content import xml_content
from pathcast.sim import Step, shrunk
from pathcast.sim.broker_model import BrokerModel, Publish, Subscribe
from pathcast.sim.broker_scenarios import random_scenario
from pathcast.sim.broker_world import BrokerWorld, Scenario, Violation
from pathcast.sim.interleavings import WrongOrder, explore
from pathcast.sim.toy_content import TOY, ToyInterests, ToyProfiles
from pathcast.testing import oracle_matches

SEEDS = range(100)
NIGHTLY_SEEDS = range(1000, 11_000)


def in_bytes(message: object) -> object:
    assert isinstance(message, Hello | Frame)
    return decoded(encoded(message))


def failing_seed(seeds: range, safeguards: Safeguards = ALL, content: Content = TOY) -> int | None:
    """The first seed of which a run breaks an invariant."""
    for seed in seeds:
        try:
            BrokerWorld(random_scenario(seed), seed, content=content, safeguards=safeguards).run()
        except Violation:
            return seed
    return None


@pytest.mark.parametrize("seeds", [SEEDS[n : n + 20] for n in range(0, len(SEEDS), 20)])
def test_a_network_is_one_process(seeds: range) -> None:
    delivered = crashed = 0
    for seed in seeds:
        through = in_bytes if seed % 4 == 0 else None
        world = BrokerWorld(random_scenario(seed), seed, through=through).run()
        delivered += sum(map(len, world.deliveries.values()))
        crashed += len(world.crashed)
    assert delivered > 50, "the seeds do not reach what they are there for"
    assert crashed > 5


def xml_profile(draw: random.Random) -> str:
    step = draw.choice("abc*")
    condition = draw.choice(["", "[@k='1']", "[a]", "[a and b]", "[not(b)]", "[. > 3]"])
    return draw.choice([f"/r/{step}{condition}", f"//{step}{condition}", f"/r[{step}]//c"])


def xml_body(draw: random.Random) -> str:
    def element(depth: int) -> str:
        inside = "".join(element(depth + 1) for _ in range(draw.randrange(3 - depth)))
        name, key = draw.choice("abc"), draw.choice(["", " k='1'", " k='2'"])
        return f"<{name}{key}>{inside or draw.randrange(6)}</{name}>"

    return f"<r>{element(0)}{element(0)}</r>"


@cache
def xml_satisfies(body: bytes, profile: str) -> bool:
    return oracle_matches(Query("q", profile), body)


@pytest.mark.parametrize("policy", [EXACT, Policy(covering=True)], ids=["exact", "covering"])
def test_a_network_of_xml_is_one_process(policy: Policy) -> None:
    delivered = 0
    content = xml_content(policy)
    for seed in range(4):
        scenario = random_scenario(seed, profile=xml_profile, body=xml_body, seconds=12.0)
        world = BrokerWorld(scenario, seed, content=content, satisfies=xml_satisfies).run()
        delivered += sum(map(len, world.deliveries.values()))
    assert delivered > 10


@pytest.mark.nightly
@pytest.mark.parametrize("policy", [EXACT, Policy(covering=True)], ids=["exact", "covering"])
def test_a_network_of_xml_is_one_process_at_length(policy: Policy) -> None:
    for seed in range(1000, 1200):
        scenario = random_scenario(seed, profile=xml_profile, body=xml_body)
        content = xml_content(policy)
        BrokerWorld(scenario, seed, content=content, satisfies=xml_satisfies).run()


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(NIGHTLY_SEEDS.start, NIGHTLY_SEEDS.stop, 500))
def test_a_network_of_many_brokers_is_one_process(first: int) -> None:
    for seed in range(first, first + 500):
        scenario = random_scenario(seed, brokers=(5, 15), seconds=25.0, steps_a_second=3.0)
        BrokerWorld(scenario, seed).run()


@pytest.mark.parametrize(
    "name",
    sorted({field.name for field in fields(ALL)} - {"drop", "known", "numbers", "settle"}),
)
def test_each_safeguard_is_missed(name: str) -> None:
    assert failing_seed(range(120), replace(ALL, **{name: False})) is not None


def test_what_an_entry_covers_is_missed_when_it_is_forgotten() -> None:
    # The classic lost route: the covering subscription goes, and with it what others needed.
    forgetful = Content(lambda: ToyInterests(keeps_what_is_covered=False), ToyProfiles)
    assert failing_seed(SEEDS, content=forgetful) is not None


def joined_during_a_partition() -> Scenario:
    """A root is cut off and gives the others up; one that it does not know subscribes there."""
    steps = [
        Step(0.0, "source", ("r",)),
        Step(2.0, "cut", ("a", "r")),
        Step(8.0, "join", ("z", "a")),
        Step(11.0, "subscribe", ("z", "s", "a1")),
        Step(12.0, "expel", ("r", "a")),
        Step(14.0, "publish", ("r", "1")),
        Step(17.0, "mend", ("a", "r")),
        Step(27.0, "publish", ("r", "1 again")),
    ]
    return Scenario(("a", "r"), (("a", "r"),), tuple(steps))


def test_a_host_is_known_to_all_members_before_it_acknowledges() -> None:
    world = BrokerWorld(joined_during_a_partition(), 1).run()
    in_force = world.subscriptions["s"].in_force_at
    assert in_force is not None
    assert in_force > 17, "the root could not have known"
    assert world.deliveries["s"][-1] == "m1"


def test_that_safeguard_is_missed() -> None:
    with pytest.raises(Violation, match=r"m0 .* was not delivered for s "):
        BrokerWorld(joined_during_a_partition(), 1, safeguards=replace(ALL, known=False)).run()


LINE = (("a", "b"), ("b", "c"))
TWO_AND_TWO: list[Subscribe | Publish] = [
    Subscribe("a", "s1", "a1*"),
    Subscribe("c", "s2", "a12"),
    Publish("b", b"12 m1"),
    Publish("a", b"12 m2"),
]


@pytest.mark.parametrize("trees", ["spanning", "broadcast"])
def test_every_order_of_two_subscriptions_and_a_message(trees: Trees) -> None:
    explored = explore(BrokerModel(LINE, TWO_AND_TWO[:3], trees=trees))
    assert explored.states > 100
    assert explored.ends > 1


@pytest.mark.nightly
@pytest.mark.parametrize("trees", ["spanning", "broadcast"])
def test_every_order_of_two_subscriptions_and_two_messages(trees: Trees) -> None:
    explored = explore(BrokerModel(LINE, list(TWO_AND_TWO), trees=trees))
    assert explored.states > 3000
    assert explored.ends > 1


@pytest.mark.nightly
@pytest.mark.parametrize("reset", LINE)
@pytest.mark.parametrize("trees", ["spanning", "broadcast"])
def test_every_order_with_a_session_that_ends(trees: Trees, reset: tuple[str, str]) -> None:
    explored = explore(BrokerModel(LINE, list(TWO_AND_TWO), [reset], trees=trees))
    assert explored.states > 5000


def test_an_acknowledgement_that_does_not_wait_is_found_by_some_order() -> None:
    todo = [TWO_AND_TWO[1], TWO_AND_TWO[3]]
    model = BrokerModel(LINE, todo, safeguards=replace(ALL, settle=False))
    with pytest.raises(WrongOrder, match="is lost to"):
        explore(model)


def test_a_seed_gives_the_same_run_in_another_process() -> None:
    # Sets of strings are in another order there: a node that follows one would not replay.
    program = (
        "from pathcast.sim.broker_world import *; from pathcast.sim.broker_scenarios import *\n"
        "from hashlib import sha256\n"
        "w = BrokerWorld(random_scenario(3), 3).run()\n"
        "print(w.network.sent, sha256(repr(list(w.network.lines)).encode()).hexdigest())"
    )
    path = os.pathsep.join(sys.path)
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_a_run_that_fails_is_told_with_its_steps_and_shrinks() -> None:
    broken = replace(ALL, resync=False)
    seed = failing_seed(range(40), broken)
    assert seed is not None
    scenario = random_scenario(seed)

    def fails(steps: Sequence[Step]) -> bool:
        try:
            BrokerWorld(scenario.with_steps(steps), seed, safeguards=broken).run()
        except Violation:
            return True
        return False

    few = shrunk(scenario.steps, fails, runs_max=60)
    assert len(few) < len(scenario.steps) / 3
    assert fails(few)
    with pytest.raises(Violation) as violation:
        BrokerWorld(scenario.with_steps(few), seed, safeguards=broken).run()
    told = str(violation.value)
    assert f"seed {seed}" in told
    assert str(few[0]) in told
    assert "receives" in told

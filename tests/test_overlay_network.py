"""Brokers in the simulated network equal one process with all subscriptions, whatever happens."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import pytest

from oracles.engines import made_by

pytest.importorskip("msgspec")

from broker_engines import missing
from oracles import oracle_matches
from pathcast import Registry, Subscription
from pathcast.model import Query
from pathcast.overlay import query_plane
from pathcast.overlay.broker_settings import Trees
from pathcast.overlay.content import Content, DeliveryProfile, Results
from pathcast.overlay.messages import Forward, SessionFrame, SessionHello, decoded, encoded
from pathcast.overlay.xml_content import XmlInterests, xml_content
from pathcast_lab.sim import Step, shrunk
from pathcast_lab.sim.ablations import OVERLAY, without
from pathcast_lab.sim.broker_model import BrokerModel, Publish, Subscribe
from pathcast_lab.sim.broker_scenarios import connection_faults, random_scenario
from pathcast_lab.sim.broker_world import BrokerWorld, Scenario, Violation
from pathcast_lab.sim.interleavings import WrongOrder, explore
from pathcast_lab.sim.toy_content import TOY, ToyInterests, ToyProfiles

NEEDS_KERNEL = pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))
SEEDS = range(100)
NIGHTLY_SEEDS = range(1000, 11_000)
TRIED_ELSEWHERE = {
    "drop",
    "elder",
    "had",
    "known",
    "lapse",
    "left",
    "lives",
    "numbers",
    "settle",
    "steps",
    "tickets",
}
"""Safeguards that have scenarios of their own, in which they are missed."""


def in_bytes(message: object) -> object:
    assert isinstance(message, SessionHello | SessionFrame)
    return decoded(encoded(message))


def busy_scenario(seed: int) -> Scenario:
    """Subscriptions come and go while messages are under way."""
    return random_scenario(seed, seconds=12.0, steps_a_second=6.0, disasters=0.15)


def failing_seed(
    seeds: range,
    content: Content = TOY,
    scenario: Callable[[int], Scenario] = random_scenario,
) -> int | None:
    """The first seed of which a run breaks an invariant."""
    for seed in seeds:
        try:
            BrokerWorld(scenario(seed), seed, content=content).run()
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


def over_connections(seeds: range, **drawn: float) -> int:
    """Runs over connections that are cut anywhere; says how many were half open."""
    half_open = 0
    for seed in seeds:
        scenario = random_scenario(seed, faults=connection_faults, **drawn)  # type: ignore[arg-type]
        world = BrokerWorld(scenario, seed, through=in_bytes if seed % 4 == 0 else None).run()
        half_open += sum(line[2] == "half open" for line in world.network.lines)
    return half_open


def test_a_network_over_connections_that_are_cut_anywhere_is_one_process() -> None:
    """It fails where what an older connection brings late is taken for what comes next."""
    assert over_connections(range(60)) > 10, "the seeds do not reach what they are there for"


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 4000, 500))
def test_a_network_over_connections_that_are_cut_anywhere_at_length(first: int) -> None:
    assert over_connections(range(first, first + 500), older=0.15) > 100


def cut_on_the_way(seeds: range) -> int:
    """Runs in which subscriptions come while messages are cut; how many were, link by link."""
    cut = 0

    def watched(message: object) -> object:
        nonlocal cut
        payloads = message.payloads if isinstance(message, SessionFrame) else ()
        for said in payloads:
            if isinstance(said, Forward):
                cut += sum(one.considers is not None for one in said.messages)
        return message

    for seed in seeds:
        BrokerWorld(busy_scenario(seed), seed, through=watched).run()
    return cut


def test_a_network_that_cuts_messages_is_one_process() -> None:
    assert cut_on_the_way(range(25)) > 100


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_a_network_that_cuts_messages_is_one_process_at_length(first: int) -> None:
    assert cut_on_the_way(range(first, first + 500)) > 1_500


def test_changes_that_are_not_remembered_any_more_are_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(query_plane, "HISTORY_MAX", 2)
    assert failing_seed(range(15), scenario=busy_scenario) is None


def xml_profile(draw: random.Random) -> str:
    step = draw.choice("abc*")
    condition = draw.choice(["", "[@k='1']", "[a]", "[a and b]", "[not(b)]", "[. > 3]"])
    return draw.choice([f"/r/{step}{condition}", f"//{step}{condition}", f"/r[{step}]//c"])


def xml_body(draw: random.Random) -> str:
    return f"<r>{xml_element(draw, 0)}{xml_element(draw, 0)}</r>"


def xml_element(draw: random.Random, depth: int) -> str:
    inside = "".join(xml_element(draw, depth + 1) for _ in range(draw.randrange(3 - depth)))
    name, key = draw.choice("abc"), draw.choice(["", ' k="1"', ' k="2"'])
    return f"<{name}{key}>{inside or draw.randrange(6)}</{name}>"


@cache
def xml_results(body: bytes, profile: str) -> Results:
    return (body,) if oracle_matches(Query("q", profile), body) else ()


def batch_profile(draw: random.Random) -> str:
    """Of profiles that are content with parts of a batch, and of those that are not."""
    unit = draw.choice(["/r/a", "/r/b", "/r/c", "/r/a/b"])
    condition = draw.choice(["[@k='1']", "[b]", "[c = 1]", "[not(b)]"])
    text = f"{unit}{condition}"
    if draw.random() < 0.05:
        return draw.choice([f"{text}[1]", "//a", "/r/*"])
    return text if draw.random() < 0.5 else f"for $u in {text} return <hit>of {{$u/c}}</hit>"


def batch_body(draw: random.Random) -> str:
    units = "".join(xml_element(draw, 1) for _ in range(draw.randrange(2, 12)))
    return f"<r>{units}</r>"


@cache
def batch_results(body: bytes, profile: str) -> Results:
    registry = made_by("reference", Registry)
    registry.add(Subscription("s", "s", profile))
    return tuple(registry.deliver([body]).table["fragment"].to_pylist())


@pytest.mark.parametrize("covering", [False, True], ids=["exact", "covering"])
def test_a_network_of_xml_is_one_process(covering: bool) -> None:
    delivered = 0
    content = xml_content(covering=covering)
    for seed in range(6):
        scenario = random_scenario(seed, profile=xml_profile, body=xml_body, seconds=12.0)
        world = BrokerWorld(scenario, seed, content=content, results=xml_results).run()
        delivered += sum(map(len, world.deliveries.values()))
    assert delivered > 10


@pytest.mark.nightly
@pytest.mark.parametrize("covering", [False, True], ids=["exact", "covering"])
def test_a_network_of_xml_is_one_process_at_length(covering: bool) -> None:
    for seed in range(1000, 1200):
        scenario = random_scenario(seed, profile=xml_profile, body=xml_body)
        content = xml_content(covering=covering)
        BrokerWorld(scenario, seed, content=content, results=xml_results).run()


def batches_are_cut(seeds: range, seconds: float) -> int:
    """Runs of brokers that cut batches; says how many bytes they left out."""
    saved = 0
    for seed in seeds:
        world = BrokerWorld(
            random_scenario(
                seed,
                seconds=seconds,
                steps_a_second=3.0,
                disasters=0.2,
                profile=batch_profile,
                body=batch_body,
            ),
            seed,
            content=xml_content(),
            results=batch_results,
            profile=partial(DeliveryProfile, deliver="fragment"),
        ).run()
        for name in world.brokers:
            for plane in world.node(name).broker.planes.values():
                assert isinstance(plane.interests, XmlInterests)
                saved += sum(plane.interests.saved.values())
    return saved


@NEEDS_KERNEL
def test_batches_that_are_cut_give_what_the_batches_give() -> None:
    assert batches_are_cut(range(8), seconds=12.0) > 200


@NEEDS_KERNEL
@pytest.mark.nightly
def test_batches_that_are_cut_give_what_the_batches_give_at_length() -> None:
    assert batches_are_cut(range(1000, 1200), seconds=20.0) > 5_000


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(NIGHTLY_SEEDS.start, NIGHTLY_SEEDS.stop, 500))
def test_a_network_of_many_brokers_is_one_process(first: int) -> None:
    for seed in range(first, first + 500):
        scenario = random_scenario(seed, brokers=(5, 15), seconds=25.0, steps_a_second=3.0)
        BrokerWorld(scenario, seed).run()


@pytest.mark.parametrize("name", sorted(OVERLAY.keys() - TRIED_ELSEWHERE))
def test_each_safeguard_is_missed(name: str) -> None:
    with without(name):
        assert failing_seed(range(120), scenario=busy_scenario) is not None


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
    lost = pytest.raises(Violation, match=r"m0 .* was not delivered for s ")
    with without("known"), lost:
        BrokerWorld(joined_during_a_partition(), 1).run()


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


ONE_AFTER_THE_OTHER: list[Subscribe | Publish] = [
    Subscribe("c", "s1", "a1"),
    Subscribe("c", "s2", "a*"),
    Publish("a", b"1 2 m1"),
]


@pytest.mark.parametrize("trees", ["spanning", "broadcast"])
def test_every_order_in_which_a_message_is_cut_and_its_cut_undone(trees: Trees) -> None:
    explored = explore(BrokerModel(LINE, list(ONE_AFTER_THE_OTHER), trees=trees))
    assert explored.states > 100


def test_some_order_gives_a_subscription_what_was_cut_before_it_was_known() -> None:
    wrong = r"s2 is given \(b'1', b'm1'\) of \(b'1', b'2', b'm1'\)"
    with without("consider"), pytest.raises(WrongOrder, match=wrong):
        explore(BrokerModel(LINE, list(ONE_AFTER_THE_OTHER)))


@pytest.mark.nightly
@pytest.mark.parametrize("trees", ["spanning", "broadcast"])
@pytest.mark.parametrize("second", ["b", "c"])
def test_every_order_of_two_messages_that_are_cut(trees: Trees, second: str) -> None:
    one, _, message = ONE_AFTER_THE_OTHER
    todo = [one, Subscribe(second, "s2", "a*"), message, Publish("b", b"1 3 m2")]
    assert explore(BrokerModel(LINE, todo, trees=trees)).states > 1000


def test_every_order_in_which_local_queries_are_run() -> None:
    explored = explore(BrokerModel(LINE, list(ONE_AFTER_THE_OTHER), defers=True))
    assert explored.states > 400


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
    with without("settle"), pytest.raises(WrongOrder, match="is lost to"):
        explore(BrokerModel(LINE, todo))


def test_a_seed_gives_the_same_run_in_another_process() -> None:
    # Sets of strings are in another order there: a node that follows one would not replay.
    program = (
        "from pathcast_lab.sim.broker_world import *\n"
        "from pathcast_lab.sim.broker_scenarios import *\n"
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


@pytest.fixture
def without_resync() -> Iterator[None]:
    with without("resync"):
        yield


@pytest.mark.usefixtures("without_resync")
def test_a_run_that_fails_is_told_with_its_steps_and_shrinks() -> None:
    seed = failing_seed(range(40))
    assert seed is not None
    scenario = random_scenario(seed)

    def fails(steps: Sequence[Step]) -> bool:
        try:
            BrokerWorld(scenario.with_steps(steps), seed).run()
        except Violation:
            return True
        return False

    few = shrunk(scenario.steps, fails, runs_max=60)
    assert len(few) < len(scenario.steps) / 3
    assert fails(few)
    with pytest.raises(Violation) as violation:
        BrokerWorld(scenario.with_steps(few), seed).run()
    told = str(violation.value)
    assert f"seed {seed}" in told
    assert str(few[0]) in told
    assert "receives" in told

"""Who is away beyond retention stops nobody, and is told what it missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

pytest.importorskip("msgspec")

from pathcast.errors import PeerError, PublicationError
from pathcast.overlay.broker_node import NodeSettings
from pathcast.overlay.broker_settings import ProtocolSettings, Trees
from pathcast.overlay.link import LinkSettings
from pathcast.overlay.messages import Trimmed
from pathcast.overlay.publishers import PublishRequest
from pathcast.overlay.retention import Retention
from pathcast_lab.sim import Faults, Step
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.broker_scenarios import absent_scenario
from pathcast_lab.sim.broker_world import BrokerWorld, Scenario, Violation

TREES = pytest.mark.parametrize("trees", ["spanning", "broadcast"])
LINE = (("a", "b"), ("b", "c"), ("c", "d"))
FEW = ProtocolSettings(log_messages_max=10, lag_seconds=1.0)
SOON_FULL = LinkSettings(window_frames=3, frame_payloads_max=1, frame_bytes_max=4)


def published(begins: float, count: int, apart: float = 0.2) -> list[Step]:
    return [Step(begins + n * apart, "publish", ("a", f"1 m{n}")) for n in range(count)]


def run(
    *steps: Step,
    broker: ProtocolSettings = FEW,
    may_lapse: bool = True,
    trees: Trees = "spanning",
) -> BrokerWorld:
    """A line of four with a subscriber at each end of it and in the middle; a publishes."""
    begin = [
        Step(0.0, "source", ("a",)),
        *(Step(2.0, "subscribe", (host, f"at {host}", "a1")) for host in "abcd"),
    ]
    ordered = sorted([*begin, *steps], key=lambda step: step.at)
    scenario = Scenario(tuple("abcd"), LINE, tuple(ordered), trees=trees)
    settings = NodeSettings(broker)
    return BrokerWorld(scenario, 1, settings=settings, may_lapse=may_lapse).run()


def lapsed(world: BrokerWorld, host: str) -> list[tuple[str, int, int, int]]:
    return world.subscriptions[f"at {host}"].lapsed


def missing(world: BrokerWorld, host: str) -> list[int]:
    """Positions of messages that a subscriber did not get."""
    got = world.subscriptions[f"at {host}"].delivered
    return [one.position for message, one in world.accepted.items() if message not in got]


def absence(last: str = "d") -> list[Step]:
    """A broker is away while six times as much is published as a log holds."""
    return [
        Step(4.0, "crash", (last,)),
        *published(6.0, 60),
        Step(19.0, "restart", (last,)),
        *published(25.0, 3),
    ]


@TREES
def test_one_that_is_away_stops_nobody_and_is_told_what_it_missed(trees: Trees) -> None:
    world = run(*absence(), trees=trees)
    assert world.not_taken == 0
    assert [missing(world, host) for host in "abc"] == [[], [], []]
    assert [lapsed(world, host) for host in "abc"] == [[], [], []]
    (told,) = lapsed(world, "d")
    root, _, first, last = told
    assert (root, list(range(first, last + 1))) == ("a", missing(world, "d"))
    assert 40 < len(missing(world, "d")) < 60
    assert world.missed == len(missing(world, "d"))


def test_without_being_told_it_would_miss_them_in_silence() -> None:
    with without("lapse"), pytest.raises(Violation, match=r"was not delivered for at d "):
        run(*absence())


def test_nobody_who_is_there_lapses() -> None:
    with pytest.raises(Violation, match=r"is told of .*, and there is no reason"):
        run(*absence(), may_lapse=False)


@TREES
def test_those_behind_a_broker_that_is_away_lapse_with_it(trees: Trees) -> None:
    world = run(*absence("c"), trees=trees)
    assert world.not_taken == 0
    assert lapsed(world, "c") == lapsed(world, "d") != []
    assert missing(world, "c") == missing(world, "d")
    assert missing(world, "b") == []


def test_a_root_that_begins_again_knows_what_it_gave_up() -> None:
    steps = [*absence(), Step(18.2, "crash", ("a",)), Step(18.5, "restart", ("a",))]
    world = run(*steps)
    (told,) = lapsed(world, "d")
    assert set(range(told[2], told[3] + 1)) >= set(missing(world, "d")) != set()


def test_one_that_is_slow_slows_publishers_down_and_misses_nothing() -> None:
    """Every member comes forward: a full log has publishers wait, and no one lapses."""
    slow = Step(3.0, "become", (Faults(delay_seconds=(0.8, 0.8)),))
    world = run(slow, *published(6.0, 150, apart=0.05), broker=replace(FEW, lag_seconds=8.0))
    assert world.not_taken > 50
    assert world.missed == 0
    assert [lapsed(world, host) for host in "abcd"] == [[], [], [], []]


def test_messages_are_kept_for_so_long() -> None:
    world = run(*absence(), broker=ProtocolSettings(retention_seconds=5.0))
    (told,) = lapsed(world, "d")
    assert (told[2], told[3] + 1) == (missing(world, "d")[0], missing(world, "d")[-1] + 1)
    # It was back a second after the last: what is five seconds old by then is gone.
    assert 30 < len(missing(world, "d")) < 50


def test_messages_are_kept_up_to_so_many_bytes() -> None:
    world = run(*absence(), broker=ProtocolSettings(log_bytes_max=50, lag_seconds=1.0))
    assert world.not_taken == 0
    assert 40 < len(missing(world, "d")) < 60


def test_with_room_in_the_log_nothing_is_given_up() -> None:
    world = run(*absence(), broker=ProtocolSettings(lag_seconds=1.0), may_lapse=False)
    assert [missing(world, host) for host in "abcd"] == [[], [], [], []]


def test_who_joins_is_not_told_of_what_was_before() -> None:
    world = run(
        *absence(),
        Step(18.0, "join", ("z", "b")),
        Step(18.1, "subscribe", ("z", "at z", "a1")),
    )
    assert lapsed(world, "z") == []
    assert lapsed(world, "d") != []


@pytest.mark.parametrize("says_so", [True, False])
def test_a_root_that_begins_again_knows_what_all_members_had_had(says_so: bool) -> None:
    """The disk of an older version does not say: any of it may have been given up."""
    steps = [
        Step(0.0, "source", ("a",)),
        *published(3.0, 5),
        Step(8.0, "crash", ("a",)),
        Step(9.0, "restart", ("a",)),
        Step(15.0, "join", ("z", "d")),
        Step(15.1, "subscribe", ("z", "at z", "a1")),
    ]
    world = BrokerWorld(Scenario(tuple("abcd"), LINE, ()), 1, may_lapse=True)
    for step in steps:
        world.network.run(step.at)
        world.perform(step)
        if step.action == "crash" and not says_so:
            del world.network.disks["a"]["given_up"]
    world.run()
    assert [said[2:] for said in lapsed(world, "z")] == ([] if says_so else [(1, 5)])


def test_a_call_that_is_more_than_a_log_is_refused_and_nothing_is_given_up() -> None:
    world = run(Step(4.0, "crash", ("d",)), *published(6.0, 8))
    broker = world.node("a").broker
    with pytest.raises(PublicationError) as refused:
        broker.publish_all([PublishRequest("of a", f"x{n}", b"1") for n in range(11)])
    assert refused.value.code == "publication.log"
    assert missing(world, "d") == []


@pytest.mark.parametrize(
    ("after", "upto"), [(10**6, 10**6 + 1), (0, 1), (3, 3)], ids=["ahead", "behind", "empty"]
)
def test_positions_that_do_not_follow_are_refused(after: int, upto: int) -> None:
    world = run(*published(6.0, 3))
    broker = world.node("c").broker
    stream = broker.streams["a"]
    assert (stream.upstream, stream.at) == ("b", 3)
    with pytest.raises(PeerError) as refused:
        broker.hear("b", Trimmed("a", stream.number, stream.generation, after, upto))
    assert refused.value.code == "overlay.stream"
    broker.hear("d", Trimmed("a", stream.number, stream.generation, 3, 9))
    broker.hear("b", Trimmed("a", stream.number, stream.generation - 1, 3, 9))
    assert stream.at == 3, "neither leads to the root, or answers what was asked for"


# Many scenarios.

SETTINGS = {
    "few messages": NodeSettings(replace(FEW, log_messages_max=12)),
    "few bytes": NodeSettings(ProtocolSettings(log_bytes_max=100, lag_seconds=1.0)),
    "a short time": NodeSettings(ProtocolSettings(retention_seconds=2.0)),
    "links that are soon full": NodeSettings(
        replace(FEW, log_messages_max=12, held_messages_max=3, part_bytes=5), SOON_FULL
    ),
}


def missed(
    seeds: Sequence[int],
    settings: NodeSettings,
    older: float = 0.0,
) -> int:
    count = 0
    for seed in seeds:
        disasters = 0.4 if older else 0.1
        scenario = absent_scenario(seed, messages=30, disasters=disasters, older=older)
        world = BrokerWorld(scenario, seed, settings=settings, may_lapse=True)
        count += world.run().missed
    return count


@pytest.mark.parametrize("name", SETTINGS)
def test_every_delivery_is_made_or_its_subscriber_is_told(name: str) -> None:
    assert missed(range(10), SETTINGS[name]) > 20


@pytest.mark.parametrize("name", SETTINGS)
def test_some_seed_misses_that_they_are_told(name: str) -> None:
    with without("lapse"), pytest.raises(Violation, match="was not delivered"):
        missed(range(40), SETTINGS[name])


def test_nothing_is_lost_silently_where_disks_are_older_as_well() -> None:
    assert missed(range(12), SETTINGS["few messages"], older=0.5) > 0, "the seeds do not reach it"


@pytest.mark.nightly
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("first", [1000, 1200, 1400])
def test_every_delivery_is_made_or_its_subscriber_is_told_at_length(name: str, first: int) -> None:
    assert missed(range(first, first + 200), SETTINGS[name]) > 400
    assert missed(range(first, first + 200), SETTINGS[name], older=0.5) > 0


def test_who_has_had_something_new_is_waited_for() -> None:
    retention = Retention(ProtocolSettings(lag_seconds=10.0))
    for now, position in ((0.0, 3), (9.0, 3), (10.0, 4), (20.0, 4)):
        retention.watch({"b": position, "c": 3}, end=5, now=now)
    assert not retention.is_stalled("b")
    assert retention.is_stalled("c")
    retention.watch({"b": 4, "c": 5}, end=5, now=40.0)
    retention.watch({"b": 4, "c": 5}, end=6, now=41.0)
    assert retention.is_stalled("b")
    assert not retention.is_stalled("c"), "there was nothing for it until a second ago"
    (first, second) = retention.lags({"b": 4, "c": 5}, start=5, end=6)
    assert (first.member, first.behind, first.missed) == ("b", 2, 1)
    assert (second.member, second.behind, second.missed) == ("c", 1, 0)


def test_a_member_that_begins_anew_in_another_stream_comes_forward() -> None:
    retention = Retention(ProtocolSettings(lag_seconds=10.0))
    for now, position in ((0.0, 3), (9.0, 0), (15.0, 1), (24.0, 2)):
        retention.watch({"b": position}, end=5, now=now)
        assert not retention.is_stalled("b"), now

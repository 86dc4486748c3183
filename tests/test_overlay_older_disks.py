"""Simulated: disks older than what others have seen, and two processes of one name."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

pytest.importorskip("msgspec")

from pathcast.overlay.broker_node import NodeSettings
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.deliveries import Lapsed
from pathcast.overlay.lives import (
    LIVES_MAX,
    begun,
    common_end,
    do_agree,
    had_of_lives,
    known_end,
    life_at,
)
from pathcast.overlay.local_queries import KeptCursor
from pathcast_lab.sim import Step
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.broker_scenarios import connection_faults, random_faults, random_scenario
from pathcast_lab.sim.broker_world import BrokerWorld, Scenario, Violation
from pathcast_lab.sim.faults import Faults

LINE = (("a", "r"), ("a", "h"))


def older_disks(seed: int, faults: Callable[[random.Random], Faults] = random_faults) -> Scenario:
    """Copies of disks take the place of disks, and processes begin from them."""
    return random_scenario(
        seed, seconds=25.0, steps_a_second=4.0, disasters=0.4, older=0.5, faults=faults
    )


def publications(start: float, count: int, *, twin: bool = False) -> list[Step]:
    """Messages that all differ, a few tenths of a second apart."""
    more = (True,) if twin else ()
    return [
        Step(start + n / 5, "publish", ("r", f"1 {int(10 * start)} {n}", *more))
        for n in range(count)
    ]


def scenario(*steps: Step) -> Scenario:
    """A root, a broker between and a host, whose subscription is in force before the steps."""
    begin = [Step(0.0, "source", ("r",)), Step(2.0, "subscribe", ("h", "s", "a1"))]
    return Scenario(("a", "h", "r"), LINE, (*begin, *sorted(steps, key=lambda one: one.at)))


def an_older_root() -> Scenario:
    """The root goes back by ten messages, takes fifteen alone, and is joined again."""
    return scenario(
        *publications(3.0, 10),
        Step(7.0, "back_up", ("r",)),
        *publications(8.0, 10),
        Step(12.0, "roll_back", ("r",)),
        Step(12.5, "cut", ("a", "r")),
        Step(13.0, "restart", ("r",)),
        *publications(14.0, 15),
        Step(20.0, "mend", ("a", "r")),
        *publications(27.0, 5),
    )


def an_older_host() -> Scenario:
    """The host goes back by ten messages, which the root does not keep any more."""
    return scenario(
        *publications(3.0, 10),
        Step(7.0, "back_up", ("h",)),
        *publications(8.0, 10),
        Step(14.0, "roll_back", ("h",)),
        Step(15.0, "restart", ("h",)),
        *publications(20.0, 5),
    )


def two_roots() -> Scenario:
    """A copy of the root beside it: both take messages, and then are joined."""
    return scenario(
        *publications(3.0, 10),
        Step(8.0, "twin", ("r",)),
        *publications(9.0, 10),
        *publications(9.1, 10, twin=True),
        Step(12.0, "wire", ("r", "a", True)),
        *publications(18.0, 5, twin=True),
        Step(25.0, "untwin", ("r",)),
        *publications(70.0, 5),
    )


def two_roots_that_begin_at_once() -> Scenario:
    """Both begin from copies of one disk, before a clock is past what that disk says."""
    return scenario(
        *publications(3.0, 3),
        Step(8.0, "crash", ("r",)),
        Step(8.0, "restart", ("r",)),
        Step(8.0, "twin", ("r",)),
        Step(8.0, "crash", ("r",)),
        Step(8.0, "restart", ("r",)),
        *publications(9.0, 5),
        *publications(9.1, 5, twin=True),
        Step(25.0, "untwin", ("r",)),
        *publications(70.0, 5),
    )


def with_one_behind(made: Scenario) -> Scenario:
    """A broker behind the host, for which a root keeps what others have had."""
    return replace(made, brokers=("a", "c", "h", "r"), links=(*LINE, ("c", "h")))


def two_hosts_and_two_roots() -> Scenario:
    """The later host has not had what the other one delivered, and follows another stream."""
    return with_one_behind(
        scenario(
            Step(8.0, "twin", ("h",)),
            *publications(11.9, 1),
            Step(12.0, "twin", ("r",)),
            *publications(13.0, 5),
            Step(15.0, "wire", ("h", "c", True)),
            Step(20.0, "untwin", ("r",)),
            Step(70.0, "untwin", ("h",)),
            *publications(130.0, 5),
        )
    )


def a_root_that_returns_to_what_it_left() -> Scenario:
    """The elder root ends and begins again: it is the later one, with what was left before."""
    return with_one_behind(
        scenario(
            Step(7.0, "crash", ("c",)),
            Step(8.0, "twin", ("r",)),
            *publications(9.0, 3),
            Step(12.0, "wire", ("r", "a", True)),
            Step(20.0, "crash", ("r",)),
            Step(25.0, "untwin", ("r",)),
            *publications(130.0, 5),
        )
    )


def an_elder_root_that_goes_on_where_nobody_knows_the_later_one() -> Scenario:
    """The host follows both and forgets, with its neighbour, that there was another process."""
    return with_one_behind(
        scenario(
            Step(7.0, "crash", ("c",)),
            Step(8.0, "twin", ("r",)),
            *publications(9.0, 3),
            Step(12.0, "wire", ("r", "a", True)),
            Step(20.0, "crash", ("h",)),
            Step(20.0, "crash", ("a",)),
            Step(21.0, "wire", ("r", "a", False)),
            Step(22.0, "restart", ("a",)),
            Step(22.0, "restart", ("h",)),
            *publications(30.0, 3),
            Step(40.0, "untwin", ("r",)),
            *publications(100.0, 5),
        )
    )


def is_lapse(what: str, said: object) -> bool:
    """Whether a line of a network says that a subscriber is told of a loss."""
    return what == "delivers" and isinstance(said, Lapsed)


def has_lapsed(world: BrokerWorld, name: str) -> bool:
    """Whether a subscriber was told that messages may be lost, whichever they are."""
    known = world.subscriptions[name]
    return known.lapsed_at > 0 or bool(known.lapsed)


@pytest.mark.parametrize("seeds", [range(12), range(12, 24)], ids=str)
def test_nothing_is_lost_silently_by_older_disks(seeds: range) -> None:
    told = 0
    for seed in seeds:
        world = BrokerWorld(older_disks(seed), seed).run()
        told += sum(has_lapsed(world, name) for name in world.subscriptions)
    assert told > 5, "the seeds do not reach what they are there for"


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_nothing_is_lost_silently_by_older_disks_at_length(first: int) -> None:
    for seed in range(first, first + 500):
        BrokerWorld(older_disks(seed), seed).run()


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 2500, 500))
def test_nothing_is_lost_silently_by_older_disks_over_connections(first: int) -> None:
    """Connections that are cut anywhere; 1077, 1253, 1590 and 2368 failed."""
    for seed in range(first, first + 500):
        BrokerWorld(older_disks(seed, connection_faults), seed).run()


@pytest.mark.parametrize(
    ("what", "messages"), [(an_older_root, 40), (an_older_host, 25), (two_roots, 40)]
)
def test_a_subscriber_is_told_and_gets_all_that_is_kept(what: object, messages: int) -> None:
    assert callable(what)
    for seed in range(3):
        world = BrokerWorld(what(), seed).run()
        assert has_lapsed(world, "s")
        assert len(world.accepted) == messages
        got = world.deliveries["s"]
        assert got[-5:] == list(world.accepted)[-5:], "what follows comes as ever"
        if what is an_older_root:
            assert got == list(world.accepted), "what was kept anywhere has come, once"
        if what is an_older_host:
            (lapsed,) = world.subscriptions["s"].lapsed
            missed = [one for one, known in world.accepted.items() if known.is_in(lapsed)]
            assert missed == [one for one in world.accepted if one not in got]


def test_one_of_two_processes_that_began_at_once_gives_way() -> None:
    """The seeds draw the incarnations; where both say the same beginning, these decide."""
    for seed in range(12):
        world = BrokerWorld(two_roots_that_begin_at_once(), seed).run()
        assert world.deliveries["s"][-5:] == list(world.accepted)[-5:]


def test_messages_of_the_elder_of_a_root_without_its_disk_are_told_of() -> None:
    """The root that goes on has no stream, so that no other number says that one is over."""
    later = scenario(
        Step(8.0, "twin", ("r",)),
        Step(9.0, "crash", ("r", False)),
        Step(10.0, "restart", ("r",)),
        *publications(20.0, 3, twin=True),
        Step(25.0, "untwin", ("r",)),
        Step(80.0, "crash", ("h",)),
        Step(81.0, "restart", ("h",)),
    )
    world = BrokerWorld(later, 1).run()
    assert len(world.accepted) == 3
    told = [time for time, _, what, said in world.network.lines if is_lapse(what, said)]
    assert 25.0 < max(told) < 80.0, "a host that begins again remembers that it has said so"


@pytest.mark.parametrize(
    "what",
    [
        a_root_that_returns_to_what_it_left,
        an_elder_root_that_goes_on_where_nobody_knows_the_later_one,
    ],
)
def test_what_was_had_of_a_history_that_was_left_does_not_come_again(what: object) -> None:
    assert callable(what)
    for seed in range(4):
        world = BrokerWorld(what(), seed).run()
        got = world.deliveries["s"]
        assert len(got) == len(set(got))
        assert got[-5:] == list(world.accepted)[-5:]
        with without("left"), pytest.raises(Violation, match="came twice"):
            BrokerWorld(what(), seed).run()


def test_a_message_comes_again_after_a_notice_where_no_process_can_know() -> None:
    again = 0
    for seed in range(4):
        world = BrokerWorld(two_hosts_and_two_roots(), seed).run()
        got = world.deliveries["s"]
        again += len(got) - len(set(got))
        assert has_lapsed(world, "s")
        assert got[-5:] == list(world.accepted)[-5:]
    assert again, "the seeds do not reach what they are there for"


@pytest.mark.parametrize(
    ("name", "what"), [("lives", an_older_root), ("lapse", an_older_host), ("elder", two_roots)]
)
def test_each_safeguard_against_older_disks_is_missed(name: str, what: object) -> None:
    assert callable(what)
    with without(name), pytest.raises(Violation):
        BrokerWorld(what(), 1).run()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_root_that_gave_up_where_histories_part_says_so(restarts: bool) -> None:
    """The host is away, with a position that the root has given again and does not keep."""
    more = (Step(20.0, "crash", ("r",)), Step(20.5, "restart", ("r",))) if restarts else ()
    later = scenario(
        *publications(3.0, 5),
        Step(5.0, "back_up", ("r",)),
        *publications(5.5, 4),
        Step(8.0, "crash", ("h",)),
        Step(8.2, "crash", ("a",)),
        Step(8.5, "roll_back", ("r",)),
        Step(9.0, "restart", ("r",)),
        *publications(10.0, 20),
        *more,
        *publications(22.0, 20),
        Step(30.0, "restart", ("a",)),
        Step(32.0, "restart", ("h",)),
        *publications(40.0, 5),
    )
    settings = NodeSettings(ProtocolSettings(log_messages_max=10, lag_seconds=1.0))
    world = BrokerWorld(later, 1, settings=settings, may_lapse=True).run()
    assert has_lapsed(world, "s")
    assert world.deliveries["s"][-5:] == list(world.accepted)[-5:]


def test_positions_of_two_histories_are_the_same_up_to_where_they_part() -> None:
    seen = ((1, 0), (2, 50), (3, 80))
    for theirs, common in [
        (seen, 100),
        (((1, 0), (2, 50), (9, 60)), 60),
        (((1, 0), (9, 20)), 20),
        (((9, 0),), 0),
        (((2, 50), (3, 80)), 100),
        (((3, 80), (4, 90)), 90),
    ]:
        assert common_end(seen, theirs, 100) == common, theirs
        assert do_agree(seen, theirs, 100) == (common == 100)
        assert do_agree(seen, theirs, common)
    assert [life_at(seen, position) for position in (0, 50, 51, 81, 10**6)] == [0, 1, 2, 3, 3]


def test_positions_that_were_had_of_histories_that_were_left_are_known() -> None:
    left = ((1, 0), (2, 50), (3, 80))
    had = had_of_lives(left, 100, 60)
    assert had == {2: 80, 3: 100}
    for lives, position, end in [
        (left, 60, 100),
        (((1, 0), (2, 50), (4, 70)), 60, 70),
        (((1, 0), (2, 50), (3, 80), (4, 90)), 60, 90),
        (((1, 0), (9, 60)), 60, 60),
        (((3, 80),), 60, 60),
        (left, 40, 40),
    ]:
        assert known_end(lives, had, position) == end, lives
    assert had_of_lives(((0, 0), (5, 10)), 30, 0) == {5: 30}, "0 is no life"


def test_a_history_is_bounded_and_what_left_it_is_no_longer_trusted() -> None:
    lives: tuple[tuple[int, int], ...] = ()
    for life in range(1, 400):
        lives = begun(lives, life, 10 * life, 0)
    assert len(lives) == LIVES_MAX
    assert do_agree(((399, 3990),), lives, 4000)
    assert not do_agree(((20, 200),), lives, 205)
    assert begun(((1, 0), (2, 50), (3, 80)), 4, 80, 60) == ((2, 50), (4, 80))


def test_disks_of_before_there_were_lives_go_on_without_a_loss() -> None:
    steps = [*publications(3.0, 10), Step(20.0, "cut", ("a", "h")), *publications(21.0, 5)]
    later = scenario(*steps, *publications(30.0, 5))
    world = BrokerWorld(later, 1)
    for step in later.steps:
        world.network.run(step.at)
        world.perform(step)
        if step == steps[-1]:
            make_old(world)
    world.network.heal()
    world.network.run(60.0)
    world.check()
    assert world.deliveries["s"] == list(world.accepted)
    assert len(world.accepted) == 20
    assert not has_lapsed(world, "s")


def make_old(world: BrokerWorld) -> None:
    """All brokers begin again, with what those of before there were lives have kept."""
    for name, disk in world.network.disks.items():
        world.network.crash(name)
        for key in ("lives", "began"):
            disk.pop(key, None)
        for key in [each for each in disk if each.startswith("cursor/")]:
            kept = msgspec.msgpack.decode(disk[key], type=KeptCursor)
            disk[key] = msgspec.msgpack.encode((kept.number, kept.position))
    for name in world.network.disks:
        world.network.restart(name)

"""Ways in which broker networks have lost or kept routes, each as a scenario of the simulator.

The names are those of the projects and of their reports. What must hold is what `BrokerWorld`
checks at the end of every run: nothing lost, foreign, twice or stale, and nobody starves.
"""

from __future__ import annotations

import pytest

pytest.importorskip("msgspec")

from pathcast.overlay.broker_settings import Trees
from pathcast.overlay.messages import Interest, SessionFrame
from pathcast_lab.sim import Faults, Step
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.broker_world import BrokerWorld, Scenario, Violation

CHAIN = (("a", "b"), ("b", "c"), ("c", "d"))
TREES = pytest.mark.parametrize("trees", ["spanning", "broadcast"])


def run(
    *steps: Step,
    links: tuple[tuple[str, str], ...] = CHAIN,
    seed: int = 1,
    trees: Trees = "spanning",
    quiet_seconds: float = 15.0,
) -> BrokerWorld:
    names = tuple(sorted({name for link in links for name in link}))
    scenario = Scenario(names, links, steps, quiet_seconds, trees)
    return BrokerWorld(scenario, seed).run()


def got(world: BrokerWorld, subscription: str) -> list[bytes]:
    return [world.accepted[message].body for message in world.deliveries[subscription]]


@TREES
@pytest.mark.parametrize("with_disk", [True, False])
def test_nats_2448_a_broker_two_hops_away_restarts(trees: Trees, with_disk: bool) -> None:
    """Interest behind a broker that restarts must be there again for those behind the next."""
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "subscribe", ("d", "s", "a1")),
        Step(4.0, "crash", ("b", with_disk)),
        Step(4.5, "restart", ("b",)),
        Step(4.6, "publish", ("a", "1 at once")),
        Step(9.0, "publish", ("a", "1 later")),
        trees=trees,
    )
    assert got(world, "s") == [b"1 at once", b"1 later"]


@TREES
def test_nats_4207_a_daisy_chain_restarts_one_after_the_other(trees: Trees) -> None:
    restarts = [
        Step(4.0 + n + after, action, args)
        for n, name in enumerate("bcd")
        for after, action, args in ((0.0, "crash", (name,)), (0.6, "restart", (name,)))
    ]
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "subscribe", ("d", "s", "a1*")),
        Step(3.9, "publish", ("a", "10")),
        *restarts,
        Step(6.3, "publish", ("a", "11")),
        Step(12.0, "publish", ("a", "12")),
        trees=trees,
    )
    assert got(world, "s") == [b"10", b"11", b"12"]


@pytest.mark.parametrize("seed", range(8))
def test_nats_8233_subscribe_and_unsubscribe_overtake_each_other(seed: int) -> None:
    changes = [
        Step(2.0 + n / 50, action, args)
        for n in range(10)
        for action, args in (
            ("subscribe", ("d", f"s{n}", "a1")),
            *([("unsubscribe", (f"s{n - 1}",))] if n else []),
        )
    ]
    world = run(
        Step(0.0, "source", ("a",)),
        Step(0.0, "become", (Faults(reorder=0.8, reorder_seconds=0.4, duplicate=0.3),)),
        *changes,
        Step(8.0, "publish", ("a", "1")),
        seed=seed,
    )
    assert got(world, "s9") == [b"1"]


@TREES
@pytest.mark.parametrize("seed", range(8))
def test_nats_1455_the_first_table_of_a_link_races_with_a_subscription(
    trees: Trees, seed: int
) -> None:
    """Counted twice, its removal would never travel: the check for stale tables sees it."""
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "cut", ("b", "c")),
        Step(7.0, "mend", ("b", "c")),
        Step(7.01 + seed / 200, "subscribe", ("d", "s", "a1")),
        Step(7.02 + seed / 200, "subscribe", ("d", "t", "a1*")),
        Step(10.0, "unsubscribe", ("t",)),
        Step(12.0, "publish", ("a", "1")),
        seed=seed,
        trees=trees,
    )
    assert got(world, "s") == [b"1"]
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "cut", ("b", "c")),
        Step(7.0, "mend", ("b", "c")),
        Step(7.01 + seed / 200, "subscribe", ("d", "s", "a1")),
        Step(10.0, "unsubscribe", ("s",)),
        seed=seed,
        trees=trees,
    )
    plane = world.node("a").broker.planes["" if trees == "spanning" else "a"]
    assert plane.interests.entries("b") == frozenset()


@pytest.mark.parametrize("seed", range(8))
def test_nats_139_a_subscription_made_while_links_come_up_is_not_left_local(seed: int) -> None:
    world = run(
        Step(0.0, "source", ("a",)),
        Step(seed / 100, "subscribe", ("d", "s", "a1")),
        Step(3.0, "publish", ("a", "1")),
        seed=seed,
    )
    assert got(world, "s") == [b"1"]
    assert world.node("a").broker.planes[""].interests.entries("b") == {"a1", "k1"}


@pytest.mark.parametrize("seed", range(8))
def test_nats_3515_a_connection_is_reset_while_subscriptions_are_under_way(seed: int) -> None:
    """A reset loses what is under way: the session goes on, and it is sent again."""
    subscriptions = [Step(2.0 + n / 100, "subscribe", ("d", f"s{n}", f"a{n}")) for n in range(20)]
    resets = [Step(2.005 + n / 25, "reset", link) for n in range(5) for link in CHAIN]
    world = run(
        Step(0.0, "source", ("a",)),
        *sorted([*subscriptions, *resets], key=lambda step: step.at),
        *(Step(6.0 + n / 100, "publish", ("a", str(n))) for n in range(20)),
        seed=seed,
    )
    assert all(got(world, f"s{n}") == [str(n).encode()] for n in range(20))


@TREES
def test_nats_6148_interest_that_nobody_has_any_more_does_not_stay(trees: Trees) -> None:
    """The host unsubscribes while it is cut off, or comes back without its disk."""
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "subscribe", ("d", "s", "a1")),
        Step(2.0, "subscribe", ("c", "t", "a2")),
        Step(4.0, "cut", ("c", "d")),
        Step(4.1, "unsubscribe", ("s",)),
        Step(4.2, "crash", ("c", False)),
        Step(5.0, "restart", ("c",)),
        Step(6.0, "mend", ("c", "d")),
        Step(7.0, "crash", ("b",)),
        Step(8.0, "restart", ("b",)),
        trees=trees,
    )
    plane = world.node("a").broker.planes["" if trees == "spanning" else "a"]
    assert plane.interests.entries("b") == frozenset()


def test_zenoh_2247_interest_is_not_kept_for_one_neighbour_alone() -> None:
    star = (("a", "x"), ("b", "x"), ("c", "x"), ("d", "x"))
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "subscribe", ("b", "s", "a1")),
        Step(2.0, "subscribe", ("c", "t", "a1")),
        Step(4.0, "unsubscribe", ("s",)),
        Step(6.0, "unsubscribe", ("t",)),
        links=star,
    )
    for peer in "abcd":
        assert world.node("x").broker.planes[""].interests.told(peer) == frozenset()
        assert world.node(peer).broker.planes[""].interests.entries("x") == frozenset()


def test_zenoh_pico_1029_what_was_asked_for_is_asked_for_again_after_a_reconnection() -> None:
    """A root that was away for longer than a session lives is followed again, from where it was."""
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "subscribe", ("d", "s", "a1")),
        Step(4.0, "publish", ("a", "1 before")),
        Step(5.0, "cut", ("a", "b")),
        Step(11.0, "publish", ("a", "1 while cut off")),
        Step(20.0, "mend", ("a", "b")),
        Step(25.0, "publish", ("a", "1 after")),
    )
    assert got(world, "s") == [b"1 before", b"1 while cut off", b"1 after"]


def test_rmw_zenoh_976_a_late_subscriber_behind_an_older_publisher() -> None:
    world = run(
        Step(0.0, "source", ("a",)),
        *(Step(2.0 + n, "publish", ("a", "1 early")) for n in range(3)),
        Step(8.0, "join", ("e", "d")),
        Step(11.0, "subscribe", ("e", "s", "a1")),
        Step(14.0, "publish", ("a", "1")),
    )
    assert got(world, "s") == [b"1"], "what all had had before it came is not for it"


def a_host_without_a_past(happens: str) -> BrokerWorld:
    """Subscribes while it begins to follow a root whose log all members have had.

    Its subscription is in force before the root tells it where the log begins.
    """
    host = "d" if happens == "loses its disk" else "e"
    begin = {
        "joins": [Step(8.0, "join", ("e", "d"))],
        "loses its disk": [Step(7.5, "crash", ("d", False)), Step(8.0, "restart", ("d",))],
    }
    return run(
        Step(0.0, "source", ("a",)),
        *(Step(2.0 + n, "publish", ("a", "1 early")) for n in range(3)),
        *begin[happens],
        Step(8.02, "subscribe", (host, "s", "a1")),
        Step(14.0, "publish", ("a", "1")),
    )


PASTS = pytest.mark.parametrize("happens", ["joins", "loses its disk"])


@PASTS
def test_a_subscriber_is_told_of_no_loss_of_before_it_subscribed(happens: str) -> None:
    world = a_host_without_a_past(happens)
    assert world.subscriptions["s"].lapsed == []
    assert got(world, "s") == [b"1"]


@PASTS
def test_it_would_be_told_of_what_all_members_had_had(happens: str) -> None:
    with without("had"), pytest.raises(Violation, match="there is no reason"):
        a_host_without_a_past(happens)


@pytest.mark.parametrize("seed", range(4))
def test_dps_1_a_subscription_on_an_unreliable_link(seed: int) -> None:
    steps = (
        Step(0.0, "source", ("a",)),
        Step(0.0, "become", (Faults(loss=0.5),)),
        Step(3.0, "subscribe", ("d", "s", "a1")),
        Step(20.0, "publish", ("a", "1")),
    )
    assert got(run(*steps, seed=seed), "s") == [b"1"]


def test_dps_1_is_missed_without_resending() -> None:
    steps = (
        Step(0.0, "source", ("a",)),
        Step(0.0, "become", (Faults(loss=0.5),)),
        Step(3.0, "subscribe", ("d", "s", "a1")),
        Step(20.0, "publish", ("a", "1")),
    )
    with without("resend"), pytest.raises(Violation):
        run(*steps)


def test_messages_under_way_while_the_tree_changes_are_neither_lost_nor_doubled() -> None:
    """A ring: whichever link fails, the way turns round; three changes while messages flow."""
    ring = (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"))
    changes = [
        Step(4.0, "cut", ("a", "d")),
        Step(9.0, "mend", ("a", "d")),
        Step(9.5, "cut", ("a", "b")),
        Step(15.0, "crash", ("d", False)),
        Step(15.5, "mend", ("a", "b")),
        Step(16.0, "restart", ("d",)),
    ]
    messages = [Step(3.0 + n / 10, "publish", ("a", f"1 {n}")) for n in range(150)]
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "subscribe", ("c", "s", "a1")),
        *sorted([*changes, *messages], key=lambda step: step.at),
        links=ring,
    )
    assert got(world, "s") == [f"1 {n}".encode() for n in range(150)]


def test_a_slow_link_holds_nobody_else() -> None:
    """What waits for one neighbour is bounded and asked for again; others have theirs at once."""
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "subscribe", ("b", "quick", "a1")),
        Step(2.0, "subscribe", ("c", "slow", "a1")),
        Step(4.0, "cut", ("a", "c")),
        *(Step(4.1 + n / 100, "publish", ("a", f"1 {n}")) for n in range(100)),
        Step(5.5, "publish", ("a", "2")),
        Step(5.6, "mend", ("a", "c")),
        links=(("a", "b"), ("a", "c")),
    )
    assert got(world, "quick") == got(world, "slow") == [f"1 {n}".encode() for n in range(100)]


def test_a_subscriber_is_told_when_its_broker_was_taken_out_meanwhile() -> None:
    world = run(
        Step(0.0, "source", ("a",)),
        Step(2.0, "subscribe", ("d", "s", "a1")),
        Step(3.0, "crash", ("d",)),
        Step(4.0, "expel", ("a", "d")),
        Step(6.0, "publish", ("a", "1 not kept")),
        Step(10.0, "restart", ("d",)),
        Step(16.0, "publish", ("a", "1")),
    )
    in_force = world.subscriptions["s"].in_force_at
    assert in_force is not None
    assert in_force > 10
    assert got(world, "s") == [b"1"]


def test_tables_travel_as_changes_and_whole_only_with_a_session() -> None:
    world = run(
        Step(0.0, "source", ("a",)),
        *(Step(2.0 + n, "subscribe", ("d", f"s{n}", f"a{n}")) for n in range(5)),
    )
    told = [
        payload
        for _, name, what, value in world.network.lines
        if what == "receives" and name == "c" and isinstance(value, tuple) and value[0] == "d"
        for payload in (value[1].payloads if isinstance(value[1], SessionFrame) else ())
        if isinstance(payload, Interest)
    ]
    assert [(one.whole, one.added) for one in told] == [
        (True, ()),
        *((False, (f"a{n}", f"k{n}")) for n in range(5)),
    ]

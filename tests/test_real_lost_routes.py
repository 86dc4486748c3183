"""The ways of `test_overlay_lost_routes` in which routes were lost or kept, with processes.

Brokers run in network namespaces, or on loopback where those cannot be made (`wires`); what must
hold at the end is what `RealNetwork.settled` looks at.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from real_network import RealNetwork
from tcp_proxy import LinkFaults
from wires import Pair, wires

pytestmark = pytest.mark.nightly

CHAIN: list[Pair] = [("a", "b"), ("b", "c"), ("c", "d")]

SILENCE_SECONDS = 6.0
"""Longer than a session lives without a word."""


def order(place: str) -> str:
    return f"/order[to = '{place}']"


def body(place: str, note: object = "") -> bytes:
    return f"<order><to>{place}</to><note>{note}</note></order>".encode()


def run(
    directory: Path,
    scenario: Callable[[RealNetwork], Awaitable[None]],
    *,
    links: Sequence[Pair] = CHAIN,
    through_proxies: Sequence[Pair] = (),
) -> None:
    names = sorted({name for link in links for name in link})

    async def main() -> None:
        network = RealNetwork(directory, names, links, wires(names, links, through_proxies))
        async with network.running():
            await network.sessions()
            await network.source("a")
            await scenario(network)
            await network.settled()

    asyncio.run(main())


def got(network: RealNetwork, id: str) -> list[bytes]:
    messages = network.subscriptions[id].got
    return [network.sent[each].body for each in sorted(messages, key=lambda one: int(one[1:]))]


def test_nats_2448_a_broker_two_hops_away_restarts(tmp_path: Path) -> None:
    """Interest behind a broker that restarts must be there again for those behind the next."""

    async def scenario(network: RealNetwork) -> None:
        await network.subscribe("d", "s", order("Bern"))
        await network.in_force()
        await network.restart("b", 0.5)
        await network.publish("a", body("Bern", "at once"))
        await network.sessions()
        await network.publish("a", body("Bern", "later"))
        await network.until(lambda: len(got(network, "s")) == 2)

    run(tmp_path, scenario)


def test_nats_2448_without_its_disk(tmp_path: Path) -> None:
    async def scenario(network: RealNetwork) -> None:
        await network.subscribe("d", "s", order("Bern"))
        await network.in_force()
        await network.begin_anew("b")
        await network.publish("a", body("Bern"))
        await network.until(lambda: len(got(network, "s")) == 1)

    run(tmp_path, scenario)


def test_nats_4207_a_daisy_chain_restarts_one_after_the_other(tmp_path: Path) -> None:
    async def scenario(network: RealNetwork) -> None:
        await network.subscribe("d", "s", order("Bern"))
        await network.in_force()
        await network.publish("a", body("Bern", 0))
        for number, name in enumerate("bcd", 1):
            await network.restart(name, 0.3)
            await network.publish("a", body("Bern", number))
        await network.sessions()
        await network.publish("a", body("Bern", 4))
        await network.until(lambda: len(got(network, "s")) == 5)

    run(tmp_path, scenario)


@pytest.mark.parametrize("seed", range(2))
def test_nats_8233_subscribe_and_unsubscribe_overtake_each_other(tmp_path: Path, seed: int) -> None:
    """The same profile, under a new id before the old one goes, on links that stall."""

    async def scenario(network: RealNetwork) -> None:
        for link in CHAIN:
            network.wires.become(*link, LinkFaults(0.01, stall_share=0.3, stall_seconds=0.2))
        chance = random.Random(seed)
        for number in range(10):
            await network.subscribe("d", f"s{number}", order("Bern"))
            await asyncio.sleep(chance.uniform(0, 0.1))
            if number:
                await network.unsubscribe(f"s{number - 1}")
            network.wires.reset(*chance.choice(CHAIN))
        await network.in_force("s9")
        await network.publish("a", body("Bern"))

    run(tmp_path, scenario, through_proxies=CHAIN)


@pytest.mark.parametrize("seed", range(2))
def test_nats_1455_the_first_table_of_a_link_races_with_a_subscription(
    tmp_path: Path, seed: int
) -> None:
    """Counted twice, its removal would never travel: tables that are not from scratch."""

    async def scenario(network: RealNetwork) -> None:
        await network.cut("b", "c")
        await asyncio.sleep(SILENCE_SECONDS)
        await network.mend("b", "c")
        chance = random.Random(seed)
        for number in range(20):
            await network.subscribe("d", f"s{number}", order(f"{number % 7}"))
            await asyncio.sleep(chance.uniform(0, 0.3))
        await network.in_force()
        for number in range(19):
            await network.unsubscribe(f"s{number}")
        for number in range(20):
            await network.publish("a", body(f"{number % 7}"))

    run(tmp_path, scenario)


def test_nats_139_a_subscription_made_while_links_come_up_is_not_left_local(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        network = RealNetwork(tmp_path, "abcd", CHAIN, wires("abcd", CHAIN, ()))
        async with network.running():
            for number in range(5):
                await network.subscribe("d", f"s{number}", order(f"{number}"))
            await network.source("a")
            await network.in_force()
            for number in range(5):
                await network.publish("a", body(f"{number}"))
            await network.settled()

    asyncio.run(main())


def test_nats_3515_a_connection_is_reset_while_subscriptions_are_under_way(
    tmp_path: Path,
) -> None:
    """A reset loses what is under way: the session goes on, and it is sent again."""

    async def scenario(network: RealNetwork) -> None:
        for link in CHAIN:
            network.wires.become(*link, LinkFaults(0.02))
        for number in range(20):
            await network.subscribe("d", f"s{number}", order(f"{number}"))
            network.wires.reset(*CHAIN[number % 3])
        await network.in_force()
        for number in range(20):
            await network.publish("a", body(f"{number}"))
        await network.until(lambda: all(len(got(network, f"s{n}")) == 1 for n in range(20)))

    run(tmp_path, scenario, through_proxies=CHAIN)


def test_nats_6148_interest_that_nobody_has_any_more_does_not_stay(tmp_path: Path) -> None:
    """The host unsubscribes while it is cut off, and a broker between comes back without disk."""

    async def scenario(network: RealNetwork) -> None:
        await network.subscribe("d", "s", order("Bern"))
        await network.subscribe("c", "t", order("Chur"))
        await network.in_force()
        await network.publish("a", body("Bern"), body("Chur"))
        await network.until(lambda: not network.judge.missing())
        await network.cut("c", "d")
        await network.unsubscribe("s")
        await network.begin_anew("c", 0.5)
        await asyncio.sleep(1.0)
        await network.mend("c", "d")
        await network.restart("b", 0.5)

    run(tmp_path, scenario)


def test_zenoh_2247_interest_is_not_kept_for_one_neighbour_alone(tmp_path: Path) -> None:
    async def scenario(network: RealNetwork) -> None:
        await network.subscribe("b", "s", order("Bern"))
        await network.subscribe("c", "t", order("Bern"))
        await network.in_force()
        await network.publish("a", body("Bern"))
        await network.until(lambda: not network.judge.missing())
        await network.unsubscribe("s")
        await asyncio.sleep(0.5)
        await network.unsubscribe("t")

    run(tmp_path, scenario, links=[("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")])


def test_zenoh_pico_1029_what_was_asked_for_is_asked_for_again_after_a_reconnection(
    tmp_path: Path,
) -> None:
    """A root that was away for longer than a session lives is followed again, from where it was."""

    async def scenario(network: RealNetwork) -> None:
        await network.subscribe("d", "s", order("Bern"))
        await network.in_force()
        await network.publish("a", body("Bern", "before"))
        await network.cut("a", "b")
        await asyncio.sleep(SILENCE_SECONDS)
        await network.publish("a", body("Bern", "while cut off"))
        await asyncio.sleep(1.0)
        await network.mend("a", "b")
        await network.publish("a", body("Bern", "after"))
        await network.until(lambda: len(got(network, "s")) == 3)

    run(tmp_path, scenario)


def test_rmw_zenoh_976_a_late_subscriber_behind_an_older_publisher(tmp_path: Path) -> None:
    """A broker that nobody knew joins when messages have been published for a while."""

    async def main() -> None:
        links: list[Pair] = [*CHAIN, ("d", "e")]
        joined = wires("abcde", links, ())
        network = RealNetwork(tmp_path, "abcde", links, joined, joining="e")
        async with network.running(without="e"):
            await network.source("a")
            await network.sessions()
            await network.subscribe("d", "t", order("Chur"))
            await network.in_force()
            for number in range(3):
                await network.publish("a", body("Bern", number))
            await network.publish("a", body("Chur"))
            await network.until(lambda: len(got(network, "t")) == 1)
            network.brokers.join("e")
            await network.subscribe("e", "s", order("Bern"))
            await network.in_force()
            await network.publish("a", body("Bern", "late"))
            await network.settled()
            # What all had had before it came is not for it.
            assert got(network, "s") == [body("Bern", "late")]

    asyncio.run(main())


def test_dps_1_a_subscription_on_an_unreliable_link(tmp_path: Path) -> None:
    """TCP makes time of loss, until it makes a reset of it."""

    async def scenario(network: RealNetwork) -> None:
        bad = LinkFaults(0.05, stall_share=0.5, stall_seconds=0.5, reset_share=0.02)
        for link in CHAIN:
            network.wires.become(*link, bad)
        await network.subscribe("d", "s", order("Bern"))
        await network.in_force()
        await network.publish("a", body("Bern"))
        await network.until(lambda: len(got(network, "s")) == 1)
        for link in CHAIN:
            network.wires.become(*link, LinkFaults())

    run(tmp_path, scenario, through_proxies=CHAIN)

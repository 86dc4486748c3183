"""Trees by the costs of links, given or measured, in simulated networks and as processes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery
from pathcast.overlay.link_costs import MeasuredCost
from pathcast.overlay.messages import SourceEntry
from pathcast.protocol import Effect, Node
from pathcast_lab.sim.network import Network
from pathcast_lab.sim.toy_content import TOY
from patience import eventually

NEEDS_NETWORK = pytest.mark.skipif(
    find_spec("grpc") is None or find_spec("pathcast_kernel") is None,
    reason="grpcio or the kernel is not installed",
)
RING = ("a", "b", "c")


def ring(cost: int, delays: Mapping[tuple[str, str], float]) -> Network:
    """Three brokers, all of them neighbours; c is a host, and a the root of a source."""
    network = Network(3, links=[("a", "b"), ("b", "c"), ("a", "c")], delays=delays)

    def maker(name: str) -> Callable[[Mapping[str, bytes], int], Node]:
        peers = [other for other in RING if other != name]
        links = dict.fromkeys(peers, cost)
        return lambda disk, life: BrokerNode(name, links, TOY, disk, life, members=peers)

    for name in RING:
        network.add(name, maker(name))
    network.run(5.0)
    call(
        network,
        "a",
        lambda node, now: node.asked(now, node.broker.register_source, "s", SourceEntry()),
    )
    profile = DeliveryProfile("a1")
    call(
        network, "c", lambda node, now: node.asked(now, node.broker.subscribe, "p", "ann", profile)
    )
    network.run(6.0)
    return network


def call(
    network: Network, name: str, asked: Callable[[BrokerNode, float], Sequence[Effect]]
) -> None:
    def request(node: Node, now: float) -> Sequence[Effect]:
        assert isinstance(node, BrokerNode)
        return asked(node, now)

    assert network.call(name, request)


def tree_at(network: Network, name: str) -> set[str]:
    """Neighbours of a broker in the tree."""
    node = network.nodes[name]
    assert isinstance(node, BrokerNode)
    plane = node.broker.planes[""]
    return {peer for peer in RING if peer != name and plane.is_active(peer)}


def announced(network: Network, name: str) -> dict[str, int]:
    node = network.nodes[name]
    assert isinstance(node, BrokerNode)
    presence = node.broker.announcements.presence(name)
    assert presence is not None
    return dict(presence.links)


def publish_until(network: Network, until: float, sent: list[str]) -> None:
    while network.now < until:
        name = f"m{len(sent)}"
        sent.append(name)
        call(network, "a", partial(publish, name))
        network.run(network.now + 0.5)


def publish(name: str, node: BrokerNode, now: float) -> Sequence[Effect]:
    return node.asked(now, node.broker.publish, "s", name, b"1")


def had(network: Network) -> list[str]:
    told = [given.what for name, given in network.delivered if name == "c"]
    return [each.message for each in told if isinstance(each, InboxDelivery)]


def test_a_tree_follows_what_is_measured_when_it_has_changed_for_good() -> None:
    """The way from a to c is direct, then by b, then direct again; nothing is lost or doubled."""
    network = ring(0, {("a", "b"): 0.004, ("b", "c"): 0.004, ("a", "c"): 0.004})
    sent: list[str] = []
    publish_until(network, 60.0, sent)
    assert tree_at(network, "a") == {"b", "c"}
    before = announced(network, "a")
    for start in range(60, 120, 20):
        network.delay("a", "c", 0.1)
        publish_until(network, start + 3.0, sent)
        network.delay("a", "c", 0.004)
        publish_until(network, start + 20.0, sent)
    assert announced(network, "a") == before, "a burst is no news"
    network.delay("a", "c", 0.1)
    publish_until(network, 240.0, sent)
    assert tree_at(network, "a") == {"b"}
    assert tree_at(network, "c") == {"b"}
    # Nothing goes over it but what it is measured by.
    network.delay("a", "c", 0.001)
    publish_until(network, 480.0, sent)
    assert "c" in tree_at(network, "a")
    network.run(network.now + 5.0)
    assert had(network) == sent


def test_a_link_that_stalls_for_a_moment_announces_nothing() -> None:
    """Nothing goes over it but what it is measured by: a single round trip counts for little."""
    network = ring(0, {("a", "b"): 0.002, ("b", "c"): 0.002, ("a", "c"): 0.002})
    network.run(60.0)
    before = announced(network, "a")
    for number in range(4):
        start = network.now
        network.delay("a", "c", 0.1)
        network.run(start + 5.25 + number / 4)
        network.delay("a", "c", 0.002)
        while network.now < start + 120.0:
            network.run(network.now + 1.0)
            assert announced(network, "a") == before


@pytest.mark.parametrize(("wrong", "back"), [(0.1, 0.004), (0.001, 0.02)])
def test_a_span_of_other_costs_begins_anew_after_a_break_or_in_the_other_direction(
    wrong: float, back: float
) -> None:
    for interrupt in (MeasuredCost.begin_anew, lambda cost: cost.see(back, 20.0)):
        cost = MeasuredCost()
        cost.see(0.01, 0.0)
        cost.see(wrong, 10.0)
        interrupt(cost)
        assert [cost.see(wrong, now) for now in (25.0, 40.5, 54.5)] == [10, 10, 10]
        assert cost.see(wrong, 55.0) == round(wrong * 1000)


@pytest.mark.parametrize(("dear", "tree"), [(("a", "b"), {"c"}), (("a", "c"), {"b"})])
def test_a_cost_that_is_set_makes_another_tree(dear: tuple[str, str], tree: set[str]) -> None:
    network = ring(1, {})
    sent: list[str] = []
    publish_until(network, 10.0, sent)
    one, other = dear
    call(network, one, lambda node, now: node.set_link(other, 40, now))
    publish_until(network, 20.0, sent)
    assert tree_at(network, "a") == tree
    call(network, one, lambda node, now: node.set_link(other, 1, now))
    publish_until(network, 30.0, sent)
    assert tree_at(network, "a") == {"b", "c"}
    network.run(network.now + 5.0)
    assert had(network) == sent


@NEEDS_NETWORK
def test_brokers_read_the_costs_of_a_topology_and_of_settings_that_change(tmp_path: Path) -> None:
    """The dear link of three is outside the tree; the other end says another cost, and SIGHUP."""
    from pathcast.transport.network import LocalNetwork, load_topology

    topology = tmp_path / "t.toml"
    topology.write_text(
        f"[network]\ndirectory = {str(tmp_path / 'net')!r}\n"
        'links = [["a", "b", 40], ["b", "c"], ["a", "c"]]\n'
    )
    network = LocalNetwork.write(load_topology(topology))

    async def has(costs: Mapping[str, int], tree: list[str]) -> bool:
        found = (await network.statuses())["a"]
        node: Any = {} if found is None else found["node"]
        return (node.get("costs"), node.get("tree")) == (costs, {"": tree})

    try:
        network.start(network.names, are_new=True)
        asyncio.run(eventually(lambda: has({"b": 40, "c": 1}, ["c"])))
        for name, was, cost in (("a", "cost = 40", 1), ("b", "cost = 40", 1), ("c", "", 7)):
            file = network.directory / f"{name}.toml"
            text = file.read_text()
            head = '[[neighbours]]\nname = "a"\n'
            file.write_text(
                text.replace(was, f"cost = {cost}")
                if was
                else text.replace(head, f"{head}cost = {cost}\n")
            )
            network.signal(name, signal.SIGHUP)
        # What the dearer end says counts.
        asyncio.run(eventually(lambda: has({"b": 1, "c": 1}, ["b"])))
    finally:
        network.stop(network.names)

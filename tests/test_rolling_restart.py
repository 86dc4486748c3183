"""Brokers that are restarted one after the other under load, as an upgrade does it.

If these fail, an upgrade of a network loses or doubles messages, withdraws a subscription that was
in force, or has a broker that does not end when it is asked to.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from pathcast.transport.local_processes import free_ports
from patience import eventually
from real_network import RealNetwork
from test_monitoring import page
from test_real_network import BATCHES, RING, ROOTS, a_message, a_query, lived_through
from wires import Loopback, Pair


def rolled(directory: Path, names: str, links: list[Pair], roots: str) -> None:
    """Restarts all of a network, and checks what every subscriber got."""
    places = {
        name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)
    }
    network = RealNetwork(directory, names, links, Loopback(names), monitored=places)

    async def is_ready(name: str) -> bool:
        return (await asyncio.to_thread(page, places[name], "/readyz")).status == 200

    async def publishes(root: str, done: asyncio.Event) -> None:
        chance = random.Random(root)
        while not done.is_set():
            await network.publish(root, *(a_message(chance) for _ in range(4)))
            await asyncio.sleep(0.01)

    async def subscribes() -> None:
        chance = random.Random(1)
        for number in range(4 * len(names)):
            host = names[number % len(names)]
            await network.subscribe(host, f"s{number}", a_query(chance, of_batches=host in BATCHES))
        await network.in_force()

    async def scenario() -> None:
        await subscribes()
        done = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for root in roots:
                group.create_task(publishes(root, done))
            for name in names:
                before = len(network.sent)
                assert await asyncio.to_thread(network.brokers.end, name) == 0
                network.brokers.start(name, is_awaited=False)
                await eventually(partial(is_ready, name))
                await network.until(lambda before=before: len(network.sent) > before)  # type: ignore[misc]
            done.set()

    asyncio.run(lived_through(network, scenario, roots))


def test_two_brokers_are_restarted_one_after_the_other(tmp_path: Path) -> None:
    """In short what happens to seven at night."""
    rolled(tmp_path, "ab", [("a", "b")], "a")


@pytest.mark.nightly
def test_seven_brokers_are_restarted_one_after_the_other(tmp_path: Path) -> None:
    rolled(tmp_path, "abcdefg", RING, ROOTS)

"""The processes of `hop`, the load on them, and the work part by part, alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.messages import SourceEntry
from pathcast.overlay.table import Table
from pathcast.registry import Registry
from pathcast.transport.broker_requests import PublishRequest, RegisterSourceRequest
from pathcast.transport.client import BrokerClient
from pathcast.transport.network import LocalNetwork, NetworkSection, Topology
from pathcast.transport.process import read_control
from pathcast_lab.bench.broker_node_run import Inbox, processor_seconds
from pathcast_lab.bench.checking import wrong_count
from pathcast_lab.bench.hop import HopResult, HopSet, order

ROOT, BETWEEN, HOST = "root", "between", "host"
ALL = "/order/to[.='Bern']"
PATIENCE_SECONDS = 300.0
CALLS = 4
"""Calls of the publisher that are under way."""


def entries_of(count: int) -> list[str]:
    """Entries that hold of no message."""
    return [f"/order/line[sku='B{number}']" for number in range(count)]


async def measured(chosen: HopSet, size: int, batch: int, directory: Path) -> HopResult:
    """One size, all rounds.

    Raises:
        WrongCountError: A delivery is lost or doubled.
    """
    count = max(batch, round(chosen.megabytes * 1e6 / size))
    messages = [order(size, number) for number in range(count)]
    links = ((ROOT, BETWEEN), (BETWEEN, HOST))
    section = NetworkSection(directory=directory, links=links)
    network = LocalNetwork.write(Topology(network=section))
    network.start(network.names, are_new=True)
    try:
        hops = await _hops(network, chosen, messages, batch)
    finally:
        network.stop(network.names)
    table = Table()
    table.set(HOST, [ALL, *entries_of(chosen.entries)], [])
    registry = Registry(threads=1)
    rounds = range(chosen.rounds)
    return HopResult(
        case=f"{size:,} bytes",
        entries=chosen.entries,
        message_bytes=round(sum(map(len, messages)) / count),
        messages=count,
        hop_us=hops,
        parsing_us=tuple(_alone(registry.match, messages, batch) for _ in rounds),
        routing_us=tuple(_alone(table.route, messages, batch) for _ in rounds),
    )


async def _hops(
    network: LocalNetwork, chosen: HopSet, messages: Sequence[bytes], batch: int
) -> tuple[float, ...]:
    """Microseconds of the broker between, a message; a round each, after one that warms up."""
    between = read_control(network.directory / BETWEEN).process
    found: list[float] = []
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(network.operator(ROOT)) for _ in range(CALLS)]
        inbox = Inbox(await stack.enter_async_context(network.operator(HOST)))
        following = asyncio.create_task(inbox.follow())
        await clients[0].ask(RegisterSourceRequest("shop", SourceEntry()))
        wanted = [ALL, *entries_of(chosen.entries)]
        await inbox.client.subscribe_many(
            (f"s{number}", DeliveryProfile(text)) for number, text in enumerate(wanted)
        )
        await _until(lambda: len(inbox.in_force) >= len(wanted))
        for number in range(chosen.rounds + 1):
            before = processor_seconds(between)
            await _publish(clients, messages, batch, number)
            due = (number + 1) * len(messages)
            await _until(lambda due=due: len(inbox.came) >= due)  # type: ignore[misc]
            found.append((processor_seconds(between) - before) / len(messages) * 1e6)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    published = (chosen.rounds + 1) * len(messages)
    if not len(inbox.came) == len({name for name, _, _ in inbox.came}) == published:
        raise wrong_count("deliveries", len(inbox.came), published, "what was published")
    return tuple(found[1:])


async def _publish(
    clients: Sequence[BrokerClient], messages: Sequence[bytes], batch: int, turn: int
) -> None:
    groups = iter(range(0, len(messages), batch))

    async def publish(client: BrokerClient) -> None:
        for first in groups:
            rows = enumerate(messages[first : first + batch], turn * len(messages) + first)
            await client.publish([PublishRequest("shop", str(id), body) for id, body in rows])

    await asyncio.gather(*map(publish, clients))


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


def _alone(
    work: Callable[[Sequence[bytes]], object], messages: Sequence[bytes], batch: int
) -> float:
    groups = [messages[first : first + batch] for first in range(0, len(messages), batch)]
    work(groups[0])
    began = time.process_time()
    for group in groups:
        work(group)
    return (time.process_time() - began) / len(messages) * 1e6

"""Broker processes whose tables have a budget: they are made anew while messages flow."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery
from pathcast.overlay.messages import SourceEntry
from pathcast.transport.broker_requests import DELIVERIES, PublishRequest, RegisterSourceRequest
from pathcast.transport.network import LocalNetwork, load_topology
from pathcast_lab.demos.running import followed
from patience import eventually

ITEMS = 40
COUNT = 240


def _message(number: int) -> bytes:
    """An order for Bern in every sixth message; the others have items that nobody wants."""
    town = "Bern" if number % 6 == 0 else "Rome"
    return f"<order><to>{town}</to><item no='{number}'/></order>".encode()


def test_a_broker_process_makes_its_table_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATHCAST__BROKER__TABLE_ENTRIES_MAX", "4")
    monkeypatch.setenv("PATHCAST__BROKER__TABLE_REVIEW_SECONDS", "0.2")
    topology = tmp_path / "t.toml"
    topology.write_text(f'[network]\ndirectory = "{tmp_path}/n"\nlinks = [["a", "b"]]\n')
    network = LocalNetwork.write(load_topology(topology))
    network.start(network.names, are_new=True)
    try:
        asyncio.run(_run(network))
    finally:
        network.stop(network.names)


async def _run(network: LocalNetwork) -> None:
    given: set[tuple[str, str]] = set()

    async def read() -> None:
        async for told in followed(network, "b", DELIVERIES):
            if isinstance(told, InboxDelivery):
                given.add((told.subscription.partition("/")[2], told.message))

    reading = asyncio.create_task(read())
    async with network.operator("a") as publisher, network.operator("b") as subscriber:
        await publisher.ask(RegisterSourceRequest("shop", SourceEntry()))
        profiles = [
            (f"s{n}", DeliveryProfile(f"/order[to = 'Bern']/item[@no = '{n}']", "ids"))
            for n in range(ITEMS)
        ]
        assert not await subscriber.subscribe_many(profiles)

        async def held() -> int:
            (made,) = (await publisher.status())["node"]["budgeted_tables"].values()
            assert made["in_vain"] < 0.9
            return int(made["held"])

        async def has_all() -> bool:
            return await held() == ITEMS

        async def fits() -> bool:
            return await held() <= 4

        await eventually(has_all)
        for first in range(0, COUNT, 40):
            numbers = range(first, first + 40)
            requests = [PublishRequest("shop", f"m{n}", _message(n)) for n in numbers]
            assert not await publisher.publish(requests)
        await eventually(fits)
        again = [PublishRequest("shop", f"again{n}", _message(n)) for n in range(ITEMS)]
        assert not await publisher.publish(again)
        wanted = range(0, ITEMS, 6)
        expected = {(f"s{n}", f"{name}{n}") for n in wanted for name in ("m", "again")}
        await eventually(lambda: given >= expected)
        assert given == expected
    reading.cancel()

"""Links that are slow, late, lossy or cut: carriers over the proxy lose nothing."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from flooding import CODEC, Publish, flooding
from pathcast.transport.client import BrokerClient
from pathcast.transport.grpc_streams import Address
from pathcast.transport.process import read_control, running
from pathcast.transport.settings import BrokerSettings
from patience import eventually
from tcp_proxy import LinkFaults, Proxy


async def echo_server() -> tuple[asyncio.Server, int]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


async def echoed(port: int, data: bytes) -> tuple[bytes, float]:
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    writer.write_eof()
    got = await reader.read(-1)
    writer.close()
    return got, time.monotonic() - began


async def what_is_left(port: int, data: bytes) -> bytes:
    """What comes over a link that is cut: nothing, or a reset."""
    try:
        return (await echoed(port, data))[0]
    except ConnectionError:
        return b""


FAULTS = [
    (LinkFaults(), 0.0),
    (LinkFaults(delay_seconds=0.05), 0.1),
    (LinkFaults(bytes_per_second=2_000_000), 0.05),
    (LinkFaults(stall_share=1.0, stall_seconds=0.03), 0.06),
]


@pytest.mark.parametrize(("faults", "least"), FAULTS)
def test_bytes_come_as_they_were_and_as_late_as_they_should(
    faults: LinkFaults, least: float
) -> None:
    async def main() -> None:
        server, port = await echo_server()
        proxy = await Proxy.start("127.0.0.1", port, faults)
        data = bytes(range(256)) * 400
        got, seconds = await echoed(proxy.port, data)
        assert got == data
        assert seconds >= least
        proxy.cut()
        assert await what_is_left(proxy.port, data) == b""
        proxy.heal()
        assert (await echoed(proxy.port, data))[0] == data
        await proxy.stop()
        server.close()

    asyncio.run(main())


def test_whoever_is_far_away_is_reached(tmp_path: Path) -> None:
    """Once round takes longer than a machine needs that is near: it is no reason to give up."""
    broker = {"name": "b", "directory": tmp_path / "b"}
    settings = BrokerSettings(broker=broker, clients=[{"name": "ann"}])  # type: ignore[arg-type]

    async def main() -> None:
        async with running(settings, flooding("b", [])) as carrier:
            port = int(read_control(tmp_path / "b").listen.rpartition(":")[2])
            proxy = await Proxy.start("127.0.0.1", port, LinkFaults(delay_seconds=0.15))
            address = Address("b", f"127.0.0.1:{proxy.port}")
            async with BrokerClient("ann", address, CODEC) as client:
                await client.publish([Publish("m", b"x")])
            assert [each.delivery_id for each in carrier.disk.waiting("reader", 0, 9)] == ["m"]
            await proxy.stop()

    asyncio.run(main())


def test_brokers_over_a_bad_link_lose_nothing(tmp_path: Path) -> None:
    def settings(name: str, peer: str, port: int | None) -> BrokerSettings:
        address = None if port is None else f"127.0.0.1:{port}"
        return BrokerSettings(
            broker={"name": name, "directory": tmp_path / name},  # type: ignore[arg-type]
            neighbours=[{"name": peer, "address": address}],  # type: ignore[arg-type]
        )

    async def main() -> None:
        async with running(settings("b", "a", None), flooding("b", ["a"])) as b:
            port = int(read_control(tmp_path / "b").listen.rpartition(":")[2])
            faults = LinkFaults(delay_seconds=0.01, stall_share=0.05, reset_share=0.02)
            proxy = await Proxy.start("127.0.0.1", port, faults, seed=3)
            async with running(settings("a", "b", proxy.port), flooding("a", ["b"])) as a:
                for number in range(200):
                    await a.submit("p", [Publish(f"m{number}", b"x" * 500)])
                    if number == 100:
                        proxy.cut()
                    if number == 150:
                        proxy.heal()
                await eventually(lambda: len(b.disk.waiting("reader", 0, 999)) >= 200)
                ids = [each.delivery_id for each in b.disk.waiting("reader", 0, 999)]
                assert sorted(ids) == sorted(f"m{number}" for number in range(200))
            await proxy.stop()

    asyncio.run(main())

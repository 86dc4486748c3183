"""Messages and deliveries that are longer than a frame may be, from publisher to subscriber."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from pathcast.errors import FrameError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery, InForce
from pathcast.overlay.messages import SourceEntry
from pathcast.overlay.xml_content import limits_of
from pathcast.transport import pieces
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    CODEC,
    DELIVERIES,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    Subscribe,
)
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Disk
from pathcast.transport.frames import FRAME_BYTES_MAX
from pathcast.transport.process import operator_of, read_control, running
from pathcast.transport.settings import BrokerSettings, node_settings
from pathcast_lab.sim.memory_streams import MemoryStream
from patience import PATIENCE_SECONDS

MIB = 1 << 20


def broker(directory: Path, name: str, neighbour: str, address: str | None) -> BrokerSettings:
    return BrokerSettings.model_validate(
        {
            "broker": {
                "name": name,
                "directory": directory / name,
                "members": [neighbour],
                "message_bytes_max": 32 * MIB,
            },
            "neighbours": [{"name": neighbour, "address": address}],
            "clients": [{"name": "ann"}],
        }
    )


def test_a_message_longer_than_a_frame_comes_from_publisher_to_subscriber(tmp_path: Path) -> None:
    text = b"<n>" + b"x" * 1000 + b"</n>"
    body = b"<order><to>Bern</to>" + text * (FRAME_BYTES_MAX // len(text) + 1000) + b"</order>"
    assert len(body) > FRAME_BYTES_MAX

    async def main() -> None:
        limits = limits_of(32 * MIB)
        there = broker(tmp_path, "b", "a", None)
        kind = broker_kind("b", ["a"], members=["a"], limits=limits, settings=node_settings(there))
        async with running(there, kind):
            address = read_control(there.broker.directory).listen
            here = broker(tmp_path, "a", "b", address)
            kind = broker_kind(
                "a", ["b"], members=["b"], limits=limits, settings=node_settings(here)
            )
            async with (
                running(here, kind),
                operator_of(here.broker.directory, CODEC) as root,
                operator_of(there.broker.directory, CODEC) as host,
            ):
                await root.ask(RegisterSourceRequest("shop", SourceEntry()))
                wanted = DeliveryProfile("/order[to = 'Bern']", "message")
                answer = await host.ask(Subscribe((("s", wanted),)))
                assert isinstance(answer, RequestAccepted)
                assert answer.refused == ()
                deliveries = await follow(host, 1)
                assert isinstance(deliveries[0], InForce)
                await root.publish([PublishRequest("shop", "m", body)])
                _, delivery = await follow(host, 2)
                assert isinstance(delivery, InboxDelivery)
                assert delivery.results == (body,)

    asyncio.run(main())


async def follow(client: BrokerClient, count: int) -> list[object]:
    """The first so many of the operator's inbox."""
    found: list[object] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for group in client.deliveries("operator", 0):
            found += [DELIVERIES.decode(each.body) for each in group]
            if len(found) >= count:
                break
    return found


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 35])
def test_pieces_are_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 10)
    data = bytes(range(size))

    async def main() -> None:
        here, there = MemoryStream.pair()
        sending = asyncio.create_task(pieces.send_in_pieces(here, data))
        assert await pieces.receive_pieces(there, "here") == data
        await sending
        await here.close()
        assert await pieces.receive_pieces(there, "here") is None

    asyncio.run(main())


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([b""], "frame.unreadable"),
        ([b"\x07abc"], "frame.unreadable"),
        ([b"\x00abc", b"abc"], "frame.unreadable"),
        ([b"\x00" + bytes(20)] * 3, "frame.too_large"),
    ],
)
def test_pieces_that_are_none_are_refused(
    said: list[bytes], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "WHOLE_BYTES_MAX", 50)

    async def main() -> None:
        here, there = MemoryStream.pair()

        async def send() -> None:
            for one in said:
                await here.send(one)

        sending = asyncio.create_task(send())
        with pytest.raises(FrameError) as refused:
            await pieces.receive_pieces(there, "here")
        assert refused.value.code == code
        sending.cancel()

    asyncio.run(main())


def test_an_inbox_is_read_by_bytes_as_well_as_by_number() -> None:
    disk = Disk(None)
    disk.commit({}, [("ann", f"d{n}", bytes(40)) for n in range(5)])
    assert len(disk.waiting("ann", 0, 10, bytes_max=100)) == 2
    assert len(disk.waiting("ann", 0, 10, bytes_max=1)) == 1
    assert len(disk.waiting("ann", 0, 3)) == 3
    assert disk.waiting("ann", 5, 3) == []

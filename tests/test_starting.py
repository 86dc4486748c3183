"""A process that listens while its node is made from what it keeps.

If these fail, a broker with many profiles looks as if it did not run until all are restored, or
does something before it knows whom it serves.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from flooding import CODEC, FloodingNode, Publish, flooding
from pathcast.errors import UnavailableError
from pathcast.overlay.deliveries import OPERATOR
from pathcast.transport.carrier import NodeAdapter
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Disk
from pathcast.transport.frames import ConnectionHello, encode_frame
from pathcast.transport.grpc_streams import Address, open_stream
from pathcast.transport.monitor import Monitor
from pathcast.transport.nodes import RemoteNodes
from pathcast.transport.process import operator_of, read_control, running
from pathcast.transport.settings import BrokerSettings
from patience import PATIENCE_SECONDS, eventually

SAVED = {f"seen/m{number}": b"" for number in range(100)}


class Slowly:
    """A kind of node that has read half of what it saved, and waits until it may go on."""

    def __init__(self, kind: NodeAdapter[FloodingNode]) -> None:
        self._make = kind.make
        self.may_go_on = threading.Event()
        self.kind = replace(kind, make=self.make)

    def make(self, saved: Mapping[str, bytes], life: int) -> FloodingNode:
        read: dict[str, bytes] = {}
        for key in saved:
            if len(read) == len(saved) // 2:
                assert self.may_go_on.wait(PATIENCE_SECONDS)
            read[key] = saved[key]
        return self._make(read, life)


@pytest.fixture
def settings(tmp_path: Path) -> BrokerSettings:
    disk = Disk(tmp_path / "b")
    disk.commit(SAVED)
    disk.close()
    return BrokerSettings(
        broker={"name": "b", "directory": tmp_path / "b"},  # type: ignore[arg-type]
        neighbours=({"name": "a"},),  # type: ignore[arg-type]
        clients=({"name": "reader"},),  # type: ignore[arg-type]
    )


async def publishes(address: Address) -> None:
    async with BrokerClient("reader", address, CODEC) as client:
        await client.publish([Publish("m", b"")])


async def asks(address: Address) -> None:
    async with BrokerClient("reader", address, CODEC) as client:
        await client.ask(Publish("m", b""))


async def follows(address: Address) -> None:
    async with BrokerClient("reader", address, CODEC) as client:
        await anext(client.deliveries("reader"))


async def connects(address: Address) -> None:
    """As a neighbour."""
    stream = await open_stream("a", address)
    try:
        await stream.send(encode_frame(ConnectionHello("a", 10)))
        await stream.receive()
    finally:
        await stream.close()


CALLS: tuple[Callable[[Address], Awaitable[None]], ...] = (publishes, asks, follows, connects)


async def all_are_told_to_try_again(address: Address) -> None:
    for call in CALLS:
        with pytest.raises(UnavailableError) as told:
            await call(address)
        assert told.value.code == "broker.starting"
        assert told.value.params == {"name": "b", "done": 50, "total": 100}


def controlled(directory: Path) -> Address:
    """Where the operator of a process calls it."""
    control = read_control(directory)
    return Address(control.name, control.control, control.token)


def test_a_process_listens_while_it_starts_and_says_how_far_it_is(
    settings: BrokerSettings,
) -> None:
    async def main() -> None:
        slowly, monitor = Slowly(flooding("b", ["a"])), Monitor()
        directory = settings.broker.directory
        async with contextlib.AsyncExitStack() as stack:
            starting = asyncio.create_task(
                stack.enter_async_context(running(settings, slowly.kind, monitor=monitor))
            )
            await eventually(lambda: read_control(directory).is_starting)
            async with operator_of(directory, CODEC) as operator:

                async def is_half_done() -> bool:
                    status = await operator.status()
                    return status == {"name": "b", "starting": {"done": 50, "total": 100}}

                await eventually(is_half_done)
                told = {"profiles": "50 of 100 things that are kept are restored"}
                assert await monitor.unready() == told
                address = Address("b", read_control(directory).listen)
                await all_are_told_to_try_again(address)
                nodes = RemoteNodes({"b": controlled(directory)}, OPERATOR, CODEC)
                assert await nodes.statuses() == {"b": None}
                slowly.may_go_on.set()
                await starting
                assert not read_control(directory).is_starting
                assert "profiles" not in await monitor.unready()
                status = await operator.status()
            assert status["node"] == {"seen": len(SAVED)}
            await publishes(address)
            await connects(address)

    asyncio.run(main())


def test_a_start_that_fails_gives_everything_back(settings: BrokerSettings) -> None:
    """Port, directory and the file of the operator: the next start finds them free."""

    def fails(saved: Mapping[str, bytes], life: int) -> FloodingNode:
        raise ValueError("it cannot be made")

    async def main() -> None:
        kind = flooding("b", ["a"])
        with pytest.raises(ValueError, match="it cannot be made"):
            async with running(settings, replace(kind, make=fails)):
                pass
        with pytest.raises(UnavailableError):
            read_control(settings.broker.directory)
        async with running(settings, kind) as carrier:
            assert carrier.kind.describe(carrier.node) == {"seen": len(SAVED)}

    asyncio.run(main())

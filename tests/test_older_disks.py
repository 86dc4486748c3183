"""Broker processes whose disks are older than what others have seen, empty, or there twice.

A line of three: `a` is the root, `c` the host. A subscriber reads the inbox at `c` with its cursor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from broker_processes import BrokerProcesses
from pathcast.errors import DiskError, PathcastError, SourceError, UnavailableError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery, InForce, Lapsed
from pathcast.overlay.messages import SourceEntry
from pathcast.transport.broker_requests import (
    CODEC,
    DELIVERIES,
    PublishRequest,
    RegisterSourceRequest,
)
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import InboxCursor
from pathcast.transport.grpc_streams import Address
from patience import eventually, wait_until

CLIENT = "tester"


class Line:
    """Three brokers, a publisher at the first and a subscriber at the last."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.brokers = BrokerProcesses(directory, ["a", "b", "c"])
        wait_until(lambda: all(self.brokers.is_up(name) for name in ("a", "b", "c")))
        self.told: list[object] = []
        """What the subscriber has read, in its order."""
        self.cursor: InboxCursor | int = 0
        self.receipts: list[str] = []

    def client(self, name: str) -> BrokerClient:
        return BrokerClient(
            CLIENT, Address(name, self.brokers.addresses[name], f"{CLIENT}!"), CODEC
        )

    async def begin(self) -> None:
        """The subscription is in force."""
        async with self.client("a") as client:
            await client.ask(RegisterSourceRequest("orders", SourceEntry()))
        async with self.client("c") as client:
            assert not await client.subscribe_many([("s", DeliveryProfile("/order", "ids"))])
        await self.read_until(lambda: any(isinstance(each, InForce) for each in self.told))

    async def publish(self, what: str, count: int) -> None:
        """Messages, one after the other, each with its receipt."""
        async with self.client("a") as client:
            for n in range(count):
                assert not await client.publish(
                    [PublishRequest("orders", f"{what}{n}", b"<order/>")]
                )
                self.receipts.append(f"{what}{n}")

    async def read_until(self, holds: Callable[[], bool]) -> None:
        """Reads the inbox at `c` on from the cursor."""

        async def has_read() -> bool:
            with contextlib.suppress(UnavailableError):
                async with self.client("c") as client:
                    async for group in client.waiting(CLIENT, self.cursor):
                        self.told += [DELIVERIES.decode(each.body) for each in group]
                        assert client.cursor is not None
                        self.cursor = client.cursor
            return holds()

        await eventually(has_read)

    @property
    def got(self) -> list[str]:
        return [each.message for each in self.told if isinstance(each, InboxDelivery)]

    def lapsed_after(self, message: str) -> bool:
        """Whether the subscriber was told of losses after a message."""
        at = next(
            n
            for n, one in enumerate(self.told)
            if isinstance(one, InboxDelivery) and one.message == message
        )
        return any(isinstance(each, Lapsed) for each in self.told[at:])

    def copy(self, name: str, to: str) -> None:
        """The directory of a broker that does not run, as a file system's copy has it."""
        shutil.copytree(self.directory / name, self.directory / to)

    def put_back(self, name: str, copy: str) -> None:
        shutil.rmtree(self.directory / name)
        shutil.copytree(self.directory / copy, self.directory / name)


@contextlib.asynccontextmanager
async def line(directory: Path) -> AsyncIterator[Line]:
    made = Line(directory)
    try:
        await made.begin()
        yield made
    finally:
        made.brokers.stop()


def run(directory: Path, scenario: Callable[[Line], Awaitable[None]]) -> None:
    async def main() -> None:
        async with line(directory) as made:
            await scenario(made)

    asyncio.run(main())


def test_a_drill_with_a_backup_of_the_root(tmp_path: Path) -> None:
    async def scenario(net: Line) -> None:
        await net.publish("kept", 20)
        await net.read_until(lambda: len(net.got) == 20)
        await asyncio.to_thread(net.brokers.back_up, "a", tmp_path / "copy")
        await net.publish("lost", 20)
        await net.read_until(lambda: len(net.got) == 40)
        net.brokers.kill("a")
        net.brokers.lose_disk("a")
        net.brokers.restore("a", tmp_path / "copy")
        net.brokers.start("a")
        await net.publish("later", 30)
        await net.read_until(lambda: len(set(net.got)) == 70)
        assert net.got == net.receipts, "each once, and in the order of its root"
        assert net.lapsed_after("lost19"), "of what nobody had, nobody knows"

    run(tmp_path, scenario)


@pytest.mark.nightly
def test_a_drill_with_a_backup_of_the_host(tmp_path: Path) -> None:
    async def scenario(net: Line) -> None:
        await net.publish("kept", 20)
        await net.read_until(lambda: len(net.got) == 20)
        await asyncio.to_thread(net.brokers.back_up, "c", tmp_path / "copy")
        await net.publish("more", 50)
        await net.read_until(lambda: len(net.got) == 70)
        net.brokers.kill("c")
        net.brokers.lose_disk("c")
        net.brokers.restore("c", tmp_path / "copy")
        net.brokers.start("c")
        await net.publish("later", 100)
        with pytest.raises(SourceError) as refused:
            await net.read_until(lambda: False)
        assert refused.value.code in ("inbox.ahead", "inbox.other")
        net.cursor = 0
        await net.read_until(lambda: net.got[-100:] == net.receipts[-100:])
        assert net.lapsed_after("kept19")

    run(tmp_path, scenario)


@pytest.mark.nightly
@pytest.mark.parametrize("is_alone", [False, True])
def test_an_older_copy_of_the_root_takes_its_place(tmp_path: Path, is_alone: bool) -> None:
    """Without any command: others have seen more. Alone, it has overtaken them before they meet."""

    async def scenario(net: Line) -> None:
        await net.publish("kept", 20)
        await net.read_until(lambda: len(net.got) == 20)
        net.brokers.kill("a")
        net.copy("a", "older")
        net.brokers.start("a")
        await net.publish("lost", 100)
        await net.read_until(lambda: len(net.got) == 120)
        net.brokers.kill("a")
        if is_alone:
            net.brokers.kill("b")
        net.put_back("a", "older")
        net.brokers.start("a")
        await net.publish("later", 150)
        if is_alone:
            net.brokers.start("b")
        await net.read_until(lambda: len(set(net.got)) == 270)
        assert net.got == net.receipts
        assert net.lapsed_after("lost99")

    run(tmp_path, scenario)


@pytest.mark.nightly
def test_an_older_copy_of_the_host_takes_its_place(tmp_path: Path) -> None:
    async def scenario(net: Line) -> None:
        await net.publish("kept", 20)
        await net.read_until(lambda: len(net.got) == 20)
        net.brokers.kill("c")
        net.copy("c", "older")
        net.brokers.start("c")
        await net.publish("more", 100)
        await net.read_until(lambda: len(net.got) == 120)
        await asyncio.sleep(1.0)  # the root lets go of them, which nobody is told
        net.brokers.kill("c")
        net.put_back("c", "older")
        net.brokers.start("c")
        await net.publish("later", 150)
        with pytest.raises(SourceError):
            await net.read_until(lambda: False)
        net.cursor, net.told = 0, []
        await net.read_until(lambda: net.got[-150:] == net.receipts[-150:])
        lost = set(net.receipts) - set(net.got)
        assert not lost or net.lapsed_after("kept19")

    run(tmp_path, scenario)


@pytest.mark.nightly
def test_a_host_runs_once_without_its_disk(tmp_path: Path) -> None:
    async def scenario(net: Line) -> None:
        await net.publish("kept", 20)
        await net.read_until(lambda: len(net.got) == 20)
        net.brokers.kill("c")
        (tmp_path / "c").rename(tmp_path / "away")
        net.brokers.start("c")  # as new: it is asked for nothing
        await net.publish("missed", 30)
        await asyncio.sleep(1.0)
        net.brokers.kill("c")
        shutil.rmtree(tmp_path / "c")
        (tmp_path / "away").rename(tmp_path / "c")
        net.brokers.start("c")
        await net.read_until(lambda: net.lapsed_after("kept19") or len(net.got) == 50)
        await net.read_until(lambda: isinstance(net.told[-1], InForce | InboxDelivery))
        await net.publish("later", 20)
        await net.read_until(lambda: net.got[-20:] == net.receipts[-20:])

    run(tmp_path, scenario)


@pytest.mark.nightly
def test_a_copy_of_the_root_beside_it(tmp_path: Path) -> None:
    """The one that began earlier ends with what it is told; those that follow are told as well."""

    async def scenario(net: Line) -> None:
        await net.publish("kept", 20)
        await net.read_until(lambda: len(net.got) == 20)
        elder = net.brokers.processes["a"]
        os.kill(elder, signal.SIGSTOP)
        net.copy("a", "twin")
        os.kill(elder, signal.SIGCONT)
        await net.publish("elder", 30)
        text = (tmp_path / "a.toml").read_text().replace('directory = "a"', 'directory = "twin"')
        port = net.brokers.addresses["a"].rpartition(":")[2]
        text = text.replace(f":{port}", ":0")
        (tmp_path / "twin.toml").write_text(text)
        with (tmp_path / "twin.log").open("wb") as log:
            twin = await asyncio.create_subprocess_exec(
                *net.brokers.command("twin"), stdout=log, stderr=log
            )
        try:
            await asyncio.to_thread(wait_until, lambda: not is_running(net, "a"))
            assert "two processes are named a" in (tmp_path / "a.log").read_text()
            assert twin.returncode is None
            await net.read_until(lambda: net.lapsed_after("kept19"))
        finally:
            twin.kill()
            await twin.wait()

    run(tmp_path, scenario)


def is_running(net: Line, name: str) -> bool:
    return net.brokers.has_ended(name) is None


@pytest.mark.nightly
def test_a_directory_is_removed_while_its_broker_runs(tmp_path: Path) -> None:
    async def scenario(net: Line) -> None:
        await net.publish("kept", 5)
        await net.read_until(lambda: len(net.got) == 5)
        shutil.rmtree(tmp_path / "a")
        with pytest.raises(PathcastError) as refused:
            await net.publish("lost", 200)
        assert len(net.receipts) == 5, "there is no receipt for what is not kept"
        assert isinstance(refused.value, DiskError | UnavailableError)
        await asyncio.to_thread(wait_until, lambda: not is_running(net, "a"))
        assert net.brokers.has_ended("a")
        assert "was taken away or replaced" in (tmp_path / "a.log").read_text()

    run(tmp_path, scenario)

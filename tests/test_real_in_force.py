"""Broker processes: what `InForce` says of an id that is used again, and who is away for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from broker_processes import BrokerProcesses
from pathcast.errors import PublicationError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery, InForce, Lapsed, Told
from pathcast.overlay.messages import SourceEntry
from pathcast.transport.broker_requests import (
    CODEC,
    DELIVERIES,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    Subscribe,
    Unsubscribe,
)
from pathcast.transport.client import BrokerClient
from pathcast.transport.grpc_streams import Address
from patience import PATIENCE_SECONDS, eventually
from tcp_proxy import LinkFaults
from wires import Loopback

LINKS = (("a", "b"), ("b", "c"))
_Kind = TypeVar("_Kind")


class Line:
    """Brokers a - b - c, whose second link leads through a proxy."""

    def __init__(self, directory: Path) -> None:
        self.wires = Loopback("abc", LINKS[1:])
        self.brokers = BrokerProcesses(directory, "abc", LINKS, self.wires)

    def client(self, name: str) -> BrokerClient:
        address = self.brokers.addresses[name]
        return BrokerClient("tester", Address(name, address, "tester!", allow_plain=True), CODEC)

    async def node(self, name: str) -> dict[str, Any]:
        """What a broker says of itself."""
        async with self.client(name) as client:
            return cast(dict[str, Any], (await client.status())["node"])

    async def is_whole(self) -> bool:
        links = {}
        for name in "abc":
            async with self.client(name) as client:
                # A broker that is starting has no node.
                node = (await client.status()).get("node")
            links[name] = [] if node is None else sorted(node["tree"][""])
        return links == {"a": ["b"], "b": ["a", "c"], "c": ["b"]}

    async def is_given_up(self, name: str, peer: str) -> bool:
        """Whether a broker does not hear another one any more."""
        return peer not in (await self.node(name))["tree"][""]

    async def subscribe(self, name: str, id: str, query: str) -> int:
        """Returns the version that the broker answers with."""
        async with self.client(name) as client:
            answer = await client.ask(Subscribe(((id, DeliveryProfile(query, "ids")),)))
        assert isinstance(answer, RequestAccepted)
        return answer.versions[id]

    async def inbox(self, name: str) -> list[Told]:
        """What waits in the inbox at a broker."""
        async with self.client(name) as client:
            rows = [one async for group in client.waiting("tester", 0) for one in group]
        return [DELIVERIES.decode(row.body) for row in rows]

    async def told(self, name: str, kind: type[_Kind]) -> list[_Kind]:
        return [one for one in await self.inbox(name) if isinstance(one, kind)]

    async def has_been_told(self, name: str, kind: type[Told]) -> bool:
        return bool(await self.told(name, kind))

    async def publish(self, name: str, ids: Iterable[str]) -> None:
        """Publishes each until it is taken."""
        until = time.monotonic() + PATIENCE_SECONDS
        async with self.client(name) as client:
            for id in ids:
                while True:
                    try:
                        await client.publish([PublishRequest("orders", id, b"<order/>")])
                        break
                    except PublicationError as error:
                        if error.code != "publication.log" or time.monotonic() > until:
                            raise
                    await asyncio.sleep(0.05)

    async def has_had(self, name: str, ids: list[str]) -> bool:
        return [one.message for one in await self.told(name, InboxDelivery)] == ids


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    yield made
    made.brokers.stop()
    made.wires.close()


def test_an_id_that_comes_back_is_in_force_when_it_says_so(line: Line) -> None:
    """The acknowledgement of its first life is under way while its second is told."""

    async def main() -> None:
        await eventually(line.is_whole)
        async with line.client("c") as client:
            await client.ask(RegisterSourceRequest("orders", SourceEntry()))
        line.wires.become("b", "c", LinkFaults(delay_seconds=1.5))
        versions = [await line.subscribe("a", "s", "/order")]
        await asyncio.sleep(0.4)
        async with line.client("a") as client:
            await client.ask(Unsubscribe(("s",)))
        await asyncio.sleep(2.0)
        versions.append(await line.subscribe("a", "s", "/order"))
        assert versions[0] != versions[1]

        async def is_in_force() -> bool:
            return versions[1] in [one.version for one in await line.told("a", InForce)]

        await eventually(is_in_force)
        ids = [f"m{number}" for number in range(60)]
        await line.publish("c", ids)
        await eventually(lambda: line.has_had("a", ids))

    asyncio.run(main())


@pytest.fixture
def short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHCAST__BROKER__LOG_MESSAGES_MAX", "100")
    monkeypatch.setenv("PATHCAST__BROKER__LAG_SECONDS", "2")


@pytest.mark.parametrize("how", ["killed", pytest.param("cut off", marks=pytest.mark.nightly)])
@pytest.mark.usefixtures("short_log")
def test_one_broker_that_is_away_stops_nobody_and_is_told_what_it_missed(
    how: str, request: pytest.FixtureRequest
) -> None:
    line: Line = request.getfixturevalue("line")  # after its settings

    async def main() -> None:
        await eventually(line.is_whole)
        async with line.client("a") as client:
            await client.ask(RegisterSourceRequest("orders", SourceEntry()))
        for name in "bc":
            await line.subscribe(name, "s", "/order")
        await eventually(lambda: line.has_been_told("b", InForce))
        await eventually(lambda: line.has_been_told("c", InForce))
        if how == "killed":
            await asyncio.to_thread(line.brokers.kill, "c")
        else:
            line.wires.cut("b", "c")
        ids = [f"m{number}" for number in range(400)]
        await line.publish("a", ids)
        await eventually(lambda: line.has_had("b", ids))
        (lag,) = [one for one in (await line.node("a"))["log"]["lags"] if one["member"] == "c"]
        assert lag["missed"] >= 300
        assert not lag["is_waited_for"]
        if how == "killed":
            await asyncio.to_thread(line.brokers.start, "c")
        else:
            await eventually(lambda: line.is_given_up("b", "c"))  # or b still has it for c
            line.wires.mend("b", "c")
        await eventually(lambda: line.has_been_told("c", Lapsed))
        await eventually(line.is_whole)
        lapsed = (await line.told("c", Lapsed))[-1]
        assert (lapsed.root, lapsed.subscription) == ("a", "tester/s")
        rest = ids[lapsed.last :]
        await line.publish("a", ["last"])
        await eventually(lambda: line.has_had("c", [*ids[: lapsed.first - 1], *rest, "last"]))
        # It is in force anew: the notice comes after the one that it had lapsed.
        notices = [one for one in await line.inbox("c") if not isinstance(one, InboxDelivery)]
        assert [type(one) for one in notices][-2:] == [Lapsed, InForce]
        assert await line.told("b", Lapsed) == []

    asyncio.run(main())

"""A message has one time in a network, whichever host answers it, and whenever.

If these fail, two hosts answer a message differently, or one that is answered again after a crash
gives something else than the first time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from broker_processes import BrokerProcesses
from pathcast.errors import PeerError, QuerySyntaxError
from pathcast.moments import EPOCH, MOMENT_US_MAX, MOMENT_US_MIN, us_of
from pathcast.overlay.broker_node import BrokerNode, NodeSettings
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery, InForce
from pathcast.overlay.messages import (
    Forward,
    SessionFrame,
    SourceEntry,
    StreamMessage,
    decoded,
    encoded,
)
from pathcast.overlay.publishers import Logged
from pathcast.overlay.xml_content import xml_content
from pathcast.protocol import Deliver, Effect, Save, Wake
from pathcast.query import compile_query
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    CODEC,
    DELIVERIES,
    PublishRequest,
    RegisterSourceRequest,
    Subscribe,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Disk
from pathcast.transport.grpc_streams import Address
from pathcast_lab.sim.memory_streams import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually, wait_until

NOON = datetime(2026, 2, 28, 12, 0, 0, 123_456, tzinfo=UTC)
LATER = NOON + timedelta(days=1000)
SAID = "<t>{//job/@id}{current-dateTime()}</t>"
BORDER = f"//job[xs:dateTime('{NOON.isoformat()}') < current-dateTime()] ! <late>{{@id}}</late>"
JOB = b"<jobs><job id='7'/><other/></jobs>"
LONG = b"<jobs><job id='8'/>" + b"<other>something else</other>" * 20_000 + b"</jobs>"


def said(results: tuple[bytes, ...]) -> datetime:
    """The time that `SAID` found."""
    (result,) = results
    return datetime.fromisoformat(result.decode().partition(">")[2].removesuffix("</t>"))


def test_hosts_whose_clocks_differ_give_one_answer() -> None:
    """Whole, in parts, compressed and cut: the root's clock counts, or what its publisher says."""

    async def main() -> None:
        network = MemoryNetwork()
        clocks = {"a": NOON, "b": LATER, "c": NOON - timedelta(days=1000)}
        near = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
        carriers = {}
        for name, clock in clocks.items():
            settings = NodeSettings(format="zstd" if name == "a" else "text")
            members = [each for each in clocks if each != name]
            kind = broker_kind(
                name, near[name], members=members, settings=settings, clock=partial(us_of, clock)
            )
            carriers[name] = Carrier(name, kind, Disk(None), network.dial_from(name))
            network.add(carriers[name])
        for name, carrier in carriers.items():
            await carrier.start([peer for peer in near[name] if name < peer])
        asked = (
            ("said", DeliveryProfile(SAID, "fragment")),
            ("border", DeliveryProfile(BORDER, "fragment")),
        )
        for carrier in carriers.values():
            await carrier.ask("ann", Subscribe(asked), PATIENCE_SECONDS)
        root = carriers["a"]
        await root.ask("shop", RegisterSourceRequest("s", SourceEntry()), PATIENCE_SECONDS)

        def told(name: str) -> list[Any]:
            found = carriers[name].disk.waiting("ann", 0, 99)
            return [DELIVERIES.decode(each.body) for each in found]

        def count(name: str, kind: type) -> int:
            return sum(isinstance(each, kind) for each in told(name))

        await eventually(lambda: all(count(name, InForce) == len(asked) for name in carriers))
        given = [None, us_of(NOON) + 1, us_of(LATER)]
        await root.submit(
            "shop",
            [
                PublishRequest("s", f"{place}{len(body)}", body, time=each)
                for place, each in enumerate(given)
                for body in (JOB, LONG)
            ],
        )
        await eventually(lambda: all(count(name, InboxDelivery) == 10 for name in carriers))
        answers = [
            {
                (each.subscription, each.message): each.results
                for each in told(name)
                if isinstance(each, InboxDelivery)
            }
            for name in carriers
        ]
        assert answers[0] == answers[1] == answers[2]
        times = {
            message: said(found) for (id, message), found in answers[0].items() if "said" in id
        }
        expected = [NOON, NOON + timedelta(microseconds=1), LATER]
        sizes = (len(JOB), len(LONG))
        assert times == {f"{n}{size}": each for n, each in enumerate(expected) for size in sizes}
        # At its border the comparison is true of a microsecond later, and not of the moment itself.
        late = {message for id, message in answers[0] if "border" in id}
        assert late == {f"{n}{size}" for n in (1, 2) for size in sizes}
        await network.stop()

    asyncio.run(main())


def test_a_message_that_waits_for_a_host_keeps_its_time(tmp_path: Path) -> None:
    """Processes are killed: its root gives the message from its disk, long after it came."""
    brokers = BrokerProcesses(tmp_path, ["a", "b"])

    def client(name: str) -> BrokerClient:
        return BrokerClient("tester", Address(name, brokers.addresses[name], "tester!"), CODEC)

    async def read(holds: Callable[[list[Any]], bool]) -> list[Any]:
        found: list[Any] = []
        async with client("b") as reading, asyncio.timeout(PATIENCE_SECONDS):
            async for group in reading.deliveries("tester", 0):
                found += [DELIVERIES.decode(each.body) for each in group]
                if holds(found):
                    break
        return [each for each in found if isinstance(each, InboxDelivery)]

    async def main() -> None:
        async with client("a") as publisher:
            await publisher.ask(RegisterSourceRequest("s", SourceEntry()))
        async with client("b") as subscriber:
            await subscriber.ask(Subscribe((("said", DeliveryProfile(SAID, "fragment")),)))
        await read(lambda found: any(isinstance(each, InForce) for each in found))
        await asyncio.to_thread(brokers.kill, "b")
        before = datetime.now(UTC) - timedelta(seconds=1)
        async with client("a") as publisher:
            assert not await publisher.publish(
                [
                    PublishRequest("s", "arrived", JOB),
                    PublishRequest("s", "given", JOB, time=us_of(LATER)),
                ]
            )
        after = datetime.now(UTC)
        await asyncio.to_thread(brokers.kill, "a")
        await asyncio.sleep(1.5)
        for name in ("a", "b"):
            await asyncio.to_thread(brokers.start, name)
        first = await read(
            lambda found: "given" in [getattr(each, "message", "") for each in found]
        )
        times = {each.message: said(each.results) for each in first}
        assert before <= times["arrived"] <= after
        assert times["given"] == LATER
        await asyncio.to_thread(brokers.kill, "b")
        await asyncio.to_thread(brokers.start, "b")
        again = await read(
            lambda found: "given" in [getattr(each, "message", "") for each in found]
        )
        assert {each.message: each.results for each in again} == {
            each.message: each.results for each in first
        }

    try:
        wait_until(lambda: all(brokers.is_up(name) for name in ("a", "b")))
        asyncio.run(main())
    finally:
        brokers.stop()


class Alone:
    """A broker without neighbours, that begins again and again with what it has saved."""

    def __init__(self) -> None:
        self.disk: dict[str, bytes] = {}
        self.lives = 0
        self.given: list[InboxDelivery] = []

    def begin(self, now: float) -> BrokerNode:
        self.lives += 1
        node = BrokerNode("a", {}, xml_content(), self.disk, self.lives)
        self.carry(node, node.start(now), now)
        return node

    def carry(
        self, node: BrokerNode, effects: Any, now: float, *, until: type[Effect] | None = None
    ) -> None:
        """Does the effects in their order, up to the first of a type: there it is killed."""
        for effect in effects:
            match effect:
                case _ if until is not None and isinstance(effect, until):
                    return
                case Save(key, value):
                    self.disk[key] = value
                case Deliver(_, InboxDelivery() as told):
                    self.given.append(told)
                case Wake("local"):
                    self.carry(node, node.wake("local", now), now, until=until)


def begun() -> tuple[Alone, BrokerNode]:
    alone = Alone()
    node = alone.begin(1000.0)
    profile = DeliveryProfile(SAID, "fragment")
    alone.carry(node, node.asked(1000.0, node.broker.register_source, "s", SourceEntry()), 1000.0)
    alone.carry(node, node.asked(1000.0, node.broker.subscribe, "q", "ann", profile), 1000.0)
    return alone, node


def test_a_host_that_is_killed_between_its_log_and_its_inbox_answers_as_it_would_have() -> None:
    alone, node = begun()
    asked = node.asked(2000.5, node.broker.publish, "s", "m", JOB)
    alone.carry(node, asked, 2000.5, until=Deliver)
    assert not alone.given
    for life in range(3):
        now = 5000.0 * (life + 1)
        alone.begin(now)
        # What was given and not kept with its cursor is given again.
        alone.disk = {key: value for key, value in alone.disk.items() if "cursor" not in key}
    assert len(alone.given) == 3
    assert {said(each.results) for each in alone.given} == {EPOCH + timedelta(seconds=2000.5)}


@pytest.mark.parametrize("at", [2000.5, None])
def test_a_log_of_before_messages_had_times_is_gone_on_with(at: float | None) -> None:
    alone, node = begun()
    asked = node.asked(2000.5, node.broker.publish, "s", "m", JOB)
    alone.carry(node, asked, 2000.5, until=Deliver)
    (key,) = (key for key in alone.disk if key.startswith("log/"))
    rows = msgspec.msgpack.decode(alone.disk[key])
    for row in rows:
        del row["message"]["time"]
        row["at"] = at
    alone.disk[key] = msgspec.msgpack.encode(rows)
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(alone.disk[key], type=list[Logged])
    alone.begin(9000.0)
    (told,) = alone.given
    # Where the arrival is not known either, the life that took it began before it.
    assert said(told.results) == EPOCH + timedelta(seconds=1000.0 if at is None else at)


@pytest.mark.parametrize("time", [MOMENT_US_MIN - 1, MOMENT_US_MAX + 1, None, "now"])
def test_a_time_that_is_none_is_refused(time: Any) -> None:
    def frame(time: Any) -> SessionFrame:
        message = StreamMessage(1, "s", "m", 0, "", False, time, JOB)
        return SessionFrame(1, 2, 3, 4, (Forward("a", 1, 1, 0, 1, (message,)),))

    for each in (MOMENT_US_MIN, 0, MOMENT_US_MAX):
        assert decoded(encoded(frame(each))) == frame(each)
    with pytest.raises(PeerError, match="time"):
        decoded(encoded(frame(time)))


def test_no_query_of_a_ring_asks_for_the_time() -> None:
    """So peers whose clocks differ decide alike: times do not travel on a ring."""
    for function in ("current-dateTime", "current-date", "current-time"):
        with pytest.raises(QuerySyntaxError, match="there is no function"):
            compile_query(f"//a[@until < {function}()]")


def test_without_a_time_it_is_the_systems() -> None:
    kind = broker_kind("a", [])
    assert kind.request is not None

    async def main() -> None:
        carrier = Carrier("a", kind, Disk(None))
        await carrier.start()
        await carrier.ask("ann", Subscribe((("q", DeliveryProfile(SAID, "fragment")),)), 60.0)
        await carrier.ask("shop", RegisterSourceRequest("s", SourceEntry()), 60.0)
        before = time.time()
        await carrier.submit("shop", [PublishRequest("s", "m", JOB)])
        after = time.time()

        def found() -> list[Any]:
            told = [DELIVERIES.decode(each.body) for each in carrier.disk.waiting("ann", 0, 99)]
            return [each for each in told if isinstance(each, InboxDelivery)]

        await eventually(lambda: bool(found()))
        assert before - 0.001 <= said(found()[0].results).timestamp() <= after
        await carrier.stop()

    asyncio.run(main())

"""Metrics, health and readiness of processes: as a scraper and a supervisor see them.

If these fail, an operator who is called at night looks at numbers that are not so, or a process
that hangs is not restarted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

import httpx
from prometheus_client.parser import text_string_to_metric_families

from broker_processes import BrokerProcesses
from pathcast.errors import ConfigError, PathcastError, StoreError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.messages import SourceEntry
from pathcast.settings import read_settings
from pathcast.store import Store
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    CODEC,
    PublishRequest,
    RegisterSourceRequest,
    Subscribe,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.carrier_metrics import INBOXES_NAMED_MAX, CarrierWatch
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Disk
from pathcast.transport.grpc_streams import Address
from pathcast.transport.local_processes import free_ports
from pathcast.transport.local_ring import LocalRing
from pathcast.transport.monitor import CONNECTIONS_MAX, Monitor, monitored
from pathcast.transport.registry_process import serving
from pathcast.transport.registry_settings import RegistrySection, RegistrySettings
from pathcast.transport.settings import BrokerSettings
from pathcast_lab.sim.memory_streams import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually, wait_until


class Page(NamedTuple):
    status: int
    text: str


def page(address: str, path: str, seconds: float = PATIENCE_SECONDS) -> Page:
    """A page of a process; status 0 if nobody answers."""
    try:
        answer = httpx.get(f"http://{address}{path}", timeout=seconds)
    except httpx.TransportError as error:
        return Page(0, repr(error))
    return Page(answer.status_code, answer.text)


def is_ready(address: str) -> bool:
    return page(address, "/readyz").status == 200


Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(address: str) -> Values:
    """Every sample, as Prometheus reads it."""
    status, text = page(address, "/metrics")
    assert status == 200, text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(values: Values, name: str, **labels: str) -> float | None:
    return values.get((f"pathcast_{name}", frozenset(labels.items())))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[BrokerProcesses, dict[str, str]]]:
    """Brokers a - b, and where each shows itself."""
    places = {name: f"127.0.0.1:{port}" for name, port in zip("ab", free_ports(2), strict=True)}
    with ExitStack() as stack:
        brokers = BrokerProcesses(tmp_path, "ab", monitored=places)
        stack.callback(brokers.stop)
        yield brokers, places


def client(brokers: BrokerProcesses, name: str) -> BrokerClient:
    address = Address(name, brokers.addresses[name], "tester!", allow_plain=True)
    return BrokerClient("tester", address, CODEC)


async def publish(brokers: BrokerProcesses, places: dict[str, str]) -> None:
    """Somebody at b wants orders; ten messages come in at a, one of them no XML."""
    async with client(brokers, "b") as at_b, client(brokers, "a") as at_a:
        await at_b.ask(
            Subscribe((("s", DeliveryProfile("/order")), ("t", DeliveryProfile("/order["))))
        )
        await eventually(lambda: value(scraped(places["b"]), "inbox_waiting") == 1)
        await at_a.ask(RegisterSourceRequest("shop", SourceEntry()))
        bodies = [b"<order/>"] * 6 + [b"<bill/>"] * 3 + [b"<order>"]
        await at_a.publish(
            [PublishRequest("shop", f"m{at}", body) for at, body in enumerate(bodies)]
        )
        with pytest.raises(PathcastError):
            await at_a.publish([PublishRequest("nobody's", "m", b"<order/>")])


def test_metrics_agree_with_what_was_published(
    pair: tuple[BrokerProcesses, dict[str, str]],
) -> None:
    brokers, places = pair
    wait_until(lambda: page(places["a"], "/readyz") == (200, "ready\n"))
    asyncio.run(publish(brokers, places))
    wait_until(lambda: value(scraped(places["b"]), "inbox_waiting") == 7)
    # Until every member has had what is in it, and has said so.
    wait_until(lambda: value(scraped(places["a"]), "log_messages") == 0)
    a, b = scraped(places["a"]), scraped(places["b"])
    assert value(a, "messages_received_total") == 11
    assert value(a, "messages_taken_bytes_total") == 6 * 8 + 3 * 7
    assert value(a, "refusals_total", code="xml.end") == 1
    assert value(a, "calls_refused_total", code="publication.source") == 1
    assert value(a, "log_behind_messages", member="b") == 0
    assert value(a, "table_entries", tree="") == 1
    assert value(a, "stream_position", root="a") == value(b, "stream_position", root="a")
    assert (value(a, "subscriptions"), value(b, "subscriptions")) == (0, 1)
    assert (value(a, "members"), value(b, "members")) == (2, 2)
    assert value(b, "refusals_total", code="XPST0003") == 1
    assert value(b, "deliveries_total") == 7
    assert value(b, "inbox_waiting_of_subscriber", subscriber="tester") == 7
    assert value(b, "inbox_dropped") == 0
    sent = value(a, "neighbour_sent_bytes_total", neighbour="b", flow="message")
    received = value(b, "neighbour_received_bytes_total", neighbour="a", flow="message")
    assert sent == received
    assert received is not None
    assert received > 6 * 8
    for one in (a, b):
        assert value(one, "neighbour_up", neighbour="b" if one is a else "a") == 1
        assert (value(one, "commit_seconds_count") or 0) > 0
        assert (value(one, "event_loop_lag_seconds_count") or 0) > 0
        assert (value(one, "database_bytes") or 0) > 4096
        assert one[("process_resident_memory_bytes", frozenset())] > 1e6
        assert one[("process_cpu_seconds_total", frozenset())] > 0


def test_a_lost_neighbour_is_named_and_its_way_back_is_counted(
    pair: tuple[BrokerProcesses, dict[str, str]],
) -> None:
    brokers, places = pair
    wait_until(lambda: page(places["a"], "/readyz").status == 200)
    sent = value(scraped(places["a"]), "neighbour_sent_bytes_total", neighbour="b", flow="control")
    brokers.kill("b")
    missing = (503, "link to b: there is no connection\n")
    wait_until(lambda: page(places["a"], "/readyz") == missing)
    assert page(places["a"], "/healthz").status == 200
    assert value(scraped(places["a"]), "neighbour_up", neighbour="b") == 0
    brokers.start("b")
    wait_until(lambda: page(places["a"], "/readyz").status == 200)
    after = scraped(places["a"])
    assert value(after, "neighbour_connections_total", neighbour="b") == 2
    # A counter goes on where the last connection ended.
    again = value(after, "neighbour_sent_bytes_total", neighbour="b", flow="control")
    assert again is not None
    assert sent is not None
    assert again > sent


def test_a_process_that_stands_still_does_not_answer(
    pair: tuple[BrokerProcesses, dict[str, str]],
) -> None:
    brokers, places = pair
    wait_until(lambda: page(places["b"], "/healthz").status == 200)
    process = brokers.processes["b"]
    os.kill(process, signal.SIGSTOP)
    try:
        assert page(places["b"], "/healthz", seconds=0.5).status == 0
    finally:
        os.kill(process, signal.SIGCONT)
    wait_until(lambda: page(places["b"], "/healthz").status == 200)


def free_address() -> str:
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


def test_an_event_loop_that_stands_still_is_unhealthy() -> None:
    address, seen = free_address(), threading.Event()

    def look() -> None:
        wait_until(lambda: page(address, "/healthz").status == 503)
        seen.set()

    async def main() -> None:
        async with monitored(address, Monitor(stall_seconds=0.5)):
            await eventually_page(address, "/healthz", 200)
            looking = asyncio.create_task(asyncio.to_thread(look))
            await asyncio.sleep(0)
            assert seen.wait(PATIENCE_SECONDS)  # nothing else runs in this loop meanwhile
            await looking
            await eventually_page(address, "/healthz", 200)

    asyncio.run(main())


async def eventually_page(address: str, path: str, status: int) -> Page:
    """A page, as soon as it has this status."""
    found = [Page(0, "")]

    async def is_so() -> bool:
        found[0] = await asyncio.to_thread(page, address, path)
        return found[0].status == status

    await eventually(is_so)
    return found[0]


def test_what_holds_a_process_up_is_said() -> None:
    async def main() -> None:
        monitor, address = Monitor(), free_address()
        async with monitored(address, monitor):
            assert "not started" in (await eventually_page(address, "/readyz", 503)).text
            monitor.hold("profiles", "12 of 50 are restored")
            network = MemoryNetwork()
            carrier = Carrier("a", broker_kind("a", ["b"]), Disk(None), network.dial_from("a"))
            network.add(carrier)
            with monitor.watching(CarrierWatch(carrier)):
                text = (await eventually_page(address, "/readyz", 503)).text
                assert text.splitlines() == [
                    "profiles: 12 of 50 are restored",
                    "node: it has not begun yet",
                ]
                await carrier.start()
                monitor.release("profiles")
                # An alarm rings for a neighbour that was never there as well.
                values = await asyncio.to_thread(scraped, address)
                assert value(values, "neighbour_up", neighbour="b") == 0
                assert (await eventually_page(address, "/readyz", 503)).text == (
                    "link to b: there is no connection\n"
                )
                await network.stop()
                # Its disk is closed: nothing that it says would be so.
                assert "stopped" in (await eventually_page(address, "/metrics", 503)).text

    asyncio.run(main())


def test_subscribers_are_named_for_the_fullest_inboxes_only() -> None:
    async def main() -> None:
        disk = Disk(None)
        names = [f"s{number:03d}" for number in range(3 * INBOXES_NAMED_MAX)]
        disk.commit({}, [(n, f"{n} {at}", b"x") for at, n in enumerate(names) for _ in range(2)])
        disk.commit({}, [(n, f"more {at}", b"x") for at, n in enumerate(names[-1:] * 5)])
        network = MemoryNetwork()
        carrier = Carrier("a", broker_kind("a", []), disk, network.dial_from("a"))
        network.add(carrier)
        await carrier.start()
        metrics = {one.name: one for one in await CarrierWatch(carrier).metrics()}
        waiting = metrics["pathcast_inbox_waiting"].samples[0].value
        assert waiting == sum(each.waiting for each in disk.inboxes().values())
        named = metrics["pathcast_inbox_waiting_of_subscriber"].samples
        assert len(named) == INBOXES_NAMED_MAX
        assert named[0].labels == {"subscriber": names[-1]}
        assert metrics["pathcast_inboxes"].samples[0].value == len(names)
        await network.stop()

    asyncio.run(main())


def test_idle_callers_are_few_and_other_paths_are_none() -> None:
    """Callers who say nothing cost a bounded number of threads; the rest is hung up on."""

    async def main() -> None:
        address = free_address()
        async with monitored(address):
            assert (await eventually_page(address, "/", 404)).text.startswith("/metrics, /healthz")
            host, port = address.split(":")
            before = threading.active_count()
            idle = [socket.create_connection((host, int(port))) for _ in range(4 * CONNECTIONS_MAX)]

            def hung_up() -> int:
                closed = 0
                for one in idle:
                    one.setblocking(False)
                    try:
                        closed += one.recv(1) == b""
                    except BlockingIOError:
                        continue
                return closed

            await eventually(lambda: hung_up() >= len(idle) - CONNECTIONS_MAX)
            assert threading.active_count() <= before + CONNECTIONS_MAX + 2
            for one in idle:
                one.close()
            await eventually_page(address, "/healthz", 200)

    asyncio.run(main())


def test_an_address_that_cannot_be_had_is_refused_by_its_key(tmp_path: Path) -> None:
    async def main(address: str) -> None:
        async with monitored(address):
            pytest.fail("two listen at one address")

    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ConfigError, match="metrics: nothing can listen at"),
    ):
        asyncio.run(main(f"127.0.0.1:{taken.getsockname()[1]}"))
    file = tmp_path / "a.toml"
    file.write_text('[broker]\nname = "a"\ndirectory = "a"\nmetrics = "9464"\n')
    with pytest.raises(ConfigError, match=r"broker\.metrics.*HOST:PORT"):
        read_settings(BrokerSettings, file)


def test_peers_show_themselves(tmp_path: Path) -> None:
    ring = LocalRing.write(tmp_path / "ring", 4)
    places = dict(zip(ring.names, (f"127.0.0.1:{port}" for port in free_ports(4)), strict=True))
    for name, place in places.items():
        path = ring.directory / f"{name}.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace("[peer]\n", f'[peer]\nmetrics = "{place}"\n'), encoding="utf-8"
        )
    try:
        ring.start(ring.names, are_new=True)
        for place in places.values():
            wait_until(partial(is_ready, place))
            values = scraped(place)
            assert value(values, "ring_members") == 1
            assert value(values, "subscriptions") == 0
            assert value(values, "publications_under_way") == 0
    finally:
        ring.stop(ring.names)


def test_a_node_of_the_service_shows_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise StoreError("store.absent", url="db")

    async def main() -> None:
        address, monitor = free_address(), Monitor()
        store = str(tmp_path / "profiles")
        section = RegistrySection(name="r1", store=store, lease_seconds=3.0)
        async with (
            monitored(address, monitor),
            serving(RegistrySettings(registry=section), monitor, is_new=True),
        ):
            await eventually_page(address, "/readyz", 200)
            values = await asyncio.to_thread(scraped, address)
            assert value(values, "registry_leader") == 1
            assert value(values, "registry_profiles") == 0
            monkeypatch.setattr(Store, "take", unreachable)
            text = (await eventually_page(address, "/readyz", 503)).text
            assert text.startswith("profile database: ")

    asyncio.run(main())

"""The registration service and brokers as processes: `kill -9` of either, and who takes over.

If these fail, somebody who was told that a profile is registered misses messages when a process
dies, gets one twice, or is told by two processes that each is his host.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from typer.testing import CliRunner

from pathcast.cli.app import build_app
from pathcast.errors import (
    ConfigError,
    DiskError,
    PeerRefusedError,
    PublicationError,
    RegistrationError,
    UnavailableError,
)
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import Dropped, InboxDelivery
from pathcast.overlay.hosting import version_of
from pathcast.overlay.placing import PlacementSettings
from pathcast.overlay.registration_messages import RegisterInterest, RegisterSource, TellHost
from pathcast.settings import read_settings
from pathcast.store import BrokerRecord
from pathcast.store import ProfileRecord as Registered
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import CODEC, DELIVERIES, PublishRequest, Subscribe
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Disk
from pathcast.transport.grpc_streams import Address
from pathcast.transport.hosted import run_hosted_broker
from pathcast.transport.local_processes import free_ports
from pathcast.transport.process import operator_of
from pathcast.transport.registration import Callers
from pathcast.transport.registration_client import RegistrationClient
from pathcast.transport.registry_settings import RegistrySettings
from pathcast.transport.settings import BrokerSettings
from patience import PATIENCE_SECONDS, eventually
from postgresql_server import PostgresqlServer, SilentNetwork, is_installed
from registration_processes import SERVICE, RegistrationProcesses, order, orders

PLAIN, SECURED = "SQLite, plain text", "PostgreSQL, certificates"
CAN_BE_SECURED = is_installed() and find_spec("trustme") is not None
# One of the two always runs.
FLAVOURS = [pytest.param(PLAIN, marks=[pytest.mark.nightly] * CAN_BE_SECURED), SECURED]


@pytest.fixture
def processes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RegistrationProcesses]:
    """Of one of the flavours; the plain one when a test does not say."""
    if getattr(request, "param", PLAIN) == PLAIN:
        found = RegistrationProcesses(tmp_path, "profiles.db")
    else:
        trustme = pytest.importorskip("trustme")
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        found = RegistrationProcesses(tmp_path, server.database(), trustme.CA())
    with found.open_store():
        pass
    yield found
    found.stop()


async def gather(client: RegistrationClient, profile: str, got: list[str], count: int) -> None:
    async for told in client.deliveries(profile):
        if isinstance(told, InboxDelivery) and told.subscription == profile:
            got.append(told.message)
            await client.acknowledge(profile)
            if len(got) >= count:
                return


async def strangers_are_refused(
    processes: RegistrationProcesses, ann: RegistrationClient, shop: RegistrationClient
) -> None:
    """Of what is registered, nobody changes what is not his; each refusal is typed."""
    made = await ann.register_interest("//nothing", location="eu/b")
    source = await shop.register_source("eu/b")
    with pytest.raises(RegistrationError, match="XPST0003"):
        await ann.register_interest("//[")
    with pytest.raises(RegistrationError, match=r"registration\.unknown"):
        await _changed_by_a_stranger(processes, made.profile)
    shown = processes.certificates
    b = processes.address("b", "hers", shown.get("ann"))
    async with BrokerClient("ann", b, CODEC) as client:
        with pytest.raises(RegistrationError) as refused:
            await client.ask(Subscribe((("s", DeliveryProfile("//a")),)))
        assert refused.value.code == "registration.service"
        with pytest.raises(PeerRefusedError):
            await client.publish([PublishRequest(source.source, "m", b"<a/>")])
    of_bob = processes.address("b", shown=shown.get("bob"))
    async with BrokerClient("bob", of_bob, CODEC) as client:
        with pytest.raises(PublicationError):
            await client.publish([PublishRequest(source.source, "m", b"<a/>")])
    profile = Registered("p-forged", "ann", "//x", host="b")
    for forbidden in (TellHost(profile), RegisterSource("1", "", "", 1.0, 1.0)):
        with pytest.raises(PeerRefusedError):
            await called("ann", b, forbidden)
    async with processes.client("ann") as without_token:
        with pytest.raises(PeerRefusedError):
            await without_token.register_interest("//a")
    if shown:
        await certificates_of_others_are_refused(processes)


async def certificates_of_others_are_refused(processes: RegistrationProcesses) -> None:
    """A token is not enough, nor a certificate of somebody else, at the service and at a broker."""
    shown = processes.certificates
    asked = RegisterInterest("1", "ann", "//a")
    told = TellHost(Registered("p-forged", "ann", "//x", host="b"))
    calls = [
        ("ann", "hers", "bob", processes.leader(), asked),
        ("r1", "of the service", "ann", "b", told),
        ("r1", "of the service", "bob", "a", told),
    ]
    for name, token, shown_as, process, message in calls:
        with pytest.raises(PeerRefusedError) as refused:
            await called(name, processes.address(process, token, shown[shown_as]), message)
        assert refused.value.code == "peer.certificate"
    with pytest.raises(UnavailableError):
        await called("ann", processes.address(processes.leader(), "hers"), asked)


async def called(name: str, address: Address, message: object) -> object:
    callers = Callers(name, lambda target: address)
    try:
        return await callers.call(address.target, message)
    finally:
        await callers.close()


@pytest.mark.parametrize("processes", FLAVOURS, indirect=True)
def test_kill_9_of_a_broker_and_of_the_service_loses_nothing(
    processes: RegistrationProcesses,
) -> None:
    async def main() -> None:
        processes.start("r1", "r2", "a", "b")
        await processes.are_played(a="a", b="b")
        processes.start("backup")
        async with processes.client("shop") as shop, processes.client("ann", "hers") as ann:
            source = await shop.register_source("eu/a", "<!ELEMENT order ANY>")
            first = await ann.register_interest("/order[to = 'Bern']", location="eu/b")
            assert (source.root, first.host) == ("a", "b")
            await strangers_are_refused(processes, ann, shop)
            await the_example_of_the_documentation_runs(processes)
            got: list[str] = []
            gathering = asyncio.create_task(gather(ann, first.profile, got, 60))
            for start in range(0, 120, 10):
                if start == 30:
                    processes.kill("b")
                if start == 60:
                    leader = await asyncio.to_thread(processes.leader)
                    processes.kill(leader)
                await shop.publish(
                    source.source, orders(range(start, start + 10)), PATIENCE_SECONDS
                )
            await asyncio.wait_for(gathering, PATIENCE_SECONDS)
            assert got == [f"m{number}" for number in range(0, 120, 2)]
            await processes.are_played(a="a", b="backup")
            async with operator_of(processes.directory / "a", CODEC) as operator:
                formats = (await operator.status())["node"]["formats"]
            assert formats["b"]["format"] == "zstd"
            # The service that is left gives profiles to the process that plays the host now.
            second = await ann.register_interest(
                "//number[. = 999]", deliver="ids", location="eu/b", steps=["rename //no number"]
            )
            assert second.address == processes.address("backup").target
            await ann.change_interest(first.profile, "/order[to = 'Basel']")
            await ann.delete_interest(first.profile)
            await shop.publish(
                source.source, [("other", order(1)[1]), ("last", order(999)[1])], PATIENCE_SECONDS
            )
            got = []
            await asyncio.wait_for(gather(ann, second.profile, got, 1), PATIENCE_SECONDS)
            assert got == ["last"]

    asyncio.run(main())


def test_profiles_move_under_load_while_processes_are_killed(
    processes: RegistrationProcesses,
) -> None:
    """16 profiles are registered near one broker and go to where their values are, under load.

    Meanwhile the leading node of the service and then a broker are killed; the operator has them
    placed anew; each subscriber has each message that concerns it once, in order.
    """
    towns = ["Bern", "Chur", "Genf", "Jona", "Olten", "Thun", "Visp", "Zug"]
    names = processes.place_by_content(16)

    def message(number: int) -> tuple[str, bytes]:
        return f"m{number}", f"<order><to>{towns[number % 8]}</to></order>".encode()

    async def read(client: RegistrationClient, profile: str, had: list[str]) -> None:
        async for told in client.deliveries(profile):
            if isinstance(told, InboxDelivery):
                had.append(told.message)
            await client.acknowledge(profile)

    async def main() -> None:
        processes.start("r1", "r2", "a", "b")
        await processes.are_played(a="a", b="b")
        async with contextlib.AsyncExitStack() as stack:
            shop = await stack.enter_async_context(processes.client("shop"))
            source = await shop.register_source("eu/a")
            clients = [await stack.enter_async_context(processes.client(name)) for name in names]
            got: list[list[str]] = [[] for _ in clients]
            at = 0

            async def publish() -> None:
                nonlocal at
                some = [message(number) for number in range(at, at + 8)]
                await shop.publish(source.source, some, PATIENCE_SECONDS)
                at += 8

            readers, since, made = [], [], []
            for number, client in enumerate(clients):
                text = f"/order[to = '{towns[number % 8]}']"
                made.append(await client.register_interest(text, location="eu/a"))
                since.append(at)
                reading = read(client, made[-1].profile, got[number])
                readers.append(asyncio.create_task(reading))
                await publish()
            leader = await asyncio.to_thread(processes.leader)
            processes.kill(leader)
            for broker in ("b", "a"):
                while not await asyncio.to_thread(processes.hosts_some, "b"):
                    await publish()
                processes.kill(broker)
                await asyncio.sleep(0.5)
                processes.start(broker)
                await processes.are_played(a="a", b="b")
                await publish()
            while await asyncio.to_thread(processes.are_moving):
                await publish()
            await publish()
            wanted = [
                [f"m{n}" for n in range(first, at) if n % 8 == number % 8]
                for number, first in enumerate(since)
            ]
            await eventually(lambda: all(map(lambda a, b: len(a) >= len(b), got, wanted)))
            for task in readers:
                task.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            assert got == wanted
            assert {one.host for one in made} == {"a"}

    asyncio.run(main())
    with processes.open_store() as store:
        hosts = [each.host for each in store.state(Registered)[1]]
    assert (hosts.count("a"), hosts.count("b")) == (8, 8)
    status = registry_status(processes)
    assert [each["pattern"] for each in status["patterns"]] == ["/order/to/."]
    assert (status["partitions"], status["unplaced"], status["moving"]) == (8, 0.0, 0)
    assert (status["touched"], status["visited"], status["drift"]) == (1.0, 0.125, 0.0)
    given = [part for each in status["brokers"].values() for part in each["partitions"]]
    assert sorted(given) == list(range(8))


@pytest.mark.parametrize("is_full", [True, False])
def test_a_connected_reader_that_acknowledges_late_goes_to_the_new_host(
    processes: RegistrationProcesses, is_full: bool
) -> None:
    """A full inbox has dropped both deliveries and the notice; or it has read all of both hosts."""
    if is_full:
        processes.set("a", "broker", "inbox_deliveries_max = 4")
    made: Any = None
    seen: list[object] = []
    may_acknowledge = asyncio.Event()

    def record() -> Registered:
        with processes.open_store() as store:
            found = store.get(Registered, made.profile)
        assert found is not None
        return found

    async def read(ann: RegistrationClient) -> None:
        async for told in ann.deliveries(made.profile):
            seen.append(told)
            if any(isinstance(each, Dropped) for each in seen):
                await may_acknowledge.wait()
                await ann.acknowledge(made.profile)

    def had() -> list[str]:
        return [each.message for each in seen if isinstance(each, InboxDelivery)]

    async def main() -> None:
        nonlocal made
        processes.start("r1", "a", "b")
        await processes.are_played(a="a", b="b")
        async with processes.client("shop") as shop, processes.client("ann", "hers") as ann:
            source = await shop.register_source("eu/b")
            made = await ann.register_interest("/order[to = 'Bern']", location="eu/a")
            assert made.host == "a"
            reading = asyncio.create_task(read(ann))
            await shop.publish(source.source, orders(range(20)), PATIENCE_SECONDS)
            if is_full:
                await eventually(lambda: any(isinstance(each, Dropped) for each in seen))
            with processes.open_store() as store:
                store.write([replace(record(), host="b", former="a", pending=True)])
            await eventually(lambda: not record().pending)
            async with operator_of(processes.directory / "a", CODEC) as operator:

                async def has_left() -> bool:
                    inbox = (await operator.status())["inboxes"]["ann"]
                    return bool(inbox["dropped"] + inbox["waiting"] == 12)

                await eventually(has_left)
            may_acknowledge.set()
            await shop.publish(source.source, orders(range(20, 30)), PATIENCE_SECONDS)
            await eventually(lambda: "m28" in had())
            assert [name for name in had() if int(name[1:]) >= 20] == [
                f"m{number}" for number in range(20, 30, 2)
            ]
            assert is_full or had() == [f"m{number}" for number in range(0, 30, 2)]
            await ann.acknowledge(made.profile)
            await eventually(lambda: not record().former)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    asyncio.run(main())


class InboxesOfBothHosts:
    """Everything that ten users get at two brokers, acknowledged as it comes.

    Attributes:
        given: Broker and profile -> place in the stream of a root, and message, in order.
    """

    def __init__(self, processes: RegistrationProcesses, users: Sequence[str]) -> None:
        self._processes = processes
        self.given: dict[tuple[str, str], list[tuple[tuple[str, int], int, str]]] = {}
        reading = [self._read(user, broker) for user in users for broker in "ab"]
        self.tasks = [asyncio.create_task(each) for each in reading]

    async def _read(self, user: str, broker: str) -> None:
        while True:
            with contextlib.suppress(UnavailableError):
                address = self._processes.address(broker)
                async with BrokerClient(user, address, CODEC) as client:
                    async for group in client.deliveries(user):
                        for each in group:
                            told = DELIVERIES.decode(each.body)
                            if isinstance(told, InboxDelivery):
                                had = self.given.setdefault((broker, told.subscription), [])
                                at = (told.root, told.stream), told.position, told.message
                                had.append(at)
                        await client.acknowledge(group[-1].position)
            await asyncio.sleep(0.1)

    def had(self, profile: str) -> list[str]:
        """Messages of a profile, at the former host and then, behind those, at the new one."""
        last: dict[tuple[str, int], int] = {}
        found = []
        for broker in "ab":
            for stream, position, message in self.given.get((broker, profile), ()):
                if position > last.get(stream, 0):
                    last[stream] = position
                    found.append(message)
        return found


@pytest.mark.nightly
@pytest.mark.parametrize("count", [400, 4_000])
def test_half_of_all_profiles_move_under_load_and_nothing_is_lost_or_doubled(
    processes: RegistrationProcesses, count: int
) -> None:
    """All are at broker a when the service begins to place them by content."""
    users = processes.place_by_content(10)
    processes.lease(60.0)
    values = count // 10
    profiles = [
        Registered(
            f"p-{n:06}",
            users[n % 10],
            f"/order[to = '{n % values}']",
            "ids",
            host="a",
            address=users[n % 10],
        )
        for n in range(count)
    ]
    with processes.open_store() as store:
        for start in range(0, count, 1000):
            store.write(profiles[start : start + 1000])

    def are_moving() -> bool:
        with processes.open_store() as store:
            kept = store.state(Registered)[1]
            given = store.state(BrokerRecord)[1]
        moved = sum(each.host == "b" for each in kept)
        # Partitions are given evenly, by what they hold.
        return (
            moved < 0.4 * len(kept)
            or any(each.former or each.pending for each in kept)
            or (not all(each.partitions for each in given))
        )

    async def main() -> None:
        processes.start("a", "b")
        await processes.are_played(a="a", b="b")
        inboxes = InboxesOfBothHosts(processes, users)
        processes.start("r1")
        async with processes.client("shop") as shop:
            source = await shop.register_source("eu/a", seconds=PATIENCE_SECONDS)
            at = 0

            async def publish(messages: int) -> None:
                nonlocal at
                numbers = range(at, at + messages)
                some = [
                    (f"m{n}", f"<order><to>{n % values}</to></order>".encode()) for n in numbers
                ]
                await shop.publish(source.source, some, PATIENCE_SECONDS)
                at += messages

            while await asyncio.to_thread(are_moving):
                await publish(values // 4)
            for _ in range(8):
                await publish(values // 4)

            def are_all_there() -> bool:
                return sum(map(len, map(inboxes.had, names))) >= at * count // values

            names = [each.id for each in profiles]
            await eventually(are_all_there)
        for task in inboxes.tasks:
            task.cancel()
        await asyncio.gather(*inboxes.tasks, return_exceptions=True)
        for number, name in enumerate(names):
            assert inboxes.had(name) == [f"m{n}" for n in range(number % values, at, values)]

    asyncio.run(main())


def registry_status(processes: RegistrationProcesses) -> dict[str, Any]:
    """What `pathcast registry status` says; nothing while there is no placement."""
    database = str(processes.directory / processes.store)
    told = CliRunner().invoke(build_app(), ["registry", "status", database])
    assert told.exit_code == 0
    found: dict[str, Any] = json.loads(told.stdout) if told.stdout.startswith("{") else {}
    return found


def test_a_placement_is_made_by_schemas_and_then_by_the_samples_that_roots_keep(
    processes: RegistrationProcesses,
) -> None:
    """The schema has a recipient once and lines any number of times; messages have one or none.

    By the schema alone profiles are placed by recipient: a message visits half of them. The sample
    shows that by line it visits a sixteenth; that is done when the operator asks for it.
    """
    schema = (
        "<!ELEMENT order (to, line*)><!ELEMENT to (#PCDATA)>"
        "<!ELEMENT line EMPTY><!ATTLIST line sku CDATA #REQUIRED>"
    )
    names = processes.place_by_content(16)
    processes.set("r1", "hosts", "drift_max = 1")
    for broker in ("a", "b"):
        processes.set(broker, "registration", "sample_seconds = 0.2")

    def patterns() -> list[str]:
        return [each["pattern"] for each in registry_status(processes).get("patterns", [])]

    async def main() -> None:
        processes.start("r1", "a", "b")
        await processes.are_played(a="a", b="b")
        async with contextlib.AsyncExitStack() as stack:
            shop = await stack.enter_async_context(processes.client("shop"))
            source = await shop.register_source("eu/a", schema)
            for number, name in enumerate(names):
                client = await stack.enter_async_context(processes.client(name))
                text = f"/order[to = 'town{number % 2}']/line[@sku = 's{number // 2}']"
                await client.register_interest(text, location="eu/a")
            await eventually(lambda: patterns() == ["/order/to/."])
            status = registry_status(processes)
            assert (status["visited"], status["measured_on"]["messages"]) == (0.5, 0)
            lines = [f"<line sku='s{n % 8}'/>" if n % 2 else "" for n in range(40)]
            messages = [
                (f"m{n}", f"<order><to>town{n // 2 % 2}</to>{line}</order>".encode())
                for n, line in enumerate(lines)
            ]
            await shop.publish(source.source, messages, PATIENCE_SECONDS)
            await eventually(lambda: registry_status(processes)["measured_on"]["messages"] == 32)
            status = registry_status(processes)
            assert status["visited"] == 0.5
            assert status["drift"] > 0.4
            assert patterns() == ["/order/to/."]
            database = str(processes.directory / processes.store)
            asked = CliRunner().invoke(build_app(), ["registry", "place", database])
            assert asked.exit_code == 0
            await eventually(lambda: patterns() == ["/order/line/@sku"])
            status = registry_status(processes)
            assert status["drift"] == 0
            assert status["visited"] == status["touched"] / 8 < 0.1

    asyncio.run(main())


@pytest.mark.nightly
@pytest.mark.parametrize("processes", [SECURED], indirect=True)
def test_a_broker_that_stands_still_is_taken_over_from_and_says_nothing_later(
    processes: RegistrationProcesses,
) -> None:
    """SIGSTOP of the host: the backup goes on with what it had, and SIGCONT brings no double."""

    async def main() -> None:
        processes.start("r1", "a", "b")
        await processes.are_played(a="a", b="b")
        processes.start("backup")
        async with processes.client("shop") as shop, processes.client("ann", "hers") as ann:
            source = await shop.register_source("eu/a", "<!ELEMENT order ANY>")
            first = await ann.register_interest("/order[to = 'Bern']", location="eu/b")
            got: list[str] = []
            gathering = asyncio.create_task(gather(ann, first.profile, got, 60))
            for start in range(0, 120, 10):
                if start == 30:
                    processes.running["b"].send_signal(signal.SIGSTOP)
                if start == 60:
                    await processes.are_played(b="backup")
                if start == 90:
                    processes.running["b"].send_signal(signal.SIGCONT)
                await shop.publish(
                    source.source, orders(range(start, start + 10)), PATIENCE_SECONDS
                )
            await asyncio.wait_for(gathering, PATIENCE_SECONDS)
            assert got == [f"m{number}" for number in range(0, 120, 2)]
            log = processes.directory / "b.log"
            await eventually(lambda: "b is not played at" in log.read_text())
            assert processes.running["b"].poll() is None
            # Roles change once more: what the copy had is there.
            processes.kill("backup")
            await processes.are_played(b="b")
            await shop.publish(source.source, orders(range(120, 124)), PATIENCE_SECONDS)
            # Acknowledgements of the last moment may be lost with their connection.
            got = []
            gathering = asyncio.create_task(gather(ann, first.profile, got, 10**6))
            await eventually(lambda: "m122" in got)
            gathering.cancel()
            await asyncio.gather(gathering, return_exceptions=True)
            wanted = [f"m{number}" for number in range(0, 124, 2)]
            assert got == wanted[-len(got) :]

    asyncio.run(main())


async def the_example_of_the_documentation_runs(processes: RegistrationProcesses) -> None:
    text = (Path(__file__).parent.parent / "docs/brokers.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (example,) = (each for each in examples if "first_delivery" in each)
    names: dict[str, Any] = {}
    exec(example, names)
    shown = processes.certificates.get("bob")
    service = [processes.address(each, shown=shown) for each in SERVICE]
    broker = Address("", "", certificates=shown)
    assert await names["first_delivery"]("bob", service, broker) == "order-1"


async def _changed_by_a_stranger(processes: RegistrationProcesses, profile: str) -> None:
    async with processes.client("bob") as bob:
        bob._places[profile] = ("b", processes.address("b").target)
        await bob.delete_interest(profile)


def test_a_broker_ends_its_work_when_the_database_says_nothing_any_more(
    tmp_path: Path, postgresql: PostgresqlServer
) -> None:
    """Not even that it is gone: the connection stays, and nothing comes."""
    postgresql.database()
    network = SilentNetwork(postgresql)
    (tmp_path / "b.toml").write_text(
        f'[broker]\nname = "b"\ndirectory = "b"\nlisten = "127.0.0.1:{free_ports(1)[0]}"\n'
        f'[registration]\nstore = "{network.url}"\nnodes = ["r1"]\nlease_seconds = 0.6\n'
    )
    settings = read_settings(BrokerSettings, tmp_path / "b.toml")
    begun: list[str] = []

    async def has_begun(times: int) -> bool:
        return len(begun) >= times

    async def directory_is_free() -> bool:
        with contextlib.suppress(DiskError), contextlib.closing(Disk(settings.broker.directory)):
            return True
        return False

    async def main() -> None:
        running = asyncio.create_task(
            run_hosted_broker(settings, broker_kind("b", []), begun.append, is_new=True)
        )
        try:
            await eventually(lambda: has_begun(1))
            network.carries.clear()
            await eventually(directory_is_free)
            network.carries.set()
            await eventually(lambda: has_begun(2))
            signal.raise_signal(signal.SIGTERM)
            await running
        finally:
            network.stop()

    asyncio.run(main())


def test_commands_describe_show_and_move(processes: RegistrationProcesses) -> None:
    runner, app = CliRunner(), build_app()
    told = runner.invoke(app, ["registry", "run", "--describe"])
    assert told.exit_code == 0
    assert "[registry]" in told.stdout
    assert "  lease_seconds  (" in told.stdout
    assert "[registration]" in runner.invoke(app, ["broker", "run", "--describe"]).stdout
    with processes.open_store() as store:
        store.write([BrokerRecord("b", "10.0.0.1:7400", "eu/b", 1e6, 10)])
    database = str(processes.directory / processes.store)
    assert "b: active, 10.0.0.1:7400" in runner.invoke(app, ["registry", "ls", database]).stdout
    assert runner.invoke(app, ["registry", "gone", database, "b"]).exit_code == 0
    assert "b: gone" in runner.invoke(app, ["registry", "ls", database]).stdout
    assert runner.invoke(app, ["registry", "gone", database, "b", "--back"]).exit_code == 0
    assert "b: active" in runner.invoke(app, ["registry", "ls", database]).stdout
    assert runner.invoke(app, ["registry", "gone", database, "nobody"]).exit_code != 0


def test_settings_that_cannot_work_are_refused(processes: RegistrationProcesses) -> None:
    settings = read_settings(
        BrokerSettings, processes.directory / "b.toml", ["broker.listen=127.0.0.1:0"]
    )
    with pytest.raises(ConfigError, match=r"registration\.address"):
        asyncio.run(run_hosted_broker(settings, broker_kind("b", ["a"])))
    for seconds in ("1e-9", "0.09"):
        changed = [f"registration.sample_seconds={seconds}"]
        with pytest.raises(ConfigError, match=r"registration\.sample_seconds.* at least 0\.1"):
            read_settings(BrokerSettings, processes.directory / "b.toml", changed)
    for seconds in ("0", "0.1"):
        changed = [f"registration.sample_seconds={seconds}"]
        read_settings(BrokerSettings, processes.directory / "b.toml", changed)
    file = processes.directory / "r1.toml"
    with pytest.raises(ConfigError, match="queries"):
        read_settings(RegistrySettings, file, ["hosts.queries=queries.tsv"])
    with pytest.raises(ConfigError, match=r"registry\.listen: 'nowhere' is not HOST:PORT"):
        read_settings(RegistrySettings, file, ["registry.listen=nowhere"])
    doubled = processes.directory / "doubled.toml"
    doubled.write_text(file.read_text() + '[[clients]]\nname = "ann"\n')
    with pytest.raises(ConfigError, match="ann: two have this name"):
        read_settings(RegistrySettings, doubled)
    read = read_settings(RegistrySettings, file, ["hosts.choice=content", "hosts.partitions=4"])
    assert read.hosts.placing == PlacementSettings(partitions=4)
    assert read_settings(RegistrySettings, file).hosts.placing is None


def test_version_of_a_profile_is_that_of_what_it_asks_for() -> None:
    profile = Registered("p", "ann", "//a", labels={"tier": "gold"}, host="b", pending=True)
    relabelled = replace(profile, labels={}, pending=False, version=9)
    assert version_of(profile) == version_of(relabelled) < 2**53
    for field, value in (("query", "//b"), ("deliver", "ids"), ("address", "bob")):
        assert version_of(replace(profile, **{field: value})) != version_of(profile)

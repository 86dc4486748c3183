"""`pathcast-lab demo registry`: placement by content, and what it saves on each link."""

from __future__ import annotations

import asyncio
import contextlib
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pathcast.cli.console import answers, say
from pathcast.cli.exits import ExitCode
from pathcast.model import Subscription
from pathcast.overlay.deliveries import InboxDelivery
from pathcast.overlay.host_choice import ByContent
from pathcast.overlay.placing import profiles_population, read_placement
from pathcast.overlay.registry_view import RegistryView
from pathcast.overlay.trees import towards
from pathcast.registry import Registry
from pathcast.store import ProfileRecord, Store
from pathcast.transport.broker_requests import DELIVERIES
from pathcast.transport.client import followed
from pathcast.transport.grpc_streams import Address
from pathcast.transport.local_processes import STOP_SECONDS, free_ports
from pathcast.transport.network import LocalNetwork
from pathcast.transport.registration_client import RegistrationClient
from pathcast_lab.demos.running import (
    demo_network,
    is_as_expected,
    running_anew,
    until,
    until_ended,
)

BROKERS: Final = ("b1", "b2", "b3", "b4", "b5")
ROOTS: Final = ("b1", "b4")
TOPOLOGY = """\
# What `pathcast-lab demo registry` ran: five brokers in a ring with one dear link, a user at each.
[network]
directory = "network"
links = [["b1", "b2"], ["b2", "b3"], ["b3", "b4"], ["b4", "b5"], ["b1", "b5", 40]]
clients = ["shop", "user-b1", "user-b2", "user-b3", "user-b4", "user-b5"]
"""
SCHEMA = (
    "<!ELEMENT order (to, line*)><!ELEMENT to (#PCDATA)>"
    "<!ELEMENT line (#PCDATA)><!ATTLIST line sku CDATA #REQUIRED>"
)
TOWNS: Final = 50
LINES: Final = 40
BY_CONTENT = '[hosts]\nchoice = "content"\npartitions = 50\nreview_seconds = 1\n'

Edge = tuple[str, str]


@dataclass
class LinkBytes:
    """Bytes of messages over each link of the tree.

    Attributes:
        sent: By the brokers.
        ideal: If each message goes over the links behind which it is delivered, and over no other.
        flooded: If each message goes over every link.
    """

    sent: Counter[Edge] = field(default_factory=Counter)
    ideal: Counter[Edge] = field(default_factory=Counter)
    flooded: Counter[Edge] = field(default_factory=Counter)


@dataclass
class _Message:
    id: str
    root: str
    body: bytes


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIRECTORY", help="Files of the network; replaced.")
    ] = Path("demo-registry"),
    profiles: Annotated[int, typer.Option(min=5, help="Profiles of each of five users.")] = 30,
    messages: Annotated[int, typer.Option(min=40, help="Messages, twice.")] = 400,
    seed: Annotated[int, typer.Option(help="The same seed gives the same input.")] = 0,
) -> ExitCode:
    """Show the registration service: bytes on links before and after profiles are placed.

    Five brokers, two sources with a schema, a user at each broker. First a
    profile is hosted near its user, then where the profiles are that ask for the
    same. Every delivery is compared with those of one process.
    """
    started = time.monotonic()
    network = demo_network(out, TOPOLOGY)
    service = _Service(out.resolve())
    for name in network.names:
        with (network.directory / f"{name}.toml").open("a") as file:
            file.write(service.section(name))
    with Store.open(service.database) as store, service.running(), running_anew(network):
        say(f"{len(network.names)} brokers and the registration service run")
        run = _Run(network, service, store, profiles, messages, random.Random(seed))
        before, after = asyncio.run(run.all())
    is_well = is_as_expected("deliveries", run.given, run.expected)
    _print_links(before, after)
    say(f"{time.monotonic() - started:.0f} s in all")
    return ExitCode.OK if is_well else ExitCode.REFUSED


def _print_links(before: LinkBytes, after: LinkBytes) -> None:
    """A table of the links, and how far from the ideal the whole is."""
    out = answers()
    out.print("kB of messages    hosts by location           hosts by content")
    out.print("link             sent   ideal flooding        sent   ideal flooding")
    for edge in sorted(before.flooded):
        row = [
            count[edge] / 1000
            for each in (before, after)
            for count in (each.sent, each.ideal, each.flooded)
        ]
        out.print(
            f"{edge[0]} - {edge[1]}     {row[0]:8.0f}{row[1]:8.0f}{row[2]:9.0f}"
            f"    {row[3]:8.0f}{row[4]:8.0f}{row[5]:9.0f}"
        )
    for what, each in (("location", before), ("content", after)):
        sent, ideal = each.sent.total(), each.ideal.total()
        out.print(
            f"hosts by {what}: {sent / 1e6:.2f} MB sent, {sent / max(1, ideal):.2f} times the "
            f"ideal, {sent / each.flooded.total():.2f} times flooding"
        )


class _Service:
    """The process of the registration service."""

    def __init__(self, out: Path) -> None:
        self.database = out / "profiles.db"
        self._file = out / "registry.toml"
        self._log = out / "registry.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.target = f"127.0.0.1:{free_ports(1)[0]}"
        users = "".join(
            f'[[clients]]\nname = "{each}"\n' for each in ("shop", *map(_user, BROKERS))
        )
        self._file.write_text(
            f'[registry]\nname = "registry"\nstore = "{self.database}"\n'
            f'listen = "{self.target}"\n{users}',
            encoding="utf-8",
        )

    def section(self, broker: str) -> str:
        """The section that a broker's file has besides."""
        return (
            f'[registration]\nstore = "{self.database}"\nnodes = ["registry"]\n'
            f'location = "eu/{broker}"\nsample_seconds = 1\n'
        )

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """It runs meanwhile."""
        self._start()
        try:
            yield
        finally:
            self._stop()

    def place_by_content(self) -> None:
        """It ends, and begins anew with other settings; blocks until it has ended."""
        self._stop()
        with self._file.open("a", encoding="utf-8") as file:
            file.write(BY_CONTENT)
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "pathcast", "registry", "run", str(self._file)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def _stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _user(broker: str) -> str:
    return f"user-{broker}"


class _Run:
    """Sources, users, messages, and what came of them."""

    def __init__(
        self,
        network: LocalNetwork,
        service: _Service,
        store: Store,
        profiles: int,
        messages: int,
        draw: random.Random,
    ) -> None:
        self._network = network
        self._service = service
        self._store = store
        self._profiles = profiles
        self._messages = messages
        self._draw = draw
        self._asked: list[Subscription] = []
        self._sources: dict[str, str] = {}
        # Deliveries of both hosts of a profile have the same place in the stream of a root.
        self._places: set[tuple[str, str, int, int]] = set()
        self.given: Counter[tuple[str, str]] = Counter()
        self.expected: set[tuple[str, str]] = set()

    async def all(self) -> tuple[LinkBytes, LinkBytes]:
        """Bytes before and after."""
        readers = [asyncio.create_task(self._read(user, at)) for user in BROKERS for at in BROKERS]
        async with contextlib.AsyncExitStack() as stack:
            shop = await stack.enter_async_context(self._client("shop"))
            for root in ROOTS:
                made = await shop.register_source(f"eu/{root}", SCHEMA)
                self._sources[made.root] = made.source
            await asyncio.gather(*(self._register(broker) for broker in BROKERS))
            say(f"{len(self._asked)} profiles in force, each hosted near its user")
            before = await self._publish(shop, "before")
            await asyncio.to_thread(self._service.place_by_content)

            await until(self._have_moved)
            say("profiles have moved to where those are that ask for the same")
            after = await self._publish(shop, "after")
        await until_ended(readers)
        return before, after

    def _have_moved(self) -> bool:
        """Whether there is a placement, and every profile is where it says."""
        view = RegistryView()
        view.follow(self._store)
        if view.placement is None or not view.placement.content or view.pending or view.formers:
            return False
        profiles = self._store.state(ProfileRecord)[1]
        population = profiles_population(each.subscription() for each in profiles)
        choice = ByContent(read_placement(view.placement.content))
        return not choice.homes(population, view.hosts, view.brokers, view.hosted)

    def _client(self, name: str) -> RegistrationClient:
        return RegistrationClient(
            name, [Address("registry", self._service.target)], Address("", "")
        )

    async def _register(self, broker: str) -> None:
        """Half of a user's profiles are for towns of its region, the others for any."""
        own = range(BROKERS.index(broker), TOWNS, len(BROKERS))
        async with self._client(_user(broker)) as client:
            for number in range(self._profiles):
                town = self._draw.choice(own if number % 2 else range(TOWNS))
                query = f"/order[to = 'town{town}']"
                made = await client.register_interest(
                    query, deliver="message", location=f"eu/{broker}"
                )
                self._asked.append(Subscription(made.profile, _user(broker), query, "message"))

    async def _read(self, user: str, at: str) -> None:
        async for group in followed(lambda: self._network.client(at, _user(user)), _user(user)):
            for each in group:
                told = DELIVERIES.decode(each.body)
                if isinstance(told, InboxDelivery):
                    self._take(told)

    def _take(self, told: Any) -> None:
        place = told.subscription, told.root, told.stream, told.position
        if place not in self._places:
            self._places.add(place)
            self.given[told.subscription, told.message] += 1

    async def _publish(self, shop: RegistrationClient, phase: str) -> LinkBytes:
        """Messages of all sources; bytes when all that they have to be delivered is."""
        stream = [self._message(phase, number) for number in range(self._messages)]
        registry = Registry()
        registry.add(self._asked)
        batch = registry.deliver([each.body for each in stream])
        numbers, names = batch.numbers, batch.subscription_ids
        rows, places = numbers["row"].to_pylist(), numbers["subscription"].to_pylist()
        wanted: dict[str, list[str]] = defaultdict(list)
        for row, place in zip(rows, places, strict=True):
            wanted[stream[row].id].append(names[place])
            self.expected.add((names[place], stream[row].id))
        begun = await self._sent()
        for root, source in self._sources.items():
            mine = [(each.id, each.body) for each in stream if each.root == root]
            await shop.publish(source, mine)
        await until(lambda: len(self.given) >= len(self.expected))
        # What nobody waits for any more goes over links all the same.
        await asyncio.sleep(1.0)
        ended = await self._sent()
        return await self._links(stream, wanted, ended - begun)

    def _message(self, phase: str, number: int) -> _Message:
        draw = self._draw
        lines = "".join(
            f'<line sku="{draw.randrange(10**6)}">{draw.randrange(100)} pieces</line>'
            for _ in range(LINES)
        )
        body = f"<order><to>town{draw.randrange(TOWNS)}</to>{lines}</order>"
        return _Message(f"{phase}-{number}", ROOTS[number % len(ROOTS)], body.encode())

    async def _sent(self) -> Counter[Edge]:
        """Link -> bytes of messages that its ends have sent."""
        found: Counter[Edge] = Counter()
        for name, status in (await self._network.statuses()).items():
            for peer, each in status["neighbours"].items() if status is not None else ():
                found[min(name, peer), max(name, peer)] += each["sent_by_flow"]["MESSAGE"]
        return found

    async def _links(
        self, stream: Sequence[_Message], wanted: Mapping[str, Sequence[str]], sent: Counter[Edge]
    ) -> LinkBytes:
        tree = sorted(
            {
                (min(name, peer), max(name, peer))
                for name, status in (await self._network.statuses()).items()
                if status is not None
                for peer in status["node"]["tree"][""]
            }
        )
        ways = {name: towards(tree, name) for name in BROKERS}
        hosts = {each.id: each.host for each in self._store.state(ProfileRecord)[1]}
        found = LinkBytes(sent)
        for each in stream:
            used: set[Edge] = set()
            for at in {hosts[name] for name in wanted[each.id]}:
                while at != each.root:
                    step = ways[at][each.root]
                    used.add((min(at, step), max(at, step)))
                    at = step
            found.ideal.update(dict.fromkeys(used, len(each.body)))
            found.flooded.update(dict.fromkeys(tree, len(each.body)))
        return found

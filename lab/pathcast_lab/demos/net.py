"""`pathcast-lab demo net`: seven brokers, three sources, a broker killed on the way, nothing lost.

Profiles of the sample domains are spread over all brokers of a network of processes on this
machine; messages enter at three of them. Halfway one broker is killed and started again. What
subscribers got is compared with what one process with all profiles delivers.
It measures nothing: seven processes share the cores of one machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from pathcast.cli.console import answers, say, say_warning
from pathcast.cli.exits import ExitCode
from pathcast.cli.net import sent_by_flow
from pathcast.engine import carried_mode
from pathcast.model import DeliverMode, Subscription
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import OPERATOR, InboxDelivery, InForce
from pathcast.overlay.messages import SourceEntry
from pathcast.registry import Registry
from pathcast.transport.broker_requests import DELIVERIES, PublishRequest, RegisterSourceRequest
from pathcast.transport.client import BrokerClient
from pathcast.transport.network import LocalNetwork
from pathcast.transport.network_map import network_map
from pathcast.workload import (
    DOMAINS,
    SubscriptionParameters,
    generate_documents,
    generate_subscriptions,
)
from pathcast_lab.demos.running import (
    demo_network,
    is_as_expected,
    running_anew,
    until,
    until_ended,
)

TOPOLOGY = """\
# What `pathcast-lab demo net` ran: a ring of seven brokers with two short cuts.
[network]
directory = "network"
links = [
    ["b1", "b2"], ["b2", "b3"], ["b3", "b4"], ["b4", "b5"], ["b5", "b6"], ["b6", "b7"],
    ["b1", "b7"], ["b2", "b6"], ["b3", "b7"],
]
"""
ROOTS = {"alerts": "b1", "news": "b4", "payments": "b6"}
KILLED = "b2"
MODES: Final[tuple[DeliverMode, ...]] = ("ids", "fragment", "message")
PUBLISHED_AT_ONCE = 50


class Given(NamedTuple):
    """A delivery: of which subscription, what message, and a digest of its results."""

    subscription: str
    message: str
    results: bytes


class DemoMessage(NamedTuple):
    """A message of the demonstration."""

    domain: str
    id: str
    body: bytes


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIRECTORY", help="Files of the network; replaced.")
    ] = Path("demo-net"),
    profiles: Annotated[int, typer.Option(min=10, help="Profiles of subscribers.")] = 30_000,
    messages: Annotated[int, typer.Option(min=6, help="Messages, of three domains.")] = 300,
    seed: Annotated[int, typer.Option(help="The same seed gives the same input.")] = 0,
) -> ExitCode:
    """Show a network: 7 brokers, 3 sources, one broker killed, every delivery accounted for."""
    started = time.monotonic()
    network = demo_network(out, TOPOLOGY)
    parameters = SubscriptionParameters(
        queries=profiles, subscribers=max(1, profiles // 30), seed=seed
    )
    subscriptions = [
        Subscription(each.query_id, each.subscriber, each.query, MODES[number % len(MODES)])
        for number, each in enumerate(generate_subscriptions(parameters))
    ]
    stream = _messages(messages, seed)
    with running_anew(network):
        say(f"{len(network.names)} brokers run")
        expected = _expected(subscriptions, stream)
        say(f"{profiles:,} profiles, {len(stream):,} messages, {len(expected):,} deliveries")
        given = asyncio.run(_deliveries(network, subscriptions, stream, expected))
        statuses = asyncio.run(network.statuses())
        drawing = out / "network.svg"
        drawing.write_text(network_map(statuses, network.links), encoding="utf-8")
    is_well = is_as_expected("deliveries", given, expected)
    sent = sent_by_flow(statuses.values())
    out_console = answers()
    cut = sum(
        sum(status["node"]["cut_bytes"].values())
        for status in statuses.values()
        if status is not None
    )
    out_console.print(
        f"sent between brokers: {sum(sent.values()) / 1e6:.1f} MB; "
        f"cut out on the way: {cut / 1e6:.1f} MB"
    )
    out_console.print(
        "of that: " + ", ".join(f"{flow.lower()} {n / 1e6:.2f} MB" for flow, n in sent.items())
    )
    out_console.print(f"map: {drawing}")
    say(f"{time.monotonic() - started:.0f} s in all")
    return ExitCode.OK if is_well else ExitCode.REFUSED


def _messages(count: int, seed: int) -> list[DemoMessage]:
    found = []
    for domain in ROOTS:
        source = DOMAINS[domain]
        documents = generate_documents(source.graph(), source.documents(count // 3, seed))
        found += [
            DemoMessage(domain, f"{domain}-{number:06d}", body)
            for number, body in enumerate(documents)
        ]
    return sorted(found, key=lambda each: each.id.rpartition("-")[2])


def _expected(subscriptions: Sequence[Subscription], stream: Sequence[DemoMessage]) -> set[Given]:
    """The deliveries of one process that holds all subscriptions."""
    registry = Registry()
    registry.add(subscriptions)
    batch = registry.deliver([each.body for each in stream])
    numbers, names = batch.numbers, batch.subscription_ids
    given: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)
    rows, places = numbers["row"].to_pylist(), numbers["subscription"].to_pylist()
    for row, place, fragment in zip(rows, places, numbers["fragment"].to_pylist(), strict=True):
        given[names[place], stream[row].id] += [] if fragment is None else [fragment]
    return {Given(name, id, digest(results)) for (name, id), results in given.items()}


def digest(results: Iterable[bytes]) -> bytes:
    """A digest of results, for comparison."""
    found = hashlib.blake2b(digest_size=16)
    for each in results:
        found.update(len(each).to_bytes(8, "big") + each)
    return found.digest()


def _shares(
    subscriptions: Sequence[Subscription], names: Sequence[str]
) -> dict[str, Sequence[Subscription]]:
    """Broker -> the profiles that it hosts."""
    return {name: subscriptions[place :: len(names)] for place, name in enumerate(names)}


async def _deliveries(
    network: LocalNetwork,
    subscriptions: Sequence[Subscription],
    stream: Sequence[DemoMessage],
    expected: set[Given],
) -> Counter[Given]:
    """Runs it all; how often each delivery came."""
    readers = {name: _Reader(network, name) for name in network.names}
    tasks = [asyncio.create_task(reader.read()) for reader in readers.values()]
    begun = time.monotonic()
    await _register_sources(network)
    shares = _shares(subscriptions, network.names)
    await asyncio.gather(*(_subscribe(network, name, rows) for name, rows in shares.items()))
    say(f"all profiles registered: {time.monotonic() - begun:.1f} s")
    await until(lambda: sum(len(each.in_force) for each in readers.values()) >= len(subscriptions))
    say(f"all profiles in force: {time.monotonic() - begun:.1f} s")
    begun = time.monotonic()
    half = len(stream) // 2
    await _publish(network, stream[:half])
    network.kill(KILLED)
    say(f"{KILLED} is killed, and others publish")
    await _publish(network, stream[half:])
    await asyncio.to_thread(network.start, [KILLED])
    say(f"{KILLED} is started again")
    with contextlib.suppress(TimeoutError):
        await until(lambda: sum(len(each.given) for each in readers.values()) >= len(expected))
    say(f"all delivered: {time.monotonic() - begun:.1f} s")
    await until_ended(tasks)
    return sum((each.given for each in readers.values()), Counter())


async def _register_sources(network: LocalNetwork) -> None:
    for domain, root in ROOTS.items():
        async with network.operator(root) as client:
            await client.ask(RegisterSourceRequest(domain, SourceEntry()))


async def _subscribe(network: LocalNetwork, name: str, rows: Sequence[Subscription]) -> None:
    async with network.operator(name) as client:
        refused = await client.subscribe_many(
            (each.id, DeliveryProfile(each.query, carried_mode(each.deliver))) for each in rows
        )
    for id, (code, sentence) in refused.items():
        say_warning(f"{id}: {code}: {sentence}")


async def _publish(network: LocalNetwork, stream: Sequence[DemoMessage]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients: dict[str, BrokerClient] = {
            domain: await stack.enter_async_context(network.operator(root))
            for domain, root in ROOTS.items()
        }
        for start in range(0, len(stream), PUBLISHED_AT_ONCE):
            group = stream[start : start + PUBLISHED_AT_ONCE]
            for domain, client in clients.items():
                mine = [each for each in group if each.domain == domain]
                await client.publish([PublishRequest(domain, each.id, each.body) for each in mine])


class _Reader:
    """A subscriber at one broker, which keeps its cursor over lost connections."""

    def __init__(self, network: LocalNetwork, name: str) -> None:
        self._network = network
        self._name = name
        self.in_force: set[str] = set()
        self.given: Counter[Given] = Counter()

    async def read(self) -> None:
        """Takes what comes, until it is cancelled."""
        async for told in self._network.followed(self._name, DELIVERIES):
            if isinstance(told, InboxDelivery):
                id = told.subscription.removeprefix(f"{OPERATOR}/")
                self.given[Given(id, told.message, digest(told.results))] += 1
            elif isinstance(told, InForce):
                self.in_force.add(told.subscription)

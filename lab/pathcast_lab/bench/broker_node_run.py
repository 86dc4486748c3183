"""The processes of `broker-node`, the load on them, and the same work part by part, alone."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from pathcast.model import Subscription
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import OPERATOR, InboxDelivery, InForce
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.overlay.messages import SourceEntry, StreamMessage
from pathcast.overlay.table import Table
from pathcast.registry import Registry
from pathcast.transport.broker_requests import (
    CODEC,
    DELIVERIES,
    PublishRequest,
    RegisterSourceRequest,
)
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Disk
from pathcast.transport.grpc_streams import Address
from pathcast.transport.network import LocalNetwork, NetworkSection, Topology
from pathcast.transport.process import read_control
from pathcast.transport.service import Publications
from pathcast_lab.bench.broker_node import (
    BrokerNodeDefinition,
    BrokerNodeResult,
    BrokerNodeSet,
    Load,
    RoundTimes,
)
from pathcast_lab.bench.checking import wrong_count
from pathcast_lab.bench.memory import resident_bytes

T = TypeVar("T")

HERE, NEXT = "here", "next"
SOURCE = "source"
PUBLISHERS = ("p1", "p2", "p3", "p4")
"""Each has one call under way at a time."""

COMMITS, COMMITTED = 200, 16
"""Commits that are timed alone, and messages of each: about what comes together in a few ms."""

PATIENCE_SECONDS = 300.0


async def run_load(
    definition: BrokerNodeDefinition,
    chosen: BrokerNodeSet,
    load: Load,
    directory: Path,
    say: Callable[[str], None],
) -> BrokerNodeResult:
    """All of it but the parts alone.

    Raises:
        WrongCountError: A delivery is lost, doubled or foreign.
    """
    section = NetworkSection(directory=directory, links=((HERE, NEXT),), clients=PUBLISHERS)
    network = LocalNetwork.write(Topology(network=section))
    with _pinned(first=True):
        network.start([HERE], are_new=True)
    with _pinned(first=False):
        network.start([NEXT], are_new=True)
        try:
            return await _measured(definition, chosen, load, network, say)
        finally:
            network.stop(network.names)


async def _measured(
    definition: BrokerNodeDefinition,
    chosen: BrokerNodeSet,
    load: Load,
    network: LocalNetwork,
    say: Callable[[str], None],
) -> BrokerNodeResult:
    process = read_control(network.directory / HERE).process
    async with AsyncExitStack() as stack:
        run = _Run(
            {
                name: await stack.enter_async_context(_publisher(network, name))
                for name in PUBLISHERS
            },
            load.messages,
            definition.batch,
        )
        here = Inbox(await stack.enter_async_context(network.operator(HERE)))
        onward = Inbox(await stack.enter_async_context(network.operator(NEXT)))
        following = [asyncio.create_task(inbox.follow()) for inbox in (here, onward)]
        for name, client in run.clients.items():
            await client.ask(RegisterSourceRequest(name, SourceEntry()))
        await _registered(onward.client, onward, load.behind)
        began = time.monotonic()
        await _registered(here.client, here, load.here)
        registered = time.monotonic() - began
        say(f"all profiles in force after {registered:.0f} s")
        wanted = [_answers(rows, load.messages) for rows in (load.here, load.behind)]
        run.due = [sum(map(len, each)) for each in zip(*wanted, strict=True)]
        await run.throughput(chosen.messages // 4, process, (here, onward))  # warms up
        rounds = []
        for _ in range(chosen.rounds):
            rounds.append(await run.throughput(chosen.messages, process, (here, onward)))
            say(f"{chosen.messages / rounds[-1].wall_s:,.0f} messages a second")
        paced = range(run.published, run.published + int(chosen.rate * chosen.seconds))
        before = processor_seconds(process)
        sent_at = await run.paced(len(paced), chosen.rate, (here, onward))
        paced_s = (processor_seconds(process) - before) / len(paced)
        status = await here.client.status()
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
    checks = checked(run.published, wanted, (here, onward))
    return BrokerNodeResult(
        case=f"Q={chosen.profiles:,}",
        profiles=chosen.profiles,
        message_bytes=sum(map(len, load.messages)) / len(load.messages),
        deliveries_a_message=tuple(len(one.came) / run.published for one in (here, onward)),  # type: ignore[arg-type]
        registered_s=registered,
        rounds=tuple(rounds),
        rate=chosen.rate,
        paced_s=paced_s,
        hops_ms=here.latencies(paced, sent_at),
        onward_ms=onward.latencies(paced, sent_at),
        bound_us={},
        commits_ms=(0.0, 0.0, 0.0),
        memory_bytes=resident_bytes(process),
        sent=status["neighbours"][NEXT]["sent_by_flow"],
        checks=checks,
    )


class Inbox:
    """Follows an inbox.

    Attributes:
        client: Of whom.
        came: Number of the message, subscription, and when it came.
    """

    def __init__(self, client: BrokerClient) -> None:
        self.client = client
        self.in_force: set[str] = set()
        self.came: list[tuple[int, str, float]] = []

    async def follow(self) -> None:
        """Takes and acknowledges what comes, until it is cancelled."""
        async for group in self.client.deliveries(OPERATOR, 0):
            now = time.monotonic()
            for each in group:
                told = DELIVERIES.decode(each.body)
                if isinstance(told, InboxDelivery):
                    self.came.append((int(told.message), told.subscription, now))
                elif isinstance(told, InForce):
                    self.in_force.add(told.subscription)
            await self.client.acknowledge(group[-1].position)

    def latencies(self, numbers: range, due: Sequence[float]) -> tuple[float, float, float]:
        """Median, 99 % and worst, in ms, of what came of these messages."""
        found = [
            (at - due[number - numbers.start]) * 1e3
            for number, _, at in self.came
            if number in numbers
        ]
        return _shares(found)


class _Run:
    """What is published, by whom."""

    def __init__(
        self, clients: Mapping[str, BrokerClient], messages: Sequence[bytes], batch: int
    ) -> None:
        self.clients = clients
        self.published = 0
        self.due: Sequence[int] = ()
        self._messages = messages
        self._batch = batch
        self._awaited = 0

    async def throughput(self, count: int, process: int, inboxes: Sequence[Inbox]) -> RoundTimes:
        """As fast as the broker takes them."""
        before = sum(len(inbox.came) for inbox in inboxes)
        processor, began = processor_seconds(process), time.monotonic()
        sizes = iter([min(self._batch, count - n) for n in range(0, count, self._batch)])

        async def publish(name: str) -> None:
            for size in sizes:
                await self.clients[name].publish(self._next(size, name))

        await asyncio.gather(*map(publish, self.clients))
        await self._all_came(inboxes)
        ended = max((inbox.came[-1][2] for inbox in inboxes if inbox.came), default=began)
        return RoundTimes(
            count,
            sum(len(inbox.came) for inbox in inboxes) - before,
            max(ended, time.monotonic() - 0.01) - began,
            processor_seconds(process) - processor,
        )

    async def paced(self, count: int, rate: int, inboxes: Sequence[Inbox]) -> list[float]:
        """By the clock, whether the broker keeps up or not; when each message was due."""
        began = time.monotonic() + 0.05
        due = [began + number / rate for number in range(count)]
        sent = 0
        under_way: set[asyncio.Task[list[object]]] = set()
        free = list(self.clients)
        while sent < count:
            now = time.monotonic()
            ready = min(count, max(0, int((now - began) * rate) + 1)) if now >= began else 0
            if ready == sent or not free:
                await asyncio.sleep(0.0005)
                continue
            name = free.pop()
            group = self._next(min(ready - sent, self._batch), name)
            sent += len(group)
            task = asyncio.create_task(self.clients[name].publish(group))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            task.add_done_callback(lambda _, name=name: free.append(name))  # type: ignore[misc]
        await asyncio.gather(*under_way)
        await self._all_came(inboxes)
        return due

    def _next(self, count: int, source: str) -> list[object]:
        """The next messages; who publishes them is their source."""
        numbers = range(self.published, self.published + count)
        self.published += count
        self._awaited += sum(self.due[number % len(self.due)] for number in numbers)
        bodies = self._messages
        return [
            PublishRequest(source, str(number), bodies[number % len(bodies)]) for number in numbers
        ]

    async def _all_came(self, inboxes: Sequence[Inbox]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while sum(len(inbox.came) for inbox in inboxes) < self._awaited:
                await asyncio.sleep(0.002)


def _publisher(network: LocalNetwork, name: str) -> BrokerClient:
    address = read_control(network.directory / HERE).listen
    return BrokerClient(name, Address(HERE, address), CODEC)


async def _registered(client: BrokerClient, inbox: Inbox, rows: Sequence[Subscription]) -> None:
    refused = await client.subscribe_many(
        (row.id, DeliveryProfile(row.query, "message")) for row in rows
    )
    for code, sentence in refused.values():
        raise AssertionError(f"{code}: {sentence}")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(inbox.in_force) < len(rows):
            await asyncio.sleep(0.01)


def _answers(rows: Sequence[Subscription], messages: Sequence[bytes]) -> list[set[str]]:
    """For each message which profiles one process delivers it for."""
    registry = Registry()
    registry.add(rows)
    batch = registry.deliver(messages)
    names, numbers = batch.subscription_ids, batch.numbers
    found: list[set[str]] = [set() for _ in messages]
    places = numbers["subscription"].to_pylist()
    for row, place in zip(numbers["row"].to_pylist(), places, strict=True):
        found[row].add(names[place])
    return found


def checked(published: int, wanted: Sequence[Sequence[set[str]]], inboxes: Sequence[Inbox]) -> int:
    """Compares all deliveries with those of one process.

    Args:
        published: Messages; equal ones in turn.
        wanted: For each inbox, for each distinct message, the profiles that it satisfies.
        inboxes: What came.

    Returns:
        How many deliveries there are.

    Raises:
        WrongCountError: One is lost, doubled or foreign.
    """
    total = 0
    for answers, inbox in zip(wanted, inboxes, strict=True):
        expected = Counter(
            (number, f"{OPERATOR}/{name}")
            for number in range(published)
            for name in answers[number % len(answers)]
        )
        found = Counter((number, name) for number, name, _ in inbox.came)
        if found != expected:
            raise wrong_count("deliveries", found.total(), expected.total(), "one process")
        total += found.total()
    return total


def commits_alone(load: Load, directory: Path) -> tuple[float, float, float]:
    """How long the disk takes to keep a few messages with a delivery of each, in ms.

    Returns:
        Median, 99 % and worst. A hop waits for the commit that is under way, and then for its own.
    """
    disk, bodies, found = Disk(directory), load.messages, []
    try:
        for number in range(COMMITS):
            rows = [bodies[(number + place) % len(bodies)] for place in range(COMMITTED)]
            given = [
                (OPERATOR, f"{HERE}\t{number:016x}\t{place}", row) for place, row in enumerate(rows)
            ]
            log = msgspec.msgpack.encode(rows)
            began = time.monotonic()
            disk.commit({f"log/{number:016x}": log}, given)
            found.append((time.monotonic() - began) * 1e3)
    finally:
        disk.close()
    return _shares(found)


def parts_alone(load: Load, batch: int, directory: Path) -> dict[str, float]:
    """What a message costs in each part of the work, alone: microseconds of this processor."""
    messages = load.messages
    groups = [messages[n : n + batch] for n in range(0, len(messages), batch)]
    table, profiles = Table(), XmlProfiles()
    table.set(NEXT, _entries(load.behind), [])
    for row in load.here:
        profiles.add(row.id, DeliveryProfile(row.query, "message"))
    taken = [PublishRequest(SOURCE, str(number), body) for number, body in enumerate(messages)]
    packed = [
        msgspec.msgpack.encode(
            Publications(tuple(CODEC.packet(one) for one in taken[n : n + batch]))
        )
        for n in range(0, len(taken), batch)
    ]
    decoder = msgspec.msgpack.Decoder(Publications)

    def unpack(data: bytes) -> None:
        for packet in decoder.decode(data).packets:
            CODEC.message(packet, OPERATOR)

    published = [
        StreamMessage(1, SOURCE, str(n), 0, "", False, 0, body) for n, body in enumerate(messages)
    ]
    logged = [
        msgspec.msgpack.encode(published[n : n + batch]) for n in range(0, len(published), batch)
    ]
    given = [
        [
            (OPERATOR, f"{HERE}\t{2**52}\t{n * batch + place:016x}\t1\t{name}", group[place])
            for place, answers in enumerate(profiles.answers(group))
            for name in answers
        ]
        for n, group in enumerate(groups)
    ]
    disk = Disk(directory)

    def keep(number: int) -> None:
        disk.commit({f"log/{number:016x}": logged[number]}, given[number])

    try:
        return {
            "routing": _each(table.route, groups, messages),
            "profiles": _each(profiles.answers, groups, messages),
            "MessagePack in": _each(unpack, packed, messages),
            "MessagePack out": _each(msgspec.msgpack.encode, _grouped(published, batch), messages),
            "disk": _each(keep, range(len(groups)), messages, warm=False),
        }
    finally:
        disk.close()


def _shares(found: Sequence[float]) -> tuple[float, float, float]:
    """Median, 99 % and worst; zeros of nothing."""
    if not found:
        return (0.0, 0.0, 0.0)
    middle, most = np.percentile(found, [50, 99]).tolist()
    return (middle, most, max(found))


def _entries(rows: Sequence[Subscription]) -> list[str]:
    found = {entry for row in rows for entry in disjuncts_of(row.query, None, "message")}
    return sorted(found)


def _grouped(rows: Sequence[StreamMessage], batch: int) -> list[Sequence[StreamMessage]]:
    return [rows[n : n + batch] for n in range(0, len(rows), batch)]


def _each(
    call: Callable[[T], object],
    groups: Sequence[T],
    messages: Sequence[bytes],
    *,
    warm: bool = True,
) -> float:
    if warm:
        for group in groups:
            call(group)
    began = time.process_time()
    for group in groups:
        call(group)
    return (time.process_time() - began) / len(messages) * 1e6


@contextmanager
def _pinned(*, first: bool) -> Iterator[None]:
    """What is started in here runs on the first core alone, or on all others."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    one, *others = sorted(before)
    os.sched_setaffinity(0, {one} if first or not others else others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def processor_seconds(process: int) -> float:
    """Time of a process and its threads; of this one where the system does not tell."""
    try:
        # The clock of another process, as clock_getcpuclockid(3) names it on Linux.
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return time.process_time()

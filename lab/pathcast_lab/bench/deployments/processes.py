"""Brokers and peers: processes on loopback, whose inboxes are followed."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from pathcast.dht.subscriptions import Matched, Subscribed
from pathcast.errors import UnavailableError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import OPERATOR, InboxDelivery, InForce
from pathcast.overlay.messages import SourceEntry
from pathcast.transport.broker_requests import DELIVERIES, RegisterSourceRequest
from pathcast.transport.broker_requests import PublishRequest as PublishAtBroker
from pathcast.transport.client import BrokerClient
from pathcast.transport.local_processes import LocalProcesses
from pathcast.transport.local_ring import LocalRing
from pathcast.transport.network import LocalNetwork, NetworkSection, Topology
from pathcast.transport.peer import TOLD, PeerAccepted, PublicationReport, Register, StandingQuery
from pathcast.transport.peer import PeerPublish as PublishAtPeer
from pathcast.transport.process import read_control
from pathcast_lab.bench.deployments.definition import DeploymentKind, DeploymentSet, DeploymentTable
from pathcast_lab.bench.deployments.inputs import Load
from pathcast_lab.bench.deployments.measured import Measured
from pathcast_lab.bench.memory import peak_bytes
from pathcast_lab.demos.running import followed, until_whole

T = TypeVar("T")

PATIENCE_SECONDS: Final = 600.0
SOURCE: Final = "source"
QUERIES_AT_ONCE: Final = 50
"""Of a call of a peer, which indexes them on the ring."""


def run_processes(chosen: DeploymentSet, load: Load, deployed: Deployed) -> Measured:
    """Registers, publishes as fast as messages are taken, then one by one; ends the processes.

    Raises:
        WrongCountError: A delivery is lost, doubled or foreign.
        UnavailableError: A process did not start, or ended.
    """
    processes = deployed.processes
    began = time.monotonic()
    try:
        processes.start(processes.names, are_new=True)
        return asyncio.run(deployed.measured(chosen, load, began))
    finally:
        processes.stop(processes.names)


class Deployed(ABC):
    """Processes that subscribers and publishers speak to.

    Args:
        processes: Not begun yet.

    Attributes:
        kind: What errors call them, and whose messages a set counts.
        came: Query, message and when it came, of each delivery.
        in_force: Queries.
    """

    kind: ClassVar[DeploymentKind]

    def __init__(self, processes: LocalProcesses) -> None:
        self.processes = processes
        self.clients: dict[str, BrokerClient] = {}
        self.came: list[tuple[str, int, float]] = []
        self.in_force: set[str] = set()

    @abstractmethod
    async def follow(self, name: str) -> None:
        """Takes what comes into the inbox of a process, until it is cancelled."""

    @abstractmethod
    async def register(self, name: str, queries: Mapping[str, str]) -> None:
        """Registers queries with a process."""

    @abstractmethod
    async def publish(self, numbers: Sequence[int], load: Load) -> None:
        """Publishes messages as fast as they are taken."""

    @abstractmethod
    async def begin(self) -> None:
        """Returns when queries can be registered."""

    async def measured(self, chosen: DeploymentSet, load: Load, began: float) -> Measured:
        """All of it, see `run_processes`."""
        names, count = self.processes.names, chosen.messages[self.kind]
        rows = list(load.queries.items())
        async with AsyncExitStack() as stack:
            for name in names:
                enter = partial(self._entered, stack, name)
                self.clients[name] = await self._patiently(enter)
            following = [asyncio.create_task(self.follow(name)) for name in names]
            await self.begin()
            shares = (dict(rows[place :: len(names)]) for place in range(len(names)))
            await asyncio.gather(*map(self.register, names, shares))
            await until(lambda: len(self.in_force) >= len(rows))
            ready = time.monotonic() - began
            sent, began = await self._sent(), time.monotonic()
            await self._published(range(count), load)
            seconds = max((at for _, _, at in self.came), default=began) - began
            sent = await self._sent() - sent
            due = {}
            # Of a message that nobody gets there is no latency.
            matched = [n for n in range(count, count + len(load.messages)) if load.due(n)]
            single = matched[: chosen.single]
            for number in single:
                due[number] = time.monotonic()
                await self._published(range(number, number + 1), load)
            for task in following:
                task.cancel()
            for result in await asyncio.gather(*following, return_exceptions=True):
                if isinstance(result, Exception):
                    raise result
        found = Counter((id, number) for id, number, _ in self.came)
        load.check(self.kind, found, [*range(count), *single])
        peaks = [
            peak_bytes(read_control(self.processes.directory / name).process) for name in names
        ]
        return Measured(
            nodes=len(names),
            messages=count,
            seconds=seconds,
            latencies=[at - due[number] for _, number, at in self.came if number in due],
            sent_bytes=sent / count,
            memory_bytes=[peak for peak in peaks if peak is not None],
            ready_seconds=ready,
        )

    async def _published(self, numbers: range, load: Load) -> None:
        awaited = len(self.came) + sum(len(load.due(number)) for number in numbers)
        await self.publish(numbers, load)
        await until(lambda: len(self.came) >= awaited)

    async def _sent(self) -> int:
        """Bytes that all have sent to each other."""
        total = 0
        for client in self.clients.values():
            status = await self._patiently(client.status)
            total += sum(each["bytes_sent"] for each in status["neighbours"].values())
        return total

    async def _entered(self, stack: AsyncExitStack, name: str) -> BrokerClient:
        return await stack.enter_async_context(self.processes.operator(name))

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """An answer, however busy the processes are.

        Raises:
            TimeoutError: There is none.
        """
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    return await ask()
                except UnavailableError:
                    await asyncio.sleep(0.5)


class Brokers(Deployed):
    """A ring of brokers with a short cut; all messages enter at the first one."""

    kind: ClassVar[DeploymentKind] = "brokers"

    def __init__(self, table: DeploymentTable, chosen: DeploymentSet, directory: Path) -> None:
        names = [f"b{number}" for number in range(chosen.brokers)]
        links = [*pairwise(names), (names[0], names[-1])]
        links.append((names[1], names[len(names) // 2 + 1]))
        section = NetworkSection(directory=directory, links=tuple(links))
        super().__init__(LocalNetwork.write(Topology(network=section)))
        self._root = names[0]
        self._batch = table.batch

    async def begin(self) -> None:
        """The source is registered."""
        await self.clients[self._root].ask(RegisterSourceRequest(SOURCE, SourceEntry()))

    async def follow(self, name: str) -> None:
        """Notices that a profile is in force, and deliveries."""
        async for told in followed(self.processes, name, DELIVERIES):
            if isinstance(told, InboxDelivery):
                id = told.subscription.removeprefix(f"{OPERATOR}/")
                self.came.append((id, int(told.message), time.monotonic()))
            elif isinstance(told, InForce):
                self.in_force.add(told.subscription)

    async def register(self, name: str, queries: Mapping[str, str]) -> None:
        """As profiles that want ids."""
        profiles = [(id, DeliveryProfile(text, "ids")) for id, text in queries.items()]
        refused = await self.clients[name].subscribe_many(profiles, PATIENCE_SECONDS)
        assert not refused, refused

    async def publish(self, numbers: Sequence[int], load: Load) -> None:
        """A call after the other."""
        for start in range(0, len(numbers), self._batch):
            group = numbers[start : start + self._batch]
            await self.clients[self._root].publish(
                [PublishAtBroker(SOURCE, str(number), load.body(number)) for number in group]
            )


class Peers(Deployed):
    """A ring of peers; each publishes in turn. What is not proved is published again."""

    kind: ClassVar[DeploymentKind] = "ring"

    def __init__(self, table: DeploymentTable, chosen: DeploymentSet, directory: Path) -> None:
        self._ring = LocalRing.write(directory, chosen.peers, RING)
        super().__init__(self._ring)
        self._under_way = table.under_way
        self._told: dict[str, list[tuple[str, float]]] = {}
        self._waiting: set[int] = set()
        self._known: dict[str, int] = {}
        self._unproved: set[int] = set()
        self._pairs: set[tuple[str, int]] = set()
        self.repeated: set[int] = set()

    async def begin(self) -> None:
        """All peers are on the ring, in order."""
        await until_whole(self._ring)

    async def follow(self, name: str) -> None:
        """Matches name publications, of which outcomes say what messages they were."""
        async for told in followed(self.processes, name, TOLD):
            match told:
                case Subscribed(id):
                    self.in_force.add(id)
                case Matched(id, publication):
                    self._told.setdefault(publication, []).append(
                        (id.removeprefix(f"{OPERATOR}/"), time.monotonic())
                    )
                    self._count(publication)
                case PublicationReport(message, published):
                    self._known[published.publication] = int(message)
                    self._count(published.publication)
                    self._waiting.discard(int(message))
                    if not published.is_proved:
                        self._unproved.add(int(message))

    def _count(self, publication: str) -> None:
        number = self._known.get(publication)
        if number is None:
            return
        for id, at in self._told.pop(publication, ()):
            # It may have come before, of an earlier publication of the same message.
            if (id, number) not in self._pairs or number not in self.repeated:
                self._pairs.add((id, number))
                self.came.append((id, number, at))

    async def register(self, name: str, queries: Mapping[str, str]) -> None:
        """Some at a time."""
        rows = [StandingQuery(id, text) for id, text in queries.items()]
        for start in range(0, len(rows), QUERIES_AT_ONCE):
            group = Register(tuple(rows[start : start + QUERIES_AT_ONCE]))
            answer = await self.clients[name].ask(group, PATIENCE_SECONDS)
            assert isinstance(answer, PeerAccepted)
            assert not answer.refused, answer.refused

    async def publish(self, numbers: Sequence[int], load: Load) -> None:
        """So many at a time as the table says, until each has a proof."""
        waiting, names = list(numbers), self.processes.names
        while waiting:
            for number in waiting:
                await until(lambda: len(self._waiting) < self._under_way)
                self._waiting.add(number)
                client = self.clients[names[number % len(names)]]
                await client.publish([PublishAtPeer(str(number), load.body(number))])
            await until(lambda: not self._waiting)
            waiting = sorted(self._unproved)
            self._unproved.clear()
            self.repeated.update(waiting)


RING: Final[Mapping[str, float]] = {"tick_seconds": 1.0, "patience_seconds": 15.0}
"""Nobody dies here, but many processes share few cores: who waits for one is not to be dead."""


async def until(holds: Callable[[], bool]) -> None:
    """Waits until something holds.

    Raises:
        TimeoutError: It does not.
    """
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(0.002)

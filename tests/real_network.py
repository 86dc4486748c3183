"""A network of broker processes with all that a test asks of it, and one process to compare with.

`RealNetwork` starts brokers, publishes with numbers until there is a receipt, follows every inbox
with a cursor, and knows what every subscription must have got. At the end nothing is lost, nothing
came twice, every delivery is what one process gives, and what brokers say of their tables is what
brokers say that never knew anything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from broker_processes import BrokerProcesses
from pathcast import Broker, Subscription
from pathcast.errors import PathcastError, UnavailableError
from pathcast.overlay.content import Profile
from pathcast.overlay.deliveries import Delivery, InForce, Lapsed
from pathcast.overlay.messages import Source
from pathcast.overlay.publishers import Numbered
from pathcast.transport.broker import (
    CODEC,
    DELIVERIES,
    Accepted,
    Explain,
    Explained,
    Publish,
    RegisterSource,
    Subscribe,
    Unsubscribe,
    broker_kind,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Disk
from pathcast.transport.grpc_streams import Address
from pathcast_lab.sim.memory_streams import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually
from wires import Pair, Wires

CLIENT = "tester"


@dataclass
class Known:
    """A subscription, as its subscriber knows it. An id is used once.

    Attributes:
        host: Broker that it is at.
        query: Its profile.
        first: Messages from this number on must come; None while it is not in force.
        is_wanted: Whether nobody took it out.
        got: Message -> what came of it.
    """

    host: str
    query: str
    first: int | None = None
    is_wanted: bool = True
    got: dict[str, tuple[bytes, ...]] = field(default_factory=dict)


@dataclass
class Sent:
    """A message that was published, or is being published."""

    number: int
    body: bytes
    has_receipt: bool = False


class RealNetwork:
    """See the module.

    Args:
        directory: For all files.
        names: Of the brokers.
        links: Between them.
        wires: What joins them.
        joining: Brokers that come later.
        monitored: HOST:PORT where each shows itself to monitoring, of those that do.
    """

    def __init__(
        self,
        directory: Path,
        names: Sequence[str],
        links: Sequence[Pair],
        wires: Wires,
        joining: Sequence[str] = (),
        monitored: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.names, self.links, self.wires = list(names), list(links), wires
        self.brokers = BrokerProcesses(
            directory,
            names,
            links,
            wires,
            joining=joining,
            monitored=monitored,
            are_started=False,
        )
        self.subscriptions: dict[str, Known] = {}
        self.sent: dict[str, Sent] = {}
        self.faults: list[str] = []
        """What must not be, as it is seen."""
        self._sources: dict[str, str] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._after: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self._publishing: dict[str, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def running(self, *, without: Iterable[str] = ()) -> AsyncIterator[RealNetwork]:
        """Brokers run; they are killed at the end."""
        began = [name for name in self.names if name not in without]
        try:
            for name in began:
                self.brokers.start(name, is_awaited=False)
            for name in self.names:
                self._readers[name] = asyncio.create_task(self._read(name))
            yield self
        finally:
            for task in self._readers.values():
                task.cancel()
            results = await asyncio.gather(*self._readers.values(), return_exceptions=True)
            self.brokers.stop()
            self.wires.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    # What clients do.

    def client(self, name: str) -> BrokerClient:
        """Of a broker."""
        target = self.brokers.addresses[name]
        return BrokerClient(CLIENT, Address(name, target, f"{CLIENT}!", allow_plain=True), CODEC)

    async def ask(self, name: str, message: object) -> Any:
        """An answer, as soon as the broker can be reached."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                async with self.client(name) as client:
                    return await client.ask(message)
            except UnavailableError:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(0.05)

    async def source(self, root: str) -> None:
        """A source with a root."""
        self._sources[root] = f"of {root}"
        self._publishing[root] = asyncio.Lock()
        assert await self.ask(root, RegisterSource(f"of {root}", Source())) == Accepted()

    async def subscribe(self, host: str, id: str, query: str) -> None:
        """Asks for it; `in_force` waits for what it may rely on."""
        assert id not in self.subscriptions, "an id is used once"
        self.subscriptions[id] = Known(host, query)
        answer = await self.ask(host, Subscribe(((id, Profile(query, "fragment")),)))
        assert isinstance(answer, Accepted)
        assert answer.versions.keys() == {id}, answer.refused

    async def unsubscribe(self, id: str) -> None:
        """Nothing must come of it any more; what comes before it is known is right."""
        known = self.subscriptions[id]
        known.is_wanted = False
        answer = await self.ask(known.host, Unsubscribe((id,)))
        # The first answer may be lost with its connection.
        assert [code for _, code, _ in answer.refused] in ([], ["query.unknown"])

    async def in_force(self, *ids: str) -> None:
        """Waits until they are, of all that are wanted if none are given."""
        await self.until(lambda: all(one.first is not None for one in self._wanted(ids)))

    def _wanted(self, ids: Sequence[str]) -> list[Known]:
        return [
            one
            for id, one in self.subscriptions.items()
            if one.is_wanted and (not ids or id in ids)
        ]

    async def publish(self, root: str, *bodies: bytes) -> None:
        """Publishes until there is a receipt, with the same numbers."""
        async with self._publishing[root]:
            messages = []
            for body in bodies:
                self._numbers[root] += 1
                number = self._numbers[root]
                id = f"{root}{number}"
                self.sent[id] = Sent(len(self.sent), body)
                numbered = Numbered("p", number)
                messages.append(Publish(self._sources[root], id, body, numbered))
            until = time.monotonic() + PATIENCE_SECONDS
            while True:
                try:
                    async with self.client(root) as client:
                        await client.publish(messages)
                    break
                except PathcastError as error:
                    # No room is told with `retry`; nobody there is `UnavailableError`.
                    may_retry = isinstance(error, UnavailableError)
                    if not may_retry and error.params.get("retry") != "yes":
                        raise
                    if time.monotonic() > until:
                        raise
                await asyncio.sleep(0.05)
            for each in messages:
                self.sent[each.message].has_receipt = True

    async def _read(self, name: str) -> None:
        while True:
            with contextlib.suppress(UnavailableError):
                async with self.client(name) as client:
                    async for group in client.deliveries(CLIENT, self._after[name]):
                        for each in group:
                            self._take(name, DELIVERIES.decode(each.body))
                        if group:
                            self._after[name] = group[-1].position
                            await client.acknowledge(group[-1].position)
            await asyncio.sleep(0.05)

    def _take(self, host: str, told: object) -> None:
        match told:
            case InForce(name):
                known = self.subscriptions[name.removeprefix(f"{CLIENT}/")]
                if known.first is None:
                    known.first = len(self.sent)
            case Delivery(name, _, _, _, _, message, results):
                id = name.removeprefix(f"{CLIENT}/")
                known = self.subscriptions[id]
                if known.host != host:
                    self.faults.append(f"{message} came to {id} from {host}, not {known.host}")
                if message in known.got:
                    self.faults.append(f"{message} came twice to {id} at {host}")
                known.got[message] = tuple(results)
            case Lapsed():
                self.faults.append(f"{told} at {host}, where nobody was taken out")
            case _:
                self.faults.append(f"{host} says {told}")

    # What goes wrong.

    async def restart(self, name: str, after_seconds: float = 0.0) -> None:
        """Kill -9, and on from its disk."""
        self.brokers.kill(name)
        await asyncio.sleep(after_seconds)
        self.brokers.start(name, is_awaited=False)

    async def begin_anew(self, name: str, after_seconds: float = 0.0) -> None:
        """Kill -9, and on without its disk: nobody is its subscriber any more."""
        self.brokers.kill(name)
        self.brokers.lose_disk(name)
        for known in self.subscriptions.values():
            known.is_wanted = known.is_wanted and known.host != name
        await asyncio.sleep(after_seconds)
        self._after[name] = 0
        self.brokers.start(name, is_awaited=False)

    async def cut(self, one: str, other: str) -> None:
        """A link is dead."""
        await asyncio.to_thread(self.wires.cut, one, other)

    async def mend(self, one: str, other: str) -> None:
        """It is not any more."""
        await asyncio.to_thread(self.wires.mend, one, other)

    async def sessions(self) -> None:
        """Waits until every broker knows all links."""

        async def are_all() -> bool:
            for status in (await self.statuses()).values():
                if not _same(status["node"]["links"], self._links_of(status["node"]["members"])):
                    return False
            return True

        await eventually(are_all)

    def _links_of(self, names: Iterable[str]) -> dict[str, list[str]]:
        running = self.brokers.processes
        return {
            name: sorted(
                b if a == name else a
                for a, b in self.links
                if name in (a, b) and a in running and b in running
            )
            for name in names
        }

    # What must be so.

    async def statuses(self) -> dict[str, dict[str, Any]]:
        """Of brokers that run."""

        async def of(name: str) -> dict[str, Any]:
            async with self.client(name) as client:
                return await client.status()

        running = sorted(self.brokers.processes)
        found = await asyncio.gather(*(of(name) for name in running))
        return dict(zip(running, found, strict=True))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds, as long as nothing is wrong."""

        def is_so() -> bool:
            assert not self.faults, self.faults
            return holds()

        await eventually(is_so)

    def due(self) -> set[tuple[str, str]]:
        """Subscription and message of what must come, as one process with all of them says."""
        first = {id: one.first for id, one in self.subscriptions.items() if one.is_wanted}
        broker = Broker()
        broker.subscribe(Subscription(id, "", self.subscriptions[id].query, "ids") for id in first)
        found: set[tuple[str, str]] = set()
        sent = [(id, one) for id, one in self.sent.items() if one.has_receipt]
        for start in range(0, len(sent), 1000):
            ids, given = zip(*sent[start : start + 1000], strict=True)
            table = broker.process_batch([one.body for one in given], ids).table
            rows = (table[name].to_pylist() for name in ("subscription_id", "message_id"))
            found.update(zip(*rows, strict=True))
        return {
            (id, message)
            for id, message in found
            if (since := first[id]) is not None and self.sent[message].number >= since
        }

    def missing(self, due: set[tuple[str, str]] | None = None) -> list[str]:
        """Deliveries that must come and are not there yet."""
        return [
            f"{message} for {id} ({known.query}) at {known.host}"
            for id, message in (self.due() if due is None else due)
            if message not in (known := self.subscriptions[id]).got
        ]

    async def settled(self) -> None:
        """Nothing lost, doubled, foreign or stale."""
        await self.in_force()
        # It takes a while after half an hour; readers go on meanwhile.
        due = await asyncio.to_thread(self.due)
        least, until = len(due) + 1, 0.0
        while missing := self.missing(due):
            if len(missing) < least:  # as long as some come there is hope
                least, until = len(missing), time.monotonic() + PATIENCE_SECONDS
            assert time.monotonic() < until, f"lost: {len(missing)}, among them {missing[:5]}"
            await asyncio.sleep(0.1)
        # Whatever is doubled comes meanwhile.
        await self._tables_are_those_from_scratch()
        await asyncio.to_thread(self._check_results)
        assert not self.faults, self.faults

    def _check_results(self) -> None:
        for id, known in self.subscriptions.items():
            for message, results in list(known.got.items()):
                expected = of_one_process(known.query, self.sent[message].body)
                assert results == expected, f"{message} gave {id} {results}, not {expected}"

    async def _tables_are_those_from_scratch(self) -> None:
        """A while after the last change; differences are told when there is no hope left."""
        probes = sorted({one.body for one in self.sent.values()})
        probes = probes[:: max(1, len(probes) // 20)]
        until = time.monotonic() + PATIENCE_SECONDS
        times_same = 0
        async with self._from_scratch() as carriers:
            while times_same < 2:
                told: dict[str, dict[str, Any]] = {}
                expected = {}
                for name, carrier in carriers.items():
                    explained = [
                        await carrier.ask(CLIENT, Explain(body), PATIENCE_SECONDS)
                        for body in probes
                    ]
                    node = carrier.kind.describe(carrier.node)
                    expected[name] = _tables(node, explained)
                with contextlib.suppress(UnavailableError):
                    for name, status in (await self.statuses()).items():
                        told[name] = _tables(status["node"], await self._explained(name, probes))
                # Once may be on the way of both to something else.
                times_same = times_same + 1 if told == expected else 0
                if not times_same and time.monotonic() > until:
                    for name, one in expected.items():
                        for key, value in one.items():
                            is_so = told.get(name, {}).get(key)
                            assert is_so == value, f"{key} of {name}: {is_so}, not {value}"
                await asyncio.sleep(0.5)

    async def _explained(self, name: str, probes: Sequence[bytes]) -> list[Explained]:
        async with self.client(name) as client:
            return [await client.ask(Explain(body)) for body in probes]  # type: ignore[misc]

    @contextlib.asynccontextmanager
    async def _from_scratch(self) -> AsyncIterator[Mapping[str, Carrier]]:
        """Brokers in this process that were only ever told what holds now."""
        names = sorted(self.brokers.processes)
        near = self._links_of(names)
        network = MemoryNetwork()
        for name in names:
            members = [each for each in names if each != name]
            kind = broker_kind(name, near[name], members=members)
            network.add(Carrier(name, kind, Disk(None), network.dial_from(name)))
        carriers = network.carriers
        for name, carrier in carriers.items():
            await carrier.start([peer for peer in near[name] if name < peer])
        for root in self._sources:
            await carriers[root].ask(
                CLIENT, RegisterSource(f"of {root}", Source()), PATIENCE_SECONDS
            )
        for id, one in self.subscriptions.items():
            if one.is_wanted:
                profiles = ((id, Profile(one.query, "fragment")),)
                host = carriers[one.host]
                answer = await host.ask(CLIENT, Subscribe(profiles), PATIENCE_SECONDS)
                assert isinstance(answer, Accepted)
                assert answer.refused == ()
        try:
            yield carriers
        finally:
            await network.stop()


def _same(links: Mapping[str, Sequence[str]], expected: dict[str, list[str]]) -> bool:
    return {name: sorted(peers) for name, peers in links.items()} == expected


def _tables(node: Mapping[str, Any], explained: Sequence[object]) -> dict[str, Any]:
    """What is told of a node that must not depend on how it came about."""
    return {
        "links": {name: sorted(peers) for name, peers in node["links"].items()},
        "members": sorted(node["members"]),
        "tree": {tree: sorted(peers) for tree, peers in node["tree"].items()},
        "tables": dict(node["tables"]),
        "subscriptions": node["subscriptions"],
        "explained": list(explained),
    }


@cache
def _one_process(query: str) -> Broker:
    broker = Broker()
    broker.subscribe([Subscription("q", "", query, "fragment")])
    return broker


@cache
def of_one_process(query: str, body: bytes) -> tuple[bytes, ...] | None:
    """What a profile gives of a message; None if it does not satisfy it."""
    given = list(_one_process(query).publish(body, "m"))
    if not given:
        return None
    return tuple(each.fragment for each in given if each.fragment is not None)

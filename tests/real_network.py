"""A network of broker processes with all that a test asks of it, and one process to compare with.

`RealNetwork` starts brokers, publishes with numbers until there is a receipt, follows every inbox
with a cursor, and has a judge (`delivery_judge`) of what every subscription must have got. At the
end nothing is lost, nothing came twice, every delivery is what one process gives, and what brokers
say of their tables is what brokers say that never knew anything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from broker_processes import BrokerProcesses
from delivery_judge import CLIENT, DeliveryJudge, Known, id_of
from pathcast.errors import PathcastError, SourceError, UnavailableError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.messages import SourceEntry
from pathcast.overlay.publishers import Numbered
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    CODEC,
    DELIVERIES,
    Explain,
    Explained,
    ListSubscriptions,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    Subscribe,
    SubscriptionsListed,
    Unsubscribe,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Disk, InboxCursor
from pathcast.transport.grpc_streams import Address
from pathcast_lab.sim.memory_streams import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually
from wires import Pair, Wires


@dataclass(frozen=True)
class Backup:
    """A backup of a broker.

    Attributes:
        path: The file.
        first: Messages of the broker from this number on may not be in it.
    """

    path: Path
    first: int


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
        self._directory = directory
        self.judge = judge = DeliveryJudge()
        self.subscriptions, self.sent = judge.subscriptions, judge.sent
        self._sources: dict[str, str] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._cursors: dict[str, InboxCursor] = {}
        self._numbers: Counter[str] = Counter()
        self._publishing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

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
        assert (
            await self.ask(root, RegisterSourceRequest(f"of {root}", SourceEntry()))
            == RequestAccepted()
        )

    async def subscribe(self, host: str, id: str, query: str) -> None:
        """Asks for it; `in_force` waits for what it may rely on. A withdrawn id is used again."""
        async with self._changing[host]:
            await self._subscribe(host, id, query)

    async def _subscribe(self, host: str, id: str, query: str) -> None:
        self.judge.ask(host, id, query)
        answer = await self.ask(host, Subscribe(((id, DeliveryProfile(query, "fragment")),)))
        assert isinstance(answer, RequestAccepted)
        assert answer.versions.keys() == {id}, answer.refused
        self.judge.answer(host, id, query, answer.versions[id])

    async def unsubscribe(self, id: str) -> None:
        """Nothing published from then on may come of it; what still comes is right."""
        async with self._changing[self.subscriptions[id].host]:
            await self._unsubscribe(id)

    async def _unsubscribe(self, id: str) -> None:
        known = self.subscriptions[id]
        known.is_wanted = False
        answer = await self.ask(known.host, Unsubscribe((id,)))
        # The first answer may be lost with its connection.
        assert [code for _, code, _ in answer.refused] in ([], ["query.unknown"])
        self.judge.withdraw(id)

    async def in_force(self, *ids: str) -> None:
        """Waits until they are, of all that are wanted if none are given."""
        await self.until(
            lambda: all(one.first is not None and not one.is_lapsed for one in self._wanted(ids))
        )

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
                self.judge.publish(root, id, body)
                numbered = Numbered("p", number)
                messages.append(PublishRequest(self._sources[root], id, body, numbered))
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
                    try:
                        async for group in client.deliveries(CLIENT, self._cursors.get(name, 0)):
                            for each in group:
                                self.judge.take(name, DELIVERIES.decode(each.body))
                            if group and client.cursor is not None:
                                self._cursors[name] = client.cursor
                                await client.acknowledge(group[-1].position)
                    except SourceError:
                        if not self.judge.has_restored(name):
                            raise
                        del self._cursors[name]  # read from the beginning of the older inbox
            await asyncio.sleep(0.05)

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
        self._cursors.pop(name, None)
        self.brokers.start(name, is_awaited=False)

    async def back_up(self, name: str) -> Backup:
        """A backup while it runs, and clients go on."""
        async with self._publishing[name]:  # each message before has a receipt
            first = len(self.sent)
        path = self._directory / f"{name}.backup-{first}"
        await asyncio.to_thread(self.brokers.back_up, name, path)
        return Backup(path, first)

    async def restore(self, name: str, backup: Backup, after_seconds: float = 0.0) -> None:
        """Kill -9, and on from a backup.

        Its clients do what they are asked to do then: its reader begins at the beginning of the
        inbox if its cursor is refused, and its subscriber subscribes anew what the backup does not
        have, and withdraws again what it had withdrawn since.

        Args:
            name: A broker.
            backup: Of it, and of since it was restored last; it is used up.
            after_seconds: For how long it does not run.
        """
        # No call of a publisher spans a restore: messages of such a call may come twice.
        async with self._changing[name], self._publishing[name]:
            self.brokers.kill(name)
            self._readers[name].cancel()
            await asyncio.wait([self._readers[name]])
            self.brokers.lose_disk(name)
            await asyncio.to_thread(self.brokers.restore, name, backup.path)
            backup.path.unlink()
            await asyncio.sleep(after_seconds)
            self.judge.restore(name, backup.first)
            self.brokers.start(name, is_awaited=False)
            self._readers[name] = asyncio.create_task(self._read(name))
            await self._subscribe_anew(name)
            self.judge.agree(name)

    async def _subscribe_anew(self, name: str) -> None:
        listed = await self.ask(name, ListSubscriptions())
        assert isinstance(listed, SubscriptionsListed)
        kept = {id_of(row.subscription): row.version for row in listed.rows}
        assert kept.keys() <= self.subscriptions.keys()
        for id, known in list(self.subscriptions.items()):
            if known.host != name:
                continue
            if not known.is_wanted:
                if id in kept:
                    await self._unsubscribe(id)
            elif not self.judge.is_kept(id, kept.get(id)):
                known.is_wanted = False
                await self._subscribe(name, id, known.query)

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
            assert not self.judge.faults, self.judge.faults
            return holds()

        await eventually(is_so)

    async def settled(self) -> None:
        """Nothing lost, doubled, foreign or stale."""
        await self.in_force()
        # It takes a while after half an hour; readers go on meanwhile.
        due = await asyncio.to_thread(self.judge.due)
        least, until = len(due) + 1, 0.0
        while missing := self.judge.missing(due):
            if len(missing) < least:  # as long as some come there is hope
                least, until = len(missing), time.monotonic() + PATIENCE_SECONDS
            assert time.monotonic() < until, f"lost: {len(missing)}, among them {missing[:5]}"
            await asyncio.sleep(0.1)
        # Whatever is doubled comes meanwhile.
        await self._tables_are_those_from_scratch()
        await asyncio.to_thread(self.judge.check_results)
        assert not self.judge.faults, self.judge.faults

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
                CLIENT, RegisterSourceRequest(f"of {root}", SourceEntry()), PATIENCE_SECONDS
            )
        for id, one in self.subscriptions.items():
            if one.is_wanted:
                profiles = ((id, DeliveryProfile(one.query, "fragment")),)
                host = carriers[one.host]
                answer = await host.ask(CLIENT, Subscribe(profiles), PATIENCE_SECONDS)
                assert isinstance(answer, RequestAccepted)
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

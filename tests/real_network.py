"""A network of broker processes with all that a test asks of it, and one process to compare with.

`RealNetwork` starts brokers, publishes with numbers until there is a receipt, follows every inbox
with a cursor, and knows what every subscription must have got. At the end nothing is lost, nothing
came twice, every delivery is what one process gives, and what brokers say of their tables is what
brokers say that never knew anything else.

A subscription is judged by the version that its broker answered: an id that is used again has
another version, which is another subscription. From `InForce` of a version on, every message that
satisfies it is due, until the id is withdrawn.

After a restore of a broker from a backup, a message may be missing only if

- the broker is its root and took it after the backup began, and the subscriber was told `Lapsed`
  after the restore; or
- the broker is the host of the subscription, which was told `Lapsed`, and the message was published
  before the `InForce` that followed.

A restored inbox hands over again what its subscriber had read; each delivery at most once more.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from broker_processes import BrokerProcesses
from pathcast import Broker, Subscription
from pathcast.errors import PathcastError, SourceError, UnavailableError
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
    ListSubscriptions,
    Publish,
    RegisterSource,
    Subscribe,
    SubscriptionsListed,
    Unsubscribe,
    broker_kind,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Disk, InboxCursor
from pathcast.transport.grpc_streams import Address
from pathcast.transport.memory import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually
from wires import Pair, Wires

CLIENT = "tester"


@dataclass
class Known:
    """One version of a subscription, as its subscriber knows it.

    Attributes:
        host: Broker that it is at.
        query: Its profile; empty if the answer to `Subscribe` was lost with its connection.
        first: Messages from this number on must come; None while it is not in force.
        is_wanted: Whether nobody withdrew it.
        ended: Messages from this number on must not come; None while it is not withdrawn.
        lapsed: Number of messages that had been published when it was told `Lapsed` last.
        is_lapsed: Whether `InForce` is still to follow on that.
        got: Message -> what came of it.
        may_repeat: Messages that the restored inbox may hand over again.
    """

    host: str
    query: str = ""
    first: int | None = None
    is_wanted: bool = False
    ended: int | None = None
    lapsed: int = -1
    is_lapsed: bool = False
    got: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    may_repeat: set[str] = field(default_factory=set)


@dataclass
class Sent:
    """A message that was published, or is being published."""

    root: str
    number: int
    body: bytes
    has_receipt: bool = False


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
        self._directory, self._joining = directory, joining
        self.subscriptions: dict[str, Known] = {}
        """Id -> its latest version."""
        self.versions: dict[tuple[str, int], Known] = {}
        """All versions of all ids."""
        self.sent: dict[str, Sent] = {}
        self.faults: list[str] = []
        """What must not be, as it is seen."""
        self._sources: dict[str, str] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._cursors: dict[str, InboxCursor] = {}
        self._numbers: Counter[str] = Counter()
        self._publishing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        # Restored broker -> numbers of its messages that it may have lost, for each restore.
        self._restored: dict[str, list[range]] = {}
        # Id -> profiles that it was ever asked to have.
        self._asked: defaultdict[str, set[str]] = defaultdict(set)

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
        assert await self.ask(root, RegisterSource(f"of {root}", Source())) == Accepted()

    async def subscribe(self, host: str, id: str, query: str) -> None:
        """Asks for it; `in_force` waits for what it may rely on. A withdrawn id is used again."""
        async with self._changing[host]:
            await self._subscribe(host, id, query)

    async def _subscribe(self, host: str, id: str, query: str) -> None:
        former = self.subscriptions.get(id)
        assert former is None or (former.host == host and not former.is_wanted), "the id is in use"
        self._asked[id].add(query)
        answer = await self.ask(host, Subscribe(((id, Profile(query, "fragment")),)))
        assert isinstance(answer, Accepted)
        assert answer.versions.keys() == {id}, answer.refused
        # Deliveries and notices of it may have been read before the answer.
        known = self.subscriptions[id] = self._version(host, id, answer.versions[id])
        assert not known.query, f"{id} was given version {answer.versions[id]} before"
        known.query, known.is_wanted = query, True
        self._end_versions(id, but=known)

    async def unsubscribe(self, id: str) -> None:
        """Nothing published from then on may come of it; what still comes is right."""
        known = self.subscriptions[id]
        async with self._changing[known.host]:
            await self._unsubscribe(id)

    async def _unsubscribe(self, id: str) -> None:
        known = self.subscriptions[id]
        known.is_wanted = False
        answer = await self.ask(known.host, Unsubscribe((id,)))
        # The first answer may be lost with its connection.
        assert [code for _, code, _ in answer.refused] in ([], ["query.unknown"])
        self._end_versions(id)

    def _end_versions(self, id: str, but: Known | None = None) -> None:
        for (each, _), one in self.versions.items():
            if each == id and one.ended is None and one is not but:
                one.ended = len(self.sent)

    def _version(self, host: str, id: str, version: int) -> Known:
        return self.versions.setdefault((id, version), Known(host))

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
                self.sent[id] = Sent(root, len(self.sent), body)
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
                    try:
                        async for group in client.deliveries(CLIENT, self._cursors.get(name, 0)):
                            for each in group:
                                self._take(name, DELIVERIES.decode(each.body))
                            if group and client.cursor is not None:
                                self._cursors[name] = client.cursor
                                await client.acknowledge(group[-1].position)
                    except SourceError:
                        if name not in self._restored:
                            raise
                        del self._cursors[name]  # read from the beginning of the older inbox
            await asyncio.sleep(0.05)

    def _take(self, host: str, told: object) -> None:
        match told:
            case InForce(name, version):
                known = self._version(host, _id(name), version)
                known.is_lapsed = False
                if known.first is None:
                    known.first = len(self.sent)
            case Delivery():
                self._take_delivery(host, told)
            case Lapsed():
                self._lapse(host, told)
            case _:
                self.faults.append(f"{host} says {told}")

    def _take_delivery(self, host: str, told: Delivery) -> None:
        id, message = _id(told.subscription), told.message
        known = self._version(host, id, told.version)
        if known.host != host:
            self.faults.append(f"{message} came to {id} from {host}, not {known.host}")
        if message in known.got and message not in known.may_repeat:
            self.faults.append(f"{message} came twice to {id} at {host}: {told}")
        if known.ended is not None and self.sent[message].number >= known.ended:
            self.faults.append(f"{message} came to {id} at {host}, which was withdrawn: {told}")
        known.may_repeat.discard(message)
        known.got[message] = tuple(told.results)

    def _lapse(self, host: str, told: Lapsed) -> None:
        known = self._version(host, _id(told.subscription), told.version)
        roots = {told.root} if told.root else self._sources.keys()
        is_due = host in self._restored or not self._restored.keys().isdisjoint(roots)
        if not is_due and not (host in self._joining and self._is_of_before(known, told)):
            self.faults.append(f"{told} at {host}, and there is no reason")
        known.lapsed, known.is_lapsed = len(self.sent), True
        if host in self._restored and not told.root:
            known.first = None

    def _is_of_before(self, known: Known, told: Lapsed) -> bool:
        """Whether all positions are from before it was in force.

        A broker that joins may be in force before a root tells it where its log begins.
        """
        before = [one for one in self.sent.values() if one.root == told.root]
        return told.last <= sum(one.number < (known.first or 0) for one in before)

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
            here = [one for one in self.versions.values() if one.host == name]
            for known in here:
                known.may_repeat = set(known.got)
                known.ended = None  # the backup may have it
            self._restored.setdefault(name, []).append(range(backup.first, len(self.sent)))
            self.brokers.start(name, is_awaited=False)
            self._readers[name] = asyncio.create_task(self._read(name))
            await self._subscribe_anew(name)
            for known in here:
                if not known.is_wanted and known.ended is None:
                    known.ended = len(self.sent)

    async def _subscribe_anew(self, name: str) -> None:
        listed = await self.ask(name, ListSubscriptions())
        assert isinstance(listed, SubscriptionsListed)
        kept = {_id(row.subscription): row.version for row in listed.rows}
        assert kept.keys() <= self.subscriptions.keys()
        for id, known in list(self.subscriptions.items()):
            if known.host != name:
                continue
            if not known.is_wanted:
                if id in kept:
                    await self._unsubscribe(id)
            elif self.versions.get((id, kept.get(id, 0))) is not known:
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
            assert not self.faults, self.faults
            return holds()

        await eventually(is_so)

    def due(self) -> set[tuple[str, int, str]]:
        """Subscription, version and message of what must come, as one process says.

        Of a version that was withdrawn, all that its root published before the last message that
        came for it: what was under way then need not come any more.
        """
        wanted = {one.query for one in self.versions.values() if one.first is not None}
        messages = self._satisfying(wanted - {""})
        found: set[tuple[str, int, str]] = set()
        for (id, version), known in self.versions.items():
            if known.query and known.first is not None:
                lasts = self._lasts(known)
                due = (each for each in messages[known.query] if self._is_due(known, lasts, each))
                found.update((id, version, each) for each in due)
        return found

    def _satisfying(self, queries: Set[str]) -> Mapping[str, list[str]]:
        """Profile -> messages with a receipt that satisfy it."""
        broker = Broker()
        broker.subscribe(Subscription(query, "", query, "ids") for query in sorted(queries))
        found: defaultdict[str, list[str]] = defaultdict(list)
        sent = [(id, one) for id, one in self.sent.items() if one.has_receipt]
        for start in range(0, len(sent), 1000):
            ids, given = zip(*sent[start : start + 1000], strict=True)
            table = broker.process_batch([one.body for one in given], ids).table
            rows = (table[name].to_pylist() for name in ("subscription_id", "message_id"))
            for query, message in zip(*rows, strict=True):
                found[query].append(message)
        return found

    def _lasts(self, known: Known) -> Mapping[str, int]:
        """Root -> number that bounds what is due of its messages."""
        if known.is_wanted:
            return dict.fromkeys(self._sources, len(self.sent))
        lasts: Counter[str] = Counter()
        for each in known.got:
            sent = self.sent[each]
            lasts[sent.root] = max(lasts[sent.root], sent.number)
        return lasts

    def _is_due(self, known: Known, lasts: Mapping[str, int], message: str) -> bool:
        one = self.sent[message]
        if known.first is None or not known.first <= one.number < lasts[one.root]:
            return False
        gaps = self._restored.get(one.root, ())
        return not any(one.number in gap and known.lapsed >= gap.stop for gap in gaps)

    def missing(self, due: set[tuple[str, int, str]] | None = None) -> list[str]:
        """Deliveries that must come and are not there yet."""
        return [
            f"{message} for {id} of version {version} ({known.query}) at {known.host}"
            for id, version, message in (self.due() if due is None else due)
            if message not in (known := self.versions[id, version]).got
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
        for (id, version), known in self.versions.items():
            queries = [known.query] if known.query else sorted(self._asked[id])
            for message, results in list(known.got.items()):
                expected = [of_one_process(each, self.sent[message].body) for each in queries]
                assert results in expected, (
                    f"{message} gave {id} of version {version} {results}, not {expected}"
                )

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


def _id(name: str) -> str:
    """The id of a subscription, as its client knows it."""
    return name.removeprefix(f"{CLIENT}/")


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

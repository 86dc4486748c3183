"""A ring of peer processes with all that a test asks of it, and one process to compare with.

Peers run in network namespaces, or on loopback where those cannot be made (`wires`); every two of
them have a link of their own. `RealRing` registers queries, publishes until what becomes of a
message is proved, and reads every inbox. What a *proved* publication told is what one process with
all queries says, no more, no less and nothing twice; what is not proved told nothing foreign.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations, cycle
from pathlib import Path
from typing import Any, ClassVar

from broker_processes import BrokerProcesses
from pathcast import Query, Registry
from pathcast.dht.subscriptions import Matched, Subscribed
from pathcast.errors import UnavailableError
from pathcast.transport.client import BrokerClient
from pathcast.transport.grpc_streams import Address
from pathcast.transport.peer import (
    CODEC,
    TOLD,
    LeaveRing,
    Left,
    PeerAccepted,
    PeerPublish,
    PublicationReport,
    Register,
    StandingQuery,
)
from patience import PATIENCE_SECONDS, eventually
from wires import Loopback, Wires, wires

CLIENT = "tester"
BASE = 4


class PeerProcesses(BrokerProcesses):
    """Peers, each linked with each; the first four are the base."""

    COMMAND: ClassVar[tuple[str, ...]] = ("peer", "run")

    def __init__(
        self,
        directory: Path,
        names: Sequence[str],
        wires: Wires,
        ring: Mapping[str, float | str],
    ) -> None:
        self._names = list(names)
        self._ring = "".join(f"{key} = {value}\n" for key, value in ring.items())
        links = list(combinations(names, 2))
        super().__init__(directory, names, links, wires, are_started=False)

    def _write(self, name: str, near: Iterable[str]) -> None:
        lines = [
            f'[peer]\nname = "{name}"\ndirectory = "{name}"',
            f'listen = "{self._wires.listens(name)}"\nallow_plain = true',
            f"[ring]\nbase = {self._names[:BASE]}\n{self._ring}".replace("'", '"'),
        ]
        for peer in near:
            address = self._wires.called_at(*sorted((name, peer)))
            lines.append(f'[[peers]]\nname = "{peer}"\naddress = "{address}"')
        lines.append(f'[[clients]]\nname = "{CLIENT}"\ntoken = "{CLIENT}!"\noperate = true')
        (self._directory / f"{name}.toml").write_text("\n".join(lines) + "\n")


class RealRing:
    """See the module.

    Args:
        directory: For all files.
        names: Of the peers; the first four are the base.
        ring: Keys of the section `ring`.
    """

    def __init__(
        self, directory: Path, names: Sequence[str], ring: Mapping[str, float | str]
    ) -> None:
        self.names = list(names)
        links = list(combinations(names, 2))
        self.wires = wires(names, links, ())
        if isinstance(self.wires, Loopback):
            # Without namespaces a link is cut at its proxy.
            self.wires = Loopback(names, links)
            # Whoever refuses there is the proxy.
            ring = {**ring, "refused_is_dead": "false"}
        self.peers = PeerProcesses(directory, names, self.wires, ring)
        self.queries: dict[str, str] = {}
        self.messages: dict[str, bytes] = {}
        self.outcomes: dict[str, PublicationReport] = {}
        """By publication."""
        self.matched: Counter[tuple[str, str]] = Counter()
        """Query and publication."""
        self.subscribed: set[str] = set()
        self.left: set[str] = set()
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._count = 0

    @contextlib.asynccontextmanager
    async def running(self, names: Sequence[str]) -> AsyncIterator[RealRing]:
        """These peers run, and are on the ring; all that run are killed at the end."""
        try:
            for name in names:
                self.peers.start(name, is_awaited=False)
            for name in self.names:
                self._readers[name] = asyncio.create_task(self._read(name))
            for name in names:
                await self.until_member(name)
            yield self
        finally:
            for task in self._readers.values():
                task.cancel()
            results = await asyncio.gather(*self._readers.values(), return_exceptions=True)
            self.peers.stop()
            self.wires.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    def client(self, name: str) -> BrokerClient:
        """Of a peer."""
        target = self.peers.addresses[name]
        return BrokerClient(CLIENT, Address(name, target, f"{CLIENT}!", allow_plain=True), CODEC)

    async def node(self, name: str) -> dict[str, Any]:
        """What a peer says of itself; nothing if it is not there."""
        with contextlib.suppress(UnavailableError):
            async with self.client(name) as client:
                return dict((await client.status()).get("node", {}))
        return {}

    async def until_member(self, name: str, is_member: bool = True) -> None:
        """A peer is on the ring, or not on it."""

        async def is_so() -> bool:
            return (await self.node(name)).get("is_member") is is_member

        await eventually(is_so)

    async def register(self, name: str, queries: Mapping[str, str]) -> None:
        """Queries at a peer; not yet in force."""
        self.queries |= queries
        rows = tuple(StandingQuery(id, text) for id, text in queries.items())
        async with self.client(name) as client:
            assert await client.ask(Register(rows)) == PeerAccepted()

    async def leave(self, name: str) -> None:
        """A peer leaves the ring, and its process ends."""
        async with self.client(name) as client:
            assert await client.ask(LeaveRing()) == PeerAccepted()
        await eventually(lambda: name in self.left)
        self.peers.kill(name)

    async def publish(self, name: str, body: bytes) -> str:
        """A message, by way of a peer; its id, under which `outcome_of` finds it."""
        self._count += 1
        id = f"m{self._count}"
        self.messages[id] = body
        async with self.client(name) as client:
            assert await client.publish([PeerPublish(id, body)]) == []
        return id

    def outcome_of(self, id: str) -> PublicationReport | None:
        """What became of a message, once it is known."""
        return next((each for each in self.outcomes.values() if each.message == id), None)

    def has_outcome(self, id: str) -> bool:
        """Whether it is known what became of a message."""
        return self.outcome_of(id) is not None

    async def published(self, names: Sequence[str], body: bytes) -> None:
        """Publishes a message by way of one peer after the other, until that is proved."""
        until = time.monotonic() + PATIENCE_SECONDS
        for name in cycle(names):
            id = await self.publish(name, body)
            await eventually(partial(self.has_outcome, id))
            outcome = self.outcome_of(id)
            assert outcome is not None
            if outcome.published.is_proved:
                return
            assert time.monotonic() < until, f"none of {names} has proved it"

    def check(self) -> tuple[int, int]:
        """Compares with one process.

        Returns:
            Matches of proved publications, and publications that were not proved.
        """
        index = Registry()
        index.add([Query(id, text) for id, text in self.queries.items()])
        bodies = list(self.messages.values())
        answers = index.freeze().match(bodies)
        due = {id: set(answer.query_ids) for id, answer in zip(self.messages, answers, strict=True)}
        assert max(self.matched.values()) == 1
        told: dict[str, set[str]] = {publication: set() for publication in self.outcomes}
        for query, publication in self.matched:
            told.setdefault(publication, set()).add(query)
        matches = unproved = 0
        for publication, outcome in self.outcomes.items():
            if outcome.published.is_proved:
                assert told[publication] == due[outcome.message], (publication, outcome)
                matches += len(told[publication])
            else:
                assert told[publication] <= due[outcome.message], (publication, outcome)
                unproved += 1
        return matches, unproved

    async def _read(self, name: str) -> None:
        after = 0
        while True:
            with contextlib.suppress(UnavailableError):
                async with self.client(name) as client:
                    async for group in client.deliveries(CLIENT, after):
                        for each in group:
                            self._take(TOLD.decode(each.body))
                        after = group[-1].position
            await asyncio.sleep(0.1)

    def _take(self, told: object) -> None:
        match told:
            case Subscribed(id):
                self.subscribed.add(id.removeprefix(f"{CLIENT}/"))
            case Matched(id, publication):
                self.matched[id.removeprefix(f"{CLIENT}/"), publication] += 1
            case PublicationReport():
                self.outcomes[told.published.publication] = told
            case Left(peer):
                self.left.add(peer)

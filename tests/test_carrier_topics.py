"""Carriers over topics: the interface of a carrier is enough for a log that outlives its writers.

A `Topic` is what Kafka gives a program: records that are appended, kept, and read from a position.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from flooding import Publish, flooding
from killed_carriers import abandon
from pathcast.errors import PathcastError, UnavailableError
from pathcast.transport.carrier import Carrier
from pathcast.transport.disk import Disk
from patience import eventually
from test_carrier import LINE, delivered

ALL = ""
"""Id of a record that ends all streams of whoever appends it."""


@dataclass
class Topic:
    """An append-only log: (id of a stream, frame), None for its end."""

    records: list[tuple[str, bytes | None]] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def append(self, stream: str, data: bytes | None) -> None:
        self.records.append((stream, data))
        async with self.changed:
            self.changed.notify_all()

    async def reaches(self, at: int, or_else: Callable[[], bool] = lambda: False) -> None:
        """Waits until there is a record at a position."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.records) > at or or_else())


class TopicStream:
    """One end of a stream over two topics.

    Args:
        id: Of the stream, in both.
        outgoing: Is appended to.
        incoming: Is read from `at` on.
        at: Position of the record that opened the stream, or of what follows it.
        is_dead: Whether its owner was killed, and appends nothing any more.
    """

    def __init__(
        self, id: str, outgoing: Topic, incoming: Topic, at: int, is_dead: Callable[[], bool]
    ) -> None:
        self._id = id
        self._is_dead = is_dead
        self._outgoing = outgoing
        self._incoming = incoming
        self._at = at
        self._is_closed = False

    async def send(self, data: bytes) -> None:
        if self._is_closed:
            raise UnavailableError("peer.unreachable", name=self._id, reason="it has ended")
        await self._outgoing.append(self._id, data)

    async def receive(self) -> bytes | None:
        while not self._is_closed:
            await self._incoming.reaches(self._at, lambda: self._is_closed)
            if self._is_closed:
                return None
            id, data = self._incoming.records[self._at]
            self._at += 1
            if id in (self._id, ALL):
                self._is_closed = data is None
                return data
        return None

    async def close(self, error: PathcastError | None = None) -> None:
        if not self._is_closed:
            self._is_closed = True
            if not self._is_dead():
                await self._outgoing.append(self._id, None)
            async with self._incoming.changed:
                self._incoming.changed.notify_all()


class TopicNetwork:
    """Carriers that reach each other by topics named "FROM>TO", which outlive them."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.carriers: dict[str, Carrier] = {}
        self._accepting: dict[str, list[asyncio.Task[None]]] = {}
        self._ids = (f"stream-{number}" for number in itertools.count())

    def topic(self, sender: str, receiver: str) -> Topic:
        return self.topics.setdefault(f"{sender}>{receiver}", Topic())

    async def start(self, name: str, directory: Path) -> None:
        async def dial(peer: str) -> TopicStream:
            if peer not in self.carriers:
                raise UnavailableError("peer.unreachable", name=peer, reason="nobody reads")
            out, back = self.topic(name, peer), self.topic(peer, name)
            id, at = next(self._ids), len(back.records)
            await out.append(id, b"")
            return TopicStream(id, out, back, at, lambda: self.carriers.get(name) is not carrier)

        carrier = Carrier(name, flooding(name, LINE[name]), Disk(directory), dial)
        self.carriers[name] = carrier
        # Those who wait for a former life to say more are told; what it opened opens nothing.
        for peer in LINE[name]:
            await self.topic(name, peer).append(ALL, None)
        self._accepting[name] = [
            asyncio.create_task(self._accept(carrier, peer, len(self.topic(peer, name).records)))
            for peer in LINE[name]
            if peer < name
        ]
        await carrier.start([peer for peer in LINE[name] if name < peer])

    async def _accept(self, carrier: Carrier, peer: str, at: int) -> None:
        incoming, outgoing = self.topic(peer, carrier.name), self.topic(carrier.name, peer)
        opened: set[str] = set()

        def is_dead() -> bool:
            return self.carriers.get(carrier.name) is not carrier

        async with asyncio.TaskGroup() as serving:
            while True:
                await incoming.reaches(at)
                id, data = incoming.records[at]
                at += 1
                if data == b"" and id not in opened:
                    opened.add(id)
                    stream = TopicStream(id, outgoing, incoming, at, is_dead)
                    serving.create_task(self._serve(carrier, peer, stream))

    async def _serve(self, carrier: Carrier, peer: str, stream: TopicStream) -> None:
        with contextlib.suppress(PathcastError):
            await carrier.serve(peer, stream)

    async def kill(self, name: str) -> None:
        carrier = self.carriers.pop(name)
        await self._stop_accepting(name)
        await abandon(carrier)

    async def stop(self) -> None:
        for name, carrier in list(self.carriers.items()):
            await carrier.stop()
            await self._stop_accepting(name)

    async def _stop_accepting(self, name: str) -> None:
        for task in self._accepting.pop(name):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_over_topics_that_outlive_carriers(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        network = TopicNetwork()
        for name in LINE:
            await network.start(name, tmp_path / name)
        ids = [f"m{number}" for number in range(300)]
        for place in range(0, len(ids), 10):
            messages = [Publish(id, b"x") for id in ids[place : place + 10]]
            await network.carriers["a"].submit("publisher", messages)
            if chance.random() < 0.3:
                name = chance.choice("bc")
                await network.kill(name)
                await network.start(name, tmp_path / name)
        carriers = network.carriers.values()
        await eventually(lambda: all(len(delivered(c)) >= len(ids) for c in carriers))
        for carrier in carriers:
            assert sorted(delivered(carrier)) == sorted(ids)
        assert len(network.topics) == 4
        assert all(topic.records for topic in network.topics.values())
        await network.stop()

    asyncio.run(main())

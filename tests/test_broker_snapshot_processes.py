"""A broker process with a snapshot of its profiles, killed while profiles come and go.

If it fails, a broker that was killed has lost profiles that it took, answers for some that were
withdrawn, or tells that its snapshot cannot be used.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from broker_processes import BrokerProcesses
from pathcast import Registry, Subscription
from pathcast.errors import PathcastError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery
from pathcast.overlay.messages import SourceEntry
from pathcast.transport.broker_requests import (
    CODEC,
    DELIVERIES,
    PublishRequest,
    RegisterSourceRequest,
    Subscribe,
    Unsubscribe,
)
from pathcast.transport.client import BrokerClient
from pathcast.transport.grpc_streams import Address
from patience import PATIENCE_SECONDS, wait_until

KILLS = 3
PROFILES = 1_200
"""More than without which no snapshot is made."""

MESSAGES = [f"<order><no>{n}</no><sum>{n % 7}</sum></order>".encode() for n in range(0, 1500, 50)]


class OftenReviewed(BrokerProcesses):
    """Its snapshots are made as soon as they are due."""

    def command(self, name: str) -> list[str]:
        return [*super().command(name), "--set", "broker.table_review_seconds=0.05"]


def query(number: int) -> str:
    if number % 3 == 0:
        return f"for $o in /order where $o/no = {number} return <o n='{number}'>{{$o/sum}}</o>"
    return f"//order[no >= {number}][sum = {number % 7}]/no"


async def change(
    client: BrokerClient, asked: dict[str, str | None], unsure: set[str], draw: Random
) -> None:
    """Profiles come, change and go, until the broker is killed."""
    while True:
        ids = [f"s{draw.randrange(PROFILES)}" for _ in range(200)]
        unsure |= set(ids)
        if draw.random() < 0.4:
            await client.ask(Unsubscribe(tuple(dict.fromkeys(ids))))
            asked.update(dict.fromkeys(ids))
        else:
            rows = {id: query(draw.randrange(1500)) for id in ids}
            await client.ask(
                Subscribe(tuple((id, DeliveryProfile(q, "fragment")) for id, q in rows.items()))
            )
            asked.update(rows)
        unsure -= set(ids)


def expected(asked: dict[str, str | None], message: bytes) -> dict[str, tuple[bytes, ...]]:
    """What one process gives."""
    registry = Registry()
    registry.add([Subscription(id, id, text) for id, text in asked.items() if text is not None])
    found: dict[str, tuple[bytes, ...]] = {}
    for one in registry.deliver(message):
        found[one.subscription_id] = (*found.get(one.subscription_id, ()), one.fragment or b"")
    return found


def test_killed_while_profiles_come_and_go_it_answers_as_one_process(tmp_path: Path) -> None:
    draw = Random(3)
    brokers = OftenReviewed(tmp_path, ["b"])
    address = Address("b", brokers.addresses["b"], "tester!", allow_plain=True)
    files = tmp_path / "b"

    async def main() -> None:
        asked: dict[str, str | None] = {f"s{n}": query(n) for n in range(PROFILES)}
        async with BrokerClient("tester", address, CODEC) as client:
            await client.ask(RegisterSourceRequest("orders", SourceEntry()))
            rows = tuple((id, DeliveryProfile(q or "", "fragment")) for id, q in asked.items())
            await client.ask(Subscribe(rows))
        wait_until(lambda: bool(list(files.glob("profiles-*.snapshot"))))
        for kill in range(KILLS):
            unsure: set[str] = set()
            async with BrokerClient("tester", address, CODEC) as client:
                changes = asyncio.create_task(change(client, asked, unsure, draw))
                await asyncio.sleep(draw.uniform(0.2, 1.5))
                await asyncio.to_thread(brokers.kill, "b")
                with contextlib.suppress(PathcastError):
                    await changes
            await asyncio.to_thread(brokers.start, "b")
            async with BrokerClient("tester", address, CODEC) as client:
                if unsure:  # nobody was told of the last change
                    await client.ask(Unsubscribe(tuple(unsure)))
                    asked.update(dict.fromkeys(unsure))
                ids = {f"{kill}-{n}": body for n, body in enumerate(MESSAGES)}
                await client.publish([PublishRequest("orders", id, b) for id, b in ids.items()])
                wanted = {id: expected(asked, body) for id, body in ids.items()}
                wanted = {id: given for id, given in wanted.items() if given}
                assert wanted
                got: dict[str, dict[str, tuple[bytes, ...]]] = {}
                async with asyncio.timeout(PATIENCE_SECONDS):
                    async for group in client.deliveries("tester"):
                        for told in (DELIVERIES.decode(each.body) for each in group):
                            if isinstance(told, InboxDelivery) and told.message in ids:
                                name = told.subscription.removeprefix("tester/")
                                assert name not in got.setdefault(told.message, {}), "twice"
                                got[told.message][name] = told.results
                        if sum(map(len, got.values())) >= sum(map(len, wanted.values())):
                            break
                assert got == wanted

    try:
        asyncio.run(main())
    finally:
        brokers.stop()
    log = (tmp_path / "b.log").read_text()
    assert "has kept a snapshot" in log
    assert "cannot keep" not in log
    assert "snapshot." not in log, "it could be used each time"

"""Calls of clients that are there together are one event of a broker, and each has its own answer.

If these fail, a broker does the work of an event for each call, or a call is answered for another
one, or refused with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from pathcast.errors import DiskError, PathcastError, PublicationError
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery
from pathcast.overlay.messages import SourceEntry
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    DELIVERIES,
    FindSource,
    PublishRequest,
    RegisterSourceRequest,
    SourceFound,
    Subscribe,
)
from pathcast.transport.calls import TOGETHER_BYTES, TOGETHER_MAX, ClientCall, Outcomes
from pathcast.transport.carrier import Carrier
from pathcast.transport.disk import Disk
from patience import PATIENCE_SECONDS, eventually

CLIENTS = [f"c{number}" for number in range(8)]


@asynccontextmanager
async def broker(directory: Path | None = None) -> AsyncIterator[tuple[Carrier, list[list[str]]]]:
    """A broker with a source of each client, and the clients whose calls each event has had."""
    events: list[list[str]] = []
    kind = broker_kind("a", [])
    request = kind.request
    assert request is not None

    def watched(node: BrokerNode, calls: Sequence[ClientCall], now: float) -> Outcomes:
        events.append([client for client, _ in calls])
        return request(node, calls, now)

    carrier = Carrier("a", replace(kind, request=watched), Disk(directory))
    await carrier.start()
    for client in CLIENTS:
        asked = RegisterSourceRequest(f"of {client}", SourceEntry())
        await carrier.ask(client, asked, PATIENCE_SECONDS)
    profile = DeliveryProfile("//a", "ids")
    await carrier.ask("ann", Subscribe((("q", profile),)), PATIENCE_SECONDS)
    events.clear()
    yield carrier, events
    await carrier.stop()


def published(client: str, *ids: str) -> list[PublishRequest]:
    return [PublishRequest(f"of {client}", id, b"<a/>") for id in ids]


def delivered(carrier: Carrier) -> list[str]:
    told = [DELIVERIES.decode(each.body) for each in carrier.disk.waiting("ann", 0, 10_000)]
    return [each.message for each in told if isinstance(each, InboxDelivery)]


def test_calls_that_are_there_together_are_one_event() -> None:
    async def main() -> None:
        async with broker() as (carrier, events):
            calls = [carrier.submit(client, published(client, client)) for client in CLIENTS]
            # Of somebody else's source; and a question, which has an answer.
            calls.insert(3, carrier.submit("c1", published("c5", "stolen")))
            calls.insert(6, carrier.submit("c2", [FindSource("of c2")]))
            answers = await asyncio.gather(*calls, return_exceptions=True)
            refused, found = answers.pop(3), answers.pop(5)
            assert events == [[*CLIENTS[:3], "c1", "c3", "c4", "c2", *CLIENTS[5:]]]
            assert isinstance(refused, PublicationError)
            assert isinstance(found, list)
            assert found == [SourceFound("a", "a", SourceEntry())]
            assert answers == [[]] * len(CLIENTS)
            await eventually(lambda: delivered(carrier) == CLIENTS)

    asyncio.run(main())


def test_so_many_messages_are_done_in_one_event_and_the_rest_after_it() -> None:
    async def main() -> None:
        async with broker() as (carrier, events):
            count = TOGETHER_MAX // 8
            ids = {client: [f"{client}-{n}" for n in range(count * 2)] for client in CLIENTS}
            await asyncio.gather(
                *(carrier.submit(client, published(client, *its)) for client, its in ids.items())
            )
            assert events == [CLIENTS[:4], CLIENTS[4:]]
            expected = [id for its in ids.values() for id in its]
            await eventually(lambda: delivered(carrier) == expected)

    asyncio.run(main())


def test_long_messages_are_not_one_record_with_all_others() -> None:
    """One record of all would be as long as they are together, beyond what a database takes."""

    async def main() -> None:
        async with broker() as (carrier, events):
            long = b"<a>" + b" " * TOGETHER_BYTES + b"</a>"
            calls = [
                carrier.submit(client, [PublishRequest(f"of {client}", client, body)])
                for client, body in zip(
                    CLIENTS[:5], [b"<a/>", long, long, b"<a/>", b"<a/>"], strict=True
                )
            ]
            await asyncio.gather(*calls)
            assert events == [CLIENTS[:2], CLIENTS[2:3], CLIENTS[3:5]]
            await eventually(lambda: delivered(carrier) == CLIENTS[:5])

    asyncio.run(main())


def test_who_does_not_wait_any_more_keeps_nobody_from_an_answer() -> None:
    async def main() -> None:
        async with broker() as (carrier, events):
            calls = [
                asyncio.create_task(carrier.submit(client, published(client, client)))
                for client in CLIENTS
            ]
            await asyncio.sleep(0)
            calls[2].cancel()
            answers = await asyncio.gather(*calls, return_exceptions=True)
            assert isinstance(answers.pop(2), asyncio.CancelledError)
            assert answers == [[]] * (len(CLIENTS) - 1)
            assert events == [CLIENTS]

    asyncio.run(main())


def test_calls_of_an_event_that_is_not_kept_have_no_receipt(tmp_path: Path) -> None:
    async def main() -> None:
        async with broker(tmp_path / "disk") as (carrier, _):

            def fail(*_: object) -> None:
                raise DiskError("disk.failed", path="disk", reason="it is full")

            carrier.disk.commit = fail  # type: ignore[assignment]
            for told in await asyncio.gather(
                *(carrier.submit(client, published(client, client)) for client in CLIENTS),
                return_exceptions=True,
            ):
                assert isinstance(told, DiskError)
            # Nor has anybody who calls now.
            with pytest.raises(PathcastError):
                await carrier.submit("c1", published("c1", "later"))
            with pytest.raises(DiskError):
                await carrier.run()

    asyncio.run(main())


def test_effects_that_cannot_be_done_end_the_calls_that_gave_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        async with broker() as (carrier, _):
            with monkeypatch.context() as patch:
                patch.setattr(carrier, "_do", Mock(side_effect=ValueError("no frame")))
                with pytest.raises(ValueError, match="no frame"):
                    await carrier.ask("c1", FindSource("of c1"), PATIENCE_SECONDS)
            answer = await carrier.ask("c1", FindSource("of c1"), PATIENCE_SECONDS)
            assert isinstance(answer, SourceFound)

    asyncio.run(run())

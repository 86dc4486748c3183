"""A client reads and changes nothing of another's, whatever the two are called.

If these fail, a subscriber's token opens somebody else's inbox, or takes out its subscriptions.
"""

from __future__ import annotations

import asyncio
from itertools import permutations
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from pydantic import ValidationError

from pathcast.errors import PathcastError, PeerRefusedError, PublicationError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery, InForce
from pathcast.overlay.messages import SourceEntry
from pathcast.overlay.publishers import Numbered
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    CODEC,
    DELIVERIES,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    Subscribe,
    Unsubscribe,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.client import BrokerClient
from pathcast.transport.grpc_streams import Address
from pathcast.transport.peer import PeerAccepted as Begun
from pathcast.transport.peer import Register, StandingQuery, Withdraw
from pathcast.transport.process import read_control, running
from pathcast.transport.security import own_id
from pathcast.transport.settings import BrokerSettings, ClientSection
from patience import PATIENCE_SECONDS, eventually
from test_peer_processes import a_ring

NAMES = ("a", "a/b", "a/b/c", "a%2Fb", "a%252Fb", "b", "spiffe://bank/a", "spiffe:")
IDS = ("x", "b/x", "b/c/x", "/bank/a/x", "../a/x", "%2Fb/x", "c/x")
"""Ids of clients; joined with a name by a slash, many are another client's."""


def token_of(name: str) -> str:
    return f"secret of {name}"


def settings_in(directory: Path) -> BrokerSettings:
    clients = [{"name": name, "token": token_of(name)} for name in NAMES]
    return BrokerSettings(
        broker={"name": "k", "directory": directory / "k"},  # type: ignore[arg-type]
        clients=clients,  # type: ignore[arg-type]
    )


def client(carrier_address: str, name: str) -> BrokerClient:
    return BrokerClient(name, Address("k", carrier_address, token_of(name)), CODEC)


def told(carrier: Carrier, name: str) -> list[object]:
    return [DELIVERIES.decode(each.body) for each in carrier.disk.waiting(name, 0, 10**6)]


def results(carrier: Carrier, name: str) -> list[tuple[str, str]]:
    found = [each for each in told(carrier, name) if isinstance(each, InboxDelivery)]
    return [(each.subscription, each.message) for each in found]


def test_no_two_clients_have_an_id_in_common() -> None:
    pairs = [(name, id) for name in NAMES for id in IDS]
    assert len({own_id(name, id) for name, id in pairs}) == len(pairs)
    # Without the escapes some have.
    assert len({f"{name}/{id}" for name, id in pairs}) < len(pairs)


def test_every_request_with_every_foreign_name(tmp_path: Path) -> None:
    async def main() -> None:
        settings = settings_in(tmp_path)
        async with running(settings, broker_kind("k", [])) as carrier:
            place = read_control(tmp_path / "k").listen
            for name in NAMES:
                async with client(place, name) as own:
                    await own.ask(RegisterSourceRequest(f"of {name}", SourceEntry()))
                    rows = tuple((id, DeliveryProfile("/order", "ids")) for id in IDS)
                    assert (await own.ask(Subscribe(rows))).refused == ()  # type: ignore[attr-defined]
            await eventually(lambda: all(len(told(carrier, name)) >= len(IDS) for name in NAMES))
            for own_name, foreign_name in permutations(NAMES, 2):
                await attack(place, own_name, foreign_name)
            # Each still has what it registered, and nothing else.
            async with client(place, "b") as publisher:
                await publisher.publish([PublishRequest("of b", "m", b"<order/>")])
            expected = {name: sorted((own_id(name, id), "m") for id in IDS) for name in NAMES}
            await eventually(
                lambda: {name: sorted(results(carrier, name)) for name in NAMES} == expected
            )

    asyncio.run(asyncio.wait_for(main(), PATIENCE_SECONDS))


async def attack(place: str, name: str, owner: str) -> None:
    """A client asks for everything that is another's, with its own token and with none."""
    async with client(place, name) as attacker:
        for inbox in (attacker.deliveries(owner), attacker.waiting(owner, 0)):
            with pytest.raises(PeerRefusedError):
                await anext(inbox)
        with pytest.raises(PeerRefusedError):
            await attacker.settle(owner, 10**6)
        # Ids that it has not registered itself, in every way that may name another's.
        ids = tuple(
            f"{prefix}{id}{end}"
            for prefix in ("", f"{owner}/", "/")
            for id in IDS
            for end in (" ", "/.", "/")
        )
        answer = await attacker.ask(Unsubscribe(ids))
        assert isinstance(answer, RequestAccepted)
        assert len(answer.refused) == len(ids)
        with pytest.raises(PublicationError):
            await attacker.ask(RegisterSourceRequest(f"of {owner}", SourceEntry()))
    async with client(place, name) as attacker:
        with pytest.raises(PathcastError):
            await attacker.publish([PublishRequest(f"of {owner}", "m", b"<order/>")])
    stolen = BrokerClient(owner, Address("k", place, token_of(name)), CODEC)
    async with stolen:
        with pytest.raises(PeerRefusedError):
            await stolen.ask(Unsubscribe(IDS))


def test_a_publisher_numbers_its_own_messages_only(tmp_path: Path) -> None:
    """Publisher "b/p" of client "a" is another one than publisher "p" of client "a/b"."""

    async def main() -> None:
        settings = settings_in(tmp_path)
        async with running(settings, broker_kind("k", [])) as carrier:
            place = read_control(tmp_path / "k").listen
            async with client(place, "b") as reader:
                await reader.ask(Subscribe((("x", DeliveryProfile("/order", "ids")),)))
            await eventually(lambda: any(isinstance(one, InForce) for one in told(carrier, "b")))
            for name, publisher in (("a", "b/p"), ("a/b", "p")):
                async with client(place, name) as own:
                    await own.ask(RegisterSourceRequest(f"of {name}", SourceEntry()))
                    numbered = Numbered(publisher, 7)
                    message = PublishRequest(f"of {name}", name, b"<order/>", numbered)
                    await own.publish([message])
            expected = [(own_id("b", "x"), "a"), (own_id("b", "x"), "a/b")]
            await eventually(lambda: results(carrier, "b") == expected)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_SECONDS))


def test_whoever_may_only_publish_registers_sources_and_publishes(tmp_path: Path) -> None:
    async def main() -> None:
        roles = {"publish": True, "subscribe": False}
        settings = BrokerSettings(
            broker={"name": "k", "directory": tmp_path / "k"},  # type: ignore[arg-type]
            clients=[{"name": "b", "token": token_of("b"), **roles}],  # type: ignore[arg-type]
        )
        async with running(settings, broker_kind("k", [])):
            place = read_control(tmp_path / "k").listen
            async with client(place, "b") as publisher:
                await publisher.ask(RegisterSourceRequest("shop", SourceEntry()))
                await publisher.publish([PublishRequest("shop", "m", b"<order/>")])
                with pytest.raises(PeerRefusedError):
                    await publisher.ask(Subscribe((("x", DeliveryProfile("/order", "ids")),)))
            with pytest.raises(PeerRefusedError):
                async with client(place, "nobody") as stranger:
                    await stranger.ask(RegisterSourceRequest("other", SourceEntry()))

    asyncio.run(asyncio.wait_for(main(), PATIENCE_SECONDS))


def test_a_ring_keeps_queries_of_clients_apart() -> None:
    async def main() -> None:
        async with a_ring() as network:
            peer = next(iter(network.carriers.values()))
            for name in NAMES:
                rows = tuple(StandingQuery(id, "//a") for id in IDS)
                assert await peer.ask(name, Register(rows), PATIENCE_SECONDS) == Begun()
            for name, owner in permutations(NAMES, 2):
                ids = tuple(f"{owner}/{id}" for id in IDS if f"{owner}/{id}" not in IDS)
                answer = await peer.ask(name, Withdraw(ids), PATIENCE_SECONDS)
                assert isinstance(answer, Begun)
                assert [id for id, _, _ in answer.refused] == list(ids)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_SECONDS))


@pytest.mark.parametrize("name", ["operator", "a\tb", "a\nb", "\x00"])
def test_names_that_cannot_be_told_from_others_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        ClientSection(name=name)

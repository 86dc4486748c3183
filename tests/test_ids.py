"""One bad id, source or profile among many of a call: it is refused, and the rest is done.

If these fail, one row that a client did not check takes along thousands that are as they should be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from pathcast.dht.filtering import FilteringSettings
from pathcast.dht.peer import Settings
from pathcast.errors import PathcastError, PublicationError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.messages import SourceEntry
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    CODEC,
    NotTaken,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    Subscribe,
    Unsubscribe,
)
from pathcast.transport.client import BrokerClient
from pathcast.transport.grpc_streams import Address
from pathcast.transport.peer import CODEC as PEER_CODEC
from pathcast.transport.peer import PeerAccepted as PeerAccepted
from pathcast.transport.peer import PeerPublish as PeerPublish
from pathcast.transport.peer import Register, StandingQuery, Withdraw
from pathcast.transport.peer_kind import peer_kind
from pathcast.transport.process import read_control, running
from pathcast.transport.settings import BrokerSettings

BAD_IDS = ("", "i" * 257, "tab\there", "line\nhere", "\x00", "\x7f", "i" * 100_000)


def with_bad_ones(good: Sequence[object], bad: Sequence[object]) -> list[object]:
    """Bad ones before, between and behind good ones."""
    mixed: list[object] = [bad[0]]
    for number, each in enumerate(good):
        mixed += [each, bad[number % len(bad)]]
    return [*mixed, *bad]


@pytest.fixture
def settings(tmp_path: Path) -> BrokerSettings:
    return BrokerSettings(
        broker={"name": "b", "directory": tmp_path / "b"},  # type: ignore[arg-type]
        clients=({"name": "ann"}, {"name": "bob"}),  # type: ignore[arg-type]
    )


def address_of(settings: BrokerSettings) -> Address:
    return Address("b", read_control(settings.broker.directory).listen)


def test_messages_with_bad_ids_are_refused_and_the_rest_is_taken(settings: BrokerSettings) -> None:
    async def main() -> None:
        async with (
            running(settings, broker_kind("b", [])) as carrier,
            BrokerClient("ann", address_of(settings), CODEC) as client,
        ):
            await client.ask(RegisterSourceRequest("s", SourceEntry()))
            good = [PublishRequest("s", f"m{number}", b"<a/>") for number in range(9)]
            bad = [PublishRequest("s", id, b"<a/>") for id in BAD_IDS]
            answers = await client.publish(with_bad_ones(good, bad))
            assert len(answers) == 1 + len(good) + len(bad)
            assert all(isinstance(each, NotTaken) for each in answers)
            assert {each.code for each in answers} == {"row.field"}  # type: ignore[attr-defined]
            shown = {each.message for each in answers}  # type: ignore[attr-defined]
            assert shown == {id[:1024] for id in BAD_IDS}
            assert carrier.kind.describe(carrier.node)["streams"] == {"b": len(good)}

    asyncio.run(main())


def test_messages_of_sources_of_others_are_refused_and_the_rest_is_taken(
    settings: BrokerSettings,
) -> None:
    async def main() -> None:
        async with (
            running(settings, broker_kind("b", [])) as carrier,
            BrokerClient("ann", address_of(settings), CODEC) as ann,
            BrokerClient("bob", address_of(settings), CODEC) as bob,
        ):
            await ann.ask(RegisterSourceRequest("hers", SourceEntry()))
            await bob.ask(RegisterSourceRequest("his", SourceEntry()))
            sources = ("his", "hers", "", "nobody's", "hers", "!", "s" * 5000)
            answers = await ann.publish(
                [PublishRequest(source, f"m{n}", b"<a/>") for n, source in enumerate(sources)]
            )
            refused = [each.message for each in answers if isinstance(each, NotTaken)]
            assert sorted(refused) == ["m0", "m2", "m3", "m5", "m6"]
            assert {each.code for each in answers} == {  # type: ignore[attr-defined]
                "publication.source"
            }
            assert carrier.kind.describe(carrier.node)["streams"] == {"b": 2}
            # A call of which nothing can be taken is refused as a whole.
            with pytest.raises(PublicationError):
                await ann.publish(
                    [PublishRequest("his", "m", b"<a/>"), PublishRequest("", "m", b"<a/>")]
                )

    asyncio.run(main())


def test_profiles_that_are_none_are_refused_and_the_rest_is_registered(
    settings: BrokerSettings,
) -> None:
    wrong = (
        DeliveryProfile("/a" * 600_000),
        DeliveryProfile("/a", "nothing"),  # type: ignore[arg-type]
        DeliveryProfile("/a", "ids", tuple((f"p{n}", "u") for n in range(2000))),
        DeliveryProfile(7),  # type: ignore[arg-type]
    )

    async def main() -> None:
        async with (
            running(settings, broker_kind("b", [])) as carrier,
            BrokerClient("ann", address_of(settings), CODEC) as client,
        ):
            good = [(f"q{number}", DeliveryProfile("/a", "ids")) for number in range(9)]
            bad = [(id, DeliveryProfile("/a")) for id in BAD_IDS]
            bad += [(f"wrong{number}", each) for number, each in enumerate(wrong)]
            answer = await client.ask(Subscribe(tuple(with_bad_ones(good, bad))))  # type: ignore[arg-type]
            assert isinstance(answer, RequestAccepted)
            assert {id for id, _, _ in answer.refused} == {id[:1024] for id, _ in bad}
            assert {code for _, code, _ in answer.refused} == {"row.field"}
            assert carrier.kind.describe(carrier.node)["subscriptions"] == len(good)
            ids = with_bad_ones([f"q{number}" for number in range(9)], BAD_IDS)
            answer = await client.ask(Unsubscribe(tuple(ids)))  # type: ignore[arg-type]
            assert isinstance(answer, RequestAccepted)
            assert {code for _, code, _ in answer.refused} == {"query.unknown"}
            assert carrier.kind.describe(carrier.node)["subscriptions"] == 0

    asyncio.run(main())


def test_peers_refuse_bad_ids_and_register_the_rest() -> None:
    kind = peer_kind("p0", [f"p{number}" for number in range(8)], Settings(), FilteringSettings())
    node = kind.make({}, 1)
    node.start(0.0)

    def asked(message: object) -> PeerAccepted:
        came = PEER_CODEC.message(PEER_CODEC.packet(message), "ann")
        assert kind.request is not None
        ([answers], _) = kind.request(node, [("ann", [came])], 1.0)
        assert not isinstance(answers, PathcastError)
        (answer,) = answers
        assert isinstance(answer, PeerAccepted)
        return answer

    bad = [StandingQuery(id, "/a") for id in BAD_IDS]
    bad += [StandingQuery("long", "/a" * 40_000), StandingQuery("m", "/a", {"p": "u" * 70_000})]
    good = [StandingQuery(f"q{number}", "/a") for number in range(5)]
    refused = asked(Register(tuple(with_bad_ones(good, bad)))).refused  # type: ignore[arg-type]
    assert {id for id, _, _ in refused} == {each.id[:1024] for each in bad}
    assert {code for _, code, _ in refused} == {"row.field", "row.length"}
    withdrawn = asked(Withdraw(tuple(with_bad_ones([each.id for each in good], BAD_IDS))))  # type: ignore[arg-type]
    assert {id for id, _, _ in withdrawn.refused} == {id[:1024] for id in BAD_IDS}
    for id in BAD_IDS:
        assert asked(PeerPublish(id, b"<a/>")).refused[0][:2] == (id[:1024], "row.field")

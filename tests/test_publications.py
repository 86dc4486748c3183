"""What a root does not accept, and what a host cannot decide.

If these fail, a message that is none wanders through the network, a publisher is not told which of
a thousand it was, or a subscriber takes silence for "no".
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast import Registry, Subscription
from pathcast.errors import FrameError, MessageError, PublicationError
from pathcast.limits import Limits
from pathcast.overlay.content import DeliveryProfile, Verdict
from pathcast.overlay.deliveries import InboxDelivery, Undecided
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.overlay.messages import SourceEntry
from pathcast.overlay.xml_content import xml_content
from pathcast.settings import read_settings
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    CODEC,
    DELIVERIES,
    NotTaken,
    PublishRequest,
    RegisterSourceRequest,
    Subscribe,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.disk import Disk
from pathcast.transport.doorkeeper import Doorkeeper
from pathcast.transport.process import operator_of, running
from pathcast.transport.settings import BrokerSettings
from pathcast_lab.sim.memory_streams import MemoryNetwork
from pathcast_papers.message.door import parse_message
from patience import PATIENCE_SECONDS, eventually

HEAVY = "for $x in //a where count(//a[not(following::a/following::a = 'x')]) > 0 return $x"
"""Steps that grow with the cube of the elements of a message."""

DOUBLE = "for $o in //o return <x>{$o/@k}{$o/p/@k}</x>"
"""An error where both are there."""

FEW_STEPS = Limits(evaluation_steps_max=10_000)
PROFILES = {"heavy": HEAVY, "double": DOUBLE, "plain": "//o/p", "all": "/r"}
BODIES = {
    "decided": b"<r><a/><o k='1'><p/></o></r>",
    "long": b"<r>" + b"<a/>" * 300 + b"</r>",
    "doubled": b"<r><o k='1'><p k='2'/></o></r>",
    "nothing": b"<s/>",
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([b"<a/>", b"<a>", b"", b"\xff", b"<a>&x;</a>", b"<a/>\x00"])))
def test_a_doorkeeper_refuses_what_the_door_refuses(bodies: list[bytes]) -> None:
    messages = [PublishRequest("s", f"m{number}", body) for number, body in enumerate(bodies)]
    refused = Doorkeeper(Limits())(messages)
    for place, body in enumerate(bodies):
        try:
            parse_message(body)
        except MessageError as error:
            code = error.code
        else:
            code = ""
        answer = refused.get(place, NotTaken(f"m{place}", "", ""))
        assert isinstance(answer, NotTaken)
        assert (answer.message, answer.code) == (f"m{place}", code)


def told_by_one_process() -> set[tuple[str, str, str]]:
    """Subscription, message, and "" or the code of a verdict."""
    one = Registry(limits=FEW_STEPS)
    one.add([Subscription(name, "ann", text) for name, text in PROFILES.items()])
    found = set()
    for id, body in BODIES.items():
        answer = one.deliver(body, id)
        found |= {(each.subscription_id, id, "") for each in answer}
        found |= {(name, id, error.code) for name, error in answer.verdicts.items()}
    return found


def test_what_cannot_be_decided_is_told_as_one_process_tells_it() -> None:
    expected = told_by_one_process()
    assert {code for _, _, code in expected} == {"", "limit.evaluation_steps", "XQDY0025"}

    async def main() -> None:
        network = MemoryNetwork()
        carriers = {}
        for name, other in (("a", "b"), ("b", "a")):
            language = xml_content(limits=FEW_STEPS)
            kind = broker_kind(name, [other], members=[other], content=language)
            carriers[name] = Carrier(name, kind, Disk(None), network.dial_from(name))
            network.add(carriers[name])
        for carrier in carriers.values():
            await carrier.start([peer for peer in carriers if carrier.name < peer])
        asked = tuple((name, DeliveryProfile(text, "fragment")) for name, text in PROFILES.items())
        await carriers["b"].ask("ann", Subscribe(asked), PATIENCE_SECONDS)
        await carriers["a"].ask(
            "shop", RegisterSourceRequest("of a", SourceEntry()), PATIENCE_SECONDS
        )

        def told() -> list[object]:
            return [
                DELIVERIES.decode(each.body) for each in carriers["b"].disk.waiting("ann", 0, 99)
            ]

        await eventually(lambda: len(told()) >= len(PROFILES))
        messages = [PublishRequest("of a", id, body) for id, body in BODIES.items()]
        await carriers["a"].submit("shop", messages)
        await eventually(lambda: len(told()) >= len(PROFILES) + len(expected))
        await asyncio.sleep(0.3)
        found = [each for each in told() if isinstance(each, InboxDelivery | Undecided)]
        assert len(found) == len(expected)
        assert {
            (
                each.subscription.removeprefix("ann/"),
                each.message,
                each.code if isinstance(each, Undecided) else "",
            )
            for each in found
        } == expected
        await network.stop()

    asyncio.run(main())


def test_a_message_that_a_host_refuses_is_undecided_for_all() -> None:
    profiles = XmlProfiles()
    profiles.add("s", DeliveryProfile("//a"))
    profiles.add("t", DeliveryProfile("//b"))
    profiles.remove("t")
    well, ill = profiles.answers([b"<a/>", b"<a>"])
    assert well == {"s": ()} or "s" in well
    assert ill == {"s": Verdict("xml.end", ill["s"].reason)}  # type: ignore[union-attr]


def test_what_is_no_message_is_refused_with_its_place_and_the_rest_is_taken(
    tmp_path: Path,
) -> None:
    (tmp_path / "b.toml").write_text(
        '[broker]\nname = "b"\ndirectory = "b"\nmessage_bytes_max = 1000\n'
        '[[clients]]\nname = "ann"\n'
    )
    told = read_settings(BrokerSettings, tmp_path / "b.toml")

    async def main() -> None:
        kind = broker_kind("b", [], limits=Limits(message_bytes_max=told.broker.message_bytes_max))
        async with running(told, kind), operator_of(told.broker.directory, CODEC) as client:
            await client.ask(RegisterSourceRequest("s", SourceEntry()))
            await client.ask(Subscribe((("q", DeliveryProfile("/a", "ids")),)))
            bodies = [b"<a/>", b"<a>\n<b></a>", b"<a/>", b"<a>" + b"x" * 1000 + b"</a>", b"<a/>"]
            messages = [PublishRequest("s", f"m{place}", body) for place, body in enumerate(bodies)]
            answers = await client.publish(messages)
            assert [type(each) for each in answers] == [NotTaken, NotTaken]
            assert [(each.message, each.code) for each in answers] == [  # type: ignore[attr-defined]
                ("m1", "xml.tag.mismatch"),
                ("m3", "limit.message_bytes"),
            ]
            ill, _ = answers
            assert isinstance(ill, NotTaken)
            assert (ill.line, ill.column) == (2, 4)
            # There is no other way in.
            assert isinstance(await client.ask(PublishRequest("s", "m5", b"<a>")), NotTaken)
            for name in ("!", "", "s" * 129):
                with pytest.raises(FrameError):
                    await client.ask(RegisterSourceRequest(name, SourceEntry()))
            got: list[str] = []
            async for group in client.deliveries("operator"):
                got += [
                    each.message
                    for each in (DELIVERIES.decode(one.body) for one in group)
                    if isinstance(each, InboxDelivery)
                ]
                if len(got) >= 3:
                    break
            assert got == ["m0", "m2", "m4"]

    asyncio.run(main())


def test_of_a_source_only_whoever_registered_it_publishes() -> None:
    async def main() -> None:
        network = MemoryNetwork()
        carrier = Carrier("a", broker_kind("a", []), Disk(None), network.dial_from("a"))
        await carrier.start()
        await carrier.ask("shop", RegisterSourceRequest("s", SourceEntry()), PATIENCE_SECONDS)
        await carrier.submit("shop", [PublishRequest("s", "m1", b"<a/>")])
        with pytest.raises(PublicationError):
            await carrier.submit("ann", [PublishRequest("s", "m2", b"<a/>")])
        with pytest.raises(PublicationError):
            await carrier.ask(
                "ann",
                RegisterSourceRequest("s", SourceEntry("<!ELEMENT another ANY>")),
                PATIENCE_SECONDS,
            )
        await carrier.ask(
            "shop", RegisterSourceRequest("s", SourceEntry(withdrawn=True)), PATIENCE_SECONDS
        )
        with pytest.raises(PublicationError):
            await carrier.submit("shop", [PublishRequest("s", "m3", b"<a/>")])
        await carrier.stop()

    asyncio.run(main())

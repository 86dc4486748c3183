"""The language of profiles in a network: on the wire, on disks, in the profile database.

If one of these fails, a broker that is asked in one language answers in another one.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: pip install 'pathcast[net]'")

from typer.testing import CliRunner

from pathcast import Registry, Subscription
from pathcast.cli.app import build_app
from pathcast.errors import UnusableRowError
from pathcast.model import QUERY_LANGUAGES, DeliverMode
from pathcast.overlay.content import DeliveryProfile, asked_query
from pathcast.overlay.deliveries import InboxDelivery, InForce
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.hosting import version_of
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.overlay.messages import SourceEntry
from pathcast.overlay.registration_messages import (
    ChangeInterest,
    InterestChanged,
    InterestRegistered,
    RegisterInterest,
    ToBroker,
    ToService,
)
from pathcast.overlay.serving import _subscription
from pathcast.overlay.subscriptions import KeptSubscription
from pathcast.store import ProfileRecord, Store
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    DELIVERIES,
    ListSubscriptions,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    Subscribe,
    SubscriptionsListed,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.disk import Disk
from pathcast_lab.sim.memory_streams import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually
from registration_world import new_world

TEXT = "//alert[@sent > '2026-01-01']"
OLD, NEW = b"<alert sent='2025-01-01'/>", b"<alert sent='2026-02-01'/>"
ASKED = [asked_query(TEXT, language) for language in (None, *QUERY_LANGUAGES)]


class EarlierProfile(msgspec.Struct, frozen=True):
    """A profile as versions read it that knew no languages."""

    query: str
    deliver: str = "message"
    namespaces: tuple[tuple[str, str], ...] = ()
    steps: tuple[str, ...] = ()


def test_versions_without_languages_refuse_a_choice_and_read_all_else() -> None:
    encode, decode = msgspec.msgpack.encode, msgspec.msgpack.Decoder(EarlierProfile).decode
    plain = DeliveryProfile(TEXT, "ids")
    assert encode(plain) == encode(EarlierProfile(TEXT, "ids"))
    for asked in ASKED[1:]:
        with pytest.raises(msgspec.ValidationError):
            decode(encode(DeliveryProfile(asked, "ids")))
    messages: list[Any] = [RegisterInterest("r", "ann", TEXT), ChangeInterest("r", "p", TEXT)]
    for message in messages:
        told = msgspec.to_builtins(message)
        assert told["query"] == TEXT
        chosen = msgspec.structs.replace(message, asked=ASKED[2])
        assert msgspec.to_builtins(chosen)["query"] == [TEXT, "xquery"]
        again = msgspec.msgpack.decode(encode(chosen), type=ToService | ToBroker)
        assert again == chosen
        assert (again.query, again.language) == (TEXT, "xquery")


@pytest.mark.parametrize("given", [["//a", "xpath3"], ["//a"], 7, ["//a", "xquery", 1]])
def test_what_is_no_choice_is_refused_by_itself(given: object) -> None:
    from pathcast.transport.broker import _profile_of

    with pytest.raises(UnusableRowError):
        _profile_of({"query": given})
    assert _profile_of({"query": ["//a", "xquery"]}).language == "xquery"


@pytest.mark.parametrize("deliver", ["fragment", "message", "ids"])
def test_a_host_answers_and_asks_for_what_the_language_needs(deliver: DeliverMode) -> None:
    plan = XmlProfiles()
    one = Registry()
    for asked in ASKED:
        profile = DeliveryProfile(asked, deliver)
        name = str(profile.language)
        plan.add(name, profile)
        row = Subscription(name, "", TEXT, deliver, language=profile.language)
        one.add(row)
        entries = disjuncts_of(TEXT, None, deliver, profile.language)
        assert set(entries) < set(plan.entries(profile))
        # A routing entry holds of each message that is delivered.
        routed = Registry()
        routed.add(Subscription(entry, "", entry, "ids") for entry in entries)
        if profile.language == "xquery":
            assert list(routed.deliver(NEW))
        else:
            assert not list(routed.deliver(NEW))
    for message in (OLD, NEW):
        expected = {each.subscription_id for each in one.deliver(message)}
        assert plan.answers([message])[0].keys() == expected
        assert expected == ({"xquery"} if message == NEW else set())


RING = {"a": "b", "b": "a"}


def start(network: MemoryNetwork, name: str, directory: Path) -> Carrier:
    members = [each for each in RING if each != name]
    kind = broker_kind(name, RING[name], members=members)
    carrier = Carrier(name, kind, Disk(directory), network.dial_from(name))
    network.add(carrier)
    return carrier


def told(carrier: Carrier, kind: type) -> list[Any]:
    bodies = carrier.disk.waiting("ann", 0, 10**6)
    return [found for each in bodies if isinstance(found := DELIVERIES.decode(each.body), kind)]


def test_brokers_deliver_in_the_language_of_each_profile_and_go_on_after_a_restart(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        network = MemoryNetwork()
        for name in RING:
            start(network, name, tmp_path / name)
        await network.carriers["a"].start(["b"])
        await network.carriers["b"].start([])
        source = RegisterSourceRequest("alerts", SourceEntry())
        await network.carriers["a"].ask("shop", source, PATIENCE_SECONDS)
        profiles = tuple((f"s{at}", DeliveryProfile(each, "ids")) for at, each in enumerate(ASKED))
        answer = await network.carriers["b"].ask("ann", Subscribe(profiles), PATIENCE_SECONDS)
        assert isinstance(answer, RequestAccepted)
        assert not answer.refused
        await eventually(lambda: len(told(network.carriers["b"], InForce)) == 3)

        async def publish(number: int) -> None:
            messages = [
                PublishRequest("alerts", f"{number} {kind}", body)
                for kind, body in (("old", OLD), ("new", NEW))
            ]
            await network.carriers["a"].submit("shop", messages)

        await publish(1)
        await eventually(lambda: len(told(network.carriers["b"], InboxDelivery)) == 1)
        await network.carriers["b"].stop()
        host = start(network, "b", tmp_path / "b")
        await host.start([])
        listed = await host.ask("ann", ListSubscriptions(), PATIENCE_SECONDS)
        assert isinstance(listed, SubscriptionsListed)
        assert [row.profile.asked for row in listed.rows] == [ASKED[0], *ASKED[1:]]
        await publish(2)
        await eventually(lambda: len(told(host, InboxDelivery)) == 2)
        found = [(each.subscription, each.message) for each in told(host, InboxDelivery)]
        assert found == [("ann/s2", "1 new"), ("ann/s2", "2 new")]
        await network.stop()

    asyncio.run(main())


def test_what_a_broker_keeps_has_the_language() -> None:
    kept = KeptSubscription("s", "ann", DeliveryProfile(ASKED[2], "ids"), 1)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=KeptSubscription)
    assert again == kept
    assert again.profile.language == "xquery"


def test_the_registration_service_registers_changes_and_serves_a_language() -> None:
    world = new_world()

    def settled(message: Any) -> Any:
        request = world.nodes["u"].next_request()  # type: ignore[union-attr]
        world.do("u", world.nodes["u"].ask(message, request, world.clock.now))  # type: ignore[union-attr]
        world.settle()
        return world.answers.get(request)

    made = settled(RegisterInterest("-", "ann", ASKED[2], "eu/ch"))
    assert isinstance(made, InterestRegistered)
    host = world.serving()[0]
    profile = host.profiles[made.profile]
    assert (profile.query, profile.language) == (TEXT, "xquery")
    assert _subscription(profile).profile.language == "xquery"
    assert profile.subscription().language == "xquery"
    before = version_of(profile)
    assert isinstance(settled(ChangeInterest("-", made.profile, TEXT)), InterestChanged)
    changed = host.profiles[made.profile]
    assert changed.language is None
    assert version_of(changed) != before
    refused = settled(RegisterInterest("-", "ann", asked_query("//a[b eq 1]", "xpath1"), "eu/ch"))
    assert "XPST0003" in repr(refused)


def test_the_profile_database_keeps_the_language(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/profiles.db"
    with Store.open(url) as store:
        rows = [ProfileRecord(str(each), "ann", TEXT, language=each) for each in QUERY_LANGUAGES]
        store.write([*rows, ProfileRecord("none", "ann", TEXT)])
        with pytest.raises(UnusableRowError):
            store.write([ProfileRecord("x", "ann", TEXT, language="xpath3")])  # type: ignore[arg-type]
    with Store.open(url) as store:
        found = {each.id: each.language for each in store.state(ProfileRecord)[1]}
        assert found == {"none": None, "xpath1": "xpath1", "xquery": "xquery"}
        changes = {each.id: each.record for each in store.changes(0)}
        assert {name: each.language for name, each in changes.items()} == found  # type: ignore[union-attr]
    result = CliRunner().invoke(build_app(), ["registry", "interests", url])
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert {each["interest"]: each["language"] for each in told} == found


def test_a_ring_reads_xpath_alone(tmp_path: Path) -> None:
    file = tmp_path / "q.xq"
    file.write_text(f"(: @language xquery :) {TEXT}")
    result = CliRunner().invoke(build_app(), ["peer", "subscribe", "s", f"@{file}", "--at", "a"])
    assert result.exit_code != 0
    assert "a ring reads XPath 1.0 only" in " ".join(result.stderr.split())

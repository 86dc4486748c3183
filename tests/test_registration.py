"""The registration service: what is told before what, whatever is lost, doubled, late or gone.

If these fail, a source publishes to a root that does not know it, a profile is registered twice or
acknowledged and lost, or a stranger changes what is not his.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import cast
from unittest.mock import Mock

import msgspec
import pytest

from oracles.engines import made_by
from pathcast.errors import PublicationError, StoreError
from pathcast.model import Subscription
from pathcast.overlay import announcements, host_choice, placing
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.deliveries import InForce
from pathcast.overlay.host_choice import ByContent
from pathcast.overlay.hosting import Hosting, Served
from pathcast.overlay.registration import RegistrationNode
from pathcast.overlay.registration_messages import (
    ChangeInterest,
    DeleteInterest,
    HostKnows,
    InterestChanged,
    InterestRegistered,
    Locate,
    RegisterInterest,
    RegisterSource,
    RegistrationRefused,
    RootKnows,
    SourceRegistered,
    SourceUpdated,
    TellHost,
    TellRoot,
    UpdateSource,
)
from pathcast.overlay.sampling import SourceSamples
from pathcast.overlay.serving import Planes
from pathcast.partition import PepPlacement
from pathcast.protocol import Deliver
from pathcast.query import Population
from pathcast.registry import Registry
from pathcast.store import (
    BrokerRecord,
    CatalogRecord,
    ChangeRecord,
    ProfileRecord,
    Record,
    SampleRecord,
    SourceRecord,
)
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import PublishRequest, RequestAccepted
from pathcast.transport.carrier import Carrier
from pathcast.transport.hosted import HostedKind, follow
from pathcast_lab.sim.toy_content import TOY
from patience import eventually
from registrant import Asked, Registrant
from registration_world import ImmediateHosting, World, explored, new_world

INTEREST = RegisterInterest("-", "ann", "//a[@b = 1]", "eu/ch")
SOURCE = RegisterSource("-", "eu/ch", "<!ELEMENT a ANY>", 100.0, 1000.0)


@pytest.fixture(autouse=True)
def analysed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Worlds register the same queries thousands of times.
    analyse = placing.population_of_one

    @cache
    def once(query: str, deliver: str) -> Population:
        return analyse(Subscription("p", "u", query, deliver))  # type: ignore[arg-type]

    def cached(subscription: Subscription) -> Population:
        return once(subscription.query, subscription.deliver)

    for room in ("registration", "hosting"):
        monkeypatch.setattr(f"pathcast.overlay.{room}.population_of_one", cached)


def ask(world: World, message: Asked, name: str = "u") -> str:
    client = world.nodes[name]
    assert isinstance(client, Registrant)
    request = client.next_request()
    world.do(name, client.ask(message, request, world.clock.now))
    return request


def settled(world: World, message: Asked, name: str = "u") -> object:
    request = ask(world, message, name)
    world.settle()
    return world.answers.get(request)


def test_a_source_registers_and_changes() -> None:
    world = new_world()
    made = settled(world, SOURCE)
    assert isinstance(made, SourceRegistered)
    assert (made.root, made.address) == ("b", "n1")
    changed = settled(world, UpdateSource("-", made.source, "<!ELEMENT b ANY>", message_bytes=9.0))
    assert isinstance(changed, SourceUpdated)
    assert changed.catalog == 2
    source = world.store.get(SourceRecord, made.source)
    assert source is not None
    assert (source.catalog, source.message_bytes, source.messages_a_second) == (2, 9.0, 100.0)
    assert [each.schema for each in world.store.state(CatalogRecord, source=made.source)[1]] == [
        "<!ELEMENT a ANY>",
        "<!ELEMENT b ANY>",
    ]
    # A broker never reads a message with a catalog that it was not told of.
    told = [each for each in world.planes["n1"] if isinstance(each, ChangeRecord)]
    catalogs = [each.id for each in told if each.kind == "catalog"]
    assert catalogs == [f"{made.source}@1", f"{made.source}@2"]
    assert world.serving()[0].sources[made.source].catalog == 2


def test_a_source_asks_for_validation_and_for_none() -> None:
    pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")
    world = new_world()
    made = settled(world, msgspec.structs.replace(SOURCE, validated=True))
    assert isinstance(made, SourceRegistered)

    def asked() -> list[tuple[str, bool]]:
        kept = world.store.state(CatalogRecord, source=made.source)[1]
        return [(each.schema, each.validated) for each in kept]

    first, second = "<!ELEMENT a ANY>", "<!ELEMENT b ANY>"
    settled(world, UpdateSource("-", made.source, second))
    settled(world, UpdateSource("-", made.source, message_bytes=9.0))
    settled(world, UpdateSource("-", made.source, validated=False))
    assert asked() == [(first, True), (second, True), (second, False)]
    refused = msgspec.structs.replace(SOURCE, schema="", validated=True)
    assert isinstance(settled(world, refused), RegistrationRefused)


def test_a_profile_is_registered_changed_served_and_deleted() -> None:
    world = new_world()
    made = settled(world, INTEREST)
    assert isinstance(made, InterestRegistered)
    host = world.serving()[0]
    assert host.profiles[made.profile].query == "//a[@b = 1]"
    assert not host.profiles[made.profile].pending
    paused = ChangeInterest("-", made.profile, "//c", paused=True)
    assert isinstance(settled(world, paused), InterestChanged)
    assert host.profiles[made.profile].query == "//c"
    assert host.profiles[made.profile].state == "paused"
    assert isinstance(settled(world, DeleteInterest("-", made.profile)), InterestChanged)
    assert host.profiles == {}
    assert world.store.state(ProfileRecord)[1] == []
    changes = [each for each in world.planes["n1"] if isinstance(each, ChangeRecord)]
    assert [each.id for each in changes][-1] == made.profile
    assert changes[-1].record is None


@pytest.mark.parametrize(
    ("faults", "depth", "every"),
    [(1, 7, 100), pytest.param(2, 14, 200, marks=pytest.mark.nightly)],
    ids=["one fault", "two faults"],
)
@pytest.mark.parametrize("message", [SOURCE, INTEREST], ids=["source", "interest"])
def test_whatever_happens_on_the_way(message: Asked, faults: int, depth: int, every: int) -> None:
    begin = new_world()
    request = ask(begin, message)

    def end(world: World) -> None:
        answer = world.answers.get(request)
        assert isinstance(answer, (SourceRegistered, InterestRegistered)), answer
        (host,) = world.serving()
        if isinstance(answer, SourceRegistered):
            assert not host.sources[answer.source].pending
            assert answer.source in world.told
        else:
            assert not host.profiles[answer.profile].pending
            assert answer.profile in world.told

    count = explored(begin, faults, depth, every, end)
    assert count > 100


@pytest.mark.parametrize(
    ("faults", "every"), [(1, 60), pytest.param(2, 200, marks=pytest.mark.nightly)], ids=[1, 2]
)
@pytest.mark.parametrize("is_deleted", [False, True], ids=["change", "delete"])
def test_whatever_happens_to_a_change(is_deleted: bool, faults: int, every: int) -> None:
    begin = new_world()
    made = settled(begin, INTEREST)
    assert isinstance(made, InterestRegistered)
    if is_deleted:
        request = ask(begin, DeleteInterest("-", made.profile))
    else:
        request = ask(begin, ChangeInterest("-", made.profile, "//new"))
    begin.flying.sort(key=repr)

    def end(world: World) -> None:
        assert isinstance(world.answers.get(request), InterestChanged), world.answers.get(request)
        (host,) = world.serving()
        queries = [profile.query for profile in host.profiles.values()]
        assert queries == ([] if is_deleted else ["//new"])

    count = explored(begin, faults, 7 if faults == 1 else 12, every, end)
    assert count > 50


def test_the_backup_of_a_broker_serves_what_it_served() -> None:
    world = new_world()
    made = settled(world, INTEREST)
    source = settled(world, SOURCE)
    assert isinstance(made, InterestRegistered)
    assert isinstance(source, SourceRegistered)
    world.crash("n1")
    world.settle()
    (backup,) = world.serving()
    assert backup.name == "n2"
    served = [each for each in world.planes["n2"] if isinstance(each, Served)][-1]
    assert [each.id for each in served.profiles] == [made.profile]
    assert [each.id for each in served.sources] == [source.source]
    # The client finds it where it is now.
    answer = settled(world, ChangeInterest("-", made.profile, "//new"))
    assert isinstance(answer, InterestChanged)
    assert backup.profiles[made.profile].query == "//new"


def test_a_hanging_broker_changes_nothing_when_it_wakes() -> None:
    world = new_world()
    made = settled(world, INTEREST)
    assert isinstance(made, InterestRegistered)
    old, new = world.nodes["n1"], world.nodes["n2"]
    world.clock.now += 100.0
    world.do("n2", new.wake("lead", world.clock.now))
    # Its clock stood still: it believes that it holds the lease.
    for message in (ChangeInterest("1", made.profile, "//x"), DeleteInterest("2", made.profile)):
        (answer,) = old.receive("u", message, 60.0)[-1:]
        assert "NotLeading" in repr(answer)
    profile = world.store.get(ProfileRecord, made.profile)
    assert profile is not None
    assert profile.query == "//a[@b = 1]"


def test_whoever_stopped_when_the_lease_was_over_is_served_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The database may have hung while it renewed the lease, and may fail when it is read."""
    world = World()
    host = Hosting("n1", BrokerRecord("b", "", "eu", 1e6, 10), world.store)

    def told() -> list[bool]:
        effects = host.wake("lead", world.clock.now)
        served = [each.what for each in effects if isinstance(each, Deliver)]
        return [each.is_played for each in served if isinstance(each, Served)]

    assert told() == [True]
    assert told() == []
    host.lapsed(world.clock.now)
    assert told() == [True]
    assert told() == []
    with monkeypatch.context() as away:
        error = StoreError("store.away", url="-", reason="it hangs")
        away.setattr(world.store, "state", Mock(side_effect=error))
        world.clock.now += 1_000.0
        assert told() == []
    assert told() == [True]
    assert told() == []


def test_what_a_broker_had_that_is_gone_goes_to_others() -> None:
    world = new_world()
    made, source = settled(world, INTEREST), settled(world, SOURCE)
    assert isinstance(made, InterestRegistered)
    assert isinstance(source, SourceRegistered)
    world.add("m1", ImmediateHosting("m1", BrokerRecord("c", "", "us", 1e6, 10), world.store))
    for name in ("n1", "n2"):
        world.crash(name)
    gone = world.store.get(BrokerRecord, "b")
    assert gone is not None
    world.store.write([msgspec.structs.replace(gone, state="gone")])
    world.settle()
    (host,) = world.serving()
    assert host.id == "c"
    assert not host.profiles[made.profile].pending
    assert not host.sources[source.source].pending
    client = world.nodes["u"]
    assert isinstance(client, Registrant)
    assert client.places == {made.profile: ("c", "m1"), source.source: ("c", "m1")}
    assert isinstance(settled(world, DeleteInterest("-", made.profile)), InterestChanged)


def test_a_host_that_waits_says_what_is_in_force_and_no_sooner() -> None:
    world = World()
    world.add("r1", RegistrationNode("r1", world.store, lease_seconds=10.0))
    host = Hosting("n1", BrokerRecord("b", "", "eu", 1e6, 10), world.store)
    world.add("n1", host)
    world.add("u", Registrant(["r1"], 1))
    request = ask(world, INTEREST)
    world.settle(2)
    assert request not in world.answers
    (profile,) = host.profiles.values()

    def in_force(since: int) -> object:
        world.do("n1", host.in_force(profile.id, since, world.clock.now))
        world.settle(2)
        return world.answers.get(request)

    assert in_force(profile.version - 1) is None
    # Another label changes the record, and not what is in force; another query does.
    relabelled = msgspec.structs.replace(profile, labels={"tier": "gold"})
    changed = msgspec.structs.replace(profile, query="//other")
    world.store.write([changed])
    world.settle(2)
    assert in_force(profile.version) is None
    world.store.write([relabelled])
    world.settle(2)
    since = host.profiles[profile.id].version
    assert in_force(profile.version) is None, "it was in force once, and is not any more"
    world.store.write([msgspec.structs.replace(relabelled, labels={"tier": "tin"})])
    world.settle(2)
    assert host.profiles[profile.id].version > since
    assert isinstance(in_force(since), InterestRegistered)
    # The state is read anew, as after a log was compacted: what is in force is known to be.
    world.store.write([msgspec.structs.replace(relabelled, pending=True)])
    host._position = world.store.position + 1
    world.settle(3)
    assert not host.profiles[profile.id].pending


def test_what_is_in_force_of_a_profile_that_comes_back_is_told_apart() -> None:
    """A profile is changed and changed back: its version is the same, and it begins anew."""
    node = BrokerNode("b", {}, TOY, {}, 1)
    node.start(0.0)
    planes = Planes(node, Served())
    kept = ProfileRecord("p-1", "ann", "a1", "ids", host="b", version=3)
    records = [
        kept,
        msgspec.structs.replace(kept, query="a2", version=4),
        msgspec.structs.replace(kept, version=5),
        msgspec.structs.replace(kept, labels={"tier": "gold"}, version=6),
    ]
    said = []
    for record in records:
        effects = planes.apply(ChangeRecord(record.version, "profile", "p-1", record), 0.0)
        given = [effect.what for effect in effects if isinstance(effect, Deliver)]
        said += [one for one in given if isinstance(one, InForce)]
    assert [one.version == said[0].version for one in said] == [True, False, True]
    assert [planes.served_since(one) for one in said] == [None, None, 5]
    gone = ChangeRecord(7, "profile", "p-1", None)
    planes.apply(gone, 0.0)
    assert [planes.served_since(one) for one in said] == [None, None, None]


def test_samples_are_kept_of_registered_sources_alone() -> None:
    """A publisher that makes up names of sources takes no memory by it."""
    source = SourceRecord("shop", "here", "", 1, 1.0, 1.0, "b")
    served = Served((), (source,), (CatalogRecord("shop@1", "shop", 1, ""),))
    samples = SourceSamples()
    hosted = HostedKind(broker_kind("b", [], content=TOY), served, Mock(), samples).kind
    node = hosted.make({}, 1)
    node.start(0.0)
    assert hosted.request is not None
    names = ("shop", "s-1", "s-2")
    calls = [("here", [PublishRequest(name, f"m-{name}", b"<a/>")]) for name in names]
    outcomes, _ = hosted.request(node, [("", [served]), *calls], 0.0)
    assert [type(each) for each in outcomes] == [list, list, PublicationError, PublicationError]
    assert samples.taken(at_least=1) == [SampleRecord("shop", ("<a/>",))]


def test_what_a_broker_refuses_of_the_service_fails_no_other_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(announcements, "SOURCES_MAX", 1)
    source = SourceRecord("shop", "here", "", 1, 1.0, 1.0, "b")
    served = Served((), (source,), (CatalogRecord("shop@1", "shop", 1, ""),))
    more = msgspec.structs.replace(source, id="more")
    two = (CatalogRecord("shop@1", "shop", 1, ""), CatalogRecord("more@1", "more", 1, ""))
    one_too_many = Served((), (source, more), two)
    hosted = HostedKind(broker_kind("b", [], content=TOY), served, Mock(), None).kind
    node = hosted.make({}, 1)
    node.start(0.0)
    assert hosted.request is not None
    calls = [("here", [PublishRequest("shop", name, b"<a/>")]) for name in ("m-1", "m-2")]
    asked: list[tuple[str, Sequence[object]]]
    asked = [("", [served]), calls[0], ("", [one_too_many]), calls[1]]
    outcomes, _ = hosted.request(node, asked, 0.0)
    assert [type(each) for each in outcomes] == [list, list, PublicationError, list]


REFUSED = [
    (RegisterInterest("-", "ann", "//a["), "XPST0003"),
    (RegisterInterest("-", "ann", "x" * 10_000), "query.too_long"),
    (RegisterInterest("-", "ann", "//a", deliver="x"), "subscription.deliver"),  # type: ignore[arg-type]
    (RegisterInterest("-", "a\0", "//a"), "row.character"),
    (RegisterInterest("-", "ann", "//a", steps=("move //b",)), "XPST0003"),
    (RegisterInterest("-", "ann", "//a", steps=("drop //b[",)), "XPST0003"),
    (RegisterInterest("-", "ann", "//a", labels={"x": "\udc00"}), "row.surrogate"),
    (RegisterSource("-", "eu", "", 1e6, 1e6), "registration.capacity"),
    (RegisterSource("-", "eu", "x" * 9_000_000, 1.0, 1.0), "row.length"),
    (RegisterSource("-", "eu", "", float("nan"), 1.0), "registration.capacity"),
    (ChangeInterest("-", "p-nobody", "//a"), "registration.unknown"),
]


@pytest.mark.parametrize(("message", "code"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_done_is_refused_and_leaves_no_trace(message: Asked, code: str) -> None:
    world = new_world()
    before = world.store.position
    client = world.nodes["u"]
    assert isinstance(client, Registrant)
    client.places["p-nobody"] = ("b", "n1")
    answer = settled(world, message)
    assert isinstance(answer, RegistrationRefused), answer
    assert answer.code == code
    assert world.store.position == before


def test_a_stranger_changes_nothing() -> None:
    world = new_world()
    made, source = settled(world, INTEREST), settled(world, SOURCE)
    assert isinstance(made, InterestRegistered)
    assert isinstance(source, SourceRegistered)
    world.add("x", Registrant(["r1", "r2"], 2))
    before = world.store.position
    stranger = world.nodes["x"]
    assert isinstance(stranger, Registrant)
    stranger.places.update({made.profile: ("b", "n1"), source.source: ("b", "n1")})
    for message in (
        ChangeInterest("-", made.profile, "//x"),
        DeleteInterest("-", made.profile),
        UpdateSource("-", source.source, "x"),
    ):
        answer = settled(world, message, "x")
        assert isinstance(answer, RegistrationRefused)
        assert answer.code == "registration.unknown"
    planes = len(world.planes["n1"])
    # Forged news from brokers and from the service.
    for forged in (
        HostKnows(made.profile, 1),
        RootKnows(source.source, 1),
        RootKnows("\0", 1),
        HostKnows("\ud800", 1),
        Locate("1", "\ud800"),
        Locate("2", "s-x\0"),
        Locate("3", "x" * 10_000_000),
        Locate("4", made.profile),
    ):
        world.flying.append(("x", "r1", forged))
    world.flying.append(("x", "n1", DeleteInterest("\udfff", "\udfff")))
    world.flying.append(("x", "n1", TellHost(ProfileRecord("p-forged", "x", "//x", host="b"))))
    world.flying.append(("x", "n1", TellRoot(SourceRecord("s-forged", "x", "", 1, 1.0, 1.0, "b"))))
    for junk in (None, b"junk", 7, "NotLeading", RegistrationRefused("", "", "")):
        world.flying += [("x", "r1", junk), ("x", "n1", junk), ("x", "u", junk)]
    while world.flying:
        world.arrive(0)
    assert len(world.planes["n1"]) == planes
    assert world.store.position == before
    host = world.serving()[0]
    assert set(host.profiles) == {made.profile}
    assert set(host.sources) == {source.source}


def test_the_same_request_twice_is_done_once_and_answered_twice() -> None:
    world = new_world()
    first = settled(world, INTEREST)
    assert isinstance(first, InterestRegistered)
    again = msgspec.structs.replace(INTEREST, request=first.request)
    before = world.store.position
    for _ in range(2):
        world.flying.append(("u", "r1", again))
        world.arrive(0)
        assert world.flying == [("r1", "u", first)]
        world.flying.clear()
    assert world.store.position == before


class Hasty(RegistrationNode):
    """The safeguard off: whoever asks is answered as soon as it is written."""

    def _new_source(self, sender: str, name: str, message: RegisterSource) -> list[Record]:
        source, catalog = super()._new_source(sender, name, message)
        return [msgspec.structs.replace(source, pending=False), catalog]


def test_an_order_that_answers_first_would_be_seen() -> None:
    world = new_world()
    world.nodes["r1"].__class__ = Hasty
    ask(world, SOURCE)
    with pytest.raises(AssertionError, match=r"\(3\) went before \(2\)"):
        explored(world, 0, 6, 100, lambda _: None)


CITIES = ["Bern", "Graz", "Linz", "Oslo", "Riga", "Rome", "Turin", "Wien"]


def test_hosts_by_content_have_the_partitions_that_they_list() -> None:
    registry = made_by("reference", Registry)
    queries = {f"s{n}": f"/order[@to = '{city}']" for n, city in enumerate(CITIES * 3)}
    registry.add([Subscription(name, "u", text) for name, text in queries.items()])
    placement = made_by("reference", PepPlacement.of, registry.population(), 4)
    brokers = {f"b{n}": BrokerRecord(f"b{n}", "", ["eu", "us"][n % 2], 1e6, 40) for n in range(4)}
    near, anywhere = ByContent(placement, region_levels=1), ByContent(placement)
    for choice, regions in ((anywhere, [""]), (near, ["eu", "us"])):
        known, hosted = dict(brokers), dict.fromkeys(brokers, 0)
        where: dict[tuple[str, int], set[str]] = {}
        for text in queries.values():
            for region in regions:
                population = placing.population_of_one(Subscription("p", "u", text))
                chosen = choice.host(population, region, known, hosted)
                assert chosen is not None
                assert not region or chosen.broker.location == region
                known[chosen.broker.id] = chosen.broker
                hosted[chosen.broker.id] += 1
                partition = int(placement.place(population)[0])
                assert partition in chosen.broker.partitions
                where.setdefault((region, partition), set()).add(chosen.broker.id)
        assert all(len(each) == 1 for each in where.values()), "a partition has two brokers"
        listed = [each for broker in known.values() for each in broker.partitions]
        assert len(listed) == len(where)
        loads = [len(broker.partitions) for broker in known.values()]
        assert max(loads) - min(loads) <= 1
    # What asks for no value goes to the nearest; so does what the partition's broker has no room
    # for; a broker that is gone has none.
    dont_care = placing.population_of_one(Subscription("p", "u", "/order"))
    assert near.host(dont_care, "us", known, hosted) is not None
    full = {name: 40 if brokers[name].location == "eu" else 0 for name in brokers}
    found = near.host(population, "eu", known, full)
    assert found is not None
    assert found.broker.location == "us"
    gone = {n: msgspec.structs.replace(b, state="gone") for n, b in known.items()}
    assert near.host(population, "eu", gone, hosted) is None


def test_a_root_is_near_and_has_bandwidth() -> None:
    brokers = [
        BrokerRecord("full", "", "eu/ch/bern", 10.0, 0),
        BrokerRecord("near", "", "eu/ch", 1e6, 0),
        BrokerRecord("also", "", "eu/ch", 1e6, 0),
        BrokerRecord("gone", "", "eu/ch/bern", 1e9, 0, state="gone"),
        BrokerRecord("far", "", "us", 1e9, 0),
    ]

    def root(volume: float, **used: float) -> str | None:
        found = host_choice.root_for(brokers, used, "eu/ch/bern", volume)
        return None if found is None else found.id

    assert root(5.0) == "full"
    assert root(100.0) == "also"
    assert root(100.0, also=1.0) == "near"
    assert root(1e7) == "far"
    assert root(1e10) is None


def test_a_change_does_not_wait_until_the_one_before_is_on_disk() -> None:
    asked: list[object] = []
    kept = asyncio.Event()

    class SlowDisk:
        async def ask(self, client: str, message: object, seconds: float) -> object:
            asked.append(message)
            await kept.wait()
            if message == refused:
                raise PublicationError("publication.source", source="b", retry="no")
            return RequestAccepted()

    async def main() -> None:
        changes: asyncio.Queue[Served | ChangeRecord] = asyncio.Queue()
        following = asyncio.ensure_future(follow(changes, cast("Carrier", SlowDisk())))
        for each in ("a", "b", "c"):
            changes.put_nowait(ChangeRecord(1, "source", each, None))
        await eventually(lambda: len(asked) == 3)
        kept.set()
        with pytest.raises(PublicationError):
            await following
        following = asyncio.ensure_future(follow(changes, cast("Carrier", SlowDisk())))
        changes.put_nowait(lost := Served(is_played=False))
        assert await following == lost

    refused = ChangeRecord(1, "source", "b", None)
    asyncio.run(main())
    assert [each.id for each in asked if isinstance(each, ChangeRecord)] == ["a", "b", "c"]

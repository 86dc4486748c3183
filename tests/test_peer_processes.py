"""Filtering peers over carriers and as processes: matches are those of one process."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from typer.testing import CliRunner

from killed_carriers import abandon
from pathcast import Query, Registry
from pathcast.cli.app import build_app
from pathcast.dht.filtering import FilteringSettings
from pathcast.dht.peer import Settings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.dht.subscriptions import Matched, Subscribed, Unsubscribed
from pathcast.errors import ConfigError, UnavailableError
from pathcast.settings import read_settings
from pathcast.transport import endings, local_processes
from pathcast.transport.carrier import Carrier
from pathcast.transport.disk import Disk
from pathcast.transport.endings import has_ended
from pathcast.transport.local_ring import LocalRing
from pathcast.transport.peer import (
    TOLD,
    UNDER_WAY_MAX,
    LeaveRing,
    Left,
    PeerAccepted,
    PeerPublish,
    PublicationReport,
    Register,
    StandingQuery,
    Withdraw,
)
from pathcast.transport.peer_kind import peer_kind
from pathcast.transport.peer_settings import PeerSettings
from pathcast.transport.ring_map import ring_map
from pathcast.transport.service import described
from pathcast_lab.sim.memory_streams import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually, wait_until

NAMES = ["a", "b", "c", "d", "e", "f"]
BASE = NAMES[:4]
RING = Settings(tick_seconds=0.05, patience_seconds=0.4, attempts=4, current_seconds=0.2)
PIECES = PieceSettings(queries_max=2, copy_seconds=0.2)
WAYS = {
    "at once": FilteringSettings(PIECES, gather_seconds=0.0, patience_seconds=2.0),
    "gathered": FilteringSettings(PIECES, gather_seconds=0.02, patience_seconds=2.0),
    "virtual nodes": FilteringSettings(PIECES, patience_seconds=2.0),
}
"""Settings of peers whose questions wait for others or do not, and of several members a process."""
QUERIES = {
    "q1": "/order/to",
    "q2": "//item[@sku = 'A7']",
    "q3": "/order[item/@sku = 'B2'][to = 'Chur']",
    "q4": "//recall | /order[total > 90]",
    "q5": "/*/item",
    "q6": "/order[not(item)]",
}


def a_message(chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return b"<recall/>"
    sku, to = chance.choice(["A7", "B2", "C3"]), chance.choice(["Bern", "Chur"])
    item = f'<item sku="{sku}"/>' if chance.random() < 0.8 else ""
    return f"<order>{item}<to>{to}</to><total>{chance.randrange(100)}</total></order>".encode()


def begin(
    network: MemoryNetwork,
    name: str,
    way: str = "at once",
    ring: Settings = RING,
    ended: Collection[str] = (),
) -> Carrier:
    async def has_ended(peer: str) -> bool:
        return peer in ended

    members = 2 if way == "virtual nodes" else 1
    kind = peer_kind(name, BASE, ring, WAYS[way], virtual_nodes=members)
    carrier = Carrier(name, kind, Disk(None), network.dial_from(name), has_ended=has_ended)
    network.add(carrier)
    return carrier


@asynccontextmanager
async def a_ring(
    way: str = "at once", ring: Settings = RING, ended: Collection[str] = ()
) -> AsyncIterator[MemoryNetwork]:
    network = MemoryNetwork()
    for name in NAMES:
        begin(network, name, way, ring, ended)
    try:
        for name, carrier in network.carriers.items():
            await carrier.start([peer for peer in NAMES if name < peer])
        carriers = network.carriers.values()
        await eventually(lambda: all(bool(node_of(each)["is_member"]) for each in carriers))
        yield network
    finally:
        await network.stop()


def node_of(carrier: Carrier) -> dict[str, object]:
    node = described(carrier)["node"]
    assert isinstance(node, dict)
    return node


def inbox(carrier: Carrier) -> list[object]:
    return [TOLD.decode(each.body) for each in carrier.disk.waiting("ann", 0, 10**6)]


async def until_told(carrier: Carrier, kind: type, count: int) -> None:
    await eventually(lambda: sum(isinstance(each, kind) for each in inbox(carrier)) >= count)


async def register(carrier: Carrier, rows: dict[str, str]) -> PeerAccepted:
    queries = tuple(StandingQuery(id, text) for id, text in rows.items())
    answer = await carrier.ask("ann", Register(queries), PATIENCE_SECONDS)
    assert isinstance(answer, PeerAccepted)
    return answer


@pytest.mark.parametrize("way", WAYS)
def test_matches_are_those_of_one_process(way: str) -> None:
    chance = random.Random(4)
    messages = {f"m{number}": a_message(chance) for number in range(30)}
    index = Registry()
    index.add([Query(id, text) for id, text in QUERIES.items()])
    results = index.freeze().match(list(messages.values()))
    expected = {
        (f"ann/{id}", message)
        for message, result in zip(messages, results, strict=True)
        for id in result.query_ids
    }

    async def main() -> None:
        async with a_ring(way) as network:
            here = network.carriers["e"]
            assert await register(here, QUERIES) == PeerAccepted()
            await until_told(here, Subscribed, len(QUERIES))
            publisher = network.carriers["b"]
            for start in range(0, len(messages), 10):
                group = list(messages.items())[start : start + 10]
                said = await publisher.submit("ann", [PeerPublish(id, body) for id, body in group])
                assert said == []
            await until_told(publisher, PublicationReport, len(messages))
            outcomes = [each for each in inbox(publisher) if isinstance(each, PublicationReport)]
            assert all(each.published.is_proved for each in outcomes)
            message_of = {each.published.publication: each.message for each in outcomes}
            told = [each for each in inbox(here) if isinstance(each, Matched)]
            matches = [(each.subscription, message_of[each.publication]) for each in told]
            assert sorted(matches) == sorted(expected)
            nodes = [node_of(each) for each in network.carriers.values()]
            assert {each["under_way"] for each in nodes} == {0}
            assert {len(cast(dict[str, object], each["members"])) for each in nodes} == {
                2 if way == "virtual nodes" else 1
            }
            assert sum(cast(int, each["queries"]) for each in nodes) >= len(QUERIES)
            assert sum(cast(int, each["visits"]) for each in nodes) > 0

    asyncio.run(main())


def test_what_is_withdrawn_is_not_told_and_what_cannot_be_is_refused() -> None:
    async def main() -> None:
        async with a_ring() as network:
            here, there = network.carriers["a"], network.carriers["f"]
            bad = await register(here, {"good": "//to", "bad": "//to["})
            assert [(id, code) for id, code, _ in bad.refused] == [("bad", "XPST0003")]
            again = await register(here, {"good": "//to"})
            assert [id for id, _, _ in again.refused] == ["good"]
            await until_told(here, Subscribed, 1)
            (said,) = await there.submit("ann", [PeerPublish("m0", b"<order>")])
            assert isinstance(said, PeerAccepted)
            assert [(id, code) for id, code, _ in said.refused] == [("m0", "xml.end")]
            assert await here.ask(
                "ann", Withdraw(("good", "none")), PATIENCE_SECONDS
            ) == PeerAccepted((("none", "query.unknown", "no query has the id ann/none"),))
            await until_told(here, Unsubscribed, 1)
            await there.submit("ann", [PeerPublish("m1", b"<order><to/></order>")])
            await until_told(there, PublicationReport, 1)
            assert not [each for each in inbox(here) if isinstance(each, Matched)]

    asyncio.run(main())


@pytest.mark.parametrize("way", ["at once", "virtual nodes"])
def test_a_peer_leaves_when_nobody_subscribes_there(way: str) -> None:
    async def main() -> None:
        async with a_ring(way) as network:
            base, here, there = (network.carriers[name] for name in "aef")
            await register(here, QUERIES)
            await until_told(here, Subscribed, len(QUERIES))
            for carrier, why in ((base, "of the base"), (here, "6 subscriptions are at it")):
                said = await carrier.ask("ann", LeaveRing(), PATIENCE_SECONDS)
                assert isinstance(said, PeerAccepted)
                assert why in said.refused[0][2]
            assert await there.ask("ann", LeaveRing(), PATIENCE_SECONDS) == PeerAccepted()
            await until_told(there, Left, 1)
            assert [each for each in inbox(there) if isinstance(each, Left)] == [Left("f")]
            members = cast(dict[str, dict[str, object]], node_of(there)["members"])
            assert not any(each["is_member"] for each in members.values())
            # What it held is with others.
            await base.submit("ann", [PeerPublish("m", b"<recall/>")])
            await until_told(base, PublicationReport, 1)
            await until_told(here, Matched, 1)

    asyncio.run(main())


@pytest.mark.parametrize("way", ["at once", "virtual nodes"])
def test_nobody_waits_for_a_process_that_has_ended(way: str) -> None:
    """With such patience, a question that is lost, or put to one that is dead, ends nothing."""
    patient = replace(RING, patience_seconds=300.0)

    async def main() -> None:
        ended: set[str] = set()
        async with a_ring(way, patient, ended) as network:
            here, there = network.carriers["e"], network.carriers["f"]
            await register(here, QUERIES)
            await until_told(here, Subscribed, len(QUERIES))
            ended.add("f")
            await abandon(there)
            bodies = [b"<recall/>", b"<order><to/></order>"] * 4
            await here.submit("ann", [PeerPublish(f"m{n}", body) for n, body in enumerate(bodies)])
            await until_told(here, PublicationReport, len(bodies))
            outcomes = [each for each in inbox(here) if isinstance(each, PublicationReport)]
            assert all(each.published.is_proved for each in outcomes)

    asyncio.run(main())


def test_a_process_has_ended_when_nobody_listens_where_it_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endings, "PAUSES_SECONDS", (0.0, 0.01))

    async def main() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert not await has_ended(address)
        server.close()
        await server.wait_closed()
        assert await has_ended(address)
        assert not await has_ended("no-such-host.invalid:7")

    asyncio.run(main())


def test_publishers_wait_when_too_much_is_under_way() -> None:
    async def main() -> None:
        network = MemoryNetwork()
        alone = begin(network, "e")  # no ring, so nothing has an outcome
        await alone.start([])
        try:
            message = PeerPublish("m", b"<a/>")
            with pytest.raises(UnavailableError):
                await alone.submit("ann", [message] * (UNDER_WAY_MAX + 1))
            await alone.submit("ann", [message] * UNDER_WAY_MAX)
            with pytest.raises(UnavailableError) as caught:
                await alone.submit("ann", [message])
            assert caught.value.code == "broker.full"
        finally:
            await network.stop()

    asyncio.run(main())


def test_settings_name_what_cannot_be(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    ring = '[ring]\nbase = ["a", "b"]\nsuccessors = 1\ncopies = 1\n'
    text = f'[peer]\nname = "b"\ndirectory = "b"\n{ring}'
    file.write_text(text)
    with pytest.raises(ConfigError, match="no address for a"):
        read_settings(PeerSettings, file)
    file.write_text(text + '[[peers]]\nname = "a"\naddress = "127.0.0.1:7"\n')
    settings = read_settings(PeerSettings, file)
    # The one with the lesser name calls.
    assert settings.process.addresses == {}
    assert [each.name for each in settings.process.neighbours] == ["a"]
    with pytest.raises(ConfigError, match="more than 2 different"):
        read_settings(PeerSettings, file, ["ring.successors=2"])
    enough = ["ring.successors=2", 'ring.base=["a", "b", "c"]']
    with pytest.raises(ConfigError, match="no more copies than successors"):
        read_settings(PeerSettings, file, ["ring.copies=2"])
    with pytest.raises(ConfigError, match="2 copies may all be at one process of 2 members"):
        read_settings(PeerSettings, file, [*enough, "ring.copies=2", "ring.virtual_nodes=2"])
    # What a broker's file may not say is refused by the key of the peer's file.
    with pytest.raises(ConfigError, match=r"peer\.listen: 'nowhere' is not HOST:PORT"):
        read_settings(PeerSettings, file, ["peer.listen=nowhere"])
    doubled = tmp_path / "doubled.toml"
    doubled.write_text(file.read_text() + '[[clients]]\nname = "ann"\n' * 2)
    with pytest.raises(ConfigError, match="ann: two have this name"):
        read_settings(PeerSettings, doubled)
    with pytest.raises(ConfigError, match="# is for the numbers of virtual nodes"):
        read_settings(PeerSettings, file, ["peer.name=b#1"])


def test_settings_say_when_a_piece_is_cut(tmp_path: Path) -> None:
    ring = LocalRing.write(tmp_path / "ring", 6, {"piece_queries_max": 7})
    settings = read_settings(PeerSettings, ring.directory / "p05.toml")
    assert settings.filtering_settings.pieces == PieceSettings(queries_max=7)


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ("ring.fragments=pieces", "take the key out"),
        ("ring.fragments=states", "take the key out"),
        ("ring.length=0", "piece_queries_max"),
        ("ring.whole=false", "the elements that a piece reads travel"),
        ("ring.on_the_way=true", "after structure"),
        ("ring.replicas=10", "other peers share a busy piece"),
        ("ring.replicated_share=0.1", "other peers share a busy piece"),
        ("peer.execution=iterative", "every peer publishes recursively"),
    ],
)
def test_a_key_that_has_ended_is_refused_with_what_to_do(
    tmp_path: Path, given: str, instead: str
) -> None:
    """Else an operator would believe that it still does something."""
    file = LocalRing.write(tmp_path / "ring", 4).directory / "p00.toml"
    key = given.partition("=")[0]
    with pytest.raises(ConfigError, match=f"{key}: has ended: .*{instead}"):
        read_settings(PeerSettings, file, [given])


def test_the_base_is_not_killed(tmp_path: Path) -> None:
    ring = LocalRing.write(tmp_path / "ring", 6)
    assert ring.names == ["p00", "p01", "p02", "p03", "p04", "p05"]
    called = CliRunner().invoke(
        build_app(), ["peer", "kill", "p01", "--directory", str(ring.directory)]
    )
    assert called.exit_code != 0
    assert "of the base" in called.output
    with pytest.raises(ConfigError, match="pathcast peer heal"):
        LocalRing.write(tmp_path / "ring", 6)


def test_nobody_is_left_behind_who_does_not_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = LocalRing.write(tmp_path / "ring", 4)
    begun: list[subprocess.Popen[bytes]] = []

    def begin(self: LocalRing, names: Sequence[str], options: Sequence[str]) -> dict[str, int]:
        for name in names:
            (self.directory / f"{name}.log").write_text("it sleeps")
            begun.append(subprocess.Popen(["sleep", "60"]))
        return {name: each.pid for name, each in zip(names, begun, strict=True)}

    monkeypatch.setattr(LocalRing, "_begin", begin)
    monkeypatch.setattr(local_processes, "START_SECONDS", 0.1)
    monkeypatch.setattr(local_processes, "START_EACH_SECONDS", 0.0)
    with pytest.raises(UnavailableError, match="it sleeps"):
        ring.start(ring.names, are_new=True)
    assert [each.wait(PATIENCE_SECONDS) for each in begun] == [-signal.SIGKILL] * 4


def test_the_map_shows_who_holds_and_who_is_down() -> None:
    node = {"place": 0.25, "queries": 5, "links": 2, "visits": 3, "pieces": 1234}
    drawing = ring_map({"a": {"node": {"members": {"a": node}}}, "b": None})
    assert "1,234 pieces, 3 visits" in drawing
    assert "b is down" in drawing


@pytest.mark.nightly
def test_processes_of_several_members_and_one_that_is_killed(tmp_path: Path) -> None:
    ring = LocalRing.write(tmp_path / "ring", 6, {"virtual_nodes": 2})

    async def told(name: str, kind: type, count: int) -> list[object]:
        found: list[object] = []
        async for each in ring.followed(name, TOLD):
            if isinstance(each, kind):
                found.append(each)
            if len(found) == count:
                break
        return found

    async def main() -> None:
        await ring.until_whole()
        statuses = (await ring.statuses()).values()
        nodes = [status["node"] for status in statuses if status is not None]
        assert sorted(name for node in nodes for name in node["members"]) == [
            f"p{process:02d}#{member}" for process in range(6) for member in range(2)
        ]
        queries = tuple(StandingQuery(id, text) for id, text in QUERIES.items())
        async with ring.operator("p01") as client:
            assert await client.ask(Register(queries)) == PeerAccepted()
        await told("p01", Subscribed, len(QUERIES))
        ring.kill("p05")
        async with ring.operator("p04") as client:
            assert await client.publish([PeerPublish("m", b"<order><to>Bern</to></order>")]) == []
        (outcome,) = await told("p04", PublicationReport, 1)
        assert isinstance(outcome, PublicationReport)
        assert outcome.published.is_proved
        matched = await told("p01", Matched, 2)
        assert {cast(Matched, each).subscription for each in matched} == {
            "operator/q1",
            "operator/q6",
        }

    try:
        ring.start(ring.names, are_new=True)
        asyncio.run(asyncio.wait_for(main(), 120))
    finally:
        ring.stop(ring.names)


@pytest.mark.nightly
def test_clients_of_a_ring_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.xml").write_bytes(b"<order><to>Bern</to></order>")

    def call(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(build_app(), ["peer", *arguments])
        return result.exit_code, result.output

    try:
        assert call("up", "5")[0] == 0
        wait_until(lambda: "is not on the ring now" not in call("ls")[1])
        Path("bern.xq").write_text("//to[. = 'Bern']")
        assert call("subscribe", "s", "@bern.xq", "--at", "p01")[0] == 0
        Path("steps.xq").write_text("(: @step drop //to :) //to")
        assert call("subscribe", "t", "@steps.xq", "--at", "p01")[0] == 2
        assert call("subscribe", "s", "//to[", "--at", "p01")[0] == 1
        code, text = call("subscribe", "dead", "//to[. > 'Bern']", "--at", "p02")
        assert (code, "dead: PL201: no message can satisfy the query" in text) == (0, True)
        code, text = call("publish", "m.xml", "nothing.xml", "--at", "p04")
        rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        assert (code, [row["error"] is None for row in rows]) == (1, [True, False])
        inbox = ("inbox", "--at", "p04")
        text = wait_until(lambda: said if '"proved": true' in (said := call(*inbox)[1]) else "")
        outcome = json.loads(text.splitlines()[-1])
        told = [json.loads(line) for line in call("inbox", "--at", "p01")[1].splitlines()]
        assert told[0]["notice"] == "indexed"
        assert told[1]["subscription"] == "operator/s"
        assert told[1]["publication"] == outcome["publication"]
        assert outcome["message"] == rows[0]["id"]
        assert call("unsubscribe", "s", "--at", "p01")[0] == 0
        assert "there are p00" in call("inbox", "--at", "p99")[1]
    finally:
        assert call("down")[0] == 0

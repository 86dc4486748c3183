"""Brokers of the overlay over carriers: deliveries are those of one process."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

import msgspec
from typer.testing import CliRunner

from killed_carriers import abandon
from pathcast import Registry, Subscription
from pathcast.cli import net_client
from pathcast.cli.app import build_app
from pathcast.errors import ConfigError, PathcastError, PublicationError
from pathcast.model import DeliverMode
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery, InForce
from pathcast.overlay.messages import SourceEntry
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import (
    DELIVERIES,
    Explain,
    Explained,
    NotTaken,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    Subscribe,
    Unsubscribe,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.disk import Disk, Waiting
from pathcast.transport.local_processes import free_ports
from pathcast.transport.network import load_topology
from pathcast_lab.sim.memory_streams import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually, wait_until

RING = {"a": "bd", "b": "ac", "c": "bd", "d": "ca"}
PROFILES = {
    "s1": "/order[to = 'Bern']",
    "s2": "//item[@sku = 'A7']",
    "s3": "/order[item/@sku = 'B2'][to = 'Chur']",
    "s4": "for $o in /order where $o/total > 50 return <dear>{$o/to}</dear>",
    "s5": "//recall | /order[total > 90]",
    "s6": "/order[not(item)]",
}


def a_message(chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return b"<recall/>"
    sku, to = chance.choice(["A7", "B2", "C3"]), chance.choice(["Bern", "Chur", "Basel"])
    item = f'<item sku="{sku}"/>' if chance.random() < 0.8 else ""
    return f"<order>{item}<to>{to}</to><total>{chance.randrange(100)}</total></order>".encode()


def start(network: MemoryNetwork, name: str, directory: Path | None) -> Carrier:
    members = [each for each in RING if each != name]
    kind = broker_kind(name, RING[name], members=members)
    carrier = Carrier(name, kind, Disk(directory), network.dial_from(name))
    network.add(carrier)
    return carrier


async def begin(carrier: Carrier) -> None:
    await carrier.start([peer for peer in RING[carrier.name] if carrier.name < peer])


def inbox(carrier: Carrier) -> list[object]:
    return [DELIVERIES.decode(each.body) for each in carrier.disk.waiting("ann", 0, 10**6)]


async def arrived(carrier: Carrier, kind: type, count: int) -> None:
    """So many of them are in the inbox."""
    await eventually(lambda: sum(isinstance(each, kind) for each in inbox(carrier)) >= count)


@pytest.mark.parametrize("seed", [1, 2])
def test_deliveries_are_those_of_one_process_when_a_broker_is_killed(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    bodies = {f"m{number}": a_message(chance) for number in range(60)}
    hosts = {name: chance.choice("abcd") for name in PROFILES}
    one = Registry()
    modes: dict[str, DeliverMode] = {
        name: chance.choice(["fragment", "message", "ids"]) for name in PROFILES
    }
    one.add([Subscription(name, "", PROFILES[name], modes[name]) for name in PROFILES])
    expected = [
        (name, id, tuple(each.fragment for each in given if each.fragment is not None))
        for id, body in bodies.items()
        for name, given in groupby(one.deliver(body, id), lambda each: each.subscription_id)
    ]
    assert len(expected) > 30

    async def main() -> None:
        network = MemoryNetwork()
        for name in RING:
            start(network, name, tmp_path / name)
        for carrier in network.carriers.values():
            await begin(carrier)
        for root in "ac":
            await network.carriers[root].ask(
                "shop", RegisterSourceRequest(f"of {root}", SourceEntry()), PATIENCE_SECONDS
            )
        for name, host in hosts.items():
            request = Subscribe(((name, DeliveryProfile(PROFILES[name], modes[name])),))
            answer = await network.carriers[host].ask("ann", request, PATIENCE_SECONDS)
            assert isinstance(answer, RequestAccepted)
            assert answer.versions.keys() == {name}
        for host in "abcd":
            await arrived(network.carriers[host], InForce, list(hosts.values()).count(host))
        for number, (id, body) in enumerate(bodies.items()):
            if number == 30:
                # Of a ring of four, one is gone and the rest is a line.
                await abandon(network.carriers["b"])
            if number == 45:
                await begin(start(network, "b", tmp_path / "b"))
            root = "ac"[number % 2]
            await network.carriers[root].submit("shop", [PublishRequest(f"of {root}", id, body)])

        def given() -> list[tuple[str, str, tuple[bytes, ...]]]:
            return [
                (each.subscription.removeprefix("ann/"), each.message, each.results)
                for carrier in network.carriers.values()
                for each in inbox(carrier)
                if isinstance(each, InboxDelivery)
            ]

        await eventually(lambda: len(given()) >= len(expected))
        await asyncio.sleep(0.5)
        assert sorted(given()) == sorted(expected)
        await network.stop()

    asyncio.run(main())


def test_requests_are_answered_and_refusals_are_typed() -> None:
    async def main() -> None:
        network = MemoryNetwork()
        carrier = Carrier("a", broker_kind("a", [], members=[]), Disk(None), network.dial_from("a"))
        await carrier.start()
        answer = await carrier.ask(
            "ann",
            Subscribe((("s1", DeliveryProfile("//a")), ("s2", DeliveryProfile("//[")))),
            PATIENCE_SECONDS,
        )
        assert isinstance(answer, RequestAccepted)
        assert [(id, code) for id, code, _ in answer.refused] == [("s2", "XPST0003")]
        answer = await carrier.ask("bob", Unsubscribe(("s1",)), PATIENCE_SECONDS)
        assert isinstance(answer, RequestAccepted)
        assert [code for _, code, _ in answer.refused] == ["query.unknown"]
        told = await carrier.ask("op", Explain(b"<x><a/></x>"), PATIENCE_SECONDS)
        assert told == Explained((), ("ann/s1",))
        await carrier.ask("shop", RegisterSourceRequest("shop", SourceEntry()), PATIENCE_SECONDS)
        with pytest.raises(PublicationError):
            await carrier.submit("shop", [PublishRequest("nobody's", "m1", b"<a/>")])
        (answer,) = await carrier.submit(
            "shop",
            [PublishRequest("nobody's", "m2", b"<a/>"), PublishRequest("shop", "m3", b"<a/>")],
        )
        assert isinstance(answer, NotTaken)
        assert (answer.message, answer.code) == ("m2", "publication.source")
        await carrier.submit("shop", [PublishRequest("shop", "m4", b"<a/>")])
        await arrived(carrier, InboxDelivery, 2)
        came = [each for each in inbox(carrier) if isinstance(each, InboxDelivery)]
        assert [(each.message, each.position) for each in came] == [("m3", 1), ("m4", 2)]
        assert await carrier.ask("ann", Unsubscribe(("s1",)), PATIENCE_SECONDS) == RequestAccepted()
        assert await carrier.ask("op", Explain(b"<x><a/></x>"), PATIENCE_SECONDS) == Explained(
            (), ()
        )
        await carrier.stop()

    asyncio.run(main())


TOPOLOGIES = [
    ("[network]\nlinks = []", "links"),
    ('[network]\nlinks = [["a", "a"]]', "its own neighbour"),
    ('[network]\nlinks = [["a", "../b"]]', "cannot name a broker"),
    ('[network]\nlinks = [["a", "b"]]\nlink = 1', "link is not a setting|network.link"),
]


@pytest.mark.parametrize(("text", "told"), TOPOLOGIES)
def test_topologies_that_cannot_be_are_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_topology(tmp_path / "t.toml")


def test_ports_of_nodes_are_none_that_callers_get() -> None:
    ports = free_ports(60)
    assert len(set(ports)) == 60
    given_to_callers = Path("/proc/sys/net/ipv4/ip_local_port_range")
    assert max(ports) < (
        int(given_to_callers.read_text().split()[0]) if given_to_callers.exists() else 32_768
    )


def test_a_network_of_processes_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.toml").write_text('[network]\nlinks = [["a", "b"], ["b", "c"]]\n')
    (tmp_path / "m.xml").write_bytes(b"<order><to>Bern</to></order>")

    def call(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(build_app(), ["net", *arguments])
        assert not isinstance(result.exception, PathcastError)
        return result.exit_code, result.output

    assert call("ls")[0] == 2
    try:
        assert call("up", "t.toml")[0] == 0
        assert call("up", "t.toml")[0] == 2
        code, text = call("ls")
        assert (code, [line.split()[0] for line in text.splitlines()[1:4]]) == (0, ["a", "b", "c"])
        clients_by_command(call)
        assert call("kill", "b")[0] == 0
        code, text = call("ls")
        assert (code, "b       does not run" in text) == (1, True)
        assert "pathcast net heal starts it" in call("inbox", "--at", "b")[1]
        assert "there are a, b, c" in call("kill", "x")[1]
        assert call("map", "n.svg")[0] == 0
        assert (tmp_path / "n.svg").read_text().count('class="down"') == 1
        assert "started: b" in call("heal")[1]
        assert call("ls")[0] == 0
        assert call("link", "a", "b")[0] == call("link", "a", "x")[0] == 2
        assert call("link", "c", "a")[0] == 0
        wait_until(lambda: "a       b, c  " in call("ls")[1])
        assert call("kill", "a")[0] == 0
        assert call("heal")[0] == 0
        # The link is in the file.
        wait_until(lambda: "c       a, b  " in call("ls")[1])
    finally:
        assert call("down")[0] == 0
    assert call("ls")[1].count("does not run") == 3
    assert "nothing, none ran" in call("down")[1]


def clients_by_command(call: Callable[..., tuple[int, str]]) -> None:
    """A subscription at one end of the network, and a message at the other."""
    Path("bern.xq").write_text("(: towns @deliver fragment :) //to[. = 'Bern']")
    assert call("subscribe", "s", "@bern.xq", "--at", "c")[0] == 0
    assert call("subscribe", "s", "@gone.xq", "--at", "c")[0] == 1
    assert call("subscribe", "bad", "//to[", "--at", "c")[0] == 1
    code, text = call("subscribe", "dead", "//to[. > 'Bern']", "--at", "c")
    assert (code, "dead: PL201: no message can satisfy the query" in text) == (0, True)
    assert call("subscribe", "s", "//to", "--at", "c", "--as", "nobody")[0] == 1
    text = call("trace", "m.xml", "--at", "a")[1]
    for told in ("a (published here)", "wanted there: //to[.='Bern']", "delivered: operator/s"):
        assert told in text
    code, text = call("publish", "m.xml", "t.toml", "nothing.xml", "--at", "a", "--trace")
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert (code, [row["error"] is None for row in rows]) == (1, [True, False, False])
    assert call("publish", "m.xml", "--at", "b")[0] == 2  # the source is one of a
    code, text = call("publish", "m.xml", "--at", "a", "--time", "tomorrow")
    assert (code, "--time: 'tomorrow' is no time" in text) == (2, True)
    inbox = ("inbox", "--at", "c", "--settle")
    text = wait_until(lambda: said if "<to>Bern</to>" in (said := call(*inbox)[1]) else "")
    way = call("way", rows[0]["id"])[1].splitlines()
    assert [line.partition(":")[0] for line in way] == ["a", "  b", "    c"]
    assert call("way", "no-such-message")[0] == 1
    delivery = json.loads(text.splitlines()[-1])
    assert (delivery["subscription"], delivery["message"]) == ("operator/s", rows[0]["id"])
    assert call("inbox", "--at", "c") == (0, "")
    Path("late.xq").write_text("(: late @deliver fragment :) //to ! <t>{current-dateTime()}</t>")
    assert call("subscribe", "late", "@late.xq", "--at", "c")[0] == 0
    when = ("--time", "2026-03-01T12:00+01:00")
    assert call("publish", "m.xml", "--at", "a", *when)[0] == 0
    wait_until(lambda: "<t>2026-03-01T11:00:00Z</t>" in call("inbox", "--at", "c")[1])
    assert call("unsubscribe", "s", "--at", "c")[0] == 0
    assert call("unsubscribe", "s", "--at", "c")[0] == 1
    assert "to all brokers" in call("ls")[1]


class ClientOfTwoLives:
    """A broker's client whose inbox has `InForce` of a former life of an id, then of this one."""

    def __init__(self) -> None:
        self.read: list[int] = []

    async def __aenter__(self) -> ClientOfTwoLives:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    async def ask(self, message: object) -> RequestAccepted:
        assert isinstance(message, Subscribe)
        return RequestAccepted(versions={"s": 8})

    async def waiting(self, name: str, after: int) -> AsyncIterator[tuple[Waiting, ...]]:
        groups: list[tuple[Waiting, ...]] = []  # nothing waits yet
        for group in groups:
            yield group

    async def deliveries(self, name: str, after: int) -> AsyncIterator[tuple[Waiting, ...]]:
        for position, version in enumerate((7, 8, 9), 1):
            self.read.append(version)
            told = InForce(f"{name}/s", version, position)
            yield (Waiting(position, "notice", msgspec.msgpack.encode(told)),)


def test_subscribe_waits_for_its_own_life_of_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    client = ClientOfTwoLives()
    brokers = SimpleNamespace(connect=lambda: client, client="operator")
    monkeypatch.setattr(net_client, "brokers_of", lambda reach: brokers)
    result = CliRunner().invoke(build_app(), ["net", "subscribe", "s", "//a", "--at", "a"])
    assert (result.exit_code, client.read) == (0, [7, 8]), result.output

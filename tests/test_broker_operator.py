"""What an operator asks of brokers: to leave, to expel, why a message goes somewhere; tables."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from typer.testing import CliRunner

from killed_carriers import abandon
from pathcast.cli.app import build_app
from pathcast.cli.net import lag_notice, log_column
from pathcast.errors import ConfigError, PublicationError, RegistrationError
from pathcast.overlay.broker_node import NodeSettings
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.budgeted_table import HeldEntries, TableReview
from pathcast.overlay.content import Content, DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery, InForce
from pathcast.overlay.messages import SourceEntry
from pathcast.overlay.xml_content import xml_content
from pathcast.settings import read_settings
from pathcast.store import Store
from pathcast.transport.broker import DEFAULT, broker_kind
from pathcast.transport.broker_requests import (
    DELIVERIES,
    ExpelRequest,
    Explain,
    Explained,
    LeaveRequest,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    Subscribe,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.disk import Disk
from pathcast.transport.process import running
from pathcast.transport.service import described
from pathcast.transport.settings import BrokerSettings as BrokerFile
from pathcast.transport.settings import node_settings
from pathcast_lab.sim.memory_streams import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually

LINE = {"a": "b", "b": "ac", "c": "b"}


async def line(content: Content | None = None, settings: NodeSettings = DEFAULT) -> MemoryNetwork:
    """Brokers a - b - c, with a source at a."""
    network = MemoryNetwork()
    for name, peers in LINE.items():
        members = [each for each in LINE if each != name]
        kind = broker_kind(name, peers, members=members, content=content, settings=settings)
        network.add(Carrier(name, kind, Disk(None), network.dial_from(name)))
    for carrier in network.carriers.values():
        await carrier.start([peer for peer in LINE[carrier.name] if carrier.name < peer])
    links = {name: list(peers) for name, peers in LINE.items()}
    await eventually(
        lambda: all(status(one, "links") == links for one in network.carriers.values())
    )
    await network.carriers["a"].ask(
        "shop", RegisterSourceRequest("shop", SourceEntry()), PATIENCE_SECONDS
    )
    await eventually(lambda: "shop" in str(status(network.carriers["c"], "sources")))
    return network


async def subscribe(carrier: Carrier, profiles: Mapping[str, str]) -> None:
    rows = tuple((id, DeliveryProfile(query, "ids")) for id, query in profiles.items())
    answer = await carrier.ask("ann", Subscribe(rows), PATIENCE_SECONDS)
    assert isinstance(answer, RequestAccepted)
    assert answer.versions.keys() == profiles.keys(), answer.refused
    await eventually(lambda: len(told(carrier, InForce)) == len(profiles))


_Kind = TypeVar("_Kind")


def told(carrier: Carrier, kind: type[_Kind]) -> list[_Kind]:
    rows = [DELIVERIES.decode(each.body) for each in carrier.disk.waiting("ann", 0, 10**6)]
    return [each for each in rows if isinstance(each, kind)]


def status(carrier: Carrier, key: str) -> object:
    node = described(carrier)["node"]
    assert isinstance(node, Mapping)
    return node[key]


async def has_room(carrier: Carrier) -> bool:
    try:
        await carrier.submit("shop", [PublishRequest("shop", "m", b"<a/>")])
    except PublicationError as error:
        return error.code != "publication.log"
    return True


async def published_until_refused(carrier: Carrier) -> None:
    """The log is full: c has not had what is in it."""
    for _ in range(20):
        if not await has_room(carrier):
            return
    pytest.fail("whoever is away is not waited for")


def test_why_a_message_goes_to_a_neighbour() -> None:
    async def main() -> None:
        network = await line()
        await subscribe(network.carriers["c"], {"s": "//to[. = 'Bern']", "t": "/order[no > 3]"})
        await subscribe(network.carriers["a"], {"u": "//no"})
        answer = await network.carriers["b"].ask(
            "op", Explain(b"<order><no>7</no><to>Chur</to></order>"), PATIENCE_SECONDS
        )
        reasons: dict[str, tuple[str, ...]] = {"a": ("//no",), "c": ("/order/no[.>3]",)}
        assert answer == Explained(("a", "c"), (), reasons)
        assert await network.carriers["b"].ask(
            "op", Explain(b"<x/>"), PATIENCE_SECONDS
        ) == Explained((), ())
        await network.stop()

    asyncio.run(main())


def test_a_broker_that_leaves_or_is_expelled_is_waited_for_no_more() -> None:
    async def main() -> None:
        bounds = ProtocolSettings(log_messages_max=3, lag_seconds=PATIENCE_SECONDS)
        network = await line(settings=NodeSettings(broker=bounds))
        a, b, c = (network.carriers[name] for name in "abc")
        for name, told_why in (("a", "no other member"), ("nobody", "members: b, c")):
            with pytest.raises(ConfigError, match=told_why):
                await a.ask("op", ExpelRequest(name), PATIENCE_SECONDS)
        await abandon(c)
        await published_until_refused(a)
        assert await a.ask("op", ExpelRequest("c"), PATIENCE_SECONDS) == RequestAccepted()
        await eventually(lambda: status(b, "members") == ["a", "b"])
        await eventually(lambda: has_room(a))
        assert await b.ask("op", LeaveRequest(), PATIENCE_SECONDS) == RequestAccepted()
        await eventually(lambda: status(b, "has_left") is True and status(a, "members") == ["a"])
        # Nobody would be sent what one subscribes to there, however long it runs.
        answer = await b.ask(
            "ann", Subscribe((("late", DeliveryProfile("/order")),)), PATIENCE_SECONDS
        )
        assert isinstance(answer, RequestAccepted)
        assert [(id, code) for id, code, _ in answer.refused] == [("late", "registration.left")]
        with pytest.raises(RegistrationError, match="b leaves the network"):
            await b.ask("op", RegisterSourceRequest("late", SourceEntry()), PATIENCE_SECONDS)
        await network.stop()

    asyncio.run(main())


def test_a_broker_that_is_away_holds_the_log_and_then_nobody_up() -> None:
    async def main() -> None:
        bounds = ProtocolSettings(log_messages_max=3, lag_seconds=1.0)
        network = await line(settings=NodeSettings(broker=bounds))
        a, b, c = (network.carriers[name] for name in "abc")
        await subscribe(b, {"s": "/a"})
        assert log_of(a)["lags"] == []
        await abandon(c)
        assert await has_room(a)
        await eventually(lambda: [one["member"] for one in log_of(a)["lags"]] == ["c"])
        # Nothing is lost yet, and however much is published now, it is taken.
        assert [log_of(a)[key] for key in ("messages", "messages_max", "bytes")] == [1, 3, 4]
        for count in range(2, 8):
            await eventually(lambda: has_room(a))
            await eventually(lambda count=count: len(told(b, InboxDelivery)) == count)  # type: ignore
        await eventually(lambda: len(log_of(a)["lags"]) == 1)  # others have said what they had
        (lag,) = log_of(a)["lags"]
        assert (lag["member"], lag["behind"], lag["is_waited_for"]) == ("c", 7, False)
        assert lag["missed"] == 7 - log_of(a)["messages"]
        await network.stop()

    asyncio.run(main())


def log_of(carrier: Carrier) -> dict[str, Any]:
    return cast(dict[str, Any], status(carrier, "log"))


def test_who_holds_a_log_is_listed() -> None:
    behind = {"member": "c", "behind": 1_200, "missed": 200, "seconds": 45.4}
    log = {"messages": 900, "messages_max": 1_000, "bytes": 1, "bytes_max": 10, "lags": []}
    assert log_column(log) == "90%"
    log["lags"] = [{**behind, "is_waited_for": False}, {"member": "b"}, {"member": "d"}]
    assert log_column(log) == "90%, c and 2 more"
    said = "c lacks 1,200 messages, 200 of them for good, and has had nothing new for 45 s"
    assert lag_notice(behind) == said


def made_of(carrier: Carrier) -> tuple[int, int]:
    """Entries that neighbours told a broker, and that its table holds for them."""
    tables: Any = status(carrier, "budgeted_tables")
    found = [(each["told"], each["held"]) for each in tables.values() if each["told"]]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("trees", ["spanning", "broadcast"])
def test_wider_tables_deliver_the_same(tmp_path: Path, trees: str) -> None:
    """A table within its budget: more is sent, the same is delivered."""
    (tmp_path / "b.toml").write_text(
        '[broker]\nname = "b"\ndirectory = "d"\ncovering = true\ntable_entries_max = 2\n'
        f'trees = "{trees}"\nlog_messages_max = 1_000\n'
    )
    settings = read_settings(BrokerFile, tmp_path / "b.toml")

    async def main() -> None:
        section = settings.broker
        content = xml_content(
            covering=section.covering, table_entries_max=section.table_entries_max
        )
        network = await line(content, node_settings(settings))
        a, c = network.carriers["a"], network.carriers["c"]
        await subscribe(c, {f"s{number}": f"/order[no = {number}]" for number in range(5)})
        stream = [f"<order><no>{number}</no></order>".encode() for number in range(100, 140)]
        stream += [b"<bill>%d, to be paid within a month</bill>" % number for number in range(40)]
        await a.submit("shop", [PublishRequest("shop", body.decode(), body) for body in stream])
        assert made_of(a) == (5, 5)

        async def is_made_anew() -> bool:
            """Messages are routed when the neighbour follows the stream, and not before."""
            await a.improve()
            return made_of(a) == (5, 1)

        await eventually(is_made_anew)
        answer = await a.ask("op", Explain(b"<order><no>77</no></order>"), PATIENCE_SECONDS)
        assert answer == Explained(("b",), (), {"b": ("//no",)})
        bodies = [f"<order><no>{number}</no></order>".encode() for number in (3, 77, 4)]
        await a.submit("shop", [PublishRequest("shop", body.decode(), body) for body in bodies])
        await eventually(lambda: len(told(c, InboxDelivery)) == 2)
        given = [(each.subscription, each.message) for each in told(c, InboxDelivery)]
        assert sorted(given) == [("ann/s3", bodies[0].decode()), ("ann/s4", bodies[2].decode())]
        await network.stop()

    asyncio.run(main())


def test_whatever_fails_in_the_thread_that_widens_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A table is never left half made; the schemas are left out where they may be what fails."""
    choose = TableReview.choose
    tried: list[str] = []

    def chosen(review: TableReview) -> HeldEntries | None:
        tried.append("with" if review.schemas else "without")
        if len(tried) <= 3:
            raise RuntimeError("a bug")
        return choose(review)

    monkeypatch.setattr(TableReview, "choose", chosen)

    async def main() -> None:
        network = await line(xml_content(table_entries_max=2))
        a, c = network.carriers["a"], network.carriers["c"]
        schema = SourceEntry("<!ELEMENT order (no)><!ELEMENT no (#PCDATA)>")
        await a.ask("shop", RegisterSourceRequest("shop", schema), PATIENCE_SECONDS)
        await subscribe(c, {f"s{number}": f"/order[no = {number}]" for number in range(5)})
        bodies = [b"<order><no>%d</no></order>" % number for number in range(100, 140)]

        async def is_made_anew() -> bool:
            await a.submit("shop", [PublishRequest("shop", "m", body) for body in bodies])
            await a.improve()
            return made_of(a) == (5, 1)

        await eventually(is_made_anew)
        tables: Any = status(a, "budgeted_tables")
        assert sum(each["failures"] for each in tables.values()) == 1
        metrics = {one.name: one for one in a.kind.metrics(a.node, [])}
        assert [one.value for one in metrics["pathcast_table_failures"].samples] == [1]
        await network.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert tried == ["with", "without"] * 2
    told = [record for record in caplog.records if getattr(record, "event", "") == "table.kept"]
    assert len(told) == 3


def test_a_host_takes_no_more_subscriptions_than_it_says() -> None:
    async def main() -> None:
        network = await line(settings=NodeSettings(broker=ProtocolSettings(subscriptions_max=2)))
        c = network.carriers["c"]
        await subscribe(c, {"s1": "/a", "s2": "/b"})
        rows = (("s3", DeliveryProfile("/c")), ("s2", DeliveryProfile("/d")))
        answer = await c.ask("ann", Subscribe(rows), PATIENCE_SECONDS)
        assert isinstance(answer, RequestAccepted)
        assert [(id, code) for id, code, _ in answer.refused] == [("s3", "registration.full")]
        assert status(c, "subscriptions") == 2
        await network.stop()

    asyncio.run(main())


def test_dead_letters_are_listed_posted_again_and_dropped_by_command(tmp_path: Path) -> None:
    answers = {"status": "400 No"}
    posted: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        posted.append(await reader.readexactly(length))
        writer.write(f"HTTP/1.1 {answers['status']}\r\nConnection: close\r\n\r\n".encode())
        writer.close()

    async def command(*options: str) -> tuple[int | None, list[str], list[str]]:
        given = ["broker", "dead-letters", str(tmp_path / "b"), *options]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pathcast", *given, stdout=PIPE, stderr=PIPE
        )
        out, said = await process.communicate()
        return process.returncode, out.decode().splitlines(), said.decode().splitlines()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        hook = {
            "webhook": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/",
            "webhook_secret": "shared",
            "webhook_networks": ["127.0.0.0/8"],
        }
        settings = BrokerFile(
            broker={"name": "b", "directory": tmp_path / "b", "dead_letters_max": 4},  # type: ignore
            clients=[{"name": "ann", **hook}],  # type: ignore[arg-type]
        )
        async with running(settings, broker_kind("b", [])) as carrier:
            await carrier.ask(
                "shop", RegisterSourceRequest("shop", SourceEntry()), PATIENCE_SECONDS
            )
            profile = DeliveryProfile("/order", "message")
            answer = await carrier.ask("ann", Subscribe((("all", profile),)), PATIENCE_SECONDS)
            assert isinstance(answer, RequestAccepted)
            assert answer.versions.keys() == {"all"}
            for number in range(3):
                await carrier.submit("shop", [PublishRequest("shop", f"m{number}", b"<order/>")])
            await eventually(lambda: carrier.disk.dead_letter_counts() == {"ann": 4})
            told = ["ann/all, in force", *(f"m{number}, ann/all" for number in range(3))]
            code, lines, said = await command()
            assert (code, said) == (0, ["dead letters: 4, ann: 4"])
            assert lines == [
                f"position {at} of ann: {each}: refused: the answer was 400"
                for at, each in enumerate(told, 1)
            ]
            code, lines, said = await command("m1", "m7", "--json")
            assert (code, [json.loads(each)["told"]["results"] for each in lines]) == (
                1,
                [["<order/>"]],
            )
            assert said == ["error: m7: not among the dead letters", "dead letters: 1, ann: 1"]
            answers["status"], before = "204 Taken", len(posted)
            said = ["asked for: 2; they are posted behind what waits"]
            assert await command("m0", "m2", "--retry") == (0, [], said)
            await eventually(lambda: len(posted) == before + 2)
            assert await command("--drop", "--subscriber", "ann") == (0, [], ["dropped: 2"])
            assert carrier.disk.dead_letter_counts() == {}
            assert [DELIVERIES.decode(each).message for each in posted[before:]] == ["m0", "m2"]  # type: ignore
        server.close()
        code, _, said = await command()
        assert code != 0
        assert "no broker runs" in said[0]

    asyncio.run(main())


def test_the_registry_is_not_made_by_looking_at_it(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    place = tmp_path / "profiles.db"
    for arguments in (["ls", str(place)], ["gone", str(place), "a"]):
        result = CliRunner().invoke(build_app(), ["registry", *arguments])
        assert result.exit_code == 1, result.output
        assert not place.exists()
    Store.open(place).close()
    assert (
        "no brokers yet" in CliRunner().invoke(build_app(), ["registry", "ls", str(place)]).output
    )
    result = CliRunner().invoke(build_app(), ["registry", "gone", str(place), "a"])
    assert (result.exit_code, "there are: none" in result.output) == (2, True)

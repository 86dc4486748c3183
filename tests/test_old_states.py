"""Durable state of earlier versions: it is gone on with, or refused by name with what to do.

`testdata/old_states` has a folder for each version that wrote some, and an archive for each kind of
state. If these fail, an upgrade loses what a user keeps, or ends in a traceback.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from pathcast import Snapshot
from pathcast.cli import net_client, peer_client
from pathcast.cli.clients import print_inbox
from pathcast.cli.exits import ExitCode
from pathcast.dht.subscriptions import Matched, Subscribed
from pathcast.errors import (
    ConfigError,
    DiskError,
    FrameError,
    PeerError,
    SnapshotFormatError,
    UnavailableError,
)
from pathcast.overlay.deliveries import OPERATOR, Dropped, InboxDelivery
from pathcast.settings import read_settings
from pathcast.spark.outputs import inbox, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from pathcast.store import BrokerRecord as BrokerRecord
from pathcast.store import CatalogRecord, ProfileRecord, SourceRecord, Store
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import DELIVERIES, PublishRequest
from pathcast.transport.carrier import Carrier
from pathcast.transport.connection import ByteStream
from pathcast.transport.database_file import DATABASE, FORMAT, RESTORED, back_up, restore
from pathcast.transport.disk import Disk, InboxCursor, Waiting
from pathcast.transport.frames import VERSION, EntryDecoder, decode_hello
from pathcast.transport.local_processes import LocalProcesses, free_ports
from pathcast.transport.local_ring import LocalRing
from pathcast.transport.network import LocalNetwork
from pathcast.transport.peer import TOLD
from pathcast.transport.peer import PeerPublish as PublishAtPeer
from pathcast.transport.peer_settings import PeerSettings
from pathcast.transport.settings import BrokerSettings
from pathcast_lab.demos.running import until_whole
from patience import PATIENCE_SECONDS, eventually
from silent_progress import Silent

STATES = Path(__file__).parent.parent / "testdata" / "old_states"
FORMATS_THAT_ENDED = "2026-11-22-c56507e"
"""Wrote formats of snapshots that are read no more."""

DEAR = b"<order urgent='yes'><total>150</total></order>"
CHEAP = b"<order><total>50</total></order>"


def versions(kind: str) -> list[str]:
    """Versions that wrote a state of a kind which is still gone on with, oldest first."""
    found = sorted(path.parent.name for path in STATES.glob(f"*/{kind}.tar.xz"))
    assert found, f"there is no old state of the kind {kind}"
    return [version for version in found if version != FORMATS_THAT_ENDED]


def unpacked(version: str, kind: str, folder: Path) -> Path:
    """A folder with a state as it was left."""
    with tarfile.open(STATES / version / f"{kind}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(
    ("version", "kind", "found"),
    [
        (FORMATS_THAT_ENDED, "queries", 2),
        *((version, "queries", 3) for version in versions("queries")),
        (FORMATS_THAT_ENDED, "subscriptions", 1),
        ("2026-11-23-31c6b81", "subscriptions", 2),
        *((version, "subscriptions", 3) for version in versions("subscriptions")[1:]),
    ],
)
def test_a_snapshot_of_a_format_that_ended_is_refused_by_name(
    version: str, kind: str, found: int, tmp_path: Path
) -> None:
    path = unpacked(version, kind, tmp_path) / f"{kind}.snapshot"
    with pytest.raises(SnapshotFormatError, match="save a new snapshot") as refused:
        Snapshot.open(path)
    assert refused.value.params == {"path": str(path), "found": found, "expected": 6}


@pytest.mark.parametrize("version", versions("registry"))
def test_a_profile_database_is_brought_up_to_date(version: str, tmp_path: Path) -> None:
    with Store.open(unpacked(version, "registry", tmp_path) / "registry.sqlite") as store:
        position, (dear,) = store.state(ProfileRecord)
        assert (position, dear.id, dear.owner, dear.host) == (6, "dear", "ann", "bern")
        assert (dear.query, dear.labels, dear.steps) == (
            "/order[total > 100]",
            {"tier": "gold"},
            (),
        )
        assert (dear.valid_from, dear.valid_until) == ("", ""), "it is valid always"
        assert [each.address for each in store.state(BrokerRecord)[1]] == ["10.0.0.7:7400"]
        assert [each.root for each in store.state(SourceRecord)[1]] == ["bern"]
        assert [each.schema for each in store.state(CatalogRecord)[1]] == [
            "<!ELEMENT order (total)>"
        ]
        assert [(each.kind, each.id) for each in store.changes(4)] == [
            ("profile", "gone"),
            ("profile", "gone"),
        ]
        store.write([ProfileRecord("new", "ann", "//a", steps=("drop //b",))])
        assert store.position == 7


def go_on(folder: Path) -> Summary:
    """Runs the pipeline of a folder until what is there is done."""
    return run(load_settings(folder / "pipeline.toml"), workers=InProcess(), progress=Silent())


@pytest.mark.parametrize("version", versions("pipeline"))
def test_a_pipeline_goes_on_where_it_was_or_is_refused_by_name(
    version: str, tmp_path: Path
) -> None:
    folder = unpacked(version, "pipeline", tmp_path)
    if json.loads((folder / "delivered" / "_pathcast.json").read_text())["version"] == 2:
        with pytest.raises(ConfigError, match=r"version 2, not .*; choose a new directory"):
            go_on(folder)
        with pytest.raises(ConfigError, match=r"version 2; read it with that version"):
            inbox(folder / "delivered", "ann")
        return
    (folder / "incoming" / "m4.xml").write_bytes(DEAR)
    summary = go_on(folder)
    assert (summary.messages, summary.earlier_messages, summary.deliveries) == (1, 3, 2)
    rows = inbox(folder / "delivered", "ann").to_pylist()
    found = [(row["message_id"], row["batch_id"], row["fragment"]) for row in rows]
    texts = [(name, at, bytes(x) if isinstance(x, bytes) else x.encode()) for name, at, x in found]
    assert sorted(texts) == [
        ("m1.xml", 1, b"<total>150</total>"),
        ("m4.xml", 2, b"<total>150</total>"),
    ]
    told = inbox(folder / "delivered", "bob").column("message_id").to_pylist()
    assert sorted(told) == ["m1.xml", "m2.xml", "m4.xml"]
    letters = read_output(folder / "delivered", "dead_letters").to_pylist()
    assert [(row["message_id"], row["code"]) for row in letters] == [("broken.xml", "xml.end")]
    assert go_on(folder).messages == 0


def test_an_output_of_another_layout_is_refused_by_name(tmp_path: Path) -> None:
    folder = unpacked(versions("pipeline")[-1], "pipeline", tmp_path)
    layout = folder / "delivered" / "_pathcast.json"
    layout.write_text(json.dumps({**json.loads(layout.read_text()), "version": 9}))
    with pytest.raises(ConfigError, match=r"version 9, not .*; choose a new directory"):
        go_on(folder)
    with pytest.raises(ConfigError, match=r"version 9; read it with that version"):
        inbox(folder / "delivered", "ann")


def test_subscriptions_that_lie_in_sections_are_refused_by_name(tmp_path: Path) -> None:
    """Placement in partitions wrote them; no version answers from them any more."""
    folder = unpacked(versions("pipeline")[-1], "pipeline", tmp_path)
    (described,) = (folder / "delivered" / "_snapshots").glob("*/generation.json")
    row = json.loads(described.read_text())
    section = {"queries": 1, "has_notices": True, "has_results": False, "bytes": 9}
    described.write_text(json.dumps({**row, "home": "sections-1", "sections": [section]}))
    with pytest.raises(
        SnapshotFormatError, match=r"in sections.*choose a new output\.path"
    ) as told:
        go_on(folder)
    assert (told.value.code, str(described) in str(told.value)) == ("snapshot.sections", True)


OTHER_CONTENTS: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "of other keys": lambda content: b'{"of_another_version": 1}',
    "no table": lambda content: b"7",
    "no JSON": lambda content: b"\xff\xfe",
}


@pytest.mark.parametrize("how", OTHER_CONTENTS)
def test_state_of_a_pipeline_that_cannot_be_read_is_refused_by_its_name(
    how: str, tmp_path: Path
) -> None:
    folder = unpacked(versions("pipeline")[-1], "pipeline", tmp_path)
    for content in (DEAR, b"<more/>"):
        (folder / "incoming" / "m4.xml").write_bytes(content)
        go_on(folder)
    delivered = folder / "delivered"
    files = sorted(delivered.rglob("*.json"))
    assert len(files) > 6
    refused: set[str] = set()
    told: list[tuple[Path, str]] = []
    for file in files:
        before = file.read_bytes()
        file.write_bytes(OTHER_CONTENTS[how](before))
        (folder / "incoming" / "m5.xml").write_bytes(CHEAP)
        for use in (lambda: go_on(folder), lambda: inbox(delivered, "ann")):
            try:
                use()
            except (DiskError, SnapshotFormatError) as error:
                told.append((file, str(error)))
                refused.add(file.parent.name)
        file.write_bytes(before)
    assert [each for each in told if str(each[0]) not in each[1]] == []
    assert {"delivered", "_commits", "journal", "_checkpoint"} <= refused


def renewed(folder: Path) -> Path:
    """The directory of processes of an unpacked archive, with ports that are free now."""
    (directory,) = (path for path in folder.iterdir() if path.is_dir())
    files = sorted(directory.glob("*.toml"))
    known = sorted({port for file in files for port in PORT.findall(file.read_text())})
    ports = dict(zip(known, free_ports(len(known)), strict=True))
    for file in files:
        file.write_text(PORT.sub(lambda found: str(ports[found[0]]), file.read_text()))
    return directory


PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")


async def told_to(
    network: LocalProcesses, broker: str, client: str, decoder: EntryDecoder[Any]
) -> list[Any]:
    """What waits in an inbox."""
    found = []
    async with network.client(broker, client) as connected:
        async for group in connected.waiting(client, 0):
            found += [decoder.decode(each.body) for each in group]
    return found


@pytest.mark.parametrize("version", versions("network"))
def test_brokers_go_on_where_they_were(version: str, tmp_path: Path) -> None:
    """A message that one had not had is delivered there, and subscriptions are in force."""
    network = LocalNetwork(renewed(unpacked(version, "network", tmp_path)))

    async def bodies_at(broker: str) -> list[bytes]:
        told = await told_to(network, broker, "ann", DELIVERIES)
        return [each.results[0] for each in told if isinstance(each, InboxDelivery)]

    def order(total: int) -> bytes:
        return f"<order><total>{total}</total></order>".encode()

    async def main() -> None:
        async def has(broker: str, *totals: int) -> bool:
            return await bodies_at(broker) == [order(total) for total in totals]

        await eventually(lambda: has("bern", 150, 300))
        async with network.client("basel", "ann") as client:
            assert await client.publish([PublishRequest("messages", "m4", order(450))]) == []
        await eventually(lambda: has("bern", 150, 300, 450))
        await eventually(lambda: has("basel", 150, 50, 300, 450))

    try:
        network.start(network.names)
        asyncio.run(main())
    finally:
        network.stop(network.names)


@pytest.mark.parametrize("version", versions("ring"))
def test_peers_go_on_where_they_were(version: str, tmp_path: Path) -> None:
    """The query of one is indexed on the ring, and what was in its owner's inbox is there."""
    ring = LocalRing(renewed(unpacked(version, "ring", tmp_path)))

    async def matches() -> int:
        told = await told_to(ring, "p01", OPERATOR, TOLD)
        return sum(isinstance(each, Matched) for each in told)

    async def main() -> None:
        await until_whole(ring)
        assert await matches() == 1

        async def is_indexed_again() -> bool:
            told = await told_to(ring, "p01", OPERATOR, TOLD)
            return sum(isinstance(each, Subscribed) for each in told) == 2

        await eventually(is_indexed_again)
        async with ring.operator("p02") as client:
            assert await client.publish([PublishAtPeer("m", DEAR)]) == []

        async def has_two() -> bool:
            return await matches() == 2

        await eventually(has_two)

    try:
        ring.start(ring.names)
        asyncio.run(main())
    finally:
        ring.stop(ring.names)


@pytest.mark.parametrize("version", versions("network"))
def test_a_database_is_backed_up_before_an_upgrade(version: str, tmp_path: Path) -> None:
    """Also one that no process of this version has opened yet."""
    basel = unpacked(version, "network", tmp_path) / "network" / "basel"
    back_up(basel, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "again")
    with closing(Disk(tmp_path / "again", name="basel", is_new=False)) as disk:
        assert RESTORED in disk.saved()
        assert "members" in disk.saved()
        assert len(disk.waiting("ann", 0, 10)) == 4


def test_a_database_of_a_later_format_is_refused_by_name(tmp_path: Path) -> None:
    basel = unpacked(versions("network")[-1], "network", tmp_path) / "network" / "basel"
    with closing(sqlite3.connect(basel / DATABASE)) as base:
        base.execute(f"pragma user_version = {FORMAT + 1}")
    for use in (lambda: Disk(basel), lambda: back_up(basel, tmp_path / "copy")):
        with pytest.raises(DiskError, match="a newer one wrote it; use that one") as refused:
            use()
        assert refused.value.params["found"] == FORMAT + 1
    assert not (tmp_path / "copy").exists()


def test_a_database_of_another_program_is_not_backed_up(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / DATABASE)) as base:
        base.execute("create table foreign_rows(a)")
    with pytest.raises(DiskError, match="has no tables of Pathcast"):
        back_up(tmp_path, tmp_path / "copy")


class OneInbox:
    """A client of a node in whose inbox two things wait."""

    cursor = InboxCursor(2, 5)

    def __init__(self, *bodies: bytes) -> None:
        self._bodies = bodies

    async def waiting(self, name: str, after: int) -> AsyncIterator[list[Waiting]]:
        yield [Waiting(at, f"d{at}", body) for at, body in enumerate(self._bodies, 1)]

    async def settle(self, name: str, cursor: InboxCursor) -> None:
        raise AssertionError("what nobody has read is acknowledged")


@pytest.mark.parametrize("read", [net_client.delivery_row, peer_client._told])
def test_a_delivery_that_cannot_be_read_hides_no_other(
    read: Callable[[bytes], dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    known = msgspec.msgpack.encode(Dropped(4, 6))
    inbox: Any = OneInbox(UNKNOWN, known)
    printed = print_inbox(inbox, "ann", read, after="0", follow=False, settle=True)
    asyncio.run(printed)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["position"] == 1
    assert "not of this version, and cannot be read" in first["notice"]
    assert (second["position"], second["dropped"]) == (2, 3)


def test_a_follower_says_what_it_cannot_read() -> None:
    for decoder in (DELIVERIES, TOLD):
        with pytest.raises(PeerError, match="not of this version"):
            decoder.decode(UNKNOWN)


UNKNOWN = b"\x81\x01\x02"
"""MessagePack of a table whose key is a number, which no version saves."""


def test_each_value_that_a_broker_saved_is_refused_where_nobody_can_read_it(tmp_path: Path) -> None:
    basel = unpacked(versions("network")[-1], "network", tmp_path) / "network" / "basel"
    kind = broker_kind("basel", ["bern"], members=["bern"])
    with closing(Disk(basel)) as disk:
        saved = disk.saved()
        assert len(saved) > 5
        for key, value in saved.items():
            disk.commit({key: UNKNOWN})
            with pytest.raises(DiskError, match=re.escape(str(basel))) as refused:
                Carrier("basel", kind, disk, nobody)
            assert refused.value.code == "disk.state", key
            disk.commit({key: value})


async def nobody(peer: str) -> ByteStream:
    raise UnavailableError("peer.unreachable", name=peer, reason="nobody is there")


@pytest.mark.parametrize(
    ("kind", "node", "command"), [("network", "basel", "broker"), ("ring", "p01", "peer")]
)
def test_a_process_ends_with_a_sentence_where_it_cannot_read_what_it_saved(
    kind: str, node: str, command: str, tmp_path: Path
) -> None:
    directory = renewed(unpacked(versions(kind)[-1], kind, tmp_path))
    with closing(sqlite3.connect(directory / node / DATABASE)) as base, base:
        assert base.execute("update saved set value = ?", [UNKNOWN]).rowcount
    ended = subprocess.run(
        [sys.executable, "-m", "pathcast", command, "run", str(directory / f"{node}.toml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert ended.returncode == ExitCode.REFUSED
    assert f"{directory / node} holds state that cannot be read" in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("found", [*range(VERSION), VERSION + 1])
def test_a_hello_of_another_protocol_is_refused_with_which_end_to_upgrade(found: int) -> None:
    """Version 0 did not say which it was."""
    said = ["b", 10, found][: 3 if found else 2]
    older = "b" if found < VERSION else "a"
    sentence = f"b speaks version {found} of .*, and a {VERSION}; upgrade {older}: "
    with pytest.raises(FrameError, match=sentence):
        decode_hello(msgspec.msgpack.encode(said), "b", "a")


@pytest.mark.parametrize(
    ("kind", "file", "load"),
    [
        ("network", "basel.toml", partial(read_settings, BrokerSettings)),
        ("ring", "p01.toml", partial(read_settings, PeerSettings)),
        ("pipeline", "pipeline.toml", load_settings),
    ],
)
def test_keys_that_are_none_any_more_are_refused_by_their_place(
    kind: str, file: str, load: Callable[[Path], object], tmp_path: Path
) -> None:
    """A file of an earlier version is read; a key that no version knows is told, and where."""
    unpacked(versions(kind)[-1], kind, tmp_path)
    (path,) = tmp_path.rglob(file)
    load(path)
    text = path.read_text()
    first = re.search(r"^\[(\w+)\]$", text, re.MULTILINE)
    assert first is not None
    path.write_text(text.replace(first[0], f"{first[0]}\nof_another_version = 7", 1))
    with pytest.raises(ConfigError, match=f"{first[1]}.of_another_version: is not a setting"):
        load(path)

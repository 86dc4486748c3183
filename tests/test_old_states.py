"""Durable state of earlier versions: it is gone on with, or refused by name with what to do.

`testdata/old_states` has a folder for each version that wrote some, and an archive for each kind of
state. If these fail, an upgrade loses what a user keeps, or ends in a traceback.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pathcast import Broker, Matcher, Snapshot, SubscriptionSnapshot
from pathcast.errors import ConfigError, DiskError, SnapshotFormatError
from pathcast.spark.outputs import inbox, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
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


@pytest.mark.parametrize("version", versions("queries"))
def test_a_snapshot_of_queries_answers_as_it_did(version: str, tmp_path: Path) -> None:
    snapshot = Snapshot.open(unpacked(version, "queries", tmp_path) / "queries.snapshot")
    matcher: Matcher = snapshot.matcher()
    found = [sorted(each.query_ids) for each in matcher.match_batch([DEAR, CHEAP])]
    assert found == [["all", "dear", "urgent"], ["all"]]
    assert snapshot.query("dear").text == "/order[total > 100]"


@pytest.mark.parametrize("version", versions("subscriptions"))
def test_a_snapshot_of_subscriptions_answers_as_it_did(version: str, tmp_path: Path) -> None:
    path = unpacked(version, "subscriptions", tmp_path) / "subscriptions.snapshot"
    found = Broker.restored(SubscriptionSnapshot.open(path)).process_few([DEAR, CHEAP])
    assert sorted(found.deliveries) == [
        (0, "all", None),
        (0, "dear", b"<total>150</total>"),
        (0, "paid", b"<sums><s>150</s></sums>"),
        (1, "all", None),
    ]


@pytest.mark.parametrize(
    ("kind", "open_it", "found"),
    [("queries", Snapshot.open, 2), ("subscriptions", SubscriptionSnapshot.open, 1)],
)
def test_a_snapshot_of_a_format_that_ended_is_refused_by_name(
    kind: str, open_it: Callable[[Path], object], found: int, tmp_path: Path
) -> None:
    path = unpacked(FORMATS_THAT_ENDED, kind, tmp_path) / f"{kind}.snapshot"
    with pytest.raises(SnapshotFormatError, match="save a new snapshot") as refused:
        open_it(path)
    assert refused.value.params == {"path": str(path), "found": found, "expected": 3}


@pytest.mark.parametrize("version", versions("registry"))
def test_a_profile_database_is_brought_up_to_date(version: str, tmp_path: Path) -> None:
    pytest.importorskip("alembic", reason="alembic is not installed: pip install 'pathcast[net]'")
    from pathcast.store import Broker as BrokerRecord
    from pathcast.store import Catalog, Profile, Source, Store

    with Store.open(unpacked(version, "registry", tmp_path) / "registry.sqlite") as store:
        position, (dear,) = store.state(Profile)
        assert (position, dear.id, dear.owner, dear.host) == (6, "dear", "ann", "bern")
        assert (dear.query, dear.labels, dear.steps) == (
            "/order[total > 100]",
            {"tier": "gold"},
            (),
        )
        assert [each.address for each in store.state(BrokerRecord)[1]] == ["10.0.0.7:7400"]
        assert [each.root for each in store.state(Source)[1]] == ["bern"]
        assert [each.schema for each in store.state(Catalog)[1]] == ["<!ELEMENT order (total)>"]
        assert [(each.kind, each.id) for each in store.changes(4)] == [
            ("profile", "gone"),
            ("profile", "gone"),
        ]
        store.write([Profile("new", "ann", "//a", steps=("drop //b",))])
        assert store.position == 7


def go_on(folder: Path) -> Summary:
    """Runs the pipeline of a folder until what is there is done."""
    return run(load_settings(folder / "pipeline.toml"), workers=InProcess(), progress=Silent())


@pytest.mark.parametrize("version", versions("pipeline"))
def test_a_pipeline_goes_on_where_it_was(version: str, tmp_path: Path) -> None:
    folder = unpacked(version, "pipeline", tmp_path)
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

"""Outputs and sources in a place without rename, append and locks: the same rows, each once."""

from __future__ import annotations

import tempfile
import threading
import zipfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("fsspec", reason="needs: pip install 'pathcast[spark]'")

from object_store import ObjectStore
from pathcast.errors import ConfigError
from pathcast.spark.compacting import compact
from pathcast.spark.ledger import committed_batches, live_files, remove_replaced
from pathcast.spark.listing import _as_found
from pathcast.spark.outputs import files_of, follow, inbox, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from test_spark_pipeline import (
    KILL_POINTS,
    WANTS,
    Recorder,
    expected,
    found_in,
    kill_at,
    put_messages,
    put_subscriptions,
    settings,
)

NAMES: tuple[Any, ...] = ("inboxes", "matches", "dead_letters")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put_messages(tmp_path, range(20))
    put_subscriptions(tmp_path, ("ann", "a"), ("bob", "a"), ("bob", "b"))
    return tmp_path


def url(root: Path, name: str = "out") -> str:
    return f"objects://{root}/{name}"


def go(root: Path, *overrides: str) -> Summary:
    chosen = settings(root, f"output.path={url(root)}", *overrides)
    return run(chosen, workers=InProcess(), progress=Recorder())


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_an_output_holds_the_rows_of_a_directory(root: Path, format: str) -> None:
    ObjectStore.requests.clear()
    summary = go(root, f"output.format={format}")
    assert summary.messages == 20
    assert found_in(url(root)) == expected(range(20), WANTS)
    written = [path for mode, path in ObjectStore.requests if mode == "wb"]
    assert len(written) > 8, "nothing went through the file system under test"
    assert all(path.startswith("objects://") for path in files_of(url(root), "inboxes"))
    assert set(inbox(url(root), "ann").column("subscriber").to_pylist()) == {"ann"}
    put_messages(root, range(20, 23))
    again = go(root, f"output.format={format}")
    assert (again.messages, again.earlier_messages) == (3, 20)
    assert found_in(url(root)) == expected(range(23), WANTS)


@pytest.mark.parametrize("point", KILL_POINTS)
def test_killed_at_any_step_and_started_again_nothing_is_lost_or_twice(
    root: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(point, monkeypatch, lambda: go(root))
    out = Storage(url(root))
    assert len(committed_batches(out)) == (2 if point == "after the commit" else 1)
    go(root)
    assert found_in(out) == expected(range(20), WANTS)
    for name in NAMES:
        assert out.names(name) == sorted(file.name.split("/")[1] for file in live_files(out, name))


def test_an_object_that_was_not_closed_never_appears(root: Path) -> None:
    out = Storage(url(root))
    handle = out.create("inboxes/half.parquet")
    handle.write(b"rows")
    assert out.names("inboxes") == []
    del handle
    assert out.names("inboxes") == []
    with out.create("inboxes/whole.parquet") as handle:
        handle.write(b"rows")
    assert out.names("inboxes") == ["whole.parquet"]


def test_following_and_compaction(root: Path) -> None:
    out = Storage(url(root))
    go(root, "output.compact_files=0")
    rows = follow(out, "inboxes", subscriber="bob", poll_seconds=0.01)
    seen = [next(rows)]
    before = {name: len(out.names(name)) for name in NAMES}
    assert compact(out, "parquet") is not None
    seen.append(next(rows))
    put_messages(root, range(20, 24))
    go(root, "output.compact_files=1", "output.keep_replaced_seconds=0")
    seen.append(next(rows))
    assert [batch_id for batch_id, _ in seen] == [1, 2, 3]
    assert found_in(out) == expected(range(24), WANTS)
    remove_replaced(out, keep_seconds=0)
    assert found_in(out) == expected(range(24), WANTS)
    assert [len(out.names(name)) for name in NAMES] == [1, 1, 1]
    assert all(count > 1 for count in before.values())


def test_copies_of_subscriptions_on_a_worker_belong_to_one_writing_of_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Equal subscriptions have one version everywhere; another release writes them in another way.
    copies = root / "copies"
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    go(root)
    found = [path for path in copies.rglob("*") if path.is_file()]
    assert found
    for path in found:
        path.write_bytes(b"of another release")
    other = settings(root, f"output.path={url(root, 'other')}")
    run(other, workers=InProcess(), progress=Recorder())
    assert found_in(url(root, "other")) == expected(range(20), WANTS)


def test_an_empty_output_has_columns(root: Path) -> None:
    for path in (root / "in").iterdir():
        path.unlink()
    go(root)
    for name in NAMES:
        assert "snapshot_version" in read_output(url(root), name).column_names


def of_store(root: Path, name: str, *overrides: str) -> Summary:
    chosen = settings(root, f"source.path={url(root, name)}", *overrides)
    return run(chosen, workers=InProcess(), progress=Recorder())


def test_a_source_gives_what_a_directory_gives(root: Path) -> None:
    (root / "in/deep/er").mkdir(parents=True)
    (root / "in/0.xml").rename(root / "in/deep/er/0.xml")
    (root / "in/_hidden").mkdir()
    (root / "in/_hidden/1.xml").write_text("<m><a/></m>")
    (root / "in/note.txt").write_text("left alone")
    ObjectStore.requests.clear()
    assert of_store(root, "in").messages == 20
    want = expected(range(20), WANTS)
    want["dead_letters"] = Counter(["deep/er/0.xml", "10.xml"])
    assert found_in(root / "out") == want
    opened = {path for mode, path in ObjectStore.requests if mode == "rb"}
    assert len(opened) == 20, "messages did not come through the file system under test"
    put_messages(root, range(20, 23))
    again = of_store(root, "in")
    assert (again.messages, again.earlier_messages) == (3, 20)


def test_a_stream_sees_what_comes(root: Path) -> None:
    stop = threading.Event()

    def on_batch(commit: Any) -> None:
        if commit.batch_id == 2:
            put_messages(root, range(20, 24))
        elif commit.batch_id == 3:
            stop.set()

    guard = threading.Timer(60, stop.set)
    guard.start()
    chosen = settings(root, f"source.path={url(root, 'in')}", "mode.kind=stream")
    run(chosen, workers=InProcess(), progress=Recorder(on_batch), stop=stop)
    guard.cancel()
    assert found_in(root / "out") == expected(range(24), WANTS)


@pytest.mark.parametrize("kind", ["parquet", "archive"])
def test_files_of_many_messages_are_read_and_taken_up_again_when_mended(
    root: Path, kind: str
) -> None:
    folder = root / "packed"
    folder.mkdir()
    name = "1.parquet" if kind == "parquet" else "1.zip"
    if kind == "parquet":
        rows = {"message_id": ["x", "y"], "message": ["<m><a/></m>", "<m/>"], "channel": [7, 8]}
        pq.write_table(pa.table(rows), folder / name, row_group_size=1)
    else:
        with zipfile.ZipFile(folder / name, "w") as packed:
            packed.writestr("x", "<m><a/></m>")
            packed.writestr("y", "<m/>")
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-30])
    more = [f"source.kind={kind}"]
    if kind == "parquet":
        more.append('source.columns=["channel"]')
    assert of_store(root, "packed", *more).messages == 0
    (folder / name).write_bytes(whole)
    assert of_store(root, "packed", *more).messages == 2
    rows_found = inbox(root / "out", "ann").to_pylist()
    assert [row["message_id"].removeprefix("1.zip!") for row in rows_found] == ["x"]
    if kind == "parquet":
        assert rows_found[0]["channel"] == 7


def test_an_output_inside_its_source_and_an_unknown_protocol_are_refused(root: Path) -> None:
    with pytest.raises(ConfigError, match="inside source"):
        of_store(root, "in", f"output.path={url(root, 'in/out')}")
    with pytest.raises(ConfigError, match="nowhere"):
        of_store(root, "in", "source.path=nowhere://bucket/x")


@pytest.mark.parametrize(
    ("about", "modified_ns"),
    [
        ({"LastModified": datetime(2026, 1, 2, tzinfo=UTC), "size": 3}, 1767312000 * 10**9),
        ({"updated": "2026-01-02T00:00:00Z", "size": 3}, 1767312000 * 10**9),
        ({"mtime": 1767312000.0, "size": 3}, 1767312000 * 10**9),
        ({"size": 3}, 0),
    ],
)
def test_each_store_tells_of_files_in_its_own_words(about: Any, modified_ns: int) -> None:
    file = _as_found("a", about)
    assert (file.size, file.modified_ns) == (3, modified_ns)
    assert _as_found("a", about | {"ETag": "1"}) != _as_found("a", about | {"ETag": "2"})

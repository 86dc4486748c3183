"""Outputs in a place without rename, append and locks: the same rows, each once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="needs: pip install 'pathcast[spark]'")

from object_store import ObjectStore
from pathcast.spark.compacting import compact
from pathcast.spark.ledger import committed_batches, live_files, remove_replaced
from pathcast.spark.outputs import files_of, follow, inbox, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from test_spark_pipeline import (
    KILL_POINTS,
    WANTS,
    Killed,
    Recorder,
    expected,
    found_in,
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
    owner, name, is_after = KILL_POINTS[point]
    original, calls = getattr(owner, name), 0

    def killed(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2 and not is_after:
            raise Killed
        result = original(*arguments)
        if calls == 2:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, killed)
    with pytest.raises(Killed):
        go(root)
    monkeypatch.undo()
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

"""Outputs as Delta tables: the same rows, each once, for readers that know nothing of Pathcast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")

import deltalake

from pathcast.spark.delta import DeltaTables
from pathcast.spark.outputs import files_of, inbox, read_output, since
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.workers import InProcess
from silent_progress import Silent

NAMES: tuple[Any, ...] = ("inboxes", "matches", "dead_letters")


@pytest.fixture
def deliver(tmp_path: Path) -> Callable[..., None]:
    def go(numbers: range, *overrides: str) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        for n in numbers:
            text = f"<m><a n='{n}'/></m>" if n % 5 else "<"
            (tmp_path / "in" / f"{n}.xml").write_text(text)
        (tmp_path / "s.tsv").write_text(
            "subscriber\tquery_id\tquery\tdeliver\nann\tq1\t//a\tids\n"
            "bob\tq1\t//a\tids\nbob\tq2\tfor $a in //a return <n>{$a/@n}</n>\tfragment\n"
        )
        (tmp_path / "p.toml").write_text(
            '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n'
            '[output]\npath = "delta"\nformat = "delta"\ncompact_files = 0\n'
            "[mode]\nfiles_per_batch_max = 4\n"
        )
        chosen = load_settings(tmp_path / "p.toml", overrides)
        run(chosen, workers=InProcess(), progress=Silent())

    return go


def rows(out: Path, name: Any, *without: str) -> Counter[str]:
    table = read_output(out, name)
    # Of runs that are compared, each is made at a time of its own.
    names = sorted(set(table.column_names) - {*without, "processed_at"})
    return Counter(str(row) for row in table.select(names).to_pylist())


def table_of(root: Path, name: Any) -> ds.Dataset:
    return deltalake.DeltaTable(root / "delta" / name).to_pyarrow_dataset()


def test_a_table_holds_the_rows_of_a_directory(tmp_path: Path, deliver: Any) -> None:
    deliver(range(12))
    deliver(range(12), "output.format=parquet", "output.path=plain")
    for name in NAMES:
        assert rows(tmp_path / "delta", name) == rows(tmp_path / "plain", name)
    mine = inbox(tmp_path / "delta", "ann")
    assert set(mine.column("subscriber").to_pylist()) == {"ann"}
    assert len(mine) == len(inbox(tmp_path / "plain", "ann"))
    table = deltalake.DeltaTable(tmp_path / "delta/inboxes")
    assert len(table.to_pyarrow_table()) == rows(tmp_path / "plain", "inboxes").total()
    assert len(files_of(tmp_path / "delta", "inboxes")) == len(table.file_uris())
    for name in NAMES:
        # Whoever filters by any column must find its rows: bounds in the log are of all or none.
        found = table_of(tmp_path, name).to_table(filter=ds.field("batch_id") >= 1)
        assert len(found) == rows(tmp_path / "plain", name).total()
    batches = since(tmp_path / "delta", "inboxes", subscriber="bob")
    assert [batch_id for batch_id, _ in batches] == [1, 2, 3]


def test_an_empty_output_has_tables_with_columns(tmp_path: Path, deliver: Any) -> None:
    deliver(range(0))
    for name in NAMES:
        table = deltalake.DeltaTable(tmp_path / "delta" / name)
        assert "snapshot_version" in [field.name for field in table.schema().fields]


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("options", [(), ("output.by_day=true",)], ids=["flat", "by_day"])
def test_killed_between_the_tables_each_has_every_row_once(
    tmp_path: Path,
    deliver: Any,
    monkeypatch: pytest.MonkeyPatch,
    call: int,
    is_after: bool,
    options: tuple[str, ...],
) -> None:
    original, calls = DeltaTables._add, 0

    def killed(self: DeltaTables, *arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == call and not is_after:
            raise Killed
        original(self, *arguments)
        if calls == call:
            raise Killed

    monkeypatch.setattr(DeltaTables, "_add", killed)
    with pytest.raises(Killed):
        deliver(range(8), *options)
    monkeypatch.undo()
    deliver(range(8), *options)
    deliver(range(8), "output.format=parquet", "output.path=plain")
    for name in NAMES:
        assert rows(tmp_path / "delta", name) == rows(tmp_path / "plain", name)


def test_compaction_is_the_librarys_and_changes_no_row(tmp_path: Path, deliver: Any) -> None:
    deliver(range(12))
    before = {name: rows(tmp_path / "delta", name) for name in NAMES}
    assert len(files_of(tmp_path / "delta", "inboxes")) > 1
    deliver(range(12, 20), "output.compact_files=1", "output.keep_replaced_seconds=0")
    assert len(files_of(tmp_path / "delta", "inboxes")) == 1
    for name in NAMES:
        found = rows(tmp_path / "delta", name)
        assert before[name] <= found
        assert len(found) > len(before[name])


def test_columns_that_are_passed_through_keep_their_types(tmp_path: Path, deliver: Any) -> None:
    (tmp_path / "packed").mkdir()
    packed = (
        "source.kind=parquet",
        "source.path=packed",
        "source.id_column=key",
        "source.message_column=body",
        'source.columns=["channel"]',
    )

    def pack(name: str, channel: Any) -> None:
        table = {"key": [name], "body": ["<m><a n='1'/></m>"], "channel": channel}
        pq.write_table(pa.table(table), tmp_path / "packed" / f"{name}.parquet")

    # Nothing can be read at first: the tables wait for the types of their columns.
    (tmp_path / "packed/a.parquet").write_bytes(b"later")
    deliver(range(0), *packed)
    assert not (tmp_path / "delta/inboxes/_delta_log").exists()
    pack("a", pa.array([7], pa.int32()))
    deliver(range(0), *packed)
    pack("b", pa.array([8], pa.int64()))
    deliver(range(0), *packed)
    table = read_output(tmp_path / "delta", "inboxes")
    assert table.schema.field("channel").type == pa.int32()
    channels = {(row["message_id"], row["channel"]) for row in table.to_pylist()}
    assert channels == {("a", 7), ("b", 8)}
    letters = read_output(tmp_path / "delta", "dead_letters")
    assert "channel" not in letters.column_names
    assert [row["file"] for row in letters.to_pylist()] == ["a.parquet"]

"""What is older than an output shall keep goes, and nothing else: `output.keep_days`.

If these fail, a disk fills, or rows go that somebody still wants.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pathcast.errors import ConfigError
from pathcast.spark import compacting, journal, ledger, pinning, retention, writing
from pathcast.spark.delta import DeltaTables
from pathcast.spark.ledger import committed_batches, numbers_in
from pathcast.spark.outputs import files_of, layout_of, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.reasons import why
from pathcast.spark.settings import load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from pathcast.spark.writing import FileFormat
from silent_progress import Silent

DAY_US = 86_400 * 1_000_000
NAMES: tuple[Any, ...] = ("inboxes", "matches", "dead_letters")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums after few micro-batches, so that commits may go."""
    soon_again(monkeypatch)


def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "SUM_COMMITS", 2)
    for module in (journal, retention):
        monkeypatch.setattr(module, "SUM_ENTRIES", 2)


def deliver(root: Path, numbers: range, *more: str) -> Summary:
    """Messages, two a micro-batch; each fifth is a dead letter."""
    (root / "in").mkdir(exist_ok=True)
    for number in numbers:
        (root / "in" / f"{number:02}.xml").write_text("<m><a/></m>" if number % 5 else "<")
    if not (root / "s.tsv").exists():
        subscribe(root, "/m/a")
    (root / "p.toml").write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
        "keep_replaced_seconds = 0\n[mode]\nfiles_per_batch_max = 2\n"
    )
    return run(load_settings(root / "p.toml", more), workers=InProcess(), progress=Silent())


def subscribe(root: Path, query: str) -> None:
    (root / "s.tsv").write_text(f"subscriber\tquery_id\tquery\nann\tq1\t{query}\n")


def begun_days_ago(root: Path, days: int, *numbers: int) -> None:
    """As if micro-batches, and the subscriptions that they ran with, were so old."""
    for number in numbers:
        pin = root / f"out/_checkpoint/_pins/{number}.json"
        row = json.loads(pin.read_text())
        row["begun_us"] -= days * DAY_US
        pin.write_text(json.dumps(row))
        about = root / f"out/_snapshots/{row['snapshot_version']}/generation.json"
        at = row["begun_us"] / 1e6 - 2 * retention.CLOCKS_SECONDS
        os.utime(about, (at, at))


def batches(out: Storage) -> dict[str, set[int]]:
    return {name: set(read_output(out, name).column("batch_id").to_pylist()) for name in NAMES}


@pytest.mark.parametrize("format", ["parquet", "jsonl", "delta"])
@pytest.mark.parametrize("compact_files", [0, 1])
def test_old_rows_go_and_others_stay(tmp_path: Path, format: str, compact_files: int) -> None:
    if format == "delta":
        pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    given = (f"output.format={format}", f"output.compact_files={compact_files}")
    deliver(tmp_path, range(20), *given)
    out = Storage(tmp_path / "out")
    assert committed_batches(out) == list(range(1, 11))
    begun_days_ago(tmp_path, 8, *range(1, 7))
    begun_days_ago(tmp_path, 6, 7, 8)
    summary = deliver(tmp_path, range(20, 22), *given, "output.keep_days=7")
    assert (summary.messages, summary.earlier_messages) == (2, 20)
    assert batches(out) == {
        "inboxes": {7, 8, 9, 10, 11},
        "matches": {7, 8, 9, 10, 11},
        "dead_letters": {8, 11},
    }
    assert committed_batches(out) == [7, 8, 9, 10, 11]
    checkpoint = out.below("_checkpoint")
    assert numbers_in(checkpoint, "_pins") == [7, 8, 9, 10, 11]
    assert numbers_in(checkpoint, "journal") == [7, 8, 9, 10, 11]
    # Nothing that was handed on is handed on again.
    summary = deliver(tmp_path, range(22, 23), *given, "output.keep_days=7")
    assert (summary.messages, summary.earlier_messages) == (1, 22)
    assert batches(out)["inboxes"] == {7, 8, 9, 10, 11, 12}
    assert why(out, "ann", "13.xml").fate == "answered"
    if format != "delta":
        assert all(Path(file).exists() for file in files_of(out, "inboxes"))


def test_a_run_without_it_keeps_all(tmp_path: Path) -> None:
    deliver(tmp_path, range(8))
    begun_days_ago(tmp_path, 1000, 1, 2, 3)
    deliver(tmp_path, range(8, 10))
    assert committed_batches(Storage(tmp_path / "out")) == [1, 2, 3, 4, 5]


def test_the_last_micro_batch_stays_however_old_it_is(tmp_path: Path) -> None:
    deliver(tmp_path, range(8))
    out = Storage(tmp_path / "out")
    begun_days_ago(tmp_path, 8, 1, 2, 3, 4)
    deliver(tmp_path, range(8, 10), "output.keep_days=7")
    begun_days_ago(tmp_path, 8, 5)
    deliver(tmp_path, range(0), "output.keep_days=7")
    assert committed_batches(out) == [5]
    assert batches(out)["inboxes"] == {5}
    assert deliver(tmp_path, range(10, 12), "output.keep_days=7").messages == 2


def test_subscriptions_stay_that_a_micro_batch_ran_with(tmp_path: Path) -> None:
    out = Storage(tmp_path / "out")
    versions = []
    for number, query in enumerate(("/m", "/m/a", "/m/a[1]", "/m")):
        subscribe(tmp_path, query)
        deliver(tmp_path, range(2 * number, 2 * number + 2))
        pin = json.loads((tmp_path / f"out/_checkpoint/_pins/{number + 1}.json").read_text())
        versions.append(pin["snapshot_version"])
    assert versions[0] == versions[3]
    begun_days_ago(tmp_path, 8, 1, 2, 3)
    subscribe(tmp_path, "/m")
    deliver(tmp_path, range(8, 10), "output.keep_days=7")
    # The first was taken up again, and micro-batches 4 and 5 have it.
    assert out.names("_snapshots") == [versions[0]]
    assert why(out, "ann", "06.xml").fate == "answered"


def test_what_a_follower_has_not_had_stays(tmp_path: Path) -> None:
    deliver(tmp_path, range(12))
    begun_days_ago(tmp_path, 8, *range(1, 7))
    out = Storage(tmp_path / "out")
    kept = retention.KeptBatches(out, out.below("_checkpoint"), 7, lambda: 3)
    assert kept.first_kept() == 4
    assert retention.KeptBatches(out, out.below("_checkpoint"), 9).first_kept() == 0
    # Whoever gives numbers may leave some out: the first that stays is one that there is.
    out.delete([f"_commits/{number}.json" for number in (4, 5)])
    assert kept.first_kept() == 6


def test_rows_go_from_files_that_are_merged(tmp_path: Path) -> None:
    deliver(tmp_path, range(8), "output.compact_files=0")
    out = Storage(tmp_path / "out")
    assert compacting.compact(out, "parquet", first=3) is not None
    assert batches(out)["inboxes"] == {3, 4}
    assert compacting.compact(out, "parquet", first=4) is not None
    assert batches(out)["inboxes"] == {4}


def days_of_files(root: Path, name: str = "inboxes") -> set[str]:
    return {path.parent.name for path in (root / "out" / name).rglob("*-*.*") if path.is_file()}


@pytest.mark.parametrize("format", ["parquet", "jsonl", "delta"])
@pytest.mark.parametrize("compact_files", [0, 1])
def test_whole_days_go_and_no_file_is_read_again(
    tmp_path: Path, format: str, compact_files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if format == "delta":
        pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    given = [f"output.format={format}", f"output.compact_files={compact_files}"]
    given.append("output.by_day=true")
    now = time.time_ns() // 1000
    noon = now - now % DAY_US - DAY_US // 2
    for ago in (9, 8, 7, 6):
        monkeypatch.setattr(pinning, "_now_us", lambda ago=ago: noon - (ago - 1) * DAY_US)
        deliver(tmp_path, range(4 * (9 - ago), 4 * (10 - ago)), *given)
    out = Storage(tmp_path / "out")
    assert batches(out)["inboxes"] == set(range(1, 9))
    for name in NAMES:
        assert read_output(out, name).column_names == layout_of(out).schema(name).names
    days = [writing.day_of(noon - (ago - 1) * DAY_US) for ago in (9, 8, 7, 6)]
    assert days_of_files(tmp_path) == {f"day={day}" for day in days}
    monkeypatch.undo()
    soon_again(monkeypatch)
    if not compact_files:
        # What goes is not opened.
        monkeypatch.setattr(compacting, "_merge", None)
    # Until two hours after the micro-batches of the second day, which stay until the day has gone.
    given.append(f"output.keep_days={(now - noon) / DAY_US + 7 - 2 / 24}")
    deliver(tmp_path, range(16, 18), *given)
    assert batches(out)["inboxes"] == {3, 4, 5, 6, 7, 8, 9}
    assert committed_batches(out) == list(range(3, 10))
    assert why(out, "ann", "06.xml").fate == "answered"
    for start in (18, 20):
        # Files of the week that were merged are replaced first, and taken out by the next run.
        deliver(tmp_path, range(start, start + 2), *given)
    left = {f"day={day}" for day in days[1:]} | {f"day={writing.day_of(now)}"}
    if format != "delta":
        assert days_of_files(tmp_path) == left
        assert set(out.names("inboxes")) == left


def test_a_day_goes_whole_or_stays(tmp_path: Path) -> None:
    deliver(tmp_path, range(12), "output.by_day=true")
    out = Storage(tmp_path / "out")
    begun_days_ago(tmp_path, 9, 1, 2)
    begun_days_ago(tmp_path, 8, 3, 4, 5)
    checkpoint = out.below("_checkpoint")
    assert retention.KeptBatches(out, checkpoint, 6, by_day=True).first_kept() == 6
    # Followers have had a part of a day.
    assert retention.KeptBatches(out, checkpoint, 6, lambda: 4, by_day=True).first_kept() == 3
    assert retention.KeptBatches(out, checkpoint, 6, lambda: 4).first_kept() == 5


def test_a_column_named_day_is_refused_by_name(tmp_path: Path) -> None:
    deliver(tmp_path, range(2))
    with pytest.raises(ConfigError, match=r"source\.columns has day, which output\.by_day"):
        load_settings(
            tmp_path / "p.toml",
            ["source.kind=parquet", 'source.columns=["Day"]', "output.by_day=true"],
        )


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_files_are_merged_within_their_days_and_strays_go(
    tmp_path: Path, format: FileFormat
) -> None:
    given = ("output.by_day=true", f"output.format={format}", "output.compact_files=0")
    deliver(tmp_path, range(8), *given)
    out = Storage(tmp_path / "out")
    yesterday = "inboxes/day=2020-02-29"
    commit = ledger.Commit.read(out, 1)
    moved = replace(commit.files["inboxes"][0], name=f"{yesterday}/000001-a.{format}")
    out.write(moved.name, out.read(commit.files["inboxes"][0].name))
    written = replace(commit, files={**commit.files, "inboxes": [moved]})
    ledger.BatchLedger(out, out.below("_checkpoint")).write_commit(written)
    stray = "inboxes/day=2020-02-29/000009-killed." + format
    out.write(stray, b"")
    made = compacting.compact(out, format, through=4)
    assert made is not None
    folders = [file.name.rpartition("/")[0] for file in made.files["inboxes"]]
    assert sorted(folders)[0] == yesterday
    assert len(folders) == len(set(folders)) == 2
    assert batches(out)["inboxes"] == {1, 2, 3, 4}
    deliver(tmp_path, range(8, 10), *given)
    assert not out.exists(stray)
    assert out.exists(moved.name)
    assert batches(out)["inboxes"] == {1, 2, 3, 4, 5}


def test_files_of_different_days_are_not_waiting_to_be_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    given = ("output.format=delta", "output.compact_files=0", "output.by_day=true")
    now = time.time_ns() // 1000
    for ago in (2, 1):
        monkeypatch.setattr(pinning, "_now_us", lambda ago=ago: now - ago * DAY_US)
        deliver(tmp_path, range(4 * (2 - ago), 4 * (3 - ago)), *given)
    out = Storage(tmp_path / "out")
    tables = DeltaTables(out, layout_of(out))
    assert tables.small_files(2**30) > 0
    tables.compact(keep_hours=0)
    assert tables.small_files(2**30) == 0
    assert len(days_of_files(tmp_path)) == 2

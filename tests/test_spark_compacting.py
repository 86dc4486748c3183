"""Small files become few: the same rows, for readers of all kinds, at every moment."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pathcast.spark.compacting import BackgroundCompaction, compact
from pathcast.spark.ledger import live_files, remove_replaced, remove_strays, uncompacted
from pathcast.spark.outputs import files_of, follow, inbox, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.workers import InProcess
from silent_progress import Silent


def deliver(root: Path, numbers: range, *more: str) -> Storage:
    (root / "in").mkdir(exist_ok=True)
    for number in numbers:
        (root / "in" / f"{number}.xml").write_text(
            f"<m><a n='{number}'/></m>" if number % 5 else "<"
        )
    (root / "s.tsv").write_text(
        "subscriber\tquery_id\tquery\n"
        + "".join(f"s{n:02}\tq{n}\t/m/a[@n mod {n} = 0]\n" for n in range(1, 9))
    )
    (root / "p.toml").write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
        "compact_files = 0\n[mode]\nfiles_per_batch_max = 4\n"
    )
    run(load_settings(root / "p.toml", more), workers=InProcess(), progress=Silent())
    return Storage(root / "out")


def rows(out: Storage, name: Any) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in read_output(out, name).to_pylist())


NAMES: tuple[Any, ...] = ("inboxes", "matches", "dead_letters")


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_rows_are_the_same_and_files_are_few(tmp_path: Path, format: Any) -> None:
    out = deliver(tmp_path, range(30), f"output.format={format}")
    before = {name: rows(out, name) for name in NAMES}
    many = {name: len(files_of(out, name)) for name in NAMES}
    assert compact(out, format) is not None
    assert {name: rows(out, name) for name in NAMES} == before
    assert all(count > 1 for count in many.values())
    assert {name: len(files_of(out, name)) for name in NAMES} == dict.fromkeys(NAMES, 1)
    assert Counter(str(r) for r in inbox(out, "s02").to_pylist()).total() == sum(
        "'s02'" in row for row in before["inboxes"].elements()
    )
    # What comes later counts beside it, and is merged with it the next time.
    deliver(tmp_path, range(30, 40), f"output.format={format}")
    after = {name: rows(out, name) for name in NAMES}
    assert compact(out, format) is not None
    assert {name: rows(out, name) for name in NAMES} == after
    assert compact(out, format) is None, "there is nothing more to merge"


def test_inboxes_are_sorted_and_their_bounds_are_told(tmp_path: Path) -> None:
    out = deliver(tmp_path, range(30))
    compact(out, "parquet")
    (file,) = live_files(out, "inboxes")
    with out.open(file.name) as handle:
        names = pq.read_table(handle).column("subscriber").to_pylist()
    assert names == sorted(names)
    assert (file.first, file.last, file.rows) == (names[0], names[-1], len(names))


def test_readers_that_have_begun_end_undisturbed(tmp_path: Path) -> None:
    out = deliver(tmp_path, range(30))
    old = files_of(out, "inboxes")
    compact(out, "parquet")
    assert remove_strays(out) == 0, "a new run must leave them to those who read"
    assert all(Path(path).exists() for path in old)
    assert remove_replaced(out, keep_seconds=3600) == 0
    want = rows(out, "inboxes")
    assert remove_replaced(out, keep_seconds=0) > len(old)
    assert not any(Path(path).exists() for path in old)
    assert rows(out, "inboxes") == want


def test_whoever_follows_misses_nothing_when_files_are_merged(tmp_path: Path) -> None:
    out = deliver(tmp_path, range(30))
    plain = follow(out, "inboxes", poll_seconds=0.01)
    batches = [next(plain) for _ in range(3)]
    rest = follow(out, "inboxes", after=batches[-1][0], poll_seconds=0.01)
    compact(out, "parquet")
    remove_replaced(out, keep_seconds=0)
    deliver(tmp_path, range(30, 36))
    last = max(row["batch_id"] for row in read_output(out, "inboxes").to_pylist())
    while batches[-1][0] < last:
        batches.append(next(rest))
    seen = Counter(row["delivery_id"] for _, table in batches for row in table.to_pylist())
    assert seen == Counter(read_output(out, "inboxes").column("delivery_id").to_pylist())


def test_a_kill_before_the_compaction_is_told_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = deliver(tmp_path, range(30))
    before = {name: rows(out, name) for name in NAMES}

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pathcast.spark.compacting.write_compaction", killed)
    with pytest.raises(KeyboardInterrupt):
        compact(out, "parquet")
    monkeypatch.undo()
    assert {name: rows(out, name) for name in NAMES} == before
    assert remove_strays(out) == 3
    assert {name: rows(out, name) for name in NAMES} == before


def test_in_the_background_it_begins_when_there_are_enough(tmp_path: Path) -> None:
    out = deliver(tmp_path, range(30))
    files = {"inboxes": live_files(out, "inboxes")}
    background = BackgroundCompaction(out, "parquet", files=100, keep_seconds=0)
    background.wrote(files)  # type: ignore[arg-type]
    background.wait()
    assert len(files_of(out, "inboxes")) > 1
    background = BackgroundCompaction(out, "parquet", files=3, keep_seconds=0)
    background.wrote(files)  # type: ignore[arg-type]
    background.wait()
    assert background.error is None
    assert len(files_of(out, "inboxes")) == 1


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_runs_of_one_micro_batch_each_are_compacted_too(tmp_path: Path, format: str) -> None:
    if format == "delta":
        pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    more = (f"output.format={format}", "output.compact_files=9", "output.path=cron")
    most = 0
    for number in range(8):
        deliver(tmp_path, range(4 * number, 4 * number + 4), *more)
        most = max(most, len(files_of(tmp_path / "cron", "inboxes")))
    assert 2 < most < 8
    deliver(tmp_path, range(0), "output.path=plain")
    without = [name for name in NAMES if name != "dead_letters"]
    for name in without:
        found = read_output(tmp_path / "cron", name).column("message_id").to_pylist()
        want = read_output(tmp_path / "plain", name).column("message_id").to_pylist()
        assert Counter(found) == Counter(want)


def test_large_files_are_listed_together_and_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A start and a reader would read a commit for each micro-batch there ever was.
    monkeypatch.setattr("pathcast.spark.compacting.SUM_COMMITS", 5)
    monkeypatch.setattr("pathcast.spark.compacting.SMALL_BYTES", 0)
    out = deliver(tmp_path, range(40), "output.compact_files=3")
    before, files = rows(out, "inboxes"), files_of(out, "inboxes")
    last, commits = uncompacted(out)
    assert last is not None
    assert last.replaced == ()
    assert len(commits) <= 5
    assert len(files) == 20, "they were merged"
    deliver(tmp_path, range(40, 48), "output.compact_files=3")
    assert files == files_of(out, "inboxes")[: len(files)]
    assert before <= rows(out, "inboxes")
    assert len(out.names("inboxes")) == 24

"""The pipeline: rows, restarts at every step, streams, formats, settings.

Most of it runs its tasks in this process, which takes milliseconds; that Spark gives the same is a
test of its own, and `test_spark_kill` kills the real thing.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oracles.engines import made_by

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast import Registry, Snapshot, Subscription
from pathcast.errors import ConfigError
from pathcast.spark.generations import QUERIES
from pathcast.spark.journal import Journal
from pathcast.spark.ledger import BatchLedger, Commit, committed_batches
from pathcast.spark.outputs import files_of, follow, inbox, read_output
from pathcast.spark.pipeline import Pipeline, run
from pathcast.spark.progress import describe
from pathcast.spark.schemas import body_of
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("a", "b", "c")


class Recorder:
    """A progress report that keeps what it is told."""

    def __init__(self, on_batch: Callable[[Commit], None] | None = None) -> None:
        self.commits: list[Commit] = []
        self.notes: list[str] = []
        self._on_batch = on_batch

    def begin(self, text: str) -> None:
        self.notes.append(text)

    def batch(self, commit: Commit) -> None:
        self.commits.append(commit)
        if self._on_batch:
            self._on_batch(commit)

    def lag(self, offsets: int) -> None:
        """Of files there is none."""

    def note(self, text: str) -> None:
        self.notes.append(text)


class Killed(Exception):
    """Stands for SIGKILL: nothing catches it, nothing is cleaned up."""


def put_messages(root: Path, numbers: range) -> None:
    """Messages of three kinds; each tenth is cut short."""
    folder = root / "in"
    folder.mkdir(exist_ok=True)
    for number in numbers:
        kind = KINDS[number % 3]
        text = f"<m><{kind} n='{number}'/></m>" if number % 10 else f"<m><{kind}>"
        # Moved in whole, as the guide asks of whoever writes messages.
        (folder / f".{number}").write_text(text)
        (folder / f".{number}").rename(folder / f"{number}.xml")


def put_subscriptions(root: Path, *pairs: tuple[str, str]) -> None:
    """Subscribers and the kinds that they want; the query of a kind has its name as its id."""
    lines = [f"{who}\tq-{kind}\t/m/{kind}\n" for who, kind in pairs]
    (root / ".s").write_text("subscriber\tquery_id\tquery\n" + "".join(lines))
    (root / ".s").rename(root / "subscriptions.tsv")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with 20 messages and a file of subscriptions."""
    put_messages(tmp_path, range(20))
    put_subscriptions(tmp_path, ("ann", "a"), ("bob", "a"), ("bob", "b"))
    return tmp_path


def settings(root: Path, *overrides: str) -> PipelineSettings:
    path = root / "pipeline.toml"
    path.write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "subscriptions.tsv"\n'
        '[output]\npath = "out"\nmatches = "ids"\n[mode]\nfiles_per_batch_max = 12\n'
        "seconds_between_batches = 0.1\n"
    )
    return load_settings(path, overrides)


WANTS = {("ann", "a"), ("bob", "a"), ("bob", "b")}


def expected(numbers: range, wants: set[tuple[str, str]]) -> dict[str, Counter[Any]]:
    """What has to come of messages, worked out by hand."""
    kinds = {kind for _, kind in wants}
    fine = [n for n in numbers if n % 10]
    return {
        "matches": Counter(
            (f"{n}.xml", (f"q-{KINDS[n % 3]}",) if KINDS[n % 3] in kinds else ()) for n in fine
        ),
        "dead_letters": Counter(f"{n}.xml" for n in numbers if n % 10 == 0),
        "inboxes": Counter(
            (who, f"q-{kind}", f"{n}.xml")
            for n in fine
            for who, kind in wants
            if KINDS[n % 3] == kind
        ),
    }


def rows_of(root: Path, name: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_output(root / "out", name).to_pylist()
    return rows


def found(root: Path) -> dict[str, Counter[Any]]:
    """What the readers of the output see."""
    return found_in(root / "out")


def found_in(output: Path | str | Storage) -> dict[str, Counter[Any]]:
    """The same, of an output anywhere."""
    names: tuple[Any, ...] = ("matches", "dead_letters", "inboxes")
    rows = {name: read_output(output, name).to_pylist() for name in names}
    ids = [row["delivery_id"] for row in rows["inboxes"]]
    assert len(set(ids)) == len(ids), "a delivery id occurs twice"
    return {
        "matches": Counter((row["message_id"], tuple(row["query_ids"])) for row in rows["matches"]),
        "dead_letters": Counter(row["message_id"] for row in rows["dead_letters"]),
        "inboxes": Counter(
            (row["subscriber"], row["subscription_id"], row["message_id"])
            for row in rows["inboxes"]
        ),
    }


def go(root: Path, *overrides: str, report: Recorder | None = None) -> Summary:
    """A run in this process."""
    chosen = settings(root, *overrides)
    return run(chosen, workers=InProcess(), progress=report or Recorder())


def test_batch_mode_gives_every_message_its_verdict_and_every_subscriber_its_rows(
    root: Path,
) -> None:
    report = Recorder()
    summary = go(root, report=report)
    want = expected(range(20), WANTS)
    assert found(root) == want
    assert [commit.messages for commit in report.commits] == [12, 8]
    assert (summary.messages, summary.batches) == (20, 2)
    assert summary.deliveries == want["inboxes"].total()
    assert sum(summary.refused.values()) == 2
    assert summary.bytes == sum(path.stat().st_size for path in (root / "in").iterdir())
    assert json.loads(summary.to_json())["messages"] == 20
    assert "20 messages" in summary.to_text()
    assert "12 messages" in describe(report.commits[0])
    mine = inbox(root / "out", "ann").to_pylist()
    assert Counter(
        (row["subscriber"], row["subscription_id"], row["message_id"]) for row in mine
    ) == Counter(row for row in want["inboxes"].elements() if row[0] == "ann")
    # A second run has nothing to do but what is new, and says so.
    put_messages(root, range(20, 23))
    again = go(root)
    assert (again.messages, again.earlier_messages) == (3, 20)
    assert found(root) == expected(range(23), WANTS)


@pytest.mark.spark
def test_spark_gives_what_one_process_gives(spark: SparkSession, root: Path) -> None:
    here = go(root, "output.path=here", "mode.checkpoint=there")
    summary = run(settings(root), spark=spark, progress=Recorder())
    assert (summary.messages, summary.matches, summary.refused) == (
        here.messages,
        here.matches,
        here.refused,
    )
    assert found(root) == expected(range(20), WANTS)
    columns = ["subscriber", "subscription_id", "message_id", "delivery_id", "snapshot_version"]

    def rows(out: str) -> list[dict[str, Any]]:
        table = read_output(root / out, "inboxes").select(columns)
        return sorted(table.to_pylist(), key=str)

    assert rows("out") == rows("here")
    # Whoever has a session reads the files that count as any others.
    frame = spark.read.parquet(*files_of(root / "out", "inboxes"))
    assert frame.where("subscriber = 'ann'").count() == len(inbox(root / "out", "ann"))


def test_ids_of_deliveries_are_those_of_a_broker(root: Path) -> None:
    go(root)
    registry = made_by("reference", Registry)
    for who, kind in WANTS:
        if (who, kind) != ("bob", "a"):  # an id belongs to one subscriber of a registry
            registry.add(Subscription(f"q-{kind}", who, f"/m/{kind}", "ids"))
    want = {
        delivery.delivery_id
        for path in (root / "in").iterdir()
        for delivery in registry.deliver(path.read_bytes(), path.name)
    }
    rows = rows_of(root, "inboxes")
    got = {
        r["delivery_id"].hex()
        for r in rows
        if (r["subscriber"], r["subscription_id"]) != ("bob", "q-a")
    }
    assert got == want
    assert want


KILL_POINTS = {
    "before the journal": (Journal, "append", False),
    "after the journal": (Journal, "append", True),
    "before the pin": (BatchLedger, "write_pin", False),
    "after the pin": (BatchLedger, "write_pin", True),
    "before the tasks": (Pipeline, "_answer", False),
    "after the tasks": (Pipeline, "_answer", True),
    "before the commit": (BatchLedger, "write_commit", False),
    "after the commit": (BatchLedger, "write_commit", True),
}


def kill_at(point: str, monkeypatch: pytest.MonkeyPatch, go: Callable[[], object]) -> None:
    """A run that ends at a step of its second micro-batch as if it were killed there."""
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

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(Killed):
            go()


@pytest.mark.parametrize("options", [(), ("output.by_day=true",)], ids=["flat", "by_day"])
@pytest.mark.parametrize("point", KILL_POINTS)
def test_killed_at_any_step_and_started_again_nothing_is_lost_or_twice(
    root: Path, point: str, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(point, monkeypatch, lambda: go(root, *options))
    out = Storage(root / "out")
    assert len(committed_batches(out)) == (2 if point == "after the commit" else 1)
    if options:
        # It is midnight: the micro-batch that was begun stays on its day.
        tomorrow = time.time_ns() // 1000 + 86_400_000_000
        monkeypatch.setattr("pathcast.spark.pinning._now_us", lambda: tomorrow)
    go(root, *options)
    assert found(root) == expected(range(20), WANTS)
    if options:
        check_days(root)
    named = {Path(path) for name in ("inboxes", "matches", "dead_letters")
             for path in files_of(root / "out", name)}  # fmt: skip
    there = {path for name in ("inboxes", "matches", "dead_letters")
             for path in (root / "out" / name).rglob("*.*")}  # fmt: skip
    assert there == named, "a killed run left its scraps"


def test_an_output_of_before_days_and_work_goes_on(root: Path) -> None:
    go(root)
    out = root / "out"
    layout = json.loads((out / "_pathcast.json").read_text())
    del layout["by_day"]
    (out / "_pathcast.json").write_text(json.dumps(layout))
    paths = sorted((out / "_commits").glob("*.json"))
    assert len(paths) == 2
    for path in paths:
        commit = json.loads(path.read_text())
        del commit["work"], commit["dearest"]
        path.write_text(json.dumps(commit))
    assert found(root) == expected(range(20), WANTS)
    put_messages(root, range(20, 25))
    assert go(root).messages == 5
    assert found(root) == expected(range(25), WANTS)
    commits = list(BatchLedger(Storage(out), Storage(out / "_checkpoint")).commits())
    assert [commit.messages for commit in commits] == [12, 8, 5]
    with pytest.raises(ConfigError, match="choose a new directory"):
        go(root, "output.by_day=true")


def check_days(root: Path) -> None:
    """Each row lies in the folder of the day on which its micro-batch was begun."""
    looked = 0
    for path in (root / "out").rglob("day=*/*.parquet"):
        for begun in pq.ParquetFile(path).read().column("processed_at").to_pylist():
            assert path.parent.name == f"day={begun.date().isoformat()}"
            looked += 1
    assert looked >= 20


@pytest.mark.parametrize("step", ["append", "write_pin", "write_commit"])
def test_a_mended_file_whose_micro_batch_was_killed_comes_once(
    root: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It belongs to the micro-batch that is done again, and must not be due beside it.
    (root / "packed").mkdir()
    table = pa.table({"message_id": ["0", "1"], "message": ["<m><a/></m>", "<m><a/></m>"]})
    more = ("source.kind=parquet", "source.path=packed")
    (root / "packed/a.parquet").write_bytes(b"cut")
    assert go(root, *more).unread == 1
    pq.write_table(table, root / "packed/a.parquet")
    owner: Any = Journal if step == "append" else BatchLedger
    original = getattr(owner, step)

    def killed(*arguments: Any) -> None:
        if step == "append":
            original(*arguments)
        raise Killed

    monkeypatch.setattr(owner, step, killed)
    with pytest.raises(Killed):
        go(root, *more)
    monkeypatch.undo()
    go(root, *more)
    got = Counter(
        row["message_id"] for row in rows_of(root, "inboxes") if row["subscriber"] == "ann"
    )
    assert got == Counter(["0", "1"])


def test_files_of_attempts_that_spark_does_not_report_do_not_count(root: Path) -> None:
    class Speculating(InProcess):
        """Runs every task twice, and hears of the second one only."""

        def run(self, task: Any, shares: Any) -> Any:
            super().run(task, shares)
            return super().run(task, shares)

    run(settings(root), workers=Speculating(), progress=Recorder())
    assert found(root) == expected(range(20), WANTS)
    written = list((root / "out/inboxes").iterdir())
    assert len(written) == 2 * len(files_of(root / "out", "inboxes"))


def test_a_replay_uses_the_subscriptions_that_the_batch_was_begun_with(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(BatchLedger, "write_commit", killed)
    with pytest.raises(Killed):
        go(root)
    monkeypatch.undo()
    put_subscriptions(root, ("eve", "c"), ("fay", "c"))
    report = Recorder()
    go(root, report=report)
    versions = [commit.snapshot_version for commit in report.commits]
    assert versions[0] != versions[1]
    who = {(row["snapshot_version"], row["subscriber"]) for row in rows_of(root, "inboxes")}
    assert who == {
        (versions[0], "ann"),
        (versions[0], "bob"),
        (versions[1], "eve"),
        (versions[1], "fay"),
    }


def test_a_replay_uses_the_limits_that_the_batch_was_begun_with(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(BatchLedger, "write_commit", killed)
    with pytest.raises(Killed):
        go(root, "engine.limits.depth_max=1")
    monkeypatch.undo()
    report = Recorder()
    go(root, report=report)
    refused = [commit.refused.get("limit.depth", 0) for commit in report.commits]
    assert refused[0] > 0
    assert refused[1] == 0


def test_stream_takes_up_new_messages_and_new_subscriptions_and_stops_when_told(
    root: Path,
) -> None:
    stop = threading.Event()

    def on_batch(commit: Commit) -> None:
        # Each change is made while the stream runs, and before the next micro-batch begins.
        if commit.batch_id == 2:
            put_subscriptions(root, ("eve", "c"))
            put_messages(root, range(20, 26))
        elif commit.batch_id == 3:
            (root / "subscriptions.tsv").write_text("")
            put_messages(root, range(26, 30))
        elif commit.batch_id == 4:
            stop.set()

    report = Recorder(on_batch)
    guard = threading.Timer(120, stop.set)
    guard.start()
    chosen = settings(root, "mode.kind=stream", "subscriptions.shrink_max=0.9")
    summary = run(chosen, workers=InProcess(), progress=report, stop=stop)
    guard.cancel()
    assert [commit.messages for commit in report.commits] == [12, 8, 6, 4]
    assert summary.was_stopped
    rows = found(root)
    first, then = expected(range(20), WANTS), expected(range(20, 30), {("eve", "c")})
    assert rows == {name: first[name] + then[name] for name in rows}
    assert any("taken up: 3 -> 1" in note for note in report.notes)
    # A file that cannot be used changes nothing, and is not passed over in silence.
    assert any("not taken up" in note for note in report.notes)


def test_following_gives_what_is_there_and_what_comes_once_each(root: Path) -> None:
    go(root)
    rows = follow(root / "out", "inboxes", subscriber="bob", poll_seconds=0.01)
    seen = [next(rows), next(rows)]
    put_messages(root, range(20, 24))
    go(root)
    seen.append(next(rows))
    assert [batch_id for batch_id, _ in seen] == [1, 2, 3]
    want = expected(range(24), WANTS)["inboxes"]
    ids = Counter(r["message_id"] for _, table in seen for r in table.to_pylist())
    assert ids == Counter(message for who, _, message in want.elements() if who == "bob")
    later = follow(root / "out", "inboxes", after=2, poll_seconds=0.01)
    assert next(later)[0] == 3


@pytest.mark.parametrize("matches", ["ids", "numbers", "none"])
def test_json_lines_hold_the_same_rows(root: Path, matches: str) -> None:
    summary = go(root, "output.format=jsonl", f"output.matches={matches}")
    want = expected(range(20), WANTS)
    assert summary.deliveries == want["inboxes"].total()
    lines = [
        json.loads(line)
        for path in files_of(root / "out", "dead_letters")
        for line in Path(path).read_text().splitlines()
    ]
    assert Counter(line["message_id"] for line in lines) == want["dead_letters"]
    assert set(lines[0]) >= {"code", "line", "column", "offset", "bytes", "snapshot_version"}
    if matches == "ids":
        assert found(root) == want
    elif matches == "numbers":
        rows = rows_of(root, "matches")
        assert sum(len(row["query_numbers"]) for row in rows) == summary.matches
        version = rows[0]["snapshot_version"]
        snapshot = made_by(
            "reference", Snapshot.open, root / "out" / "_snapshots" / version / QUERIES
        )
        named = Counter(
            (row["message_id"], tuple(snapshot.query_ids[n] for n in row["query_numbers"]))
            for row in rows
        )
        assert named == want["matches"]
    else:
        assert not list((root / "out").glob("matches/*"))
        with pytest.raises(ConfigError, match="writes no matches"):
            read_output(root / "out", "matches")


def pack(root: Path, name: str, columns: dict[str, Any]) -> None:
    (root / "packed").mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), root / "packed" / name, row_group_size=2)


PACKED = (
    "source.kind=parquet",
    "source.path=packed",
    "source.id_column=key",
    "source.message_column=body",
)


def test_parquet_source(root: Path) -> None:
    for part in range(2):
        numbers = range(part * 5, part * 5 + 5)
        bodies = pa.array([b"<m><a/></m>" if n != 7 else None for n in numbers], pa.binary())
        pack(root, f"{part}.parquet", {"key": pa.array(numbers, pa.int64()), "body": bodies})
    summary = go(root, *PACKED, "mode.files_per_batch_max=1")
    assert (summary.messages, summary.batches, dict(summary.refused)) == (
        10,
        2,
        {"message.unreadable": 1},
    )
    assert Counter(row["subscriber"] for row in rows_of(root, "inboxes")) == {"ann": 9, "bob": 9}


def test_columns_are_passed_through_to_matches_and_deliveries(root: Path) -> None:
    pack(root, "1.parquet", {"key": ["x", "y"], "body": ["<m><a/></m>", "<m/>"], "channel": [7, 8]})
    pack(root, "2.parquet", {"key": ["z"], "body": ["<m><a/></m>"]})
    report = Recorder()
    go(root, *PACKED, 'source.columns=["channel"]', report=report)
    assert [note for note in report.notes if "null there" in note] == [
        "no column channel (null there): 2.parquet"
    ]
    inboxes = {(row["message_id"], row["channel"]) for row in rows_of(root, "inboxes")}
    assert inboxes == {("x", 7), ("z", None)}
    matches = {(row["message_id"], row["channel"]) for row in rows_of(root, "matches")}
    assert matches == {("x", 7), ("y", 8), ("z", None)}
    with pytest.raises(ConfigError, match=r"source\.columns.*no file has a column nope"):
        go(root, *PACKED, 'source.columns=["nope"]', "output.path=other")


def test_a_column_of_another_kind_makes_a_file_unread(root: Path) -> None:
    body = ["<m><a/></m>"] * 3
    pack(root, "1.parquet", {"key": ["x"], "body": body[:1], "channel": [7]})
    os.utime(root / "packed/1.parquet", (1, 1))
    # The first row groups could be cast: none of their rows may be delivered.
    pack(root, "2.parquet", {"key": ["p", "q", "r"], "body": body, "channel": ["1", "2", "many"]})
    pack(root, "3.parquet", {"key": ["z"], "body": body[:1], "channel": ["9"]})
    report = Recorder()
    go(root, *PACKED, 'source.columns=["channel"]', report=report)
    inboxes = {(row["message_id"], row["channel"]) for row in rows_of(root, "inboxes")}
    assert inboxes == {("x", 7), ("z", 9)}
    (letter,) = rows_of(root, "dead_letters")
    assert letter["file"] == "2.parquet"
    assert "column 'channel' is string, not int64" in letter["message"]
    assert any("the first because 2.parquet" in note for note in report.notes)


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_what_the_source_does_not_give_is_said_once(root: Path, mode: str) -> None:
    for number in range(31):
        (root / "in" / f"{number}.json").write_text("{}")
    stop = threading.Event()

    def on_batch(commit: Commit) -> None:
        if commit.batch_id == 2 and mode == "stream":
            put_messages(root, range(20, 23))
        elif commit.batch_id == 3:
            stop.set()

    report = Recorder(on_batch)
    guard = threading.Timer(60, stop.set)
    guard.start()
    chosen = settings(root, f"mode.kind={mode}")
    run(chosen, workers=InProcess(), progress=report, stop=stop)
    guard.cancel()
    told = [note for note in report.notes if "match the pattern" in note]
    assert told == [
        "20 of 51 files of the source match the pattern *.xml, the others are left alone"
    ]
    # Files that were handed on match still.
    again = Recorder()
    go(root, report=again)
    total = 20 if mode == "batch" else 23
    assert any(f"{total} of {total + 31} files" in note for note in again.notes)


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_a_source_without_a_file_says_so_once(root: Path, mode: str) -> None:
    for path in (root / "in").iterdir():
        path.unlink()
    stop = threading.Event()

    def on_batch(_: Commit) -> None:
        stop.set()

    report = Recorder(on_batch)
    timer = threading.Timer(0.5, put_messages, (root, range(1)))
    if mode == "stream":
        timer.start()
    guard = threading.Timer(60, stop.set)
    guard.start()
    chosen = settings(root, f"mode.kind={mode}")
    run(chosen, workers=InProcess(), progress=report, stop=stop)
    guard.cancel()
    timer.cancel()
    assert sum("holds no file" in note for note in report.notes) == 1
    assert not any("match the pattern" in note for note in report.notes)


@pytest.mark.parametrize("damage", ["cut", "foreign", "in the middle", "column"])
def test_an_unreadable_file_is_a_dead_letter_and_done_once_it_is_mended(
    root: Path, damage: str
) -> None:
    columns = {"key": [f"bad-{n}" for n in range(9)], "body": ["<m><a/></m>"] * 9}
    pack(root, "1.parquet", {"key": ["x"], "body": ["<m><a/></m>"]})
    pack(root, "2.parquet", columns)
    path = root / "packed/2.parquet"
    whole = path.read_bytes()
    if damage == "cut":
        path.write_bytes(whole[:-20])
    elif damage == "foreign":
        path.write_bytes(b"no parquet at all")
    elif damage == "column":
        pack(root, "2.parquet", {"key": columns["key"], "other": columns["body"]})
    else:
        # The first row groups can be read: none of their rows may be delivered.
        middle = pq.ParquetFile(path).metadata.row_group(3).column(1).data_page_offset
        path.write_bytes(whole[:middle] + bytes(40) + whole[middle + 40 :])
    report = Recorder()
    go(root, *PACKED, report=report)
    assert {row["message_id"] for row in rows_of(root, "inboxes")} == {"x"}
    (letter,) = rows_of(root, "dead_letters")
    assert (letter["file"], letter["message_id"]) == ("2.parquet", None)
    assert letter["code"] == "file.unreadable"
    assert [entry.name for entry in report.commits[0].unread] == ["2.parquet"]
    assert any("the first because 2.parquet" in note for note in report.notes)
    # A rerun tries again, and says so again; nothing is delivered twice.
    go(root, *PACKED)
    assert {row["message_id"] for row in rows_of(root, "inboxes")} == {"x"}
    path.write_bytes(whole)
    go(root, *PACKED)
    ids = Counter(row["message_id"] for row in rows_of(root, "inboxes"))
    assert ids == Counter(dict.fromkeys(["x", *columns["key"]], 2))
    last = go(root, *PACKED)
    assert last.messages == 0


def test_a_stream_takes_up_a_file_when_it_is_mended(root: Path) -> None:
    # The types of columns that are passed through are not known before.
    pack(root, "1.parquet", {"key": ["x"], "body": ["<m><a/></m>"], "channel": [7]})
    whole = (root / "packed/1.parquet").read_bytes()
    (root / "packed/1.parquet").write_bytes(b"later")
    stop = threading.Event()

    def on_batch(commit: Commit) -> None:
        if commit.batch_id == 1:
            (root / "packed/1.parquet").write_bytes(whole)
        else:
            stop.set()

    report = Recorder(on_batch)
    guard = threading.Timer(60, stop.set)
    guard.start()
    chosen = settings(root, *PACKED, 'source.columns=["channel"]', "mode.kind=stream")
    run(chosen, workers=InProcess(), progress=report, stop=stop)
    guard.cancel()
    assert [commit.messages for commit in report.commits] == [0, 1]
    rows = {(row["message_id"], row["channel"]) for row in rows_of(root, "inboxes")}
    assert rows == {("x", 7)}


def test_files_that_cannot_be_read_or_are_too_large_end_as_dead_letters(root: Path) -> None:
    (root / "in" / "large.xml").write_bytes(b"<m>" + b" " * 5000 + b"</m>")
    (root / "in" / "gone.xml").symlink_to("nowhere")
    os.utime(root / "in" / "large.xml", (1, 1))
    summary = go(root, "engine.limits.message_bytes_max=4000")
    assert summary.messages == 21
    assert summary.refused["limit.message_bytes"] == 1
    dead = {row["message_id"] or row["file"]: row for row in rows_of(root, "dead_letters")}
    assert "4000" in dead["large.xml"]["message"]
    assert dead["large.xml"]["bytes"] == 5007
    assert dead["gone.xml"]["code"] == "message.unreadable"


def test_results_and_notices_go_the_same_way(root: Path) -> None:
    path = root / "subscriptions.tsv"
    rows = [
        ("ann", "whole", "/m/a", "message"),
        ("bob", "shaped", "for $a in //a return <hit n='{$a/@n}'/>", "fragment"),
        ("eve", "shaped", "for $a in //a return <hit n='{$a/@n}'/>", "fragment"),
        ("bob", "told", "/m/b", ""),
        ("eve", "flwr-told", "for $a in //a return <hit n='{$a/@n}'/>", "ids"),
    ]
    path.write_text("subscriber\tquery_id\tquery\tdeliver\n" + "".join(
        "\t".join(row) + "\n" for row in rows
    ))  # fmt: skip
    summary = go(root)
    kinds = {n: KINDS[n % 3] for n in range(20) if n % 10}
    of_a = [n for n, kind in kinds.items() if kind == "a"]
    want = Counter(
        [("ann", "whole", f"{n}.xml", f"<m><a n='{n}'/></m>".encode()) for n in of_a]
        + [
            (who, "shaped", f"{n}.xml", f'<hit n="{n}"></hit>'.encode())
            for n in of_a
            for who in ("bob", "eve")
        ]
        + [("eve", "flwr-told", f"{n}.xml", None) for n in of_a]
        + [("bob", "told", f"{n}.xml", None) for n, kind in kinds.items() if kind == "b"]
    )
    got = Counter(
        (row["subscriber"], row["subscription_id"], row["message_id"], body_of(row))
        for row in rows_of(root, "inboxes")
    )
    assert got == want
    assert summary.deliveries == want.total()
    matches = {row["message_id"]: row["query_ids"] for row in rows_of(root, "matches")}
    told = {"a": ["flwr-told"], "b": ["told"]}
    assert matches == {f"{n}.xml": told.get(kind, []) for n, kind in kinds.items()}


def test_undecided_queries_are_counted_told_and_written(root: Path) -> None:
    path = root / "subscriptions.tsv"
    path.write_text(path.read_text() + "eve\tq-heavy\tcount(//a[last()]) > 1\n")
    report = Recorder()
    summary = go(root, "engine.limits.evaluation_steps_max=3", report=report)
    # Messages without an a have nothing that must be counted.
    undecided = {f"{n}.xml" for n in range(20) if n % 10 and n % 3 == 0}
    assert summary.undecided == len(undecided)
    assert sum(summary.refused.values()) == 2
    assert any(f"{commit.undecided} undecided" in describe(commit) for commit in report.commits)
    letters = rows_of(root, "dead_letters")
    pairs = {
        (row["message_id"], row["subscriber"])
        for row in letters
        if row["subscription_id"] == "q-heavy"
    }
    assert pairs == {(name, "eve") for name in undecided}
    assert sorted(row["message_id"] for row in letters if row["subscription_id"] is None) == [
        "0.xml",
        "10.xml",
    ]
    inboxes = Counter(
        (row["subscriber"], row["subscription_id"], row["message_id"])
        for row in rows_of(root, "inboxes")
    )
    assert inboxes == expected(range(20), WANTS)["inboxes"]


@pytest.mark.parametrize("format", ["parquet", "jsonl", "delta"])
def test_rejected_subscriptions_are_counted_told_and_written(root: Path, format: str) -> None:
    if format == "delta":
        pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    path = root / "subscriptions.tsv"
    path.write_text(
        path.read_text() + "eve\tbad\t//[\nbob\tq-a\t//other\neve\tdead\t//a[day > '2026-06-01']\n"
    )
    report = Recorder()
    summary = go(root, f"output.format={format}", report=report)
    assert sum(summary.rejected_queries.values()) == 2
    assert any("2 subscriptions were rejected" in note for note in report.notes)
    # What is taken up and can deliver nothing is told, too; every format takes it up alike.
    [warned] = [note for note in report.notes if "never or always" in note]
    assert "dead: PL201: no message can satisfy the query" in warned
    (written,) = (root / "out/rejected_queries").iterdir()
    if written.suffix == ".jsonl":
        rows = [json.loads(line) for line in written.read_text().splitlines()]
    else:
        assert written.suffix == ".parquet"
        rows = pq.read_table(written).to_pylist()
    assert {(row["subscriber"], row["query_id"]) for row in rows} == {
        ("eve", "bad"),
        ("bob", "q-a"),
    }
    assert found(root) == expected(range(20), WANTS)


@pytest.mark.parametrize("content", ["", "subscriber\tquery_id\tquery\n", "cut", None])
def test_a_file_of_subscriptions_that_has_shrunk_keeps_the_earlier_ones(
    root: Path, content: str | None
) -> None:
    go(root)
    path = root / "subscriptions.tsv"
    if content is None:
        put_subscriptions(root, ("bob", "b"))
    else:
        path.write_text(path.read_text()[:30] if content == "cut" else content)
    put_messages(root, range(20, 26))
    report = Recorder()
    summary = go(root, report=report)
    assert found(root) == expected(range(26), WANTS), "somebody has lost deliveries"
    assert any("the earlier ones stay" in note for note in report.notes)
    assert "kept: " in summary.to_text()
    if content is None:
        put_messages(root, range(26, 29))
        again = go(root, "subscriptions.shrink_max=1")
        assert (again.subscriptions, again.subscriptions_kept) == (1, "")


def test_a_folder_that_cannot_be_listed_waits_and_costs_no_other(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "in/closed").mkdir()
    (root / "in/1.xml").rename(root / "in/closed/1.xml")
    original = os.scandir

    def refusing(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return original(path)

    monkeypatch.setattr(os, "scandir", refusing)
    report = Recorder()
    summary = go(root, report=report)
    assert summary.messages == 19
    assert summary.unlisted == {str(root / "in/closed"): "Permission denied"}
    assert any("closed cannot be listed" in note for note in report.notes)
    monkeypatch.undo()
    assert go(root).messages == 1


def test_no_query_at_all_is_said(root: Path) -> None:
    put_subscriptions(root)
    report = Recorder()
    summary = go(root, report=report)
    assert (summary.messages, summary.deliveries) == (20, 0)
    assert any("no query is in force" in note for note in report.notes)
    again = Recorder()
    put_subscriptions(root, ("ann", "a"))
    go(root, report=again)
    assert not any("no query is in force" in note for note in again.notes)


def test_an_empty_output_has_columns(root: Path) -> None:
    for path in (root / "in").iterdir():
        path.unlink()
    go(root)
    for name in ("inboxes", "matches", "dead_letters"):
        table = read_output(root / "out", name)
        assert len(table) == 0
        assert "snapshot_version" in table.column_names


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("source.path=absent", r"source\.path.*not a directory"),
        ("output.path=in/out", r"output\.path.*inside source"),
        ("subscriptions.path=absent.tsv", r"subscriptions\.path.*No such file"),
    ],
)
def test_what_cannot_work_is_refused_before_spark_starts(
    root: Path, override: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("pathcast.spark.session.spark_workers", start)
    with pytest.raises(ConfigError, match=reason):
        run(settings(root, override), progress=Recorder())


def test_an_output_is_not_continued_in_another_way(root: Path) -> None:
    go(root)
    with pytest.raises(ConfigError, match="choose a new directory"):
        go(root, "output.format=jsonl")
    with pytest.raises(ConfigError, match=r"mode\.checkpoint"):
        go(root, "mode.checkpoint=elsewhere")
    assert found(root) == expected(range(20), WANTS)

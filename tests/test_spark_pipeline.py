"""The pipeline in one session: rows, restarts at every step, streams, formats, settings."""

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

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.errors import ConfigError
from pathcast.spark.dead_letters import DeadLetterBox
from pathcast.spark.ledger import Commit, Ledger, committed_batches
from pathcast.spark.outputs import StagedBatch, inbox, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.progress import describe
from pathcast.spark.settings import PipelineSettings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KINDS = ("a", "b", "c")


class Recorder:
    """A progress report that keeps what it is told."""

    def __init__(self, on_batch: Callable[[Commit], None] | None = None) -> None:
        self.commits: list[Commit] = []
        self.notes: list[str] = []
        self._on_batch = on_batch

    def begin(self, text: str, messages: int | None) -> None:
        self.notes.append(f"{text}, {messages} messages")

    def batch(self, commit: Commit) -> None:
        self.commits.append(commit)
        if self._on_batch:
            self._on_batch(commit)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self) -> None:
        """Nothing to close."""


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
        '[output]\npath = "out"\ninbox_buckets = 3\n[mode]\nfiles_per_batch_max = 12\n'
        'seconds_between_batches = 0.1\n[engine]\nengine = "reference"\n'
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


def found(spark: SparkSession, root: Path) -> dict[str, Counter[Any]]:
    """What the readers of the output see."""
    out = root / "out"
    rows = {
        name: read_output(spark, out, name).collect()
        for name in ("matches", "dead_letters", "inboxes")
    }
    ids = [row.delivery_id for row in rows["inboxes"]]
    assert len(set(ids)) == len(ids), "a delivery id occurs twice"
    return {
        "matches": Counter((row.message_id, tuple(row.query_ids)) for row in rows["matches"]),
        "dead_letters": Counter(row.message_id for row in rows["dead_letters"]),
        "inboxes": Counter(
            (row.subscriber, row.query_id, row.message_id) for row in rows["inboxes"]
        ),
    }


def test_batch_mode_gives_every_message_its_verdict_and_every_subscriber_its_rows(
    spark: SparkSession, root: Path
) -> None:
    report = Recorder()
    summary = run(settings(root), spark=spark, progress=report)
    want = expected(range(20), WANTS)
    assert found(spark, root) == want
    assert [commit.messages for commit in report.commits] == [12, 8]
    assert (summary.messages, summary.batches) == (20, 2)
    assert summary.deliveries == want["inboxes"].total()
    per_subscriber = Counter(row[0] for row in want["inboxes"].elements())
    assert list(summary.top_subscribers) == per_subscriber.most_common()
    assert sum(summary.refused.values()) == 2
    assert summary.bytes == sum(path.stat().st_size for path in (root / "in").iterdir())
    assert json.loads(summary.to_json())["messages"] == 20
    assert "20 messages" in summary.to_text()
    assert "12 messages" in describe(report.commits[0])
    # One folder a bucket, never one a subscriber.
    buckets = {path.name for path in (root / "out/inboxes").glob("batch_id=*/*")}
    assert buckets <= {f"bucket={n}" for n in range(3)}
    mine = inbox(spark, root / "out", "ann").collect()
    assert Counter((row.subscriber, row.query_id, row.message_id) for row in mine) == Counter(
        row for row in want["inboxes"].elements() if row[0] == "ann"
    )
    # A second run has nothing to do, and says so.
    put_messages(root, range(20, 23))
    again = run(settings(root), spark=spark, progress=Recorder())
    assert (again.messages, again.earlier_messages) == (3, 20)
    assert found(spark, root) == expected(range(23), WANTS)


KILL_POINTS = {
    "before the pin": (Ledger, "write_pin", False),
    "after the pin": (Ledger, "write_pin", True),
    "before anything is in place": (StagedBatch, "publish", False),
    "before the commit": (StagedBatch, "publish", True),
    "after the commit": (Ledger, "write_commit", True),
}


@pytest.mark.parametrize("point", KILL_POINTS)
def test_killed_at_any_step_and_started_again_nothing_is_lost_or_twice(
    spark: SparkSession, root: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, is_after = KILL_POINTS[point]
    original = getattr(owner, name)
    calls = 0

    def killed(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2 and not is_after:
            raise Killed
        original(*arguments)
        if calls == 2:
            raise Killed

    monkeypatch.setattr(owner, name, killed)
    with pytest.raises(Killed):
        run(settings(root), spark=spark, progress=Recorder())
    monkeypatch.undo()
    assert len(committed_batches(root / "out")) == (2 if point == "after the commit" else 1)
    run(settings(root), spark=spark, progress=Recorder())
    assert found(spark, root) == expected(range(20), WANTS)
    assert not list((root / "out/_staging").glob("*")), "a killed run left its scraps"


def test_killed_between_two_renames_the_batch_is_replaced_not_added_to(
    spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = Path.rename, 0

    def killed(path: Path, target: Path) -> Path:
        nonlocal calls
        calls += "batch_id=" in str(target)
        if calls == 2:
            raise Killed
        return original(path, target)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(Killed):
        run(settings(root), spark=spark, progress=Recorder())
    monkeypatch.undo()
    assert committed_batches(root / "out") == []
    assert [path.name for path in (root / "out/matches").iterdir()] == ["batch_id=0"]
    run(settings(root), spark=spark, progress=Recorder())
    assert found(spark, root) == expected(range(20), WANTS)


def test_a_replay_uses_the_subscriptions_that_the_batch_was_begun_with(
    spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(StagedBatch, "publish", killed)
    with pytest.raises(Killed):
        run(settings(root), spark=spark, progress=Recorder())
    monkeypatch.undo()
    put_subscriptions(root, ("eve", "c"))
    report = Recorder()
    run(settings(root), spark=spark, progress=report)
    versions = [commit.snapshot_version for commit in report.commits]
    assert versions[0] != versions[1]
    by_batch = read_output(spark, root / "out", "inboxes").select("batch_id", "subscriber")
    who = {tuple(row) for row in by_batch.distinct().collect()}
    assert who == {(0, "ann"), (0, "bob"), (1, "eve")}


def test_stream_takes_up_new_messages_and_new_subscriptions_and_stops_when_told(
    spark: SparkSession, root: Path
) -> None:
    stop = threading.Event()

    def on_batch(commit: Commit) -> None:
        # Each change is made while the stream runs, and before the next micro-batch begins.
        if commit.batch_id == 1:
            put_subscriptions(root, ("eve", "c"))
            put_messages(root, range(20, 26))
        elif commit.batch_id == 2:
            (root / "subscriptions.tsv").write_text("subscriber\tquery_id\tquery\n")
            put_messages(root, range(26, 30))
        elif commit.batch_id == 3:
            stop.set()

    report = Recorder(on_batch)
    guard = threading.Timer(400, stop.set)
    guard.start()
    stream = settings(root, "mode.kind=stream", "subscriptions.shrink_max=0.7")
    summary = run(stream, spark=spark, progress=report, stop=stop)
    guard.cancel()
    assert [commit.messages for commit in report.commits] == [12, 8, 6, 4]
    assert summary.was_stopped
    rows = found(spark, root)
    first, then = expected(range(20), WANTS), expected(range(20, 30), {("eve", "c")})
    assert rows == {name: first[name] + then[name] for name in rows}
    # A file that was emptied changes nothing, and is not passed over in silence.
    assert any("there are 0, and were 1: more than 70% have gone" in note for note in report.notes)
    assert "there are 0" in summary.subscriptions_kept
    assert (summary.queries, summary.subscriptions) == (1, 1)
    # Nor does it at the next start, or when it is no table at all.
    for content in ("subscriber\tquery_id\tquery\n", ""):
        (root / "subscriptions.tsv").write_text(content)
        again = Recorder()
        assert run(settings(root), spark=spark, progress=again).subscriptions == 1
        assert any("not taken up" in note for note in again.notes)


@pytest.mark.parametrize("ids", ["ids", "numbers"])
def test_json_lines_hold_the_same_rows(spark: SparkSession, root: Path, ids: str) -> None:
    chosen = settings(root, "output.format=jsonl", f"output.ids={ids}")
    summary = run(chosen, spark=spark, progress=Recorder())
    want = expected(range(20), WANTS)
    assert summary.deliveries == want["inboxes"].total()
    lines = [
        json.loads(line)
        for path in (root / "out/dead_letters").glob("batch_id=*/*.json")
        for line in path.read_text().splitlines()
    ]
    assert Counter(line["message_id"] for line in lines) == want["dead_letters"]
    assert set(lines[0]) >= {"code", "line", "column", "offset", "bytes", "snapshot_version"}
    if ids == "ids":
        assert found(spark, root) == want
    else:
        rows = read_output(spark, root / "out", "matches").collect()
        assert sum(len(row.query_numbers) for row in rows) == summary.matches


def test_parquet_source(spark: SparkSession, root: Path) -> None:
    (root / "packed").mkdir()
    for part in range(2):
        numbers = range(part * 5, part * 5 + 5)
        table = pa.table(
            {
                "key": pa.array(numbers, pa.int64()),
                "body": pa.array(
                    [b"<m><a/></m>" if n != 7 else None for n in numbers], pa.binary()
                ),
            }
        )
        pq.write_table(table, root / "packed" / f"{part}.parquet")
    chosen = settings(
        root,
        "source.kind=parquet",
        "source.path=packed",
        "source.id_column=key",
        "source.message_column=body",
        "mode.files_per_batch_max=1",
    )
    summary = run(chosen, spark=spark, progress=Recorder())
    assert (summary.messages, summary.batches, dict(summary.refused)) == (
        10,
        2,
        {"message.unreadable": 1},
    )
    inboxes = read_output(spark, root / "out", "inboxes").collect()
    assert Counter(row.subscriber for row in inboxes) == {"ann": 9, "bob": 9}
    with pytest.raises(ConfigError, match=r"source\.id_column.*no column 'nope'"):
        run(
            settings(root, "source.kind=parquet", "source.path=packed", "source.id_column=nope",
                     "source.message_column=body", "output.path=other"),
            spark=spark,
            progress=Recorder(),
        )  # fmt: skip


def test_files_that_cannot_be_read_or_are_too_large_end_as_dead_letters(
    spark: SparkSession, root: Path
) -> None:
    (root / "in" / "large.xml").write_bytes(b"<m>" + b" " * 5000 + b"</m>")
    (root / "in" / "gone.xml").symlink_to("nowhere")
    os.utime(root / "in" / "large.xml", (1, 1))
    summary = run(
        settings(root, "engine.limits.message_bytes_max=4000"), spark=spark, progress=Recorder()
    )
    assert summary.messages == 22
    assert summary.refused["limit.message_bytes"] == 1
    assert summary.refused["message.unreadable"] == 1
    dead = {
        row.message_id: row for row in read_output(spark, root / "out", "dead_letters").collect()
    }
    assert "4000" in dead["large.xml"].message
    assert dead["large.xml"].bytes == 5007


def put_parquet(path: Path, numbers: range) -> None:
    """A Parquet file with a message for each number, moved in whole."""
    path.parent.mkdir(exist_ok=True)
    table = pa.table(
        {"message_id": [f"m{n}" for n in numbers], "message": [b"<m><a/></m>" for _ in numbers]}
    )
    pq.write_table(table, path.with_name(".new"))
    path.with_name(".new").rename(path)


def test_unreadable_parquet_files_are_dead_letters_and_processed_once_when_mended(
    spark: SparkSession, root: Path
) -> None:
    packed = root / "packed"
    for part in range(6):
        put_parquet(packed / f"{part}.parquet", range(part * 10, part * 10 + 10))
    (packed / "1.parquet").write_bytes((packed / "1.parquet").read_bytes()[:300])
    (packed / "2.parquet").write_bytes(b"no Parquet")
    pq.write_table(pa.table({"message_id": ["x"]}), packed / "3.parquet")
    chosen = settings(root, "source.kind=parquet", "source.path=packed")
    report = Recorder()
    summary = run(chosen, spark=spark, progress=report)
    assert (dict(summary.refused), summary.unread) == ({"file.unreadable": 3}, 3)
    assert report.commits[0].unread == ("1.parquet", "2.parquet", "3.parquet")
    assert any("3 files of the source could not be read" in note for note in report.notes)
    box = DeadLetterBox(root / "out")
    told = {letter.message_id: letter for letter in box.letters()}
    assert {letter.state for letter in told.values()} == {"unread"}
    assert "no column 'message' among message_id" in told["3.parquet"].reason

    def ids() -> Counter[str]:
        rows = read_output(spark, root / "out", "matches").collect()
        assert {len(row.query_ids) for row in rows} == {1}
        return Counter(row.message_id for row in rows)

    assert ids() == Counter(f"m{n}" for n in range(60) if not 10 <= n < 40)
    # Nothing was mended: nothing is done. One is, another goes, a third is asked for as it is.
    assert run(chosen, spark=spark, progress=Recorder()).messages == 0
    put_parquet(packed / "1.parquet", range(10, 20))
    (packed / "2.parquet").unlink()
    assert box.ask_for(["3.parquet", "m7"]) == ["3.parquet"]
    again = run(chosen, spark=spark, progress=Recorder())
    assert (again.messages, again.unread) == (11, 1)
    put_parquet(packed / "2.parquet", range(20, 30))
    put_parquet(packed / "3.parquet", range(30, 40))
    run(chosen, spark=spark, progress=Recorder())
    assert ids() == Counter(f"m{n}" for n in range(60))
    states = Counter((s.message_id, s.state) for s in DeadLetterBox(root / "out").letters())
    assert states == Counter({(f"{n}.parquet", "taken up"): 2 if n == 3 else 1 for n in (1, 2, 3)})
    assert run(chosen, spark=spark, progress=Recorder()).messages == 0


def test_refused_messages_are_taken_up_once_they_are_mended_and_asked_for(
    spark: SparkSession, root: Path
) -> None:
    (root / "in" / "gone.xml").symlink_to("nowhere")
    run(settings(root), spark=spark, progress=Recorder())
    # 0.xml and 10.xml are cut short.
    (root / "in" / "10.xml").write_text("<m><b/></m>")
    box = DeadLetterBox(root / "out")
    assert Counter(letter.state for letter in box.letters()) == {"refused": 2, "unread": 1}
    assert box.ask_for() == ["10.xml", "gone.xml"]
    states = {letter.message_id: letter.state for letter in DeadLetterBox(root / "out").letters()}
    assert states == {"0.xml": "refused", "10.xml": "asked for", "gone.xml": "asked for"}
    for _ in range(2):
        run(settings(root), spark=spark, progress=Recorder())
    rows = read_output(spark, root / "out", "inboxes").where("message_id = '10.xml'").collect()
    assert [(row.subscriber, row.query_id) for row in rows] == [("bob", "q-b")]
    dead = Counter(letter.message_id for letter in DeadLetterBox(root / "out").letters())
    assert dead == {"0.xml": 1, "10.xml": 1, "gone.xml": 2}


@pytest.mark.parametrize("ids", ["ids", "numbers"])
def test_undecided_queries_are_counted_told_and_written(
    spark: SparkSession, root: Path, ids: str
) -> None:
    path = root / "subscriptions.tsv"
    path.write_text(path.read_text() + "eve\tq-heavy\tcount(//a[last()]) > 1\n")
    report = Recorder()
    limits = "engine.limits.evaluation_steps_max=3"
    summary = run(settings(root, limits, f"output.ids={ids}"), spark=spark, progress=report)
    # Messages without an a have nothing that must be counted.
    undecided = {f"{n}.xml" for n in range(20) if n % 10 and n % 3 == 0}
    assert summary.undecided == len(undecided)
    assert sum(summary.refused.values()) == 2
    assert any(f"{commit.undecided} undecided" in describe(commit) for commit in report.commits)
    letters = read_output(spark, root / "out", "dead_letters").collect()
    assert {row.message_id for row in letters if row.query_id == "q-heavy"} == undecided
    assert sorted(row.message_id for row in letters if row.query_id is None) == ["0.xml", "10.xml"]
    inboxes = read_output(spark, root / "out", "inboxes").collect()
    assert (
        Counter((row.subscriber, row.query_id, row.message_id) for row in inboxes)
        == expected(range(20), WANTS)["inboxes"]
    )


def test_rejected_subscriptions_are_counted_told_and_written(
    spark: SparkSession, root: Path
) -> None:
    path = root / "subscriptions.tsv"
    path.write_text(path.read_text() + "eve\tbad\t//[\nbob\tq-a\t//other\n")
    report = Recorder()
    summary = run(settings(root), spark=spark, progress=report)
    assert sum(summary.rejected_queries.values()) == 2
    assert any("2 subscriptions were rejected" in note for note in report.notes)
    (written,) = (root / "out/rejected_queries").iterdir()
    rows = pq.read_table(written).to_pylist()
    assert {(row["subscriber"], row["query_id"]) for row in rows} == {
        ("eve", "bad"),
        ("bob", "q-a"),
    }
    assert found(spark, root) == expected(range(20), WANTS)


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("source.path=absent", r"source\.path.*not a directory"),
        ("output.path=in/out", r"output\.path.*inside source"),
        ("subscriptions.path=absent.tsv", r"subscriptions\.path.*No such file"),
    ],
)
def test_what_cannot_work_is_refused_before_spark_starts(
    root: Path, override: str, reason: str
) -> None:
    begun = time.monotonic()
    with pytest.raises(ConfigError, match=reason):
        run(settings(root, override), progress=Recorder())
    assert time.monotonic() - begun < 5


def test_an_output_is_not_continued_in_another_way(spark: SparkSession, root: Path) -> None:
    run(settings(root), spark=spark, progress=Recorder())
    with pytest.raises(ConfigError, match="choose a new directory"):
        run(settings(root, "output.format=jsonl"), progress=Recorder())
    with pytest.raises(ConfigError, match=r"mode\.checkpoint"):
        run(settings(root, "mode.checkpoint=elsewhere"), progress=Recorder())
    assert found(spark, root) == expected(range(20), WANTS)

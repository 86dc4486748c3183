"""A Delta table as a source: every row that is added is a message once, whatever else happens."""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")

import deltalake

from object_store import ObjectStore
from pathcast.errors import ConfigError, SourceError
from pathcast.spark.dead_letters import DeadLetterBox
from pathcast.spark.delta_log import read_version
from pathcast.spark.delta_source import STATE, DeltaListing
from pathcast.spark.files import FoundFile
from pathcast.spark.journal import Journal
from pathcast.spark.ledger import BatchLedger
from pathcast.spark.listing import files_at
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import Pipeline, run
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from test_spark_pipeline import Killed, Recorder

TABLE = "table"


def rows(numbers: range, **more: list[Any]) -> pa.Table:
    """Messages by number; every second one has an `a`."""
    texts = [f"<m n='{n}'>{'<a/>' if n % 2 else '<b/>'}</m>" for n in numbers]
    ids = [str(n) for n in numbers]
    return pa.table({"message_id": ids, "message": texts, **more})


def add(root: Path, numbers: range, **more: Any) -> None:
    """A version with these messages."""
    options = {"mode": "append", **more.pop("options", {})}
    deltalake.write_deltalake(root / TABLE, rows(numbers, **more), **options)


def table(root: Path) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(root / TABLE)


def settings(root: Path, *overrides: str) -> PipelineSettings:
    (root / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tq\t/m/a\nbob\tall\t/m\n")
    (root / "p.toml").write_text(
        f'[source]\nkind = "delta"\npath = "{TABLE}"\n[subscriptions]\npath = "s.tsv"\n'
        '[output]\npath = "out"\ncompact_files = 0\n[mode]\nfiles_per_batch_max = 2\n'
    )
    return load_settings(root / "p.toml", overrides)


def go(root: Path, *overrides: str, report: Recorder | None = None) -> Summary:
    chosen = settings(root, *overrides)
    return run(chosen, workers=InProcess(), progress=report or Recorder())


def delivered(root: Path, subscriber: str = "bob", out: str = "out") -> list[int]:
    """Numbers of the messages that a subscriber has, each as often as it came."""
    found = read_output(root / out, "inboxes", subscriber=subscriber)
    return sorted(int(each) for each in found.column("message_id").to_pylist())


def expire(root: Path, *versions: int) -> None:
    """Takes versions out of the log, as a table does that keeps it for a while."""
    for version in versions:
        (root / TABLE / "_delta_log" / f"{version:020}.json").unlink()


def test_a_table_is_delivered_as_it_is_and_then_what_is_added(tmp_path: Path) -> None:
    for start in (0, 4, 8):
        add(tmp_path, range(start, start + 4))
    assert go(tmp_path).messages == 12
    assert delivered(tmp_path) == list(range(12))
    assert delivered(tmp_path, "ann") == list(range(1, 12, 2))
    # Two files a micro-batch.
    assert len(list((tmp_path / "out/_commits").iterdir())) == 2
    assert go(tmp_path).messages == 0
    add(tmp_path, range(12, 15))
    add(tmp_path, range(15, 18))
    again = go(tmp_path)
    assert (again.messages, again.earlier_messages) == (6, 12)
    assert delivered(tmp_path) == list(range(18))


def test_rows_that_only_move_are_not_delivered_again(tmp_path: Path) -> None:
    add(tmp_path, range(4))
    add(tmp_path, range(4, 8))
    go(tmp_path)
    add(tmp_path, range(8, 12))
    table(tmp_path).optimize.compact()
    table(tmp_path).optimize.z_order(["message_id"])
    table(tmp_path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    table(tmp_path).create_checkpoint()
    add(tmp_path, range(12, 14))
    # What version 2 added has been vacuumed: a dead letter says so, all else is delivered.
    report = Recorder()
    go(tmp_path, report=report)
    assert delivered(tmp_path) == [*range(8), 12, 13]
    (letter,) = DeadLetterBox(tmp_path / "out").letters()
    assert (letter.code, letter.state) == ("file.vacuumed", "unread")
    assert "deletedFileRetentionDuration" in letter.reason
    # A new pipeline sees what the table has, each row once.
    go(tmp_path, "output.path=new")
    assert delivered(tmp_path, out="new") == list(range(14))


def test_a_stream_sees_versions_as_they_come(tmp_path: Path) -> None:
    add(tmp_path, range(2))
    stop = threading.Event()

    def on_batch(commit: Any) -> None:
        number = commit.batch_id
        if number < 4:
            add(tmp_path, range(2 * number, 2 * number + 2))
            table(tmp_path).optimize.compact()
        else:
            stop.set()

    guard = threading.Timer(60, stop.set)
    guard.start()
    chosen = settings(tmp_path, "mode.kind=stream", "mode.seconds_between_batches=0.01")
    run(chosen, workers=InProcess(), progress=Recorder(on_batch), stop=stop)
    guard.cancel()
    assert delivered(tmp_path) == list(range(8))


@pytest.mark.parametrize(
    ("start", "first"), [("0", 0), ("2", 8), ("3", 12), ("latest", 12), (None, 0)]
)
def test_where_to_begin(tmp_path: Path, start: str | None, first: int) -> None:
    for number in range(3):
        add(tmp_path, range(4 * number, 4 * number + 4))
    more = [] if start is None else [f"source.starting_version={start}"]
    go(tmp_path, *more)
    add(tmp_path, range(12, 14))
    go(tmp_path, *more)
    assert delivered(tmp_path) == list(range(first, 14))


def test_a_start_that_the_table_does_not_have_is_refused(tmp_path: Path) -> None:
    add(tmp_path, range(2))
    with pytest.raises(ConfigError, match=r"starting_version: .* has versions up to 0"):
        go(tmp_path, "source.starting_version=2")
    (tmp_path / "plain").mkdir()
    for missing in ("plain", "nowhere"):
        with pytest.raises(ConfigError, match=r"source.path"):
            go(tmp_path, f"source.path={missing}")


def change(root: Path, how: str) -> None:
    """A version that changes or removes rows."""
    if how == "delete":
        table(root).delete("message_id = '1'")
    elif how == "delete all":
        table(root).delete()
    elif how == "update":
        table(root).update({"message": "'<m><a/></m>'"}, predicate="message_id = '1'")
    elif how == "overwrite":
        add(root, range(100, 103), options={"mode": "overwrite"})
    else:
        table(root).restore(0)


@pytest.mark.parametrize("how", ["delete", "delete all", "update", "overwrite", "restore"])
def test_a_version_that_changes_rows(tmp_path: Path, how: str) -> None:
    add(tmp_path, range(4))
    add(tmp_path, range(4, 6))
    go(tmp_path)
    change(tmp_path, how)
    with pytest.raises(SourceError) as caught:
        go(tmp_path)
    assert caught.value.code == "delta.changed"
    assert caught.value.params["version"] == 2
    assert "source.changes" in str(caught.value)
    assert delivered(tmp_path) == list(range(6)), "an error delivers nothing"
    add(tmp_path, range(6, 8))
    report = Recorder()
    go(tmp_path, "source.changes=skip", report=report)
    assert delivered(tmp_path) == list(range(8))
    assert any("version 2" in note and "passed over" in note for note in report.notes)
    assert go(tmp_path).messages == 0, "what was decided is asked again"


@pytest.mark.parametrize(
    ("how", "again"),
    [
        ("delete", [0, 2, 3]),
        ("delete all", []),
        ("update", [0, 1, 2, 3]),
        ("overwrite", [100, 101, 102]),
        ("restore", []),
    ],
)
def test_files_of_a_version_that_changes_rows_are_delivered_where_that_is_said(
    tmp_path: Path, how: str, again: list[int]
) -> None:
    add(tmp_path, range(4))
    add(tmp_path, range(4, 6))
    go(tmp_path)
    change(tmp_path, how)
    go(tmp_path, "source.changes=deliver")
    assert Counter(delivered(tmp_path)) == Counter([*range(6), *again])
    # A row that was there before has the id that it had: its receiver knows it.
    ids = read_output(tmp_path / "out", "inboxes", subscriber="bob").column("delivery_id")
    assert len(set(ids.to_pylist())) == len(set(range(6)) | set(again))


def test_a_log_that_no_longer_has_what_was_not_read(tmp_path: Path) -> None:
    add(tmp_path, range(2))
    go(tmp_path)
    for number in range(1, 6):
        add(tmp_path, range(2 * number, 2 * number + 2))
    table(tmp_path).create_checkpoint()
    add(tmp_path, range(12, 14))
    expire(tmp_path, 0, 1, 2)
    with pytest.raises(SourceError) as caught:
        go(tmp_path)
    assert caught.value.code == "delta.expired"
    assert (caught.value.params["version"], caught.value.params["first"]) == (1, 3)
    assert "logRetentionDuration" in str(caught.value)
    go(tmp_path, "source.starting_version=3")
    assert delivered(tmp_path) == [0, 1, *range(6, 14)]
    # A new pipeline needs no history but the table as it is.
    go(tmp_path, "output.path=new")
    assert delivered(tmp_path, out="new") == list(range(14))
    with pytest.raises(SourceError, match="no longer in its log"):
        go(tmp_path, "output.path=third", "source.starting_version=1")


def test_a_log_that_goes_while_a_stream_sleeps_is_noticed(tmp_path: Path) -> None:
    add(tmp_path, range(2))
    listing = DeltaListing(Storage(tmp_path / TABLE), None)
    assert len(listing.look(set())[0]) == 1
    for number in range(1, 4):
        add(tmp_path, range(2 * number, 2 * number + 2))
    table(tmp_path).create_checkpoint()
    expire(tmp_path, 0, 1, 2)
    with pytest.raises(SourceError, match="version 1 of the table"):
        listing.look(set())


def test_files_that_wait_need_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Found, not handed on, and then the log goes: nothing is lost.
    for number in range(4):
        add(tmp_path, range(2 * number, 2 * number + 2))
    calls = 0

    def killed(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Killed
        return original(*arguments)

    original = Journal.append
    monkeypatch.setattr(Journal, "append", killed)
    with pytest.raises(Killed):
        go(tmp_path)
    monkeypatch.undo()
    table(tmp_path).optimize.compact()
    table(tmp_path).create_checkpoint()
    add(tmp_path, range(8, 10))
    expire(tmp_path, 0, 1, 2, 3)
    go(tmp_path)
    assert delivered(tmp_path) == list(range(10))


POINTS: dict[str, tuple[Any, str]] = {
    "state": (DeltaListing, "_write_state"),
    "journal": (Journal, "append"),
    "pin": (BatchLedger, "write_pin"),
    "tasks": (Pipeline, "_answer"),
    "commit": (BatchLedger, "write_commit"),
    "sum": (BatchLedger, "sum_up"),
}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("call", [1, 2])
def test_killed_at_any_step_each_row_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, is_after: bool, call: int
) -> None:
    for number in range(5):
        add(tmp_path, range(2 * number, 2 * number + 2))
    owner, name = POINTS[point]
    original, calls = getattr(owner, name), 0

    def killed(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not is_after:
            raise Killed
        result = original(*arguments)
        if calls == call:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, killed)

    def go_on() -> None:
        for number in range(5, 9):
            go(tmp_path)
            add(tmp_path, range(2 * number, 2 * number + 2))

    with pytest.raises(Killed):
        go_on()
    monkeypatch.undo()
    # The table goes on meanwhile: rows move, files go, more comes.
    count = len(table(tmp_path).to_pyarrow_table())
    table(tmp_path).optimize.compact()
    add(tmp_path, range(count, count + 2))
    go(tmp_path)
    assert delivered(tmp_path) == list(range(count + 2))
    assert read_output(tmp_path / "out", "dead_letters").num_rows == 0


@pytest.mark.parametrize("seed", range(6))
def test_any_history_with_kills_at_any_write_gives_each_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Appends, moves, checkpoints, passed-over changes and kills before or after any write."""
    chance = random.Random(seed)
    original = Storage.write
    is_armed = False

    def write(self: Storage, name: str, content: bytes) -> None:
        if is_armed and chance.random() < 0.1:
            raise Killed
        original(self, name, content)
        if is_armed and chance.random() < 0.05:
            raise Killed

    monkeypatch.setattr(Storage, "write", write)
    end = kills = 0
    want: set[int] = set()
    for _ in range(14):
        for _ in range(chance.randrange(3)):
            step = chance.random()
            if step < 0.6 or not end:
                numbers = range(end, end + chance.randrange(1, 4))
                add(tmp_path, numbers)
                want |= set(numbers)
                end = numbers.stop
            elif step < 0.75:
                table(tmp_path).optimize.compact()
            elif step < 0.9:
                table(tmp_path).create_checkpoint()
            else:
                table(tmp_path).delete(f"message_id = '{chance.randrange(end)}'")
        if not end:
            continue
        is_armed = True
        try:
            # Behind the table or level with it; a first run has to come before any row goes.
            go(tmp_path, "source.starting_version=0", "source.changes=skip")
        except Killed:
            kills += 1
        is_armed = False
    go(tmp_path, "source.starting_version=0", "source.changes=skip")
    assert delivered(tmp_path) == sorted(want)
    assert kills, "nothing was killed: another seed"


def test_partitions_and_columns_are_passed_through(tmp_path: Path) -> None:
    day = pa.array(["2026-11-22"] * 2).cast(pa.date32())
    more = {"day": day, "region": ["a b/%é"] * 2, "at": pa.array([5, 6], pa.timestamp("us", "UTC"))}
    add(tmp_path, range(2), **more, options={"partition_by": ["day", "region", "at"]})
    nothing = {"day": [None], "region": [None], "at": [None]}
    typed = {name: pa.array(value, pa.table(more).schema.field(name).type)
             for name, value in nothing.items()}  # fmt: skip
    add(tmp_path, range(2, 3), **typed)
    first = {name: column.slice(0, 1) for name, column in zip(more, pa.table(more), strict=True)}
    wider = rows(range(3, 4), **first, channel=pa.array([7], pa.int32()))
    go(tmp_path, 'source.columns=["day", "region", "at"]', "output.path=first")
    deltalake.write_deltalake(tmp_path / TABLE, wider, mode="append", schema_mode="merge")
    report = Recorder()
    columns = 'source.columns=["region", "channel", "at", "day"]'
    go(tmp_path, columns, report=report)
    found = read_output(tmp_path / "out", "inboxes", subscriber="bob").sort_by("message_id")
    assert found.schema.field("channel").type == pa.int32()
    assert found.schema.field("day").type == pa.date32()
    assert found.column("region").to_pylist() == ["a b/%é", "a b/%é", None, "a b/%é"]
    assert found.column("channel").to_pylist() == [None, None, None, 7]
    assert [str(each) for each in found.column("day").to_pylist()[:3]] == [
        "2026-11-22",
        "2026-11-22",
        "None",
    ]
    micro = found.column("at").cast(pa.int64()).to_pylist()
    assert micro == [5, 6, None, 5]
    notes = [note for note in report.notes if "no column channel" in note]
    assert sum(note.count(".parquet") for note in notes) == 3
    with pytest.raises(ConfigError, match="has no column nothing"):
        go(tmp_path, 'source.columns=["nothing"]', "output.path=other")


def test_a_file_that_cannot_be_read_is_taken_up_again_when_it_can(tmp_path: Path) -> None:
    add(tmp_path, range(2), region=["a", "b"], options={"partition_by": ["region"]})
    go(tmp_path, 'source.columns=["region"]')
    add(tmp_path, range(2, 4), region=["a", "b"])
    paths = table(tmp_path).file_uris()
    broken = next(Path(p) for p in paths if "region=a" in p and "2" in ids_in(p))
    whole = broken.read_bytes()
    broken.write_bytes(whole[:50])
    columns = 'source.columns=["region"]'
    assert go(tmp_path, columns).messages == 1
    assert go(tmp_path, columns).messages == 0, "another run tries it, and no more"
    broken.unlink()
    go(tmp_path, columns)
    broken.write_bytes(whole)
    box = DeadLetterBox(tmp_path / "out")
    states = [(letter.code, letter.state) for letter in box.letters()]
    assert states == [
        ("file.unreadable", "taken up"),
        ("file.unreadable", "taken up"),
        ("file.vacuumed", "unread"),
    ]
    go(tmp_path, columns)
    assert delivered(tmp_path) == list(range(4))
    found = read_output(tmp_path / "out", "inboxes", subscriber="bob")
    assert sorted(found.column("region").to_pylist()) == ["a", "a", "b", "b"]


def ids_in(path: str) -> list[str]:
    ids: list[str] = pq.ParquetFile(path).read(["message_id"]).column(0).to_pylist()
    return ids


def test_another_table_of_the_same_name_is_refused(tmp_path: Path) -> None:
    add(tmp_path, range(2))
    go(tmp_path)
    shutil.rmtree(tmp_path / TABLE)
    add(tmp_path, range(2, 4))
    with pytest.raises(SourceError, match="not the table that was read before"):
        go(tmp_path)


def log_line(root: Path, version: int, *actions: dict[str, Any]) -> None:
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (root / TABLE / "_delta_log" / f"{version:020}.json").write_text(lines)


def test_a_table_that_asks_for_what_is_not_known_is_refused(tmp_path: Path) -> None:
    add(tmp_path, range(2))
    listing = DeltaListing(Storage(tmp_path / TABLE), None, changes="deliver")
    listing.look(set())
    base = {"path": "p.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1,
            "dataChange": True}  # fmt: skip
    refused: list[tuple[dict[str, Any], str]] = [
        ({"protocol": {"minReaderVersion": 4, "minWriterVersion": 7}}, "version 4"),
        (
            {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
                          "readerFeatures": ["catalogManaged"]}},
            "catalogManaged",
        ),
        ({"metaData": {"id": table(tmp_path).metadata().id,
                       "configuration": {"delta.columnMapping.mode": "name"}}}, "columnMapping"),
        ({"metaData": {"id": "another"}}, "gives it the id another"),
        ({"add": {**base, "deletionVector": {"storageType": "u"}}}, "deleted by a vector"),
        ({"add": {**base, "path": "file:///etc/passwd"}}, "outside of itself"),
        ({"add": {**base, "path": "s3://other/p.parquet"}}, "outside of itself"),
        ({"add": {**base, "path": "../p.parquet"}}, "outside of itself"),
        ({"add": {**base, "path": "%2E%2E/p.parquet"}}, "outside of itself"),
        ({"add": {**base, "path": "a%00b"}}, "outside of itself"),
    ]  # fmt: skip
    for action, reason in refused:
        log_line(tmp_path, 1, action)
        with pytest.raises(SourceError, match=reason):
            listing.look(set())


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_log_is_an_error_that_says_where(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "_delta_log"
    folder.mkdir()
    values: list[Any] = [None, 7, "x", [], {}, True, [["a"]], {"a": None}, -1.5]
    keys = ("path", "partitionValues", "dataChange", "deletionVector")
    action: dict[str, Any] = {"path": "p", "partitionValues": {"a": "b"}, "dataChange": True}
    for _ in range(chance.randrange(1, 3)):
        action[chance.choice(keys)] = chance.choice(values)
    if chance.random() < 0.3:
        action.pop(chance.choice(keys), None)
    kind = chance.choice(["add", "add", "remove", "protocol", "metaData"])
    text = json.dumps({kind: chance.choice([action, action, *values])})
    if chance.random() < 0.3:
        text = text[: chance.randrange(len(text))]
    (folder / f"{0:020}.json").write_text(text)
    error: SourceError | None = None
    found = None
    try:
        found = read_version(Storage(tmp_path), 0)
    except SourceError as caught:
        error = caught
    if error is not None:
        assert str(tmp_path) in str(error)
        assert error.code in ("delta.damaged", "delta.unsupported")
    else:
        assert found is not None
        for file in found.added:
            assert isinstance(file.name, str)
            assert all(isinstance(v, str | None) for v in file.partition.values())


def test_files_at_a_place_are_asked_for_one_by_one_or_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        (tmp_path / f"{number}").write_bytes(b"x" * number)
    place = Storage(f"objects://{tmp_path}")
    few = files_at(place, ["1", "2", "none"])
    monkeypatch.setattr("pathcast.spark.listing.FILES_ASKED_FOR", 2)
    ObjectStore.requests.clear()
    many = files_at(place, ["1", "2", "none"])
    assert [mode for mode, _ in ObjectStore.requests] == ["find"]
    assert few == many
    assert {name: file.size for name, file in few.items()} == {"1": 1, "2": 2}


def test_the_state_holds_what_the_journal_may_not_have(tmp_path: Path) -> None:
    add(tmp_path, range(2))
    checkpoint = Storage(tmp_path / "checkpoint")

    def listing() -> DeltaListing:
        return DeltaListing(Storage(tmp_path / TABLE), checkpoint)

    (first,) = listing().look(set())[0]
    table(tmp_path).optimize.compact()
    assert listing().look(set())[0] == [first]
    # Handed on and unread: it is asked for, and is what it is now.
    again = {first.name: FoundFile(first.name, -1, -1, 0, (("a", "b"),))}
    (found,) = listing().look(set(), again)[0]
    assert (found.size, found.values) == (first.size, (("a", "b"),))
    add(tmp_path, range(2, 4))
    one = listing()
    (second,) = one.look({first.name})[0]
    state = json.loads(checkpoint.read(STATE))
    assert [row[0] for row in state["pending"]] == [second.name]
    assert one.look({first.name, second.name})[0] == []

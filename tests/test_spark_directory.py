"""The directory source and the ledger, without a JVM: what is found, shared and read."""

from __future__ import annotations

import os
import random
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from pathcast.errors import ConfigError
from pathcast.spark.ledger import (
    Commit,
    Ledger,
    Pin,
    committed_batches,
    sole_writer,
    write_atomically,
)

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pyspark.sql.streaming.datasource import ReadMaxFiles

from pathcast.spark.directory import (
    DirectoryOptions,
    DirectoryReader,
    DirectoryStream,
    FileShare,
    list_files,
    read_files,
    share_out,
)
from pathcast.spark.journal import FoundFile, Journal

LIMIT = ReadMaxFiles(2)


def options(root: Path, **more: str) -> DirectoryOptions:
    return DirectoryOptions.from_spark(
        {"path": str(root / "in"), "journal": str(root / "journal"), **more}
    )


def put(root: Path, name: str, content: bytes = b"<a/>", age: int = 0) -> None:
    path = root / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (1_000_000 - age, 1_000_000 - age))


def names(stream: DirectoryStream, start: int, end: int) -> list[str]:
    shares = stream.partitions({"entry": start}, {"entry": end})
    return sorted(name for share in shares for name in share.names)


def test_files_are_found_at_any_depth_oldest_first(tmp_path: Path) -> None:
    put(tmp_path, "b.xml", age=1)
    put(tmp_path, "deep/er/a.xml", age=2)
    put(tmp_path, "c.xml", age=1)
    for name in ("note.txt", ".b.xml", "_c.xml", "_tmp/d.xml", ".git/e.xml"):
        put(tmp_path, name)
    os.mkfifo(tmp_path / "in" / "pipe.xml")
    found = list_files(options(tmp_path), lambda _: False)
    assert [file.name for file in found.files] == ["deep/er/a.xml", "b.xml", "c.xml"]
    assert found.unlisted == {}
    rest = list_files(options(tmp_path), {"b.xml"}.__contains__)
    assert [file.name for file in rest.files] == ["deep/er/a.xml", "c.xml"]


def test_a_missing_directory_is_told_and_an_error_where_nothing_would_look_again(
    tmp_path: Path,
) -> None:
    assert list_files(options(tmp_path), lambda _: False).unlisted == {
        str(tmp_path / "in"): "No such file or directory"
    }
    with pytest.raises(OSError, match="cannot be listed: No such file"):
        DirectoryReader(options(tmp_path)).partitions()


def refuse_to_list(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Takes the right to list folders away, from root as well."""
    scandir = os.scandir

    def refusing(path: Path) -> object:
        if Path(path) in folders:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)


def test_a_folder_that_cannot_be_listed_waits_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a.xml", age=1)
    put(tmp_path, "closed/b.xml")
    stream = DirectoryStream(options(tmp_path))
    closed = tmp_path / "in" / "closed"
    with monkeypatch.context() as patch:
        refuse_to_list(patch, closed)
        first = stream.latestOffset(stream.initialOffset(), LIMIT)
        assert names(stream, 0, 1) == ["a.xml"]
        assert Journal(tmp_path / "journal", None).unlisted() == {str(closed): "Permission denied"}
    second = stream.latestOffset(first, LIMIT)
    assert names(stream, 1, second["entry"]) == ["closed/b.xml"]
    assert Journal(tmp_path / "journal", None).unlisted() == {}
    with monkeypatch.context() as patch:
        refuse_to_list(patch, tmp_path / "in")
        assert stream.latestOffset(second, LIMIT) == second, "the source itself is no exception"
        assert list(Journal(tmp_path / "journal", None).unlisted()) == [str(tmp_path / "in")]


def commit(root: Path, batch_id: int, *unread: str) -> None:
    """The commit of a micro-batch in which these files could not be read."""
    ledger = Ledger(root / "out", root / "checkpoint")
    ledger.write_commit(Commit(batch_id, "s", "v", 0, 0, 0, 0, unread=unread))


def handed_on(stream: DirectoryStream, entry: int) -> list[str]:
    """The files of the step after an entry; none when there is nothing new."""
    if stream.latestOffset({"entry": entry}, LIMIT) == {"entry": entry}:
        return []
    return names(stream, entry, entry + 1)


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda path: path.write_bytes(b"<mended/>"),
    "permissions": lambda path: path.chmod(0o600),
    "another file under its name": lambda path: path.with_name(".new").rename(path),
    "taken away and put back": lambda path: path.rename(path.with_name(".new")).rename(path),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_was_not_read_is_handed_on_again_once_it_has_changed(
    tmp_path: Path, change: str
) -> None:
    put(tmp_path, "bad.xml")
    put(tmp_path, "fine.xml")
    put(tmp_path, ".new")
    more = {"commits": str(tmp_path / "out/_commits")}
    stream = DirectoryStream(options(tmp_path, **more))
    assert handed_on(stream, 0) == ["bad.xml", "fine.xml"]
    commit(tmp_path, 0, "bad.xml")
    assert handed_on(stream, 1) == [], "it has not changed: one dead letter is enough"
    CHANGES[change](tmp_path / "in" / "bad.xml")
    (tmp_path / "in" / "fine.xml").write_bytes(b"<changed/>")
    # The same from memory and, after a restart, from what is on disk.
    again = DirectoryStream(options(tmp_path, **more))
    again.prepareForTriggerAvailableNow()
    assert handed_on(again, 1) == ["bad.xml"]
    assert handed_on(stream, 1) == ["bad.xml"]
    commit(tmp_path, 1)
    for known in (stream, DirectoryStream(options(tmp_path, **more))):
        (tmp_path / "in" / "bad.xml").chmod(0o640)
        assert handed_on(known, 2) == [], "it was read: nothing may come twice"


def test_a_step_that_was_not_committed_says_nothing_about_its_files(tmp_path: Path) -> None:
    # Between a kill and the replay the file may be mended: then the replay reads it.
    put(tmp_path, "bad.xml")
    stream = DirectoryStream(options(tmp_path, commits=str(tmp_path / "out/_commits")))
    assert handed_on(stream, 0) == ["bad.xml"]
    put(tmp_path, "bad.xml", b"<mended/>")
    assert handed_on(DirectoryStream(options(tmp_path)), 1) == []


def test_a_file_that_was_asked_for_is_handed_on_once_changed_or_not(tmp_path: Path) -> None:
    put(tmp_path, "a.xml")
    stream = DirectoryStream(options(tmp_path))
    assert handed_on(stream, 0) == ["a.xml"]
    for _ in range(2):
        asking = Journal(tmp_path / "journal", None)
        asking.refresh()
        asking.request(["a.xml"])
    assert handed_on(stream, 1) == ["a.xml"]
    assert handed_on(stream, 2) == [], "asked for twice before it was taken up: once is enough"
    assert handed_on(DirectoryStream(options(tmp_path)), 2) == []
    assert list((tmp_path / "journal/retake").iterdir()) == []


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_to_files_each_is_processed_once(tmp_path: Path, seed: int) -> None:
    """Files break, are mended, go and come back; the driver is killed between any two steps."""
    chance = random.Random(seed)
    more = {"commits": str(tmp_path / "out/_commits")}
    stream, entry = DirectoryStream(options(tmp_path, **more)), 0
    processed: Counter[str] = Counter()
    broken: set[str] = set()
    (tmp_path / "in").mkdir()
    for number in range(60):
        name = f"{chance.randrange(6)}.xml"
        path = tmp_path / "in" / name
        turn = chance.choice(("break", "mend", "mend", "go", "ask", "kill"))
        if number >= 50:
            # At the end all are mended: nothing may be left behind.
            turn, name = "mend", f"{number % 6}.xml"
            path = tmp_path / "in" / name
        if turn == "break" and not processed[name]:
            put(tmp_path, name, b"bad", age=-number)
            broken.add(name)
        elif turn == "mend":
            put(tmp_path, name, b"good", age=-number)
            broken.discard(name)
        elif turn == "go" and not processed[name]:
            path.unlink(missing_ok=True)
        elif turn == "ask" and name in broken:
            asking = Journal(tmp_path / "journal", tmp_path / "out/_commits")
            asking.refresh()
            if asking.is_unread(name):
                asking.request([name])
        elif turn == "kill":
            stream = DirectoryStream(options(tmp_path, **more))
        offset = stream.latestOffset({"entry": entry}, ReadMaxFiles(3))["entry"]
        if offset == entry or chance.random() < 0.3:
            continue  # nothing new, or killed before the micro-batch: its step is offered again
        rows = [
            row
            for share in stream.partitions({"entry": entry}, {"entry": offset})
            for batch in stream.read(share)
            for row in batch.to_pylist()
        ]
        unread = [r["message_id"] for r in rows if r["message"] in (None, b"bad")]
        processed.update(r["message_id"] for r in rows if r["message"] == b"good")
        commit(tmp_path, entry, *unread)
        entry = offset
    while (offset := stream.latestOffset({"entry": entry}, ReadMaxFiles(3))["entry"]) != entry:
        processed.update(names(stream, entry, offset))
        commit(tmp_path, entry)
        entry = offset
    assert processed == Counter({f"{n}.xml": 1 for n in range(6)})


def test_steps_hold_each_file_once_and_survive_a_restart(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, f"{number}.xml", age=9 - number)
    stream = DirectoryStream(options(tmp_path))
    first = stream.latestOffset(stream.initialOffset(), LIMIT)
    assert (first, names(stream, 0, 1)) == ({"entry": 1}, ["0.xml", "1.xml"])
    # Spark was killed before it logged the offset: the step is offered again, with the same files,
    # though an older file has come in the meantime.
    put(tmp_path, "late.xml", age=99)
    again = DirectoryStream(options(tmp_path))
    assert again.latestOffset(again.initialOffset(), LIMIT) == first
    assert names(again, 0, 1) == ["0.xml", "1.xml"]
    second = again.latestOffset(first, LIMIT)
    third = again.latestOffset(second, LIMIT)
    assert names(again, 1, 3) == ["2.xml", "3.xml", "4.xml", "late.xml"]
    assert again.latestOffset(third, LIMIT) == third, "a file was handed on twice"


def test_available_now_ends_with_what_was_there_at_the_start(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, f"{number}.xml")
    stream = DirectoryStream(options(tmp_path))
    stream.prepareForTriggerAvailableNow()
    put(tmp_path, "later.xml", age=99)
    offset = stream.initialOffset()
    for _ in range(4):
        offset = stream.latestOffset(offset, LIMIT)
    assert names(stream, 0, offset["entry"]) == ["0.xml", "1.xml", "2.xml"]


def test_a_step_is_bounded_by_bytes_but_takes_one_file_at_least(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, f"{number}.xml", b"x" * 100, age=9 - number)
    stream = DirectoryStream(options(tmp_path, bytes_max="150"))
    first = stream.latestOffset({"entry": 0}, ReadMaxFiles(10))
    assert names(stream, 0, first["entry"]) == ["0.xml"]
    small = DirectoryStream(options(tmp_path, bytes_max="5", journal=str(tmp_path / "other")))
    assert small.latestOffset({"entry": 0}, ReadMaxFiles(10)) == {"entry": 1}


@pytest.mark.parametrize("partitions", [1, 2, 3, 50])
def test_shares_hold_every_file_once_and_are_about_equal(partitions: int) -> None:
    found = [FoundFile(f"{n}", (n * 7919) % 50_000, 0) for n in range(40)]
    shares = share_out(found, partitions)
    assert 1 <= len(shares) <= partitions
    assert [name for share in shares for name in share.names] == [file.name for file in found]
    sizes = {file.name: file.size + 16_384 for file in found}
    costs = [sum(sizes[name] for name in share.names) for share in shares]
    if partitions <= 3:
        assert max(costs) < 1.3 * min(costs)


def test_nothing_to_share_gives_no_share() -> None:
    assert share_out([], 4) == []


def test_a_file_that_cannot_be_had_becomes_a_row_with_the_reason(tmp_path: Path) -> None:
    put(tmp_path, "fine.xml", b"<fine/>")
    put(tmp_path, "large.xml", b"x" * 101)
    put(tmp_path, "exact.xml", b"x" * 100)
    (tmp_path / "in" / "folder.xml").mkdir()
    wanted = ["fine.xml", "gone.xml", "large.xml", "folder.xml", "exact.xml"]
    batches = list(read_files(wanted, options(tmp_path, message_bytes_max="100")))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["message_id"] for row in rows] == wanted
    assert [row["code"] for row in rows] == [
        None,
        "message.unreadable",
        "limit.message_bytes",
        "message.unreadable",
        None,
    ]
    assert [row["message"] is None for row in rows] == [False, True, True, True, False]
    assert rows[2]["bytes"] == 101
    assert "No such file" in rows[1]["reason"]


def test_a_file_that_may_not_be_read_becomes_a_row(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    put(tmp_path, "secret.xml")
    (tmp_path / "in" / "secret.xml").chmod(stat.S_IWUSR)
    (batch,) = read_files(["secret.xml"], options(tmp_path))
    assert "Permission denied" in batch.to_pylist()[0]["reason"]


def test_a_name_that_is_no_text_is_read_and_has_an_id(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.xml")
    put(tmp_path, name)
    stream = DirectoryStream(options(tmp_path))
    end = stream.latestOffset({"entry": 0}, LIMIT)
    (share,) = stream.partitions({"entry": 0}, end)
    assert isinstance(share, FileShare)
    (row,) = [row for batch in stream.read(share) for row in batch.to_pylist()]
    assert (row["message_id"], row["message"]) == ("caf\\xe9.xml", b"<a/>")


def test_pins_and_commits_are_found_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", tmp_path / "checkpoint")
    assert (ledger.pin(0), ledger.commit(0)) == (None, None)
    pin = Pin(0, "v1", "d1")
    commit = Commit(0, "stream-1", "v1", 2, 10, 3, 4, {"dtd.refused": 1}, 0.5)
    ledger.write_pin(pin)
    ledger.write_commit(commit)
    again = Ledger(tmp_path / "out", tmp_path / "checkpoint")
    assert (again.pin(0), again.commit(0)) == (pin, commit)


def test_batches_are_listed_by_number_and_half_written_files_are_none(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, tmp_path / "checkpoint")
    for batch_id in (10, 2, 0):
        ledger.write_commit(Commit(batch_id, "s", "v", 0, 0, 0, 0))
    (tmp_path / "_commits" / ".3.json.77.tmp").write_text("{")
    assert committed_batches(tmp_path) == [0, 2, 10]
    assert committed_batches(tmp_path / "nowhere") == []


def test_another_checkpoint_is_refused(tmp_path: Path) -> None:
    # Its batch numbers begin at 0 again: new messages would be taken for replays and lost.
    ledger = Ledger(tmp_path, tmp_path / "checkpoint")
    ledger.write_commit(Commit(0, "stream-1", "v", 0, 0, 0, 0))
    ledger.check_stream("stream-1")
    with pytest.raises(ConfigError, match=r"mode\.checkpoint.*another"):
        ledger.check_stream("stream-2")


def test_an_interrupted_write_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    write_atomically(path, b"old")

    def fail(handle: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


def test_two_pipelines_cannot_write_to_one_output(tmp_path: Path) -> None:
    second = sole_writer(tmp_path / "out")
    with sole_writer(tmp_path / "out"), pytest.raises(ConfigError, match="another pipeline"):
        second.__enter__()
    with sole_writer(tmp_path / "out"):
        pass  # the lock goes with its holder

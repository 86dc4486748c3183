"""The directory source and the ledger, without a JVM: what is found, shared and read."""

from __future__ import annotations

import os
import stat
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
    DirectoryStream,
    FileShare,
    FoundFile,
    list_files,
    read_files,
    share_out,
)

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
    found = list_files(options(tmp_path), frozenset())
    assert [file.name for file in found] == ["deep/er/a.xml", "b.xml", "c.xml"]
    assert [file.name for file in list_files(options(tmp_path), {"b.xml"})][-1] == "c.xml"


def test_a_missing_directory_is_an_error_not_an_empty_source(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_files(options(tmp_path), frozenset())


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

"""Sources, journal and ledger, without Spark: what is found, shared, read and remembered."""

from __future__ import annotations

import json
import os
import random
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pathcast.errors import ConfigError, PathcastError
from pathcast.spark import journal as journals
from pathcast.spark import ledger as ledgers
from pathcast.spark.files import DirectoryReader, FoundFile, Unit
from pathcast.spark.journal import Journal, first_of
from pathcast.spark.ledger import (
    BatchLedger,
    CheckpointSource,
    Commit,
    Compaction,
    History,
    Pin,
    Unread,
    committed_batches,
    live_files,
    remove_strays,
    sole_writer,
    write_compaction,
)
from pathcast.spark.listing import Listing
from pathcast.spark.sources import shares_of
from pathcast.spark.storage import Storage, write_atomically
from pathcast.spark.writing import WrittenFile


def put(root: Path, name: str, content: bytes = b"<a/>", age: int = 0) -> None:
    path = root / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (1_000_000 - age, 1_000_000 - age))


def listed(root: Path, known: set[str] | None = None) -> list[str]:
    found, faults = Listing(root / "in", ["*.xml"]).look(known or set())
    assert not faults
    return [file.name for file in found]


def read(root: Path, *names: str, limit: int = 100) -> tuple[list[Any], dict[str, PathcastError]]:
    unread: dict[str, PathcastError] = {}
    reader = DirectoryReader(Storage(root / "in"), limit)
    batches = reader.read([Unit(name, 1) for name in names], unread)
    return [row for batch, _ in batches for row in batch.to_pylist()], unread


def done_of(journal: Journal) -> set[str]:
    """Names of the journal that need not be looked at."""
    return {name for name in journal._entries if name in journal}


def test_files_are_found_at_any_depth_oldest_first(tmp_path: Path) -> None:
    put(tmp_path, "b.xml", age=1)
    put(tmp_path, "deep/er/a.xml", age=2)
    put(tmp_path, "c.xml", age=1)
    for name in ("note.txt", ".b.xml", "_c.xml", "_tmp/d.xml", ".git/e.xml"):
        put(tmp_path, name)
    os.mkfifo(tmp_path / "in" / "pipe.xml")
    assert listed(tmp_path) == ["deep/er/a.xml", "b.xml", "c.xml"]
    assert listed(tmp_path, {"b.xml"}) == ["deep/er/a.xml", "c.xml"]


def test_a_listing_sees_what_comes_in_folders_it_knows_and_in_new_ones(tmp_path: Path) -> None:
    put(tmp_path, "day/1.xml", age=9)
    listing = Listing(tmp_path / "in", ["*.xml"])
    known = {file.name for file in listing.look(set())[0]}
    put(tmp_path, "day/2.xml", age=8)
    put(tmp_path, "night/3.xml", age=7)
    put(tmp_path, "day/note.txt")
    assert [file.name for file in listing.look(known)[0]] == ["day/2.xml", "night/3.xml"]
    assert listing.passed_over == 1


def test_folders_may_be_as_deep_as_a_path_can_be_long(tmp_path: Path) -> None:
    put(tmp_path, "top.xml", age=9)
    top = str(tmp_path / "in")
    (tmp_path / "in" / "link").symlink_to(top)
    # The library makes and removes such folders by recursion.
    folders = [top + "/d" * depth for depth in range(1, 1_100)]
    for folder in folders:
        os.mkdir(folder)  # noqa: PTH102
    try:
        assert listed(tmp_path) == ["top.xml"]
        with open(folders[-1] + "/deep.xml", "w"):  # noqa: PTH123
            pass
        assert len(listed(tmp_path)) == 2
    finally:
        os.remove(folders[-1] + "/deep.xml")  # noqa: PTH107
        for folder in reversed(folders):
            os.rmdir(folder)  # noqa: PTH106


def test_a_missing_directory_is_an_error_and_a_missing_folder_a_fault(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        listed(tmp_path)
    put(tmp_path, "fine.xml")
    put(tmp_path, "closed/other.xml")
    original = os.scandir

    def refusing(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return original(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", refusing)
        found, faults = Listing(tmp_path / "in", ["*.xml"]).look(set())
    assert [file.name for file in found] == ["fine.xml"]
    assert list(faults) == ["closed"]


def test_entries_hold_each_file_once_and_survive_a_restart(tmp_path: Path) -> None:
    files = [FoundFile(f"{n}.xml", n, n) for n in range(3)]
    journal = Journal(Storage(tmp_path))
    assert [journal.append(files[:2]), journal.append(files[2:])] == [1, 2]
    again = Journal(Storage(tmp_path))
    assert (again.last, again.entry(1), again.entry(2)) == (2, files[:2], files[2:])
    assert [name in again for name in ("0.xml", "2.xml", "3.xml")] == [True, True, False]
    assert [again.last_entry(name) for name in ("0.xml", "2.xml", "3.xml")] == [1, 2, None]


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.mark.parametrize("seed", range(12))
def test_a_journal_is_what_its_entries_say_whatever_was_summed_up(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Killed again and again, before and after any file is written; sums lost; names coming back.
    monkeypatch.setattr(journals, "SUM_ENTRIES", 3)
    monkeypatch.setattr(journals, "SUM_FACTOR", 2)
    chosen = random.Random(seed)
    storage, truth, original = Storage(tmp_path), dict[str, int](), Storage.write

    def write(self: Storage, name: str, content: bytes) -> None:
        if chosen.random() < 0.05:
            raise Killed
        original(self, name, content)
        if chosen.random() < 0.05:
            raise Killed

    monkeypatch.setattr(Storage, "write", write)
    journal, kills = Journal(storage), 0
    while journal.last < 80:
        files = [FoundFile(f"{chosen.randrange(400)}", 1, 1) for _ in range(chosen.randrange(5))]
        before = journal.last
        try:
            journal.append(files)
        except Killed:
            kills += 1
            if chosen.random() < 0.5 and (sums := storage.names(journals.SUMS)):
                storage.delete([f"{journals.SUMS}/{chosen.choice(sums)}"])
            journal = Journal(storage)
        if journal.last > before:
            truth |= {file.name: journal.last for file in files}
        assert done_of(journal) == truth.keys()
    for state in (journal, Journal(storage)):
        assert {name: state.last_entry(name) for name in done_of(state)} == truth
        assert state.last == len(storage.names(journals.JOURNAL))
    assert kills > 2
    assert len(storage.names(journals.SUMS)) > 20


def test_a_start_reads_few_files_however_many_entries_there_are(tmp_path: Path) -> None:
    storage, total = Storage(tmp_path), 5000
    journal = Journal(storage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        for number in range(total):
            journal.append([FoundFile(f"{number}", 1, 1)])
    reads = 0
    original = Storage.read

    def read(self: Storage, name: str) -> bytes:
        nonlocal reads
        reads += 1
        return original(self, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Storage, "read", read)
        again = Journal(storage)
    assert done_of(again) == {f"{number}" for number in range(total)}
    largest = journals.SUM_ENTRIES * journals.SUM_FACTOR
    blocks = total // largest + total % largest // journals.SUM_ENTRIES
    assert reads == blocks + total % journals.SUM_ENTRIES


def test_what_was_asked_for_is_looked_at_until_it_was_handed_on(tmp_path: Path) -> None:
    journal, file = Journal(Storage(tmp_path)), FoundFile("a", 1, 1)
    journal.append([file, FoundFile("b", 1, 1)])
    journal.reopen([FoundFile("b", 1, 1)])
    assert done_of(journal) == {"a"}
    journal.request(["a", "b"])
    assert done_of(journal) == set()
    journal.read_requests()
    assert done_of(journal) == set()
    journal.append([file])
    journal.read_requests()
    assert done_of(journal) == {"a"}
    journal.append([FoundFile("b", 2, 2)])
    journal.read_requests()
    assert done_of(journal) == {"a", "b"}


def test_a_look_asks_for_nothing_that_it_has_seen(tmp_path: Path) -> None:
    for number in range(50):
        put(tmp_path, f"day/{number}.xml")
        put(tmp_path, f"day/{number}.json")
    listing = Listing(tmp_path / "in", ["*.xml"])
    known = {file.name for file in listing.look(set())[0]}
    put(tmp_path, "day/new.xml")
    asked: list[Path] = []
    original = Path.stat

    def stat(self: Path, **options: Any) -> os.stat_result:
        asked.append(self)
        return original(self, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "stat", stat)
        found, _ = listing.look(known)
    assert [file.name for file in found] == ["day/new.xml"]
    assert (listing.matching, listing.passed_over) == (51, 50)
    assert {path.name for path in asked} == {"new.xml"}


def test_a_folder_that_made_way_for_a_file_is_no_fault(tmp_path: Path) -> None:
    put(tmp_path, "day.xml/1.xml")
    listing = Listing(tmp_path / "in", ["*.xml"])
    listing.look(set())
    (tmp_path / "in/day.xml/1.xml").unlink()
    (tmp_path / "in/day.xml").rmdir()
    put(tmp_path, "day.xml")
    found, faults = listing.look(set())
    assert ([file.name for file in found], faults) == (["day.xml"], {})


def test_a_file_that_was_not_read_is_due_when_it_has_changed(tmp_path: Path) -> None:
    journal = Journal(Storage(tmp_path))
    file = FoundFile("a.xml", 1, 1)
    journal.append([file])
    assert "a.xml" in journal
    journal.reopen([file])
    assert "a.xml" not in journal
    assert not journal.is_due(file)
    assert journal.is_due(FoundFile("a.xml", 2, 1))
    assert journal.is_due(FoundFile("a.xml", 1, 1, changed_ns=5)), "its permissions changed"
    assert journal.is_due(FoundFile("new.xml", 1, 1))
    journal.retry_all()
    assert journal.is_due(file)
    journal.append([file])
    assert "a.xml" in journal
    assert not journal.open_files


def test_a_request_is_about_one_entry_and_fulfilled_by_the_next(tmp_path: Path) -> None:
    running, asking = Journal(Storage(tmp_path)), None
    file = FoundFile("a.xml", 1, 1)
    running.append([file])
    asking = Journal(Storage(tmp_path))
    asking.request(["a.xml"])
    assert asking.is_requested("a.xml")
    running.read_requests()
    assert "a.xml" not in running
    assert running.is_due(file)
    running.append([file])
    running.read_requests()
    assert "a.xml" in running
    assert not list((tmp_path / "requests").iterdir()), "what is fulfilled is cleared away"


def test_a_step_is_bounded_by_bytes_but_takes_one_file_at_least() -> None:
    files = [FoundFile(f"{n}", 100, n) for n in range(3)]
    assert first_of(files, 10, 150) == files[:1]
    assert first_of(files, 10, 5) == files[:1]
    assert first_of(files, 2, 0) == files[:2]
    assert first_of([], 2, 0) == []


@pytest.mark.parametrize("tasks", [1, 2, 3, 50])
def test_shares_hold_every_unit_once_and_are_about_equal(tasks: int) -> None:
    units = [Unit(f"{n}", (n * 7919) % 50_000 + 16_384) for n in range(40)]
    shares = shares_of(units, tasks)
    assert 1 <= len(shares) <= tasks
    assert [unit for share in shares for unit in share] == units
    costs = [sum(unit.cost for unit in share) for share in shares]
    if tasks <= 3:
        assert max(costs) < 1.3 * min(costs)
    assert shares_of([], tasks) == []


def test_a_file_that_cannot_be_had_is_unread_and_one_too_large_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "fine.xml", b"<fine/>")
    put(tmp_path, "large.xml", b"x" * 101)
    put(tmp_path, "exact.xml", b"x" * 100)
    (tmp_path / "in" / "folder.xml").mkdir()
    rows, unread = read(tmp_path, "fine.xml", "gone.xml", "large.xml", "folder.xml", "exact.xml")
    assert [row["message_id"] for row in rows] == ["fine.xml", "large.xml", "exact.xml"]
    assert [row["code"] for row in rows] == [None, "limit.message_bytes", None]
    assert [row["message"] is None for row in rows] == [False, True, False]
    assert rows[1]["bytes"] == 101
    assert sorted(unread) == ["folder.xml", "gone.xml"]
    assert "No such file" in str(unread["gone.xml"])


def test_a_file_that_may_not_be_read_is_unread(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    put(tmp_path, "secret.xml")
    (tmp_path / "in" / "secret.xml").chmod(stat.S_IWUSR)
    _, unread = read(tmp_path, "secret.xml")
    assert "Permission denied" in str(unread["secret.xml"])


def test_a_name_that_is_no_text_is_read_and_has_an_id(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.xml")
    put(tmp_path, name)
    journal = Journal(Storage(tmp_path))
    journal.append(Listing(tmp_path / "in", ["*.xml"]).look(set())[0])
    (file,) = Journal(Storage(tmp_path)).entry(1)
    assert file.name == name
    ((row,), _) = read(tmp_path, file.name)
    assert (row["message_id"], row["message"]) == ("caf\\xe9.xml", b"<a/>")


def ledger_of(root: Path) -> BatchLedger:
    return BatchLedger(Storage(root / "out"), Storage(root / "checkpoint"))


def test_pins_and_commits_are_found_again(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    assert (ledger.pin(1), ledger.commit(1)) == (None, None)
    pin = Pin(1, "v1", 0, 1)
    commit = Commit(
        1,
        "checkpoint-1",
        "v1",
        messages=2,
        refused={"dtd.refused": 1},
        files={"inboxes": [WrittenFile("inboxes/a.parquet", 1, 2, "ann", "bob")]},
        # A name that is not UTF-8.
        unread=(
            Unread(
                "\udcff.parquet", 1, 2, 3, (("day", None),), code="file.unreadable", message="cut"
            ),
        ),
    )
    ledger.write_pin(pin)
    ledger.write_commit(commit)
    again = ledger_of(tmp_path)
    assert (again.pin(1), again.commit(1)) == (pin, commit)
    # Earlier versions wrote more of a file.
    path = tmp_path / "out/_commits/1.json"
    row = json.loads(path.read_text())
    row["files"]["inboxes"][0] |= {"bounds": {"batch_id": [1, 1]}, "nulls": None}
    path.write_text(json.dumps(row))
    assert again.commit(1) == commit


def test_batches_are_listed_by_number_and_half_written_files_are_none(tmp_path: Path) -> None:
    ledger, out = ledger_of(tmp_path), Storage(tmp_path / "out")
    for batch_id in (10, 2, 1):
        ledger.write_commit(Commit(batch_id, "s", "v"))
    (tmp_path / "out/_commits" / ".3.json.77.tmp").write_text("{")
    assert committed_batches(out) == [1, 2, 10]
    assert committed_batches(Storage(tmp_path / "nowhere")) == []


def test_files_that_count_are_those_of_commits_or_of_what_stands_for_them(tmp_path: Path) -> None:
    ledger, out = ledger_of(tmp_path), Storage(tmp_path / "out")
    for batch_id in (1, 2, 3):
        name = f"inboxes/{batch_id}.parquet"
        out.write(name, b"rows")
        ledger.write_commit(
            Commit(batch_id, "s", "v", files={"inboxes": [WrittenFile(name, 1, 4)]})
        )
    out.write("inboxes/stray.parquet", b"killed")

    def live() -> list[str]:
        return [file.name for file in live_files(out, "inboxes")]

    assert live() == [f"inboxes/{n}.parquet" for n in (1, 2, 3)]
    write_compaction(out, Compaction(2, {"inboxes": [WrittenFile("inboxes/big.parquet", 2, 8)]}))
    out.write("inboxes/big.parquet", b"rows")
    assert live() == ["inboxes/big.parquet", "inboxes/3.parquet"]
    assert remove_strays(out) == 3
    assert out.names("inboxes") == ["3.parquet", "big.parquet"]


@pytest.mark.parametrize("seed", range(8))
def test_a_history_is_what_its_commits_say_whatever_was_summed_up(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Killed before and after any write, sums lost, files unread and handed on again.
    monkeypatch.setattr(ledgers, "SUM_COMMITS", 3)
    chosen, original = random.Random(seed), Storage.write
    truth: list[Commit] = []

    def write(self: Storage, name: str, content: bytes) -> None:
        if chosen.random() < 0.05:
            raise Killed
        original(self, name, content)
        if chosen.random() < 0.05:
            raise Killed

    monkeypatch.setattr(Storage, "write", write)
    checkpoint = Storage(tmp_path / "checkpoint")
    kills = 0
    while len(truth) < 40:
        journal, ledger = Journal(checkpoint), ledger_of(tmp_path)
        history = ledger.history().still_unread(journal.last_entry)
        assert (history.commits, history.messages) == (
            len(committed_batches(Storage(tmp_path / "out"))),
            sum(commit.messages for commit in truth[: history.commits]),
        )
        last = {e.name: n for n, commit in enumerate(truth, 1) for e in commit.unread}
        want = {name for name, number in last.items() if journal.last_entry(name) == number}
        assert history.unread.keys() == want
        sums = checkpoint.names(ledgers.SUMS)
        if sums and chosen.random() < 0.2:
            checkpoint.delete([f"{ledgers.SUMS}/{chosen.choice(sums)}"])
        try:
            for _ in range(chosen.randrange(1, 12)):
                files = [FoundFile(f"{chosen.randrange(9)}", 1, 1) for _ in range(2)]
                number = history.through + 1
                if journal.last < number:
                    journal.append(files)
                unread = tuple(
                    Unread(
                        file.name, 1, 1, 0, (("day", None),), code="file.unreadable", message="cut"
                    )
                    for file in {file.name: file for file in journal.entry(number)}.values()
                    if chosen.random() < 0.4
                )
                commit = Commit(number, "c", "v", messages=chosen.randrange(9), unread=unread)
                truth[number - 1 :] = [commit]
                ledger.write_commit(commit)
                history = history.with_commit(commit).still_unread(journal.last_entry)
                ledger.sum_up(history)
        except Killed:
            kills += 1
            truth = truth[: len(committed_batches(Storage(tmp_path / "out")))]
    assert kills > 2


def test_a_start_reads_few_commits_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr(ledgers, "SUM_COMMITS", 16)
    ledger, history, total = ledger_of(tmp_path), History(), 250
    source = CheckpointSource("directory", "in")
    checkpoint = ledger.claim_checkpoint(source)
    for number in range(1, total + 1):
        commit = Commit(number, checkpoint, "v", messages=2)
        ledger.write_commit(commit)
        history = history.with_commit(commit)
        ledger.sum_up(history)
    read, original = list[str](), Storage.read

    def counted(self: Storage, name: str) -> bytes:
        read.append(name)
        return original(self, name)

    monkeypatch.setattr(Storage, "read", counted)
    again = ledger_of(tmp_path)
    assert again.claim_checkpoint(source) == checkpoint
    assert again.history() == history
    assert history.messages == 2 * total
    assert len(read) < ledgers.SUM_COMMITS


def test_a_sum_stands_for_no_commit_that_was_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Somebody who takes a commit out has its micro-batch done again; no sum may say it was.
    monkeypatch.setattr(ledgers, "SUM_COMMITS", 2)
    ledger = ledger_of(tmp_path)
    history = History()
    for number in (1, 2, 4):
        commit = Commit(number, "c", "v", messages=1)
        ledger.write_commit(commit)
        history = history.with_commit(commit)
        ledger.sum_up(history)
    assert Storage(tmp_path / "checkpoint").names(ledgers.SUMS) == ["2.json"]
    assert ledger_of(tmp_path).history().messages == 3


@pytest.mark.parametrize("write", range(4))
def test_a_checkpoint_whose_making_was_killed_can_be_claimed(
    tmp_path: Path, write: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, original = 0, Storage.write

    def killed(self: Storage, name: str, content: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == write + 1:
            raise Killed
        original(self, name, content)

    source = CheckpointSource("directory", "in")
    monkeypatch.setattr(Storage, "write", killed)
    with suppress(Killed):
        ledger_of(tmp_path).claim_checkpoint(source)
    monkeypatch.undo()
    found = ledger_of(tmp_path).claim_checkpoint(source)
    assert ledger_of(tmp_path).claim_checkpoint(source) == found


def test_another_checkpoint_is_refused(tmp_path: Path) -> None:
    # Its batch numbers begin anew: new messages would be taken for ones that are done, and lost.
    ledger = ledger_of(tmp_path)
    source = CheckpointSource("directory", "in")
    mine = ledger.claim_checkpoint(source)
    ledger.write_commit(Commit(1, mine, "v"))
    assert ledger.claim_checkpoint(source) == mine
    with pytest.raises(ConfigError, match=r"mode\.checkpoint.*of kind directory, not parquet"):
        ledger.claim_checkpoint(CheckpointSource("parquet", "in"))
    other = BatchLedger(Storage(tmp_path / "out"), Storage(tmp_path / "elsewhere"))
    with pytest.raises(ConfigError, match=r"mode\.checkpoint.*another"):
        other.claim_checkpoint(source)


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
    out = Storage(tmp_path / "out")
    second = sole_writer(out)
    with sole_writer(out), pytest.raises(ConfigError, match="another pipeline"):
        second.__enter__()
    with sole_writer(out):
        pass  # the lock goes with its holder

"""The database of a process: whose it is, who can read it, whether it is whole, copies of it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from pathcast.cli.app import build_app
from pathcast.errors import DiskError, SourceError
from pathcast.transport import database_file
from pathcast.transport import disk as disk_module
from pathcast.transport.database_file import DATABASE, FORMAT, RESTORED, back_up, restore
from pathcast.transport.disk import Disk, InboxCursor

OLD_TABLES = """
create table saved(key text primary key, value blob not null);
create table deliveries(
    subscriber text not null, position integer not null, id text not null, body blob,
    primary key(subscriber, position)
);
create unique index delivery_ids on deliveries(subscriber, id);
create table dead_letters(
    subscriber text not null, position integer not null, id text not null, body blob not null,
    reason text not null, primary key(subscriber, position)
) without rowid;
create table cursors(subscriber text primary key, position integer not null) without rowid;
insert into saved values('members', x'90');
insert into deliveries values('ann', 1, 'd1', x'01');
insert into deliveries values('ann', 2, 'd2', x'02');
pragma user_version = 1;
"""


@pytest.fixture(autouse=True)
def anybody_may_read() -> Iterator[None]:
    """The mask of a careless shell."""
    before = os.umask(0)
    yield
    os.umask(before)


def code_of(directory: Path, **options: object) -> str:
    with pytest.raises(DiskError) as refused, closing(Disk(directory, **options)):  # type: ignore[arg-type]
        pass
    return refused.value.code


def modes(directory: Path) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) for each in directory.iterdir()}


def test_an_empty_directory_is_begun_only_if_that_is_said(tmp_path: Path) -> None:
    assert code_of(tmp_path / "d", is_new=False) == "disk.empty"
    assert not (tmp_path / "d").exists(), "what is refused leaves nothing behind"
    Disk(tmp_path / "d", is_new=True).close()
    assert code_of(tmp_path / "d", is_new=True) == "disk.begun"
    Disk(tmp_path / "d", is_new=False).close()
    (tmp_path / "d" / DATABASE).write_bytes(b"")
    assert code_of(tmp_path / "d", is_new=False) == "disk.empty"


def test_a_directory_is_one_broker_s(tmp_path: Path) -> None:
    Disk(tmp_path / "d", name="bern").close()
    assert code_of(tmp_path / "d", name="basel") == "disk.name"
    Disk(tmp_path / "d", name="bern").close()


def test_nobody_else_can_read_what_is_kept(tmp_path: Path) -> None:
    with closing(Disk(tmp_path / "d")) as disk:
        disk.commit({"k": b"v"}, [("ann", "d1", b"secret")])
        assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
        assert modes(tmp_path / "d") == {0o600}
        assert len(list((tmp_path / "d").iterdir())) == 4, "the log of SQLite and its index too"
        back_up(tmp_path / "d", tmp_path / "copy")
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
    for path in (tmp_path / "d").iterdir():
        path.chmod(0o644)
    (tmp_path / "d").chmod(0o755)
    Disk(tmp_path / "d").close()
    assert modes(tmp_path / "d") == {0o600}, "files of before are mended"
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["directory", "database", "log"])
def test_what_is_taken_away_while_it_is_used_is_noticed(tmp_path: Path, what: str) -> None:
    with closing(Disk(tmp_path / "d")) as disk:
        disk.commit({"k": b"v"})
        if what == "directory":
            shutil.rmtree(tmp_path / "d")
        else:
            (tmp_path / "d" / (DATABASE + ("-wal" if what == "log" else ""))).unlink()
        with pytest.raises(DiskError) as refused:
            disk.commit({"k": b"w"})
    assert refused.value.code == "disk.gone"


def test_a_database_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    Disk(tmp_path / "other").close()
    with closing(Disk(tmp_path / "d")) as disk:
        disk.commit({"k": b"v"})
        (tmp_path / "other" / DATABASE).replace(tmp_path / "d" / DATABASE)
        with pytest.raises(DiskError) as refused:
            disk.commit({"k": b"w"})
    assert refused.value.code == "disk.gone"


def test_a_damaged_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with closing(Disk(tmp_path / "d")) as disk:
        for n in range(200):
            disk.commit({f"k{n}": b"v" * 3000})
    path = tmp_path / "d" / DATABASE
    data = bytearray(path.read_bytes())
    for at in range(8192, len(data), 8192):
        data[at : at + 64] = b"\xff" * 64
    path.write_bytes(data)
    with pytest.raises(DiskError, match=r"restore a backup .* --new") as refused:
        Disk(tmp_path / "d")
    assert refused.value.code == "disk.damaged"
    path.write_bytes(b"no database" * 1000)
    assert code_of(tmp_path / "d") == "disk.damaged"


def test_a_database_is_checked_for_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Disk(tmp_path / "d")) as disk:
        for n in range(2000):
            disk.commit({f"k{n}": b"v" * 100}) if n % 100 == 0 else None
        disk.commit({f"more{n}": b"v" * 100 for n in range(50_000)})
    monkeypatch.setattr(database_file, "CHECK_SECONDS", -1.0)
    Disk(tmp_path / "d").close()


def test_a_database_of_format_1_is_brought_up(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with closing(sqlite3.connect(tmp_path / "d" / DATABASE)) as base:
        base.executescript(OLD_TABLES)
    with closing(Disk(tmp_path / "d", name="bern", is_new=False)) as disk:
        assert disk.saved() == {"members": b"\x90"}
        assert [each.position for each in disk.waiting("ann", 0, 10)] == [1, 2]
        assert disk.life_at("ann", 2) == 0
        disk.check_cursor("ann", InboxCursor(2, 0))
        disk.commit({}, [("ann", "d3", b"3")])
        assert disk.life_at("ann", 3) == disk.life
        with pytest.raises(DiskError, match="belongs to a process that is running"):
            Disk(tmp_path / "d")
    assert code_of(tmp_path / "d", name="basel") == "disk.name"
    with closing(sqlite3.connect(tmp_path / "d" / DATABASE)) as base:
        assert base.execute("pragma user_version").fetchone() == (FORMAT,)
        assert base.execute("pragma auto_vacuum").fetchone() == (2,)


def test_a_file_becomes_smaller_after_a_backlog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_module, "SPARE_PAGES", 16)
    monkeypatch.setattr(disk_module, "SHRINK_COMMITS", 2)
    path = tmp_path / "d" / DATABASE
    with closing(Disk(tmp_path / "d")) as disk:
        disk.commit({f"log/{n}": b"m" * 4000 for n in range(4000)})
    most = path.stat().st_size
    with closing(Disk(tmp_path / "d")) as disk:
        for start in range(0, 4000, 100):
            disk.commit({f"log/{n}": None for n in range(start, start + 100)})
    assert most > 16_000_000
    assert path.stat().st_size < most / 4


def test_a_copy_is_of_one_moment_and_says_that_it_is_one(tmp_path: Path) -> None:
    with closing(Disk(tmp_path / "d", name="bern")) as disk:
        disk.commit({"a": b"1"}, [("ann", "d1", b"one")])
        copied = back_up(tmp_path / "d", tmp_path / "copy")
        disk.commit({"a": b"2"}, [("ann", "d2", b"two")])
        with pytest.raises(DiskError, match="is there already"):
            back_up(tmp_path / "d", tmp_path / "copy")
        with pytest.raises(DiskError) as refused:
            restore(tmp_path / "copy", tmp_path / "d")
        assert refused.value.code == "disk.begun"
        assert RESTORED not in disk.saved()
    assert copied.name == "bern"
    assert restore(tmp_path / "copy", tmp_path / "again").name == "bern"
    with closing(Disk(tmp_path / "again", name="bern", is_new=False)) as disk:
        assert disk.saved()["a"] == b"1"
        assert RESTORED in disk.saved()
        assert [each.body for each in disk.waiting("ann", 0, 10)] == [b"one"]
    (tmp_path / "plain").mkdir()
    shutil.copy(tmp_path / "copy", tmp_path / "plain" / DATABASE)
    with closing(Disk(tmp_path / "plain", name="bern")) as disk:
        assert RESTORED in disk.saved(), "without the command it is a copy as well"


@pytest.mark.parametrize("data", [b"", b"no database" * 1000, None])
def test_what_is_no_copy_is_not_restored(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "copy").write_bytes(data)
    with pytest.raises(DiskError):
        restore(tmp_path / "copy", tmp_path / "d")
    assert not (tmp_path / "d" / DATABASE).exists()


def test_a_position_of_another_inbox_is_refused(tmp_path: Path) -> None:
    with closing(Disk(tmp_path / "d")) as disk:
        disk.commit({}, [("ann", f"d{n}", b"x") for n in range(10)])
        first = disk.life
        back_up(tmp_path / "d", tmp_path / "copy")
    with closing(Disk(tmp_path / "d")) as disk:
        disk.commit({}, [("ann", f"e{n}", b"x") for n in range(10)])
        second = disk.life
        for at, life in [(0, 5), (1, first), (10, first), (11, second), (20, second)]:
            disk.check_cursor("ann", InboxCursor(at, life))
    restore(tmp_path / "copy", tmp_path / "older")
    with closing(Disk(tmp_path / "older")) as disk:
        disk.check_cursor("ann", InboxCursor(10, first))
        for is_longer in (False, True):
            if is_longer:
                disk.commit({}, [("ann", f"f{n}", b"x") for n in range(20)])
            with pytest.raises(SourceError) as refused:
                disk.check_cursor("ann", InboxCursor(20, second))
            assert refused.value.code == ("inbox.other" if is_longer else "inbox.ahead")
        disk.check_cursor("ann", InboxCursor(20, disk.life))
    assert len({first, second, disk.life}) == 3


def test_lives_of_an_inbox_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "INBOX_LIVES_MAX", 3)
    lives = []
    for n in range(6):
        with closing(Disk(tmp_path / "d")) as disk:
            disk.commit({}, [("ann", f"d{n}", b"x")])
            lives.append(disk.life)
    with closing(Disk(tmp_path / "d")) as disk:
        assert [disk.life_at("ann", at) for at in range(1, 7)] == [0, 0, 0, *lives[3:]]


def test_a_broker_without_its_directory_does_not_run(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text('[broker]\nname = "bern"\ndirectory = "bern"\n')
    result = CliRunner().invoke(build_app(), ["broker", "run", str(file)])
    assert result.exit_code != 0
    assert "--new" in result.output
    assert not (tmp_path / "bern").exists()

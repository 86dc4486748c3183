"""Packed archives: each member once, nothing of a damaged one, nothing larger than allowed."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.errors import PathcastError
from pathcast.spark import archives
from pathcast.spark.archives import ArchiveReader
from pathcast.spark.files import FoundFile, Unit
from pathcast.spark.reasons import message_of
from pathcast.spark.sources import units_of
from pathcast.spark.storage import Storage
from test_spark_pipeline import Recorder, go, put_subscriptions, rows_of, settings

Members = dict[str, bytes]


def zip_of(members: Members) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return target.getvalue()


def tar_of(members: Members, mode: Any = "w") -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as opened:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return target.getvalue()


def packed_tar_of(members: Members) -> bytes:
    return tar_of(members, "w:gz")


PACKERS: dict[str, Callable[[Members], bytes]] = {
    "day.zip": zip_of,
    "day.tar": tar_of,
    "day.tar.gz": packed_tar_of,
    "day.tgz": packed_tar_of,
}


def read(
    root: Path, name: str, content: bytes, limit: int = 1000
) -> tuple[dict[str, dict[str, Any]], PathcastError | None]:
    """Rows by id, and why the archive is unread."""
    (root / name).write_bytes(content)
    reader = ArchiveReader(Storage(root), limit)
    unread: dict[str, PathcastError] = {}
    units = units_of(reader, [FoundFile(name, len(content), 1)], unread)
    rows = [row for batch, _ in reader.read(units, unread) for row in batch.to_pylist()]
    found = {row["message_id"]: row for row in rows}
    assert len(found) == len(rows)
    return found, unread.get(name)


@pytest.mark.parametrize("name", PACKERS)
def test_each_member_is_a_message(tmp_path: Path, name: str) -> None:
    members = {"a.xml": b"<a/>", "deep/er/b": b"<b/>" * 9, "empty": b""}
    others = {".hidden": b"x", "_done": b"x", "__MACOSX/a.xml": b"x"}
    found, unread = read(tmp_path, name, PACKERS[name](members | others))
    assert unread is None
    contents = {key: row["message"] for key, row in found.items()}
    assert contents == {f"{name}!{key}": content for key, content in members.items()}
    assert [row["bytes"] for row in found.values()] == [len(each) for each in members.values()]
    found, unread = read(tmp_path, name, PACKERS[name]({}))
    assert (found, unread) == ({}, None)


def test_a_packed_file_is_a_message(tmp_path: Path) -> None:
    found, unread = read(tmp_path, "1.xml.gz", gzip.compress(b"<a/>"))
    assert unread is None
    assert [(key, row["message"]) for key, row in found.items()] == [("1.xml.gz!1.xml", b"<a/>")]
    found, _ = read(tmp_path, "2.xml.gz", gzip.compress(b"<a>" + b" " * 2000))
    assert found["2.xml.gz!2.xml"]["code"] == "limit.message_bytes"


@pytest.mark.parametrize("name", PACKERS)
def test_a_member_that_is_too_large_is_refused_alone_and_never_held(
    tmp_path: Path, name: str
) -> None:
    content = PACKERS[name]({"a": b"<a/>", "bomb": bytes(64_000_000), "exact": b"x" * 1000})
    tracemalloc.start()
    found, unread = read(tmp_path, name, content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert unread is None
    assert [row["code"] for row in found.values()] == [None, "limit.message_bytes", None]
    assert found[f"{name}!bomb"]["bytes"] == 64_000_000
    assert peak < 8_000_000


def test_a_packed_bomb_is_refused_without_being_expanded(tmp_path: Path) -> None:
    content = gzip.compress(bytes(64_000_000))
    tracemalloc.start()
    found, _ = read(tmp_path, "bomb.gz", content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [row["code"] for row in found.values()] == ["limit.message_bytes"]
    assert peak < 8_000_000


def test_attributes_before_a_member_are_bounded(tmp_path: Path) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as opened:
        member = tarfile.TarInfo("a")
        member.pax_headers = {"comment": "x" * 30_000_000}
        opened.addfile(member)
    content = target.getvalue()
    tracemalloc.start()
    found, unread = read(tmp_path, "bomb.tgz", content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not found
    assert "before a member" in str(unread)
    assert peak < 8_000_000


def test_folders_links_and_devices_are_no_messages(tmp_path: Path) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as opened:
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE):
            member = tarfile.TarInfo(f"of-{kind.decode()}")
            member.type, member.linkname = kind, "/etc/passwd"
            opened.addfile(member)
        member = tarfile.TarInfo("./file")
        member.size = 4
        opened.addfile(member, io.BytesIO(b"<a/>"))
    found, unread = read(tmp_path, "a.tar", target.getvalue())
    assert (list(found), unread) == (["a.tar!./file"], None)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        packed.mkdir("folder")
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        packed.writestr(link, "/etc/passwd")
        packed.writestr("folder/file", b"<a/>")
    found, unread = read(tmp_path, "a.zip", target.getvalue())
    assert (list(found), unread) == (["a.zip!folder/file"], None)


def members_at_random(seed: int) -> Members:
    chosen = random.Random(seed)
    return {
        f"{n}.xml": chosen.randbytes(chosen.choice((0, 1, 511, 512, 513, 900)))
        for n in range(chosen.randint(1, 6))
    }


@pytest.mark.parametrize("name", [*PACKERS, "one.gz"])
@pytest.mark.parametrize("seed", range(4))
def test_an_archive_that_is_cut_anywhere_is_unread(tmp_path: Path, name: str, seed: int) -> None:
    # Every length of a small archive: tarfile itself takes many of them for the whole.
    members = members_at_random(seed)
    content = PACKERS[name](members) if name in PACKERS else gzip.compress(members["0.xml"])
    end = len(content)
    if name == "day.tar":
        # The mark at the end is one block of zeros; others fill up.
        end = len(content.rstrip(b"\0")) // 512 * 512 + 512
    lengths = range(end) if end < 700 else sorted({*range(0, end, end // 300), end - 1})
    assert len(lengths) > 10
    for length in lengths:
        _, unread = read(tmp_path, name, content[:length])
        assert unread is not None, f"{length} of {len(content)} bytes"
        assert unread.code == "file.unreadable"
    assert read(tmp_path, name, content)[1] is None


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_archive_is_unread_or_gives_what_was_packed(
    tmp_path: Path, name: str, seed: int
) -> None:
    members = members_at_random(seed)
    content = PACKERS[name](members)
    chosen = random.Random(seed)
    unread_count = 0
    for _ in range(150):
        place = chosen.randrange(len(content))
        damaged = bytearray(content)
        damaged[place] ^= 1 << chosen.randrange(8)
        found, unread = read(tmp_path, name, bytes(damaged))
        unread_count += unread is not None
        if unread is None and name != "day.tar":  # whose members have no check values
            # A size that became too large is a refusal; a name may have become one that is hidden.
            got = Counter(row["message"] for row in found.values() if row["code"] is None)
            assert got <= Counter(members.values())
    assert unread_count > 10


def test_two_members_of_one_name_and_passwords_are_unread(tmp_path: Path) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        packed.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            packed.writestr("a", b"2")
    assert "two members" in str(read(tmp_path, "a.zip", target.getvalue())[1])
    twice = tar_of({"a": b"1"}).rstrip(b"\0")
    twice += bytes(-len(twice) % 512) + tar_of({"a": b"2"})
    assert "two members" in str(read(tmp_path, "a.tar", twice)[1])
    joined = tar_of({"a": b"1"}) + tar_of({"b": b"2"})
    assert "follows its end" in str(read(tmp_path, "b.tar", joined)[1])
    locked = bytearray(zip_of({"a": b"1"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(mark) + offset] |= 1
    assert "password" in str(read(tmp_path, "c.zip", bytes(locked))[1])


def test_a_large_zip_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "ZIP_UNIT_BYTES", 5000)
    members = {f"{n}": b"x" * (n * 37 % 900) for n in range(100)}
    content = zip_of(members)
    (tmp_path / "a.zip").write_bytes(content)
    reader = ArchiveReader(Storage(tmp_path), 1000)
    units = reader.units(FoundFile("a.zip", len(content), 1))
    assert 5 < len(units) <= archives.ZIP_UNITS_MAX
    unread: dict[str, PathcastError] = {}
    rows = [
        row
        for unit in reversed(units)
        for batch, _ in reader.read([unit], unread)
        for row in batch.to_pylist()
    ]
    assert {row["message_id"]: row["message"] for row in rows} == {
        f"a.zip!{name}": content for name, content in members.items()
    }
    assert len(rows) == 100
    # Another one in its place is not taken for the rest of the first.
    (tmp_path / "a.zip").write_bytes(zip_of({"other": b""}))
    assert list(reader.read(units[:1], unread)) == []
    assert "changed" in str(unread["a.zip"])


ARCHIVES = ("source.kind=archive", "source.path=packed")


@pytest.mark.parametrize("name", PACKERS)
def test_a_pipeline_delivers_nothing_of_a_damaged_archive_until_it_is_mended(
    tmp_path: Path, name: str
) -> None:
    put_subscriptions(tmp_path, ("ann", "a"))
    folder = tmp_path / "packed"
    folder.mkdir()
    (folder / "x.xml.gz").write_bytes(gzip.compress(b"<m><a/></m>"))
    (folder / "note.txt").write_text("left alone")
    members = {f"{n}.xml": b"<m><a n='%d'/></m>" % n for n in range(3000)}
    whole = PACKERS[name](members)
    (folder / name).write_bytes(whole[: len(whole) * 2 // 3])
    report = Recorder()
    go(tmp_path, *ARCHIVES, report=report)
    assert {row["message_id"] for row in rows_of(tmp_path, "inboxes")} == {"x.xml.gz!x.xml"}
    (letter,) = rows_of(tmp_path, "dead_letters")
    assert (letter["file"], letter["code"]) == (name, "file.unreadable")
    (folder / name).write_bytes(whole)
    go(tmp_path, *ARCHIVES)
    ids = Counter(row["message_id"] for row in rows_of(tmp_path, "inboxes"))
    assert ids == Counter(["x.xml.gz!x.xml", *(f"{name}!{key}" for key in members)])
    assert go(tmp_path, *ARCHIVES).messages == 0


def test_a_message_of_an_archive_is_found_again(tmp_path: Path) -> None:
    put_subscriptions(tmp_path, ("ann", "a"))
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/day.zip").write_bytes(zip_of({"1.xml": b"<m/>", "2.xml": b"<n/>"}))
    chosen = settings(tmp_path, *ARCHIVES)
    assert message_of(chosen, "day.zip!2.xml") == b"<n/>"
    assert message_of(chosen, "day.zip!3.xml") is None


class Counted(io.BytesIO):
    """A file that stays open, and counts the bytes that it gives."""

    given = 0

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        self.given += len(content)
        return content

    def close(self) -> None: ...


def test_reading_costs_by_the_member_not_by_the_square() -> None:
    # GzipFile begins anew when it is asked to go back: a step back a member would show here.
    chance = random.Random(1)
    members = {f"{n}.xml": chance.randbytes(800) for n in range(1000)}
    file = Counted(packed_tar_of(members))
    reader = ArchiveReader(SimpleNamespace(open=lambda name: file), 1000)  # type: ignore[arg-type]
    assert sum(len(b) for b, _ in reader.read([Unit("a.tgz", 1)], {})) == len(members)
    assert file.given == file.seek(0, io.SEEK_END) > 800_000

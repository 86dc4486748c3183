"""The file of a registry's snapshot: whatever is wrong with it is an error that says so."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pytest

from pathcast import Query, Registry, Snapshot, Subscription
from pathcast.errors import SnapshotFormatError
from pathcast.registry.identity import SetVersion

SUBSCRIPTIONS = [
    Subscription("a", "ann", "//a[@x = 'é']"),
    Subscription("b", "bob", "for $b in //p:b return <c>{$b}</c>", "message"),
    Subscription("c", "ann", "count(//a) > 2", "ids", {"q": 'urn:"q"\\\n\u0001é'}),
    Subscription("d", "ann", "//list", steps=("drop //p:x", "rename //ol list")),
    Subscription("e", "ann", "//list", steps=("drop  //p:x", "rename //ol list")),
    Subscription("f", "ann", "//a[. = 1.5]", language="xquery"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    registry = Registry(namespaces={"p": "urn:p"})
    assert not registry.add([*SUBSCRIPTIONS, Query("q", "//ol[li]")]).errors
    file = tmp_path / "s.snapshot"
    registry.freeze().save(file)
    return file


def code_of(path: Path) -> str:
    with pytest.raises(SnapshotFormatError) as caught:
        Snapshot.open(path)
    assert str(path) in str(caught.value), "the error does not say which file"
    return caught.value.code


def test_everything_comes_back(path: Path) -> None:
    opened = Snapshot.open(path)
    rows = [
        row._replace(namespaces={"p": "urn:p", **(row.namespaces or {})}) for row in SUBSCRIPTIONS
    ]
    rows.append(Subscription("q", "", "//ol[li]", "ids", {"p": "urn:p"}))
    assert list(opened.subscriptions) == rows
    version = SetVersion(opened.limits)
    for row in rows:
        version.add(row)
    # What the kernel adds up is what Python does.
    assert (opened.version, opened.sum) == (version.text, version.total)
    registry = Registry.of(opened)
    assert registry.version == version.text
    assert list(registry.find()) != []
    registry.remove([row.id for row in rows])
    registry.add(rows[:-1])
    registry.add(Query("q", "//ol[li]", {"p": "urn:p"}))
    assert registry.version == version.text == registry.freeze().version


def test_a_file_that_is_cut(path: Path) -> None:
    data = path.read_bytes()
    for length in (0, 1, 7, 8, 63, 64, 65, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        assert code_of(path) in ("snapshot.foreign", "snapshot.damaged")


def test_a_file_with_bytes_after_its_end(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")
    assert code_of(path) == "snapshot.damaged"


def test_every_changed_bit_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    rng = random.Random(7)
    places = [*range(64), *(rng.randrange(len(data)) for _ in range(300))]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        assert code_of(path).startswith("snapshot.")


@pytest.mark.parametrize("format_", [1, 99])
def test_a_file_of_another_format(path: Path, format_: int) -> None:
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 8, format_)
    struct.pack_into("<I", data, 36, zlib.crc32(data[:36]))
    path.write_bytes(data)
    assert code_of(path) == "snapshot.version"


def test_other_files_are_foreign(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"<a/>" * 100)
    assert code_of(path) == "snapshot.foreign"
    with pytest.raises(OSError, match="No such file"):
        Snapshot.open(tmp_path / "nothing")


def test_a_file_is_replaced_as_a_whole(path: Path) -> None:
    before = Snapshot.open(path)
    version, first = before.version, list(before.subscriptions)
    Registry().freeze().save(path)
    assert len(Snapshot.open(path)) == 0
    # Whoever has the old one open keeps it.
    assert (before.version, list(before.subscriptions)) == (version, first)
    assert [file.name for file in path.parent.iterdir()] == [path.name], "something is left over"

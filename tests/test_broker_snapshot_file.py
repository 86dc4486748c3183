"""The file of a registry's snapshot: whatever is wrong with it is an error that says so."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from oracles.engines import made_by
from pathcast import Registry, Subscription, SubscriptionSnapshot
from pathcast.engine import Snapshot
from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry.snapshot_file import SnapshotContent, table_of, write_snapshot


@pytest.fixture
def path(tmp_path: Path) -> Path:
    registry = made_by("reference", Registry, namespaces={"p": "urn:p"})
    registry.add(
        [
            Subscription("a", "ann", "//a[@x = 'é']"),
            Subscription("b", "bob", "for $b in //p:b return <c>{$b}</c>", "message"),
            Subscription("c", "ann", "count(//a) > 2", "ids", {"q": "urn:q"}),
            Subscription("d", "ann", "//list", steps=("drop //p:x", "rename //ol list")),
        ]
    )
    file = tmp_path / "s.snapshot"
    registry.freeze().save(file)
    return file


def open_(path: Path) -> SubscriptionSnapshot:
    return made_by("reference", SubscriptionSnapshot.open, path)


def code_of(path: Path) -> str:
    with pytest.raises(SnapshotFormatError) as caught:
        open_(path)
    assert str(path) in str(caught.value), "the error does not say which file"
    return caught.value.code


def test_everything_comes_back(path: Path) -> None:
    opened = open_(path)
    assert list(opened.subscriptions) == [
        Subscription("a", "ann", "//a[@x = 'é']", "fragment", {"p": "urn:p"}),
        Subscription("b", "bob", "for $b in //p:b return <c>{$b}</c>", "message", {"p": "urn:p"}),
        Subscription("c", "ann", "count(//a) > 2", "ids", {"p": "urn:p", "q": "urn:q"}),
        Subscription(
            "d",
            "ann",
            "//list",
            "fragment",
            {"p": "urn:p"},
            ("drop //p:x", "rename //ol list"),
        ),
    ]


OLD_FILES = (
    (2, 3, "dbd588ec4b5b0ff6a54c763a5bcf922d"),
    (3, 4, "e1d61c0697e89379967a3014add93aa8"),
)


@pytest.mark.parametrize(("format_", "count", "version"), OLD_FILES)
def test_a_file_of_an_older_format(format_: int, count: int, version: str) -> None:
    opened = open_(Path(__file__).parent / "data" / f"format-{format_}.subscriptions")
    subscriptions = [
        Subscription("a", "ann", "//a[@x = 'é']", "fragment", {"p": "urn:p"}),
        Subscription("b", "bob", "for $b in //p:b return <c>{$b}</c>", "message", {"p": "urn:p"}),
        Subscription("c", "ann", "count(//a) > 2", "ids", {"p": "urn:p", "q": "urn:q"}),
        Subscription(
            "d", "ann", "//list", "fragment", {"p": "urn:p"}, ("drop //p:x", "rename //ol list")
        ),
    ]
    assert list(opened.subscriptions) == subscriptions[:count]
    # Ids of deliveries are made of the versions: they must not change with the format.
    assert Registry.of(opened).version == opened.version == version


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
    # One of the first format does not say which limits were agreed: it must not be guessed at.
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 8, format_)
    struct.pack_into("<I", data, 44, zlib.crc32(data[:44]))
    path.write_bytes(data)
    assert code_of(path) == "snapshot.version"


def test_other_files_are_foreign(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"<a/>" * 100)
    assert code_of(path) == "snapshot.foreign"
    index = made_by("reference", Registry)
    index.add([Query("q", "//a")])
    index.freeze_queries().save(path)
    assert code_of(path) == "snapshot.foreign", "a snapshot of queries is none of subscriptions"
    made_by("reference", Registry).freeze().save(path)
    with pytest.raises(SnapshotFormatError):
        made_by("reference", Snapshot.open, path)
    with pytest.raises(OSError, match="No such file"):
        open_(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("deliver", ["fragment", "letter"]),
        ("namespaces", ["", "[1]"]),
        ("namespaces", ["", '{"p": 1}']),
        ("id", ["same", "same"]),
        ("steps", [["drop //a", None], []]),
        ("steps", [None, []]),
    ],
)
def test_rows_that_no_broker_can_have_made(
    tmp_path: Path, column: str, value: list[object]
) -> None:
    # A checksum says that a file is as it was written, not that it was written by Pathcast.
    table = table_of([Subscription("a", "x", "//a"), Subscription("b", "x", "//b")])
    place = table.schema.get_field_index(column)
    array = pa.array(value)
    field = table.schema.field(column)
    if pa.types.is_dictionary(field.type):
        array = array.cast(field.type.value_type).dictionary_encode()
    table = table.set_column(place, field, array.cast(field.type))
    write_snapshot(tmp_path / "s", SnapshotContent(table, "0" * 32, Limits()))
    assert code_of(tmp_path / "s") == "snapshot.damaged"


def test_a_subscription_that_is_refused_today(tmp_path: Path) -> None:
    table = table_of([Subscription("a", "x", "//a[")])
    write_snapshot(tmp_path / "s", SnapshotContent(table, "0" * 32, Limits()))
    opened = open_(tmp_path / "s")
    with pytest.raises(SnapshotFormatError, match="subscription a is refused"):
        Registry.of(opened)


def test_a_file_is_replaced_as_a_whole(path: Path) -> None:
    before = open_(path)
    version, first = before.version, list(before.subscriptions)
    made_by("reference", Registry).freeze().save(path)
    assert len(open_(path)) == 0
    # Whoever has the old one open keeps it.
    assert (before.version, list(before.subscriptions)) == (version, first)
    assert [file.name for file in path.parent.iterdir()] == [path.name], "something is left over"

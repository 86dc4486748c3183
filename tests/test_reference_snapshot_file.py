"""A snapshot file is read right or not at all.

If one of these fails, a damaged file can give wrong answers without anybody noticing.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from oracles import ENGINES, missing_reason
from oracles.engines import EngineName, made_by
from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry, Snapshot
from pathcast_papers.filtering.snapshot_file import (
    Section,
    SnapshotContent,
    read_snapshot,
    version_of,
    write_snapshot,
)

LIMITS = Limits(depth_max=77)
QUERIES = (
    Query("q1", "/a//b[@c='ü']"),
    Query("zwei", "/p:a[ . > 5 ]", {"p": "urn:p"}),
    Query("q3", "//*"),
    Query("vier", "/p:a/q:b", {"q": "urn:q", "p": "urn:p"}),
)

engines = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                missing_reason(name) is not None, reason=str(missing_reason(name))
            ),
        )
        for name in ENGINES
        if name != "nfa"
    ],
)


def written(folder: Path) -> Path:
    path = folder / "queries.snapshot"
    write_snapshot(path, SnapshotContent(QUERIES, LIMITS))
    return path


def test_round_trip(tmp_path: Path) -> None:
    content = read_snapshot(written(tmp_path))
    assert content.queries == QUERIES
    assert content.limits == LIMITS
    assert content.version == version_of(QUERIES, LIMITS)
    assert len(content.version) == 32


def test_no_queries(tmp_path: Path) -> None:
    path = tmp_path / "empty.snapshot"
    write_snapshot(path, SnapshotContent((), LIMITS))
    assert read_snapshot(path).queries == ()
    assert list(made_by("reference", Snapshot.open, path).query_ids) == []


def test_the_version_is_that_of_the_content() -> None:
    assert version_of(QUERIES, LIMITS) == version_of(list(QUERIES), LIMITS)
    assert version_of(QUERIES, LIMITS) != version_of(QUERIES[:3], LIMITS)
    assert version_of(QUERIES, LIMITS) != version_of((QUERIES[1], QUERIES[0], *QUERIES[2:]), LIMITS)
    assert version_of(QUERIES, LIMITS) != version_of(QUERIES, Limits())
    other_namespace = Query("zwei", "/p:a[ . > 5 ]", {"p": "urn:x"})
    assert version_of(QUERIES, LIMITS) != version_of(
        (QUERIES[0], other_namespace, *QUERIES[2:]), LIMITS
    )


def test_layout(tmp_path: Path) -> None:
    """The bytes are as the format says, for the other reader's sake."""
    data = written(tmp_path).read_bytes()
    magic, format_, kind, count, zero, length, body_sum, head_sum = struct.unpack_from(
        "<8sIIIIQII", data
    )
    assert (magic, format_, kind, count, zero) == (b"PATHCAST", 6, 1, 8, 0)
    assert length == len(data)
    assert body_sum == zlib.crc32(data[64:])
    assert head_sum == zlib.crc32(data[:36])
    assert not any(data[40:64])
    entries = [struct.unpack_from("<IIQQ", data, 64 + 24 * number) for number in range(count)]
    assert [tag for tag, *_ in entries] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(offset % 64 == 0 for _, _, offset, _ in entries)
    sections = {tag: data[offset : offset + size] for tag, _, offset, size in entries}
    assert sections[2] == b"q1zweiq3vier"
    assert struct.unpack("<5Q", sections[1]) == (0, 2, 6, 8, 12)
    assert struct.unpack("<4I", sections[5]) == (0, 1, 0, 2)
    assert json.loads(sections[8])["depth_max"] == 77
    assert json.loads(sections[6]) == [{}, {"p": "urn:p"}, {"p": "urn:p", "q": "urn:q"}]


@engines
def test_every_truncation_is_detected(engine: EngineName, tmp_path: Path) -> None:
    path = saved_by(engine, tmp_path)
    size = path.stat().st_size
    for length in range(size - 1, -1, -1):
        os.truncate(path, length)
        with pytest.raises(SnapshotFormatError):
            made_by(engine, Snapshot.open, path)


@engines
def test_every_changed_bit_is_detected(engine: EngineName, tmp_path: Path) -> None:
    path = saved_by(engine, tmp_path)
    data = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for position, byte in enumerate(data):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), position)
                with pytest.raises(SnapshotFormatError):
                    made_by(engine, Snapshot.open, path)
            os.pwrite(file.fileno(), bytes([byte]), position)
    assert len(made_by(engine, Snapshot.open, path)) == len(QUERIES)


@engines
def test_bytes_after_the_end_are_detected(engine: EngineName, tmp_path: Path) -> None:
    path = saved_by(engine, tmp_path)
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(SnapshotFormatError):
        made_by(engine, Snapshot.open, path)


@engines
@pytest.mark.parametrize(
    "data", [b"", b"P", b"PATHCAST", b"<?xml version='1.0'?><a/>", b"\0" * 4096, b"PATHCASTX" * 99]
)
def test_foreign_files(engine: EngineName, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(data)
    with pytest.raises(SnapshotFormatError):
        made_by(engine, Snapshot.open, path)


@engines
@pytest.mark.parametrize("found", [2, 7], ids=["earlier", "later"])
def test_another_format_is_named(engine: EngineName, found: int, tmp_path: Path) -> None:
    path = saved_by(engine, tmp_path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 8, found)
    struct.pack_into("<I", data, 36, zlib.crc32(data[:36]))
    path.write_bytes(data)
    with pytest.raises(SnapshotFormatError) as caught:
        made_by(engine, Snapshot.open, path)
    assert caught.value.code == "snapshot.version"
    assert (caught.value.params["found"], caught.value.params["expected"]) == (found, 6)


def saved_by(engine: EngineName, folder: Path) -> Path:
    path = folder / f"{engine}.snapshot"
    index = made_by(engine, Registry)
    assert index.add(QUERIES).accepted == len(QUERIES)
    index.freeze().save(path)
    return path


GOOD: dict[int, bytes] = {
    Section.ID_OFFSETS: struct.pack("<3Q", 0, 1, 2),
    Section.IDS: b"ab",
    Section.TEXT_OFFSETS: struct.pack("<3Q", 0, 2, 4),
    Section.TEXTS: b"/a/b",
    Section.NAMESPACE_NUMBERS: struct.pack("<2I", 0, 0),
    Section.NAMESPACES: b"[{}]",
    Section.METADATA: b'{"version":"00"}',
    Section.LIMITS: LIMITS.to_json().encode(),
}


def forged(sections: Mapping[int, bytes], kind: int = 1) -> bytes:
    """A file with right checksums around any sections."""
    directory, body = b"", b""
    start = 64 + 24 * len(sections)
    for tag, content in sections.items():
        gap = -(start + len(body)) % 64
        body += bytes(gap)
        directory += struct.pack("<IIQQ", tag, 0, start + len(body), len(content))
        body += content
    rest = directory + body
    head = struct.pack(
        "<8sIIIIQI", b"PATHCAST", 6, kind, len(sections), 0, 64 + len(rest), zlib.crc32(rest)
    )
    return (head + struct.pack("<I", zlib.crc32(head))).ljust(64, b"\0") + rest


def test_forged_file_is_otherwise_good(tmp_path: Path) -> None:
    path = tmp_path / "good"
    path.write_bytes(forged(GOOD))
    snapshot = made_by("reference", Snapshot.open, path)
    assert [snapshot.query(query_id).text for query_id in snapshot.query_ids] == ["/a", "/b"]
    control = made_by("reference", Registry, limits=LIMITS)
    control.add([Query("a", "/a"), Query("b", "/b")])
    assert snapshot.version == control.version


def test_automaton_of_the_kernel_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "kind-0"
    path.write_bytes(forged({**GOOD, 100: b"states"}, kind=0))
    assert len(made_by("reference", Snapshot.open, path)) == 2


@pytest.mark.parametrize(
    "change",
    [
        {Section.IDS: b"abc"},
        {Section.ID_OFFSETS: b""},
        {Section.ID_OFFSETS: struct.pack("<3Q", 1, 1, 2)},
        {Section.ID_OFFSETS: struct.pack("<4Q", 0, 2, 1, 2)},
        {Section.ID_OFFSETS: struct.pack("<2Q", 0, 2)},
        {Section.ID_OFFSETS: struct.pack("<3Q", 0, 2**63, 2)},
        {Section.ID_OFFSETS: b"1234567"},
        {Section.IDS: b"aa"},
        {Section.IDS: b"a\xff"},
        {Section.TEXTS: b"/a[["},
        {Section.NAMESPACE_NUMBERS: struct.pack("<2I", 0, 1)},
        {Section.NAMESPACE_NUMBERS: struct.pack("<I", 0)},
        {Section.NAMESPACES: b"{}"},
        {Section.NAMESPACES: b"[1]"},
        {Section.NAMESPACES: b'[{"a":1}]'},
        {Section.NAMESPACES: b"[{}"},
        {Section.NAMESPACES: b"\xff"},
        {Section.METADATA: b"[]"},
        {Section.METADATA: b"[" * 100_000},
        {Section.LIMITS: b"[]"},
        {Section.LIMITS: b'{"depth_max":0}'},
        {Section.LIMITS: b'{"width_max":1}'},
        {Section.LIMITS: b"\xff"},
    ],
    ids=[
        *("ids too long", "no offsets", "offsets begin late", "offsets descend", "fewer offsets"),
        *("offset too large", "offsets end inside a number", "id twice", "id not UTF-8"),
        *("query unreadable", "namespace number too large", "fewer namespace numbers"),
        *("namespaces no list", "namespaces no objects", "namespaces no strings"),
        *("namespaces cut", "namespaces not UTF-8", "metadata no object", "metadata too deep"),
        *("limits no object", "limit out of range", "limit unknown", "limits not UTF-8"),
    ],
)
def test_right_checksums_around_wrong_content(change: dict[int, bytes], tmp_path: Path) -> None:
    path = tmp_path / "forged"
    path.write_bytes(forged({**GOOD, **change}))
    with pytest.raises(SnapshotFormatError):
        made_by("reference", Snapshot.open, path)


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_missing_sections(missing: int, tmp_path: Path) -> None:
    path = tmp_path / "forged"
    path.write_bytes(forged({tag: data for tag, data in GOOD.items() if tag != missing}))
    with pytest.raises(SnapshotFormatError):
        made_by("reference", Snapshot.open, path)


def test_unknown_kind(tmp_path: Path) -> None:
    path = tmp_path / "forged"
    path.write_bytes(forged(GOOD, kind=7))
    with pytest.raises(SnapshotFormatError):
        made_by("reference", Snapshot.open, path)


def test_saving_replaces_whole_files_only(tmp_path: Path) -> None:
    """A save that fails leaves the old file and nothing beside it."""
    path = written(tmp_path)
    before = path.read_bytes()
    surrogate = Query("\ud800", "/a")
    with pytest.raises(UnicodeEncodeError):
        write_snapshot(path, SnapshotContent((surrogate,), LIMITS))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_missing_file_is_not_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        made_by("reference", Snapshot.open, tmp_path / "none")

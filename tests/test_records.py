"""Files of records: cut as lxml finds them, whatever the ranges; faults where they are."""

from __future__ import annotations

import gzip
import io
import os
import random
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

pytest.importorskip("pathcast_kernel", reason="files of records are cut by the kernel")

from pathcast.errors import ConfigError, QuerySyntaxError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.records import Splitter, record_path, split_records
from pathcast.registry import Registry
from record_files import canonical, expected, faults_of, files, messages_of, rows_of

in_folder = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@given(files)
@settings(max_examples=100, deadline=None)
def test_records_are_those_that_lxml_finds(content: bytes) -> None:
    check_by_lxml(content)


def check_by_lxml(content: bytes) -> None:
    rows = rows_of(content)
    assert faults_of(rows) == []
    assert [canonical(message) for message in messages_of(rows)] == list(expected(content))
    for row in rows:
        start, end = row["offset"], row["offset"] + row["bytes"]
        assert content[start:end] in row["message"]


@given(content=files)
@in_folder
def test_every_range_of_one_byte_gives_the_same(tmp_path: Path, content: bytes) -> None:
    check_ranges(tmp_path, content)


def check_ranges(folder: Path, content: bytes) -> None:
    whole = rows_of(content)
    path = folder / "file.xml"
    path.write_bytes(content)
    assert rows_of(path, ranges=len(content)) == whole
    for ranges in (2, 3, 7):
        assert rows_of(path, ranges=ranges) == whole


_DAMAGE = b"<>/'\"!-[]?& \x00\xffr=" + b"</r><r></m><!--]]>"
_BITS = [_DAMAGE[n : n + 4] for n in range(len(_DAMAGE))]


@given(content=files, data=st.data())
@in_folder
def test_damaged_files_give_the_same_in_any_ranges(
    tmp_path: Path, content: bytes, data: st.DataObject
) -> None:
    """Cut, doubled, overwritten: no crash, and what is told does not depend on ranges."""
    check_damaged(tmp_path, content, data)


def check_damaged(folder: Path, content: bytes, data: st.DataObject) -> None:
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(damaged) - 1)))
        length = data.draw(st.integers(0, 6))
        damaged[at : at + length] = data.draw(st.sampled_from(_BITS))
    content = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    limits = Limits(message_bytes_max=data.draw(st.sampled_from((60, 120, 1 << 20))))
    context = data.draw(st.sampled_from((20, 40, 1 << 16)))
    options: Any = {"limits": limits, "context_bytes_max": context}
    whole = rows_of(content, **options)
    path = folder / "file.xml"
    path.write_bytes(content)
    for ranges in (2, 5, max(2, len(content))):
        assert rows_of(path, ranges=ranges, **options) == whole
    offsets = [row["offset"] for row in whole]
    assert len(set(offsets)) == len(offsets), "two rows of one offset would have one id"


@given(files, st.data())
@settings(max_examples=100, deadline=None)
def test_a_file_that_is_cut_short_has_its_records_before_that(
    content: bytes, data: st.DataObject
) -> None:
    whole = rows_of(content)
    end = data.draw(st.integers(0, len(content.rstrip()) - 1))
    rows = rows_of(content[:end])
    if content[:end].rstrip().endswith(b"</l>") or not rows_lost(content, end):
        return
    assert faults_of(rows)[-1][1] in ("xml.end", "limit.message_bytes") or rows[-1]["code"]
    before = [row for row in whole if row["offset"] + row["bytes"] <= end]
    assert messages_of(rows) == messages_of(before)


def rows_lost(content: bytes, end: int) -> bool:
    """Whether the root element is still open at a byte."""
    try:
        etree.fromstring(content[:end])
    except etree.XMLSyntaxError:
        return True
    return False


def test_a_large_file_is_the_same_by_iterparse_and_in_any_ranges(tmp_path: Path) -> None:
    rng = random.Random(7)
    parts = ["<l xmlns:n='urn:n'>"]
    for day in range(40):
        parts.append(f"<m day='{day}'>")
        for _ in range(rng.randrange(300)):
            inner = rng.choice(("x", "<r/>", "<![CDATA[<r>]]>", "<!-- </r> -->", "é" * 40))
            parts.append(f"<r a='{rng.random()}>'>{inner}</r>{rng.choice(('', chr(10)))}")
        parts.append("</m>")
    path = tmp_path / "file.xml"
    path.write_bytes("".join([*parts, "</l>"]).encode())
    found: list[tuple[str | None, bytes]] = []
    for _, record in etree.iterparse(path, tag="r"):
        if record.getparent().tag == "m":
            found.append((record.getparent().get("day"), etree.tostring(record, with_tail=False)))
    rows = rows_of(path)
    assert len(rows) == len(found) > 4000
    for row, (day_found, record) in zip(rows, found, strict=True):
        tree = etree.fromstring(row["message"])
        assert tree[0].get("day") == day_found
        assert etree.tostring(tree[0][0]) == record
    for ranges, threads in ((2, 1), (9, 2), (64, 3)):
        assert rows_of(path, ranges=ranges, threads=threads) == rows


def test_a_query_on_the_file_is_a_query_on_its_records() -> None:
    file = b"""<o:list xmlns:o='urn:o' day='1' xml:lang='de'><o:m k='a'><r v='1'><x/></r>
        <r v='2'/></o:m><o:m k='b'><r v='1'/></o:m></o:list>"""
    rows = rows_of(file, "/o:list/o:m/r", namespaces={"o": "urn:o"})
    index = Registry(namespaces={"o": "urn:o"})
    queries = [
        "/o:list[@day=1]/o:m[@k='a']/r",
        "/o:list/o:m/r[@v=1]",
        "//r[ancestor::*[@xml:lang='de']]/x",
        "/o:list/o:m[@k='b']/r[@v=2]",
    ]
    index.add([Query(str(number), text) for number, text in enumerate(queries)])
    result = index.freeze().match([row["message"] for row in rows])
    assert [list(each.query_ids) for each in result] == [["0", "1", "2"], ["0"], ["1"]]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/*/*", [b"<a><b/></a>", b"<a><p:b xmlns:p='u'/></a>", b"<a><c><b/></c></a>"]),
        ("/a/b", [b"<a><b/></a>"]),
        ("/a/q:b", [b"<a><p:b xmlns:p='u'/></a>"]),
        ("/a/q:*", [b"<a><p:b xmlns:p='u'/></a>"]),
        ("/a/c/b", [b"<a><c><b/></c></a>"]),
        ("/a", [b"<a><b/><p:b xmlns:p='u'/><c><b/></c></a>"]),
        ("/x/b", []),
    ],
)
def test_records_are_named_by_a_path(path: str, found: list[bytes]) -> None:
    content = b"<a><b/><p:b xmlns:p='u'/><c><b/></c></a>"
    assert messages_of(rows_of(content, path, namespaces={"q": "u"})) == found


@pytest.mark.parametrize("path", ["//b", "/a/@b", "/a[1]/b", "/a | /b", "a/b", "/a/b[c]", "1 + 1"])
def test_a_path_that_names_no_records_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="record"):
        record_path(path)
    with pytest.raises(QuerySyntaxError):
        record_path("/a[")


@pytest.mark.parametrize(
    ("content", "kept", "faults"),
    [
        (b"<l><r>1</r><r a='<'/><r>2</r></l>", 1, [(17, "xml.attribute.less", 17)]),
        (b"<l><r>1</r><r><b a='<'/></r><r>2</r></l>", 1, [(11, "xml.attribute.less", 20)]),
        (b"<l><r/></m></l><r/>", 1, [(7, "xml.tag.mismatch", 7), (11, "xml.tag", 11)]),
        (b"<l><r/></l></l>", 1, [(11, "xml.tag", 11)]),
        (b"<l><r/>&no;<r/></l>", 2, [(7, "xml.entity.undeclared", 7)]),
        (b"<l><r/> ]]> <r/></l>", 2, [(8, "xml.text.cdata_end", 8)]),
        (b"<l><r/> <r/><!-- -- --></l>", 2, [(17, "xml.comment", 17)]),
        (b"<l><r/>\xff<r/></l>", 2, [(7, "encoding.invalid", 7)]),
        (b"<l><r><a></r><r/></l>", 1, [(21, "xml.end", 21)]),
        (b"<l><r><a></r><r/>", 0, [(3, "xml.tag.mismatch", 9)]),
        (b"<l><r/><r>", 1, [(7, "xml.end", 10)]),
        (b"<l><r/><!-- ", 1, [(12, "xml.end", 12)]),
        (b"<l><r/></l>x", 1, [(11, "xml.outside", 11)]),
        (b"<l><r/><x a='1' a='2'/><r/></l>", 2, [(16, "xml.attribute.duplicate", 16)]),
        (b"", 0, [(0, "xml.end", 0)]),
        (b"<l/><!-- x", 0, [(10, "xml.end", 10)]),
        (b"\xff\xfe<\0l\0/\0>\0", 0, [(0, "encoding.unknown", 0)]),
        (b"<!DOCTYPE l [<!ENTITY e '<r/>'>]><l>&e;<r/></l>", 1, [(33, "records.entity", 33)]),
    ],
)
def test_a_fault_is_told_where_it_is(
    tmp_path: Path, content: bytes, kept: int, faults: list[tuple[int, str, int]]
) -> None:
    rows = rows_of(content, "/l/r")
    assert (len(messages_of(rows)), faults_of(rows)) == (kept, faults)
    for row in rows:
        assert not row["code"] or row["reason"].startswith(f"byte {row['fault_offset']}: ")
    path = tmp_path / "file"
    path.write_bytes(content)
    for ranges in range(2, len(content)):
        assert rows_of(path, "/l/r", ranges=ranges) == rows


def test_what_is_too_long_is_refused_and_the_rest_goes_on() -> None:
    content = b"<l><r>" + b"x" * 500 + b"</r><r>2</r><!-- " + b"y" * 500 + b" --><r>3</r></l>"
    rows = rows_of(content, "/l/r", limits=Limits(message_bytes_max=100))
    assert [message[6:7] for message in messages_of(rows)] == [b"2", b"3"]
    assert [code for _, code, _ in faults_of(rows)] == ["limit.message_bytes"] * 2
    long = b"<l a='" + b"x" * 500 + b"'><r/></l>"
    rows = rows_of(long, "/l/r", context_bytes_max=100)
    assert faults_of(rows) == [(0, "records.context", 0), (508, "records.context", 508)]


class Endless(io.RawIOBase):
    """A beginning, and then the same block again and again, to a length."""

    def __init__(self, start: bytes, block: bytes, length: int, end: bytes = b"") -> None:
        self._parts = [start]
        self._block, self._left, self._end = block, length, end

    def read(self, size: int = -1) -> bytes:
        if self._parts:
            return self._parts.pop()
        if self._left > 0:
            self._left -= len(self._block)
            return self._block
        end, self._end = self._end, b""
        return end


MIB = 1 << 20


@pytest.mark.parametrize(
    ("start", "block", "end", "kept", "codes"),
    [
        (b"<l><r/><r a='", b"x" * MIB, b"'/><r/></l>", 2, ["limit.message_bytes"]),
        (b"<l><r/><x a='", b"x" * MIB, b"'/><r/></l>", 2, ["limit.message_bytes"]),
        (b"<l a='", b"x" * MIB, b"'><r/><x/></l>", 0, ["records.context"] * 2),
        (b"<l><r/><!--", b"x" * MIB, b"--><r/></l>", 2, ["limit.message_bytes"]),
        (b"<l><r/>", b" \n" * (MIB // 2), b"<r/></l>", 2, []),
        (b"<l><r/><r>", b"<a>" * MIB, b"", 1, ["limit.depth"]),
        (b"<l><r/>", b"<a>" * MIB, b"", 1, ["limit.depth"]),
        (b"<l><r/><", b"r" * MIB, b"/><r/></l>", 2, ["limit.message_bytes"]),
    ],
)
def test_endless_things_are_refused_in_bounded_memory(
    start: bytes, block: bytes, end: bytes, kept: int, codes: list[str]
) -> None:
    limits = Limits(message_bytes_max=4 * MIB)
    source: Any = Endless(start, block, 64 * MIB, end)
    before = peak()
    rows = pa.Table.from_batches(split_records(source, record="/l/r", limits=limits)).to_pylist()
    assert len(messages_of(rows)) == kept
    assert [code for _, code, _ in faults_of(rows)] == codes
    assert peak() - before < 48 * MIB


NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000")) // 10


@pytest.mark.nightly
@given(content=files, data=st.data())
@settings(in_folder, max_examples=NIGHTLY_EXAMPLES)
def test_files_of_any_kind_at_length(tmp_path: Path, content: bytes, data: st.DataObject) -> None:
    check_by_lxml(content)
    check_ranges(tmp_path, content)
    check_damaged(tmp_path, content, data)


@pytest.mark.nightly
def test_a_gigabyte_of_an_attribute() -> None:
    source: Any = Endless(b"<l><r/><r a='", b"x" * MIB, 5 << 30, b"'/><r/></l>")
    rows = pa.Table.from_batches(split_records(source, record="/l/r")).to_pylist()
    assert [row["offset"] for row in rows] == [3, 7, 7 + 6 + (5 << 30) + 3]
    assert faults_of(rows)[0][1] == "limit.message_bytes"


def peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_range_beyond_what_32_bits_count(tmp_path: Path) -> None:
    from pathcast.kernel.records import BytePlace

    path, start = tmp_path / "sparse", (5 << 30) + 7
    with path.open("wb") as handle:
        handle.write(b"<l a='1'>")
        handle.seek(start)
        handle.write(b"</x><r>1</r><r>2</r></l>")
    splitter = Splitter(record_path("/l/r"), Limits())
    with path.open("rb") as handle:
        head, _ = splitter.head(handle)
        place = BytePlace(0, 2, False, (0,))
        batches = list(splitter.cut(handle, head, place, start, path.stat().st_size))
    rows = pa.Table.from_batches(batches).to_pylist()
    assert [row["offset"] for row in rows] == [start + 4, start + 12]
    assert messages_of(rows)[0] == b"<l a='1'><r>1</r></l>"


def pack(content: bytes, name: str) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(content)
    packed: bytes = pa.compress(content, "zstd", asbytes=True)
    return packed


@pytest.mark.parametrize("name", ["file.xml.gz", "file.xml.zst"])
def test_packed_files_are_unpacked_as_they_are_read(tmp_path: Path, name: str) -> None:
    rng = random.Random(1)
    records = b"".join(b"<r>%d</r>" % rng.getrandbits(64) for _ in range(100_000))
    content = b"<l>" + records + b"</l>"
    path = tmp_path / name
    whole = pack(content, name)
    path.write_bytes(whole)
    rows = rows_of(path, "/l/r")
    assert rows == rows_of(content, "/l/r")
    with pytest.raises(ConfigError, match="ranges"):
        split_records(path, record="/l/r", ranges=2)
    path.write_bytes(whole[: len(whole) // 2])
    cut = rows_of(path, "/l/r")
    (fault,) = faults_of(cut)
    assert fault[1] == "records.unreadable"
    assert 0 < len(cut) - 1 < len(rows)
    assert cut[:-1] == rows[: len(cut) - 1]
    assert fault[0] >= cut[-2]["offset"]
    if name.endswith("gz"):
        there = zlib.decompressobj(31).decompress(whole[: len(whole) // 2])
        assert fault[0] == len(there)
        assert messages_of(cut) == messages_of(rows_of(there, "/l/r"))
    path.write_bytes(b"no such thing")
    assert [code for _, code, _ in faults_of(rows_of(path, "/l/r"))] == ["records.unreadable"]
    # Members, and frames, one after another.
    half = len(content) // 2
    parts = (content[:half], content[half:])
    path.write_bytes(b"".join(pack(part, name) for part in parts))
    assert rows_of(path, "/l/r") == rows


def test_a_file_in_another_encoding_keeps_it() -> None:
    content = "<?xml version='1.0' encoding='ISO-8859-1'?><l><r>é</r></l>".encode("latin-1")
    (message,) = messages_of(rows_of(content, "/l/r"))
    assert etree.fromstring(message)[0].text == "é"
    assert message.startswith(b"<?xml")

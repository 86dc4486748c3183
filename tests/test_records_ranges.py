"""Ranges of a file, side by side: surveyed once, cut once, and the rows of the file as one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pathcast_kernel", reason="files of records are cut by the kernel")

from pathcast.kernel.records import BytePlace
from pathcast.limits import Limits
from pathcast.records import Splitter, record_path, split_records
from record_files import parents, rows_of


class Counted:
    """Bytes that were surveyed, and ranges that were cut, of one file."""

    def __init__(self) -> None:
        self.surveyed = 0
        self.cut: list[int] = []


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted()
    survey, cut = Splitter.survey, Splitter.cut

    def counted_survey(self: Splitter, handle: IO[bytes], start: int, until: int) -> Any:
        found.surveyed += until - start
        return survey(self, handle, start, until)

    def counted_cut(
        self: Splitter, handle: IO[bytes], head: Any, place: Any, start: int, until: int
    ) -> Any:
        found.cut.append(start)
        return cut(self, handle, head, place, start, until)

    monkeypatch.setattr(Splitter, "survey", counted_survey)
    monkeypatch.setattr(Splitter, "cut", counted_cut)
    return found


RECORD = "<r a='>{0}' b=\"<\"><x>{0}</x><!-- <r> --><r><y/></r></r>\n".replace('<"', "'\"")


def records(count: int) -> str:
    return "".join(RECORD.format(number) for number in range(count))


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (f"<l day='1'>{records(20_000)}</l>", "/l/r"),
        (f"<l><m n='1'>{records(20_000)}</m></l>", "/l/m/r"),
        ("<l>" + f"<m n='1'>{records(5)}</m>" * 4_000 + "</l>", "/l/m/r"),
    ],
)
def test_ranges_are_surveyed_and_cut_once(
    tmp_path: Path, counted: Counted, content: str, path: str
) -> None:
    file = tmp_path / "file.xml"
    file.write_text(content)
    found = rows_of(file, path, ranges=40, threads=2)
    assert found == rows_of(content.encode(), path)
    assert len(found) == 20_000
    assert len(counted.cut) == len(set(counted.cut)) == 40
    assert counted.surveyed < len(content)


HOSTILE = [
    # Sections that look like records, borders everywhere inside.
    "<l>" + ("<r><![CDATA[" + "<r>x</r>" * 900 + "]]></r>\n") * 40 + "</l>",
    "<l>" + ("<!--" + "<r>x</r>" * 900 + "-->") * 40 + "</l>",
    "<l>" + ("<?p " + "<r><x/></r>" * 700 + "?><r/>") * 40 + "</l>",
    "<l>" + ("<r a='" + "></r>&lt;r>" * 700 + "'/>") * 40 + "</l>",
    # Levels that go up and down between windows; other ancestors before every range.
    "<l>" + ("<m>" + "<r><r>" * 400 + "</r></r>" * 400 + "</m>") * 40 + "</l>",
    "<l>" + "".join(f"<m n='{n}'>{records(100)}</m>" for n in range(40)) + "</l>",
    # Tags that never end, and more ends than beginnings.
    "<l>" + "<r>" * 60_000,
    "<l><r>" + "</r><r>" * 30_000 + "</l></l>" + "<r/>" * 1000,
    "<l><![CDATA[" + "<r/>" * 40_000,
]


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("path", ["/l/r", "/l/m/r"])
def test_hostile_files_cost_no_more(
    tmp_path: Path, counted: Counted, content: str, path: str
) -> None:
    """Every range is surveyed and cut once, whatever it begins in."""
    limits = Limits(depth_max=200_000)
    whole = rows_of(content.encode(), path, limits=limits)
    file = tmp_path / "file.xml"
    file.write_text(content)
    for ranges in (10, 60):
        counted.cut.clear()
        counted.surveyed = 0
        assert rows_of(file, path, ranges=ranges, threads=2, limits=limits) == whole
        assert 0 < len(counted.cut) == len(set(counted.cut)) <= ranges
        assert counted.surveyed <= len(content)


long_files = st.builds(
    lambda first, many: f"<l xmlns:n='urn:n'>{first * 3}{many * 40}</l>".encode(), parents, parents
)


@given(content=long_files, ranges=st.integers(2, 90), threads=st.integers(1, 3))
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_rows_do_not_depend_on_ranges_or_threads(
    tmp_path: Path, content: bytes, ranges: int, threads: int
) -> None:
    file = tmp_path / "file.xml"
    file.write_bytes(content)
    assert rows_of(file, ranges=ranges, threads=threads) == rows_of(content)


def bytes_of_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each batch that is cut, as they come."""
    found: list[int] = []
    cut = Splitter.cut

    def counted_cut(*arguments: Any) -> Iterator[pa.RecordBatch]:
        for batch in cut(*arguments):
            found.append(batch.nbytes)
            yield batch

    monkeypatch.setattr(Splitter, "cut", counted_cut)
    return found


def test_a_range_that_has_many_rows_is_held_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ancestors' tags a thousand times the length of a record: rows wait until it is their turn."""
    content = f"<l a='{'x' * 5000}'>" + "<r/>" * 60_000 + "</l>"
    file = tmp_path / "file.xml"
    file.write_text(content)
    given = bytes_of_batches(monkeypatch)
    found = split_records(file, record="/l/r", ranges=4, threads=2)
    first = next(found)
    # Four ranges, each four times its length, and a batch more.
    time.sleep(0.5)
    assert sum(given) <= 4 * len(content) + 4 * max(given)
    assert len(first) + sum(map(len, found)) == 60_000
    assert sum(given) > 60_000 * 5000


def test_a_record_of_many_ranges_is_read_by_the_first(tmp_path: Path) -> None:
    """The others end where they end: what they would find lies in a range of its own."""
    content = "<l><r>" + "<x/>" * 100_000 + "</r><r/></l>"
    file = tmp_path / "file.xml"
    file.write_text(content)
    splitter = Splitter(record_path("/l/r"), Limits())
    with file.open("rb") as handle:
        head, _ = splitter.head(handle)
        until = 110_000
        cut = splitter.cut(handle, head, BytePlace(0, 2, False, (0,)), 100_002, until)
        assert list(cut) == []
        assert handle.tell() == until
    assert len(rows_of(file, "/l/r", ranges=40, threads=2)) == 2

"""Files of records as a source: each record once, whatever the ranges; faults are dead letters."""

from __future__ import annotations

import gzip
import random
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")
pytest.importorskip("pathcast_kernel", reason="files of records are cut by the kernel")

from pathcast.errors import ConfigError
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import run
from pathcast.spark.reasons import message_of
from pathcast.spark.settings import load_settings
from record_files import messages_of, rows_of
from test_spark_pipeline import Recorder, found, go, put_subscriptions, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = (
    "source.kind=records",
    "source.path=large",
    "source.record=/m/day/r",
    "source.range_bytes=700",
)


_INSIDE = ("<a/>", "<b/>", "<c/>", "<![CDATA[</r></day>]]><a/>", "<r><b/></r>")


def large(seed: int, days: int = 12) -> bytes:
    rng = random.Random(seed)
    parts = ["<?xml version='1.0'?><!-- <r> --><m>"]
    for day in range(days):
        parts.append(f"<day n='{day}'>\n")
        for _ in range(rng.randrange(12)):
            inside = rng.choice(_INSIDE)
            parts.append(f"<r n='>'>{inside}</r>")
            parts.append(rng.choice(("", "\n", "<!-- <r/> " + "é" * 300 + " -->", "<x><r/></x>")))
        parts.append("</day>")
    return "".join([*parts, "</m>"]).encode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "large" / "deep").mkdir(parents=True)
    for number in range(3):
        (tmp_path / "large" / f"{number}.xml").write_bytes(large(number))
    (tmp_path / "large" / "deep" / "3.xml.gz").write_bytes(gzip.compress(large(3)))
    rows = ("subscriber\tquery_id\tquery", "ann\tq-a\t/m/day/r/a", "bob\tq-b\t/m/day[@n>3]/r//b")
    (tmp_path / "subscriptions.tsv").write_text("\n".join(rows) + "\n")
    return tmp_path


def expected(root: Path) -> dict[str, int]:
    """Ids of all records, and how often each asks for something."""
    counts: dict[str, int] = {}
    for path in sorted((root / "large").rglob("*.xml*")):
        for row in rows_of(path, "/m/day/r"):
            name = path.relative_to(root / "large").as_posix()
            text = row["message"]
            day = int(text.split(b"day n='")[1].split(b"'")[0])
            has_a = b"<a/>" in text
            has_b = b"<b/>" in text and day > 3
            counts[f"{name}#{row['offset']}"] = has_a + has_b
    return counts


def test_each_record_is_delivered_once(root: Path) -> None:
    summary = go(root, *RECORDS)
    want = expected(root)
    assert summary.messages == len(want) > 100
    rows = found(root)
    assert {key[0] for key in rows["matches"]} == want.keys()
    assert not rows["dead_letters"]
    delivered = Counter(key[2] for key in rows["inboxes"].elements())
    assert delivered == Counter({key: count for key, count in want.items() if count})
    assert go(root, *RECORDS).messages == 0


@pytest.mark.parametrize("size", [60, 5000, 10_000_000])
def test_the_size_of_ranges_makes_no_difference(root: Path, size: int) -> None:
    go(root, *RECORDS)
    other = (*RECORDS, f"source.range_bytes={size}", "output.path=other", "mode.checkpoint=there")
    go(root, *other)
    columns = ["subscriber", "message_id", "delivery_id"]

    def rows(name: str) -> list[dict[str, Any]]:
        table = read_output(root / name, "inboxes").select(columns)
        found_rows: list[dict[str, Any]] = table.sort_by(
            [(column, "ascending") for column in columns]
        ).to_pylist()
        return found_rows

    assert rows("other") == rows("out")


@pytest.mark.spark
def test_spark_gives_what_one_process_gives(spark: SparkSession, root: Path) -> None:
    go(root, *RECORDS, "output.path=here", "mode.checkpoint=there")
    report = Recorder()
    summary = run(settings(root, *RECORDS), spark=spark, progress=report)
    assert summary.messages == len(expected(root))
    ids = [
        sorted(read_output(root / name, "inboxes").column("delivery_id").to_pylist())
        for name in ("here", "out")
    ]
    assert ids[0] == ids[1] != []


def test_a_file_that_breaks_off_has_its_records_up_to_there(root: Path) -> None:
    whole = large(9)
    cut = whole[: len(whole) * 2 // 3]
    kept = messages_of(rows_of(cut, "/m/day/r"))
    packed = gzip.compress(whole)
    packed = packed[: len(packed) * 2 // 3]
    there = messages_of(rows_of(zlib.decompressobj(31).decompress(packed), "/m/day/r"))
    for name, content in (("cut.xml", cut), ("cut.xml.gz", packed)):
        for path in (root / "large").rglob("*.xml*"):
            path.unlink()
        (root / "large" / name).write_bytes(content)
        go(root, *RECORDS, f"output.path={name}", f"mode.checkpoint=c-{name}")
        letters = read_output(root / name, "dead_letters").to_pylist()
        (letter,) = letters
        assert letter["file"] == name
        assert letter["message_id"] == f"{name}#{letter['message_id'].rpartition('#')[2]}"
        assert f"byte {letter['offset']}" in letter["message"]
        matches = read_output(root / name, "matches").to_pylist()
        if name == "cut.xml":
            assert letter["offset"] == len(cut)
            assert len(matches) == len(kept) > 10
        else:
            assert letter["code"] == "records.unreadable"
            assert len(matches) == len(there) > 10


def test_records_and_gaps_that_are_refused_are_dead_letters_alone(root: Path) -> None:
    for path in (root / "large").rglob("*.xml*"):
        path.unlink()
    content = b"<m><day n='9'><r><a/></r><r><a></b></r>&no;<r><a/></r></day></m>"
    (root / "large" / "x.xml").write_bytes(content)
    for size in ("9", "900"):
        overrides = (*RECORDS, f"source.range_bytes={size}", f"output.path=o{size}")
        go(root, *overrides, f"mode.checkpoint=c{size}")
        letters = {
            row["message_id"]: (row["code"], row["offset"])
            for row in read_output(root / f"o{size}", "dead_letters").to_pylist()
        }
        assert {key: code for key, (code, _) in letters.items()} == {
            "x.xml#25": "xml.tag.mismatch",
            "x.xml#39": "xml.entity.undeclared",
        }
        assert letters["x.xml#39"][1] == 39
        assert len(read_output(root / f"o{size}", "inboxes")) == 2


def test_a_file_that_changes_between_the_passes_is_unread(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathcast.spark.records import RecordReader

    placed = RecordReader.placed

    def change(self: RecordReader, *arguments: Any) -> Any:
        path = root / "large" / "1.xml"
        if len(path.read_bytes()) == len(large(1)):
            path.write_bytes(large(1) + b"\n")
        return placed(self, *arguments)

    monkeypatch.setattr(RecordReader, "placed", change)
    go(root, *RECORDS)
    (letter,) = read_output(root / "out", "dead_letters").to_pylist()
    assert (letter["file"], letter["code"]) == ("1.xml", "file.unreadable")
    monkeypatch.undo()
    go(root, *RECORDS)
    assert {key[0] for key in found(root)["matches"]} == expected(root).keys()


def test_a_record_is_found_again(root: Path) -> None:
    chosen = settings(root, *RECORDS)
    rows = rows_of(root / "large" / "2.xml", "/m/day/r")
    assert message_of(chosen, f"2.xml#{rows[5]['offset']}") == rows[5]["message"]
    assert message_of(chosen, "2.xml#1") is None


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("source.record=//r", "names"),
        ("source.record=/m/p:r", "prefix"),
        ("source.kind=directory", "record"),
    ],
)
def test_settings_of_records_are_checked(root: Path, override: str, reason: str) -> None:
    put_subscriptions(root, ("ann", "a"))
    settings(root)
    with pytest.raises(ConfigError, match=reason):
        load_settings(root / "pipeline.toml", [*RECORDS, override])
    with pytest.raises(ConfigError, match="record"):
        load_settings(root / "pipeline.toml", ["source.kind=records"])

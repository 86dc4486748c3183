"""Parquet files of messages: what rows they give, and that a file gives all of them or none."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pathcast.spark import parquet_files
from pathcast.spark.journal import FoundFile
from pathcast.spark.parquet_files import MessageColumns, missing_columns, read_parquet_files
from pathcast.spark.source_rows import SOURCE_SCHEMA

COLUMNS = MessageColumns("message", "message_id")
IDS = [f"m{n}" for n in range(500)]
MESSAGES = [b"<m n='%d'/>" % n for n in range(500)]


def write(path: Path, **columns: pa.Array) -> None:
    columns = columns or {"message_id": pa.array(IDS), "message": pa.array(MESSAGES)}
    pq.write_table(pa.table(columns), path, row_group_size=90, write_page_checksum=True)


def rows(path: Path, columns: MessageColumns = COLUMNS) -> list[dict[str, object]]:
    batches = list(read_parquet_files([path.name], path.parent, columns))
    assert all(batch.schema == SOURCE_SCHEMA for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def reason(found: list[dict[str, object]]) -> str:
    """Why a file gave nothing but its dead letter."""
    (row,) = found
    assert (row["message"], row["code"]) == (None, "file.unreadable")
    return str(row["reason"])


@pytest.fixture(params=[parquet_files.HELD_BYTES_MAX, 0], ids=["held", "decoded twice"])
def _ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to see the end of a file before anything of it is handed on."""
    monkeypatch.setattr(parquet_files, "HELD_BYTES_MAX", request.param)


@pytest.mark.usefixtures("_ways")
def test_rows_are_those_of_the_file_and_large_ones_come_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "BATCH_BYTES_MAX", 100)
    write(tmp_path / "a.parquet")
    batches = list(read_parquet_files(["a.parquet"], tmp_path, COLUMNS))
    found = [row for batch in batches for row in batch.to_pylist()]
    assert [(row["message_id"], row["message"]) for row in found] == list(
        zip(IDS, MESSAGES, strict=True)
    )
    assert all(row["bytes"] == len(row["message"]) and row["code"] is None for row in found)
    assert max(sum(batch.column("bytes").to_pylist()) for batch in batches) <= 100


@pytest.mark.parametrize(
    ("messages", "ids", "expected"),
    [
        (pa.array(["<é/>", None]), pa.array([7, None]), [("7", "<é/>".encode()), (None, None)]),
        (pa.array([b"x"], pa.large_binary()), pa.array(["é"]), [("é", b"x")]),
        (pa.array(["x", "x"]).dictionary_encode(), pa.array([b"a\xff", b"b"]),
         [("a\\xff", b"x"), ("b", b"x")]),
    ],
)  # fmt: skip
def test_columns_of_many_types_are_taken(
    tmp_path: Path, messages: pa.Array, ids: pa.Array, expected: list[tuple[object, object]]
) -> None:
    write(tmp_path / "a.parquet", id=ids, body=messages, other=pa.array(range(len(ids))))
    found = rows(tmp_path / "a.parquet", MessageColumns("body", "id"))
    assert [(row["message_id"], row["message"]) for row in found] == expected


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.write_bytes(b""), "0 bytes"),
        (lambda path: path.write_bytes(b"<a/>" * 10), "magic bytes not found"),
        (lambda path: path.unlink(), "No such file"),
        (lambda path: (path.unlink(), path.mkdir()), "Is a directory"),
        (lambda path: write(path, message_id=pa.array(IDS)), "no column 'message' among"),
        (lambda path: write(path, message_id=pa.array(["a"]), message=pa.array([1])),
         "column 'message' is int64, not binary or string"),
        (lambda path: write(path, message_id=pa.array([["a"]]), message=pa.array([b"x"])), "cast"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_row_with_the_reason_and_costs_no_other(
    tmp_path: Path, damage: Callable[[Path], object], told: str
) -> None:
    for name in ("a.parquet", "bad.parquet", "z.parquet"):
        write(tmp_path / name)
    damage(tmp_path / "bad.parquet")
    names = ["a.parquet", "bad.parquet", "z.parquet"]
    batches = list(read_parquet_files(names, tmp_path, COLUMNS))
    found = [row for batch in batches for row in batch.to_pylist()]
    refused = [row for row in found if row["code"] is not None]
    assert told in reason(refused)
    assert refused[0]["message_id"] == "bad.parquet"
    assert len(found) == 2 * len(IDS) + 1


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_gives_all_its_rows_or_none(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "a.parquet"
    write(path)
    whole = rows(path)
    content = bytearray(path.read_bytes())
    if seed % 2:
        del content[chance.randrange(len(content)) :]
    else:
        # In the pages, which have checksums; a footer has none.
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(4, len(content) // 2)] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(content))
    found = rows(path)
    assert found == whole or reason(found)


def test_an_error_of_the_disk_in_the_middle_of_a_file_hands_nothing_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.parquet")
    monkeypatch.setattr(parquet_files, "BATCH_ROWS_MAX", 50)
    original = parquet_files._cut
    calls = 0

    def failing(batch: pa.RecordBatch) -> object:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise OSError(5, "Input/output error")
        return original(batch)

    monkeypatch.setattr(parquet_files, "_cut", failing)
    assert "Input/output error" in reason(rows(tmp_path / "a.parquet"))
    assert calls == 4, "it did not get as far as the error"


def test_a_column_that_no_file_has_is_found_before_the_run(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"")
    files = [FoundFile(name, 0, 0) for name in ("a.parquet", "b.parquet")]
    assert missing_columns(files, tmp_path, COLUMNS) is None
    found = missing_columns(files, tmp_path, MessageColumns("message", "key"))
    assert found == ("key", ["message_id", "message"])
    assert missing_columns(files[1:], tmp_path, MessageColumns("message", "key")) is None

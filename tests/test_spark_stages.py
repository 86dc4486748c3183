"""The stages: schemas, the same answers as in one process, dead letters, batches and slices."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.engine import QueryIndex, Snapshot
from pathcast.errors import ConfigError, SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import EngineName, Query
from pathcast.spark import matching, schemas
from pathcast.spark.matching import MatchTask
from pathcast.spark.stages import deliveries, match_messages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

QUERIES = [
    Query("zeta", "//item"),
    Query("alpha", "/order/item[@kind='book']"),
    Query("mid", "/order[total > 100]"),
    Query("beta", "//item[2]"),
    Query("none", "/invoice"),
]

MESSAGES: dict[str, bytes | None] = {
    "m0": b"<order><item kind='book'/><total>120</total></order>",
    "m1": b"<order><item kind='pen'/><item/><total>9</total></order>",
    "m2": b"<order><item>",
    "m3": b"<other/>",
    "m4": None,
    "m5": b"<!DOCTYPE order><order><total>101</total></order>",
    "m6": b"",
    "m7": "<order><total>é</total></order>".encode("latin-1"),
}


@pytest.fixture(params=["reference", "kernel"])
def engine(request: pytest.FixtureRequest) -> EngineName:
    """Both engines have to give the same rows."""
    if request.param == "kernel" and importlib.util.find_spec("pathcast_kernel") is None:
        pytest.skip("the native kernel is not installed")
    name: EngineName = request.param
    return name


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """The queries as a file."""
    index = QueryIndex(engine="reference")
    assert not index.register(QUERIES).rejected
    path = tmp_path / "queries.snapshot"
    index.freeze().save(path)
    return path


def frame(spark: SparkSession, messages: dict[str, bytes | None]) -> DataFrame:
    return spark.createDataFrame(list(messages.items()), "id string, body binary").repartition(2)


def by_message(rows: Sequence[Any]) -> dict[str, dict[str, Any]]:
    found = {row.message_id: row.asDict() for row in rows}
    assert len(found) == len(rows), "a message has two rows"
    return found


def in_process(snapshot: Path, limits: Limits | None = None) -> dict[str, list[str] | str]:
    """Message -> sorted ids or error code, without Spark."""
    given = {key: value for key, value in MESSAGES.items() if value is not None}
    matcher = Snapshot.open(snapshot, engine="reference").matcher(limits=limits)
    answers = zip(given, matcher.match_batch(list(given.values())), strict=True)
    return {
        key: list(result.query_ids) if result.error is None else result.error.code
        for key, result in answers
    }


def test_stage_says_what_the_engine_says(
    spark: SparkSession, snapshot: Path, engine: EngineName
) -> None:
    limits = Limits(dtd="refuse")
    found = match_messages(
        frame(spark, MESSAGES), snapshot, "body", "id", engine=engine, limits=limits
    )
    assert found.matches.schema == schemas.matches("ids")
    assert found.dead_letters.schema == schemas.DEAD_LETTERS
    with found:
        matches = by_message(found.matches.collect())
        dead = by_message(found.dead_letters.collect())
    assert set(matches) | set(dead) == set(MESSAGES), "a message without a verdict"
    assert not set(matches) & set(dead), "a message with two verdicts"
    expected = in_process(snapshot, limits)
    assert {key: row["query_ids"] for key, row in matches.items()} == {
        key: value for key, value in expected.items() if isinstance(value, list)
    }
    assert {key: row["code"] for key, row in dead.items() if key != "m4"} == {
        key: value for key, value in expected.items() if isinstance(value, str)
    }
    assert matches["m0"]["query_ids"] == ["alpha", "mid", "zeta"]
    assert matches["m3"]["query_ids"] == []
    version = Snapshot.open(snapshot, engine=engine).version
    assert {row["snapshot_version"] for row in [*matches.values(), *dead.values()]} == {version}


def test_dead_letters_say_where_and_why(spark: SparkSession, snapshot: Path) -> None:
    found = match_messages(frame(spark, MESSAGES), snapshot, "body", "id", engine="reference")
    dead = by_message(found.dead_letters.collect())
    cut = dead["m2"]
    assert (cut["line"], cut["bytes"]) == (1, 13)
    assert cut["column"] > 1
    assert cut["offset"] > 0
    assert cut["message"]
    assert dead["m4"]["code"] == "message.unreadable"
    assert dead["m4"]["bytes"] == 0


@pytest.fixture
def heavy_snapshot(tmp_path: Path) -> Path:
    """A query that takes many steps beside one that takes none, and one that shares its cost."""
    index = QueryIndex(engine="reference")
    heavy = "count(//item[last()]) > 1"
    queries = [Query("b", heavy), Query("plain", "//item"), Query("a", f"({heavy})")]
    assert not index.register(queries).rejected
    path = tmp_path / "heavy.snapshot"
    index.freeze().save(path)
    return path


@pytest.mark.parametrize("ids", ["ids", "numbers"])
def test_undecided_pairs_are_dead_letters_of_their_queries(
    spark: SparkSession, heavy_snapshot: Path, engine: EngineName, ids: schemas.Ids
) -> None:
    """A query that ran out of steps must not look like one that did not match."""
    limits = Limits(evaluation_steps_max=3)
    df = frame(spark, {key: MESSAGES[key] for key in ("m0", "m2", "m3")})
    found = match_messages(df, heavy_snapshot, "body", "id", engine=engine, limits=limits, ids=ids)
    with found:
        matched = by_message(found.matches.collect())
        letters = sorted(
            (row.message_id, row.query_id or "", row.code) for row in found.dead_letters.collect()
        )
        undecided = found.dead_letters.where("query_id is not null").first()
    code = "limit.evaluation_steps"
    assert [letter for letter in letters if letter[2] == code] == [
        ("m0", "a", code),
        ("m0", "b", code),
    ]
    assert [letter[:2] for letter in letters if letter[2] != code] == [("m2", "")]
    assert set(matched) == {"m0", "m3"}, "a message is lost for one of its queries"
    assert len(matched["m0"]["query_ids" if ids == "ids" else "query_numbers"]) == 1
    assert "evaluation_steps_max" in undecided.message
    assert undecided.bytes == len(MESSAGES["m0"] or b"")
    assert (undecided.line, undecided.column, undecided.offset) == (None, None, None)


def test_numbers_are_those_of_the_snapshot(
    spark: SparkSession, snapshot: Path, engine: EngineName
) -> None:
    df = frame(spark, MESSAGES)
    found = match_messages(df, snapshot, "body", "id", ids="numbers", engine=engine)
    assert found.matches.schema == schemas.matches("numbers")
    ids = Snapshot.open(snapshot, engine=engine).query_ids
    expected = in_process(snapshot)
    for row in found.matches.collect():
        assert row.query_numbers == sorted(row.query_numbers)
        assert sorted(ids[number] for number in row.query_numbers) == expected[row.message_id]


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_do_not_depend_on_the_size_of_batches(
    spark: SparkSession, snapshot: Path, rows: int
) -> None:
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(key)
    spark.conf.set(key, str(rows))
    try:
        found = match_messages(frame(spark, MESSAGES), snapshot, "body", "id", engine="reference")
        verdicts = by_message(found.verdicts.collect())
    finally:
        spark.conf.set(key, before)
    expected = in_process(snapshot)
    for message, value in expected.items():
        told = verdicts[message]["code"] or verdicts[message]["query_ids"]
        assert told == value


def test_text_columns_and_ids_of_other_types(spark: SparkSession, snapshot: Path) -> None:
    # Text was decoded before: what its declaration says about bytes no longer holds.
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><order><item>é</item></order>"
    df = spark.createDataFrame([(7, text)], "number int, text string")
    found = match_messages(df, snapshot, "text", "number", engine="reference")
    (row,) = found.matches.collect()
    assert (row.message_id, row.query_ids) == ("7", ["zeta"])


def test_a_shipped_snapshot_is_found_by_name(spark: SparkSession, snapshot: Path) -> None:
    df = frame(spark, {"m0": MESSAGES["m0"]})
    found = match_messages(df, snapshot, "body", "id", engine="reference", ship=True)
    snapshot.unlink()
    assert found.matches.first().query_ids == ["alpha", "mid", "zeta"]


def test_wrong_columns_are_refused_before_anything_runs(
    spark: SparkSession, snapshot: Path
) -> None:
    df = spark.createDataFrame([(1, 2)], "id int, body int")
    with pytest.raises(ConfigError, match=r"message_col.*int, not binary or string"):
        match_messages(df, snapshot, "body", "id", engine="reference")
    with pytest.raises(ConfigError, match=r"id_col.*no column 'key'"):
        match_messages(df, snapshot, "body", "key", engine="reference")


def test_deliveries_by_ids_and_by_numbers_are_the_same(spark: SparkSession, snapshot: Path) -> None:
    opened = Snapshot.open(snapshot, engine="reference")
    number = {query_id: n for n, query_id in enumerate(opened.query_ids)}
    wants = [("ann", "zeta"), ("bob", "zeta"), ("bob", "mid"), ("eve", "none")]
    subscriptions = spark.createDataFrame(
        [(who, what, number[what]) for who, what in wants], schemas.SUBSCRIPTIONS
    )
    rows = {}
    for ids in ("ids", "numbers"):
        found = match_messages(
            frame(spark, MESSAGES), snapshot, "body", "id", ids=ids, engine="reference"
        )
        inboxes = deliveries(found.matches, subscriptions, buckets=3)
        assert inboxes.schema.names == schemas.INBOXES.names
        rows[ids] = sorted(inboxes.collect())
    assert rows["ids"] == rows["numbers"]
    expected = in_process(snapshot)
    assert {(row.subscriber, row.query_id, row.message_id) for row in rows["ids"]} == {
        (who, what, message)
        for message, matched in expected.items()
        for who, what in wants
        if isinstance(matched, list) and what in matched
    }
    assert len({row.delivery_id for row in rows["ids"]}) == len(rows["ids"])
    assert {row.bucket for row in rows["ids"]} <= {0, 1, 2}
    assert len({(row.subscriber, row.bucket) for row in rows["ids"]}) == 2
    # The id can be computed by anyone who has the row: it is no matter of where it was made.
    row = rows["ids"][0]
    parts = (row.subscriber, row.query_id, opened.version, row.message_id)
    text = "".join(f"{len(part)}:{part}" for part in parts) + ":0"
    assert row.delivery_id == hashlib.sha256(text.encode()).hexdigest()[:32]


@pytest.fixture
def task(snapshot: Path) -> MatchTask:
    """The body of the stage, to be called without Spark."""
    return MatchTask(
        snapshot=str(snapshot),
        version=Snapshot.open(snapshot, engine="reference").version,
        shipped=False,
        ids="ids",
        engine="reference",
        limits=Limits(),
        threads=1,
        cache_bytes_max=None,
    )


def batch_of(messages: dict[str, bytes | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "message_id": pa.array(list(messages), pa.string()),
            "message": pa.array(list(messages.values()), pa.binary()),
        }
    )


def test_slices_of_a_batch_give_the_rows_of_the_slice(task: MatchTask) -> None:
    # A batch that ignores its offset would answer for its neighbours' messages.
    batch = batch_of(MESSAGES)
    (whole,) = task([batch])
    for start in range(len(MESSAGES)):
        for length in range(1, len(MESSAGES) - start + 1):
            (part,) = task([batch.slice(start, length)])
            assert part.to_pylist() == whole.slice(start, length).to_pylist()


def test_empty_batches_are_no_trouble(task: MatchTask) -> None:
    assert sum(part.num_rows for part in task([batch_of(MESSAGES).slice(0, 0)])) == 0


@pytest.mark.parametrize("bound", [1, 2, 4, 1000])
def test_output_is_cut_where_lists_grow_too_long(
    task: MatchTask, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A column of ids above 2 GB is beyond Arrow's string type: the task would fail.
    (whole,) = task([batch_of(MESSAGES)])
    monkeypatch.setattr(matching, "NUMBERS_PER_BATCH_MAX", bound)
    parts = list(task([batch_of(MESSAGES)]))
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()
    if bound == 1:
        assert len(parts) > 2
    for part in parts:
        lists = part.column("query_ids")
        assert part.num_rows == 1 or len(lists.flatten()) <= bound


@pytest.mark.parametrize("bound", [1, 2, 1000])
def test_verdicts_count_where_output_is_cut(
    task: MatchTask, heavy_snapshot: Path, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    heavy = replace(
        task,
        snapshot=str(heavy_snapshot),
        version=Snapshot.open(heavy_snapshot, engine="reference").version,
        limits=Limits(evaluation_steps_max=3),
    )
    (whole,) = heavy([batch_of(MESSAGES)])
    found = whole.column("undecided").to_pylist()[0]
    assert sorted(query["query_id"] for query in found) == ["a", "b"]
    monkeypatch.setattr(matching, "NUMBERS_PER_BATCH_MAX", bound)
    parts = list(heavy([batch_of(MESSAGES)]))
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()
    assert (len(parts) > 1) == (bound < 1000)


def test_a_snapshot_that_changed_under_its_name_is_refused(task: MatchTask, snapshot: Path) -> None:
    # Rows would carry the version of one snapshot and the matches of another.
    other = replace(task, version="0" * 64)
    with pytest.raises(SnapshotFormatError, match="planned with 0000"):
        list(other([batch_of(MESSAGES)]))


def test_a_worker_opens_a_snapshot_once(task: MatchTask, monkeypatch: pytest.MonkeyPatch) -> None:
    list(task([batch_of(MESSAGES)]))
    monkeypatch.setattr(Snapshot, "open", lambda *_, **__: pytest.fail("opened again"))
    assert list(replace(task)([batch_of(MESSAGES)]))

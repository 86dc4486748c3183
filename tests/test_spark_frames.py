"""From frame to frame: the same rows as in one process, dead letters, batches and slices."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from oracles.engines import made_by

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast import Query, Registry, Snapshot, Subscription
from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.message.canonical import canonical
from pathcast.spark import deliver, frame_tasks
from pathcast.spark.book import saved_files
from pathcast.spark.frame_tasks import DELIVERED, RowTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBSCRIPTIONS = [
    Subscription(
        "titles", "ann", "for $b in //book where $b/price < 30 return <hit>{$b/title}</hit>"
    ),
    Subscription("books", "bob", "//book", "fragment"),
    Subscription("again", "cem", "//book", "fragment"),
    Subscription("whole", "cem", "/bib", "message"),
    Subscription("notice", "dan", "/bib", "ids"),
    Subscription("broken", "eve", "for $b in //book[@bad] return <x>text{$b/@bad}</x>"),
    Subscription("heavy", "fay", "count(//book[count(preceding::*) > 0]) > 1", "ids"),
]
QUERIES = [Query("zeta", "//book"), Query("alpha", "/bib/book[price < 30]"), Query("none", "/x")]
MESSAGES: dict[str, bytes | None] = {
    "m0": b"<bib><book><title>Sand</title><price>20</price></book><book/></bib>",
    "m1": b"<bib>",
    "m2": None,
    "m3": b"<bib><book bad='1'><title>Gold</title><price>90</price></book></bib>",
    "m4": b"<other/>",
    "m5": "<?xml version='1.0' encoding='latin-1'?><bib>é</bib>".encode("latin-1"),
}
LIMITS = Limits(evaluation_steps_max=10)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    registry = Registry()
    assert not registry.add(SUBSCRIPTIONS).rejected
    path = tmp_path / "s.snapshot"
    registry.freeze().save(path)
    return path


@pytest.fixture
def filters(tmp_path: Path) -> Path:
    index = Registry()
    assert not index.add(QUERIES).rejected
    path = tmp_path / "q.snapshot"
    index.freeze().save(path)
    return path


def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(list(MESSAGES.items()), "id string, body binary").repartition(2)


def comparable(row: dict[str, Any]) -> tuple[Any, ...]:
    """A delivery such that equal ones are equal: engines may write a result in different ways."""
    fragment = None if row["fragment"] is None else bytes(row["fragment"])
    if fragment is not None and row["subscription_id"] != "whole":
        fragment = canonical(fragment)
    names = ("subscriber", "subscription_id", "message_id", "result_number")
    return (*(row[name] for name in names), fragment, bytes(row["delivery_id"]))


def in_process(limits: Limits) -> tuple[Counter[Any], Counter[Any]]:
    """Deliveries and dead letters without Spark."""
    registry = made_by("reference", Registry, limits)
    assert not registry.add(SUBSCRIPTIONS).rejected
    batch = registry.deliver(list(MESSAGES.values()), list(MESSAGES))
    deliveries = Counter(comparable(row) for row in batch.table.to_pylist())
    letters = Counter(
        (row["message_id"], row.get("subscription_id"), row["code"])
        for table in (batch.errors, batch.verdicts)
        for row in table.to_pylist()
    )
    letters["m2", None, "message.unreadable"] += 1
    return deliveries, letters


@pytest.mark.spark
@pytest.mark.parametrize("switch", ["kernel", "nfa"])
def test_rows_are_those_of_one_process(
    spark: SparkSession, snapshot: Path, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits()
    monkeypatch.setenv("PATHCAST_ENGINE", switch)
    source = frame(spark).selectExpr("id", "body", "length(body) AS size")
    found = deliver(source, snapshot, "body", id="id", columns=["size"], limits=limits)
    assert found.columns == [*DELIVERED.names, "snapshot_version", "size"]
    rows = found.collect()
    # The workers of the job have the switch of the driver.
    seen = spark.sparkContext.parallelize([0]).map(lambda _: os.environ["PATHCAST_ENGINE"])
    assert seen.collect() == [switch]
    deliveries = [row for row in rows if row.error is None]
    letters = [row for row in rows if row.error is not None]
    expected, expected_letters = in_process(limits)
    assert Counter(comparable(row.asDict()) for row in deliveries) == expected
    assert Counter((row.message_id, row.subscription_id, row.error.code) for row in letters) == (
        expected_letters
    )
    refused = next(row for row in letters if row.message_id == "m1")
    assert (refused.error.line, refused.error.column, refused.error.bytes) == (1, 6, 5)
    assert {(row.message_id, row.size) for row in rows} <= {
        (name, None if text is None else len(text)) for name, text in MESSAGES.items()
    }
    version = Snapshot.open(snapshot).version
    assert {row.snapshot_version for row in rows} == {version}


@pytest.mark.spark
def test_subscriptions_are_given_as_files_and_as_objects(
    spark: SparkSession, tmp_path: Path, snapshot: Path
) -> None:
    # One set has one version, and other files as a generation than as a snapshot.
    chosen = [SUBSCRIPTIONS[1], SUBSCRIPTIONS[3], SUBSCRIPTIONS[4]]
    rows = ["subscriber\tquery_id\tquery\tdeliver", "eve\tbad\t//book[\tids"]
    rows += [f"{s.subscriber}\t{s.id}\t{s.query}\t{s.deliver}" for s in chosen]
    file = tmp_path / "s.tsv"
    file.write_text("\n".join(rows))
    registry = Registry()
    registry.add(chosen)
    found = [
        Counter(comparable(row.asDict()) for row in df.where("error is null").collect())
        for df in (
            deliver(frame(spark), file, "body", id="id"),
            deliver(frame(spark), registry, "body", id="id"),
            deliver(frame(spark), registry.freeze(), "body", id="id"),
        )
    ]
    file.unlink()  # it was sent with the job
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 9


@pytest.mark.spark
def test_a_streaming_frame_becomes_a_streaming_frame(
    spark: SparkSession, snapshot: Path, tmp_path: Path
) -> None:
    frame(spark).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id string, body binary").parquet(str(tmp_path / "in"))
    found = deliver(stream, snapshot, "body", id="id")
    assert found.isStreaming
    writer = found.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start(str(tmp_path / "out")).awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out")).where("error is null").collect()
    assert Counter(comparable(row.asDict()) for row in rows) == in_process(Limits())[0]


@pytest.mark.spark
def test_a_snapshot_of_filter_queries_gives_notices_of_nobody(
    spark: SparkSession, filters: Path
) -> None:
    found = deliver(frame(spark), filters, "body", id="id")
    filters.unlink()  # it was sent with the job
    rows = found.where("error is null").collect()
    assert {(row.message_id, row.subscription_id) for row in rows} == {
        ("m0", "zeta"),
        ("m0", "alpha"),
        ("m3", "zeta"),
    }
    assert {(row.subscriber, row.fragment, row.result_number) for row in rows} == {(None, None, 0)}


@pytest.mark.spark
def test_text_columns_and_ids_of_other_types(spark: SparkSession, filters: Path) -> None:
    # Text was decoded before: what its declaration says about bytes no longer holds.
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><bib><book>é</book></bib>"
    df = spark.createDataFrame([(7, text)], "number int, text string")
    (row,) = deliver(df, filters, "text", id="number").collect()
    assert (row.message_id, row.subscription_id) == ("7", "zeta")


@pytest.mark.spark
def test_wrong_columns_are_refused_before_anything_runs(spark: SparkSession, filters: Path) -> None:
    df = spark.createDataFrame([(1, 2)], "id int, body int")
    with pytest.raises(ConfigError, match=r"message.*int, not binary or string"):
        deliver(df, filters, "body", id="id")
    with pytest.raises(ConfigError, match=r"id: no column 'key'"):
        deliver(df, filters, "body", id="key")
    text = df.selectExpr("'<a/>' AS body", "1 AS batch_id", "2 AS Error")
    for name in ("batch_id", "Error"):
        with pytest.raises(ConfigError, match=f"{name} is a column that Pathcast writes"):
            deliver(text, filters, "body", columns=[name])
    keyed = df.selectExpr("'<a/>' AS body", "X'FF' AS key")
    with pytest.raises(ConfigError, match=r"id: column 'key' is binary.*hex\(key\)"):
        deliver(keyed, filters, "body", id="key")
    with pytest.raises(ConfigError, match=r"subscriptions: .*nope.snap cannot be read"):
        deliver(text, filters.parent / "nope.snap", "body")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"code": "string", "reason": "string", "bytes": "long"}, ("mine", "why", 0)),
        ({"code": "string", "reason": "string"}, ("message.unreadable", None, 0)),
        ({"bytes": "long"}, ("message.unreadable", None, 0)),
        ({"code": "string", "reason": "string", "bytes": "int"}, ("message.unreadable", None, 0)),
    ],
)
def test_columns_of_a_source_are_read_where_all_are_there(
    spark: SparkSession,
    filters: Path,
    columns: dict[str, str],
    error: tuple[str, str | None, int],
) -> None:
    values = {"code": "mine", "reason": "why", "bytes": None}
    schema = ", ".join(["body binary", *(f"{name} {kind}" for name, kind in columns.items())])
    df = spark.createDataFrame([(None, *(values[name] for name in columns))], schema)
    (row,) = deliver(df, filters, "body").collect()
    code, reason, count = error
    assert (row.error.code, row.error.bytes) == (code, count)
    assert (row.error.message == "why") is (reason == "why")


@pytest.fixture
def task(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> RowTask:
    """The body of the stage, to be called without Spark."""
    # Where a job's files are is told by Spark, in a worker.
    monkeypatch.setattr("pyspark.SparkFiles.get", lambda name: str(snapshot.parent / name))
    files = saved_files(snapshot, snapshot.parent)
    return RowTask(files, pa.schema([]), LIMITS, threads=1, cache_bytes_max=None)


def batch_of(messages: dict[str, bytes | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "message_id": pa.array(list(messages), pa.string()),
            "message": pa.array(list(messages.values()), pa.binary()),
        }
    )


def rows_of(task: RowTask, batch: pa.RecordBatch) -> Counter[str]:
    return Counter(str(row) for part in task([batch]) for row in part.to_pylist())


def test_slices_of_a_batch_give_the_rows_of_the_slice(task: RowTask) -> None:
    # A batch that ignores its offset would answer for its neighbours' messages.
    batch = batch_of(MESSAGES)
    single = [rows_of(task, batch.slice(place, 1)) for place in range(len(MESSAGES))]
    assert sum(len(rows) for rows in single) > len(MESSAGES)
    for start in range(len(MESSAGES)):
        for length in range(len(MESSAGES) - start + 1):
            found = rows_of(task, batch.slice(start, length))
            assert found == sum(single[start : start + length], Counter())


def test_a_message_without_an_id_is_named_by_its_bytes(task: RowTask) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "message_id": pa.array([None, None], pa.string()),
            "message": pa.array([MESSAGES["m0"], None], pa.binary()),
        }
    )
    rows = [row for part in task([batch]) for row in part.to_pylist()]
    ids = {row["message_id"] for row in rows if row["delivery_id"] is not None}
    want = made_by("reference", Registry).deliver([MESSAGES["m0"]])
    assert ids == {want.message_ids[0]}
    assert [
        row["message_id"]
        for row in rows
        if row["error"] and row["error"]["code"] == "message.unreadable"
    ] == [None]


def test_long_results_go_in_several_batches(task: RowTask, monkeypatch: pytest.MonkeyPatch) -> None:
    # A column of results above 2 GB is beyond Arrow's binary type: the task would fail.
    whole = rows_of(task, batch_of(MESSAGES))
    few = len(list(task([batch_of(MESSAGES)])))
    monkeypatch.setattr(frame_tasks, "FRAGMENT_BYTES_MAX", 40)
    assert rows_of(task, batch_of(MESSAGES)) == whole
    assert len(list(task([batch_of(MESSAGES)]))) > few
    monkeypatch.setattr(frame_tasks, "ROWS_MAX", 1)
    assert rows_of(task, batch_of(MESSAGES)) == whole


def test_a_worker_opens_a_snapshot_once(task: RowTask, monkeypatch: pytest.MonkeyPatch) -> None:
    list(task([batch_of(MESSAGES)]))
    monkeypatch.setattr(Snapshot, "open", lambda *_, **__: pytest.fail("opened again"))
    assert list(replace(task)([batch_of(MESSAGES)]))
